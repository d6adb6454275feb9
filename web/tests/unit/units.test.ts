import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bytes, delay, percent, rate, round, size, word } from '../../src/show/units';
import { quantile, spread, tripsPerMinute } from '../../src/show/quantile';
import { windowFor, windowRate } from '../../src/show/theory';
import { volume } from '../../src/show/volume';

const plain = (text: string): string => text.replaceAll('\u00a0', ' ');

test('rates are decimal, with three digits that count', () => {
  const cases: [number, string][] = [
    [0, '0 bit/s'],
    [999, '999 bit/s'],
    [1_000, '1.00 kbit/s'],
    [1_000_000, '1.00 Mbit/s'],
    [94_140_000, '94.1 Mbit/s'],
    [941_482_000, '941 Mbit/s'],
    [999_400_000, '999 Mbit/s'],
    [999_600_000, '1.00 Gbit/s'],
    [9_414_820_000, '9.41 Gbit/s'],
    [99_960_000_000, '100 Gbit/s'],
  ];
  for (const [bps, expected] of cases) assert.equal(plain(word(rate(bps))), expected);
});

test('a round figure that was not measured has no digits behind', () => {
  assert.equal(plain(word(round(rate(10e6)))), '10 Mbit/s');
  assert.equal(plain(word(round(rate(100e6)))), '100 Mbit/s');
  assert.equal(plain(word(round(bytes(2_500_000_000)))), '2.5 GB');
});

test('what is not known is a dash, and zero is zero', () => {
  assert.equal(word(rate(null)), '–');
  assert.equal(word(delay(undefined)), '–');
  assert.equal(word(percent(Number.NaN)), '–');
  assert.equal(plain(word(percent(0))), '0 %');
});

test('amounts are decimal, windows are binary', () => {
  assert.equal(plain(word(bytes(1_500_000))), '1.50 MB');
  assert.equal(plain(word(size(65_536))), '64 KiB');
  assert.equal(plain(word(size(1_048_576))), '1 MiB');
  assert.equal(plain(word(size(1_610_000))), '1.61 MB');
  assert.equal(plain(word(size(20_000_000))), '20.0 MB');
});

test('times have the digits that a browser can measure', () => {
  assert.equal(plain(word(delay(0.42))), '0.42 ms');
  assert.equal(plain(word(delay(12.34))), '12.3 ms');
  assert.equal(plain(word(delay(1234))), '1.23 s');
  assert.equal(plain(word(percent(0.000_12))), '0.012 %');
});

test('quantiles are of the nearest rank', () => {
  // Hand count: of 1..100 the 50th is 50, the 99th is 99; of five values the median is the third.
  const hundred = Array.from({ length: 100 }, (_, k) => 100 - k);
  assert.equal(quantile(hundred, 0.5), 50);
  assert.equal(quantile(hundred, 0.99), 99);
  assert.equal(quantile([5, 1, 4, 2, 3], 0.5), 3);
  assert.equal(quantile([], 0.5), null);
  assert.deepEqual(spread([2, 1]), { count: 2, min: 1, median: 1, p99: 2, max: 2 });
});

test('a minute has 1500 round trips of 40 ms', () => {
  assert.equal(tripsPerMinute(40), 1500);
});

test('64 KiB at 10 ms carry 52.4 Mbit/s, and the cap holds', () => {
  // 65,536 bytes × 8 bit / 0.010 s = 52,428,800 bit/s.
  assert.equal(windowRate(65_536, 10), 52_428_800);
  assert.equal(windowRate(65_536, 10, 10e6), 10e6);
  // 1 Gbit/s × 20 ms = 2,500,000 bytes.
  assert.equal(windowFor(1e9, 20), 2_500_000);
});

test('8 s each way at 100 Mbit/s are 200 MB, unless the server allows fewer', () => {
  assert.equal(volume(100e6, 8, 2, null), 200_000_000);
  assert.equal(volume(100e6, 8, 2, 50_000_000), 50_000_000);
});
