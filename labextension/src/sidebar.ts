/** All jobs, of all notebooks and profiles, live. */

import type { TranslationBundle } from '@jupyterlab/translation';
import { Message } from '@lumino/messaging';
import { Widget } from '@lumino/widgets';

import { CommandIDs, errorText, IContext } from './context';
import { h, setAttribute, setText } from './dom';
import { byDay, Day, IGroup, matches } from './groups';
import { IJob } from './model';
import { ICONS, isFinal, stateLine, stateWord } from './words';

const TICK_MILLISECONDS = 1000;

/** What a row's element carries. */
interface IRowParts {
  node: HTMLElement;
  icon: HTMLElement;
  name: HTMLElement;
  profile: HTMLElement;
  line: HTMLElement;
  stop: HTMLElement;
  notebook: HTMLElement;
}

export class JobList extends Widget {
  constructor(private readonly context: IContext) {
    super();
    this._trans = context.trans;
    this.addClass('jp-PaiJobs');
    this._build();
    context.store.changed.connect(this._later, this);
    context.store.listed.connect(this._later, this);
    context.store.connectionChanged.connect(this._later, this);
    context.store.start();
    this._later();
  }

  dispose(): void {
    if (!this.isDisposed) {
      clearInterval(this._ticker);
      const { store } = this.context;
      store.changed.disconnect(this._later, this);
      store.listed.disconnect(this._later, this);
      store.connectionChanged.disconnect(this._later, this);
      super.dispose();
    }
  }

  /** Id of the job that is selected. */
  get selected(): string | null {
    return this._selected;
  }

  protected onAfterShow(message: Message): void {
    super.onAfterShow(message);
    this._see();
  }

  protected onAfterAttach(message: Message): void {
    super.onAfterAttach(message);
    this._see();
  }

  protected onBeforeHide(message: Message): void {
    clearInterval(this._ticker);
    super.onBeforeHide(message);
  }

  protected onActivateRequest(): void {
    (this._rows.get(this._selected ?? '')?.node ?? this._filter).focus();
  }

  private _see(): void {
    clearInterval(this._ticker);
    if (this.isVisible) {
      this._later();
      this._ticker = window.setInterval(() => this._tick(), TICK_MILLISECONDS);
    }
  }

  private _build(): void {
    const trans = this._trans;
    this._filter.placeholder = trans.__('Filter');
    this._filter.setAttribute('aria-label', trans.__('Filter jobs'));
    this._filter.addEventListener('input', () => this._draw());
    this._filter.addEventListener('keydown', event => {
      if (event.key === 'ArrowDown') {
        event.preventDefault();
        this._move(1);
      }
    });
    this._more.textContent = trans.__('Show earlier jobs');
    this._more.addEventListener('click', () => {
      this.context.store.more().catch(error => setText(this._said, errorText(error)));
    });
    this._connection.addEventListener('click', () => void this.context.commands.execute(CommandIDs.reconnect));
    setAttribute(this._list, 'role', 'list');
    setAttribute(this._list, 'aria-label', trans.__('Jobs'));
    this._list.addEventListener('keydown', event => this._onKey(event));
    this._list.addEventListener('mouseleave', () => this._draw());
    this.node.append(
      h('div', { class: 'jp-PaiJobs-head' }, h('h2', {}, trans.__('Jobs')), this._connection),
      this._filter,
      this._said,
      this._list,
      this._more,
      h('div', { class: 'jp-PaiJobs-keys' }, trans.__('Enter open · l log · s stop · n notebook · Delete delete'))
    );
  }

  private _later(): void {
    if (!this._frame && this.isVisible) {
      this._frame = requestAnimationFrame(() => {
        this._frame = 0;
        this._draw();
      });
    }
  }

  private _tick(): void {
    for (const job of this._shown) {
      if (!isFinal(job.state)) {
        const parts = this._rows.get(job.id);
        if (parts) {
          setText(parts.line, stateLine(job, this.context.api.now(), this._trans));
        }
      }
    }
  }

