/** Pages of the main area: logs and single jobs. They come back after a reload. */

import type { ILayoutRestorer, JupyterFrontEnd } from '@jupyterlab/application';
import { MainAreaWidget, WidgetTracker } from '@jupyterlab/apputils';
import type { LabIcon } from '@jupyterlab/ui-components';
import { Widget } from '@lumino/widgets';

import { goToPage, showPage } from './area';
import { CommandIDs, errorText, IContext } from './context';
import { lineText } from './linelinks';
import type { ILogOptions, LogView } from './logview';

interface IPage {
  id: string;
  task: string | null;
  /** The line of a log that somebody went to, as text. */
  line?: string | null;
}

export class Pages {
  constructor(
    private readonly app: JupyterFrontEnd,
    private readonly context: IContext,
    private readonly icon: LabIcon,
    restorer: ILayoutRestorer | null
  ) {
    void restorer?.restore(this._logs, {
      command: CommandIDs.openLog,
      args: page => {
        const { id, task, line } = this._shown.get(page) as IPage;
        return { id, task, line: line ?? null, page: page.id };
      },
      name: page => page.id
    });
    void restorer?.restore(this._jobs, {
      command: CommandIDs.openJob,
      args: page => ({ id: (this._shown.get(page) as IPage).id }),
      name: page => page.id
    });
  }

  /**
   * Open a log, or go to it if it is open.
   *
   * @param pageId - what the page was called before a reload: the layout knows it by that name.
   */
  async openLog(options: ILogOptions, pageId = `paijupyter-log-${options.id}-${options.task || 'all'}`): Promise<void> {
    const open = this._logs.find(page => {
      const shown = this._shown.get(page);
      return shown?.id === options.id && (shown.task === options.task || options.task === '');
    });
    if (open) {
      goToPage(this.app, open);
      if (options.line) {
        (open.content as LogView).goTo(options.line);
      }
      return;
    }
    const { LogView: View } = await import('./logview');
    const view: LogView = new View(this.context, options);
    const page = this._page(view, pageId);
    const title = (): void => {
      const name = this.context.store.get(options.id)?.name ?? this.context.trans.__('Log');
      page.title.label = `${name} · ${view.task || this.context.trans.__('log')}`;
      this._shown.set(page, { id: options.id, task: view.task, line: view.line && lineText(view.line) });
    };
    view.onOptions = () => {
      title();
      void this._logs.save(page);
    };
    title();
    void this.context.store.want(options.id).then(title, () => undefined);
    void this._logs.add(page);
    showPage(this.app, page);
  }

  /** Open a job's card as a page, or go to it if it is open. */
  async openJob(id: string): Promise<void> {
    const open = this._jobs.find(page => this._shown.get(page)?.id === id);
    if (open) {
      goToPage(this.app, open);
      return;
    }
    const { JobCard } = await import('./card');
    const card = new JobCard(this.context, id);
    const holder = new Widget();
    holder.addClass('jp-PaiPage');
    const page = this._page(holder, `paijupyter-job-${id}`);
    this._shown.set(page, { id, task: null });
    holder.disposed.connect(() => card.dispose());
    void this._jobs.add(page);
    showPage(this.app, page);
    Widget.attach(card, holder.node);
    try {
      page.title.label = (await this.context.store.want(id)).name;
    } catch (error) {
      holder.node.textContent = errorText(error);
      page.title.label = this.context.trans.__('Job');
    }
  }

  private _page(content: Widget, id: string): MainAreaWidget {
    const page = new MainAreaWidget({ content });
    page.id = id;
    page.title.icon = this.icon;
    page.title.closable = true;
    page.toolbar.hide();
    return page;
  }

  private readonly _shown = new WeakMap<MainAreaWidget, IPage>();
  private readonly _logs = new WidgetTracker<MainAreaWidget>({ namespace: 'paijupyter-logs' });
  private readonly _jobs = new WidgetTracker<MainAreaWidget>({ namespace: 'paijupyter-jobs' });
}
