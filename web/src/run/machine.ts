// "Test this path" as a state machine without clock and network: an event and its time go in, the
// next state and what to do come out. Every state that waits has an end of its own, so that nothing
// on the page waits for ever. The controller in drive.ts does what is to be done.
import type { Reached, Round, Stage } from '../load/messages';
import type { Admitted, Direction, Part, Refusal, Sample, Verdict } from '../api/types';

export type Phase =
  | 'ready'
  | 'asking'
  | 'queued'
  | 'idle'
  | 'down'
  | 'up'
  | 'verdict'
  | 'done'
  | 'failed'
  | 'left';

/** How long the idle path is watched, and how long each wait may last, in milliseconds. */
export const IDLE_MS = 2_000;
export const ASK_MS = 12_000;
export const SILENCE_MS = 6_000;
/** With datagrams at rest it is watched longer, and never beyond this: the server waits 10 s. */
export const ROUND_MS = 9_000;
export const GRACE_MS = 8_000;
export const VERDICT_MS = 10_000;
export const QUEUE_MS = 15 * 60_000;
/** Without a time from the server, ask again after this. */
const RETRY_MS = 3_000;
/** Loaded latency counts from here: slow start is over and queues have filled. */
export const SETTLE_MS = 1_000;

export interface Wanted {
  streams: number;
  seconds: number;
  directions: Direction[];
}

/** What the browser saw of a direction's load: a check of the server's count, no result. */
export interface Seen {
  bytes: number;
  /** From asking for a stream to its first byte, the longest of the streams. */
  first_byte_ms: number | null;
  /** Share of the time in which not all readers waited for the network. */
  busy: number | null;
  streams: number;
  cut: number;
  /** Names of proxies by header fields of the answers. */
  via: string[];
}

export interface Trouble {
  title: string;
  say: string;
}

export interface Run {
  phase: Phase;
  /** When this phase began. All times are milliseconds of one clock. */
  since: number;
  /** When the server was last heard of. */
  heard: number;
  wanted: Wanted;
  admitted: Admitted | null;
  queue: { since: number; position: number | null; retry_at: number; say: string } | null;
  ticket: string | null;
  /** When the idle path began to be watched: zero of the charts. */
  zero: number | null;
  /** When the load of each direction began, and when its result came. */
  began: Partial<Record<Direction, number>>;
  ended: Partial<Record<Direction, number>>;
  samples: Record<Direction, Sample[]>;
  parts: Partial<Record<Direction, Part>>;
  seen: Record<Direction, Seen>;
  /** Round trips of the echo: when the answer was sent for, and how long it took. */
  delays: { at: number; ms: number }[];
  unanswered: number;
  /** The server by its address of each family, IPv4 first; null where that was not tried. */
  families: Reached[] | null;
  /** What became of datagrams in each phase. */
  rounds: Partial<Record<Stage, Round>>;
  /** Why there are none, or no more; null while there may be. */
  unsent: string | null;
  verdict: Verdict | null;
  records: string[];
  trouble: Trouble | null;
  hidden: boolean;
}

export type Event =
  | { is: 'start' }
  | { is: 'admitted'; run: Admitted }
  | { is: 'refused'; status: number; refusal: Refusal }
  | { is: 'server'; state: string; say?: string | undefined }
  | { is: 'sample'; sample: Sample }
  | { is: 'part'; part: Part }
  | { is: 'verdict'; verdict: Verdict }
  | { is: 'end'; records: string[] }
  | { is: 'delays'; delays: { at: number; ms: number }[]; unanswered: number }
  | { is: 'families'; reached: Reached[] }
  | { is: 'round'; phase: Stage; round: Round }
  | { is: 'unsent'; say: string }
  | { is: 'seen'; direction: Direction; seen: Seen }
  | { is: 'streams-over'; direction: Direction; failed: number; say: string }
  | { is: 'lost'; say: string }
  | { is: 'hidden' }
  | { is: 'leave' }
  | { is: 'tick' };

export type Effect =
  | { do: 'ask'; ticket: string | null }
  | { do: 'listen' }
  | { do: 'load'; direction: Direction }
  | { do: 'report-delays' }
  | { do: 'stop' }
  | { do: 'release' };

export interface Step {
  run: Run;
  effects: Effect[];
}

const unseen = (): Seen => ({
  bytes: 0,
  first_byte_ms: null,
  busy: null,
  streams: 0,
  cut: 0,
  via: [],
});

export function fresh(wanted: Wanted, at: number): Run {
  return {
    phase: 'ready',
    since: at,
    heard: at,
    wanted,
    admitted: null,
    queue: null,
    ticket: null,
    zero: null,
    began: {},
    ended: {},
    samples: { down: [], up: [] },
    parts: {},
    seen: { down: unseen(), up: unseen() },
    delays: [],
    unanswered: 0,
    families: null,
    rounds: {},
    unsent: null,
    verdict: null,
    records: [],
    trouble: null,
    hidden: false,
  };
}

