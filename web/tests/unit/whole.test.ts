// What a test's records are together.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { learnNames, metricName, type Series, type StoredRecord } from '../../src/show/record';
import { route } from '../../src/show/route';
import { goodputOf, wayOf } from '../../src/show/whole';

const flow = (flow: number | null, values: (number | null)[], t_ns = [1e9, 2e9]): Series => ({
  metric: 'goodput_bps', direction: 'down', flow, side: 'receiver', t_ns, values,
});
const record = (series: Series[], direction: string | null = 'down') =>
  ({
    series,
    summary: [{ metric: 'goodput_bps', stat: 'value', value: 1, n: 1, direction, flow: null, payload_bytes: null }],
  }) as unknown as StoredRecord;

test('the goodput of a test is the sum of its flows, from when all have one', () => {
  const [sum] = goodputOf(record([flow(1, [10, 20]), flow(2, [3, 4])]));
  assert.deepEqual([sum?.t_ns, sum?.values, sum?.flow], [[1e9, 2e9], [13, 24], null]);
  // The second flow is sampled between: what was last of each counts.
  const [late] = goodputOf(record([flow(1, [10, 20]), flow(2, [3, 4], [1.5e9, 2.5e9])]));
  assert.deepEqual(late?.values, [null, 13, 23, 24]);
  const [whole] = goodputOf(record([flow(null, [13, 24]), flow(1, [10, 20]), flow(2, [3, 4])]));
  assert.deepEqual(whole?.values, [13, 24]);
  assert.deepEqual(goodputOf(record([])), []);
});

test('a record of one direction is told by it', () => {
  assert.equal(wayOf(record([], 'up')), 'up');
  assert.equal(wayOf(record([], null)), null);
});

test('the server has the titles of metrics, and a key that it does not name is read', () => {
  assert.equal(metricName('cpu_sender_s_per_gb'), 'cpu sender s per gb');
  learnNames({ cpu_sender_s_per_gb: 'CPU time of the sender' });
  assert.equal(metricName('cpu_sender_s_per_gb'), 'CPU time of the sender');
  assert.equal(metricName('tcp_rtt_ns'), 'tcp rtt');
});

test('a whole test has an address', () => {
  const id = '01a20b06-5838-7042-bb4f-de6137e4be0f';
  assert.deepEqual(route('/results', `?run=${id}`), { view: 'whole', run: id });
  assert.equal(route('/results', '?run=../x').view, 'results');
});
