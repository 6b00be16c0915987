/**
 * The lines of a log that the page holds: millions of them in little memory, addressed by line or by row.
 *
 * Lines are kept in sealed blocks, each one string and a few typed arrays, so that a million lines are a few
 * hundred objects. Without wrapping a line is one row; with it, as many rows as its columns need.
 */

import { spans, strip } from './ansi';
import { LineFolder } from './fold';

/** Limits on what a page holds; the oldest blocks go first. */
export const MOST_CHARACTERS = 96_000_000;
export const MOST_LINES = 1_500_000;

const BLOCK_LINES = 2000;
const BLOCK_CHARACTERS = 256 * 1024;
/** A longer line is kept without its colours: then any part of it can be cut out at once. */
const PLAIN_FROM = 64 * 1024;

export interface ILine {
  /** Text with its colours. */
  text: string;
  /** Number of the task, as in `tasks`; -1 for a line of ours. */
  task: number;
}

/** A row on the screen: a line, and which of its pieces. */
export interface IRow extends ILine {
  piece: number;
}

export class LineStore {
  constructor(
    private readonly mostCharacters = MOST_CHARACTERS,
    private readonly mostLines = MOST_LINES
  ) {}

  /** Names of the tasks, by number. */
  readonly tasks: string[] = [];
  /** Lines that were dropped for lack of room. */
  dropped = 0;
  /** Lines held, without unfinished ones. */
  lineCount = 0;
  characters = 0;
  /** Columns of the widest line. */
  widest = 0;

  /** Take text of a task; what is no whole line yet is held back and shown last. */
  add(task: string, text: string): void {
    const number = this._number(task);
    for (const line of this._folders[number].feed(text)) {
      this._push(line, number);
    }
  }

  /** Add a line of ours between those of the tasks. */
  mark(text: string): void {
    this._finish();
    this._push(text, -1);
  }

  /** The log is at its end: unfinished lines are whole now. */
  end(): void {
    this._finish();
  }

  clear(): void {
    this._blocks = [];
    this._folders.length = 0;
    this.tasks.length = 0;
    this.dropped = this.lineCount = this.characters = this.widest = 0;
  }

  /** Number of rows, unfinished lines included. */
  rowCount(columns: number): number {
    const pending = this._pending().reduce((sum, line) => sum + rowsOf(widthOf(line.text), columns), 0);
    return this._blocks.reduce((sum, block) => sum + block.rows(columns), pending);
  }

  /** Return rows from the `first` on. */
  rows(first: number, count: number, columns: number): IRow[] {
    const found: IRow[] = [];
    let at = 0;
    for (const block of this._blocks) {
      const rows = block.rows(columns);
      if (at + rows > first) {
        block.collect(found, Math.max(0, first - at), count, columns);
      }
      at += rows;
      if (found.length >= count) {
        return found;
      }
    }
    for (const line of this._pending()) {
      const rows = rowsOf(widthOf(line.text), columns);
      for (let piece = Math.max(0, first - at); piece < rows && found.length < count; piece += 1) {
        found.push({ ...line, piece });
      }
      at += rows;
    }
    return found;
  }

  /** The row at which a line begins. */
  rowOf(line: number, columns: number): number {
    let row = 0;
    let at = 0;
    for (const block of this._blocks) {
      if (line < at + block.count) {
        return row + block.rowsBefore(line - at, columns);
      }
      at += block.count;
      row += block.rows(columns);
    }
    return row;
  }

  /** The line that has a row. */
  lineOf(row: number, columns: number): number {
    let at = 0;
    let line = 0;
    for (const block of this._blocks) {
      const rows = block.rows(columns);
      if (row < at + rows) {
        return line + block.lineOf(row - at, columns);
      }
      at += rows;
      line += block.count;
    }
    return line;
  }

  /**
   * Find the lines that contain a text, whatever its case, block by block, so that the caller can pause.
   *
   * Yields the numbers of lines found in each block.
   */
  *search(text: string): Generator<number[]> {
    const wanted = text.toLowerCase();
    let at = 0;
    for (const block of this._blocks) {
      yield block.search(wanted).map(line => at + line);
      at += block.count;
    }
    const pending = this._pending();
    yield pending.flatMap((line, place) => (strip(line.text).toLowerCase().includes(wanted) ? [at + place] : []));
  }

  /** All text held, for the clipboard, one piece a block. */
  *text(prefixed: boolean): Generator<string> {
    for (const block of this._blocks) {
      yield (
        block
          .lines()
          .map(line => this._plain(line, prefixed))
          .join('\n') + '\n'
      );
    }
    const pending = this._pending();
    if (pending.length) {
      yield pending.map(line => this._plain(line, prefixed)).join('\n') + '\n';
    }
  }

  private _plain(line: ILine, prefixed: boolean): string {
    const text = strip(line.text);
    return prefixed && line.task >= 0 ? `${this.tasks[line.task]}  ${text}` : text;
  }

