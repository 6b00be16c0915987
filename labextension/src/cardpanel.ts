/** What opens below a card: its tasks by page, or its outputs. */

import { CardOutputs, outputsKey } from './cardoutputs';
import { changesNodes } from './changes';
import { errorText, IContext } from './context';
import { Button, h, rich } from './dom';
import { CommandIDs } from './ids';
import { IJob, IPort, ITask } from './model';
import { duration, ICONS, moment, size, stateWord } from './words';

const PAGE = 20;
const REFRESH_MILLISECONDS = 1000;

export type PanelKind = 'tasks' | 'outputs' | 'ports' | 'changes';

export class CardPanel {
  readonly node = h('div', { class: 'jp-PaiCard-panel', hidden: true });

  constructor(
    private readonly context: IContext,
    private readonly jobId: string,
    private readonly toggled: () => void
  ) {
    this._files = new CardOutputs(context, jobId);
  }

  /** What it shows now. */
  get shown(): PanelKind | null {
    return this._shown;
  }

  /** The run before this job, as far as this page knows it. */
  get previous(): IJob | undefined {
    const job = this.context.store.get(this.jobId);
    return job && this.context.store.before(job);
  }

  toggle(kind: PanelKind): void {
    this._shown = this._shown === kind ? null : kind;
    this.node.hidden = this._shown === null;
    this.node.replaceChildren();
    this._offset = 0;
    this.toggled();
    void this._fill();
  }

  /** The job has changed: show what is true now, at most once a second. */
  refresh(): void {
    const isOld =
      this._shown === 'tasks' ||
      (this._shown === 'outputs' && this._outputsKey !== outputsKey(this.context.store.get(this.jobId)));
    if (isOld && !this._timer) {
      this._timer = window.setTimeout(() => {
        this._timer = 0;
        void this._fill();
      }, REFRESH_MILLISECONDS);
    }
  }

  private async _fill(): Promise<void> {
    const kind = this._shown;
    try {
      const content = kind === null ? [] : await this._content(kind);
      if (kind === this._shown && !this.node.contains(document.activeElement)) {
        this.node.replaceChildren(...content);
      } else if (kind === this._shown) {
        const label = document.activeElement?.getAttribute('aria-label');
        this.node.replaceChildren(...content);
        const again = [...this.node.querySelectorAll<HTMLElement>('button,a')];
        again.find(element => element.getAttribute('aria-label') === label)?.focus();
      }
    } catch (error) {
      this.node.replaceChildren(...rich(errorText(error)));
    }
  }

  private _content(kind: PanelKind): Promise<HTMLElement[]> {
    const contents: Record<PanelKind, () => Promise<HTMLElement[]>> = {
      tasks: () => this._tasks(),
      outputs: () => this._outputs(),
      ports: () => this._ports(),
      changes: () => this._changes()
    };
    return contents[kind]();
  }

  private async _ports(): Promise<HTMLElement[]> {
    const { trans, api } = this.context;
    const ports = await api.ports(this.jobId);
    const items = ports.map(port =>
      h(
        'li',
        {},
        // A browser does not speak ssh.
        port.label === 'ssh'
          ? `${port.task} ${port.label}`
          : h(
              'a',
              {
                href: api.portUrl(port),
                target: '_blank',
                rel: 'noopener',
                title: isBoard(port)
                  ? trans.__('Open TensorBoard of %1 in a tab', port.task)
                  : trans.__('Open port %1 of %2 in a tab', port.label, port.task)
              },
              isBoard(port) ? `TensorBoard ${port.task}` : `${port.task} ${port.label}`
            ),
        h('span', { class: 'jp-PaiCard-size' }, String(port.port))
      )
    );
    return items.length
      ? [h('ul', { class: 'jp-PaiCard-files' }, ...items)]
      : [h('div', {}, trans.__('No task serves now'))];
  }

  private async _changes(): Promise<HTMLElement[]> {
    const { previous } = this;
    return previous
      ? changesNodes(await this.context.api.diff(previous.id, this.jobId), previous, this.context.trans)
      : [];
  }

  private async _tasks(): Promise<HTMLElement[]> {
    const { trans, api } = this.context;
    const { tasks, total } = await api.tasks(this.jobId, this._offset, PAGE);
    const heads = [trans.__('task'), trans.__('state'), trans.__('time'), trans.__('log'), ''];
    const table = h(
      'table',
      { class: 'jp-PaiCard-table' },
      h('thead', {}, h('tr', {}, ...heads.map(head => h('th', { scope: 'col' }, head)))),
      h('tbody', {}, ...tasks.map(task => this._task(task)))
    );
    return total > PAGE ? [table, this._pager(total)] : [table];
  }

  private _task(task: ITask): HTMLElement {
    const { trans, api } = this.context;
    const start = moment(task.startedAt);
    const time = start === null ? '' : duration(((moment(task.endedAt) ?? api.now()) - start) / 1000);
    const ending = task.signal
      ? trans.__('signal %1', task.signal)
      : task.code
        ? trans.__('exit code %1', task.code)
        : task.message || (task.state === 'waiting' ? task.reason : '');
    const open = h('button', { type: 'button', class: 'jp-Pai-link', 'aria-label': trans.__('Logs of %1', task.key) });
    open.textContent = trans.__('Logs');
    open.addEventListener(
      'click',
      () => void this.context.commands.execute(CommandIDs.openLog, { id: this.jobId, task: task.key })
    );
    return h(
      'tr',
      { 'data-state': task.state },
      h('td', {}, h('code', {}, task.key)),
      h(
        'td',
        {},
        h('span', { class: 'jp-PaiState-icon', 'aria-hidden': 'true' }, ICONS[task.state]),
        ` ${stateWord(task.state, trans)}`,
        ending && task.state !== 'succeeded' ? ` · ${ending}` : ''
      ),
      h('td', {}, time),
      h('td', {}, size(task.logSize)),
      h('td', {}, open)
    );
  }

  private _pager(total: number): HTMLElement {
    const { trans } = this.context;
    const go = (by: number) => (): void => {
      this._offset += by;
      void this._fill();
    };
    const back = new Button('‹', trans.__('Earlier tasks'), go(-PAGE));
    const on = new Button('›', trans.__('More tasks'), go(PAGE));
    back.node.setAttribute('aria-label', trans.__('Earlier tasks'));
    on.node.setAttribute('aria-label', trans.__('More tasks'));
    back.reason = this._offset === 0 ? trans.__('These are the first') : '';
    on.reason = this._offset + PAGE >= total ? trans.__('These are the last') : '';
    const last = Math.min(total, this._offset + PAGE);
    const where = trans.__('%1–%2 of %3', this._offset + 1, last, total);
    return h('div', { class: 'jp-PaiCard-pager' }, back.node, h('span', {}, where), on.node);
  }

  private async _outputs(): Promise<HTMLElement[]> {
    this._outputsKey = outputsKey(this.context.store.get(this.jobId));
    await this._files.read();
    return [this._files.node];
  }

  private readonly _files: CardOutputs;
  private _outputsKey = '';
  private _shown: PanelKind | null = null;
  private _offset = 0;
  private _timer = 0;
}

/** Whether a port is that of a TensorBoard: its label says so. */
function isBoard(port: IPort): boolean {
  return port.label.toLowerCase().startsWith('tensorboard');
}
