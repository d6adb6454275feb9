import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Admitted, Direction, Part, Sample, Verdict } from '../../src/api/types';
import {
  ASK_MS,
  delaysOf,
  fresh,
  GRACE_MS,
  IDLE_MS,
  loadedDelays,
  next,
  QUEUE_MS,
  reported,
  ROUND_MS,
  SETTLE_MS,
  SILENCE_MS,
  VERDICT_MS,
  type Effect,
  type Event,
  type Run,
} from '../../src/run/machine';
import { browserLimited, findings } from '../../src/run/findings';

const admitted: Admitted = {
  run: 'r',
  token: 't',
  events: '/e',
  load: '/l',
  streams: 4,
  seconds: 8,
  directions: ['down', 'up'],
};

const verdict: Verdict = {
  cause: 'c',
  confidence: 'high',
  headline: 'h',
  evidence: [],
  remedy: [],
  next_limit: null,
  commands: [],
};

const sample = (direction: Direction, t_s: number): Sample => ({
  direction,
  t_s,
  rate_bps: 1e8,
  streams: [25e6, 25e6, 25e6, 25e6],
  rtt_us: null,
  retransmits: 0,
});

const part = (direction: Direction, more: Partial<Part> = {}): Part => ({
  direction,
  rate_bps: 1e8,
  bytes: 1e8,
  seconds: 8,
  record: `record-${direction}`,
  client_limited: false,
  limited_by: null,
  ...more,
});

/** A run that is driven by hand: the clock is a number. */
class Driven {
  run: Run = fresh({ streams: 4, seconds: 8, directions: ['down', 'up'] }, 0);
  effects: string[] = [];
  at = 0;

  to(at: number, event: Event): this {
    this.at = at;
    const step = next(this.run, event, at);
    this.run = step.run;
    this.effects.push(...step.effects.map(name));
    return this;
  }

  after(ms: number, event: Event = { is: 'tick' }): this {
    return this.to(this.at + ms, event);
  }

  expect(phase: Run['phase'], effects: string[]): this {
    assert.equal(this.run.phase, phase);
    assert.deepEqual(this.effects, effects);
    this.effects = [];
    return this;
  }
}

const name = (effect: Effect): string =>
  effect.do === 'load' ? `load ${effect.direction}` : effect.do;

const started = (): Driven => new Driven().to(0, { is: 'start' }).expect('asking', ['ask']);

const round = {
  down: { sent: 500, lost: 0, reordered: 0, jitter_us: 20 },
  up: { sent: 500, lost: 3, reordered: 1, jitter_us: 30 },
};

/** Admitted, where no datagrams can be sent. */
const idle = (): Driven =>
  started()
    .after(50, { is: 'admitted', run: admitted })
    .expect('idle', ['listen'])
    .after(0, { is: 'unsent', say: 'no' });

const loading = (): Driven => idle().after(IDLE_MS).expect('down', ['load down']);

test('a whole test goes idle, down, up, verdict, done', () => {
  const driven = loading();
  driven.after(500, { is: 'sample', sample: sample('down', 0.4) });
  driven.after(7_700, { is: 'part', part: part('down') }).expect('up', ['load up']);
  driven.after(500, { is: 'sample', sample: sample('up', 0.4) });
  driven.after(7_700, { is: 'part', part: part('up') }).expect('verdict', ['stop', 'report-delays']);
  driven.after(100, { is: 'verdict', verdict });
  driven.after(10, { is: 'end', records: ['a', 'b'] }).expect('done', ['stop']);
  assert.equal(driven.run.verdict?.headline, 'h');
  assert.deepEqual(driven.run.records, ['a', 'b']);
});

test('load waits for the datagrams at rest, and not for ever', () => {
  const waiting = (): Driven =>
    started().after(50, { is: 'admitted', run: admitted }).expect('idle', ['listen']);
  waiting().after(IDLE_MS).expect('idle', []).after(4_000, { is: 'round', phase: 'idle', round });
  const told = waiting().after(5_000, { is: 'round', phase: 'idle', round }).expect('idle', []);
  assert.equal(told.after(100).expect('down', ['load down']).run.rounds.idle?.up.lost, 3);
  waiting().after(ROUND_MS - 1).expect('idle', []).after(1).expect('down', ['load down']);
  // One that is told early does not shorten the latency at rest.
  const early = waiting().after(500, { is: 'round', phase: 'idle', round });
  early.after(IDLE_MS - 501).expect('idle', []).after(1).expect('down', ['load down']);
});

