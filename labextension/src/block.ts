/** A run of lines: one string and a few typed arrays once it is full, so that a million lines are few objects. */

import { hasControls, spans, strip } from './ansi';

const BLOCK_LINES = 2000;
const BLOCK_CHARACTERS = 256 * 1024;

export interface ILine {
  /** Text with its colours. */
  text: string;
  /** Number of the task, as in `tasks`; -1 for a line of ours. */
  task: number;
  /** Where in the task's log it begins. */
  offset: number;
  attempt: number;
  /** How many other tasks print it alike. */
  copies: number;
}

/** A row on the screen: a line, and which of its pieces. */
export interface IRow extends ILine {
  piece: number;
  /** Number of the line, counted from the first that was ever read. */
  line: number;
  /** Whether it shows who prints the line above, not the line itself. */
  isCopy: boolean;
}

interface ICopy {
  task: number;
  offset: number;
}

export class Block {
  /**
   * @param attempt - that its lines are of.
   * @param first - number of its first line, counted from the first that was ever read.
   */
  constructor(
    readonly attempt: number,
    readonly first: number
  ) {}

  /** Make a block at once of whole lines that are ASCII without tabs, returns and colours. */
  static of(attempt: number, first: number, text: string, task: number, offset: number): Block {
    const block = new Block(attempt, first);
    const starts = [0];
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', end + 1)) {
      starts.push(end + 1);
    }
    const count = starts.length - 1;
    const offsets = new Float64Array(count);
    const widths = new Uint32Array(count);
    // A million lines come by here; the `from` of typed arrays takes several times as long.
    for (let place = 0; place < count; place += 1) {
      const start = starts[place];
      offsets[place] = start + offset;
      widths[place] = starts[place + 1] - start - 1;
    }
    block.count = count;
    block.characters = text.length;
    block._open = null;
    block._text = text.slice(0, -1);
    block._starts = Uint32Array.from(starts);
    block._tasks = new Int16Array(count).fill(task);
    block._offsets = offsets;
    block._widths = widths;
    return block;
  }

  count = 0;
  characters = 0;

  /** Lines of other tasks that are copies of lines here. */
  get copyCount(): number {
    return this._copies.length;
  }

  get isFull(): boolean {
    return this._open === null || this.count >= BLOCK_LINES || this.characters >= BLOCK_CHARACTERS;
  }

  get widest(): number {
    let most = 0;
    for (const width of this._widths) {
      most = Math.max(most, width);
    }
    return most;
  }

  push(text: string, task: number, offset: number, width: number): void {
    this._open?.push(text);
    // Numbers are packed when the block is sealed; nothing is added after that.
    (this._tasks as number[]).push(task);
    (this._offsets as number[]).push(offset);
    (this._widths as number[]).push(width);
    this._coloured ||= hasControls(text);
    this.count += 1;
    this.characters += text.length + 1;
    this._columns = -1;
  }

  seal(): void {
    if (this._open === null) {
      return;
    }
    const lines = this._open;
    this._starts = new Uint32Array(lines.length + 1);
    lines.forEach((line, place) => {
      this._starts[place + 1] = this._starts[place] + line.length + 1;
    });
    this._text = lines.join('\n');
    this._open = null;
    this._tasks = Int16Array.from(this._tasks);
    this._offsets = Float64Array.from(this._offsets);
    this._widths = Uint32Array.from(this._widths);
  }

  /** Take note that another task prints a line alike. */
  addCopy(place: number, task: number, offset: number): void {
    this._copies.push({ place, task, offset });
    this._copyCounts[place] = (this._copyCounts[place] ?? 0) + 1;
    this._columns = -1;
  }

  /** All that print a line: the task it is of, then the others. */
  printers(place: number): ICopy[] {
    const found = [{ task: this._tasks[place], offset: this._offsets[place] }];
    this._copies.forEach(copy => copy.place === place && found.push({ task: copy.task, offset: copy.offset }));
    return found;
  }

  /** Numbers of the tasks that print each line. */
  tasks(): number[][] {
    const found = Array.from(this._tasks, task => [task]);
    this._copies.forEach(copy => found[copy.place].push(copy.task));
    return found;
  }

  /** Show or hide below a line who prints it. */
  toggle(place: number): void {
    if (!this._opened.delete(place)) {
      this._opened.add(place);
    }
    this._columns = -1;
  }

  isOpen(place: number): boolean {
    return this._opened.has(place);
  }

  line(place: number): ILine {
    const text = this._open ? this._open[place] : this._text.slice(this._starts[place], this._starts[place + 1] - 1);
    const copies = this._copyCounts[place] ?? 0;
    return { text, task: this._tasks[place], offset: this._offsets[place], attempt: this.attempt, copies };
  }

  lines(): ILine[] {
    return Array.from({ length: this.count }, (_, place) => this.line(place));
  }

  rows(columns: number): number {
    if (this._columns !== columns) {
      this._columns = columns;
      this._rows = this.rowsBefore(this.count, columns);
    }
    return this._rows;
  }

  rowsBefore(line: number, columns: number): number {
    if (columns <= 0 && !this._opened.size) {
      return line;
    }
    let rows = 0;
    for (let place = 0; place < line; place += 1) {
      rows += this._rowsAt(place, columns);
    }
    return rows;
  }

  lineOf(row: number, columns: number): number {
    if (columns <= 0 && !this._opened.size) {
      return row;
    }
    let at = 0;
    for (let place = 0; place < this.count; place += 1) {
      at += this._rowsAt(place, columns);
      if (row < at) {
        return place;
      }
    }
    return this.count;
  }

  /** Add rows from the `first` on to those found, until there are `count`. */
  collect(found: IRow[], first: number, count: number, columns: number): void {
    const skips = columns > 0 || this._opened.size > 0;
    let at = 0;
    for (let place = skips ? 0 : first; place < this.count && found.length < count; place += 1) {
      const rows = this._rowsAt(place, columns);
      if (!skips || at + rows > first) {
        this._collectLine(found, place, Math.max(0, skips ? first - at : 0), count, columns);
      }
      at += rows;
    }
  }

  /** Places of the lines that contain a text, in lower case. */
  search(wanted: string): number[] {
    if (this._open || this._coloured) {
      return this.lines().flatMap((line, place) => (strip(line.text).toLowerCase().includes(wanted) ? [place] : []));
    }
    const found: number[] = [];
    const text = this._text.toLowerCase();
    if (text.length !== this._text.length) {
      // Some letters change their length with their case; then offsets are not those of the lines.
      return this.lines().flatMap((line, place) => (line.text.toLowerCase().includes(wanted) ? [place] : []));
    }
    let place = 0;
    for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, this._starts[place])) {
      while (this._starts[place + 1] <= at) {
        place += 1;
      }
      found.push(place);
      place += 1;
      if (place >= this.count) {
        break;
      }
    }
    return found;
  }

  /** Place of the last line of a task that begins at an offset or before it; also of one that it has a copy of. */
  placeOf(task: number, offset: number): { place: number; offset: number } | null {
    let best: { place: number; offset: number } | null = null;
    const take = (place: number, of: number, at: number): void => {
      if (of === task && at <= offset && (best === null || at >= best.offset)) {
        best = { place, offset: at };
      }
    };
    for (let place = 0; place < this.count; place += 1) {
      take(place, this._tasks[place], this._offsets[place]);
    }
    this._copies.forEach(copy => take(copy.place, copy.task, copy.offset));
    return best;
  }

  private _rowsAt(place: number, columns: number): number {
    const rows = rowsOf(this._widths[place], columns);
    return this._opened.has(place) ? rows + 1 + (this._copyCounts[place] ?? 0) : rows;
  }

  private _collectLine(found: IRow[], place: number, from: number, count: number, columns: number): void {
    const line = { ...this.line(place), line: this.first + place };
    const rows = rowsOf(this._widths[place], columns);
    for (let piece = from; piece < rows && found.length < count; piece += 1) {
      found.push({ ...line, piece, isCopy: false });
    }
    if (this._opened.has(place)) {
      for (const printer of this.printers(place).slice(Math.max(0, from - rows))) {
        if (found.length < count) {
          found.push({ ...line, ...printer, copies: 0, piece: 0, isCopy: true });
        }
      }
    }
  }

  private _open: string[] | null = [];
  private _text = '';
  private _starts = new Uint32Array(1);
  private _tasks: number[] | Int16Array = [];
  private _offsets: number[] | Float64Array = [];
  private _widths: number[] | Uint32Array = [];
  private _coloured = false;
  private _columns = -1;
  private _rows = 0;
  private readonly _copies: (ICopy & { place: number })[] = [];
  private readonly _copyCounts: number[] = [];
  private readonly _opened = new Set<number>();
}

/** Rows that a line needs. */
export function rowsOf(width: number, columns: number): number {
  return columns > 0 && width > columns ? Math.ceil(width / columns) : 1;
}

/** Columns that a line needs. */
export function widthOf(text: string): number {
  return hasControls(text) ? spans(text).reduce((sum, span) => sum + span.text.length, 0) : text.length;
}
