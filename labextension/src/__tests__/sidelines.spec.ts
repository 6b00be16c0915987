import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Entry, entries } from '../groups';
import { IGroupView, IJob } from '../model';
import { heightsOf, held, IOpenness, linesOf } from '../sidelines';

const NOW = Date.parse('2026-11-30T12:00:00Z');

function job(id: string, submittedAt: string, group?: string): IJob {
  const of = group ? { id: group, name: group, key: id } : null;
  return { id, name: id, state: 'running', submittedAt, group: of } as unknown as IJob;
}

function group(id: string, submittedAt: string): IGroupView {
  return { id, name: id, state: 'running', counts: {}, submittedAt } as unknown as IGroupView;
}

const CLOSED: IOpenness = { day: () => true, group: () => false, members: () => [], hasMoreOf: () => false };
const keys = (lines: { key: string }[]): string[] => lines.map(line => line.key);

test('days, jobs and the jobs of an open group, from the top', () => {
  const members = [job('m1', '2026-11-30T10:00:00Z', 'g'), job('m2', '2026-11-30T10:00:01Z', 'g')];
  const found = entries(
    [job('a', '2026-11-30T11:00:00Z'), job('old', '2026-10-01T00:00:00Z'), ...members],
    [group('g', '2026-11-30T10:30:00Z')]
  );
  assert.deepEqual(keys(linesOf(found, NOW, CLOSED)), ['day today', 'a', 'g', 'day earlier', 'old']);
  const open = { ...CLOSED, group: () => true, members: () => members, hasMoreOf: () => true };
  const lines = linesOf(found, NOW, { ...open, day: day => day === 'today' });
  assert.deepEqual(keys(lines), ['day today', 'a', 'g', 'm1', 'm2', 'rest g', 'day earlier']);
  assert.deepEqual(
    lines.flatMap(line => (line.kind === 'entry' ? [line.level] : [])),
    [1, 1, 2, 2]
  );
});

test('heights follow the size of the text', () => {
  const lines = linesOf([job('a', '2026-11-30T11:00:00Z')], NOW, CLOSED);
  assert.deepEqual(heightsOf(lines, 13), [28, 46]);
  assert.deepEqual(heightsOf(lines, 26), [47, 85]);
});

test('below the pointer nothing moves: new jobs wait, earlier ones come', () => {
  const shown: Entry[] = [job('b', '2026-11-30T11:00:00Z'), job('a', '2026-11-30T10:00:00Z')];
  const found: Entry[] = [
    job('new', '2026-11-30T11:30:00Z'),
    job('b', '2026-11-30T11:00:00Z'),
    job('a', '2026-11-30T10:00:00Z'),
    job('earlier', '2026-11-29T10:00:00Z')
  ];
  assert.deepEqual(
    held(shown, found).map(each => each.id),
    ['b', 'a', 'earlier']
  );
});

test('five thousand jobs are as many lines', () => {
  const many = Array.from({ length: 5000 }, (_, at) => job(`j${at}`, new Date(NOW - at * 1000).toISOString()));
  const lines = linesOf(entries(many, []), NOW, CLOSED);
  assert.equal(lines.filter(line => line.kind === 'entry').length, 5000);
});
