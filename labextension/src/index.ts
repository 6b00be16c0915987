/**
 * The JupyterLab plugin: the names of what is ours, and the places where it is shown.
 *
 * This is all that a start of JupyterLab waits for, so it imports nothing that draws, asks or styles: see `parts.ts`.
 */

import { ILayoutRestorer, IRouter, JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { IEditorServices } from '@jupyterlab/codeeditor';
import { ILauncher } from '@jupyterlab/launcher';
import { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { IStatusBar } from '@jupyterlab/statusbar';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { LabIcon } from '@jupyterlab/ui-components';

import { CellOutput, Drawn } from './celloutput';
import { addCommands } from './commands';
import { CommandIDs, LINK, MIME, OPEN_LINK, PLUGIN } from './ids';
import { KeptPages } from './kept';
import type { IPlaces, Parts } from './parts';
import { SidePlace } from './sideplace';

const BEFORE_HTML = 40;
/** The widget renderer has -10: where this front end is, the form is the better of the two. */
const BEFORE_WIDGETS = -20;

const icon = new LabIcon({
  name: 'paijupyter:jobs',
  svgstr: `<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 16 16">
    <g class="jp-icon3" fill="#616161"><circle cx="3.4" cy="8" r="2.4"/><circle cx="12.6" cy="3.4" r="2.4"/>
    <circle cx="12.6" cy="12.6" r="2.4"/><path d="M4 6.6l7.2-3.7.7 1.3-7.2 3.7zM4 9.4l7.2 3.7.7-1.3-7.2-3.7z"/></g></svg>`
});

const plugin: JupyterFrontEndPlugin<void> = {
  id: PLUGIN,
  description: 'Live cards, logs and the list of paijupyter jobs.',
  autoStart: true,
  requires: [IRenderMimeRegistry],
  optional: [
    ITranslator,
    ISettingRegistry,
    ILayoutRestorer,
    ICommandPalette,
    IStatusBar,
    ILauncher,
    IEditorServices,
    IRouter
  ],
  activate: (
    app: JupyterFrontEnd,
    rendermime: IRenderMimeRegistry,
    translator: ITranslator | null,
    settings: ISettingRegistry | null,
    restorer: ILayoutRestorer | null,
    palette: ICommandPalette | null,
    statusBar: IStatusBar | null,
    launcher: ILauncher | null,
    editors: IEditorServices | null,
    router: IRouter | null
  ) => {
    const trans = (translator ?? nullTranslator).load('paijupyter');
    const pages: IPlaces['pages'] = {
      logs: new KeptPages(restorer, 'paijupyter-logs', CommandIDs.openLog),
      jobs: new KeptPages(restorer, 'paijupyter-jobs', CommandIDs.openJob),
      forms: new KeptPages(restorer, 'paijupyter-forms', CommandIDs.form)
    };
    let all: Parts | null = null;
    const parts = async (): Promise<Parts> => {
      const { Parts: All } = await import('./parts');
      return (all ??= new All({ app, rendermime, trans, settings, statusBar, editors, router, icon, pages, side }));
    };

    const side = new SidePlace(trans, icon, async () => (await parts()).list);
    app.shell.add(side, 'left', { rank: 650, type: 'Jobs' });
    restorer?.add(side, side.id);
    addCommands(app, trans, icon, async (command, args) => (await parts()).run(command, args), palette, launcher);
    const draw = (mime: string, rank: number, make: (of: Parts) => Drawn): void =>
      rendermime.addFactory(
        { safe: true, mimeTypes: [mime], createRenderer: () => new CellOutput(async () => make(await parts())) },
        rank
      );
    draw(MIME.job, BEFORE_HTML, of => of.jobOutput());
    draw(MIME.form, BEFORE_WIDGETS, of => of.formOutput());
    app.commands.addCommand(OPEN_LINK, { execute: async () => (await parts()).run(OPEN_LINK, {}) });
    router?.register({ command: OPEN_LINK, pattern: LINK, rank: 40 });
    // The page comes first; what is counted in the status bar can wait for it.
    void app.restored.then(parts);
  }
};

export default plugin;
