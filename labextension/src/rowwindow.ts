/** A list of any length as elements: only the rows that can be seen, and the one that has the focus. */

import { h, setAttribute } from './dom';

/** Pixels above and below what can be seen that have their rows too. */
const SPARE = 300;

export interface ILine {
  /** Names a row; it keeps its element as long as it is drawn. */
  key: string;
}

/** Makes the elements of rows. */
export interface IRowMaker<L extends ILine> {
  make(line: L): HTMLElement;
  /** Make an element say what is true now. */
  draw(node: HTMLElement, line: L): void;
  /** A row's element is gone from the page. */
  gone(key: string): void;
}

export class RowWindow<L extends ILine> {
  readonly node = h('div', { class: 'jp-PaiRows' });

  /** Called when rows were drawn that were not there before. */
  onDrawn: (() => void) | null = null;

  /** Called when the line that had the focus is gone, with where it was. */
  onLost: ((at: number) => void) | null = null;

  constructor(private readonly maker: IRowMaker<L>) {
    this.node.append(this._space);
    this.node.addEventListener('scroll', () => this._place(false));
  }

  get lines(): readonly L[] {
    return this._lines;
  }

  /** Whether the end of the list is near what can be seen. */
  get atEnd(): boolean {
    return this.node.scrollTop + this.node.clientHeight + SPARE >= this._height;
  }

  /**
   * Show lines; the first one that can be seen stays where it is, unless it is the first of all.
   *
   * @param heights - of each line, in pixels.
   */
  show(lines: readonly L[], heights: readonly number[]): void {
    const { scrollTop } = this.node;
    const kept = scrollTop > 0 ? this._indexAt(scrollTop) : -1;
    const keptKey = this._lines[kept]?.key;
    const way = kept < 0 ? 0 : scrollTop - this._tops[kept];
    const focused = this._focused() ?? '';
    const was = this._at.get(focused);
    this._lines = lines;
    this._at = new Map(lines.map((line, at) => [line.key, at]));
    this._tops = new Float64Array(lines.length);
    this._height = 0;
    heights.forEach((height, at) => {
      this._tops[at] = this._height;
      this._height += height;
    });
    this._heights = heights;
    this._space.style.height = `${this._height}px`;
    const again = keptKey === undefined ? undefined : this._at.get(keptKey);
    if (again !== undefined && again !== kept) {
      this.node.scrollTop = this._tops[again] + way;
    }
    this._place(true);
    if (was !== undefined && !this._at.has(focused)) {
      this.onLost?.(was);
    }
  }

  /** The height of what can be seen has changed. */
  resize(): void {
    this._place(false);
  }

  /** Bring a line into view; return its element. */
  reveal(key: string): HTMLElement | undefined {
    const at = this._at.get(key);
    if (at !== undefined) {
      const { scrollTop, clientHeight } = this.node;
      const top = this._tops[at];
      if (top < scrollTop) {
        this.node.scrollTop = top;
      } else if (top + this._heights[at] > scrollTop + clientHeight) {
        this.node.scrollTop = top + this._heights[at] - clientHeight;
      }
      this._place(false);
    }
    return this._nodes.get(key);
  }

  /** The last line that begins at or above a height. */
  private _indexAt(height: number): number {
    let low = 0;
    let high = this._tops.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this._tops[middle] <= height) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    return low;
  }

  private _wanted(): number[] {
    if (!this._lines.length) {
      return [];
    }
    const { scrollTop, clientHeight } = this.node;
    const first = this._indexAt(scrollTop - SPARE);
    const last = this._indexAt(scrollTop + clientHeight + SPARE);
    const wanted = Array.from({ length: last - first + 1 }, (_, at) => first + at);
    const focused = this._focused();
    const held = focused === null ? undefined : this._at.get(focused);
    if (held !== undefined && (held < first || held > last)) {
      wanted.push(held);
      wanted.sort((a, b) => a - b);
    }
    return wanted;
  }

  /** Key of the row that has the focus, or has it within. */
  private _focused(): string | null {
    const { activeElement } = document;
    if (activeElement && this._space.contains(activeElement)) {
      for (const [key, node] of this._nodes) {
        if (node.contains(activeElement)) {
          return key;
        }
      }
    }
    return null;
  }

  /**
   * Have the elements that are wanted, in their order and place.
   *
   * @param isNews - whether rows that are drawn already may say something else now.
   */
  private _place(isNews: boolean): void {
    const wanted = this._wanted();
    const keys = new Set(wanted.map(at => this._lines[at].key));
    for (const [key, node] of this._nodes) {
      if (!keys.has(key)) {
        node.remove();
        this._nodes.delete(key);
        this.maker.gone(key);
      }
    }
    let next = this._space.firstElementChild;
    let isMore = false;
    for (const at of wanted) {
      const line = this._lines[at];
      const there = this._nodes.get(line.key);
      const node = there ?? this.maker.make(line);
      if (!there) {
        this._nodes.set(line.key, node);
        isMore = true;
      }
      if (isNews || !there) {
        this.maker.draw(node, line);
        node.style.top = `${this._tops[at]}px`;
        node.style.height = `${this._heights[at]}px`;
        setAttribute(node, 'aria-rowindex', String(at + 1));
      }
      if (node === next) {
        next = next.nextElementSibling;
      } else {
        this._insert(node, next);
      }
    }
    setAttribute(this.node, 'aria-rowcount', String(this._lines.length));
    if (isMore || isNews) {
      this.onDrawn?.();
    }
  }

  /** Put an element before another one; one that is moved keeps the focus. */
  private _insert(node: HTMLElement, before: Element | null): void {
    const { activeElement } = document;
    const held = activeElement && node.contains(activeElement) ? (activeElement as HTMLElement) : null;
    this._space.insertBefore(node, before);
    held?.focus({ preventScroll: true });
  }

  private readonly _space = h('div', { class: 'jp-PaiRows-space', role: 'rowgroup' });
  private readonly _nodes = new Map<string, HTMLElement>();
  private _lines: readonly L[] = [];
  private _at = new Map<string, number>();
  private _heights: readonly number[] = [];
  private _tops = new Float64Array(0);
  private _height = 0;
}
