/**
 * All jobs that this page knows, kept up to date by one stream of events, whatever number of cards, lists and
 * counters look at them.
 */

import { ISignal, Signal } from '@lumino/signaling';

import { ApiError, IJob, IPage, isGone, isMissing, JobEvent } from './model';
import { isFinal } from './words';

/** Where jobs come from. */
export interface ISource {
  list(cursor: string | null): Promise<IPage>;
  get(id: string): Promise<IJob>;
  /**
   * Follow events after a number; resolves when the stream ends, rejects when it breaks.
   *
   * @param opened - called once the server has accepted the number.
   */
  follow(since: number, signal: AbortSignal, opened: () => void, take: (event: JobEvent) => void): Promise<void>;
}

/** `missing`: the Jupyter server has no part of ours. `lost`: it cannot be reached now. */
export type Connection = 'connecting' | 'live' | 'lost' | 'missing';

export interface IChange {
  id: string;
  /** The job as it is now; null if its record is gone. */
  job: IJob | null;
  /** Whether it ended just now, seen by this page. */
  ended: boolean;
}

/** How long to wait for a try, and how to be woken before; replaced in tests. */
export type Pause = (milliseconds: number, signal: AbortSignal) => Promise<void>;

const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 30_000;

/** Milliseconds to wait before the next try; jittered, so that many pages do not come at once. */
export function backOff(failures: number, random = Math.random): number {
  return Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** Math.min(failures, 10)) * (0.5 + random() / 2);
}

export class JobStore {
  constructor(
    private readonly source: ISource,
    private readonly pause: Pause = sleep
  ) {}

  /** A job changed, came or went. */
  get changed(): ISignal<this, IChange> {
    return this._changed;
  }

  get connectionChanged(): ISignal<this, Connection> {
    return this._connectionChanged;
  }

  /** The jobs were listed: at the start, and anew after a gap. */
  get listed(): ISignal<this, void> {
    return this._listed;
  }

  get connection(): Connection {
    return this._connection;
  }

  /** Whether there are earlier jobs than those listed. */
  get hasMore(): boolean {
    return this._next !== null;
  }

  /** All jobs known, latest first. */
  jobs(): IJob[] {
    return [...this._jobs.values()].sort(
      (a, b) => b.submittedAt.localeCompare(a.submittedAt) || b.id.localeCompare(a.id)
    );
  }

  get(id: string): IJob | undefined {
    return this._jobs.get(id);
  }

  /** How many jobs wait, and how many run. */
  counts(): { waiting: number; running: number } {
    const counts = { waiting: 0, running: 0 };
    for (const job of this._jobs.values()) {
      if (job.state === 'waiting' || job.state === 'running') {
        counts[job.state] += 1;
      }
    }
    return counts;
  }

  /** Begin to follow; asked twice, it follows once. */
  start(): void {
    if (!this._running) {
      this._running = true;
      void this._run();
    }
  }

  /** Try to connect now instead of after the pause; also changes over when the page was hidden or shown. */
  retry(): void {
    this._abort.abort();
    this._abort = new AbortController();
  }

  dispose(): void {
    this._disposed = true;
    this._abort.abort();
    Signal.clearData(this);
  }

  /** Learn of a job that a card shows, whether it is listed or not. Rejects as the source does. */
  async want(id: string): Promise<IJob> {
    this.start();
    this._wanted.add(id);
    return this._jobs.get(id) ?? this.refresh(id);
  }

  /** Ask for one job anew; an event that comes meanwhile is newer than the answer. */
  async refresh(id: string): Promise<IJob> {
    const before = this._versions.get(id) ?? 0;
    try {
      const job = await this.source.get(id);
      if ((this._versions.get(id) ?? 0) === before) {
        this._put(job);
      }
      return this._jobs.get(id) ?? job;
    } catch (error) {
      if (isGone(error)) {
        this._remove(id);
      }
      throw error;
    }
  }

  /** Take a job that an answer to a command has brought. */
  take(job: IJob): void {
    this._put(job);
  }

  /** Take note that a record was deleted. */
  forget(id: string): void {
    this._remove(id);
  }

  /** Read one more page of earlier jobs. */
  async more(): Promise<void> {
    if (this._next === null) {
      return;
    }
    const page = await this.source.list(this._next);
    this._next = page.next;
    for (const job of page.jobs) {
      if (!this._jobs.has(job.id)) {
        this._put(job);
      }
    }
    this._listed.emit();
  }

  private async _run(): Promise<void> {
    let failures = 0;
    while (!this._disposed) {
      const { signal } = this._abort;
      try {
        if (this._seq === null) {
          await this._list();
        }
        await this.source.follow(
          this._seq ?? 0,
          signal,
          () => this._connect('live'),
          event => {
            failures = 0;
            this._apply(event);
          }
        );
        failures = Math.max(failures, 1); // The engine has ended in good order; the next one is soon there.
      } catch (error) {
        if (error instanceof ApiError && error.status === 410) {
          this._seq = null; // Too old a number: what happened meanwhile is in the list.
        } else if (!signal.aborted) {
          this._connect(isMissing(error) ? 'missing' : 'lost');
        }
        failures += 1;
      }
      if (signal.aborted) {
        failures = 0;
      } else {
        await this.pause(this._connection === 'missing' ? LONGEST_PAUSE : backOff(failures - 1), signal);
      }
    }
  }

  private async _list(): Promise<void> {
    const page = await this.source.list(null);
    this._seq = page.seq;
    this._next = page.next;
    const known = new Set(page.jobs.map(job => job.id));
    const oldest = page.next === null ? '' : (page.jobs[page.jobs.length - 1]?.submittedAt ?? '');
    page.jobs.forEach(job => this._put(job));
    for (const job of this.jobs()) {
      if (known.has(job.id)) {
        continue;
      }
      if (!this._wanted.has(job.id) && job.submittedAt >= oldest) {
        this._remove(job.id); // It would be in the list if it still were there.
      } else {
        this.refresh(job.id).catch(() => undefined);
      }
    }
    this._connect('live');
    this._listed.emit();
  }

  private _apply(event: JobEvent): void {
    this._seq = event.seq;
    if (event.type === 'job') {
      this._put(event.job);
    } else if (event.type === 'deleted') {
      this._remove(event.id);
    }
  }

  private _put(job: IJob): void {
    const before = this._jobs.get(job.id);
    this._versions.set(job.id, (this._versions.get(job.id) ?? 0) + 1);
    this._jobs.set(job.id, job);
    const ended = before !== undefined && !isFinal(before.state) && isFinal(job.state);
    this._changed.emit({ id: job.id, job, ended });
  }

  private _remove(id: string): void {
    this._versions.set(id, (this._versions.get(id) ?? 0) + 1);
    this._jobs.delete(id);
    this._changed.emit({ id, job: null, ended: false });
  }

  private _connect(connection: Connection): void {
    if (connection !== this._connection) {
      this._connection = connection;
      this._connectionChanged.emit(connection);
    }
  }

  private readonly _jobs = new Map<string, IJob>();
  private readonly _versions = new Map<string, number>();
  private readonly _wanted = new Set<string>();
  private readonly _changed = new Signal<this, IChange>(this);
  private readonly _connectionChanged = new Signal<this, Connection>(this);
  private readonly _listed = new Signal<this, void>(this);
  private _connection: Connection = 'connecting';
  private _seq: number | null = null;
  private _next: string | null = null;
  private _abort = new AbortController();
  private _running = false;
  private _disposed = false;
}

/** Wait; end at once when aborted. */
export function sleep(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
