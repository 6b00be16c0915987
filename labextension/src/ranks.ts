/**
 * Which lines of the merged log several tasks print alike.
 *
 * A task's line is a copy of an earlier one of another task if it has the same text and comes after the copy that the
 * task had last: so the lines of a loop that all tasks run are paired turn by turn.
 */

/** So many lines back a copy is still known as one. */
const REACH = 4000;

/** So many lines of one text are looked at; there are more only where one task says the same again and again. */
const MOST_TRIED = 64;

interface ILeader {
  line: number;
  task: number;
}

export class RankFolder {
  constructor(private readonly reach = REACH) {}

  /** The line that a line of a task is a copy of, or -1. */
  match(task: number, text: string): number {
    const leaders = this._leaders.get(text);
    const last = this._last[task] ?? -1;
    if (!leaders || leaders[leaders.length - 1].line <= last) {
      return -1;
    }
    let tried = 0;
    for (let at = after(leaders, last); at < leaders.length && tried < MOST_TRIED; at += 1, tried += 1) {
      if (leaders[at].task !== task) {
        this._last[task] = leaders[at].line;
        return leaders[at].line;
      }
    }
    return -1;
  }

  /** Take note of a line that is no copy. */
  lead(task: number, text: string, line: number): void {
    const leaders = this._leaders.get(text);
    if (leaders) {
      leaders.push({ line, task });
    } else {
      this._leaders.set(text, [{ line, task }]);
    }
    this._texts.push(text);
    if (this._texts.length - this._first > this.reach) {
      this._forget();
    }
  }

  clear(): void {
    this._leaders.clear();
    this._texts = [];
    this._last = [];
    this._first = 0;
  }

  private _forget(): void {
    const text = this._texts[this._first];
    this._first += 1;
    const leaders = this._leaders.get(text) as ILeader[];
    leaders.shift();
    if (!leaders.length) {
      this._leaders.delete(text);
    }
    if (this._first > this.reach) {
      this._texts = this._texts.slice(this._first);
      this._first = 0;
    }
  }

  private readonly _leaders = new Map<string, ILeader[]>();
  private _texts: string[] = [];
  private _first = 0;
  /** Of each task the line that its last copy is of. */
  private _last: number[] = [];
}

/** Place of the first leader after a line. */
function after(leaders: ILeader[], line: number): number {
  let low = 0;
  let high = leaders.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (leaders[middle].line > line) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}
