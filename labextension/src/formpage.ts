/** The page of a form: comes back after a reload, asks before it goes with what nobody has kept. */

import { Dialog, MainAreaWidget, showDialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { Message } from '@lumino/messaging';
import { Widget } from '@lumino/widgets';

import type { IFormArguments } from './formstart';
import type { FormView } from './formview';

const PAUSE_MILLISECONDS = 400;

export class FormPage extends MainAreaWidget<Widget> {
  /**
   * @param given - what the form was opened with; what it is opened with after a reload.
   * @param save - has the layout keep `given`.
   */
  constructor(
    public given: IFormArguments,
    private readonly trans: TranslationBundle,
    private readonly save: () => void
  ) {
    super({ content: new Widget() });
    this.content.addClass('jp-PaiPage');
    this.title.closable = true;
    this.toolbar.hide();
  }

  /** Show a form; from now on what it says is kept. */
  take(form: FormView): void {
    this._form = form;
    this.content.disposed.connect(() => form.dispose());
    Widget.attach(form, this.content.node);
    form.touched.connect(() => {
      this.title.className = form.unsaved ? 'jp-mod-dirty' : '';
      clearTimeout(this._timer);
      this._timer = setTimeout(() => void this._keep(form), PAUSE_MILLISECONDS) as unknown as number;
    });
    void this._keep(form);
  }

  dispose(): void {
    clearTimeout(this._timer);
    super.dispose();
  }

  protected onCloseRequest(message: Message): void {
    if (!this._form?.unsaved) {
      super.onCloseRequest(message);
      return;
    }
    const { trans } = this;
    void showDialog({
      title: trans.__('Close the form?'),
      body: trans.__('What was filled in goes for good. Export keeps it as a file.'),
      buttons: [Dialog.cancelButton({ label: trans.__('Cancel') }), Dialog.warnButton({ label: trans.__('Close') })],
      defaultButton: 0
    }).then(answer => answer.button.accept && this.dispose());
  }

  private async _keep(form: FormView): Promise<void> {
    const draft = await form.draft();
    if (!this.isDisposed) {
      this.given = draft;
      this.save();
    }
  }

  private _form: FormView | null = null;
  private _timer = 0;
}
