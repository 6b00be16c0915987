/** What the commands do. */

import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Clipboard, Dialog, showDialog } from '@jupyterlab/apputils';
import { PageConfig } from '@jupyterlab/coreutils';

import { activateClicked } from './clickedcell';
import { IContext, saveBlob } from './context';
import type { Forms } from './formpages';
import { contentsPath } from './groups';
import { CommandIDs } from './ids';
import { readLine } from './linelinks';
import { ICellPlace, IJob } from './model';
import { goTo, openPanel } from './notebooks';
import type { Pages } from './pages';
import { asPanel, atCode } from './panel';
import { notebookOf } from './places';
import { isFinal } from './words';

type Arguments = Record<string, unknown>;
export type Actions = Record<string, (args: Arguments) => unknown>;

/** Opens what commands open. */
export interface IOpen {
  pages: Pages;
  forms: Forms;
  showList(): void;
  /** The job selected in the list. */
  selected(): string | null;
}

export function actions(app: JupyterFrontEnd, context: IContext, open: IOpen, stoppedHere: Set<string>): Actions {
  const { api, store, trans } = context;
  const idOf = (args: Arguments): string => {
    const id = typeof args.id === 'string' ? args.id : (open.selected() ?? store.jobs()[0]?.id);
    if (!id) {
      throw new Error(trans.__('There are no jobs yet.'));
    }
    return id;
  };
  const one = async (args: Arguments): Promise<IJob> => store.want(idOf(args));

  return {
    [CommandIDs.openJobs]: () => open.showList(),
    [CommandIDs.openJob]: args => open.pages.openJob(idOf(args)),
    [CommandIDs.openLog]: args => {
      const task = typeof args.task === 'string' ? args.task : '';
      const page = typeof args.page === 'string' ? args.page : undefined;
      return open.pages.openLog({ id: idOf(args), task, line: readLine(args.line) }, page);
    },
    [CommandIDs.stop]: async args => {
      const job = await one(args);
      if (!isFinal(job.state)) {
        stoppedHere.add(job.id);
        store.take(await api.stop(job.id));
      }
    },
    [CommandIDs.retry]: async args => {
      const job = await api.retry(idOf(args));
      store.take(job);
      return job;
    },
    [CommandIDs.deleteJob]: async args => {
      const job = await one(args);
      if (!isFinal(job.state)) {
        throw new Error(trans.__('%1 has not ended; stop it first.', job.name));
      }
      const answer = await showDialog({
        title: trans.__('Delete %1?', job.name),
        body: trans.__('Its record, logs and outputs go for good. Notebooks keep their snapshot of it.'),
        buttons: [Dialog.cancelButton({ label: trans.__('Cancel') }), Dialog.warnButton({ label: trans.__('Delete') })],
        defaultButton: 0
      });
      if (answer.button.accept) {
        await api.delete(job.id);
        store.forget(job.id);
      }
    },
    [CommandIDs.openNotebook]: async args => {
      const job = await one(args);
      const place = (args.place as ICellPlace | undefined) ?? null;
      const notebook = notebookOf(job, place);
      const path = notebook ? contentsPath(notebook, PageConfig.getOption('serverRoot')) : null;
      if (path === null) {
        throw new Error(
          job.notebook
            ? trans.__('%1 does not lie below the root of this server.', notebook)
            : trans.__('%1 was not submitted from a notebook.', job.name)
        );
      }
      const panel = openPanel(app, path) ?? asPanel(await app.commands.execute('docmanager:open', { path }));
      if (panel) {
        app.shell.activateById(panel.id);
      }
      const cell =
        place ?? (job.cell?.id ? { notebook: null, id: job.cell.id, cell: job.cell.number ?? undefined } : null);
      if (panel && cell && !(await goTo(panel, cell))) {
        throw new Error(trans.__('The cell is no longer in %1.', path));
      }
    },
    [CommandIDs.copyId]: args => Clipboard.copyToSystem(idOf(args)),
    [CommandIDs.exportDocument]: async args => {
      const job = await one(args);
      const text = await api.text(api.exportUrl(job.id));
      saveBlob(new Blob([text], { type: 'text/yaml' }), `${job.name}.yaml`);
    },
    [CommandIDs.reconnect]: () => store.retry(),
    [CommandIDs.logIn]: async args => {
      const { chooseAndLogIn } = await import('./loginentry');
      await chooseAndLogIn(context, typeof args.profile === 'string' ? args.profile : null);
    },
    [CommandIDs.runCell]: async args => {
      if (args.cell === 'clicked') {
        activateClicked(app);
      }
      const panel = atCode(app.shell.currentWidget);
      if (panel) {
        const { runCell } = await import('./runcell');
        await runCell(context, panel, path => app.serviceManager.contents.localPath(path));
      }
    },
    [CommandIDs.form]: args => open.forms.open(args)
  };
}
