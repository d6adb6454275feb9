import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nextLength, POST_BYTES } from '../../src/load/post';

/** When each stream is silent on a path of `rate` bytes/s: after each body, for one round trip. */
function silences(stream: number, rate: number, round: number): [number, number][] {
  const found: [number, number][] = [];
  let length = POST_BYTES.first;
  for (let at = 0; at < 8_000; ) {
    const lasted = (length / rate) * 1000 + round;
    at += lasted;
    found.push([at - round, at]);
    length = nextLength(length, lasted, stream);
  }
  return found;
}

test('on a path of 100 Mbit/s and 20 ms no instant after the first second has all streams silent', () => {
  const each = [0, 1, 2, 3].map((stream) => silences(stream, 12.5e6 / 4, 20));
  for (let at = 1_000; at < 8_000; at += 1) {
    const silent = each.filter((list) => list.some(([from, to]) => from <= at && at < to));
    assert.ok(silent.length < 4, `all at ${at} ms`);
  }
  const total = each.flat().filter(([from]) => from > 1_000).length * 20;
  assert.ok(total / (4 * 7_000) < 0.025, `${total} ms of silence`);
});

test('bodies stay within their bounds and grow no faster than eightfold', () => {
  assert.equal(nextLength(POST_BYTES.first, 0, 0), 8 * POST_BYTES.first);
  assert.equal(nextLength(POST_BYTES.first, 60_000, 0), POST_BYTES.least);
  assert.equal(nextLength(POST_BYTES.most, 10, 3), POST_BYTES.most);
});
