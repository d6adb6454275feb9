// Both legs of a way, one after the other so that they do not disturb each other: the device to this
// server, this server to the one outside (by this server, as "Run from here" does), and the device
// to the one outside; during the last, round trips of both legs at once.
import { signal, type ReadonlySignal } from '@preact/signals';
import { ask, asApiError } from '../api/client';
import type { Direction, Server } from '../api/types';
import type { EchoOrder, EchoReport } from '../load/messages';
import { quantile } from '../show/quantile';
import type { Leg, Rates, Trips } from '../show/leg';
import { forget, leave as leaveTest, lent, run, start } from './drive';
import { begin, from, isGoing, leave as leaveFrom, type FromRun } from './from_here';
import { isOver, SETTLE_MS, type Run } from './machine';

export type Stage = 'check' | 'near' | 'far' | 'whole';

export interface LegRun {
  stage: Stage | 'done' | 'failed' | 'left';
  /** What goes wrong, or what is waited for. */
  title: string;
  say: string;
  near: Leg;
  far: Leg;
  whole: Rates;
  /** Why the server here has no round trips to the one outside; empty where it has. */
  unpinged: string;
  /** Stored results: where, and what they are of. */
  stored: { href: string; name: string }[];
}

export const leg = signal<LegRun | null>(null);

const SECONDS = 8;
const STREAMS = 4;
const ECHO_MS = 25;
/** Beside both directions, the ping goes at rest, and while streams open and close. */
const PING_MORE_S = 12;
/** A measurement from here that says nothing for so much longer than it takes is gone. */
const LATE_MS = 20_000;
const LOOK_MS = 250;
const WAYS: Direction[] = ['down', 'up'];

const clock = (): number => performance.timeOrigin + performance.now();
const none = (): Leg => ({ rates: { down: null, up: null }, trips: { idle: null, loaded: null } });

/** Ended in words, which are shown as they are. */
class Ended extends Error {
  constructor(
    readonly title: string,
    say: string,
  ) {
    super(say);
  }
}

/** What is measured now; another number ends the one before. */
let turn = 0;

const set = (change: Partial<LegRun>): void => {
  if (leg.value !== null) leg.value = { ...leg.value, ...change };
};

export const isMeasured = (now: LegRun | null): boolean =>
  now !== null && now.stage !== 'done' && now.stage !== 'failed' && now.stage !== 'left';

/** Seconds each way, and connections, that both servers allow. */
export function planned(here: Server, there: Server | null): { seconds: number; streams: number } {
  const least = (wanted: number, limits: (number | null | undefined)[]): number =>
    Math.min(wanted, ...limits.filter((limit) => limit != null));
  return {
    seconds: least(SECONDS, [here.limits.seconds, there?.limits.seconds]),
    streams: least(STREAMS, [here.limits.streams, there?.limits.streams]),
  };
}

export function measure(server: Server): void {
  const outer = server.outer;
  if (!outer || isMeasured(leg.value)) return;
  turn += 1;
  const mine = turn;
  leg.value = {
    stage: 'check',
    title: '',
    say: '',
    near: none(),
    far: none(),
    whole: { down: null, up: null },
    unpinged: '',
    stored: [],
  };
  lent.value = true;
  all(server, outer, () => mine === turn)
    .then(
      () => mine === turn && set({ stage: 'done', say: '' }),
      (error: Error) => {
        if (mine !== turn) return;
        const title = error instanceof Ended ? error.title : 'It could not be measured';
        set({ stage: 'failed', title, say: error.message });
      },
    )
    .finally(() => mine === turn && end());
}

/** Ends it; what was measured until then stays. */
export function leave(): void {
  if (!isMeasured(leg.value)) return;
  turn += 1;
  set({ stage: 'left', say: '' });
  end();
}

function end(): void {
  leaveTest();
  forget();
  if (isGoing(from.value)) leaveFrom();
  lent.value = false;
}

async function all(server: Server, outer: string, goes: () => boolean): Promise<void> {
  const base = `http://${outer}`;
  const there = await outside(base, outer);
  if (!goes()) return;
  const { seconds, streams } = planned(server, there);
  set({ stage: 'near' });
  const near = await test('', seconds, streams, goes, server.host);
  if (near === null) return;
  set({ near: { ...none(), rates: ratesOf(near) } });
  keep(near, '', 'device to here');
  set({ stage: 'far' });
  const rates: Rates = { down: null, up: null };
  for (const direction of WAYS) {
    rates[direction] = await fromHere(outer, direction, seconds, streams, goes);
    if (!goes()) return;
    set({ far: { ...none(), rates: { ...rates } } });
  }
  set({ stage: 'whole' });
  await wholeWay({ server, outer, base, seconds, streams, goes });
}

/** Asks the server outside what it allows, and tells one that refuses from one that is away. */
async function outside(base: string, outer: string): Promise<Server> {
  try {
    return await ask<Server>(`${base}/api/v1/server`);
  } catch (error) {
    const { status, refusal } = asApiError(error);
    if (status !== 0) throw new Ended(`${outer} refuses`, `It says: ${refusal.say}.`);
    throw new Ended(
      `${outer} does not answer this device`,
      'It is away, or something between here and there drops what this device sends to it. ' +
        'An old linerate there does not say that it refuses this page.',
    );
  }
}

/** Resolves once `over` holds. */
function when<T>(of: ReadonlySignal<T>, over: (value: T) => boolean): Promise<T> {
  return new Promise((found) => {
    const stop = of.subscribe((value) => {
      if (!over(value)) return;
      found(value);
      queueMicrotask(() => stop());
    });
  });
}