  private _number(task: string): number {
    const known = this.tasks.indexOf(task);
    if (known >= 0) {
      return known;
    }
    this._folders.push(new LineFolder());
    return this.tasks.push(task) - 1;
  }

  private _pending(): ILine[] {
    return this._folders.flatMap((folder, task) => (folder.rest ? [{ text: kept(folder.rest), task }] : []));
  }

  private _finish(): void {
    this._folders.forEach((folder, task) => folder.end().forEach(line => this._push(line, task)));
  }

  private _push(line: string, task: number): void {
    const text = kept(line);
    const width = widthOf(text);
    let block = this._blocks[this._blocks.length - 1];
    if (!block || block.full) {
      block?.seal();
      block = new Block();
      this._blocks.push(block);
    }
    block.push(text, task, width);
    this.lineCount += 1;
    this.characters += text.length + 1;
    this.widest = Math.max(this.widest, width);
    while ((this.characters > this.mostCharacters || this.lineCount > this.mostLines) && this._blocks.length > 1) {
      const gone = this._blocks.shift() as Block;
      this.lineCount -= gone.count;
      this.characters -= gone.characters;
      this.dropped += gone.count;
    }
  }

  private _blocks: Block[] = [];
  private readonly _folders: LineFolder[] = [];
}

/** Rows that a line needs. */
export function rowsOf(width: number, columns: number): number {
  return columns > 0 && width > columns ? Math.ceil(width / columns) : 1;
}

function kept(line: string): string {
  if (line.includes('\t') && line.length < PLAIN_FROM) {
    line = expand(line);
  }
  return line.length > PLAIN_FROM ? strip(line) : line;
}

/** Tabs become spaces, so that a column is a character. */
function expand(line: string): string {
  const parts = line.split('\t');
  let text = parts[0];
  for (const part of parts.slice(1)) {
    text += ' '.repeat(8 - (widthOf(text) % 8)) + part;
  }
  return text;
}

function widthOf(text: string): number {
  return text.includes('\x1b') ? spans(text).reduce((sum, span) => sum + span.text.length, 0) : text.length;
}

class Block {
  count = 0;
  characters = 0;

  get full(): boolean {
    return this.count >= BLOCK_LINES || this.characters >= BLOCK_CHARACTERS;
  }

  push(text: string, task: number, width: number): void {
    this._open?.push(text);
    // Numbers are packed when the block is sealed; nothing is added after that.
    (this._tasks as number[]).push(task);
    (this._widths as number[]).push(width);
    this._coloured ||= text.includes('\x1b');
    this.count += 1;
    this.characters += text.length + 1;
    this._columns = -1;
  }

  seal(): void {
    const lines = this._open ?? [];
    this._starts = new Uint32Array(lines.length + 1);
    lines.forEach((line, place) => {
      this._starts[place + 1] = this._starts[place] + line.length + 1;
    });
    this._text = lines.join('\n');
    this._open = null;
    this._tasks = Int16Array.from(this._tasks);
    this._widths = Uint32Array.from(this._widths);
  }

  lines(): ILine[] {
    return Array.from({ length: this.count }, (_, place) => this._line(place));
  }

  rows(columns: number): number {
    if (this._columns !== columns) {
      this._columns = columns;
      this._rows = this.rowsBefore(this.count, columns);
    }
    return this._rows;
  }

  rowsBefore(line: number, columns: number): number {
    if (columns <= 0) {
      return line;
    }
    let rows = 0;
    for (let place = 0; place < line; place += 1) {
      rows += rowsOf(this._widths[place], columns);
    }
    return rows;
  }

  lineOf(row: number, columns: number): number {
    let at = 0;
    for (let place = 0; place < this.count; place += 1) {
      at += rowsOf(this._widths[place], columns);
      if (row < at) {
        return place;
      }
    }
    return this.count;
  }

  collect(found: IRow[], first: number, count: number, columns: number): void {
    let at = 0;
    for (let place = columns > 0 ? 0 : first; place < this.count && found.length < count; place += 1) {
      const rows = rowsOf(this._widths[place], columns);
      if (columns <= 0) {
        found.push({ ...this._line(place), piece: 0 });
      } else if (at + rows > first) {
        const line = this._line(place);
        for (let piece = Math.max(0, first - at); piece < rows && found.length < count; piece += 1) {
          found.push({ ...line, piece });
        }
      }
      at += rows;
    }
  }

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

  private _line(place: number): ILine {
    const text = this._open ? this._open[place] : this._text.slice(this._starts[place], this._starts[place + 1] - 1);
    return { text, task: this._tasks[place] };
  }

  private _open: string[] | null = [];
  private _text = '';
  private _starts = new Uint32Array(1);
  private _tasks: number[] | Int16Array = [];
  private _widths: number[] | Uint32Array = [];
  private _coloured = false;
  private _columns = -1;
  private _rows = 0;
}
