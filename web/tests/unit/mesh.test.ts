// The matrix of a mesh.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { age, byPair, resultsOf, standing, type Mesh } from '../../src/show/mesh';
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
};

test('a pair has two halves, and each leads to its own results', () => {
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

test('an age is said in the unit that people use', () => {
  assert.deepEqual([0, 119, 120, 7199, 7200, 172800].map(age), ['0 s', '119 s', '2 min', '119 min', '2 h', '2 days']);
});
