/** What `%paijob form` leaves in a cell: the form opens beside it, once; a button opens it again. */

import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import { Widget } from '@lumino/widgets';

import { errorText, IContext } from './context';
import { Button, h, rich, setText } from './dom';
import type { IFormArguments } from './formstart';
import { CommandIDs, MIME } from './ids';

/** An output that is older than this was saved or is read by somebody else; nothing opens by itself then. */
const FRESH_MILLISECONDS = 60_000;

interface IFormData {
  document?: unknown;
  profile?: string | null;
  package?: string | null;
  data?: Record<string, string>;
  secrets?: Record<string, string>;
  resumeFrom?: string | null;
  context?: { cell?: IFormArguments['cellFacts']; kernel?: string };
  at?: string;
}

const opened = new Set<string>();

export class FormRenderer extends Widget implements IRenderMime.IRenderer {
  constructor(
    private readonly context: IContext,
    private readonly place: (node: HTMLElement) => IFormArguments
  ) {
    super();
    const { trans } = context;
    this._open = new Button(trans.__('Open the form'), trans.__('Open the form of this job'), () => this._go());
    this.node.append(h('div', { class: 'jp-PaiOutput-form' }, this._said, this._open.node));
  }

  renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    this._data = (model.data[MIME.form] ?? {}) as IFormData;
    const { trans } = this.context;
    const readable = typeof this._data.document === 'string';
    setText(this._said, readable ? trans.__('A job to fill in:') : trans.__('This output holds no job document.'));
    this._open.node.hidden = !readable;
    if (this.isAttached) {
      this._openFresh();
    }
    return Promise.resolve();
  }

  protected onAfterAttach(): void {
    this._openFresh();
  }

  private _openFresh(): void {
    const at = this._data.at ?? '';
    const age = this.context.api.now() - Date.parse(at);
    if (typeof this._data.document === 'string' && age < FRESH_MILLISECONDS && !opened.has(at)) {
      opened.add(at);
      this._go();
    }
  }

  private _go(): void {
    const { document: text, profile, package: sha256, data, secrets, resumeFrom, context } = this._data;
    const given: IFormArguments = {
      ...this.place(this.node),
      document: String(text),
      profile: profile ?? null,
      package: sha256 ?? null,
      data: data ?? {},
      secrets: secrets ?? {},
      resumeFrom: resumeFrom ?? null,
      cellFacts: context?.cell ?? null,
      ...(context?.kernel ? { kernel: context.kernel } : {})
    };
    this.context.commands.execute(CommandIDs.form, { ...given } as never).catch(error => {
      this._said.replaceChildren(...rich(errorText(error)));
    });
  }

  private _data: IFormData = {};
  private readonly _open: Button;
  private readonly _said = h('span', { role: 'status' });
}
