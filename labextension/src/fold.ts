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

/** Cuts a stream of text into folded lines. What is unfinished stays small, however often it is overwritten. */
export class LineFolder {
  /** Take text; return the lines that are complete. */
  feed(text: string): string[] {
    const lines: string[] = [];
    let start = 0;
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', start)) {
      const line = this._held + text.slice(start, end);
      lines.push(fold(line.endsWith('\r') ? line.slice(0, -1) : line));
      this._held = '';
      start = end + 1;
    }
    const rest = start ? text.slice(start) : text;
    this._held += rest;
    if (rest.includes('\r')) {
      // What lies below, and what is being written over it: more need not be known.
      const last = this._held.lastIndexOf('\r');
      this._held = fold(this._held.slice(0, last)) + this._held.slice(last);
    }
    return lines;
  }

  /** What is to be seen of the unfinished line. */
  get rest(): string {
    return fold(this._held);
  }

  /** Return the unfinished line, if there is one, as finished. */
  end(): string[] {
    const rest = this.rest;
    this._held = '';
    return rest ? [rest] : [];
  }

  private _held = '';
}
