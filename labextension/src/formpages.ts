/** The forms of the page, and what each is about: a notebook, a cell, an earlier job, an output of the magic. */

import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { IEditorServices } from '@jupyterlab/codeeditor';
import type { LabIcon } from '@jupyterlab/ui-components';

import { showPage } from './area';
import { activateClicked } from './clickedcell';
import { errorText, IContext } from './context';
import { FormPage } from './formpage';
import { FormRenderer } from './formrender';
import type { IFormArguments } from './formstart';
import type { KeptPages } from './kept';
import { asPanel, INotebookPanel } from './panel';

export type FormPages = KeptPages<FormPage, IFormArguments>;

export class Forms {
  constructor(
    private readonly app: JupyterFrontEnd,
    private readonly context: IContext,
    private readonly icon: LabIcon,
    private readonly editors: IEditorServices | null,
    private readonly pages: FormPages
  ) {}

  /** Open a form: about what the arguments say, else about the notebook that is looked at. */
  async open(args: { [name: string]: unknown }): Promise<void> {
    if (Object.keys(args).some(key => ['document', 'job', 'folder', 'notebook'].includes(key))) {
      return this._open(args as IFormArguments);
    }
    if (typeof args.cwd === 'string') {
      return this._open({ folder: this._localPath(args.cwd) });
    }
    if (args.cell === 'clicked') {
      activateClicked(this.app);
    }
    const panel = asNotebook(this.app.shell.currentWidget);
    if (panel === null) {
      return this._open({ folder: '' });
    }
    return this._open(await ofNotebook(panel, args.cell === 'active' || args.cell === 'clicked', this._localPath));
  }

  /** What draws the output of the magic. */
  output(): FormRenderer {
    return new FormRenderer(this.context, node => notebookOf(this.app, node, this._localPath));
  }

  // The page is there at once: the layout waits for it, and shall not wait for the server.
  private _open(given: IFormArguments): Promise<void> {
    const { trans } = this.context;
    this._opened += 1;
    const page: FormPage = new FormPage(given, trans, () => this.pages.keep(page, page.given));
    page.id = given.page ?? `paijupyter-form-${Date.now()}-${this._opened}`;
    page.title.icon = this.icon;
    page.title.label = trans.__('New job');
    showPage(this.app, page);
    this.pages.add(page, given);
    const filled = this._fill(page, given);
    return given.page ? Promise.resolve() : filled;
  }

  private async _fill(page: FormPage, given: IFormArguments): Promise<void> {
    const { context } = this;
    try {
      const [{ FormView }, { FormApi }, { begin, titleOf }] = await Promise.all([
        import('./formview'),
        import('./formapi'),
        import('./formstart')
      ]);
      page.title.label = [context.trans.__('New job'), titleOf(given)].filter(Boolean).join(' · ');
      const api = new FormApi(context.api);
      const job = (id: string): ReturnType<typeof context.store.want> => context.store.want(id);
      const [rows, profiles, start] = await Promise.all([api.rows(), api.profiles(), begin(given, api, job)]);
      const form = new FormView(context, api, rows, profiles, given, start, this.editors?.factoryService ?? null);
      await form.ready;
      if (page.isDisposed) {
        form.dispose();
      } else {
        page.take(form);
      }
    } catch (error) {
      page.content.node.setAttribute('role', 'alert');
      page.content.node.textContent = errorText(error);
    }
  }

  private readonly _localPath = (path: string): string => this.app.serviceManager.contents.localPath(path);
  private _opened = 0;
}

/** The widget as the panel of a notebook's own file: a form cannot read others that are shown as notebooks. */
function asNotebook(widget: unknown): INotebookPanel | null {
  const panel = asPanel(widget);
  return panel?.context.path.endsWith('.ipynb') ? panel : null;
}

async function ofNotebook(
  panel: INotebookPanel,
  cell: boolean,
  localPath: (path: string) => string
): Promise<IFormArguments> {
  await panel.context.ready;
  if (panel.context.model.dirty) {
    await panel.context.save(); // What runs is the file; it shall say what the page says.
  }
  const kernel = panel.sessionContext?.session?.kernel;
  return {
    notebook: localPath(panel.context.path),
    ...(kernel ? { kernelspec: kernel.name, kernel: kernel.id } : {}),
    ...(cell && panel.content.activeCell ? { cell: panel.content.activeCell.model.id } : {})
  };
}

/** The notebook whose output an element is in. */
function notebookOf(app: JupyterFrontEnd, node: HTMLElement, localPath: (path: string) => string): IFormArguments {
  for (const widget of app.shell.widgets('main')) {
    const panel = widget.node.contains(node) ? asNotebook(widget) : null;
    if (panel) {
      const kernel = panel.sessionContext?.session?.kernel;
      return { notebook: localPath(panel.context.path), ...(kernel ? { kernelspec: kernel.name } : {}) };
    }
  }
  return {};
}
