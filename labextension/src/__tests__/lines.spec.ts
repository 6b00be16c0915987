import assert from 'node:assert/strict';
import { test } from 'node:test';

import { LineStore, rowsOf } from '../lines';

/** A small generator, so that a failing case can be had again. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

function texts(store: LineStore, columns: number): string[] {
  return store.rows(0, store.rowCount(columns), columns).map(row => {
    const start = row.piece * columns;
    return columns ? row.text.slice(start, start + columns) : row.text;
  });
}

test('rows of a line', () => {
  assert.equal(rowsOf(0, 10), 1);
  assert.equal(rowsOf(10, 10), 1);
  assert.equal(rowsOf(11, 10), 2);
  assert.equal(rowsOf(1000, 0), 1);
});

test('lines of tasks keep their order; unfinished ones come last', () => {
  const store = new LineStore();
  store.add('a-0', 'one\ntw');
  store.add('b-0', 'other\n');
  assert.deepEqual(
    store.rows(0, 9, 0).map(row => [row.task, row.text]),
    [
      [0, 'one'],
      [1, 'other'],
      [0, 'tw']
    ]
  );
  store.add('a-0', 'o\n');
  assert.deepEqual(texts(store, 0), ['one', 'other', 'two']);
  assert.equal(store.lineCount, 3);
});

test('any stretch of rows is that of the whole, wrapped or not', () => {
  const next = random(7);
  const store = new LineStore();
  const lines = Array.from({ length: 5000 }, (_, at) => `${at} ${'x'.repeat(Math.floor(next() * 90))}`);
  store.add('a-0', lines.join('\n') + '\n');
  for (const columns of [0, 20, 33]) {
    const all = columns ? lines.flatMap(line => line.match(new RegExp(`.{1,${columns}}`, 'g')) ?? ['']) : lines;
    assert.equal(store.rowCount(columns), all.length);
    for (let round = 0; round < 50; round += 1) {
      const first = Math.floor(next() * all.length);
      const found = store.rows(first, 40, columns);
      assert.deepEqual(
        found.map(row => (columns ? row.text.slice(row.piece * columns, (row.piece + 1) * columns) : row.text)),
        all.slice(first, first + 40)
      );
      const line = store.lineOf(first, columns);
      assert.equal(lines[line], found[0].text);
      assert.ok(store.rowOf(line, columns) <= first);
    }
  }
});

test('search finds lines, whatever the case and the colours', () => {
  const store = new LineStore();
  for (let at = 0; at < 4500; at += 1) {
    store.add('a-0', at % 1000 === 7 ? `an ERR\x1b[31mor\x1b[0m here ${at}\n` : `line ${at}\n`);
  }
  store.add('a-0', 'unfinished Error');
  assert.deepEqual([...store.search('error')].flat(), [7, 1007, 2007, 3007, 4007, 4500]);
  assert.deepEqual([...store.search('line 4499')].flat(), [4499]);
  assert.deepEqual([...store.search('nowhere')].flat(), []);
});

test('two hits in one line are one line', () => {
  const store = new LineStore();
  store.add('a-0', 'x x x\ny\nx\n'.repeat(1000));
  assert.equal([...store.search('x')].flat().length, 2000);
});

test('the oldest lines go where there is no room', () => {
  const store = new LineStore(1_000_000, 5000);
  for (let at = 0; at < 20_000; at += 1) {
    store.add('a-0', `${at}\n`);
  }
  assert.ok(store.lineCount <= 5000);
  assert.equal(store.dropped + store.lineCount, 20_000);
  assert.equal(store.rows(0, 1, 0)[0].text, String(store.dropped));
  assert.equal(store.rows(store.lineCount - 1, 1, 0)[0].text, '19999');
});

test('a line of 10 MB is wrapped and read at once', () => {
  const store = new LineStore();
  const long = 'a'.repeat(9_999_990) + 'the end...';
  for (let at = 0; at < long.length; at += 65_536) {
    store.add('a-0', long.slice(at, at + 65_536));
  }
  store.add('a-0', '\n');
  assert.equal(store.rowCount(100), 100_000);
  const [last] = store.rows(99_999, 5, 100);
  assert.equal(last.text.slice(last.piece * 100), `${'a'.repeat(90)}the end...`);
});

test('tabs become spaces up to the next stop', () => {
  const store = new LineStore();
  store.add('a-0', 'a\tb\n\x1b[31mcc\x1b[0m\td\n');
  assert.equal(store.rows(0, 1, 0)[0].text, 'a       b');
  assert.equal(store.rows(1, 1, 0)[0].text, '\x1b[31mcc\x1b[0m      d');
});

test('a text for the clipboard has no colours, and names the tasks where there are several', () => {
  const store = new LineStore();
  store.add('a-0', '\x1b[31mone\x1b[0m\n');
  store.mark('— attempt 2 —');
  store.add('b-0', 'two');
  assert.equal([...store.text(true)].join(''), 'a-0  one\n— attempt 2 —\nb-0  two\n');
  assert.equal([...store.text(false)].join(''), 'one\n— attempt 2 —\ntwo\n');
});