export const isOver = (phase: Phase): boolean =>
  phase === 'done' || phase === 'failed' || phase === 'left';

export const isMeasuring = (phase: Phase): boolean =>
  phase === 'idle' || phase === 'down' || phase === 'up' || phase === 'verdict';

const enter = (run: Run, phase: Phase, at: number, more: Partial<Run> = {}): Run => ({
  ...run,
  ...more,
  phase,
  since: at,
  heard: at,
});

const stay = (run: Run): Step => ({ run, effects: [] });

function fail(run: Run, at: number, title: string, say: string): Step {
  const effects: Effect[] = [{ do: 'stop' }];
  if (run.admitted !== null) effects.push({ do: 'release' });
  return { run: enter(run, 'failed', at, { trouble: { title, say } }), effects };
}

/** Over with the figures, and with the verdict if it came. */
const finished = (run: Run, at: number): Step => ({
  run: enter(run, 'done', at),
  effects: [{ do: 'stop' }],
});

/** The directions that still have to be loaded, in order. */
const left = (run: Run): Direction[] =>
  (run.admitted?.directions ?? run.wanted.directions).filter((way) => !run.parts[way]);

/** On to the next direction, or to the verdict after the last one. */
function onward(run: Run, at: number): Step {
  const [direction] = left(run);
  if (run.admitted?.directions.length === 0) {
    return { run: enter(run, 'done', at), effects: [{ do: 'stop' }, { do: 'release' }] };
  }
  if (direction === undefined) {
    return {
      run: enter(run, 'verdict', at),
      effects: [{ do: 'stop' }, { do: 'report-delays' }],
    };
  }
  const began = { ...run.began, [direction]: at };
  return { run: enter(run, direction, at, { began }), effects: [{ do: 'load', direction }] };
}

function refused(run: Run, at: number, status: number, refusal: Refusal): Step {
  if (refusal.error === 'busy') {
    const queue = {
      since: run.queue?.since ?? at,
      position: refusal.position ?? null,
      retry_at: at + (refusal.retry_after_ms ?? RETRY_MS),
      say: refusal.say,
    };
    return stay(enter(run, 'queued', at, { queue, ticket: refusal.ticket ?? run.ticket }));
  }
  if (status === 0) return fail(run, at, 'The server does not answer', refusal.say);
  return fail(run, at, 'The server does not take this test', refusal.say);
}

function tick(run: Run, at: number): Step {
  const waited = at - run.since;
  switch (run.phase) {
    case 'asking':
      if (waited <= ASK_MS) return stay(run);
      return fail(
        run,
        at,
        'The server does not answer',
        `Asked for a place ${ASK_MS / 1000} s ago, without any answer.`,
      );
    case 'queued':
      return tickQueued(run, at);
    case 'idle':
      if (waited < IDLE_MS) return stay(run);
      if (run.unsent === null && !run.rounds.idle && waited < ROUND_MS) return stay(run);
      return onward(run, at);
    case 'down':
    case 'up':
      return tickLoad(run, at, run.phase);
    case 'verdict':
      return waited > VERDICT_MS ? finished(run, at) : stay(run);
    default:
      return stay(run);
  }
}

function tickQueued(run: Run, at: number): Step {
  const { queue } = run;
  if (queue === null || at < queue.retry_at) return stay(run);
  if (at - queue.since > QUEUE_MS) {
    const minutes = QUEUE_MS / 60_000;
    return fail(run, at, 'The server stayed busy', `No place became free in ${minutes} minutes.`);
  }
  return { run: enter(run, 'asking', at), effects: [{ do: 'ask', ticket: run.ticket }] };
}

function tickLoad(run: Run, at: number, direction: Direction): Step {
  const planned = (run.admitted?.seconds ?? run.wanted.seconds) * 1000;
  if (at - run.since > planned + GRACE_MS) {
    return fail(
      run,
      at,
      'The server gave no result',
      `The ${direction} test of ${planned / 1000} s should have ended ${GRACE_MS / 1000} s ago.`,
    );
  }
  if (at - run.heard <= SILENCE_MS) return stay(run);
  return fail(
    run,
    at,
    'The server went silent',
    `Nothing was heard of it for ${SILENCE_MS / 1000} s in the middle of the test: it stopped, ` +
      'or the network between is down. What was measured until then is below.',
  );
}

/** What the server sends while a test runs. */
function fromServer(run: Run, at: number, event: Event): Step {
  switch (event.is) {
    case 'server':
      if (event.state !== 'failed') return stay({ ...run, heard: at });
      return fail(run, at, 'The server ended the test', event.say ?? 'It gave no reason.');
    case 'sample': {
      const { direction } = event.sample;
      const samples = { ...run.samples, [direction]: [...run.samples[direction], event.sample] };
      // The direction begins when the first sample says so, not when it was asked for.
      const start = at - event.sample.t_s * 1000;
      const known = run.began[direction];
      const first = run.samples[direction].length === 0;
      const began = { ...run.began };
      began[direction] = first || known === undefined ? start : Math.min(known, start);
      return stay({ ...run, heard: at, samples, began });
    }
    case 'part': {
      const { direction } = event.part;
      const next: Run = {
        ...run,
        heard: at,
        parts: { ...run.parts, [direction]: event.part },
        ended: { ...run.ended, [direction]: at },
      };
      return run.phase === direction ? onward(next, at) : stay(next);
    }
    case 'verdict':
      return stay({ ...run, heard: at, verdict: event.verdict });
    case 'end':
      return finished({ ...run, records: event.records }, at);
    default:
      return stay(run);
  }
}

