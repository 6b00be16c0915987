/** All jobs, of all notebooks and profiles, live. */

import type { TranslationBundle } from '@jupyterlab/translation';
import { Message } from '@lumino/messaging';
import { Widget } from '@lumino/widgets';

import { drawConnection } from './connection';
import { CommandIDs, errorText, IContext } from './context';
import { h, setAttribute, setText } from './dom';
import { byDay, Day, entries, Entry, IGroup, isGroup, matches } from './groups';
import { deleteAll, ManyBar, sorted, stopAll, withoutMembers } from './many';
import { Selection } from './selection';
import { drawRow, IRowParts, lineOf, makeRow } from './siderows';
import { isFinal } from './words';

const TICK_MILLISECONDS = 1000;

export class JobList extends Widget {
  constructor(private readonly context: IContext) {
    super();
    this._trans = context.trans;
    this._many = new ManyBar(context.trans, {
      stop: chosen => void this._stop(chosen.map(each => each.id)),
      remove: chosen => void this._delete(chosen)
    });
    this.addClass('jp-PaiJobs');
    this._build();
    context.store.changed.connect(this._later, this);
    context.store.groupChanged.connect(this._later, this);
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
      store.groupChanged.disconnect(this._later, this);
      store.listed.disconnect(this._later, this);
      store.connectionChanged.disconnect(this._later, this);
      super.dispose();
    }
  }

  /** Id of the job that is selected. */
  get selected(): string | null {
    return this.context.store.get(this._selected ?? '') ? this._selected : null;
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
    setAttribute(this._list, 'role', 'treegrid');
    setAttribute(this._list, 'aria-multiselectable', 'true');
    setAttribute(this._list, 'aria-label', trans.__('Jobs'));
    this._list.addEventListener('keydown', event => this._onKey(event));
    this._list.addEventListener('mouseleave', () => this._draw());
    this.node.append(
      h('div', { class: 'jp-PaiJobs-head' }, h('h2', {}, trans.__('Jobs')), this._connection),
      this._filter,
      this._said,
      this._many.node,
      this._list,
      this._more,
      h(
        'div',
        { class: 'jp-PaiJobs-keys' },
        trans.__('Enter open · l log · c clone · s stop · n notebook · Delete delete · Space, Shift choose several')
      )
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
    for (const [id, parts] of this._rows) {
      const entry = this._entry(id);
      if (entry && !isFinal(entry.state)) {
        setText(parts.line, lineOf(entry, this.context));
      }
    }
  }

  private _draw(): void {
    const { store, api } = this.context;
    drawConnection(this._connection, this.context);
    const filter = this._filter.value.trim();
    const found = entries(store.jobs(), store.groups()).filter(each => !filter || this._matches(each, filter));
    const known = new Set(this._shown.map(each => each.id));
    if (this._list.matches(':hover') && found.some(each => !known.has(each.id)) && this._shown.length) {
      // Nothing moves below the pointer: what is new comes when it has gone.
      this._shown = this._shown.flatMap(each => this._entry(each.id) ?? []);
      this._shown.forEach(each => this._row(each, 1));
      return;
    }
    this._shown = found;
    const focused = document.activeElement?.closest<HTMLElement>('.jp-PaiJobs-row')?.dataset.id;
    const drawn = new Set<string>();
    const groups = byDay(found, api.now());
    this._list.replaceChildren(...groups.map(group => this._group(group, filter !== '', drawn)));
    this._forget(drawn);
    if (focused && this._rows.has(focused) && document.activeElement === document.body) {
      this._rows.get(focused)?.node.focus();
    }
    this._more.hidden = !store.hasMore;
    const empty = filter ? this._trans.__('No job matches.') : this._trans.__('No jobs yet.');
    setText(this._said, found.length || store.connection !== 'live' ? '' : empty);
    this._rove();
    this._drawMany();
  }

  private _entry(id: string): Entry | undefined {
    return this.context.store.get(id) ?? this.context.store.group(id);
  }

  /** A group is shown if it or one of the jobs known of it matches. */
  private _matches(entry: Entry, filter: string): boolean {
    return (
      matches(entry, filter) ||
      (isGroup(entry) && this.context.store.members(entry.id).some(job => matches(job, filter)))
    );
  }

  private _group(group: IGroup, isOpen: boolean, drawn: Set<string>): HTMLElement {
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
    const rows = open ? group.jobs.flatMap(entry => this._rowsOf(entry, drawn)) : [];
    return h(
      'div',
      { 'data-day': group.day, role: 'rowgroup' },
      h('div', { role: 'row' }, h('div', { role: 'gridcell' }, head)),
      ...rows
    );
  }

  /** The row of a job; of an open group also those of its jobs. */
  private _rowsOf(entry: Entry, drawn: Set<string>): HTMLElement[] {
    const { store } = this.context;
    drawn.add(entry.id);
    const rows = [this._row(entry, 1).node];
    if (!isGroup(entry) || !this._opened.has(entry.id)) {
      return rows;
    }
    for (const job of store.members(entry.id)) {
      drawn.add(job.id);
      rows.push(this._row(job, 2).node);
    }
    if (store.hasMoreOf(entry.id)) {
      const more = h('button', { type: 'button', class: 'jp-Pai-link' }, this._trans.__('Show more'));
      more.addEventListener('click', () => void this._readGroup(entry.id));
      rows.push(h('div', { role: 'row', class: 'jp-PaiJobs-rest' }, h('div', { role: 'gridcell' }, more)));
    }
    return rows;
  }

  private _row(entry: Entry, level: number): IRowParts {
    const parts = this._rows.get(entry.id) ?? this._makeRow(entry);
    drawRow(parts, entry, this.context, this._opened.has(entry.id), level);
    return parts;
  }

  private _makeRow(entry: Entry): IRowParts {
    const made = makeRow(entry, this.context, {
      run: (command, id) => this._run(command, id),
      stop: id => void this._stop([id]),
      focused: id => this._select(id),
      pressed: (id, event) => this._press(id, event),
      opened: id => this._open(id)
    });
    this._rows.set(entry.id, made);
    return made;
  }

  /** Open a job's page, or fold a group out and in. */
  private _open(id: string, open?: boolean): void {
    if (!this.context.store.group(id)) {
      this._run(CommandIDs.openJob, id);
      return;
    }
    const isOpen = this._opened.has(id);
    if (open === isOpen) {
      return;
    }
    if (isOpen) {
      this._opened.delete(id);
      this._draw();
    } else {
      this._opened.add(id);
      void this._readGroup(id);
    }
  }

  private async _readGroup(id: string): Promise<void> {
    try {
      await this.context.store.openGroup(id);
    } catch (error) {
      setText(this._said, errorText(error));
    }
    this._draw();
    this._rows.get(id)?.node.focus();
  }

  private _press(id: string, event: MouseEvent): void {
    if (event.shiftKey) {
      this._selection.range(id, this._ids());
    } else if (event.ctrlKey || event.metaKey) {
      this._selection.toggle(id);
    } else {
      this._selection.only(id);
    }
    this._rove();
    this._drawMany();
  }

  private _drawMany(): void {
    this._many.draw(this._selection.chosen.length > 1 ? this._chosen() : []);
  }

  private _chosen(): Entry[] {
    return withoutMembers(this._selection.chosen.flatMap(id => this._entry(id) ?? []));
  }

  private _ids(): string[] {
    return [...this._list.querySelectorAll<HTMLElement>('.jp-PaiJobs-row')].map(row => row.dataset.id as string);
  }

  private async _stop(ids: string[]): Promise<void> {
    const meant = ids.flatMap(id => this._entry(id) ?? []);
    if (meant.length === 1 && !isGroup(meant[0])) {
      this._run(CommandIDs.stop, meant[0].id);
    } else {
      setText(this._said, await stopAll(this.context, meant));
    }
  }

  private async _delete(meant: Entry[]): Promise<void> {
    if (meant.length === 1 && !isGroup(meant[0])) {
      this._run(CommandIDs.deleteJob, meant[0].id);
    } else if (meant.length) {
      const said = await deleteAll(this.context, meant);
      this._selection.clear();
      this._draw();
      setText(this._said, said);
    }
  }

  private _forget(kept: Set<string>): void {
    for (const id of [...this._rows.keys()]) {
      if (!kept.has(id)) {
        this._rows.delete(id);
      }
    }
    this._selection.keep(kept);
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
      setAttribute(row, 'aria-selected', String(this._selection.has(row.dataset.id as string)));
    });
  }

  /** Go to another row; `how`: choose it alone, all up to it, or leave the choice as it is. */
  private _move(by: number, how: 'only' | 'range' | 'keep' = 'only'): void {
    const rows = [...this._list.querySelectorAll<HTMLElement>('.jp-PaiJobs-row')];
    const at = rows.findIndex(row => row === document.activeElement);
    if (at === 0 && by < 0 && how === 'only') {
      this._filter.focus();
      return;
    }
    const row = rows[Math.min(rows.length - 1, Math.max(0, at + by))];
    const id = row?.dataset.id;
    if (id && how === 'range') {
      this._selection.range(id, this._ids());
    } else if (id && how === 'only') {
      this._selection.only(id);
    }
    row?.focus();
    this._drawMany();
  }

  private _onKey(event: KeyboardEvent): void {
    const row = (event.target as Element).closest<HTMLElement>('.jp-PaiJobs-row');
    const id = row?.dataset.id;
    const control = event.ctrlKey || event.metaKey;
    if (!id || row !== event.target || event.altKey) {
      return;
    }
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      this._move(event.key === 'ArrowDown' ? 1 : -1, event.shiftKey ? 'range' : control ? 'keep' : 'only');
    } else if (control && event.key === 'a') {
      this._selection.all(this._ids());
    } else if (event.key === ' ') {
      this._selection.toggle(id);
    } else if (control || !this._command(event.key, id)) {
      return;
    }
    this._rove();
    this._drawMany();
    event.preventDefault();
    event.stopPropagation();
  }

  /** Do what a key means; say whether it means anything here. */
  private _command(key: string, id: string): boolean {
    const chosen = this._selection.chosen.length > 1 ? this._chosen() : [this._entry(id) as Entry];
    const isOne = !this.context.store.group(id);
    const commands: Record<string, string> = {
      l: CommandIDs.openLog,
      n: CommandIDs.openNotebook
    };
    if (key === 'Enter') {
      this._open(id);
    } else if (key === 'ArrowRight' || key === 'ArrowLeft') {
      if (!isOne) {
        this._open(id, key === 'ArrowRight');
      }
    } else if (key === 's') {
      void this._stop(sorted(chosen).stoppable.map(each => each.id));
    } else if (key === 'Delete') {
      void this._delete(chosen.length > 1 ? sorted(chosen).deletable : chosen);
    } else if (key === 'Escape' && this._selection.chosen.length) {
      this._selection.clear();
    } else if (key === 'c' && isOne) {
      void this.context.commands
        .execute(CommandIDs.form, { job: id })
        .catch(error => setText(this._said, errorText(error)));
    } else if (commands[key] && isOne) {
      this._run(commands[key], id);
    } else {
      return false;
    }
    return true;
  }

  private _run(command: string, id: string): void {
    setText(this._said, '');
    this.context.commands.execute(command, { id }).catch(error => setText(this._said, errorText(error)));
  }

  private readonly _trans: TranslationBundle;
  private readonly _rows = new Map<string, IRowParts>();
  private readonly _folded = new Set<Day>(['earlier']);
  private readonly _opened = new Set<string>();
  private readonly _selection = new Selection();
  private _shown: Entry[] = [];
  private _selected: string | null = null;
  private _frame = 0;
  private _ticker = 0;
  private readonly _filter = h('input', { type: 'search', class: 'jp-PaiJobs-filter', spellcheck: 'false' });
  private readonly _connection = h('button', { type: 'button', class: 'jp-PaiJobs-connection', 'aria-live': 'polite' });
  private readonly _said = h('div', { class: 'jp-PaiJobs-said', role: 'status' });
  private readonly _many: ManyBar;
  private readonly _list = h('div', { class: 'jp-PaiJobs-list' });
  private readonly _more = h('button', { type: 'button', class: 'jp-Pai-button', hidden: true });
}
