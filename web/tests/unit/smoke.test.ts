import assert from 'node:assert/strict';
import { test } from 'node:test';
import { smoke } from '../../src/show/smoke';
import { route } from '../../src/show/route';

test('smoke is of the runs around, fewer at the ends', () => {
  const values = Array.from({ length: 20 }, (_, n) => ({ at_s: n, value: n, record: '' }));
  const band = smoke(values);
  // Of 6..14: the first, the fifth and the last of nine.
  assert.deepEqual(band[10], { at_s: 10, low: 6, median: 10, high: 14 });
  // Of 0..4.
  assert.deepEqual(band[0], { at_s: 0, low: 0, median: 2, high: 4 });
});

test('series have an address', () => {
  const found = route('/series', '?plan=p&task=a&metric=rtt_ns');
  assert.equal(found.view, 'series');
});
