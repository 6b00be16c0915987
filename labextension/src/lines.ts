/**
 * The lines of a log that the page holds: millions of them in little memory, addressed by line or by row.
 *
 * Without wrapping a line is one row; with it, as many rows as its columns need. Lines that several tasks print alike
 * are one line with copies, where that is wanted.
 */

import { strip } from './ansi';
import { Block, ILine, IRow, rowsOf, widthOf } from './block';
import { LineFolder } from './fold';
import { RankFolder } from './ranks';

/** Limits on what a page holds; the oldest blocks go first. */
const MOST_CHARACTERS = 96_000_000;
const MOST_LINES = 1_500_000;

/** A longer line is kept without its colours: then any part of it can be cut out at once. */
const PLAIN_FROM = 64 * 1024;
/** So much text of whole lines becomes a block of its own. */
const AT_ONCE = 32 * 1024;

export class LineStore {
  constructor(
    private readonly mostCharacters = MOST_CHARACTERS,
    private readonly mostLines = MOST_LINES
  ) {}

  /** Names of the tasks, by number. */
  readonly tasks: string[] = [];
  /** Whether lines that several tasks print alike become one; it holds for what is added from now on. */
  foldsRanks = false;
  /** Lines that were dropped for lack of room. */
  dropped = 0;
  /** Lines held, without unfinished ones and copies. */
  lineCount = 0;
  characters = 0;
  /** Columns of the widest line. */
  widest = 0;

  /**
   * Take text of a task; what is no whole line yet is held back and shown last.
   *
   * @param offset - of its first byte in the task's log.
   */
  add(task: string, text: string, offset?: number): void {
    const number = this._number(task);
    const folder = this._folders[number];
    const feed = (part: string, at?: number): void =>
      folder.feed(part, at).forEach(line => this._push(line.text, number, line.offset));
    // What goes on with an unfinished line, whole lines, what is left.
    const first = folder.isEmpty ? 0 : text.indexOf('\n') + 1;
    const whole = text.lastIndexOf('\n') + 1;
    const isLong = whole - first >= AT_ONCE && (first > 0 || folder.isEmpty);
    if (!isLong || this.foldsRanks || !isSimple(text.slice(first, whole))) {
      feed(text, offset);
      return;
    }
    feed(text.slice(0, first), offset);
    const at = first > 0 ? folder.next : (offset ?? folder.next);
    this._add(Block.of(this._attempt, this._next, text.slice(first, whole), number, at));
    feed(text.slice(whole), at + whole - first);
  }

  /** From here on lines are those of another attempt. */
  begin(attempt: number): void {
    this._finish();
    this._blocks[this._blocks.length - 1]?.seal();
    this._attempt = attempt;
    this._ranks.clear();
    this._folders.forEach(folder => {
      folder.next = 0;
    });
  }

  /** Add a line of ours between those of the tasks. */
  mark(text: string): void {
    this._finish();
    this._push(text, -1, 0);
  }

  /** The log is at its end: unfinished lines are whole now. */
  end(): void {
    this._finish();
  }

