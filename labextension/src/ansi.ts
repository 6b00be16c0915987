/** ANSI colours of a line. Colours become the eight that the theme has, so that they can be read in each. */

/** A run of text that looks alike; `style` is a list of class names. */
export interface ISpan {
  text: string;
  style: string;
}

// Control sequences: CSI, OSC (links, titles), and single characters after ESC. Only "CSI … m" is a colour.
// Other control characters (bells, nulls, backspaces) are nothing to be seen: a browser would draw a box for each.
const SEQUENCE =
  // eslint-disable-next-line no-control-regex
  /\x1b(?:\[([0-?]*)[ -/]*([@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_]?)|[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f]/g;
// eslint-disable-next-line no-control-regex
const CONTROL = /[\x00-\x08\x0b-\x1f\x7f-\x9f]/;
const NAMES = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white'];

/** Say whether there is more in a line than what is to be seen of it. */
export function hasControls(line: string): boolean {
  return CONTROL.test(line);
}

/** Remove control sequences and control characters. */
export function strip(line: string): string {
  return hasControls(line) ? line.replace(SEQUENCE, '') : line;
}

/** Split a line into runs. A line begins without colour, whatever the one before ended with. */
export function spans(line: string): ISpan[] {
  if (!hasControls(line)) {
    return [{ text: line, style: '' }];
  }
  const found: ISpan[] = [];
  const look = new Look();
  let at = 0;
  for (const match of line.matchAll(SEQUENCE)) {
    push(found, line.slice(at, match.index), look);
    at = (match.index ?? 0) + match[0].length;
    if (match[2] === 'm') {
      look.apply(match[1]);
    }
  }
  push(found, line.slice(at), look);
  return found;
}

/** Cut runs to the characters from `start` to `end`. */
export function cut(runs: ISpan[], start: number, end: number): ISpan[] {
  const found: ISpan[] = [];
  let at = 0;
  for (const run of runs) {
    const text = run.text.slice(Math.max(0, start - at), Math.max(0, end - at));
    if (text) {
      found.push({ text, style: run.style });
    }
    at += run.text.length;
  }
  return found;
}

function push(found: ISpan[], text: string, look: Look): void {
  if (text) {
    found.push({ text, style: look.style });
  }
}

class Look {
  get style(): string {
    const { _inverse: turned } = this;
    const ink = turned ? this._ground : this._ink;
    const ground = turned ? (this._ink ?? 'text') : this._ground;
    return [
      ink ? `jp-PaiAnsi-${ink}` : '',
      turned && ground === 'text' && !ink ? 'jp-PaiAnsi-paper' : '',
      ground ? `jp-PaiAnsi-on-${ground}` : '',
      ...[...this._marks].map(mark => `jp-PaiAnsi-${mark}`)
    ]
      .filter(Boolean)
      .join(' ');
  }

  apply(text: string): void {
    const codes = text === '' ? [0] : text.split(/[;:]/).map(Number);
    while (codes.length) {
      this._one(codes.shift() as number, codes);
    }
  }

  private _one(code: number, rest: number[]): void {
    const mark = MARKS[code];
    if (code === 0) {
      this._ink = this._ground = null;
      this._inverse = false;
      this._marks.clear();
    } else if (mark) {
      this._marks.add(mark);
    } else if (code === 7 || code === 27) {
      this._inverse = code === 7;
    } else if (code === 22) {
      this._marks.delete('bold');
      this._marks.delete('dim');
    } else if (code === 23 || code === 24 || code === 29) {
      this._marks.delete(MARKS[code - 20]);
    } else if (code === 38 || code === 48) {
      const name = extended(rest);
      if (code === 38) {
        this._ink = name;
      } else {
        this._ground = name;
      }
    } else if (code === 39) {
      this._ink = null;
    } else if (code === 49) {
      this._ground = null;
    } else if ((code >= 30 && code < 38) || (code >= 90 && code < 98)) {
      this._ink = NAMES[code % 10];
    } else if ((code >= 40 && code < 48) || (code >= 100 && code < 108)) {
      this._ground = NAMES[code % 10];
    }
  }

  private _ink: string | null = null;
  private _ground: string | null = null;
  private _inverse = false;
  private readonly _marks = new Set<string>();
}

const MARKS: Record<number, string> = { 1: 'bold', 2: 'dim', 3: 'italic', 4: 'underline', 9: 'strike' };

/** Take a colour of 256 or of 16 million from the codes; name the nearest of the eight. */
function extended(rest: number[]): string | null {
  const kind = rest.shift();
  if (kind === 2) {
    return nearest(rest.splice(0, 3));
  }
  if (kind !== 5) {
    return null;
  }
  const code = rest.shift() ?? 0;
  if (code < 16) {
    return NAMES[code % 8];
  }
  if (code >= 232) {
    return code < 244 ? 'black' : 'white';
  }
  const cube = code - 16;
  return nearest([Math.floor(cube / 36) * 51, (Math.floor(cube / 6) % 6) * 51, (cube % 6) * 51]);
}

function nearest([red = 0, green = 0, blue = 0]: number[]): string {
  const most = Math.max(red, green, blue);
  if (most < 60) {
    return 'black';
  }
  const bit = (value: number, weight: number): number => (value > most * 0.6 ? weight : 0);
  return NAMES[bit(red, 1) + bit(green, 2) + bit(blue, 4)];
}
