/**
 * Lines as a terminal would show them at last: a carriage return begins the line anew (progress bars).
 */

const ESCAPE = '\x1b';

/** What is to be seen of a line after all its carriage returns. */
export function fold(line: string): string {
  let at = line.indexOf('\r');
  if (at < 0) {
    return line;
  }
  let shown = line.slice(0, at);
  while (at >= 0) {
    const next = line.indexOf('\r', at + 1);
    const part = line.slice(at + 1, next < 0 ? undefined : next);
    if (part) {
      // With control sequences the columns are not those of the text; then the latest is the whole of it.
      const plain = !part.includes(ESCAPE) && !shown.includes(ESCAPE);
      shown = plain && part.length < shown.length ? part + shown.slice(part.length) : part;
    }
    at = next;
  }
  return shown;
}

/** Whether each character is one byte in UTF-8. */
export function isAscii(text: string): boolean {
  // eslint-disable-next-line no-control-regex
  return !/[^\x00-\x7f]/.test(text);
}

/** How many bytes a part of a text is in UTF-8. */
export function byteLength(text: string, start = 0, end = text.length): number {
  let bytes = 0;
  for (let at = start; at < end; at += 1) {
    const code = text.charCodeAt(at);
    if (code < 0x80) {
      bytes += 1;
    } else if (code < 0x800) {
      bytes += 2;
    } else if (code >= 0xd800 && code < 0xdc00 && at + 1 < text.length) {
      bytes += 4;
      at += 1;
    } else {
      bytes += 3;
    }
  }
  return bytes;
}

/** A line, and where in the log it begins. */
export interface IFolded {
  text: string;
  offset: number;
}

/** Cuts a stream of text into folded lines. What is unfinished stays small, however often it is overwritten. */
export class LineFolder {
  /** Offset of the byte that is expected next. */
  next = 0;

  /** Take text, and the offset of its first byte; return the lines that are complete. */
  feed(text: string, offset = this.next): IFolded[] {
    const lines: IFolded[] = [];
    const ascii = isAscii(text);
    let start = 0;
    let at = offset;
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', start)) {
      const line = this._held + text.slice(start, end);
      const begin = this._isOpen ? this._start : at;
      lines.push({ text: fold(line.endsWith('\r') ? line.slice(0, -1) : line), offset: begin });
      at += ascii ? end + 1 - start : byteLength(text, start, end + 1);
      this._held = '';
      this._isOpen = false;
      start = end + 1;
    }
    const rest = start ? text.slice(start) : text;
    if (rest && !this._isOpen) {
      this._isOpen = true;
      this._start = at;
    }
    this.next = at + (ascii ? rest.length : byteLength(rest));
    this._held += rest;
    if (rest.includes('\r')) {
      // What lies below, and what is being written over it: more need not be known.
      const last = this._held.lastIndexOf('\r');
      this._held = fold(this._held.slice(0, last)) + this._held.slice(last);
    }
    return lines;
  }

  /** Whether nothing unfinished is held. */
  get isEmpty(): boolean {
    return !this._isOpen;
  }

  /** What is to be seen of the unfinished line. */
  get rest(): IFolded | null {
    const text = fold(this._held);
    return text ? { text, offset: this._start } : null;
  }

  /** Return the unfinished line, if there is one, as finished. */
  end(): IFolded[] {
    const { rest } = this;
    this._held = '';
    this._isOpen = false;
    return rest ? [rest] : [];
  }

  private _held = '';
  private _start = 0;
  private _isOpen = false;
}
