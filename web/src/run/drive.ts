// Does what the state machine says: asks for the place, listens to the server's events, starts and
// ends the workers, and gives the place back, also when the tab closes.
import { signal } from '@preact/signals';
import { ask, asApiError, post } from '../api/client';
import type { Admitted, Direction, End, Part, Sample, StateEvent, Verdict } from '../api/types';
import type {
  EchoOrder,
  EchoReport,
  FamiliesOrder,
  LoadOrder,
  LoadReport,
  Pulse,
  Reached,
} from '../load/messages';
import type { Session } from './datagrams';
import {
  fresh,
  isMeasuring,
  isOver,
  next,
  reported,
  type Effect,
  type Event,
  type Run,
  type Seen,
  type Wanted,
} from './machine';

const TICK_MS = 100;
const ECHO_MS = 25;
const LAST_COUNTS_MS = 1_000;

/** The last round is told so much after the test at most. */
const LAST_ROUND_MS = 8_000;

/** What the page shows is no older than this. Workers report some sixty times a second, and a page
 *  that is drawn so often takes the time in which the browser would send. */
const SHOWN_MS = 250;

/** The state of the test of this tab as the page shows it; null before the first. */
export const run = signal<Run | null>(null);
/** Whether another view has it, for tests of its own. */
export const lent = signal(false);
/** The state as it is. */
let held: Run | null = null;
let shown = 0;

const clock = (): number => performance.timeOrigin + performance.now();
const absolute = (path: string): string => new URL(path, location.href).href;

let events: EventSource | null = null;
let echo: Worker | null = null;
let streams: Worker | null = null;
let pulse: Worker | null = null;
let families: Worker | null = null;
let datagrams: Session | null = null;
/** The server of this test, and whether it is of load and delay alone. */
let base = '';
let plain = false;

/** Begins a test with this server; `at` another, or '' for this one, by load and delay alone. */
export function start(wanted: Wanted, at?: string): void {
  keep(null);
  endPulse();
  stop();
  base = at ?? '';
  plain = at !== undefined;
  keep(fresh(wanted, clock()));
  pulse = new Worker(new URL('../load/tick.worker.ts', import.meta.url), { type: 'module' });
  pulse.onmessage = (): void => happen({ is: 'tick' });
  pulse.postMessage({ every_ms: TICK_MS } satisfies Pulse);
  happen({ is: 'start' });
}

export const leave = (): void => happen({ is: 'leave' });

export function forget(): void {
  leave();
  keep(null);
}

/** Keeps a state, and shows it when the phase is another or the page lags. */
function keep(state: Run | null): void {
  const turned = state?.phase !== held?.phase;
  held = state;
  const at = clock();
  if (!turned && state !== null && !isOver(state.phase) && at - shown < SHOWN_MS) return;
  shown = at;
  run.value = state;
}

function happen(event: Event): void {
  if (held === null) return;
  const step = next(held, event, clock());
  keep(step.run);
  if (isOver(step.run.phase)) endPulse();
  step.effects.forEach(perform);
}

function perform(effect: Effect): void {
  switch (effect.do) {
    case 'ask':
      void askForPlace(effect.ticket);
      break;
    case 'listen':
      listen();
      break;
    case 'load':
      load(effect.direction);
      if (held?.unsent === null) datagrams?.beside(effect.direction, held.wanted.seconds);
      break;
    case 'report-delays':
      reportDelays();
      break;
    case 'release':
      release();
      break;
    case 'stop':
      stop();
      break;
  }
}

async function askForPlace(ticket: string | null): Promise<void> {
  const mine = held;
  const at = base;
  if (mine === null) return;
  const { streams: count, seconds, directions } = mine.wanted;
  const wish = { streams: count, seconds, directions, ...(ticket === null ? {} : { ticket }) };
  try {
    const admitted = await post<Admitted>(`${at}/api/v1/runs`, wish);
    happen({ is: 'admitted', run: admitted });
    // Whoever left while the answer was in flight does not need the place.
    if (held?.admitted?.run !== admitted.run) giveBack(admitted, at);
  } catch (error) {
    const { status, refusal } = asApiError(error);
    happen({ is: 'refused', status, refusal });
  }
}

function listen(): void {
  const admitted = held?.admitted;
  if (!admitted) return;
  const source = new EventSource(base + admitted.events);
  events = source;
  const on = <T>(name: string, take: (data: T) => Event): void => {
    source.addEventListener(name, (message) => {
      happen(take(JSON.parse((message as MessageEvent<string>).data) as T));
    });
  };
  on<StateEvent>('state', ({ state, say }) => ({ is: 'server', state, say }));
  on<Sample>('sample', (sample) => ({ is: 'sample', sample }));
  on<Part>('part', (part) => ({ is: 'part', part }));
  on<Verdict>('verdict', (verdict) => ({ is: 'verdict', verdict }));
  on<End>('end', ({ records }) => ({ is: 'end', records }));
  source.onerror = (): void => {
    // The browser connects again without our help; it gives up only when it is refused.
    if (source.readyState !== EventSource.CLOSED) return;
    happen({ is: 'lost', say: 'It closed the connection by which it reports the test.' });
  };
  echo = new Worker(new URL('../load/echo.worker.ts', import.meta.url), { type: 'module' });
  echo.onmessage = ({ data }: MessageEvent<EchoReport>): void => {
    if (data.delays.length > 0) happen({ is: 'delays', ...data });
  };
  const url = absolute(`${base}/api/v1/echo`).replace(/^http/, 'ws');
  echo.postMessage({ url, interval_ms: ECHO_MS } satisfies EchoOrder);
  if (plain) return happen({ is: 'unsent', say: 'none were asked for' });
  tryFamilies(admitted.families ?? []);
  openDatagrams(admitted);
}