test('a test of datagrams alone ends with them and gives its place back', () => {
  const alone = { ...admitted, directions: [] };
  const driven = started().after(50, { is: 'admitted', run: alone }).expect('idle', ['listen']);
  driven.after(6_000, { is: 'round', phase: 'idle', round }).expect('idle', []);
  driven.after(100).expect('done', ['stop', 'release']);
});

test('the last round may be told after the end', () => {
  const driven = loading();
  driven.after(8_000, { is: 'part', part: part('down') });
  driven.after(8_000, { is: 'part', part: part('up') });
  driven.after(100, { is: 'end', records: [] });
  driven.after(500, { is: 'round', phase: 'up', round });
  assert.deepEqual([driven.run.phase, driven.run.rounds.up?.up.lost], ['done', 3]);
});

test('a direction begins when the first sample says so', () => {
  const driven = loading();
  driven.after(900, { is: 'sample', sample: sample('down', 0.1) });
  // Load was asked for at 2,050 ms; 0.1 s of it had passed at 2,950 ms.
  assert.equal(driven.run.began.down, 2_850);
});

test('a busy server is asked again with its ticket, at the time that it named', () => {
  const refusal = {
    error: 'busy',
    say: 'busy',
    position: 3,
    retry_after_ms: 8_000,
    ticket: 'feed',
  };
  const driven = started().after(10, { is: 'refused', status: 503, refusal }).expect('queued', []);
  assert.equal(driven.run.queue?.position, 3);
  driven.after(7_900).expect('queued', []);
  driven.after(200).expect('asking', ['ask']);
  assert.equal(driven.run.ticket, 'feed');
  driven.after(10, { is: 'admitted', run: admitted }).expect('idle', ['listen']);
});

test('the queue ends after a quarter of an hour', () => {
  const refusal = { error: 'busy', say: 'busy', retry_after_ms: 1_000 };
  const driven = started();
  for (let waited = 0; waited < QUEUE_MS + 5_000 && driven.run.phase !== 'failed'; waited += 1_100) {
    driven.after(0, { is: 'refused', status: 503, refusal });
    driven.after(1_100);
  }
  assert.equal(driven.run.phase, 'failed');
  assert.match(driven.run.trouble?.title ?? '', /stayed busy/);
});

test('every wait ends: no answer, silence, no result, no verdict', () => {
  assert.equal(started().after(ASK_MS + 1).run.phase, 'failed');

  const silent = loading().after(SILENCE_MS + 1).expect('failed', ['stop', 'release']);
  assert.match(silent.run.trouble?.title ?? '', /silent/);

  const endless = loading();
  for (let second = 0; second <= 8 + GRACE_MS / 1000 && endless.run.phase === 'down'; second += 1) {
    endless.after(1_000, { is: 'sample', sample: sample('down', second) });
    endless.after(1);
  }
  assert.equal(endless.run.phase, 'failed');
  assert.match(endless.run.trouble?.title ?? '', /no result/);

  const mute = loading().after(8_000, { is: 'part', part: part('down') });
  mute.after(8_000, { is: 'part', part: part('up') }).after(VERDICT_MS + 1);
  assert.equal(mute.run.phase, 'done');
  assert.equal(mute.run.verdict, null);
});

test('a server that is lost in the middle keeps what was measured', () => {
  const driven = loading().after(300, { is: 'sample', sample: sample('down', 0.3) });
  driven.after(10, { is: 'lost', say: 'closed' });
  assert.equal(driven.run.phase, 'failed');
  assert.equal(driven.run.samples.down.length, 1);
  // Nothing that arrives afterwards changes it.
  driven.after(10, { is: 'part', part: part('down') });
  assert.equal(driven.run.parts.down, undefined);
});

test('when no stream comes through, the page says so at once', () => {
  const driven = loading();
  driven.after(100, { is: 'streams-over', direction: 'down', failed: 4, say: 'HTTP 404' });
  assert.equal(driven.run.phase, 'failed');
  assert.equal(driven.run.trouble?.say, 'HTTP 404');
});

test('leaving gives the place back, and only a place that was had', () => {
  loading().after(10, { is: 'leave' }).expect('left', ['stop', 'release']);
  started().after(10, { is: 'leave' }).expect('left', ['stop']);
});

