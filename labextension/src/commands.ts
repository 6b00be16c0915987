/** What can be done with jobs, from the palette, keys, cards and lists. */

import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Clipboard, Dialog, ICommandPalette, showDialog } from '@jupyterlab/apputils';
import { PageConfig } from '@jupyterlab/coreutils';

import { CommandIDs, IContext, saveBlob } from './context';
import { contentsPath } from './groups';
import { readLine } from './linelinks';
import { IJob, ICellPlace } from './model';
import { asPanel, goTo, openPanel } from './notebooks';
import type { Pages } from './pages';
import { notebookOf } from './places';
import { isFinal } from './words';

type Arguments = { id?: unknown; task?: unknown; place?: unknown };

/** Opens what commands open. */
export interface IOpen {
  pages: Pages;
  showList(): void;
  /** The job selected in the list. */
  selected(): string | null;
}

export function addCommands(
  app: JupyterFrontEnd,
  context: IContext,
  open: IOpen,
  palette: ICommandPalette | null,
  stoppedHere: Set<string>
): void {
  const { api, store, trans } = context;
  const { commands } = app;
  const idOf = (args: Arguments): string => {
    const id = typeof args.id === 'string' ? args.id : (open.selected() ?? store.jobs()[0]?.id);
    if (!id) {
      throw new Error(trans.__('There are no jobs yet.'));
    }
    return id;
  };
  const one = async (args: Arguments): Promise<IJob> => store.want(idOf(args));

  commands.addCommand(CommandIDs.openJobs, {
    label: trans.__('Show jobs'),
    caption: trans.__('Show all jobs in the side bar'),
    execute: () => open.showList()
  });
  commands.addCommand(CommandIDs.openJob, {
    label: trans.__('Open the latest job'),
    execute: args => open.pages.openJob(idOf(args))
  });
  commands.addCommand(CommandIDs.openLog, {
    label: trans.__('Open the log of the latest job'),
    execute: args => {
      const task = typeof args.task === 'string' ? args.task : '';
      const page = typeof args.page === 'string' ? args.page : undefined;
      return open.pages.openLog({ id: idOf(args), task, line: readLine(args.line) }, page);
    }
  });
  commands.addCommand(CommandIDs.stop, {
    label: trans.__('Stop the selected job'),
    execute: async args => {
      const job = await one(args);
      if (!isFinal(job.state)) {
        stoppedHere.add(job.id);
        store.take(await api.stop(job.id));
      }
    }
  });
  commands.addCommand(CommandIDs.retry, {
    label: trans.__('Retry the selected job'),
    execute: async args => {
      const job = await api.retry(idOf(args));
      store.take(job);
      return job;
    }
  });
  commands.addCommand(CommandIDs.deleteJob, {
    label: trans.__('Delete the selected job'),
    execute: async args => {
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
    }
  });
  commands.addCommand(CommandIDs.openNotebook, {
    label: trans.__('Open the notebook of the selected job'),
    execute: async args => {
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
      const panel = openPanel(app, path) ?? asPanel(await commands.execute('docmanager:open', { path }));
      if (panel) {
        app.shell.activateById(panel.id);
      }
      const cell =
        place ?? (job.cell?.id ? { notebook: null, id: job.cell.id, cell: job.cell.number ?? undefined } : null);
      if (panel && cell && !(await goTo(panel, cell))) {
        throw new Error(trans.__('The cell is no longer in %1.', path));
      }
    }
  });
  commands.addCommand(CommandIDs.copyId, {
    label: trans.__('Copy the id of the selected job'),
    execute: args => Clipboard.copyToSystem(idOf(args))
  });
  commands.addCommand(CommandIDs.exportDocument, {
    label: trans.__('Export the document of the selected job'),
    execute: async args => {
      const job = await one(args);
      const text = await api.text(api.exportUrl(job.id));
      saveBlob(new Blob([text], { type: 'text/yaml' }), `${job.name}.yaml`);
    }
  });
  commands.addCommand(CommandIDs.reconnect, {
    label: trans.__('Reconnect to the job server'),
    execute: () => store.retry()
  });
  const category = trans.__('Jobs');
  for (const command of Object.values(CommandIDs)) {
    palette?.addItem({ command, category });
  }
}
