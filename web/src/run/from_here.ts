// A measurement from the server to another host: asks for the place, listens to the events, and
// keeps what they say until the next one.
import { signal } from '@preact/signals';
import { ask, asApiError, post } from '../api/client';
import type {
  Direction,
  End,
  FromAdmitted,
  FromPart,
  FromReply,
  FromSample,
  Server,
  StateEvent,
  Verdict,
} from '../api/types';

export const KINDS = ['ping', 'tcp', 'udp', 'test', 'trace', 'sweep'] as const;
export type Kind = (typeof KINDS)[number];

export interface Wish {
  kind: Kind;
  target: string;
  seconds: number;
  direction?: Direction;
  streams?: number;
  rate_bps?: number;
}

export interface FromRun {
  wish: Wish;
  phase: 'asking' | 'queued' | 'running' | 'done' | 'failed';
  say: string;
  position: number | null;
  admitted: FromAdmitted | null;
  samples: FromSample[];
  replies: FromReply[];
  parts: FromPart[];
  notes: string[];
  verdict: Verdict | null;
  records: string[];
}

/** The measurement of this tab; null before the first. */
export const from = signal<FromRun | null>(null);
/** What the operator gave to this visitor; only of this tab, and gone with it. */
export const token = signal('');

let events: EventSource | null = null;
let again: ReturnType<typeof setTimeout> | undefined;

export const isGoing = (now: FromRun | null): boolean =>
  now !== null && now.phase !== 'done' && now.phase !== 'failed';

/** The token, as requests show it. */
export const shown = (): Record<string, string> =>
  token.value === '' ? {} : { authorization: `Bearer ${token.value}` };

const headers = (): Record<string, string> => ({
  'content-type': 'application/json',
  ...shown(),
});

/** What the server allows whoever shows the token. */
export const askAllowed = (): Promise<Server> =>
  ask<Server>('/api/v1/server', { headers: headers() });

const set = (change: Partial<FromRun>): void => {
  if (from.value !== null) from.value = { ...from.value, ...change };
};

export function begin(wish: Wish): void {
  quiet();
  from.value = {
    wish,
    phase: 'asking',
    say: '',
    position: null,
    admitted: null,
    samples: [],
    replies: [],
    parts: [],
    notes: [],
    verdict: null,
    records: [],
  };
  void askForPlace(wish, null);
}

/** Nothing more is heard of the one before. */
function quiet(): void {
  clearTimeout(again);
  events?.close();
  events = null;
}

async function askForPlace(wish: Wish, ticket: string | null): Promise<void> {
  try {
    const body = { ...wish, ...(ticket === null ? {} : { ticket }) };
    const admitted = await post<FromAdmitted>('/api/v1/measure', body, { headers: headers() });
    // Whoever left while the answer was in flight does not need the place.
    if (from.value?.wish !== wish || !isGoing(from.value)) return end(admitted);
    set({ admitted, phase: 'running', position: null, say: '' });
    listen(admitted);
  } catch (error) {
    if (from.value?.wish !== wish || !isGoing(from.value)) return;
    const { refusal } = asApiError(error);
    if (refusal.error !== 'busy' || refusal.ticket === undefined) {
      return set({ phase: 'failed', say: refusal.say });
    }
    const { position, retry_after_ms: wait = 2_000 } = refusal;
    set({ phase: 'queued', say: refusal.say, position: position ?? null });
    again = setTimeout(() => void askForPlace(wish, refusal.ticket ?? null), wait);
  }
}

function listen(admitted: FromAdmitted): void {
  const source = new EventSource(admitted.events);
  events = source;
  const on = <T>(name: string, take: (data: T, now: FromRun) => Partial<FromRun>): void => {
    source.addEventListener(name, (message) => {
      const now = from.value;
      if (now === null || events !== source) return;
      set(take(JSON.parse((message as MessageEvent<string>).data) as T, now));
    });
  };
  on<StateEvent>('state', ({ state, say = '' }) =>
    state === 'failed' ? { phase: 'failed', say } : { say },
  );
  on<FromSample>('sample', (one, now) => ({
    samples: [...now.samples, { ...one, part: now.parts.length }],
  }));
  on<FromReply>('reply', (one, now) => ({ replies: [...now.replies, one] }));
  on<FromPart>('part', (one, now) => ({ parts: [...now.parts, one] }));
  on<{ say: string }>('note', ({ say }, now) =>
    now.notes.includes(say) ? {} : { notes: [...now.notes, say] },
  );
  on<Verdict>('verdict', (verdict) => ({ verdict }));
  on<End>('end', ({ records }, now) => {
    source.close();
    return { records, phase: now.phase === 'failed' ? 'failed' : 'done' };
  });
  source.onerror = (): void => {
    // The browser connects again without our help; it gives up only when it is refused.
    if (source.readyState !== EventSource.CLOSED || events !== source) return;
    set({ phase: 'failed', say: 'The server closed the connection by which it reports.' });
  };
}

function end({ run, token: shown }: FromAdmitted): void {
  const query = new URLSearchParams({ token: shown });
  ask(`/api/v1/runs/${run}?${query}`, { method: 'DELETE', keepalive: true }).catch(() => undefined);
}

/** Ends it; what was measured until then comes by the events, as the rest does. */
export function leave(): void {
  const now = from.value;
  if (now === null || !isGoing(now)) return;
  if (now.admitted !== null) return end(now.admitted);
  clearTimeout(again);
  set({ phase: 'failed', say: 'You left the queue.' });
}
