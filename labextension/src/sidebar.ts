/** All jobs, of all notebooks and profiles, live. */

import type { TranslationBundle } from '@jupyterlab/translation';
import { Message } from '@lumino/messaging';
import { Widget } from '@lumino/widgets';

import { drawConnection } from './connection';
import { errorText, IContext } from './context';
import { h, setAttribute, setText } from './dom';
import { EarlierJobs } from './earlier';
import { Day, entries, Entry, isGroup, matches } from './groups';
import { CommandIDs } from './ids';
import { LoginLines } from './loginentry';
import { deleteAll, ManyBar, sorted, stopAll, withoutMembers } from './many';
import { RowWindow } from './rowwindow';
import { Selection } from './selection';
import { heightsOf, held, linesOf, SideLine } from './sidelines';
import { SideRows } from './siderows';

const TICK_MILLISECONDS = 1000;
/** Rows that a key goes down. */
const STEPS: Record<string, number> = {
  ArrowDown: 1,
  ArrowUp: -1,
  PageDown: 10,
  PageUp: -10,
  End: Infinity,
  Home: -Infinity
};

export class JobList extends Widget {
  constructor(private readonly context: IContext) {
    super();
    this._trans = context.trans;
    this._many = new ManyBar(context.trans, {
      stop: chosen => void this._stop(chosen.map(each => each.id)),
      remove: chosen => void this._delete(chosen)
    });
    this.addClass('jp-PaiJobs');
    this._rows = new SideRows(context, {
      run: (command, id) => this._run(command, id),
      stop: id => void this._stop([id]),
      focused: id => this._select(id),
      pressed: (id, event) => this._press(id, event),
      opened: id => this._open(id),
      folded: day => this._fold(day),
      more: group => void this._readGroup(group)
    });
    this._earlier = new EarlierJobs(context.store, problem => setText(this._said, problem));
    this._window = new RowWindow<SideLine>(this._rows);
    this._logins = new LoginLines(context);
    this._build();
    context.store.changed.connect(this._later, this);
    context.store.groupChanged.connect(this._later, this);
    context.store.listed.connect(this._later, this);
    context.store.connectionChanged.connect(this._later, this);
    context.store.start();
    this._later();
  }

  dispose(): void {
    clearInterval(this._ticker);
    super.dispose();
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
    (this._window.reveal(this._selected ?? '') ?? this._filter).focus();
  }

  protected onResize(message: Widget.ResizeMessage): void {
    super.onResize(message);
    this._window.resize();
  }

  private _see(): void {
    clearInterval(this._ticker);
    if (this.isVisible) {
      void this._logins.read();
      this._later();
      this._ticker = window.setInterval(() => this._rows.tick(), TICK_MILLISECONDS);
    }
  }