/** A test of this browser; null where it was left. Waits have an end in the machine of the test. */
async function test(
  base: string,
  seconds: number,
  streams: number,
  goes: () => boolean,
  host: string,
): Promise<Run | null> {
  start({ streams, seconds, directions: WAYS }, base);
  const waiting = run.subscribe((now) => {
    if (goes() && now !== null) set({ say: now.phase === 'queued' ? (now.queue?.say ?? '') : '' });
  });
  const over = await when(run, (now) => now === null || isOver(now.phase));
  waiting();
  if (!goes() || over === null || over.phase === 'left') return null;
  if (over.phase === 'failed') {
    const { title = 'It failed', say = '' } = over.trouble ?? {};
    throw new Ended(`Between this device and ${host}: ${title}`, say);
  }
  return over;
}

const ratesOf = ({ parts }: Run): Rates => ({
  down: parts.down?.rate_bps ?? null,
  up: parts.up?.rate_bps ?? null,
});

/** Where the records of a test are. */
function keep({ parts }: Run, base: string, name: string): void {
  const found = WAYS.flatMap((way) => {
    const id = parts[way]?.record;
    return id ? [{ href: `${base}/results/${id}`, name: `${name}, ${way}` }] : [];
  });
  set({ stored: [...(leg.value?.stored ?? []), ...found] });
}

/** The rate of one direction between this server and the one outside. */
async function fromHere(
  outer: string,
  direction: Direction,
  seconds: number,
  streams: number,
  goes: () => boolean,
): Promise<number | null> {
  begin({ kind: 'tcp', target: outer, seconds, direction, streams });
  const now = await fromOver(seconds, goes);
  if (!goes()) return null;
  const part = now.parts[0];
  const failure = now.phase === 'failed' ? now.say : (part?.failure ?? null);
  if (failure !== null) throw new Ended(`From here to ${outer}: refused or failed`, failure);
  if (part !== undefined) {
    const found = { href: `/results/${part.record}`, name: `here to outside, ${direction}` };
    set({ stored: [...(leg.value?.stored ?? []), found] });
  }
  return part?.rate_bps ?? null;
}

/** The measurement from here once it is over, or late. */
async function fromOver(seconds: number, goes: () => boolean): Promise<FromRun> {
  let since: number | null = null;
  for (;;) {
    const now = from.value as FromRun;
    if (!goes() || !isGoing(now)) return now;
    if (goes()) set({ say: now.phase === 'queued' ? now.say : '' });
    if (now.phase === 'running') since ??= clock();
    if (since !== null && clock() - since > seconds * 1000 + LATE_MS) {
      leaveFrom();
      throw new Ended('This server went silent', 'It reports no end of its measurement.');
    }
    await new Promise((wake) => setTimeout(wake, LOOK_MS));
  }
}

interface Whole {
  server: Server;
  outer: string;
  base: string;
  seconds: number;
  streams: number;
  goes: () => boolean;
}

/** The device to the server outside, with round trips of both legs beside it. */
async function wholeWay({ server, outer, base, seconds, streams, goes }: Whole): Promise<void> {
  const delays: { at: number; ms: number }[] = [];
  const echo = new Worker(new URL('../load/echo.worker.ts', import.meta.url), { type: 'module' });
  echo.onmessage = ({ data }: MessageEvent<EchoReport>): void => void delays.push(...data.delays);
  const url = new URL('/api/v1/echo', location.href).href.replace(/^http/, 'ws');
  echo.postMessage({ url, interval_ms: ECHO_MS } satisfies EchoOrder);
  const most = Math.min(2 * seconds + PING_MORE_S, server.limits.seconds ?? 60, 60);
  begin({ kind: 'ping', target: outer.replace(/:\d+$/, ''), seconds: most });
  let first = Infinity;
  const seen = from.subscribe((now) => {
    const reply = now?.replies.find(({ rtt_us }) => rtt_us !== null);
    // A reply is told at once: the first tells when the ping began, by this clock.
    if (reply !== undefined && first === Infinity) {
      first = clock() - (reply.rtt_us ?? 0) / 1000 - reply.t_s * 1000;
    }
  });
  try {
    await when(from, (now) => now === null || now.phase !== 'asking');
    if (!goes()) return;
    const over = await test(base, seconds, streams, goes, outer);
    if (over === null) return;
    const replies = (from.value?.replies ?? []).flatMap(({ t_s, rtt_us }) =>
      rtt_us === null ? [] : [{ at: first + t_s * 1000, ms: rtt_us / 1000 }],
    );
    const now = leg.value as LegRun;
    if (from.value?.phase === 'failed') set({ unpinged: from.value.say });
    set({
      whole: ratesOf(over),
      near: { ...now.near, trips: trips(over, delays) },
      far: { ...now.far, trips: trips(over, replies) },
    });
    keep(over, base, 'device to outside');
  } finally {
    seen();
    echo.terminate();
  }
}

/** Medians before the load and under it: of the direction under which it is larger. */
export function trips(whole: Run, delays: { at: number; ms: number }[]): Trips {
  const of = (from: number, to: number): number | null =>
    quantile(
      delays.filter(({ at, ms }) => at >= from && at + ms < to).map(({ ms }) => ms),
      0.5,
    );
  const begins = WAYS.map((way) => whole.began[way] ?? Infinity);
  const loaded = WAYS.map((way, index) =>
    of((begins[index] as number) + SETTLE_MS, whole.ended[way] ?? -Infinity),
  ).filter((ms) => ms !== null);
  return {
    idle: of(-Infinity, Math.min(...begins)),
    loaded: loaded.length === 0 ? null : Math.max(...loaded),
  };
}
