/** The rows of a log on the screen: a scroll area of the whole height, and only the rows that can be seen in it. */

import type { TranslationBundle } from '@jupyterlab/translation';

import { IRow } from './block';
import { h } from './dom';
import { ILogLine } from './linelinks';
import { LineStore } from './lines';
import { RowPainter, WIDEST } from './logrow';
import { ICellPlace } from './model';
import { IView, place, scrollTo } from './window';

/** Columns of a time and the space after it. */
const TIME_COLUMNS = 10;
/** Pictures in which a browser may still go on with a smooth scroll that was under way: about a second. */
const SETTLING = 60;

export class LogRows {
  constructor(
    private readonly lines: LineStore,
    trans: TranslationBundle,
    private readonly followed: (follow: boolean) => void
  ) {
    this.painter = new RowPainter(lines, trans);
    this.node.setAttribute('aria-label', trans.__('Lines of the log'));
    this.node.append(this._space);
    this._space.append(this._body);
    for (const input of ['wheel', 'pointerdown', 'touchstart', 'keydown']) {
      this.node.addEventListener(input, () => (this._settling = 0), { passive: true });
    }
    this.node.addEventListener('scroll', () => this._onScroll());
    this.node.addEventListener('click', event => this._onClick(event));
    this.node.addEventListener('keydown', event => this._onKey(event));
    this.node.addEventListener('copy', event => {
      const text = this.selected();
      if (text && event.clipboardData) {
        event.clipboardData.setData('text/plain', text);
        event.preventDefault();
      }
    });
  }

  /** Draws the rows; what it shall show is told to it, then {@link draw}. */
  readonly painter: RowPainter;
  /** Called for a place in a notebook that a line names and somebody wants to see. */
  onPlace: ((place: ICellPlace) => void) | null = null;
  /** Whether the end of the lines is that of the log, so that it can be followed. */
  canFollow = true;
  /** Called at the end of the lines where it is not that of the log. */
  onEnd: (() => void) | null = null;

  readonly node = h('div', { class: 'jp-PaiLog-scroll', tabindex: 0, role: 'log', 'aria-live': 'off' });

  get follow(): boolean {
    return this._follow;
  }

  /** Whether the view stays at the end. */
  set follow(follow: boolean) {
    if (follow !== this._follow && (this.canFollow || !follow)) {
      this._follow = follow;
      this.followed(follow);
    }
    this._settling = 0;
    if (this._follow) {
      this._settling = SETTLING;
      this._toEnd();
    }
    this.draw();
  }

  get prefixed(): boolean {
    return this.painter.prefixed;
  }

  /** Whether each row names its task. */
  set prefixed(prefixed: boolean) {
    if (prefixed !== this.painter.prefixed) {
      this.painter.prefixed = prefixed;
      this.node.classList.toggle('jp-mod-prefixed', prefixed);
      this.measure();
    }
  }

  /** Whether each row says when its line was written. */
  set timed(timed: boolean) {
    this.node.classList.toggle('jp-mod-timed', timed);
    this._timed = timed;
    this._keepTop(() => this.measure());
  }

  /** Whether long lines are wrapped; the line at the top stays there. */
  set wrap(wrap: boolean) {
    this.node.classList.toggle('jp-mod-wrap', wrap);
    this._keepTop(() => {
      this._wrap = wrap;
      this.measure();
    });
  }

  /** Text to mark. */
  set wanted(text: string) {
    this.painter.wanted = text.toLowerCase();
    this.draw();
  }

  /** The line that is marked, or else the first on the screen; null where there is none of a task. */
  get line(): ILogLine | null {
    const marked = this.painter.current >= 0 ? this.lines.line(this.painter.current) : undefined;
    const found = marked && marked.task >= 0 ? marked : this._seen().find(row => row.task >= 0);
    return found ? { task: this.lines.tasks[found.task], attempt: found.attempt, offset: found.offset } : null;
  }

  /** Bring a line into view, marked as the one that is meant; counted from the first that was ever read. */
  reveal(line: number): void {
    this.painter.current = line;
    this.follow = false;
    this._scroll(this.lines.rowOf(Math.max(0, line - this.lines.dropped), this._columns), true);
  }

