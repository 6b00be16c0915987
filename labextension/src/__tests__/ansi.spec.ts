import assert from 'node:assert/strict';
import { test } from 'node:test';

import { cut, spans, strip } from '../ansi';

test('text without sequences is one run', () => {
  assert.deepEqual(spans('plain'), [{ text: 'plain', style: '' }]);
});

test('colours begin and end', () => {
  assert.deepEqual(spans('a \x1b[1;31mred\x1b[0m b'), [
    { text: 'a ', style: '' },
    { text: 'red', style: 'jp-PaiAnsi-red jp-PaiAnsi-bold' },
    { text: ' b', style: '' }
  ]);
});

test('bright, 256 and true colours become one of the eight', () => {
  assert.equal(spans('\x1b[92mx')[0].style, 'jp-PaiAnsi-green');
  assert.equal(spans('\x1b[38;5;196mx')[0].style, 'jp-PaiAnsi-red');
  assert.equal(spans('\x1b[38;2;20;30;250mx')[0].style, 'jp-PaiAnsi-blue');
  assert.equal(spans('\x1b[48;5;46mx')[0].style, 'jp-PaiAnsi-on-green');
});

test('inverse exchanges text and ground', () => {
  assert.equal(spans('\x1b[7mx')[0].style, 'jp-PaiAnsi-paper jp-PaiAnsi-on-text');
  assert.equal(spans('\x1b[31;7mx')[0].style, 'jp-PaiAnsi-on-red');
});

test('marks end by their own codes', () => {
  const [bold, plain] = spans('\x1b[1mx\x1b[22my');
  assert.equal(bold.style, 'jp-PaiAnsi-bold');
  assert.equal(plain.style, '');
  assert.equal(spans('\x1b[4mx\x1b[24my')[1].style, '');
  assert.deepEqual(
    spans('\x1b[9mx\x1b[29my').map(run => run.style),
    ['jp-PaiAnsi-strike', '']
  );
});

test('other sequences are not shown', () => {
  assert.equal(strip('\x1b[2K\x1b[1Ax\x1b]8;;http://a\x07link\x1b]8;;\x07'), 'xlink');
  assert.equal(strip('cut off \x1b['), 'cut off [');
  assert.equal(strip('\x1b[31m'), '');
  assert.equal(strip('bell\x07 null\x00 back\x08 del\x7f tab\t'), 'bell null back del tab\t');
  assert.deepEqual(spans('a\x07b \x1b[31mc\x00d'), [
    { text: 'a', style: '' },
    { text: 'b ', style: '' },
    { text: 'c', style: 'jp-PaiAnsi-red' },
    { text: 'd', style: 'jp-PaiAnsi-red' }
  ]);
});

test('runs are cut by characters', () => {
  const runs = spans('ab\x1b[31mcdef\x1b[0mgh');
  assert.deepEqual(cut(runs, 1, 4), [
    { text: 'b', style: '' },
    { text: 'cd', style: 'jp-PaiAnsi-red' }
  ]);
  assert.deepEqual(cut(runs, 8, 20), []);
});
