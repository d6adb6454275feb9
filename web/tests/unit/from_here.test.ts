import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { FromPart, FromSample } from '../../src/api/types';
import { hosts, rateColumns, replyColumns, sweep } from '../../src/show/from_here';

const sample = (t_s: number, part: number, direction: 'up' | 'down' = 'up'): FromSample => ({
  direction,
  t_s,
  rate_bps: 1e6,
  rtt_us: null,
  retransmits: null,
  lost: null,
  part,
});

test('tests of a sweep stand one behind the other, and times rise', () => {
  const [times] = rateColumns([sample(0.2, 0), sample(1.1, 0), sample(0, 1), sample(0.2, 1)], 1);
  assert.deepEqual(times?.slice(0, 2), [0.2, 1.1]);
  assert.equal(times?.[3], 1.2);
  assert.ok((times?.[2] ?? 0) > 1.1, String(times));
});

test('each direction has its column, and a lost probe is a gap', () => {
  const [, up, down] = rateColumns([sample(1, 0, 'up'), sample(2, 0, 'down')], 5);
  assert.deepEqual([up, down], [[1e6, null], [null, 1e6]]);
  const replies = [{ t_s: 0.1, rtt_us: null }, { t_s: 0, rtt_us: 1500 }];
  assert.deepEqual(replyColumns(replies), [[0, 0.1], [1.5, null]]);
});

test('the round trip of a sweep is the smallest, and what failed is no point', () => {
  const part = (window_bytes: number | null, rate_bps: number | null, rtt_us: number | null): FromPart => ({
    record: String(window_bytes),
    kind: 'tcp',
    status: 'ok',
    say: '',
    rate_bps,
    rtt_us,
    loss: null,
    window_bytes,
    limited: false,
    failure: null,
  });
  const { points, rttMs } = sweep([part(16384, 6.5e6, 20_000), part(32768, null, 21_000), part(65536, 26e6, null)]);
  assert.deepEqual(points.map((point) => point.window_bytes), [16384, 65536]);
  assert.equal(rttMs, 20);
});

test('a network of one address is a host', () => {
  assert.deepEqual(hosts(['192.0.2.1/32', '198.51.100.0/24', '2001:db8::1/128', '::/0']), [
    '192.0.2.1',
    '2001:db8::1',
  ]);
});
