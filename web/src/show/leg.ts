// Which leg of a way is worse: from the device to the server here, or from there to the one outside.
// Figures in, a judgement out; where they are missing or disagree it says that neither is told apart.
import { delay, rate, word } from './units';

/** Rates of one part of the way, bit/s. */
export interface Rates {
  down: number | null;
  up: number | null;
}

/** Median round trips of one leg in ms: at rest, and while the whole way carries load. */
export interface Trips {
  idle: number | null;
  loaded: number | null;
}

export interface Leg {
  rates: Rates;
  trips: Trips;
}

export interface Judged {
  /** The worse leg; null where they cannot be told apart. */
  worse: 'near' | 'far' | null;
  /** Why they are not told apart; empty where they are. */
  why: string;
  /** What speaks for it, a line each. */
  evidence: string[];
}

/** A rate is lower where the other is so many times it: tests one after the other differ by less. */
export const LOWER = 1.25;
/** A leg's delay grows where it grows by so much, and twice as much as the other's. */
export const GROWS_MS = 10;
const GROWS = 2;
/** The whole way is no faster than its slower leg, nor much slower: else something changed between
 *  the tests, or it goes another way. */
const WHOLE = 2;

type Vote = 'near' | 'far' | null;
type Name = Record<'near' | 'far', string>;

const WAYS = [
  ['down', 'Download'],
  ['up', 'Upload'],
] as const;

const known = (value: number | null): value is number => value !== null && Number.isFinite(value) && value >= 0;

/** What of the figures is not there. */
function missing(near: Leg, far: Leg, whole: Rates, name: Name): string[] {
  const list: string[] = [];
  for (const [way, title] of WAYS) {
    if (!known(near.rates[way])) list.push(`${title.toLowerCase()} over ${name.near}`);
    if (!known(far.rates[way])) list.push(`${title.toLowerCase()} over ${name.far}`);
    if (!known(whole[way])) list.push(`${title.toLowerCase()} over the whole way`);
  }
  for (const leg of ['near', 'far'] as const) {
    const { idle, loaded } = (leg === 'near' ? near : far).trips;
    if (!known(idle) || !known(loaded)) list.push(`round trips over ${name[leg]}`);
  }
  return list;
}

function byRate(near: number, far: number): Vote {
  if (near * LOWER <= far) return 'near';
  return far * LOWER <= near ? 'far' : null;
}

function byDelay(near: number, far: number): Vote {
  if (near >= GROWS_MS && near >= GROWS * Math.max(far, 0)) return 'near';
  return far >= GROWS_MS && far >= GROWS * Math.max(near, 0) ? 'far' : null;
}

/** The worse leg by the rates of both, each way, and by how the delay of both grows while the whole
 *  way carries load. One figure that speaks for a leg is enough if none speaks for the other. */
export function judge(near: Leg, far: Leg, whole: Rates, name: Name): Judged {
  const gone = missing(near, far, whole, name);
  if (gone.length > 0) return { worse: null, why: `Not measured: ${gone.join(', ')}.`, evidence: [] };
  const votes: Vote[] = [];
  const evidence: string[] = [];
  for (const [way, title] of WAYS) {
    const [one, other, all] = [near.rates[way], far.rates[way], whole[way]] as [number, number, number];
    votes.push(byRate(one, other));
    evidence.push(
      `${title}: ${word(rate(one))} over ${name.near}, ${word(rate(other))} over ${name.far}, ` +
        `${word(rate(all))} over the whole way.`,
    );
    const slower = Math.min(one, other);
    if (all > WHOLE * slower || all * WHOLE < slower) {
      const than = all > slower ? 'faster than its slower leg' : 'far slower than either leg';
      const why = `${title} over the whole way is ${than}: the path changed meanwhile, or goes another way.`;
      return { worse: null, why, evidence };
    }
  }
  const grown = [near, far].map(({ trips }) => (trips.loaded as number) - (trips.idle as number));
  const [one, other] = grown as [number, number];
  votes.push(byDelay(one, other));
  const by = (ms: number): string => word(delay(Math.max(ms, 0)));
  evidence.push(
    `While the whole way carries load, the round trip grows by ${by(one)} over ${name.near} and by ` +
      `${by(other)} over ${name.far}.`,
  );
  const said = new Set(votes.filter((vote) => vote !== null));
  if (said.size === 1) return { worse: [...said][0] as 'near' | 'far', why: '', evidence };
  const why =
    said.size === 0
      ? `Rates are within ${Math.round((LOWER - 1) * 100)} % of each other, and neither leg's delay grows by much more.`
      : 'The figures disagree: each leg is the worse one by some of them.';
  return { worse: null, why, evidence };
}