function streamsOver(run: Run, at: number, event: Event & { is: 'streams-over' }): Step {
  const all = run.admitted?.streams ?? run.wanted.streams;
  if (run.phase !== event.direction || event.failed < all || run.parts[event.direction]) {
    return stay(run);
  }
  // The server may have ended the direction and not yet have said so: its silence decides.
  if (run.samples[event.direction].length > 0) return stay(run);
  return fail(run, at, 'No stream could be opened', event.say);
}

/** The next state and what to do, after `event` at the time `at` in milliseconds. */
export function next(run: Run, event: Event, at: number): Step {
  if (event.is === 'seen') {
    return stay({ ...run, seen: { ...run.seen, [event.direction]: event.seen } });
  }
  if (event.is === 'families') return stay({ ...run, families: event.reached });
  if (event.is === 'round') {
    return stay({ ...run, rounds: { ...run.rounds, [event.phase]: event.round } });
  }
  if (event.is === 'unsent') return stay({ ...run, unsent: event.say });
  if (isOver(run.phase)) return stay(run);
  switch (event.is) {
    case 'start':
      if (run.phase !== 'ready') return stay(run);
      return { run: enter(run, 'asking', at), effects: [{ do: 'ask', ticket: null }] };
    case 'admitted':
      if (run.phase !== 'asking') return stay(run);
      return {
        run: enter(run, 'idle', at, { admitted: event.run, zero: at, queue: null }),
        effects: [{ do: 'listen' }],
      };
    case 'refused':
      return run.phase === 'asking' ? refused(run, at, event.status, event.refusal) : stay(run);
    case 'delays':
      return stay({
        ...run,
        delays: run.delays.concat(event.delays),
        unanswered: event.unanswered,
      });
    case 'streams-over':
      return streamsOver(run, at, event);
    case 'lost':
      // With the figures of every direction there, only the verdict is missing.
      if (run.phase === 'verdict') return finished(run, at);
      return fail(run, at, 'The server was lost', event.say);
    case 'hidden':
      return stay(isMeasuring(run.phase) ? { ...run, hidden: true } : run);
    case 'leave': {
      const effects: Effect[] = [{ do: 'stop' }];
      if (run.admitted !== null) effects.push({ do: 'release' });
      return { run: enter(run, 'left', at), effects };
    }
    case 'tick':
      return tick(run, at);
    default:
      return isMeasuring(run.phase) ? fromServer(run, at, event) : stay(run);
  }
}

/** Round trips of one phase: before load, or while a direction carries it. */
export function delaysOf(run: Run, phase: 'idle' | Direction): { at: number; ms: number }[] {
  const { zero } = run;
  if (zero === null) return [];
  const starts = Object.values(run.began);
  if (phase === 'idle') {
    const until = starts.length > 0 ? Math.min(...starts) : Infinity;
    return run.delays.filter(({ at, ms }) => at >= zero && at + ms < until);
  }
  const from = run.began[phase];
  if (from === undefined) return [];
  const until = run.ended[phase] ?? Infinity;
  return run.delays.filter(({ at }) => at >= from && at < until);
}

/** More are not reported: a request of the server's has 64 KiB. */
const REPORTED = 2_400;

/** What the record keeps: seconds since the begin of the phase's load, and the round trip in ms. */
export function reported(run: Run): Record<'idle' | Direction, [number, number][]> {
  const starts = Object.values(run.began);
  const first = starts.length > 0 ? Math.min(...starts) : Infinity;
  const every = Math.ceil(run.delays.length / REPORTED);
  const pairs = (phase: 'idle' | Direction, zero: number): [number, number][] =>
    delaysOf(run, phase)
      .filter(({ at }, index) => index % every === 0 && (phase !== 'idle' || at < zero))
      .map(({ at, ms }) => [rounded((at - zero) / 1000, 4), rounded(ms, 2)]);
  return {
    idle: first === Infinity ? [] : pairs('idle', first).filter(([t_s]) => t_s < 0),
    down: pairs('down', run.began.down ?? 0),
    up: pairs('up', run.began.up ?? 0),
  };
}

const rounded = (value: number, places: number): number => Number(value.toFixed(places));

/** Those of a direction after its start, when queues have filled. */
export const loadedDelays = (run: Run, direction: Direction): number[] =>
  delaysOf(run, direction)
    .filter(({ at }) => at - (run.began[direction] ?? 0) >= SETTLE_MS)
    .map(({ ms }) => ms);
