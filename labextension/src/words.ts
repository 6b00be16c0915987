/**
 * Numbers, times and states in the words that every screen uses; the same as in the command line and the snapshots.
 */

import type { IGroupView, IJob, JobState } from './model';

export const ICONS: Record<JobState, string> = {
  waiting: '○',
  running: '●',
  succeeded: '✓',
  failed: '✕',
  stopped: '■'
};

/** The part of a translation bundle that words need. */
export interface ITranslate {
  __(text: string, ...args: unknown[]): string;
  _n(one: string, many: string, count: number, ...args: unknown[]): string;
}

export function isFinal(state: JobState): boolean {
  return state === 'succeeded' || state === 'failed' || state === 'stopped';
}

/** Say a time span with at most two units: `3 min 12 s`. */
export function duration(seconds: number): string {
  if (seconds > 0 && seconds < 9.95) {
    return `${Math.max(seconds, 0.1).toFixed(1)} s`;
  }
  return wholeDuration(seconds);
}

/** Say a time span that ticks: without tenths, so that its width stays. */
export function wholeDuration(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  const parts: [number, string][] = [
    [Math.floor(whole / 86400), 'd'],
    [Math.floor(whole / 3600) % 24, 'h'],
    [Math.floor(whole / 60) % 60, 'min'],
    [whole % 60, 's']
  ];
  const first = parts.findIndex(([count]) => count > 0);
  const said = parts
    .slice(first < 0 ? 3 : first, (first < 0 ? 3 : first) + 2)
    .filter(([count]) => count > 0)
    .map(([count, unit]) => `${count} ${unit}`);
  return said.join(' ') || '0 s';
}

/** Say a number of bytes: `212 kB`. */
export function size(bytes: number): string {
  let value = bytes;
  let unit = 'B';
  for (const larger of ['kB', 'MB', 'GB', 'TB']) {
    if (value < 999.5) {
      break;
    }
    value /= 1000;
    unit = larger;
  }
  return unit === 'B' || value >= 10 ? `${value.toFixed(0)} ${unit}` : `${value.toFixed(1)} ${unit}`;
}

/** Say a metric or a parameter: four significant digits for a fraction. */
export function number(value: unknown): string {
  if (typeof value !== 'number') {
    return typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
  }
  return Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(4)));
}

/** Milliseconds since the epoch of a time of the API; null where there is none. */
export function moment(text: string | null | undefined): number | null {
  const found = text ? Date.parse(text) : NaN;
  return Number.isNaN(found) ? null : found;
}

/** Seconds that a job waits, runs or ran. */
export function elapsed(job: IJob, now: number): number | null {
  const start = moment(job.state === 'waiting' ? (job.since ?? job.submittedAt) : (job.startedAt ?? job.submittedAt));
  return start === null ? null : ((moment(job.endedAt) ?? now) - start) / 1000;
}

/** Say how long a job waits, runs or ran. */
export function elapsedWords(job: IJob, now: number, trans: ITranslate): string {
  const seconds = elapsed(job, now);
  if (seconds === null) {
    return '';
  }
  const said = isFinal(job.state) ? duration(seconds) : wholeDuration(seconds);
  return job.state === 'failed' || job.state === 'stopped' ? trans.__('after %1', said) : said;
}

/** Say why a job is in its state: its message, else the reason in words. */
export function reason(job: IJob, trans: ITranslate): string {
  const reasons: Record<string, string> = {
    submitting: trans.__('being submitted'),
    queued: trans.__('in the queue'),
    unschedulable: trans.__('no machine has room for it'),
    image: trans.__('the image is being pulled'),
    building: trans.__('the image is being built'),
    starting: trans.__('tasks are starting'),
    'partial-gang': trans.__('some tasks have no room yet'),
    'retry-delay': trans.__('waits before the next attempt'),
    secret: trans.__('a secret has to be given again'),
    stopping: trans.__('being stopped'),
    finishing: trans.__('outputs are being collected'),
    user: trans.__('the command failed'),
    'out-of-memory': trans.__('ran out of memory'),
    preempted: trans.__('had to make room for another job'),
    deadline: trans.__('ran into its time limit'),
    lost: trans.__('the profile no longer knows this job'),
    'machine-restarted': trans.__('the machine was restarted')
  };
  const code = job.reason || '';
  const cell = job.cell?.number ? trans.__('cell %1', job.cell.number) : trans.__('the cell');
  // The entry file has the line numbers of its cell.
  const said = (job.message || '').replace('`.paijob/cell.py`', cell);
  return said || reasons[code] || code.replace(/-/g, ' ');
}

