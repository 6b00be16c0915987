/** The rows of a log on the screen: a scroll area of the whole height, and only the rows that can be seen in it. */

import type { TranslationBundle } from '@jupyterlab/translation';

import { cut, ISpan, spans } from './ansi';
import { h, setText } from './dom';
import { IRow, LineStore } from './lines';
import { ICellPlace, IJob } from './model';
import { placeIn } from './places';
import { IView, place, scrollTo } from './window';

/** Without wrapping, so many characters of a line are drawn; nobody scrolls further to the right. */
const WIDEST = 20_000;
const COLOURS = 6;

export class LogRows {
  constructor(
    private readonly lines: LineStore,
    private readonly trans: TranslationBundle,
    private readonly followed: (follow: boolean) => void
  ) {
    this.node.setAttribute('aria-label', trans.__('Lines of the log'));
    this.node.append(this._space);
    this._space.append(this._body);
    this.node.addEventListener('scroll', () => this._onScroll());
    this.node.addEventListener('click', event => {
      const link = (event.target as Element).closest<HTMLElement>('[data-place]');
      if (link) {
        event.preventDefault();
        this.onPlace?.(JSON.parse(link.dataset.place as string) as ICellPlace);
      }
    });
    this.node.addEventListener('copy', event => {
      const text = this.selected();
      if (text && event.clipboardData) {
        event.clipboardData.setData('text/plain', text);
        event.preventDefault();
      }
    });
  }

  /** Called for a place in a notebook that a line names and somebody wants to see. */
  onPlace: ((place: ICellPlace) => void) | null = null;
  /** The job that the lines are of: what a line names is looked up in it. */
  job: IJob | undefined;

  readonly node = h('div', { class: 'jp-PaiLog-scroll', tabindex: 0, role: 'log', 'aria-live': 'off' });

  get follow(): boolean {
    return this._follow;
  }

  /** Whether the view stays at the end. */
  set follow(follow: boolean) {
    if (follow !== this._follow) {
      this._follow = follow;
      this.followed(follow);
    }
    this.draw();
  }

  get prefixed(): boolean {
    return this._prefixed;
  }

  /** Whether each row names its task. */
  set prefixed(prefixed: boolean) {
    if (prefixed !== this._prefixed) {
      this._prefixed = prefixed;
      this.node.classList.toggle('jp-mod-prefixed', prefixed);
      this.measure();
    }
  }

  /** Whether long lines are wrapped; the line at the top stays there. */
  set wrap(wrap: boolean) {
    const line = this.lines.lineOf(this._first, this._columns);
    this._wrap = wrap;
    this.node.classList.toggle('jp-mod-wrap', wrap);
    this.measure();
    if (!this._follow) {
      this._scroll(this.lines.rowOf(line, this._columns), false);
    }
  }

  /** Text to mark. */
  set wanted(text: string) {
    this._wanted = text.toLowerCase();
    this.draw();
  }

  /** Bring a line into view, marked as the one that is meant; counted from the first that was ever read. */
  reveal(line: number): void {
    this._current = line;
    this.follow = false;
    this._scroll(this.lines.rowOf(Math.max(0, line - this.lines.dropped), this._columns), true);
  }

  /** Forget what was shown. */
  reset(): void {
    this._current = -1;
    this._follow = true;
    this.followed(true);
    this.draw();
  }

  /** Lines have come: draw before the next picture. */
  grow(): void {
    if (!this._frame) {
      this._frame = requestAnimationFrame(() => {
        this._frame = 0;
        this._render();
      });
    }
  }

  draw(): void {
    this.grow();
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
      const names = this._prefixed ? this._nameWidth() : 0;
      const room = this.node.clientWidth - 16 - names;
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
    const longest = Math.max(8, ...this.lines.tasks.map(task => task.length));
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
    this.node.scrollTop = this._lastTop = scrollTo(row + shift, view);
    this.draw();
  }

  private _onScroll(): void {
    const top = this.node.scrollTop;
    const atEnd = top + this.node.clientHeight >= this.node.scrollHeight - this._rowHeight;
    if (atEnd && !this._follow) {
      this.follow = true;
    } else if (top < this._lastTop - 1 && !atEnd && this._follow) {
      this.follow = false;
    }
    this._lastTop = top;
    this.draw();
  }

