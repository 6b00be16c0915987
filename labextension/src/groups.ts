/** Jobs and groups of experiments by the day of their submission, and filtered. */

import { IGroupView, IJob } from './model';

/** A row of the list: a job, or a group of experiments as one. */
export type Entry = IJob | IGroupView;

export function isGroup(entry: Entry): entry is IGroupView {
  return 'counts' in entry;
}

/** Jobs and groups, latest first; the jobs of a group are the group's own. */
export function entries(jobs: readonly IJob[], groups: IGroupView[]): Entry[] {
  const known = new Set(groups.map(group => group.id));
  const alone: Entry[] = jobs.filter(job => !job.group || !known.has(job.group.id));
  return [...alone, ...groups].sort(latestFirst);
}

/** Order by submission. Times are ISO 8601 in UTC, so their characters are in the order of time. */
export function latestFirst(a: Entry, b: Entry): number {
  const [one, other] = a.submittedAt === b.submittedAt ? [a.id, b.id] : [a.submittedAt, b.submittedAt];
  return one < other ? 1 : one > other ? -1 : 0;
}

export type Day = 'today' | 'yesterday' | 'week' | 'earlier';

export interface IGroup {
  day: Day;
  jobs: Entry[];
}

const DAY_MILLISECONDS = 86_400_000;

/** Group jobs, latest first, by day in local time; `week`: the six days before yesterday. */
export function byDay(jobs: Entry[], now: number): IGroup[] {
  const midnight = new Date(now).setHours(0, 0, 0, 0);
  const groups = new Map<Day, Entry[]>();
  for (const job of jobs) {
    const at = Date.parse(job.submittedAt);
    const day: Day =
      at >= midnight
        ? 'today'
        : at >= midnight - DAY_MILLISECONDS
          ? 'yesterday'
          : at >= midnight - 7 * DAY_MILLISECONDS
            ? 'week'
            : 'earlier';
    const members = groups.get(day);
    if (members) {
      members.push(job);
    } else {
      groups.set(day, [job]);
    }
  }
  return [...groups].map(([day, members]) => ({ day, jobs: members }));
}

/** Whether a job has all the words: in its name, profile, state or notebook. */
export function matches(job: Entry, filter: string): boolean {
  const reason = isGroup(job) ? Object.keys(job.counts).join(' ') : job.reason;
  const text = [job.name, job.profile, job.state, reason, job.notebook ?? ''].join(' ').toLowerCase();
  return filter
    .toLowerCase()
    .split(/\s+/)
    .every(word => text.includes(word));
}

/**
 * Make a notebook's path on the server one of the contents API, or null where it does not lie below the root.
 *
 * @param root - as the page's configuration has it: absolute, or beginning with `~` for the home of the server.
 */
export function contentsPath(notebook: string, root: string): string | null {
  const trimmed = root.replace(/\/+$/, '');
  if (!trimmed.startsWith('~')) {
    return notebook.startsWith(`${trimmed}/`) ? notebook.slice(trimmed.length + 1) : null;
  }
  const below = `${trimmed.slice(1)}/`;
  const home = /^\/(?:root|(?:home|Users)\/[^/]+|[^/]+\/[^/]+)(?=\/)/.exec(notebook)?.[0];
  if (home !== undefined && notebook.startsWith(home + below)) {
    return notebook.slice((home + below).length);
  }
  const at = below === '/' ? -1 : notebook.indexOf(below);
  return at < 0 ? null : notebook.slice(at + below.length);
}
