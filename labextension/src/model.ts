/** What the job server says, as types. */

export type JobState = 'waiting' | 'running' | 'succeeded' | 'failed' | 'stopped';

export interface IRole {
  instances: number;
  states: Partial<Record<JobState, number>>;
}

/** A place in a notebook: the cell by its id, its number on the page or its count, and the line in it. */
export interface ICellPlace {
  notebook: string | null;
  cell?: number;
  run?: number;
  id?: string;
  line?: number;
}

export interface IFailedTask {
  role: string;
  index: number;
  code: number | null;
  signal: number | string | null;
  reason: string;
  lastLines: string[];
  message: string;
  place?: ICellPlace | null;
}

export interface IOutput {
  path: string;
  size: number;
}

/** How far a pull is: files and bytes of those that have to be copied. */
export interface IPulling {
  done: number;
  files: number;
  bytes: number;
  size: number;
}

/** What became of a pull: files copied with their bytes, and those that were there already. */
export interface IPulled {
  folder: string;
  brought: number;
  unchanged: number;
  size: number;
}

export interface IMetrics {
  last?: Record<string, number | string>;
  series?: Record<string, (number | null)[]>;
}

/** What a job uses now, all tasks together; `busy` from 0 to 1. */
export interface IUsage {
  tasks: number;
  cpu: number;
  memoryMB: number;
  gpu: { count: number; busy: number | null; memoryMB: number | null } | null;
}

export interface IPort {
  task: string;
  label: string;
  port: number;
  /** Below the Jupyter server's base URL. */
  path: string;
}

export interface IChanged {
  name: string;
  before?: unknown;
  after?: unknown;
}

/** What changed between two jobs. */
export interface IDifference {
  code: { path: string; change: string; message?: string; cells?: { cell?: number }[] }[];
  commands: IChanged[];
  parameters: IChanged[];
  environment: { known: boolean; packages?: IChanged[] };
  images: IChanged[];
  resources: IChanged[];
  data: IChanged[];
  results: { metrics: IChanged[] };
}

/** A job, as every screen shows it. Times are ISO 8601 in UTC. */
export interface IJob {
  id: string;
  name: string;
  shortName: string;
  profile: string;
  state: JobState;
  reason: string;
  message: string;
  advice: string;
  since: string | null;
  staleSince: string | null;
  submittedAt: string;
  startedAt: string | null;
  endedAt: string | null;
  host: string | null;
  mine: boolean;
  folder?: string | null;
  notebook: string | null;
  cell: { id?: string | null; number?: number | null } | null;
  packageSha256: string | null;
  attempt: number;
  taskTotal: number;
  roles: Record<string, IRole>;
  failedTask: IFailedTask | null;
  parameters: Record<string, unknown>;
  secretNames: string[];
  outputs: IOutput[];
  metrics: IMetrics;
  position: number | null;
  progress?: { unit: string; done: number; total: number; fraction: number; etaSeconds: number | null } | null;
  usage?: IUsage | null;
  ports?: Record<string, unknown>;
  group?: { id: string; name: string; key: string } | null;
}

export interface ITask {
  key: string;
  role: string;
  index: number;
  attempt: number;
  state: JobState;
  reason: string;
  message: string;
  code: number | null;
  signal: number | string | null;
  startedAt: string | null;
  endedAt: string | null;
  logSize: number;
}

/** A group of experiments, as every screen shows it. */
export interface IGroupView {
  id: string;
  name: string;
  state: JobState;
  message: string;
  counts: Partial<Record<JobState, number>>;
  total: number;
  profile: string | null;
  notebook: string | null;
  mine: boolean;
  host: string | null;
  submittedAt: string;
  endedAt: string | null;
}

export interface IPage {
  jobs: IJob[];
  next: string | null;
  seq: number;
}

export type JobEvent =
  | { seq: number; type: 'job'; job: IJob }
  | { seq: number; type: 'deleted'; id: string }
  | { seq: number; type: 'group'; group: IGroupView }
  | { seq: number; type: 'group-deleted'; id: string };

/** A piece of the merged log: whole lines of one task where possible. */
export interface IFrame {
  task: string;
  attempt: number;
  offset: number;
  text: string;
  cursor: string;
}

/** A line of the whole log that has a text searched for. */
export interface IHit {
  task: string;
  attempt: number;
  /** Where the line begins. */
  offset: number;
  text: string;
}

/** What a search at the server has found: how many lines, and the first of them. */
export interface IFound {
  lines: number;
  hits: IHit[];
  more: boolean;
}

/** Entries of the time index of a task's log: offsets, and when they were written (milliseconds since the epoch). */
export interface ITimes {
  task: string;
  offsets: number[];
  times: number[];
  /** Up to which offset they hold. */
  until: number;
}

/** Something that is wrong, or worth a word, with its place in the document. */
export interface IProblem {
  severity: 'error' | 'warning' | 'hint';
  code: string;
  message: string;
  hint?: string;
  path?: string;
  line?: number;
  column?: number;
  file?: string;
  cell?: number;
}

/** An answer of the job server that is not what was asked for. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly hint = '',
    readonly problems: IProblem[] = []
  ) {
    super(message);
  }
}

/** Whether the server itself lacks our part: what it does not know, it answers without our problem document. */
export function isMissing(error: unknown): boolean {
  return error instanceof ApiError && error.status === 404 && error.code === '';
}

/** Whether the job is not known (any more). */
export function isGone(error: unknown): boolean {
  return error instanceof ApiError && error.status === 404 && error.code !== '';
}
