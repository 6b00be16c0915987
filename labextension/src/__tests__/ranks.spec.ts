import assert from 'node:assert/strict';
import { test } from 'node:test';

import { RankFolder } from '../ranks';

/** Feed lines of tasks; return for each the place of the line that it is a copy of, or -1. */
function feed(lines: [number, string][], reach?: number): number[] {
  const folder = new RankFolder(reach);
  return lines.map(([task, text], place) => {
    const leader = folder.match(task, text);
    if (leader < 0) {
      folder.lead(task, text, place);
    }
    return leader;
  });
}

test('the lines of a loop are paired turn by turn', () => {
  const lines: [number, string][] = [
    [0, 'step'],
    [0, 'step'],
    [1, 'step'],
    [1, 'step'],
    [1, 'step'],
    [0, 'step']
  ];
  assert.deepEqual(feed(lines), [-1, -1, 0, 1, -1, 4]);
});

test('a task never repeats itself', () => {
  assert.deepEqual(
    feed([
      [0, 'x'],
      [0, 'x'],
      [0, 'y'],
      [0, 'x']
    ]),
    [-1, -1, -1, -1]
  );
});

test('lines of its own between them do not keep a task from having copies', () => {
  const lines: [number, string][] = [
    [0, 'ready'],
    [0, 'rank 0'],
    [0, 'go'],
    [1, 'ready'],
    [1, 'rank 1'],
    [1, 'go']
  ];
  assert.deepEqual(feed(lines), [-1, -1, -1, 0, -1, 2]);
});

test('what is too far back is no copy, and is forgotten', () => {
  const lines: [number, string][] = [[0, 'x']];
  for (let at = 0; at < 10; at += 1) {
    lines.push([0, `other ${at}`]);
  }
  assert.equal(feed([...lines, [1, 'x']], 10).pop(), -1);
  assert.equal(feed([...lines, [1, 'x']], 11).pop(), 0);
});

test('a task that says the same again and again costs no more than others', () => {
  const folder = new RankFolder();
  const began = process.cpuUsage().user;
  for (let line = 0; line < 200_000; line += 1) {
    assert.equal(folder.match(0, 'again'), -1);
    folder.lead(0, 'again', line);
  }
  assert.ok(process.cpuUsage().user - began < 20_000_000, 'not the square of it');
});
