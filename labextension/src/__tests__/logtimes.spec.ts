import assert from 'node:assert/strict';
import { test } from 'node:test';

import { clock, fullTime, KnownTimes } from '../logtimes';

test('a line was written between two entries', () => {
  const known = new KnownTimes();
  assert.equal(known.at(0), undefined);
  known.take({ task: 'a-0', offsets: [10, 20, 30], times: [1000, 1250, 9000], until: 45 });
  assert.equal(known.at(9), undefined);
  assert.deepEqual(known.at(10), { since: 1000, before: 1250 });
  assert.deepEqual(known.at(29), { since: 1250, before: 9000 });
  assert.deepEqual(known.at(44), { since: 9000, before: null });
  assert.equal(known.at(45), undefined, 'not written when it was asked');
});

test('what comes later goes on with what is known', () => {
  const known = new KnownTimes();
  known.take({ task: 'a-0', offsets: [0, 10], times: [1000, 1250], until: 15 });
  known.take({ task: 'a-0', offsets: [10, 20], times: [1250, 1500], until: 25 });
  assert.deepEqual(known.at(5), { since: 1000, before: 1250 });
  assert.deepEqual(known.at(12), { since: 1250, before: 1500 });
  assert.deepEqual(known.at(24), { since: 1500, before: null });
});

test('a log without times says so', () => {
  const known = new KnownTimes();
  known.take({ task: 'a-0', offsets: [], times: [], until: 100 });
  assert.equal(known.at(50), null);
  assert.equal(known.at(100), undefined);
});

test('times are written in the zone of the browser', () => {
  const time = new Date(2026, 10, 30, 4, 5, 6, 7).getTime();
  assert.equal(clock(time), '04:05:06');
  assert.equal(fullTime(time), '2026-11-30 04:05:06.007');
});
