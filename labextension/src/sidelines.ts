/** The list of jobs as lines, from the top: days, jobs and groups, the jobs of open groups. */

import { byDay, Day, Entry, isGroup } from './groups';
import type { IJob } from './model';

export type SideLine =
  | { kind: 'day'; key: string; day: Day; count: number; isOpen: boolean }
  | { kind: 'entry'; key: string; entry: Entry; level: number; isOpen: boolean }
  | { kind: 'rest'; key: string; group: string };

/** What is open. */
export interface IOpenness {
  day(day: Day): boolean;
  group(id: string): boolean;
  /** The jobs of a group that are known. */
  members(group: string): IJob[];
  /** Whether there are jobs of a group that are not known. */
  hasMoreOf(group: string): boolean;
}

/** Return the lines of entries, which are in the order of the list. */
export function linesOf(entries: Entry[], now: number, open: IOpenness): SideLine[] {
  const lines: SideLine[] = [];
  for (const { day, jobs } of byDay(entries, now)) {
    const isOpen = open.day(day);
    lines.push({ kind: 'day', key: `day ${day}`, day, count: jobs.length, isOpen });
    for (const entry of isOpen ? jobs : []) {
      const isUnfolded = isGroup(entry) && open.group(entry.id);
      lines.push({ kind: 'entry', key: entry.id, entry, level: 1, isOpen: isUnfolded });
      if (isUnfolded) {
        for (const job of open.members(entry.id)) {
          lines.push({ kind: 'entry', key: job.id, entry: job, level: 2, isOpen: false });
        }
        if (open.hasMoreOf(entry.id)) {
          lines.push({ kind: 'rest', key: `rest ${entry.id}`, group: entry.id });
        }
      }
    }
  }
  return lines;
}

/** Heights of lines in pixels: so many lines of text of a font's size, and what is around them. */
export function heightsOf(lines: SideLine[], fontSize: number): number[] {
  const text = 1.5 * fontSize;
  const heights = { day: Math.ceil(text + 8), entry: Math.ceil(2 * text + 7), rest: Math.ceil(text + 4) };
  return lines.map(line => heights[line.kind]);
}

/**
 * What to show while the pointer is on the list: nothing moves below it, so what is new above the last job shown
 * has to wait.
 */
export function held(shown: Entry[], found: Entry[]): Entry[] {
  const known = new Set(shown.map(each => each.id));
  const oldest = shown[shown.length - 1];
  return found.filter(each => known.has(each.id) || each.submittedAt < oldest.submittedAt);
}
