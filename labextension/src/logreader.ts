/** Reads a log into lines while somebody looks, and goes on where it was after a pause or a break. */

import { Api, IPlace } from './api';
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
}

export class LogReader {
  constructor(
    private readonly api: Api,
    private readonly options: { id: string; task: string },
    private readonly tail: number | null,
    private readonly lines: LineStore,
    private readonly job: () => IJob | undefined,
    private readonly events: IReaderEvents
  ) {}

  /** Whether there are lines before those that were read. */
  isCut = false;

  /** Read on; asked twice, it reads once. */
  resume(): void {
    if (!this._abort && !this._done) {
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
    let first = this._cursor === null;
    await this.api.mergedLog(
      this.options.id,
      { cursor: this._cursor, tail: this.tail, follow: true },
      signal,
      frame => {
        if (signal.aborted) {
          return; // The rest of what was under way; it comes again after the cursor.
        }
        if (first) {
          first = false;
          this.isCut = frame.offset > 0;
          this.events.begun();
        }
        this._enter(frame.attempt);
        this._cursor = frame.cursor;
        this._take(frame.task, frame.text);
      }
    );
  }

  private async _one(signal: AbortSignal): Promise<void> {
    const { id, task } = this.options;
    const latest = this.job()?.attempt ?? 0;
    if (this._place && this._place.attempt < latest) {
      this._place = { attempt: latest, offset: 0 }; // That attempt's log was at its end.
    }
    let first = this._place === null;
    await this.api.taskLog(
      id,
      task,
      { place: this._place, tail: this.tail, follow: true },
      signal,
      (text, place, start) => {
        if (signal.aborted) {
          return;
        }
        if (first) {
          first = false;
          this.isCut = start > 0;
          this.events.begun();
        }
        this._enter(place.attempt);
        this._place = place;
        this._take(task, text);
      }
    );
  }

  private _enter(attempt: number): void {
    if (this._attempt !== null && attempt !== this._attempt) {
      this.lines.end();
      this.events.attempt(attempt);
    }
    this._attempt = attempt;
  }

  private _take(task: string, text: string): void {
    this._taken += text.length;
    this.lines.add(task, text);
    this.events.grown();
  }

  private _abort: AbortController | null = null;
  private _cursor: string | null = null;
  private _place: IPlace | null = null;
  private _attempt: number | null = null;
  private _taken = 0;
  private _done = false;
}
