/**
 * All jobs that this page knows, kept up to date by one stream of events, whatever number of cards, lists and
 * counters look at them.
 */

import { ISignal, Signal } from '@lumino/signaling';

import { latestFirst } from './groups';
import { ApiError, IGroupView, IJob, IPage, isGone, isMissing, JobEvent } from './model';
import { isFinal } from './words';

/** Where jobs come from. */
export interface ISource {
  /** Jobs by page, latest first: those of no group, or of one. */
  list(cursor: string | null, group?: string): Promise<IPage>;
  /** The latest groups of experiments. */
  groups(): Promise<IGroupView[]>;
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

export interface IGroupChange {
  id: string;
  /** The group as it is now; null if it is gone. */
  group: IGroupView | null;
  ended: boolean;
}

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

  /** A group changed, came or went. */
  get groupChanged(): ISignal<this, IGroupChange> {
    return this._groupChanged;
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
  jobs(): readonly IJob[] {
    this._sorted ??= [...this._jobs.values()].sort(latestFirst);
    return this._sorted;
  }

  /** All groups known, latest first. */
  groups(): IGroupView[] {
    return [...this._groups.values()].sort(latestFirst);
  }

  group(id: string): IGroupView | undefined {
    return this._groups.get(id);
  }

  /** The jobs of a group that are known, in the order of their keys. */
  members(group: string): IJob[] {
    const order = new Intl.Collator(undefined, { numeric: true });
    return this.jobs()
      .filter(job => job.group?.id === group)
      .sort((a, b) => order.compare(a.group?.key ?? '', b.group?.key ?? ''));
  }

  /** The job before this one of the same cell, or of the same notebook and name where no cell is known. */
  before(job: IJob): IJob | undefined {
    const same = (each: IJob): boolean =>
      job.cell?.id ? each.cell?.id === job.cell.id : !each.cell?.id && each.shortName === job.shortName;
    const earlier = (each: IJob): boolean => each.submittedAt < job.submittedAt && each.notebook === job.notebook;
    return job.notebook ? this.jobs().find(each => each.id !== job.id && earlier(each) && same(each)) : undefined;
  }

  /** Read the jobs of a group, or the next page of them; say whether there are more. */
  async openGroup(group: string): Promise<boolean> {
    const cursor = this._pages.get(group);
    if (cursor === null) {
      return false;
    }
    const page = await this.source.list(cursor ?? null, group);
    this._pages.set(group, page.next);
    page.jobs.filter(job => !this._jobs.has(job.id)).forEach(job => this._put(job));
    this._listed.emit();
    return page.next !== null;
  }

  /** Whether there are jobs of a group that were not read yet. */
  hasMoreOf(group: string): boolean {
    return this._pages.get(group) !== null;
  }

  takeGroup(group: IGroupView): void {
    const before = this._groups.get(group.id);
    this._groups.set(group.id, group);
    const ended = before !== undefined && !isFinal(before.state) && isFinal(group.state);
    this._groupChanged.emit({ id: group.id, group, ended });
  }

  forgetGroup(id: string): void {
    this._groups.delete(id);
    this._pages.delete(id);
    for (const job of this.members(id)) {
      this._remove(job.id);
    }
    this._groupChanged.emit({ id, group: null, ended: false });
  }

  get(id: string): IJob | undefined {
    return this._jobs.get(id);
  }

  /** How many jobs wait, and how many run. */
  counts(): { waiting: number; running: number } {
    const counts = { waiting: 0, running: 0 };
    for (const job of this._jobs.values()) {
      // Those of a group are counted by it: not all of them need be known.
      if ((job.state === 'waiting' || job.state === 'running') && !this._groups.has(job.group?.id ?? '')) {
        counts[job.state] += 1;
      }
    }
    for (const group of this._groups.values()) {
      counts.waiting += group.counts.waiting ?? 0;
      counts.running += group.counts.running ?? 0;
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
    // Read after the jobs: what happens to a group from here on comes as an event.
    const groups = await this.source.groups();
    this._seq = page.seq;
    this._next = page.next;
    const known = new Set(page.jobs.map(job => job.id));
    const oldest = page.next === null ? '' : (page.jobs[page.jobs.length - 1]?.submittedAt ?? '');
    page.jobs.forEach(job => this._put(job));
    this.groups()
      .filter(group => !groups.some(each => each.id === group.id))
      .forEach(group => this.forgetGroup(group.id));
    groups.forEach(group => this.takeGroup(group));
    this._pages.clear();
    for (const job of this.jobs()) {
      if (known.has(job.id)) {
        continue;
      }
      if (!this._wanted.has(job.id) && (job.group || job.submittedAt >= oldest)) {
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
    } else if (event.type === 'group') {
      this.takeGroup(event.group);
    } else if (event.type === 'group-deleted') {
      this.forgetGroup(event.id);
    }
  }

  private _put(job: IJob): void {
    const before = this._jobs.get(job.id);
    this._versions.set(job.id, (this._versions.get(job.id) ?? 0) + 1);
    this._jobs.set(job.id, job);
    this._sorted = null;
    const ended = before !== undefined && !isFinal(before.state) && isFinal(job.state);
    this._changed.emit({ id: job.id, job, ended });
  }

  private _remove(id: string): void {
    this._versions.set(id, (this._versions.get(id) ?? 0) + 1);
    this._jobs.delete(id);
    this._sorted = null;
    this._changed.emit({ id, job: null, ended: false });
  }

  private _connect(connection: Connection): void {
    if (connection !== this._connection) {
      this._connection = connection;
      this._connectionChanged.emit(connection);
    }
  }

  private readonly _jobs = new Map<string, IJob>();
  /** All jobs, latest first, until one changes. */
  private _sorted: readonly IJob[] | null = null;
  private readonly _groups = new Map<string, IGroupView>();
  /** Of each group that was opened, where its next page of jobs begins; null: all were read. */
  private readonly _pages = new Map<string, string | null>();
  private readonly _groupChanged = new Signal<this, IGroupChange>(this);
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
