import assert from 'node:assert/strict';
import { test } from 'node:test';

import { IJob } from '../model';
import { cellIndex, notebookOf, placeIn } from '../places';

const JOB = { notebook: '/home/x/work/train.ipynb', cell: { id: 'abc', number: 4 } } as unknown as IJob;

test('a traceback of an exported cell names notebook, cell and line', () => {
  const text = '  File "train.ipynb[cell 4]", line 2, in <module>';
  const found = placeIn(text, JOB);
  assert.deepEqual(found?.place, { notebook: 'train.ipynb', cell: 4, line: 2 });
  assert.equal(text.slice(found?.start, found?.end), 'File "train.ipynb[cell 4]", line 2');
});

test('counts stand for cells where the file was not known', () => {
  assert.deepEqual(placeIn('File "notebook[In 7]", line 1', JOB)?.place, { notebook: null, run: 7, line: 1 });
});

test('the file of a cell is the cell that submitted', () => {
  const text = '  File "/data/jobs/j/tasks/worker-0/0/work/.paijob/cell.py", line 12, in f';
  assert.deepEqual(placeIn(text, JOB)?.place, { notebook: null, id: 'abc', cell: 4, line: 12 });
  assert.equal(placeIn(text, { ...JOB, cell: null }), null);
});

test('other files and words are no places', () => {
  for (const text of ['File "/usr/lib/python3/x.py", line 3', 'File "a[b].py", line 1', 'cell 4, line 2', '']) {
    assert.equal(placeIn(text, JOB), null);
  }
});

test('another notebook of the package lies beside the one that submitted', () => {
  assert.equal(notebookOf(JOB, { notebook: 'other.ipynb', line: 1 }), '/home/x/work/other.ipynb');
  assert.equal(notebookOf(JOB, { notebook: '../../etc/x.ipynb', line: 1 }), '/home/x/work/train.ipynb');
  assert.equal(notebookOf(JOB, null), '/home/x/work/train.ipynb');
  assert.equal(notebookOf({ ...JOB, notebook: null }, null), null);
});

test('a cell is found by its id, wherever it has moved to, else by number or count', () => {
  const cells = [{ id: 'x' }, { id: 'abc', executionCount: 7 }, { id: 'y' }];
  assert.equal(cellIndex(cells, { notebook: null, id: 'abc', cell: 3, line: 1 }), 1);
  assert.equal(cellIndex(cells, { notebook: null, id: 'gone', cell: 3, line: 1 }), 2);
  assert.equal(cellIndex(cells, { notebook: null, run: 7, line: 1 }), 1);
  assert.equal(cellIndex(cells, { notebook: null, cell: 9, line: 1 }), -1);
});
