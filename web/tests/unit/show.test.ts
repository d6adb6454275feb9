import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { refusal } from '../../src/api/client';
import type { Server } from '../../src/api/types';
import { commands } from '../../src/show/commands';
import { inUnit, metricsOf, pairs, rows, together, type StoredRecord } from '../../src/show/record';
import { route } from '../../src/show/route';

const server: Server = {
  name: 'linerate',
  version: '0',
  host: 'h',
  now: '',
  client: '',
  limits: { tests: 1, streams: 8, seconds: 30, bytes: null, rate_bps: null },
  running: 0,
  waiting: 0,
  other_programs: [
    { program: 'iperf3', port: 5201 },
    { program: 'nuttcp', port: 5010 },
    { program: 'iperf 2', port: 5001 },
  ],
  udp_echo: true,
  stamp_port: null,
  features: [],
  measure_from_here: false,
  results_kept: null,
};

test('command lines name only what the server answers, with ports that are not usual', () => {
  const lines = commands(server, { hostname: '192.0.2.1', port: '5210' }).map(({ line }) => line);
  assert.deepEqual(lines, [
    'linerate tcp 192.0.2.1 -R',
    'linerate tcp 192.0.2.1',
    'linerate test 192.0.2.1',
    'iperf3 -c 192.0.2.1 -R',
    'iperf3 -c 192.0.2.1',
    'nuttcp -P5010 -r -i1 192.0.2.1',
    'nuttcp -P5010 -i1 192.0.2.1',
    'iperf -c 192.0.2.1 -i 1',
    'ping 192.0.2.1',
  ]);
});

test('an IPv6 address is typed without brackets, another port of the page with -p', () => {
  const none = { ...server, other_programs: [] };
  const lines = commands(none, { hostname: '[2001:db8::1]', port: '8080' });
  assert.equal(lines[0]?.line, 'linerate tcp 2001:db8::1 -p 8080 -R');
});

test('addresses of the page', () => {
  assert.deepEqual(route('/'), { view: 'test' });
  assert.deepEqual(route('/results/01a2-b'), { view: 'result', id: '01a2-b' });
  assert.deepEqual(route('/results', '?compare=a,b'), { view: 'compare', first: 'a', second: 'b' });
  assert.equal(route('/results/..%2f').view, 'unknown');
  assert.equal(route('/results/a/b').view, 'unknown');
  assert.equal(route('/nowhere').view, 'unknown');
});

test('a refusal without words of the server says that something is in between', () => {
  const found = refusal(502, null, '5');
  assert.match(found.say, /HTTP 502/);
  assert.equal(found.retry_after_ms, 5_000);
  const own = refusal(503, { error: 'busy', say: 'x', retry_after_ms: 800, position: 2 }, '1');
  assert.equal(own.retry_after_ms, 800);
});

test('the unit of a metric is the end of its name', () => {
  const plain = (metric: string, value: number): string =>
    inUnit(metric, value).replaceAll('\u00a0', ' ');
  assert.equal(plain('goodput_bps', 94_140_000), '94.1 Mbit/s');
  assert.equal(plain('rtt_ns', 40_088_000), '40.1 ms');
  assert.equal(plain('window_bytes', 65_536), '64 KiB');
  assert.equal(plain('loss_ratio', 0.01), '1.00 %');
  assert.equal(plain('retransmits', 36), '36');
});

test('a stored record of linerate is read', () => {
  const path = '../testdata/explain/records/base.json';
  const record = JSON.parse(readFileSync(path, 'utf8')) as StoredRecord;
  assert.equal(metricsOf(record.series)[0], 'goodput_bps');
  const { data } = together(record.series.filter((one) => one.metric === 'goodput_bps'));
  assert.equal(data.length, 2);
  assert.equal(data[0]?.length, 9);
  const found = rows(record.summary);
  assert.ok(found.some((row) => row.name === 'goodput'));
  const same = pairs(record.summary, record.summary);
  assert.ok(same.length > 0 && same.every((pair) => pair.first === pair.second));
});
