// Which leg is worse, by figures alone.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { judge, type Leg, type Rates } from '../../src/show/leg';
import { route } from '../../src/show/route';

const name = { near: 'the first', far: 'the second' };
const leg = (down: number | null, up: number | null, idle: number | null, loaded: number | null): Leg => ({
  rates: { down, up },
  trips: { idle, loaded },
});
const M = 1e6;
const of = (near: Leg, far: Leg, whole: Rates) => judge(near, far, whole, name);

test('the slower leg is the worse one, and its delay grows', () => {
  const near = leg(20 * M, 10 * M, 2, 180);
  const far = leg(100 * M, 90 * M, 12, 13);
  const { worse, why, evidence } = of(near, far, { down: 19 * M, up: 9.5 * M });
  assert.equal(worse, 'near');
  assert.equal(why, '');
  assert.match(evidence[0] ?? '', /^Download: 20\.0\sMbit\/s over the first, 100\sMbit\/s over the second, 19\.0/);
  // 180 − 2 and 13 − 12.
  assert.match(evidence[2] ?? '', /grows by 178\sms over the first and by 1\.00\sms over the second/);
  assert.equal(of(far, near, { down: 19 * M, up: 9.5 * M }).worse, 'far');
});

test('equal rates leave it to the delay, and no difference at all to nobody', () => {
  const equal = { down: 90 * M, up: 90 * M };
  const near = leg(100 * M, 100 * M, 2, 3);
  assert.equal(of(near, leg(95 * M, 95 * M, 10, 90), equal).worse, 'far');
  const { worse, why } = of(near, leg(95 * M, 95 * M, 10, 12), equal);
  assert.equal(worse, null);
  assert.match(why, /^Rates are within 25 %/);
  // Both grow alike: neither is it.
  assert.equal(of(leg(100 * M, 100 * M, 2, 82), leg(95 * M, 95 * M, 10, 70), equal).worse, null);
});

test('the bound of a lower rate is a quarter more', () => {
  const at = (rate: number) => of(leg(100 * M, 100 * M, 1, 1), leg(rate, 100 * M, 1, 1), { down: 100 * M, up: 100 * M });
  assert.equal(at(124 * M).worse, null);
  assert.equal(at(125 * M).worse, 'near');
  assert.equal(at(80 * M).worse, 'far');
});

test('figures that disagree tell nothing apart', () => {
  const each = of(leg(10 * M, 100 * M, 1, 2), leg(100 * M, 10 * M, 1, 2), { down: 10 * M, up: 10 * M });
  assert.equal(each.worse, null);
  assert.match(each.why, /disagree/);
  assert.equal(each.evidence.length, 3);
  const delays = of(leg(10 * M, 10 * M, 1, 2), leg(100 * M, 100 * M, 1, 200), { down: 10 * M, up: 10 * M });
  assert.equal(delays.worse, null);
});

test('a whole way that is faster or far slower than its legs tells nothing apart', () => {
  const near = leg(20 * M, 20 * M, 1, 50);
  const far = leg(100 * M, 100 * M, 5, 5);
  const fast = of(near, far, { down: 60 * M, up: 20 * M });
  assert.equal(fast.worse, null);
  assert.match(fast.why, /^Download over the whole way is faster than its slower leg/);
  const slow = of(near, far, { down: 20 * M, up: 5 * M });
  assert.equal(slow.worse, null);
  assert.match(slow.why, /^Upload over the whole way is far slower/);
});

test('what is missing is named, and 0 is not missing', () => {
  const near = leg(20 * M, null, 1, 50);
  const far = leg(100 * M, 100 * M, null, null);
  const { worse, why } = of(near, far, { down: 20 * M, up: 20 * M });
  assert.equal(worse, null);
  assert.equal(why, 'Not measured: upload over the first, round trips over the second.');
  const none = of(leg(0, 0, 1, 1), leg(100 * M, 100 * M, 1, 1), { down: 0, up: 0 });
  assert.equal(none.worse, 'near');
});

test('without round trips of a leg the rates alone judge, and it says so', () => {
  const [near, far] = [leg(20 * M, 10 * M, 2, 180), leg(100 * M, 90 * M, null, null)];
  const { worse, why, gone, evidence } = of(near, far, { down: 19 * M, up: 9.5 * M });
  assert.deepEqual([worse, why], ['near', '']);
  assert.equal(gone, 'By rates alone. Not measured: round trips over the second.');
  assert.equal(evidence.length, 2);
  assert.ok(evidence.every((line) => !line.includes('round trip')));
  // The delay would have spoken against it: a figure of one leg alone does not.
  const other = of(leg(100 * M, 90 * M, 2, 180), leg(20 * M, 10 * M, 12, null), { down: 19 * M, up: 9.5 * M });
  assert.equal(other.worse, 'far');
  const both = of(leg(20 * M, 20 * M, 1, null), leg(100 * M, 100 * M, null, 1), { down: 20 * M, up: 20 * M });
  assert.equal(both.gone, 'By rates alone. Not measured: round trips over the first, round trips over the second.');
  assert.equal(both.worse, 'near');
});

test('rates alone that are alike, disagree or do not fit the whole way name no leg', () => {
  const judged = (far: [number, number], whole: Rates) =>
    of(leg(100 * M, 100 * M, 1, 1), leg(far[0], far[1], null, null), whole);
  const alike = judged([90 * M, 120 * M], { down: 90 * M, up: 100 * M });
  assert.deepEqual([alike.worse, alike.why], [null, 'Rates are within 25 % of each other.']);
  assert.match(alike.gone, /^By rates alone/);
  const each = judged([10 * M, 1000 * M], { down: 10 * M, up: 100 * M });
  assert.equal(each.worse, null);
  assert.match(each.why, /disagree/);
  const fast = judged([20 * M, 20 * M], { down: 60 * M, up: 20 * M });
  assert.equal(fast.worse, null);
  assert.match(fast.why, /^Download over the whole way is faster than its slower leg/);
});

test('where all is measured nothing is said to be missing', () => {
  assert.equal(of(leg(20 * M, 20 * M, 1, 50), leg(100 * M, 100 * M, 5, 5), { down: 20 * M, up: 20 * M }).gone, '');
});

test('the view has an address', () => {
  assert.deepEqual(route('/leg'), { view: 'leg' });
  assert.equal(route('/leg/x').view, 'unknown');
});
