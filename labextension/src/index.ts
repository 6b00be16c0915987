/** The JupyterLab plugin: small, because all that draws is loaded when it is first needed. */

import { ILayoutRestorer, IRouter, JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { IEditorServices } from '@jupyterlab/codeeditor';
import { ILauncher } from '@jupyterlab/launcher';
import { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { IStatusBar } from '@jupyterlab/statusbar';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { LabIcon } from '@jupyterlab/ui-components';
import { Panel, Widget } from '@lumino/widgets';

import { Api } from './api';
import { addCellButton } from './cellbutton';
import { addCommands } from './commands';
import { IContext } from './context';
import { addLinks } from './deeplinks';
import { addForms } from './formpages';
import { notifyOfEnds } from './notify';
import { Pages } from './pages';
import { JobRenderer, MIME } from './renderer';
import type { JobList } from './sidebar';
import { JobCount } from './status';
import { JobStore } from './store';

const PLUGIN = 'paijupyter:plugin';
const BEFORE_HTML = 40;

const jobsIcon = new LabIcon({
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
    settingRegistry: ISettingRegistry | null,
    restorer: ILayoutRestorer | null,
    palette: ICommandPalette | null,
    statusBar: IStatusBar | null,
    launcher: ILauncher | null,
    editors: IEditorServices | null,
    router: IRouter | null
  ) => {
    const api = new Api(app.serviceManager.serverSettings);
    const store = new JobStore(api);
    const context: IContext = {
      api,
      store,
      trans: (translator ?? nullTranslator).load('paijupyter'),
      commands: app.commands,
      settings: { notifications: true, wrapLines: false, tailLines: 10_000 },
      inView: new Set()
    };
    readSettings(settingRegistry, context);
    rendermime.addFactory(
      { safe: true, mimeTypes: [MIME], createRenderer: () => new JobRenderer(context, rendermime) },
      BEFORE_HTML
    );
    const side = new SideBar(context);
    app.shell.add(side, 'left', { rank: 650, type: 'Jobs' });
    restorer?.add(side, side.id);
    const stoppedHere = new Set<string>();
    const open = {
      pages: new Pages(app, context, jobsIcon, restorer),
      showList: () => app.shell.activateById(side.id),
      selected: () => side.selected
    };
    addForms(app, context, rendermime, jobsIcon, launcher, editors, restorer);
    addCommands(app, context, open, palette, stoppedHere);
    addLinks(app, router);
    addCellButton(app, context, jobsIcon);
    notifyOfEnds(context, () => side.isVisible, stoppedHere);
    statusBar?.registerStatusItem(PLUGIN, { item: new JobCount(context), align: 'left', rank: 110 });
    document.addEventListener('visibilitychange', () => store.retry());
    // The page comes first; what is counted in the status bar can wait for it.
    void app.restored.then(() => store.start());
  }
};

/** The place of the list in the side bar; the list itself is loaded when it is first shown. */
class SideBar extends Panel {
  constructor(private readonly context: IContext) {
    super();
    this.id = 'paijupyter-jobs';
    this.title.icon = jobsIcon;
    this.title.caption = context.trans.__('Jobs');
    this.addClass('jp-PaiSide');
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', context.trans.__('Jobs'));
  }

  get selected(): string | null {
    return this._list?.selected ?? null;
  }

  protected onAfterShow(): void {
    void this._load();
  }

  protected onAfterAttach(): void {
    if (this.isVisible) {
      void this._load();
    }
  }

  protected onActivateRequest(): void {
    void this._load().then(list => list.activate());
  }

  private async _load(): Promise<Widget> {
    this._loading ??= import('./sidebar').then(({ JobList: List }) => {
      this._list = new List(this.context);
      this.addWidget(this._list);
      return this._list;
    });
    return this._loading;
  }

  private _list: JobList | null = null;
  private _loading: Promise<JobList> | null = null;
}

function readSettings(registry: ISettingRegistry | null, context: IContext): void {
  registry
    ?.load(PLUGIN)
    .then(loaded => {
      const read = (): void => {
        context.settings.notifications = loaded.get('notifications').composite as boolean;
        context.settings.wrapLines = loaded.get('wrapLines').composite as boolean;
        context.settings.tailLines = loaded.get('tailLines').composite as number;
      };
      read();
      loaded.changed.connect(read);
    })
    .catch(error => console.warn('paijupyter: settings cannot be read', error));
}

export default plugin;
