/**
 * When lines were written, from the server's time index.
 *
 * The index has an entry a quarter of a second after the last, so of a line is known between which two entries it was
 * written, and no more. It is read piece by piece, for what can be seen.
 */

import type { Api } from './api';
import type { ILogLine } from './linelinks';
import type { ITimes } from './model';

/** Between which times a line was written, in milliseconds since the epoch; `before` is not always known. */
export interface IWritten {
  since: number;
  before: number | null;
}

const TOGETHER_MILLISECONDS = 30;
const AGAIN_MILLISECONDS = 2000;
const MOST_PLACES = 40;

/** Entries of one task's index, as far as they are known. */
export class KnownTimes {
  private _pieces: ITimes[] = [];

  /** Return when a byte was written; null: the log has no times; undefined: it is not known yet. */
  at(offset: number): IWritten | null | undefined {
    const piece = this._pieces.find(each => (each.offsets[0] ?? 0) <= offset && offset < each.until);
    if (!piece) {
      return undefined;
    }
    const { offsets, times } = piece;
    if (!offsets.length) {
      return null;
    }
    let place = offsets.length - 1;
    while (place > 0 && offsets[place] > offset) {
      place -= 1;
    }
    return { since: times[place], before: times[place + 1] ?? this._after(offsets[place]) };
  }

  take(piece: ITimes): void {
    const first = piece.offsets[0] ?? 0;
    // The same beginning, known further now: what it said before is in it.
    this._pieces = this._pieces.filter(each => (each.offsets[0] ?? 0) < first || each.until > piece.until);
    this._pieces.push(piece);
  }

  private _after(offset: number): number | null {
    const later = this._pieces.flatMap(({ offsets, times }) =>
      offsets.flatMap((each, place) => (each > offset ? [[each, times[place]]] : []))
    );
    return later.length ? later.reduce((first, each) => (each[0] < first[0] ? each : first))[1] : null;
  }
}

export class LogTimes {
  /**
   * @param news - called when times have come that were asked for.
   */
  constructor(
    private readonly api: Api,
    private readonly id: string,
    private readonly news: () => void
  ) {}

  /** Return when a line was written; null: its log has no times; undefined: it is asked for now. */
  of(line: ILogLine): IWritten | null | undefined {
    const written = this._known(line).at(line.offset);
    if (written === undefined) {
      this._ask(line);
    }
    return written;
  }

  dispose(): void {
    this._abort.abort();
    clearTimeout(this._timer);
  }

  private _known({ attempt, task }: ILogLine): KnownTimes {
    const key = `${attempt} ${task}`;
    const known = this._times.get(key) ?? new KnownTimes();
    this._times.set(key, known);
    return known;
  }

  private _ask(line: ILogLine): void {
    const key = `${line.attempt} ${line.task}`;
    const wanted = this._wanted.get(key);
    if (!wanted || line.offset < wanted.offset) {
      this._wanted.set(key, line); // Entries from the first of the lines on hold for those after it.
    }
    if (!this._timer && !this._isAsking) {
      const pause = Math.max(TOGETHER_MILLISECONDS, this._notBefore - performance.now());
      this._timer = window.setTimeout(() => void this._send(), pause);
    }
  }

  private async _send(): Promise<void> {
    this._timer = 0;
    const [one] = this._wanted.values();
    const lines = [...this._wanted.values()].filter(line => line.attempt === one.attempt).slice(0, MOST_PLACES);
    this._wanted.clear(); // What is still wanted is asked for when it is drawn the next time.
    this._isAsking = true;
    try {
      const found = await this.api.logTimes(this.id, one.attempt, lines, this._abort.signal);
      found.forEach(piece => this._known({ ...one, task: piece.task }).take(piece));
      const got = lines.every(line => this._known(line).at(line.offset) !== undefined);
      this._notBefore = got ? 0 : performance.now() + AGAIN_MILLISECONDS;
    } catch {
      this._notBefore = performance.now() + AGAIN_MILLISECONDS; // Asked again with the next picture.
    }
    this._isAsking = false;
    if (!this._abort.signal.aborted) {
      this.news();
    }
  }

  private readonly _times = new Map<string, KnownTimes>();
  private readonly _wanted = new Map<string, ILogLine>();
  private readonly _abort = new AbortController();
  private _isAsking = false;
  private _notBefore = 0;
  private _timer = 0;
}

/** Write a time as hours, minutes and seconds of this browser's zone. */
export function clock(milliseconds: number): string {
  const date = new Date(milliseconds);
  return [date.getHours(), date.getMinutes(), date.getSeconds()].map(part => String(part).padStart(2, '0')).join(':');
}

/** Write a time in full, to the millisecond. */
export function fullTime(milliseconds: number): string {
  const date = new Date(milliseconds);
  const day = [date.getFullYear(), date.getMonth() + 1, date.getDate()];
  const words = day.map(part => String(part).padStart(2, '0')).join('-');
  return `${words} ${clock(milliseconds)}.${String(date.getMilliseconds()).padStart(3, '0')}`;
}
