import assert from 'node:assert/strict';
import { test } from 'node:test';

import { fold, LineFolder } from '../fold';

test('a line without returns stays', () => {
  assert.equal(fold('epoch 1'), 'epoch 1');
});

test('what comes after a return lies over what was there', () => {
  assert.equal(fold('100%\r 50'), ' 50%');
  assert.equal(fold('short\ra longer one'), 'a longer one');
});

test('with control sequences the latest part is the whole of it', () => {
  assert.equal(fold('\x1b[31m10%\x1b[0m\r\x1b[32m9%\x1b[0m'), '\x1b[32m9%\x1b[0m');
});

test('lines come whole, wherever the stream is cut', () => {
  const text = 'one\r\ntwo\rTWO\n\nlast';
  for (let at = 0; at <= text.length; at += 1) {
    const folder = new LineFolder();
    const lines = [...folder.feed(text.slice(0, at)), ...folder.feed(text.slice(at))];
    const found = lines.map(line => [line.text, line.offset]);
    const wanted = [
      ['one', 0],
      ['TWO', 5],
      ['', 13]
    ];
    assert.deepEqual(found, wanted, `cut at ${at}`);
    assert.deepEqual(folder.rest, { text: 'last', offset: 14 });
    assert.deepEqual(folder.end(), [{ text: 'last', offset: 14 }]);
    assert.deepEqual(folder.end(), []);
  }
});

test('a progress bar of an hour stays small', () => {
  const folder = new LineFolder();
  for (let step = 0; step < 100_000; step += 1) {
    folder.feed(`\r${step} of 100000`);
  }
  assert.equal(folder.rest?.text, '99999 of 100000');
});
