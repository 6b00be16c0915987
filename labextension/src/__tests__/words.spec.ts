import assert from 'node:assert/strict';
import { test } from 'node:test';

import { byDay, contentsPath, matches } from '../groups';
import { IJob } from '../model';
import { byName, hasEvents, pullFolder } from '../outputs';
import { duration, measured, number, placedReason, progress, size, stateLine, wholeDuration } from '../words';

const trans = {
  __: (text: string, ...args: unknown[]) =>
    args.reduce<string>((said, arg, at) => said.replace(`%${at + 1}`, `${arg}`), text),
  _n: (one: string, many: string, count: number) => (count === 1 ? one : many)
};

function job(parts: Partial<IJob>): IJob {
  return {
    id: 'i',
    name: 'mnist-k3f9qd',
    profile: 'local',
    state: 'running',
    reason: '',
    message: '',
    submittedAt: '2026-11-29T10:00:00.000Z',
    startedAt: '2026-11-29T10:00:00.000Z',
    endedAt: null,
    roles: { worker: { instances: 4, states: { running: 3, waiting: 1 } } },
    metrics: {},
    ...parts
  } as unknown as IJob;
}

test('the words of the command line', () => {
  assert.deepEqual([0.42, 41, 192, 7500, 200_000].map(duration), [
    '0.4 s',
    '41 s',
    '3 min 12 s',
    '2 h 5 min',
    '2 d 7 h'
  ]);
  assert.equal(wholeDuration(0.4), '0 s');
  assert.deepEqual([17, 212_000, 1_234_567_890].map(size), ['17 B', '212 kB', '1.2 GB']);
  assert.deepEqual([0.14334, 20, 'adam', true, 1e-5].map(number), ['0.1433', '20', 'adam', 'true', '0.00001']);
});

test('progress where a counter has its total', () => {
  const found = job({ metrics: { last: { epoch: 7, epochs: 20, loss: 0.1 } } });
  assert.deepEqual(progress(found), { name: 'epoch', done: 7, total: 20 });
  assert.deepEqual(measured(found), ['loss']);
  assert.equal(progress(job({ metrics: { last: { epoch: 7 } } })), null);
});

test('the line of a row', () => {
  const now = Date.parse('2026-11-29T10:03:12.000Z');
  assert.equal(
    stateLine(job({ metrics: { last: { epoch: 7, epochs: 20 } } }), now, trans),
    '3/4 · epoch 7/20 · 3 min 12 s'
  );
  const waiting = job({ state: 'waiting', reason: 'queued', since: '2026-11-29T10:03:00.000Z' });
  assert.equal(stateLine(waiting, now, trans), 'in the queue · 12 s');
  const done = job({ state: 'succeeded', endedAt: '2026-11-29T10:00:41.000Z', metrics: { last: { acc: 0.961 } } });
  assert.equal(stateLine(done, now, trans), '41 s · acc 0.961');
});

test('groups by day, in the order of the jobs', () => {
  const now = new Date(2026, 10, 29, 12).getTime();
  const at = (days: number): IJob => job({ submittedAt: new Date(now - days * 86_400_000).toISOString() });
  assert.deepEqual(
    byDay([at(0), at(0.2), at(1), at(3), at(30)], now).map(({ day, jobs }) => [day, jobs.length]),
    [
      ['today', 2],
      ['yesterday', 1],
      ['week', 1],
      ['earlier', 1]
    ]
  );
});

test('a filter wants all its words', () => {
  assert.ok(matches(job({}), 'MNIST local'));
  assert.ok(matches(job({}), 'running'));
  assert.ok(!matches(job({}), 'mnist failed'));
});

test('a notebook is found below the root of the server', () => {
  assert.equal(contentsPath('/data/nb/a/b.ipynb', '/data/nb'), 'a/b.ipynb');
  assert.equal(contentsPath('/data/nb/a/b.ipynb', '/data/n'), null);
  assert.equal(contentsPath('/home/amy/work/b.ipynb', '~/work'), 'b.ipynb');
  assert.equal(contentsPath('/home/amy/b.ipynb', '~'), 'b.ipynb');
  assert.equal(contentsPath('/root/b.ipynb', '~/'), 'b.ipynb');
  assert.equal(contentsPath('/nfs/h/amy/work/b.ipynb', '~/work'), 'b.ipynb');
});

test('a place in a queue is said once', () => {
  const waiting = (message: string): string =>
    placedReason(job({ state: 'waiting', reason: 'queued', message, position: 1 }), trans);
  assert.equal(waiting(''), 'in the queue · position 1');
  for (const said of [
    'it waits in queue `team` at place 1: 2 more CPU',
    "Number 2 in this machine's queue, waiting for 1 job."
  ]) {
    assert.equal(waiting(said), said);
  }
  assert.equal(placedReason(job({ reason: '', message: '', position: 1 }), trans), '');
});

test('outputs are pulled beside the notebook, as the command line does', () => {
  const of = (notebook: string | null, folder: string | null): string =>
    pullFolder(job({ notebook, folder, name: 'mnist-k3f9qd' }), '/home/ann/work');
  assert.equal(of('/home/ann/work/digits/train.ipynb', '/tmp'), 'digits/mnist-k3f9qd');
  assert.equal(of('/home/ann/work/train.ipynb', null), 'mnist-k3f9qd');
  assert.equal(of(null, '/home/ann/work'), 'mnist-k3f9qd');
  assert.equal(of(null, '/home/ann/work/digits'), 'digits/mnist-k3f9qd');
  assert.equal(of('/elsewhere/train.ipynb', '/elsewhere'), 'mnist-k3f9qd');
  assert.equal(of(null, null), 'mnist-k3f9qd');
});

test('files of events are told by their names', () => {
  const file = (path: string): { path: string; size: number } => ({ path, size: 1 });
  assert.ok(hasEvents([file('worker-0/model'), file('worker-0/runs/events.out.tfevents.17.host.3')]));
  assert.ok(!hasEvents([file('tfevents/readme.md')]));
});

test('outputs are in the order of the numbers in their names', () => {
  const files = ['w/epoch-10/a', 'w/epoch-9/a', 'w/Log', 'w/epoch-1/b'].map(path => ({ path, size: 1 }));
  const sorted = files.sort(byName).map(file => file.path);
  assert.deepEqual(sorted, ['w/epoch-1/b', 'w/epoch-9/a', 'w/epoch-10/a', 'w/Log']);
});
