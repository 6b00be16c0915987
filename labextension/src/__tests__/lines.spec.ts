import assert from 'node:assert/strict';
import { test } from 'node:test';

import { rowsOf } from '../block';
import { byteLength } from '../fold';
import { LineStore } from '../lines';

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

test('lines know where they begin, wherever the stream is cut', () => {
  const next = random(11);
  const lines = Array.from({ length: 3000 }, (_, at) => {
    const word = ['x', 'ä', '€', '😀', '50%\r', '\t', '\x1b[31m'][Math.floor(next() * (at < 1500 ? 1 : 7))];
    return `${at} ${word.repeat(Math.floor(next() * 30))}`;
  });
  const text = lines.join('\n') + '\n';
  for (const size of [7, 1000, 50_000, text.length]) {
    const store = new LineStore();
    let at = 0;
    for (let start = 0; start < text.length; start += size) {
      const part = piece(text, start, size);
      store.add('a-0', part, at);
      at += byteLength(part);
    }
    let offset = 0;
    lines.forEach((line, place) => {
      assert.equal(store.line(place)?.offset, offset, `line ${place}, cut by ${size}`);
      assert.equal(store.find('a-0', 0, offset), place);
      offset += byteLength(line) + 1;
    });
    assert.equal(offset, Buffer.byteLength(text));
  }
});

/** A part of a text that cuts no pair of surrogates. */
function piece(text: string, start: number, size: number): string {
  const isLow = (at: number): boolean => /[\udc00-\udfff]/.test(text[at] ?? '');
  const shift = (at: number): number => (isLow(at) ? at + 1 : at);
  return text.slice(shift(start), shift(start + size));
}

test('large parts give the same lines as small ones', () => {
  const text = Array.from({ length: 5000 }, (_, at) => `line ${at} of a run`).join('\n') + '\nthe rest';
  const large = new LineStore();
  large.add('a-0', 'begun ');
  large.add('a-0', text);
  const small = new LineStore();
  small.add('a-0', 'begun ');
  for (const part of text.match(/[^]{1,99}/g) ?? []) {
    small.add('a-0', part);
  }
  for (const columns of [0, 9]) {
    assert.equal(large.rowCount(columns), small.rowCount(columns));
    const rows = (store: LineStore): unknown[] => store.rows(0, 10_000, columns);
    assert.deepEqual(rows(large), rows(small));
  }
  assert.equal(large.widest, small.widest);
  assert.deepEqual([...large.search('line 4321')].flat(), [4321]);
});

test('what all tasks print alike is one line that opens', () => {
  const store = new LineStore();
  store.foldsRanks = true;
  store.add('a-0', 'ready\nrank 0\nepoch 1\nepoch 1\n', 0);
  store.add('a-1', 'ready\nrank 1\nepoch 1\n', 0);
  store.add('a-2', 'ready\nrank 2\nepoch 1\nepoch 1\n', 0);
  assert.deepEqual(
    store.rows(0, 99, 0).map(row => [row.text, row.task, row.copies]),
    [
      ['ready', 0, 2],
      ['rank 0', 0, 0],
      ['epoch 1', 0, 2],
      ['epoch 1', 0, 1],
      ['rank 1', 1, 0],
      ['rank 2', 2, 0]
    ]
  );
  assert.deepEqual(store.printers(2), ['a-0', 'a-1', 'a-2']);
  assert.equal(store.find('a-2', 0, 0), 0, 'a copy leads to its line');
  assert.equal(store.find('a-1', 0, 13), 2);
  store.toggle(0);
  assert.ok(store.isOpen(0));
  assert.equal(store.rowCount(0), 9);
  assert.deepEqual(
    store.rows(0, 5, 0).map(row => [row.isCopy, store.tasks[row.task], row.text, row.line]),
    [
      [false, 'a-0', 'ready', 0],
      [true, 'a-0', 'ready', 0],
      [true, 'a-1', 'ready', 0],
      [true, 'a-2', 'ready', 0],
      [false, 'a-0', 'rank 0', 1]
    ]
  );
  assert.deepEqual(
    store.rows(2, 2, 0).map(row => row.task),
    [1, 2]
  );
  assert.equal(store.rowOf(1, 0), 4);
  assert.equal(store.lineOf(3, 0), 0);
  assert.equal([...store.text(true)].join('').split('\n').length - 1, 11, 'each task has its copy');
  store.toggle(0);
  assert.equal(store.rowCount(0), 6);
});

test('lines of attempts are told apart', () => {
  const store = new LineStore();
  store.begin(0);
  store.add('a-0', 'first try\nfailed\n', 0);
  store.begin(1);
  store.mark('— attempt 2 —');
  store.add('a-0', 'second try\n', 0);
  assert.equal(store.find('a-0', 0, 0), 0);
  assert.equal(store.find('a-0', 1, 0), 3);
  assert.equal(store.lastOf('a-0', 0), 1);
  assert.equal(store.lastOf('a-0', 1), 3);
  assert.equal(store.find('a-0', 2, 0), null);
  assert.equal(store.find('b-0', 0, 0), null);
  assert.equal(store.find('a-0', 1, 400), null, 'not read yet');
});