  private _render(): void {
    const view = this._view();
    if (view.viewport === 0) {
      return;
    }
    const height = place(view).height;
    this._space.style.height = `${height}px`;
    if (this._follow) {
      this.node.scrollTop = height;
      this._lastTop = this.node.scrollTop;
    }
    const now = place({ ...view, scrollTop: this.node.scrollTop });
    this._first = now.first;
    const rows = this.lines.rows(now.first, now.count, this._columns);
    const firstLine = this.lines.lineOf(now.first, this._columns);
    this._body.style.transform = `translateY(${Math.round(now.top)}px)`;
    const widest = Math.min(this.lines.widest, WIDEST);
    this._body.style.minWidth = this._columns ? '' : `max(100%, ${Math.ceil(widest * this._charWidth) + 16}px)`;
    if (this._prefixed) {
      this.node.style.setProperty('--jp-pai-names', `${Math.ceil(this._nameWidth())}px`);
    }
    this._fill(rows, firstLine);
  }

  /** Draw rows into the elements that are there; only what differs is touched, so that a selection stays. */
  private _fill(rows: IRow[], firstLine: number): void {
    const body = this._body;
    while (body.childElementCount > rows.length) {
      body.lastElementChild?.remove();
    }
    let line = firstLine - 1;
    rows.forEach((row, at) => {
      line += at === 0 || row.piece === 0 ? 1 : 0;
      let element = body.children[at] as HTMLElement | undefined;
      if (!element) {
        element = h(
          'div',
          { class: 'jp-PaiLog-row' },
          h('span', { class: 'jp-PaiLog-task' }),
          h('span', { class: 'jp-PaiLog-text' })
        );
        body.append(element);
      }
      this._row(element, row, line);
    });
  }

  private _row(element: HTMLElement, row: IRow, line: number): void {
    const isCurrent = line + this.lines.dropped === this._current;
    const [runs, more] = this._shown(row);
    const key = JSON.stringify([row.task, row.piece > 0, isCurrent, this._prefixed, this._wanted, more, runs]);
    const known = element as HTMLElement & { paiKey?: string };
    if (known.paiKey === key) {
      return;
    }
    known.paiKey = key;
    const [name, content] = element.children as unknown as [HTMLElement, HTMLElement];
    element.className = [
      'jp-PaiLog-row',
      row.piece ? 'jp-mod-more' : '',
      row.task < 0 ? 'jp-mod-mark' : '',
      isCurrent ? 'jp-mod-current' : ''
    ].join(' ');
    setText(name, this._prefixed && row.task >= 0 && row.piece === 0 ? this.lines.tasks[row.task] : '');
    name.dataset.colour = String(row.task % COLOURS);
    content.replaceChildren(...runs.flatMap(run => this._run(run)));
    if (more) {
      const said = this.trans.__('… %1 more characters: wrap the lines, or download', more);
      content.append(h('span', { class: 'jp-PaiLog-rest' }, said));
    }
  }

  /** What is to be seen of a row, and how many characters of its line are not. */
  private _shown(row: IRow): [ISpan[], number] {
    const { text } = row;
    const start = row.piece * this._columns;
    const end = this._columns ? start + this._columns : WIDEST;
    if (!text.includes('\x1b')) {
      return [[{ text: text.slice(start, end), style: '' }], this._columns ? 0 : Math.max(0, text.length - WIDEST)];
    }
    return [this._columns ? cut(spans(text), start, end) : spans(text), 0];
  }

  private _run({ text, style }: ISpan): (Node | string)[] {
    const found = text.length <= WIDEST && this.onPlace ? placeIn(text, this.job) : null;
    if (found) {
      const link = h(
        'a',
        {
          href: '#',
          class: 'jp-Pai-link',
          'data-place': JSON.stringify(found.place),
          title: this.trans.__('Go to the cell')
        },
        text.slice(found.start, found.end)
      );
      const before = this._plain({ text: text.slice(0, found.start), style });
      return [...before, link, ...this._plain({ text: text.slice(found.end), style })];
    }
    return this._plain({ text, style });
  }

  private _plain({ text, style }: ISpan): (Node | string)[] {
    const marked = this._wanted && text.length <= WIDEST ? this._marked(text) : [text];
    return style ? [h('span', { class: style }, ...marked)] : marked;
  }

  private _marked(text: string): (Node | string)[] {
    const lower = text.toLowerCase();
    const found: (Node | string)[] = [];
    let from = 0;
    if (lower.length === text.length) {
      for (let at = lower.indexOf(this._wanted); at >= 0; at = lower.indexOf(this._wanted, from)) {
        found.push(text.slice(from, at), h('mark', {}, text.slice(at, at + this._wanted.length)));
        from = at + this._wanted.length;
      }
    }
    return [...found, text.slice(from)];
  }

  private _follow = true;
  private _wrap = false;
  private _prefixed = false;
  private _wanted = '';
  private _current = -1;
  private _first = 0;
  private _lastTop = 0;
  private _frame = 0;
  private _rowHeight = 17;
  private _charWidth = 8;
  private _columns = 0;
  private readonly _space = h('div', { class: 'jp-PaiLog-space' });
  private readonly _body = h('div', { class: 'jp-PaiLog-body' });
}
