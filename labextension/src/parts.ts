/**
 * All that stands behind the names of the plugin, with its styles.
 *
 * Loaded when something of ours is first used, and after JupyterLab's start at the latest, for the count in the status
 * bar and the news of jobs that end. What draws cards, logs, forms and the list is loaded by itself, with the first.
 */

import type { IRouter, JupyterFrontEnd } from '@jupyterlab/application';
import type { IEditorServices } from '@jupyterlab/codeeditor';
import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import type { ISettingRegistry } from '@jupyterlab/settingregistry';
import type { IStatusBar } from '@jupyterlab/statusbar';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { LabIcon } from '@jupyterlab/ui-components';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';
import type { Widget } from '@lumino/widgets';

import '../style/index.js';
import { Actions, actions } from './actions';
import { Api } from './api';
import type { Drawn } from './celloutput';
import { IContext } from './context';
import { openLink } from './deeplinks';
import { Forms, FormPages } from './formpages';
import { OPEN_LINK, PLUGIN } from './ids';
import { notifyOfEnds } from './notify';
import { JobPages, LogPages, Pages } from './pages';
import { JobRenderer } from './renderer';
import type { JobList } from './sidebar';
import { JobCount } from './status';
import { JobStore } from './store';

/** What the plugin has from JupyterLab, and what it has put there. */
export interface IPlaces {
  app: JupyterFrontEnd;
  rendermime: IRenderMimeRegistry;
  trans: TranslationBundle;
  settings: ISettingRegistry | null;
  statusBar: IStatusBar | null;
  editors: IEditorServices | null;
  router: IRouter | null;
  icon: LabIcon;
  pages: { logs: LogPages; jobs: JobPages; forms: FormPages };
  side: Widget;
}

export class Parts {
  constructor(private readonly places: IPlaces) {
    const { app, trans, settings, statusBar, editors, router, icon, pages, side } = places;
    const api = new Api(app.serviceManager.serverSettings);
    this._context = {
      api,
      store: new JobStore(api),
      trans,
      commands: app.commands,
      settings: { notifications: true, wrapLines: false, tailLines: 10_000 },
      inView: new Set()
    };
    const context = this._context;
    readSettings(settings, context);
    this._forms = new Forms(app, context, icon, editors, pages.forms);
    const stoppedHere = new Set<string>();
    const open = {
      pages: new Pages(app, context, icon, pages.logs, pages.jobs),
      forms: this._forms,
      showList: () => app.shell.activateById(side.id),
      selected: () => this._list?.selected ?? null
    };
    this._actions = actions(app, context, open, stoppedHere);
    if (router) {
      this._actions[OPEN_LINK] = () => openLink(app, router);
    }
    notifyOfEnds(context, () => side.isVisible, stoppedHere);
    statusBar?.registerStatusItem(PLUGIN, { item: new JobCount(context), align: 'left', rank: 110 });
    document.addEventListener('visibilitychange', () => context.store.retry());
    void app.restored.then(() => context.store.start());
  }

  /** Do what a command stands for. */
  run(command: string, args: ReadonlyPartialJSONObject): unknown {
    return this._actions[command](args);
  }

  /** The list of jobs; there is one. */
  get list(): Promise<Widget> {
    return import('./sidebar').then(({ JobList: List }) => (this._list ??= new List(this._context)));
  }

  jobOutput(): Drawn {
    return new JobRenderer(this._context, this.places.rendermime);
  }

  formOutput(): Drawn {
    return this._forms.output();
  }

  private readonly _context: IContext;
  private readonly _forms: Forms;
  private readonly _actions: Actions;
  private _list: JobList | null = null;
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
