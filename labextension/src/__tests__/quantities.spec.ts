import assert from 'node:assert/strict';
import test from 'node:test';

import {
  durationText,
  memoryText,
  memoryWords,
  parseDuration,
  parseMemory,
  parseScalar,
  scalarText
} from '../quantities';

test('memory is read as the server reads it: MB are mebibytes, parts are rounded up', () => {
  const known: [string, number | null][] = [
    ['8Gi', 8192],
    ['8GiB', 8192],
    ['8192', 8192],
    ['500M', 477],
    ['1G', 954],
    ['.5Gi', 512],
    ['1ki', 1],
    ['0', null],
    ['8 potatoes', null],
    ['', null]
  ];
  known.forEach(([text, megabytes]) => assert.equal(parseMemory(text), megabytes, text));
  [1, 512, 1024, 1536, 8192, 100_000].forEach(each => assert.equal(parseMemory(memoryText(each)), each));
  assert.equal(memoryWords(512), '512 MiB');
  assert.equal(memoryWords(1536), '1.5 GiB');
});

test('time is read as the server reads it', () => {
  const known: [string, number | null][] = [
    ['2h30m', 9000],
    ['45s', 45],
    ['90', 90],
    ['1.5 h', 5400],
    ['2 hours 5 minutes', 7500],
    ['1w', 604800],
    ['0', null],
    ['soon', null]
  ];
  known.forEach(([text, seconds]) => assert.equal(parseDuration(text), seconds, text));
  [1, 60, 90, 3600, 90061, 600].forEach(each => assert.equal(parseDuration(durationText(each)), each));
});

test('a parameter that is written is read as the same', () => {
  const values = [
    1,
    0.5,
    -3,
    true,
    false,
    null,
    'plain',
    '1',
    'true',
    '',
    'a "quoted" word',
    '"',
    '[x',
    [1, 'a'],
    { a: 1 }
  ];
  values.forEach(each => assert.deepEqual(parseScalar(scalarText(each)), each));
  assert.equal(parseScalar('007'), '007');
});
