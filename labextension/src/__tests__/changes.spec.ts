import assert from 'node:assert/strict';
import { test } from 'node:test';

import { usageText } from '../cardtext';
import { changedText } from '../changes';
import { IJob } from '../model';
import { progress } from '../words';

const trans = { __: (text: string, value: unknown) => text.replace('%1', String(value)) } as never;

test('a change says both sides', () => {
  assert.equal(changedText({ name: 'lr', before: 0.1, after: 0.25 }), 'lr: 0.1 → 0.25');
  assert.equal(changedText({ name: 'epochs', after: 3 }), 'epochs: – → 3');
});

test('what a job uses is said with its units', () => {
  assert.equal(usageText(null, trans), '');
  assert.equal(usageText({ tasks: 2, cpu: 1.94, memoryMB: 512, gpu: null }, trans), '1.9 CPU · 512 MiB');
  const gpu = { count: 2, busy: 0.456, memoryMB: 3072 };
  assert.equal(
    usageText({ tasks: 2, cpu: 2, memoryMB: 2048, gpu }, trans),
    '2.0 CPU · 2.0 GiB · 2 × GPU 46 %, 3.0 GiB'
  );
});

test("the server's own progress goes before what the metrics say: cells of a notebook too", () => {
  const told = { unit: 'cell', done: 3, total: 10, fraction: 0.2, etaSeconds: null };
  const job = { metrics: { last: { epoch: 1, epochs: 5 } }, progress: told } as unknown as IJob;
  assert.deepEqual(progress(job), { name: 'cell', done: 3, total: 10, left: null });
  assert.deepEqual(progress({ ...job, progress: null }), { name: 'epoch', done: 1, total: 5 });
});
