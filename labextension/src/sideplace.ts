/** The place of the list in the side bar; the list itself is loaded when it is first shown. */

import type { TranslationBundle } from '@jupyterlab/translation';
import type { LabIcon } from '@jupyterlab/ui-components';
import { Panel, Widget } from '@lumino/widgets';

export class SidePlace extends Panel {
  constructor(
    private readonly trans: TranslationBundle,
    icon: LabIcon,
    private readonly load: () => Promise<Widget>
  ) {
    super();
    this.id = 'paijupyter-jobs';
    this.title.icon = icon;
    this.title.caption = trans.__('Jobs');
    this.addClass('jp-PaiSide');
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', trans.__('Jobs'));
  }

  protected onAfterShow(): void {
    void this._list();
  }

  protected onAfterAttach(): void {
    if (this.isVisible) {
      void this._list();
    }
  }

  protected onActivateRequest(): void {
    void this._list().then(list => list?.activate());
  }

  private async _list(): Promise<Widget | null> {
    try {
      const list = await this.load();
      if (list.parent !== this) {
        this._failed?.dispose();
        this.addWidget(list);
      }
      return list;
    } catch (error) {
      // A server that is gone for a while takes along what was not loaded yet.
      console.warn('paijupyter: the list of jobs cannot be loaded', error);
      this._failed ??= this._sayFailed();
      return null;
    }
  }

  private _sayFailed(): Widget {
    const { trans } = this;
    const failed = new Widget();
    const again = document.createElement('button');
    again.className = 'jp-Button jp-mod-styled';
    again.textContent = trans.__('Try again');
    again.addEventListener('click', () => void this._list());
    failed.node.style.padding = '12px';
    failed.node.setAttribute('role', 'status');
    failed.node.append(trans.__('The list cannot be loaded: the server does not answer.') + ' ', again);
    this.addWidget(failed);
    return failed;
  }

  private _failed: Widget | null = null;
}