/** A message that says the place in the queue itself, in the words of a backend. */
const SAYS_PLACE = /\bposition\b|\bat place \d|\bNumber \d+ in /;

/** Say why a job waits, with its place in the queue said once. */
export function placedReason(job: IJob, trans: ITranslate): string {
  const said = reason(job, trans);
  const place = job.state === 'waiting' && job.position !== null && !SAYS_PLACE.test(said);
  return [said, place ? trans.__('position %1', job.position) : ''].filter(Boolean).join(' · ');
}

/** Say the state as a word. */
export function stateWord(state: JobState, trans: ITranslate): string {
  const said: Record<JobState, string> = {
    waiting: trans.__('waiting'),
    running: trans.__('running'),
    succeeded: trans.__('succeeded'),
    failed: trans.__('failed'),
    stopped: trans.__('stopped')
  };
  return said[state] ?? state;
}

/** Say the roles: ready of all while there is something to be ready for, else how many there were. */
export function roles(job: IJob): string[] {
  return Object.entries(job.roles ?? {}).map(([name, role]) => {
    if (isFinal(job.state)) {
      return `${name} ×${role.instances}`;
    }
    const ready = (role.states.running ?? 0) + (role.states.succeeded ?? 0);
    return `${name} ${ready}/${role.instances}`;
  });
}

/** How far a job says it is, where it reports a counter with its total (`epoch` and `epochs`). */
export interface IProgress {
  name: string;
  done: number;
  total: number;
  /** Seconds that the server expects; null where it does not know. */
  left?: number | null;
}

const COUNTERS = ['epoch', 'step', 'iteration', 'batch'];

export function progress(job: IJob): IProgress | null {
  if (job.progress) {
    const { unit, done, total, etaSeconds } = job.progress;
    return { name: unit, done, total, left: etaSeconds };
  }
  const last = job.metrics?.last ?? {};
  for (const name of COUNTERS) {
    const done = last[name];
    const total = last[`${name}s`];
    if (typeof done === 'number' && typeof total === 'number' && done > 0 && done <= total) {
      return { name, done, total };
    }
  }
  return null;
}

/** Names of the metrics that are measured, not counted. */
export function measured(job: IJob): string[] {
  const last = job.metrics?.last ?? {};
  const counters = COUNTERS.filter(name => name in last);
  return Object.keys(last).filter(name => !counters.includes(name) && !counters.includes(name.replace(/s$/, '')));
}

/** Say the reason as part of a line of plain text. */
export function plainReason(job: IJob, trans: ITranslate): string {
  return reason(job, trans).replace(/`/g, '').replace(/\.$/, '');
}

/** The one line of a job's state, for a row in a list. */
export function stateLine(job: IJob, now: number, trans: ITranslate): string {
  const time = elapsedWords(job, now, trans);
  if (job.state === 'waiting') {
    return [plainReason(job, trans), time].filter(Boolean).join(' · ');
  }
  if (job.state === 'running') {
    const far = progress(job);
    const all = Object.values(job.roles ?? {});
    const ready = all.reduce((sum, role) => sum + (role.states.running ?? 0) + (role.states.succeeded ?? 0), 0);
    const of = all.reduce((sum, role) => sum + role.instances, 0);
    return [
      job.reason ? plainReason(job, trans) : '',
      `${ready}/${of}`,
      far ? `${far.name} ${far.done}/${far.total}` : '',
      time
    ]
      .filter(Boolean)
      .join(' · ');
  }
  if (job.state === 'succeeded') {
    const name = measured(job)[0];
    return [time, name ? `${name} ${number(job.metrics?.last?.[name])}` : ''].filter(Boolean).join(' · ');
  }
  return [plainReason(job, trans), time].filter(Boolean).join(' · ');
}

/** The one line of a group: how many of its experiments are in each state. */
export function groupLine(group: IGroupView, trans: ITranslate): string {
  const states: JobState[] = ['running', 'waiting', 'failed', 'succeeded', 'stopped'];
  return states
    .filter(state => group.counts[state])
    .map(state => `${group.counts[state]} ${stateWord(state, trans)}`)
    .join(' · ');
}