  private _build(): void {
    const trans = this._trans;
    this._filter.placeholder = trans.__('Filter');
    this._filter.setAttribute('aria-label', trans.__('Filter jobs'));
    this._filter.addEventListener('input', () => {
      this._shown = [];
      this._draw();
      void this._earlier.all(() => !this.isDisposed && this._filter.value.trim() !== '').then(() => this._later());
    });
    this._filter.addEventListener('keydown', event => {
      if (event.key === 'ArrowDown') {
        event.preventDefault();
        this._move(1);
      }
    });
    this._more.textContent = trans.__('Show earlier jobs');
    this._more.addEventListener('click', () => void this._earlier.page());
    this._connection.addEventListener('click', () => void this.context.commands.execute(CommandIDs.reconnect));
    const list = this._window.node;
    list.classList.add('jp-PaiJobs-list');
    setAttribute(list, 'role', 'treegrid');
    setAttribute(list, 'aria-multiselectable', 'true');
    setAttribute(list, 'aria-label', trans.__('Jobs'));
    list.addEventListener('keydown', event => this._onKey(event));
    list.addEventListener('mouseleave', () => this._draw());
    list.addEventListener('scroll', () => {
      if (this._window.atEnd && this._window.lines[this._window.lines.length - 1]?.kind === 'entry') {
        void this._earlier.page();
      }
    });
    this._window.onDrawn = () => this._rove();
    this._window.onLost = at => this._takeFocus(at);
    this.node.append(
      h('div', { class: 'jp-PaiJobs-head' }, h('h2', {}, trans.__('Jobs')), this._connection),
      this._filter,
      this._logins.node,
      this._said,
      this._many.node,
      list,
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

  private _draw(): void {
    const { store, api } = this.context;
    drawConnection(this._connection, this.context);
    const filter = this._filter.value.trim();
    let found = entries(store.jobs(), store.groups()).filter(each => !filter || this._matches(each, filter));
    if (this._shown.length && this._window.node.matches(':hover')) {
      found = held(this._shown, found);
    }
    this._shown = found;
    const lines = linesOf(found, api.now(), {
      day: day => filter !== '' || !this._folded.has(day),
      group: id => this._opened.has(id),
      members: id => store.members(id),
      hasMoreOf: id => store.hasMoreOf(id)
    });
    this._selection.keep(new Set(lines.map(line => line.key)));
    this._window.show(lines, heightsOf(lines, parseFloat(getComputedStyle(this.node).fontSize)));
    this._more.hidden = !store.hasMore;
    const empty = this._earlier.looking
      ? this._trans.__('Looking through earlier jobs…')
      : filter
        ? this._trans.__('No job matches.')
        : this._trans.__('No jobs yet. Start one with Job in the launcher, or with the button of a cell.');
    setText(this._said, found.length || store.connection !== 'live' ? '' : empty);
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

  private _fold(day: Day): void {
    if (!this._folded.delete(day)) {
      this._folded.add(day);
    }
    this._draw();
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
    this._window.reveal(id)?.focus();
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

  /** Ids of all rows from the top, drawn or not. */
  private _ids(): string[] {
    return this._window.lines.filter(line => line.kind === 'entry').map(line => line.key);
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

  private _select(id: string): void {
    this._selected = id;
    this._rove();
  }

  /** One row can be reached by Tab: the one selected where it is drawn, else the first. */
  private _rove(): void {
    const rows = this._rows.drawn;
    const chosen = rows.find(row => row.dataset.id === this._selected) ?? rows[0];
    rows.forEach(row => {
      setAttribute(row, 'tabindex', row === chosen ? '0' : '-1');
      setAttribute(row, 'aria-current', row.dataset.id === this._selected ? 'true' : null);
      setAttribute(row, 'aria-selected', String(this._selection.has(row.dataset.id as string)));
    });
  }

  /** Go to another row; `how`: choose it alone, all up to it, or leave the choice as it is. */
  private _move(by: number, how: 'only' | 'range' | 'keep' = 'only'): void {
    const ids = this._ids();
    const at = ids.indexOf((document.activeElement as HTMLElement | null)?.dataset.id ?? '');
    if (at === 0 && by === -1 && how === 'only') {
      this._filter.focus();
      return;
    }
    const id = ids[Math.min(ids.length - 1, Math.max(0, at + by))];
    if (id && how === 'range') {
      this._selection.range(id, ids);
    } else if (id && how === 'only') {
      this._selection.only(id);
    }
    this._window.reveal(id)?.focus({ preventScroll: true });
    this._drawMany();
  }

  /** The row that had the focus is gone: the next one has it, or the one before, or the filter. */
  private _takeFocus(at: number): void {
    const lines = [...this._window.lines.slice(at), ...this._window.lines.slice(0, at).reverse()];
    const next = lines.find(line => line.kind === 'entry');
    (next ? this._window.reveal(next.key) : this._filter)?.focus();
  }

  private _onKey(event: KeyboardEvent): void {
    const row = (event.target as Element).closest<HTMLElement>('.jp-PaiJobs-row');
    const id = row?.dataset.id;
    const control = event.ctrlKey || event.metaKey;
    if (!id || row !== event.target || event.altKey) {
      return;
    }
    if (event.key in STEPS) {
      this._move(STEPS[event.key], event.shiftKey ? 'range' : control ? 'keep' : 'only');
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
  private readonly _rows: SideRows;
  private readonly _window: RowWindow<SideLine>;
  private readonly _earlier: EarlierJobs;
  private readonly _logins: LoginLines;
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
  private readonly _more = h('button', { type: 'button', class: 'jp-Pai-button', hidden: true });
}