/** Sends datagrams where that is possible; what it takes comes only then. */
function openDatagrams({ run: id, datagrams: at }: Admitted): void {
  const failed = (): void => happen({ is: 'unsent', say: 'a part of this page did not load' });
  import('./datagrams').then(({ open }) => {
    if (held?.admitted?.run !== id || isOver(held.phase)) return;
    // What it tells after another test has begun is not of that one.
    datagrams = open(at, (event) => held?.admitted?.run === id && happen(event));
  }, failed);
}

/** Both families at once, while the path is at rest. */
function tryFamilies(hosts: string[]): void {
  if (hosts.length < 2) return;
  const worker = new Worker(new URL('../load/families.worker.ts', import.meta.url), {
    type: 'module',
  });
  families = worker;
  worker.onmessage = ({ data }: MessageEvent<Reached[]>): void => {
    worker.terminate();
    if (worker === families) happen({ is: 'families', reached: data });
  };
  worker.postMessage({ hosts } satisfies FamiliesOrder);
}

/** All streams of a direction, and what they saw. */
function load(direction: Direction): void {
  const admitted = held?.admitted;
  if (!admitted) return;
  const { streams: count } = admitted;
  // The last counts of the direction before may still be to come.
  const old = streams;
  setTimeout(() => old?.terminate(), LAST_COUNTS_MS);
  const seen: Seen = { ...(held as Run).seen[direction], streams: count };
  const via = new Set<string>();
  let over = 0;
  const hear = (report: LoadReport): void => {
    if (report.is === 'count') {
      const { bytes, busy, first_byte_ms } = report;
      Object.assign(seen, { bytes, busy, first_byte_ms });
    }
    if (report.is === 'via') {
      report.via.forEach((name) => via.add(name));
      seen.via = [...via];
    }
    if (report.is === 'cut') seen.cut += 1;
    happen({ is: 'seen', direction, seen: { ...seen } });
    if (report.is !== 'cut' && report.is !== 'over') return;
    over += 1;
    if (over < count) return;
    const say = report.is === 'cut' ? `Each was refused or cut: ${report.say}.` : '';
    happen({ is: 'streams-over', direction, failed: seen.cut, say });
  };
  const worker = new Worker(new URL('../load/stream.worker.ts', import.meta.url), { type: 'module' });
  streams = worker;
  worker.onmessage = ({ data }: MessageEvent<LoadReport>): void => hear(data);
  worker.onerror = (): void => {
    worker.terminate();
    while (over < count) hear({ is: 'cut', say: 'the worker failed' });
  };
  const url = absolute(base + admitted.load);
  worker.postMessage({ direction, url, streams: count } satisfies LoadOrder);
}

function reportDelays(): void {
  const mine = held;
  if (!mine?.admitted) return;
  const delays = reported(mine);
  const { run: id, token } = mine.admitted;
  const query = new URLSearchParams({ token });
  // Only what the record keeps of the browser: the test does not fail with it.
  post(`${base}/api/v1/runs/${id}/delays?${query}`, delays).catch(() => undefined);
}

function giveBack({ run: id, token }: Admitted, at: string): void {
  const query = new URLSearchParams({ token });
  ask(`${at}/api/v1/runs/${id}?${query}`, { method: 'DELETE', keepalive: true }).catch(() => undefined);
}

function release(): void {
  const admitted = held?.admitted;
  if (admitted) giveBack(admitted, base);
}

function endPulse(): void {
  pulse?.terminate();
  pulse = null;
}

function endStreams(): void {
  streams?.terminate();
  streams = null;
}

function stop(): void {
  endStreams();
  echo?.terminate();
  echo = null;
  families?.terminate();
  families = null;
  const last = datagrams;
  const whole = held?.phase === 'verdict' || held?.phase === 'done';
  const end = (): void => {
    last?.end();
    if (last === datagrams) datagrams = null;
  };
  if (whole) setTimeout(end, LAST_ROUND_MS);
  else end();
  if (held?.phase === 'verdict') return;
  events?.close();
  events = null;
}

addEventListener('pagehide', () => {
  if (held !== null && isMeasuring(held.phase)) leave();
});

document.addEventListener('visibilitychange', () => {
  if (document.hidden) happen({ is: 'hidden' });
});