  clear(): void {
    this._blocks = [];
    this._folders.length = 0;
    this._ranks.clear();
    this.tasks.length = 0;
    this.dropped = this.lineCount = this.characters = this.widest = this._copies = this._attempt = 0;
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
    this._pending().forEach((line, place) => {
      const rows = rowsOf(widthOf(line.text), columns);
      for (let piece = Math.max(0, first - at); piece < rows && found.length < count; piece += 1) {
        found.push({ ...line, piece, line: this._next + place, isCopy: false });
      }
      at += rows;
    });
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

  /** A line by its number, counted from the first that was ever read. */
  line(number: number): ILine | undefined {
    const block = this._blockOf(number);
    return block ? block.line(number - block.first) : this._pending()[number - this._next];
  }

  /**
   * Number of the line of a task that begins at an offset, or that the offset lies in.
   *
   * @returns null if it is not among the lines held.
   */
  find(task: string, attempt: number, offset: number): number | null {
    const number = this.tasks.indexOf(task);
    let best: { line: number; offset: number } | null = null;
    let goesOn = false;
    for (const block of number < 0 ? [] : this._blocks) {
      const found = block.attempt === attempt ? block.placeOf(number, offset) : null;
      if (found && (best === null || found.offset >= best.offset)) {
        best = { line: block.first + found.place, offset: found.offset };
      }
      goesOn ||= block.attempt > attempt;
    }
    goesOn ||= this._attempt === attempt && (this._folders[number]?.next ?? 0) > offset;
    return best && (best.offset === offset || goesOn) ? best.line : null;
  }

  /** Number of the last line of a task in an attempt, or null. */
  lastOf(task: string, attempt: number): number | null {
    const number = this.tasks.indexOf(task);
    for (let at = this._blocks.length - 1; at >= 0 && number >= 0; at -= 1) {
      const block = this._blocks[at];
      const found = block.attempt === attempt ? block.placeOf(number, Infinity) : null;
      if (found) {
        return block.first + found.place;
      }
    }
    return null;
  }

  /** Names of the tasks that print a line alike. */
  printers(line: number): string[] {
    const block = this._blockOf(line);
    return block ? block.printers(line - block.first).map(each => this.tasks[each.task]) : [];
  }

  /** Show or hide below a line who prints it. */
  toggle(line: number): void {
    const block = this._blockOf(line);
    block?.toggle(line - block.first);
  }

  /** Whether it is shown who prints a line. */
  isOpen(line: number): boolean {
    const block = this._blockOf(line);
    return block ? block.isOpen(line - block.first) : false;
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

  /** All text held, for the clipboard, one piece a block; a line with copies once for each task. */
  *text(prefixed: boolean): Generator<string> {
    for (const block of this._blocks) {
      const tasks = prefixed ? block.tasks() : [];
      const lines = block.lines().flatMap((line, place) => {
        const text = strip(line.text);
        return prefixed && line.task >= 0 ? tasks[place].map(task => `${this.tasks[task]}  ${text}`) : [text];
      });
      yield lines.join('\n') + '\n';
    }
    const pending = this._pending();
    if (pending.length) {
      const named = (line: ILine): string => (prefixed ? `${this.tasks[line.task]}  ` : '') + strip(line.text);
      yield pending.map(named).join('\n') + '\n';
    }
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
    return this._folders.flatMap((folder, task) => {
      const { rest } = folder;
      const more = { task, attempt: this._attempt, copies: 0 };
      return rest ? [{ text: kept(rest.text), offset: rest.offset, ...more }] : [];
    });
  }

  private _finish(): void {
    this._folders.forEach((folder, task) => folder.end().forEach(line => this._push(line.text, task, line.offset)));
  }

  private _blockOf(line: number): Block | undefined {
    for (let at = this._blocks.length - 1; at >= 0; at -= 1) {
      const block = this._blocks[at];
      if (line >= block.first) {
        return line < block.first + block.count ? block : undefined;
      }
    }
    return undefined;
  }

  /** Number of the line that comes next. */
  private get _next(): number {
    return this.dropped + this.lineCount;
  }

  private _push(line: string, task: number, offset: number): void {
    const text = kept(line);
    if (this.foldsRanks && task >= 0) {
      const leader = this._ranks.match(task, text);
      const block = leader < 0 ? undefined : this._blockOf(leader);
      if (block) {
        block.addCopy(leader - block.first, task, offset);
        this._copies += 1;
        this._makeRoom();
        return;
      }
      this._ranks.lead(task, text, this._next);
    }
    const width = widthOf(text);
    let block = this._blocks[this._blocks.length - 1];
    if (!block || block.isFull || block.attempt !== this._attempt) {
      block?.seal();
      block = new Block(this._attempt, this._next);
      this._blocks.push(block);
    }
    block.push(text, task, offset, width);
    this.lineCount += 1;
    this.characters += text.length + 1;
    this.widest = Math.max(this.widest, width);
    this._makeRoom();
  }

  private _add(block: Block): void {
    this._blocks[this._blocks.length - 1]?.seal();
    this._blocks.push(block);
    this.lineCount += block.count;
    this.characters += block.characters;
    this.widest = Math.max(this.widest, block.widest);
    this._makeRoom();
  }

  private _makeRoom(): void {
    const isTooMuch = (): boolean =>
      this.characters > this.mostCharacters || this.lineCount + this._copies > this.mostLines;
    while (isTooMuch() && this._blocks.length > 1) {
      const gone = this._blocks.shift() as Block;
      this.lineCount -= gone.count;
      this.characters -= gone.characters;
      this._copies -= gone.copyCount;
      this.dropped += gone.count;
    }
  }

  private _attempt = 0;
  private _copies = 0;
  private _blocks: Block[] = [];
  private readonly _folders: LineFolder[] = [];
  private readonly _ranks = new RankFolder();
}

/** Whether a text is nothing but lines of printable ASCII: looked for at once, for a million lines come by here. */
function isSimple(text: string): boolean {
  return !/[^\n\x20-\x7e]/.test(text);
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
