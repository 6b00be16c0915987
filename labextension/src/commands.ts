/** What can be done with jobs, by name: for palette, keys, menus and toolbars. What it does is loaded when it is used. */

import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { ICommandPalette } from '@jupyterlab/apputils';
import type { ILauncher } from '@jupyterlab/launcher';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { LabIcon } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';

import { clickedCell } from './clickedcell';
import { CommandIDs } from './ids';
import { atCode } from './panel';

/** Does what a command of ours stands for. */
export type Run = (command: string, args: ReadonlyPartialJSONObject) => Promise<unknown>;

export function addCommands(
  app: JupyterFrontEnd,
  trans: TranslationBundle,
  icon: LabIcon,
  run: Run,
  palette: ICommandPalette | null,
  launcher: ILauncher | null
): void {
  const category = trans.__('Jobs');
  const add = (command: string, options: Omit<CommandRegistry.ICommandOptions, 'execute'>): void => {
    app.commands.addCommand(command, { ...options, execute: args => run(command, args) });
    palette?.addItem({ command, category });
  };
  const inCode = (args: { cell?: unknown }): boolean =>
    args.cell === 'clicked' ? clickedCell(app)?.model.type === 'code' : atCode(app.shell.currentWidget) !== null;
  const clicked = { cell: 'clicked' };

  add(CommandIDs.openJobs, { label: trans.__('Show jobs'), caption: trans.__('Show all jobs in the side bar') });
  add(CommandIDs.openJob, { label: trans.__('Open the latest job') });
  add(CommandIDs.openLog, { label: trans.__('Open the log of the latest job') });
  add(CommandIDs.stop, { label: trans.__('Stop the selected job') });
  add(CommandIDs.retry, { label: trans.__('Retry the selected job') });
  add(CommandIDs.deleteJob, { label: trans.__('Delete the selected job') });
  add(CommandIDs.openNotebook, { label: trans.__('Open the notebook of the selected job') });
  add(CommandIDs.copyId, { label: trans.__('Copy the id of the selected job') });
  add(CommandIDs.exportDocument, { label: trans.__('Export the document of the selected job') });
  add(CommandIDs.reconnect, { label: trans.__('Reconnect to the job server') });
  add(CommandIDs.logIn, { label: trans.__('Log in at the server of a profile') });
  add(CommandIDs.runCell, {
    label: trans.__('Run this cell as a job'),
    caption: trans.__('Run this cell as a job, with the cells above that it needs'),
    icon,
    isEnabled: inCode,
    isVisible: inCode
  });
  add(CommandIDs.form, {
    label: args =>
      args.isLauncher ? trans.__('Job') : args.cell ? trans.__('New job from this cell') : trans.__('New job'),
    caption: trans.__('Fill in a form, see the plan, submit a job'),
    icon
  });
  launcher?.add({ command: CommandIDs.form, args: { isLauncher: true }, category: trans.__('Other'), rank: 10 });
  const code = '.jp-CodeCell';
  app.contextMenu.addItem({ command: CommandIDs.runCell, args: clicked, selector: `.jp-Notebook ${code}`, rank: 9.5 });
  app.contextMenu.addItem({ command: CommandIDs.form, args: clicked, selector: code, rank: 30 });
}
