/** Where forms are opened from: launcher, toolbar of a notebook, palette, menu of a cell, output of the magic. */

import type { JupyterFrontEnd } from '@jupyterlab/application';
import { MainAreaWidget } from '@jupyterlab/apputils';
import type { IEditorServices } from '@jupyterlab/codeeditor';
import type { ILauncher } from '@jupyterlab/launcher';
import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { LabIcon } from '@jupyterlab/ui-components';
import { Widget } from '@lumino/widgets';

import { CommandIDs, errorText, IContext } from './context';
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
  editors: IEditorServices | null
): void {
  const { trans } = context;
  let opened = 0;
  const localPath = (path: string): string => app.serviceManager.contents.localPath(path);

  const open = async (given: IFormArguments): Promise<void> => {
    const [{ FormView }, { FormApi }, { begin, titleOf }] = await Promise.all([
      import('./formview'),
      import('./formapi'),
      import('./formstart')
    ]);
    opened += 1;
    const holder = new Widget();
    holder.addClass('jp-PaiPage');
    const page = new MainAreaWidget({ content: holder });
    page.id = `paijupyter-form-${Date.now()}-${opened}`;
    page.title.icon = icon;
    page.title.closable = true;
    page.title.label = [trans.__('New job'), titleOf(given)].filter(Boolean).join(' · ');
    page.toolbar.hide();
    app.shell.add(page, 'main');
    app.shell.activateById(page.id);
    try {
      const api = new FormApi(context.api);
      const job = (id: string): ReturnType<typeof context.store.want> => context.store.want(id);
      const [rows, profiles, start] = await Promise.all([api.rows(), api.profiles(), begin(given, api, job)]);
      const form = new FormView(context, api, rows, profiles, start, editors?.factoryService ?? null);
      holder.disposed.connect(() => form.dispose());
      await form.ready;
      if (!holder.isDisposed) {
        Widget.attach(form, holder.node);
      }
    } catch (error) {
      holder.node.setAttribute('role', 'alert');
      holder.node.textContent = errorText(error);
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
