/** Pages of the main area: logs and single jobs. They come back after a reload. */

import type { JupyterFrontEnd } from '@jupyterlab/application';
import { MainAreaWidget } from '@jupyterlab/apputils';
import type { LabIcon } from '@jupyterlab/ui-components';
import { Widget } from '@lumino/widgets';

import { goToPage, showPage } from './area';
import { errorText, IContext } from './context';
import type { KeptPages } from './kept';
import { lineText } from './linelinks';
import type { ILogOptions, LogView } from './logview';

interface ILogPage {
  id: string;
  task: string;
  /** The line that somebody went to, as text. */
  line: string | null;
}

export type LogPages = KeptPages<MainAreaWidget<LogView>, ILogPage>;
export type JobPages = KeptPages<MainAreaWidget, { id: string }>;

export class Pages {
  constructor(
    private readonly app: JupyterFrontEnd,
    private readonly context: IContext,
    private readonly icon: LabIcon,
    private readonly logs: LogPages,
    private readonly jobs: JobPages
  ) {}

  /**
   * Open a log, or go to it if it is open.
   *
   * @param pageId - what the page was called before a reload: the layout knows it by that name.
   */
  async openLog(options: ILogOptions, pageId = `paijupyter-log-${options.id}-${options.task || 'all'}`): Promise<void> {
    const open = this.logs.find(({ id, task }) => id === options.id && (task === options.task || options.task === ''));
    if (open) {
      goToPage(this.app, open);
      if (options.line) {
        open.content.goTo(options.line);
      }
      return;
    }
    const { LogView: View } = await import('./logview');
    const view: LogView = new View(this.context, options);
    const page = this._page(view, pageId);
    const title = (): void => {
      const name = this.context.store.get(options.id)?.name ?? this.context.trans.__('Log');
      page.title.label = `${name} · ${view.task || this.context.trans.__('log')}`;
    };
    const shown = (): ILogPage => ({ id: options.id, task: view.task, line: view.line && lineText(view.line) });
    view.onOptions = () => {
      title();
      this.logs.keep(page, shown());
    };
    title();
    void this.context.store.want(options.id).then(title, () => undefined);
    this.logs.add(page, shown());
    showPage(this.app, page);
  }

  /** Open a job's card as a page, or go to it if it is open. */
  async openJob(id: string): Promise<void> {
    const open = this.jobs.find(shown => shown.id === id);
    if (open) {
      goToPage(this.app, open);
      return;
    }
    const { JobCard } = await import('./card');
    const card = new JobCard(this.context, id);
    const holder = new Widget();
    holder.addClass('jp-PaiPage');
    const page = this._page(holder, `paijupyter-job-${id}`);
    holder.disposed.connect(() => card.dispose());
    this.jobs.add(page, { id });
    showPage(this.app, page);
    Widget.attach(card, holder.node);
    try {
      page.title.label = (await this.context.store.want(id)).name;
    } catch (error) {
      holder.node.textContent = errorText(error);
      page.title.label = this.context.trans.__('Job');
    }
  }

  private _page<W extends Widget>(content: W, id: string): MainAreaWidget<W> {
    const page = new MainAreaWidget({ content });
    page.id = id;
    page.title.icon = this.icon;
    page.title.closable = true;
    page.toolbar.hide();
    return page;
  }
}