  /** Forget what was shown. */
  reset(): void {
    this.painter.current = -1;
    this.painter.failure = null;
    this._follow = this.canFollow;
    this.followed(this._follow);
    this.draw();
  }

  /** Something is different: draw before the next picture. */
  draw(): void {
    if (!this._frame) {
      this._frame = requestAnimationFrame(() => {
        this._frame = 0;
        this._render();
      });
    }
  }

  dispose(): void {
    cancelAnimationFrame(this._frame);
  }

  /** Take the measure of the font and of the room there is. */
  measure(): void {
    const probe = h('div', { class: 'jp-PaiLog-row' }, h('span', { class: 'jp-PaiLog-text' }, 'x'.repeat(100)));
    this._body.append(probe);
    const box = (probe.lastChild as Element).getBoundingClientRect();
    const height = probe.getBoundingClientRect().height;
    probe.remove();
    if (box.width > 0) {
      this._rowHeight = height;
      this._charWidth = box.width / 100;
      const before = this._nameWidth() + (this._timed ? TIME_COLUMNS * this._charWidth : 0);
      const room = this.node.clientWidth - 16 - before;
      this._columns = this._wrap ? Math.max(20, Math.floor(room / this._charWidth)) : 0;
      this.draw();
    }
  }

  /** The text that is selected, wrapped rows joined to lines again. */
  selected(): string {
    const selection = window.getSelection();
    if (!selection || selection.isCollapsed || !this._body.contains(selection.anchorNode)) {
      return '';
    }
    let text = '';
    const content = selection.getRangeAt(0).cloneContents();
    const rows = [...content.querySelectorAll('.jp-PaiLog-row')];
    if (!rows.length) {
      return selection.toString();
    }
    rows.forEach((row, at) => {
      if (at && !row.classList.contains('jp-mod-more')) {
        text += '\n';
      }
      text += row.querySelector('.jp-PaiLog-text')?.textContent ?? '';
    });
    return text;
  }

  private _nameWidth(): number {
    if (!this.painter.prefixed) {
      return 0;
    }
    const mark = this.painter.failure ? 2 : 0;
    const longest = Math.max(8, ...this.lines.tasks.map(task => task.length + mark));
    return (Math.min(longest, 24) + 2) * this._charWidth;
  }

  private _view(): IView {
    return {
      rows: this.lines.rowCount(this._columns),
      rowHeight: this._rowHeight,
      viewport: this.node.clientHeight,
      scrollTop: this.node.scrollTop
    };
  }

  private _scroll(row: number, middle: boolean): void {
    const view = this._view();
    const shift = middle ? 0 : Math.floor(view.viewport / view.rowHeight / 2);
    this._space.style.height = `${place(view).height}px`;
    this.node.scrollTop = scrollTo(row + shift, view);
    this._lastTop = this.node.scrollTop;
    this.draw();
  }

  private _onScroll(): void {
    const top = this.node.scrollTop;
    if (Math.abs(top - this._lastTop) < 1) {
      this.draw(); // It was not somebody who scrolled there.
      return;
    }
    const atEnd = top + this.node.clientHeight >= this.node.scrollHeight - this._rowHeight;
    if (this._settling && !atEnd) {
      this._toEnd(); // Nobody did anything since the end was asked for: it is the rest of a way of before.
      this.draw();
      return;
    }
    if (atEnd && !this.canFollow) {
      this.onEnd?.();
    } else if (atEnd && !this._follow) {
      this.follow = true;
    } else if (top < this._lastTop - 1 && !atEnd && this._follow) {
      this.follow = false;
    }
    this._lastTop = top;
    this.draw();
  }

  private _toEnd(): void {
    this.node.scrollTop = this.node.scrollHeight;
    this._lastTop = this.node.scrollTop;
  }