  private _draw(): void {
    const { store, api } = this.context;
    this._drawConnection();
    const filter = this._filter.value.trim();
    const jobs = store.jobs().filter(job => !filter || matches(job, filter));
    const known = new Set(this._shown.map(job => job.id));
    if (this._list.matches(':hover') && jobs.some(job => !known.has(job.id)) && this._shown.length) {
      // Nothing moves below the pointer: what is new comes when it has gone.
      this._shown = this._shown.flatMap(job => store.get(job.id) ?? []);
      this._shown.forEach(job => this._row(job));
      return;
    }
    this._shown = jobs;
    const focused = document.activeElement?.closest<HTMLElement>('.jp-PaiJobs-row')?.dataset.id;
    const groups = byDay(jobs, api.now());
    this._list.replaceChildren(...groups.map(group => this._group(group, filter !== '')));
    this._forget(new Set(jobs.map(job => job.id)));
    if (focused && this._rows.has(focused) && document.activeElement === document.body) {
      this._rows.get(focused)?.node.focus();
    }
    this._more.hidden = !store.hasMore;
    const empty = filter ? this._trans.__('No job matches.') : this._trans.__('No jobs yet.');
    setText(this._said, jobs.length || store.connection !== 'live' ? '' : empty);
    this._rove();
  }

  private _drawConnection(): void {
    const trans = this._trans;
    const { connection } = this.context.store;
    const said = {
      connecting: trans.__('connecting'),
      live: trans.__('live'),
      lost: trans.__('not connected'),
      missing: trans.__('no job server')
    };
    const titles = {
      connecting: '',
      live: trans.__('Changes are shown as they happen'),
      lost: trans.__('The job server cannot be reached; press to try now'),
      missing: trans.__('This Jupyter server has no job server: install paijupyter there and enable its extension')
    };
    setText(this._connection, said[connection]);
    setAttribute(this._connection, 'title', titles[connection]);
    setAttribute(this._connection, 'data-connection', connection);
  }

  private _group(group: IGroup, isOpen: boolean): HTMLElement {
    const names: Record<Day, string> = {
      today: this._trans.__('today'),
      yesterday: this._trans.__('yesterday'),
      week: this._trans.__('earlier this week'),
      earlier: this._trans.__('earlier')
    };
    const open = isOpen || !this._folded.has(group.day);
    const head = h(
      'button',
      { type: 'button', class: 'jp-PaiJobs-day', 'aria-expanded': String(open) },
      h('span', { 'aria-hidden': 'true' }, open ? '▾' : '▸'),
      ` ${names[group.day]} (${group.jobs.length})`
    );
    head.addEventListener('click', () => {
      if (!this._folded.delete(group.day)) {
        this._folded.add(group.day);
      }
      this._draw();
      this._list.querySelector<HTMLElement>(`[data-day="${group.day}"] button`)?.focus();
    });
    const rows = open ? group.jobs.map(job => this._row(job).node) : [];
    return h('div', { 'data-day': group.day }, head, ...rows);
  }

  private _row(job: IJob): IRowParts {
    const trans = this._trans;
    const parts = this._rows.get(job.id) ?? this._makeRow(job);
    setAttribute(parts.node, 'data-state', job.state);
    setText(parts.icon, ICONS[job.state]);
    setText(parts.name, job.name);
    setText(parts.profile, job.profile);
    setText(parts.line, stateLine(job, this.context.api.now(), trans));
    setAttribute(parts.line, 'title', parts.line.textContent);
    const label = `${job.name}, ${stateWord(job.state, trans)}, ${job.profile}, ${parts.line.textContent}`;
    if (isFinal(job.state) || parts.node.getAttribute('data-said') !== job.state) {
      setAttribute(parts.node, 'aria-label', label);
      setAttribute(parts.node, 'data-said', job.state);
    }
    parts.stop.hidden = isFinal(job.state) || !job.mine;
    parts.notebook.hidden = !job.notebook;
    return parts;
  }

