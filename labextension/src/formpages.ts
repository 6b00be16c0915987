/** Where forms are opened from: launcher, toolbar of a notebook, palette, menu of a cell, output of the magic. */

import type { ILayoutRestorer, JupyterFrontEnd } from '@jupyterlab/application';
import { WidgetTracker } from '@jupyterlab/apputils';
import type { IEditorServices } from '@jupyterlab/codeeditor';
import type { ILauncher } from '@jupyterlab/launcher';
import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { LabIcon } from '@jupyterlab/ui-components';

import { showPage } from './area';
import { CommandIDs, errorText, IContext } from './context';
import { FormPage } from './formpage';
import { FORM_MIME, FormRenderer } from './formrender';
import type { IFormArguments } from './formstart';

/** The widget renderer has -10: where this front end is, the form is the better of the two. */
const BEFORE_WIDGETS = -20;

/** The part of a notebook panel that says what a form is about. */
interface INotebookPanel {
  context: { path: string; ready: Promise<void>; model: { dirty: boolean }; save(): Promise<void> };
  content: { activeCell: { model: { id: string; type: string } } | null; widgets: unknown[] };
  sessionContext: { session: { kernel: { id: string; name: string } | null } | null };
}

export function addForms(
  app: JupyterFrontEnd,
  context: IContext,
  rendermime: IRenderMimeRegistry,
  icon: LabIcon,
  launcher: ILauncher | null,
  editors: IEditorServices | null,
  restorer: ILayoutRestorer | null
): void {
  const { trans } = context;
  let opened = 0;
  const tracker = new WidgetTracker<FormPage>({ namespace: 'paijupyter-forms' });
  void restorer?.restore(tracker, {
    command: CommandIDs.form,
    args: page => ({ ...page.given, page: page.id }) as never,
    name: page => page.id
  });
  const localPath = (path: string): string => app.serviceManager.contents.localPath(path);

  // The page is there at once: the layout waits for it, and shall not wait for the server.
  const open = (given: IFormArguments): Promise<void> => {
    opened += 1;
    const page = new FormPage(given, trans, () => void tracker.save(page));
    page.id = given.page ?? `paijupyter-form-${Date.now()}-${opened}`;
    page.title.icon = icon;
    page.title.label = trans.__('New job');
    showPage(app, page);
    void tracker.add(page);
    const filled = fill(page, given);
    return given.page ? Promise.resolve() : filled;
  };

  const fill = async (page: FormPage, given: IFormArguments): Promise<void> => {
    try {
      const [{ FormView }, { FormApi }, { begin, titleOf }] = await Promise.all([
        import('./formview'),
        import('./formapi'),
        import('./formstart')
      ]);
      page.title.label = [trans.__('New job'), titleOf(given)].filter(Boolean).join(' · ');
      const api = new FormApi(context.api);
      const job = (id: string): ReturnType<typeof context.store.want> => context.store.want(id);
      const [rows, profiles, start] = await Promise.all([api.rows(), api.profiles(), begin(given, api, job)]);
      const form = new FormView(context, api, rows, profiles, given, start, editors?.factoryService ?? null);
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
  };

  app.commands.addCommand(CommandIDs.form, {
    label: args =>
      args.isLauncher ? trans.__('Job') : args.cell ? trans.__('New job from this cell') : trans.__('New job'),
    caption: trans.__('Fill in a form, see the plan, submit a job'),
    icon,
    execute: async args => {
      if (Object.keys(args).some(key => ['document', 'job', 'folder', 'notebook'].includes(key))) {
        return open(args as IFormArguments);
      }
      if (typeof args.cwd === 'string') {
        return open({ folder: localPath(args.cwd) });
      }
      const panel = app.shell.currentWidget as unknown as Partial<INotebookPanel> | null;
      if (!isNotebook(panel)) {
        return open({ folder: '' });
      }
      return open(await ofNotebook(panel, args.cell === 'active', localPath));
    }
  });
  launcher?.add({ command: CommandIDs.form, args: { isLauncher: true }, category: trans.__('Other'), rank: 10 });
  app.contextMenu.addItem({ command: CommandIDs.form, args: { cell: 'active' }, selector: '.jp-CodeCell', rank: 30 });
  rendermime.addFactory(
    {
      safe: true,
      mimeTypes: [FORM_MIME],
      createRenderer: () => new FormRenderer(context, node => notebookOf(app, node, localPath))
    },
    BEFORE_WIDGETS
  );
}

function isNotebook(panel: Partial<INotebookPanel> | null): panel is INotebookPanel {
  return !!panel?.context?.path?.endsWith('.ipynb') && !!panel.content?.widgets;
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
    const panel = widget as unknown as Partial<INotebookPanel>;
    if (widget.node.contains(node) && isNotebook(panel)) {
      const kernel = panel.sessionContext?.session?.kernel;
      return { notebook: localPath(panel.context.path), ...(kernel ? { kernelspec: kernel.name } : {}) };
    }
  }
  return {};
}