  private _render(): void {
    const view = this._view();
    if (view.viewport === 0) {
      return;
    }
    const height = place(view).height;
    this._space.style.height = `${height}px`;
    if (this._follow) {
      this._toEnd();
    }
    if (this._settling) {
      this._settling -= 1;
      this.draw();
    }
    const now = place({ ...view, scrollTop: this.node.scrollTop });
    this._first = now.first;
    const rows = this.lines.rows(now.first, now.count, this._columns);
    this._body.style.transform = `translateY(${Math.round(now.top)}px)`;
    const widest = Math.min(this.lines.widest, WIDEST);
    this._body.style.minWidth = this._columns ? '' : `max(100%, ${Math.ceil(widest * this._charWidth) + 16}px)`;
    this.node.style.setProperty('--jp-pai-names', `${Math.ceil(this._nameWidth())}px`);
    this._fill(rows);
  }

  /** Draw rows into the elements that are there; only what differs is touched, so that a selection stays. */
  private _fill(rows: IRow[]): void {
    const body = this._body;
    this.painter.columns = this._columns;
    this.painter.linksPlaces = this.onPlace !== null;
    while (body.childElementCount > rows.length) {
      body.lastElementChild?.remove();
    }
    rows.forEach((row, at) => {
      let element = body.children[at] as HTMLElement | undefined;
      if (!element) {
        element = this.painter.make();
        body.append(element);
      }
      this.painter.paint(element, row);
    });
  }

  private _onClick(event: MouseEvent): void {
    const target = event.target as Element;
    const row = target.closest<HTMLElement>('.jp-PaiLog-row');
    const link = target.closest<HTMLElement>('[data-place]');
    if (target.closest('a[target]')) {
      return; // A page of the web, in a tab of its own.
    }
    if (link) {
      event.preventDefault();
      this.onPlace?.(JSON.parse(link.dataset.place as string) as ICellPlace);
    } else if (row && target.closest('.jp-PaiLog-copies')) {
      this.lines.toggle(Number(row.dataset.line));
      this.follow = false;
    } else if (row && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
      // A link to a line is for the address that it has; here a click marks the line.
      event.preventDefault();
      if (window.getSelection()?.isCollapsed !== false) {
        this.painter.current = Number(row.dataset.line);
        this.draw();
      }
    }
  }

  private _onKey(event: KeyboardEvent): void {
    if (event.key === 'End' && event.target === this.node && this.canFollow) {
      event.preventDefault(); // The log may grow while the browser scrolls to where its end was.
      this.follow = true;
      return;
    }
    const { current } = this.painter;
    if (event.key === 'Enter' && event.target === this.node && current >= 0 && this.lines.line(current)?.copies) {
      this.lines.toggle(current);
      this.follow = false;
      return;
    }
    const by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (!by || !event.altKey) {
      return;
    }
    event.preventDefault();
    const seen = this._seen();
    const from = this.painter.current >= 0 ? this.painter.current + by : seen[0]?.line;
    const last = this.lines.dropped + this.lines.lineCount - 1;
    if (from === undefined || from < this.lines.dropped || from > last) {
      return;
    }
    if (seen.some(row => row.line === from)) {
      this.painter.current = from;
      this.follow = false;
    } else {
      this.reveal(from);
    }
  }

  /** The rows that are in view now, not those drawn to be ready. */
  private _seen(): IRow[] {
    const from = this.node.getBoundingClientRect().top;
    const children = [...this._body.children];
    const hidden = children.findIndex(row => row.getBoundingClientRect().top >= from - 1);
    const count = Math.floor(this.node.clientHeight / this._rowHeight);
    return hidden < 0 ? [] : this.lines.rows(this._first + hidden, count, this._columns);
  }

  /** Change how rows are laid out; the line at the top stays there. */
  private _keepTop(change: () => void): void {
    const line = this.lines.lineOf(this._first, this._columns);
    change();
    if (!this._follow) {
      this._scroll(this.lines.rowOf(line, this._columns), false);
    }
  }

  private _follow = true;
  private _wrap = false;
  private _timed = false;
  private _first = 0;
  private _lastTop = 0;
  private _settling = 0;
  private _frame = 0;
  private _rowHeight = 17;
  private _charWidth = 8;
  private _columns = 0;
  private readonly _space = h('div', { class: 'jp-PaiLog-space' });
  private readonly _body = h('div', { class: 'jp-PaiLog-body' });
}