test('round trips belong to the phase in which they were sent', () => {
  const driven = idle();
  const echo = (at: number, ms: number): void => {
    driven.run = next(driven.run, { is: 'delays', delays: [{ at, ms }], unanswered: 0 }, at).run;
  };
  echo(100, 1);
  echo(2_040, 60); // Answered under load: neither idle nor of the download.
  driven.to(2_050, { is: 'tick' });
  driven.to(2_550, { is: 'sample', sample: sample('down', 0.5) });
  echo(2_500, 20);
  echo(2_050 + SETTLE_MS, 40);
  driven.to(10_050, { is: 'part', part: part('down') });
  echo(10_060, 2);
  assert.deepEqual(delaysOf(driven.run, 'idle').map(({ ms }) => ms), [1]);
  assert.deepEqual(delaysOf(driven.run, 'down').map(({ ms }) => ms), [20, 40]);
  assert.deepEqual(loadedDelays(driven.run, 'down'), [40]);
});

test('what is reported counts from the load of its phase, and before the first load if at rest', () => {
  const run: Run = {
    ...fresh({ streams: 4, seconds: 8, directions: ['down', 'up'] }, 0),
    zero: 1_000,
    began: { down: 3_000, up: 12_000 },
    ended: { down: 11_000, up: 20_000 },
    delays: [
      { at: 1_500, ms: 1.234 },
      { at: 4_500.06, ms: 40 },
      { at: 11_500, ms: 3 },
      { at: 12_250, ms: 50 },
    ],
  };
  assert.deepEqual(reported(run), {
    idle: [[-1.5, 1.23]],
    down: [[1.5001, 40]],
    up: [[0.25, 50]],
  });
  // A request of the server's has 64 KiB: of many, some.
  const many = Array.from({ length: 6_000 }, (_, index) => ({ at: 3_000 + index, ms: 12.34 }));
  const text = JSON.stringify(reported({ ...run, delays: many }));
  assert.ok(text.length < 64 * 1024 && text.length > 16 * 1024, String(text.length));
});

test('findings: what the SYN lacks when it comes to the server', () => {
  const syn = { window_scale: 7, mss_bytes: 1460, sack_permitted: true, timestamps: true, ecn: false };
  const of = (more: object) => {
    const run = fresh({ streams: 4, seconds: 8, directions: ['down'] }, 0);
    const seen = { ...run.seen, down: { ...run.seen.down, bytes: 1e8, streams: 4 } };
    const parts = { down: part('down', { syn: { ...syn, ...more } }) };
    return findings({ ...run, seen, parts }, true).map(({ title, evidence }) => [title, evidence]);
  };
  assert.deepEqual(of({}), []);
  assert.equal(of({ window_scale: null })[0]?.[0], 'No window scale');
  assert.equal(of({ sack_permitted: false })[0]?.[0], 'No selective acknowledgements');
  // PPPoE: 1500 - 8 bytes of packet, 40 of headers (RFC 2516 §7).
  assert.match(of({ mss_bytes: 1412 })[0]?.[1] ?? '', /1412 bytes: packets of 1452 over IPv4/);
});

const seenAll = (run: Run): Run['seen'] => ({
  down: { ...run.seen.down, streams: 4, bytes: 1e8 },
  up: { ...run.seen.up, streams: 4, bytes: 1e8 },
});

const echoes = (from: number, count: number, ms: number): Run['delays'] =>
  Array.from({ length: count }, (_, k) => ({ at: from + 25 * k, ms }));

const titled = (run: Run): string[] => findings(run, true).map(({ title }) => title);

test('findings: marks on packets as they come', () => {
  const run = fresh({ streams: 4, seconds: 8, directions: ['down', 'up'] }, 0);
  const syn = { window_scale: 7, mss_bytes: 1460, sack_permitted: true, timestamps: true, ecn: true };
  const of = (dscp: number, negotiated: boolean, seen: boolean, bytes_all = 1e8): string[] => {
    const up = part('up', { bytes_all, ecn: { negotiated, seen } });
    const down = part('down', { syn: { ...syn, dscp, ecn_field: 0 } });
    return titled({ ...run, seen: { ...seenAll(run), up: { ...run.seen.up } }, parts: { down, up } });
  };
  assert.deepEqual(of(0, true, true), []);
  assert.deepEqual(of(0, false, false), []);
  assert.deepEqual(of(8, true, true), ['Packets come marked']);
  assert.deepEqual(of(0, true, false), ['Congestion marks are wiped out']);
  // Too little came to say so.
  assert.deepEqual(of(0, true, false, 1e3), []);
});

