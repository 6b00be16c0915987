/** Reads a log into lines while somebody looks, and goes on where it was after a pause or a break. */

import { Api, IPlace } from './api';
import { byteLength } from './fold';
import type { ILogLine } from './linelinks';
import type { LineStore } from './lines';
import { ApiError, IJob } from './model';
import { backOff, sleep } from './store';
import { isFinal } from './words';

export interface IReaderEvents {
  /** Lines have come. */
  grown(): void;
  /** The first answer is there. */
  begun(): void;
  /** Nothing more will come. */
  ended(): void;
  /** It cannot be read; it will be tried again if the server only cannot be reached. */
  broken(error: unknown): void;
  /** From here on the lines are those of another attempt. */
  attempt(number: number): void;
  /** It has read enough for now. */
  stopped(): void;
}

/** Where reading begins: at the last lines, at the start (null), or somewhat before a line. */
export type From = { tail: number | null } | { line: ILogLine };

/** So many characters are read after a line that somebody went to; more when they are wanted. */
const STEP = 3_000_000;
/** Bytes before a line that are read with it, as the server does it for the merged log. */
const BEFORE = 32 * 1024;

export class LogReader {
  constructor(
    private readonly api: Api,
    private readonly options: { id: string; task: string },
    private readonly from: From,
    private readonly lines: LineStore,
    private readonly job: () => IJob | undefined,
    private readonly events: IReaderEvents
  ) {
    this._most = 'line' in from ? STEP : Infinity;
  }

  /** Whether there are lines before those that were read. */
  isCut = false;

  /** Whether there are lines after those that were read, which nobody has asked for yet. */
  get isStopped(): boolean {
    return this._taken >= this._most;
  }

  /** Read the next part after it has stopped. */
  readOn(): void {
    if (this.isStopped) {
      this._most = this._taken + STEP;
      this.resume();
    }
  }

  /** Read on; asked twice, it reads once. */
  resume(): void {
    if (!this._abort && !this._done && !this.isStopped) {
      this._abort = new AbortController();
      void this._run(this._abort.signal);
    }
  }

  pause(): void {
    this._abort?.abort();
    this._abort = null;
  }

  private async _run(signal: AbortSignal): Promise<void> {
    let failures = 0;
    while (!signal.aborted) {
      const before = this._taken;
      try {
        await (this.options.task ? this._one(signal) : this._all(signal));
        if (this._isOver()) {
          this._done = true;
          this.lines.end();
          this.events.ended();
          return;
        }
      } catch (error) {
        if (signal.aborted) {
          return;
        }
        this.events.broken(error);
        if (error instanceof ApiError && error.status < 500) {
          return;
        }
      }
      failures = this._taken > before ? 0 : failures + 1;
      await sleep(backOff(failures), signal);
    }
  }

  /** Whether what ended by itself is at its end: the job is final, and no further attempt has begun. */
  private _isOver(): boolean {
    const job = this.job();
    return !job || isFinal(job.state);
  }

  private async _all(signal: AbortSignal): Promise<void> {
    // What a task's log has before the first that comes of it is not here.
    const begun = this._cursor === null ? new Set<string>() : null;
    await this.api.mergedLog(this.options.id, { cursor: this._cursor, ...this.from, follow: true }, signal, frame => {
      if (signal.aborted) {
        return; // The rest of what was under way; it comes again after the cursor.
      }
      if (begun && !begun.has(frame.task)) {
        this.isCut ||= frame.offset > 0 || (begun.size === 0 && frame.attempt > 0);
        begun.add(frame.task);
        this.events.begun();
      }
      this._enter(frame.attempt);
      this._cursor = frame.cursor;
      this._take(frame.task, frame.text, frame.offset);
    });
  }

  private async _one(signal: AbortSignal): Promise<void> {
    const { id, task } = this.options;
    const latest = this.job()?.attempt ?? 0;
    if (this._place && this._place.attempt < latest) {
      this._place = { attempt: latest, offset: 0 }; // That attempt's log was at its end.
    }
    const isFirst = this._place === null;
    let place = this._place;
    let skips = false;
    if (!place && 'line' in this.from) {
      const { attempt, offset } = this.from.line;
      place = { attempt, offset: Math.max(0, offset - BEFORE) };
      skips = place.offset > 0; // It begins within a line; the one that is wanted begins after its end.
    }
    await this.api.taskLog(
      id,
      task,
      {
        place,
        tail: 'tail' in this.from ? this.from.tail : null,
        follow: true
      },
      signal,
      (text, begin, end) => {
        if (signal.aborted) {
          return;
        }
        this._enter(end.attempt);
        this._place = end;
        if (skips) {
          const rest = text.slice(text.indexOf('\n') + 1);
          skips = !text.includes('\n');
          if (!skips) {
            this._take(task, rest, end.offset - byteLength(rest));
          }
        } else {
          this._take(task, text, begin);
        }
      },
      start => {
        if (isFirst) {
          this.isCut = start > 0;
          this.events.begun();
        }
      }
    );
  }

  private _enter(attempt: number): void {
    if (attempt !== this._attempt) {
      this.lines.begin(attempt);
      if (this._attempt !== null) {
        this.events.attempt(attempt);
      }
    }
    this._attempt = attempt;
  }

  private _take(task: string, text: string, offset: number): void {
    this._taken += text.length;
    this.lines.add(task, text, offset);
    this.events.grown();
    if (this.isStopped) {
      this.pause();
      this.events.stopped();
    }
  }

  private _abort: AbortController | null = null;
  private _cursor: string | null = null;
  private _place: IPlace | null = null;
  private _attempt: number | null = null;
  private _taken = 0;
  /** After so many characters it stops. */
  private _most: number;
  private _done = false;
}
