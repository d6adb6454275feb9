// The matrix of a mesh.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  age, booked, bookedRun, byPair, ended, mark, median, moved, resultsOf, second, slot, standing, statistic, why, type Mesh,
  type MeshBooking,
} from '../../src/show/mesh';
import { route } from '../../src/show/route';

const agent = (name: string) => ({ name, heard_s_ago: 1, revision: 1, waiting: 0, ahead_s: 0 });
const cell = { task: 0, from: 0, to: 1, metric: 'goodput_bps/up', value: 1e9, age_s: 5, record: 'r', changed: false };
const mesh: Mesh = {
  mesh: 'm',
  revision: 1,
  now_s: 1000,
  agents: [agent('a'), agent('b')],
  tasks: ['rate', 'delay'],
  cells: [
    { ...cell, reason: null, no_data: false },
    { ...cell, from: 1, to: 0, metric: null, value: null, reason: 'refused', no_data: true },
    { ...cell, task: 1, reason: null, no_data: false },
  ],
  alerts: [],
  incidents: [],
  planned: [],
  next: [],
  bookings: [],
};

test('a pair is measured either way, and each way leads to its own results', () => {
  const pairs = byPair(mesh, 0);
  assert.equal(pairs.size, 2);
  const [there, back] = [pairs.get('0 1'), pairs.get('1 0')];
  assert.ok(there && back);
  const found = route('/series', (resultsOf(mesh, there) ?? '').replace('/series', ''));
  assert.equal(found.view, 'series');
  if (found.view === 'series') {
    assert.deepEqual(Object.fromEntries(found.query), { plan: 'm/a', task: 'rate/b', metric: 'goodput_bps/up' });
  }
  assert.equal(resultsOf(mesh, back), null);
  assert.equal(route('/mesh').view, 'mesh');
});

test('an incident is open since it was found, and was as long as it lasted', () => {
  const one = { id: 'i', opened_s: 400, until_s: null, sentence: '' };
  assert.equal(standing(mesh, one), 'open for 10 min');
  assert.equal(standing(mesh, { ...one, until_s: 520 }), 'over after 2 min');
});

const booking: MeshBooking = {
  id: '1', agent: 'a', task: 'burst/b', start_s: 100_060, takes_s: 18, why: 'adhoc', state: null, reason: null, record: null,
};

test('bookings are those to come, the next first, and those of a day, the newest first', () => {
  const starts = [100_300, 100_001, 100_000, 13_601, 13_600];
  const bookings = starts.map((start_s) => ({ ...booking, id: `${start_s}`, start_s }));
  const { next, past } = booked({ ...mesh, now_s: 100_000, bookings });
  assert.deepEqual(next.map(({ start_s }) => start_s), [100_001, 100_300]);
  assert.deepEqual(past.map(({ start_s }) => start_s), [100_000, 13_601]);
});

test('a booking says what runs, why, and how it stands', () => {
  assert.equal(bookedRun(booking), 'burst, a to b');
  assert.equal(why(booking), 'asked for');
  assert.equal(why({ ...booking, why: 'later' }), 'later');
  const at = (now_s: number, more: Partial<MeshBooking> = {}) => ended({ ...mesh, now_s }, { ...booking, ...more });
  assert.equal(at(100_000), 'in 60 s');
  assert.equal(at(100_060), 'should be running');
  assert.equal(at(100_078), 'nothing was heard of it yet');
  assert.equal(at(100_078, { state: 'ok' }), 'ok');
  assert.equal(at(100_000, { state: 'skipped', reason: 'the booking was refused' }), 'skipped: the booking was refused');
});

test('a day says what it moves, and what is not in it', () => {
  const day = { alone: true, runs_a_day: 48, period_s: 3600, takes_s: 14, bytes_a_day: 12e9, unknown: 0 };
  assert.equal(moved(day), '12.0\u00a0GB');
  assert.equal(moved({ ...day, unknown: 2 }), '12.0\u00a0GB and 2 pairs without a rate');
  assert.equal(moved({ ...day, bytes_a_day: null, unknown: 2 }), 'not known yet');
  assert.equal(slot(mesh, { task: 1, from: 1, to: 0, start_s: 0, takes_s: 1 }), 'delay, b to a');
});

test('an age is said in the unit that people use', () => {
  assert.deepEqual([0, 119, 120, 7199, 7200, 172800].map(age), ['0 s', '119 s', '2 min', '119 min', '2 h', '2 days']);
});

test('a figure is held against the median of its task, more of a rate is better, of a delay or loss less', () => {
  assert.equal(median([]), null);
  assert.equal(median([3, 1, 2]), 2);
  assert.equal(median([4, 1, 2, 3]), 2.5);
  const rates = [70e6, 94e6, 100e6, 126e6].map((bps) => mark('goodput_bps', bps, 100e6));
  // 100 / 1.25 is 80, and 100 × 1.25 is 125.
  assert.deepEqual(rates, ['worse', 'near', 'near', 'better']);
  assert.deepEqual([7e6, 10e6, 13e6].map((ns) => mark('rtt_ns', ns, 10e6)), ['better', 'near', 'worse']);
  assert.equal(mark('loss_ratio', 0, 0), 'near');
  assert.equal(mark('loss_ratio', 0.01, 0), 'worse');
  assert.equal(mark('rtt_ns', 1, null), 'near');
  assert.deepEqual(['goodput_bps', 'rtt_ns', 'loss_ratio'].map(statistic), [
    'mean of a run', 'median of a run', 'share of a run',
  ]);
});

test('times have the year first', () => {
  assert.match(second(1_700_000_000), /^2023-11-1[45] \d\d:\d\d:20$/);
});