test('findings: a proxy by the distance of its connections', () => {
  const run = fresh({ streams: 4, seconds: 8, directions: ['down'] }, 0);
  const of = (rtt_min_us: number | null, ms: number, via: string[] = []): string[] => {
    const seen = seenAll(run);
    seen.down.via = via;
    const parts = { down: part('down', { rtt_min_us }) };
    return titled({ ...run, zero: 0, delays: echoes(100, 50, ms), seen, parts });
  };
  assert.deepEqual(of(200, 61), ['A proxy is suspected']);
  assert.deepEqual(of(60_000, 61), []);
  // A browser's own delay, and a path of which half is the browser's.
  assert.deepEqual(of(200, 5), []);
  assert.deepEqual(of(40_000, 61), []);
  assert.deepEqual(of(null, 61), []);
  assert.deepEqual(of(200, 61, ['via: 1.1 a']), ['A proxy is in between']);
});

test('findings: large packets that do not pass while small ones do', () => {
  const run = fresh({ streams: 4, seconds: 8, directions: ['up'] }, 0);
  const of = (bytes: number | null, count: number): [string, string][] => {
    const rate_bps = bytes ?? 0;
    const samples = { down: [], up: [{ ...sample('up', 0.1), rate_bps }] };
    const parts = bytes === null ? {} : { up: part('up', { bytes, bytes_all: bytes }) };
    const at = { began: { up: 2_000 }, since: 10_000 };
    const delays = echoes(2_000, count, 20);
    const list = findings({ ...run, zero: 0, ...at, delays, samples, parts }, true);
    return list
      .filter(({ title }) => title.startsWith('Large'))
      .map(({ title, evidence }) => [title, evidence]);
  };
  for (const bytes of [0, null]) {
    const [title, evidence] = of(bytes, 300)[0] ?? ['', ''];
    assert.equal(title, 'Large packets of the upload do not pass');
    assert.match(evidence, /0\sbytes came in 8 s, while 300 messages of 16 bytes/);
  }
  assert.deepEqual(of(0, 5), [], 'nothing passes: the path is down');
  assert.deepEqual(of(1e6, 300), [], 'slow, and whole packets');
});

test('findings: IPv6 against IPv4', () => {
  const run = fresh({ streams: 4, seconds: 8, directions: ['down'] }, 0);
  const of = (v4: number[], v6: number[]): string[] =>
    titled({
      ...run,
      families: [
        { host: '192.0.2.1:5210', times: v4 },
        { host: '[2001:db8::1]:5210', times: v6 },
      ],
    });
  assert.deepEqual(of([20, 22], [21, 40]), []);
  assert.deepEqual(of([20, 22], []), ['IPv6 does not work to this server']);
  assert.deepEqual(of([], [20]), ['IPv4 does not work to this server']);
  assert.deepEqual(of([], []), []);
  assert.deepEqual(of([20, 22], [31, 60]), ['IPv6 is slower than IPv4']);
  assert.deepEqual(of([60], [20]), ['IPv4 is slower than IPv6']);
  assert.deepEqual(of([20, 70], [31, 60]), [], 'late now and then');
  // Half as much again, and no more than a busy computer adds.
  assert.deepEqual(of([2], [5]), []);
  assert.deepEqual(titled({ ...run, families: null }), []);
});

test('findings: browser limit, proxy, buffering, counts, hidden tab, coarse clock', () => {
  const run = fresh({ streams: 4, seconds: 8, directions: ['down', 'up'] }, 0);
  assert.deepEqual(findings(run, true), []);
  const limited: Run = { ...run, parts: { down: part('down', { client_limited: true }) } };
  assert.deepEqual(browserLimited(limited), ['down']);
  const seen = { ...run.seen.down, streams: 4 };
  const odd: Run = {
    ...run,
    hidden: true,
    zero: 0,
    parts: { down: part('down') },
    seen: {
      ...run.seen,
      down: { ...seen, bytes: 5e7, first_byte_ms: 3_000, busy: 0.97, cut: 1, via: ['via: 1.1 a'] },
    },
  };
  const titles = findings(odd, false).map(({ title }) => title);
  assert.deepEqual(titles, [
    'A proxy is in between',
    'Something in between holds data back',
    'Browser and server count the download differently',
    '1 of 4 connections of the download were cut',
    'The browser hardly waited for data',
    'The tab was in the background',
    'Coarse clock',
  ]);
});