  private _makeRow(job: IJob): IRowParts {
    const trans = this._trans;
    const { id } = job;
    const button = (label: string, text: string, command: string): HTMLElement => {
      const made = h('button', { type: 'button', tabindex: -1, class: 'jp-Pai-link', 'aria-label': label }, text);
      made.title = label;
      made.addEventListener('click', event => {
        event.stopPropagation();
        this._run(command, id);
      });
      return made;
    };
    const parts = {
      icon: h('span', { class: 'jp-PaiState-icon', 'aria-hidden': 'true' }),
      name: h('span', { class: 'jp-PaiJobs-name' }),
      profile: h('span', { class: 'jp-PaiJobs-profile' }),
      line: h('span', { class: 'jp-PaiJobs-line' }),
      stop: button(trans.__('Stop %1', job.name), trans.__('Stop'), CommandIDs.stop),
      notebook: button(trans.__('Open the notebook of %1', job.name), trans.__('Notebook'), CommandIDs.openNotebook)
    };
    const actions = h(
      'span',
      { class: 'jp-PaiJobs-actions' },
      button(trans.__('Log of %1', job.name), trans.__('Logs'), CommandIDs.openLog),
      parts.notebook,
      parts.stop
    );
    const node = h(
      'div',
      { class: 'jp-PaiJobs-row', role: 'listitem', tabindex: -1, 'data-id': id },
      h('div', { class: 'jp-PaiJobs-first' }, parts.icon, parts.name, parts.profile),
      h('div', { class: 'jp-PaiJobs-second' }, parts.line, actions)
    );
    node.addEventListener('focus', () => this._select(id));
    node.addEventListener('click', () => {
      this._select(id);
      node.focus();
    });
    node.addEventListener('dblclick', () => this._run(CommandIDs.openJob, id));
    const made = { node, ...parts };
    this._rows.set(id, made);
    return made;
  }

  private _forget(kept: Set<string>): void {
    for (const id of [...this._rows.keys()]) {
      if (!kept.has(id)) {
        this._rows.delete(id);
      }
    }
  }

  private _select(id: string): void {
    this._selected = id;
    this._rove();
  }

  /** One row can be reached by Tab: the one selected, else the first. */
  private _rove(): void {
    const rows = [...this._list.querySelectorAll<HTMLElement>('.jp-PaiJobs-row')];
    const chosen = rows.find(row => row.dataset.id === this._selected) ?? rows[0];
    rows.forEach(row => {
      setAttribute(row, 'tabindex', row === chosen ? '0' : '-1');
      setAttribute(row, 'aria-current', row.dataset.id === this._selected ? 'true' : null);
    });
  }

  private _move(by: number): void {
    const rows = [...this._list.querySelectorAll<HTMLElement>('.jp-PaiJobs-row')];
    const at = rows.findIndex(row => row === document.activeElement);
    if (at === 0 && by < 0) {
      this._filter.focus();
    } else {
      rows[Math.min(rows.length - 1, Math.max(0, at + by))]?.focus();
    }
  }

  private _onKey(event: KeyboardEvent): void {
    const row = (event.target as Element).closest<HTMLElement>('.jp-PaiJobs-row');
    const id = row?.dataset.id;
    if (!id || row !== event.target || event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    const commands: Record<string, string> = {
      Enter: CommandIDs.openJob,
      l: CommandIDs.openLog,
      s: CommandIDs.stop,
      n: CommandIDs.openNotebook,
      Delete: CommandIDs.deleteJob
    };
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      this._move(event.key === 'ArrowDown' ? 1 : -1);
    } else if (commands[event.key]) {
      this._run(commands[event.key], id);
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  private _run(command: string, id: string): void {
    setText(this._said, '');
    this.context.commands.execute(command, { id }).catch(error => setText(this._said, errorText(error)));
  }

  private readonly _trans: TranslationBundle;
  private readonly _rows = new Map<string, IRowParts>();
  private readonly _folded = new Set<Day>(['earlier']);
  private _shown: IJob[] = [];
  private _selected: string | null = null;
  private _frame = 0;
  private _ticker = 0;
  private readonly _filter = h('input', { type: 'search', class: 'jp-PaiJobs-filter', spellcheck: 'false' });
  private readonly _connection = h('button', { type: 'button', class: 'jp-PaiJobs-connection', 'aria-live': 'polite' });
  private readonly _said = h('div', { class: 'jp-PaiJobs-said', role: 'status' });
  private readonly _list = h('div', { class: 'jp-PaiJobs-list' });
  private readonly _more = h('button', { type: 'button', class: 'jp-Pai-button', hidden: true });
}
