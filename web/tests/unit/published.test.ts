// A result beside published figures.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { comparable, mine, times, type PublishedFigure } from '../../src/show/published';
import type { SummaryRow } from '../../src/show/record';
import { route } from '../../src/show/route';

const row = (metric: string, stat: string, value: number | null, more: Partial<SummaryRow> = {}): SummaryRow => ({
  metric,
  stat,
  value,
  n: null,
  direction: null,
  flow: null,
  payload_bytes: null,
  ...more,
});
const figure = (metric: string, low: number, high = low): PublishedFigure => ({
  number: 0,
  name: 'n',
  metric,
  low,
  high,
  printed: 'p',
});

test('each way and size has its value, streams alone have none', () => {
  const summary = [
    row('goodput_bps', 'value', 5, { direction: 'up', flow: 0 }),
    row('goodput_bps', 'value', 10, { direction: 'up' }),
    row('goodput_bps', 'value', 20, { direction: 'down' }),
    row('rtt_ns', 'p50', 7, { payload_bytes: 56 }),
    row('rtt_ns', 'mean', 8, { payload_bytes: 56 }),
    row('rtt_ns', 'max', 99, { payload_bytes: 56 }),
  ];
  const rates = mine(summary, [figure('goodput_bps', 1)]);
  assert.deepEqual(rates.map(({ value }) => value), [10, 20]);
  // Old studies print the mean of round trips.
  const [rtt, ...rest] = mine(summary, [figure('rtt_ns', 1)]);
  assert.deepEqual([rtt?.stat, rtt?.value, rest.length], ['mean', 8, 0]);
});

test('a range gives a range, and nothing is divided by 0', () => {
  assert.deepEqual(times(80, figure('goodput_bps', 40)), [2, 2]);
  assert.deepEqual(times(80, figure('goodput_bps', 40, 80)), [1, 2]);
  assert.equal(times(80, figure('goodput_bps', 0)), null);
});

test('only what has a rate or a round trip stands beside a table', () => {
  assert.equal(comparable([row('goodput_bps', 'value', 1)]), true);
  assert.equal(comparable([row('goodput_bps', 'value', null)]), false);
  assert.equal(comparable([row('datagrams_lost', 'value', 1)]), false);
});

test('its address names a result and a table', () => {
  assert.deepEqual(route('/results', '?compare=a1&published=nap-1995'), { view: 'published', id: 'a1', table: 'nap-1995' });
  assert.equal(route('/results', '?compare=a1&published=../x').view, 'results');
  assert.deepEqual(route('/results', '?compare=a1,b2'), { view: 'compare', first: 'a1', second: 'b2' });
  assert.deepEqual(route('/studies'), { view: 'studies', run: null });
  assert.deepEqual(route('/studies/0199-ab'), { view: 'studies', run: '0199-ab' });
});
