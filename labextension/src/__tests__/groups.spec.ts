import assert from 'node:assert/strict';
import { test } from 'node:test';

import { entries, matches } from '../groups';
import { IGroupView, IJob } from '../model';
import { Selection } from '../selection';
import { groupLine } from '../words';

const trans = { __: (text: string) => text, _n: (one: string) => one };

function job(id: string, group?: string, at = id): IJob {
  const of = group ? { id: group, name: group, key: id } : null;
  return {
    id,
    name: id,
    state: 'running',
    reason: '',
    profile: 'local',
    submittedAt: at,
    group: of
  } as unknown as IJob;
}

function group(id: string, at: string): IGroupView {
  const counts = { running: 2, waiting: 8, failed: 1, succeeded: 1 };
  return {
    id,
    name: id,
    state: 'running',
    counts,
    total: 12,
    profile: 'local',
    submittedAt: at
  } as unknown as IGroupView;
}

test('a group is one row in the place of its jobs', () => {
  const rows = entries([job('5'), job('4', 'g'), job('3', 'g'), job('1')], [group('g', '2')]);
  assert.deepEqual(
    rows.map(each => each.id),
    ['5', 'g', '1']
  );
});

test('a job of a group that is not known is a row of its own', () => {
  assert.deepEqual(
    entries([job('4', 'gone')], []).map(each => each.id),
    ['4']
  );
});

test('the line of a group counts its experiments', () => {
  assert.equal(groupLine(group('g', '2'), trans), '2 running · 8 waiting · 1 failed · 1 succeeded');
});

test('a group matches by its name and by the states within', () => {
  assert.ok(matches(group('sweep-lr', '2'), 'sweep failed'));
  assert.ok(!matches(group('sweep-lr', '2'), 'sweep stopped'));
});

test('rows are chosen as in a list of files', () => {
  const rows = ['a', 'b', 'c', 'd'];
  const selection = new Selection();
  selection.only('b');
  assert.deepEqual(selection.chosen, []);
  selection.range('d', rows);
  assert.deepEqual(selection.chosen, ['b', 'c', 'd']);
  selection.range('a', rows);
  assert.deepEqual(selection.chosen, ['a', 'b']);
  selection.toggle('d');
  assert.deepEqual(selection.chosen, ['a', 'b', 'd']);
  selection.toggle('a');
  assert.deepEqual(selection.chosen, ['b', 'd']);
  selection.keep(new Set(['d']));
  assert.deepEqual(selection.chosen, ['d']);
  selection.only('c');
  selection.toggle('a');
  assert.deepEqual(selection.chosen, ['c', 'a']);
  selection.clear();
  selection.all(rows);
  assert.equal(selection.chosen.length, 4);
});
