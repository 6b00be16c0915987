import assert from 'node:assert/strict';
import { test } from 'node:test';

import { place, scrollTo, TALLEST } from '../window';

test('few rows are all drawn', () => {
  assert.deepEqual(place({ rows: 5, rowHeight: 20, viewport: 400, scrollTop: 0 }), {
    height: 100,
    first: 0,
    count: 5,
    top: 0
  });
});

test('what can be seen is drawn, and little more', () => {
  for (const rows of [100, 10_000, 1_000_000, 50_000_000]) {
    const height = Math.min(rows * 20, TALLEST);
    for (const share of [0, 0.1, 0.5, 0.999, 1]) {
      const scrollTop = share * (height - 400);
      const found = place({ rows, rowHeight: 20, viewport: 400, scrollTop });
      assert.equal(found.height, height);
      assert.ok(found.count < 60);
      assert.ok(found.top <= scrollTop + 1e-6, 'drawn from above the upper edge on');
      const bottom = found.top + found.count * 20;
      assert.ok(bottom >= scrollTop + 400 - 1e-6 || found.first + found.count === rows, `to below the lower edge`);
    }
  }
});

test('the last row is at the lower edge when scrolled to the end', () => {
  for (const rows of [1000, 50_000_000]) {
    const height = Math.min(rows * 20, TALLEST);
    const { first, count, top } = place({ rows, rowHeight: 20, viewport: 400, scrollTop: height });
    assert.equal(first + count, rows);
    assert.ok(Math.abs(top + count * 20 - height) < 1e-3);
  }
});

test('a row that is scrolled to can be seen', () => {
  for (const rows of [30, 1000, 50_000_000]) {
    for (const row of [0, 17, Math.floor(rows / 2), rows - 1]) {
      const view = { rows, rowHeight: 20, viewport: 400, scrollTop: 0 };
      const scrollTop = scrollTo(row, view);
      const { first, top } = place({ ...view, scrollTop });
      const y = top + (row - first) * 20 - scrollTop;
      assert.ok(y > -21 && y < 401, `row ${row} of ${rows} at ${y}`);
    }
  }
});
