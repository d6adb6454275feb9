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
  /** What of the figures was not measured, where rates alone judge; empty where all is there. */
  gone: string;
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

/** Rates that are not there. */
function missingRates(near: Leg, far: Leg, whole: Rates, name: Name): string[] {
  const list: string[] = [];
  for (const [way, title] of WAYS) {
    if (!known(near.rates[way])) list.push(`${title.toLowerCase()} over ${name.near}`);
    if (!known(far.rates[way])) list.push(`${title.toLowerCase()} over ${name.far}`);
    if (!known(whole[way])) list.push(`${title.toLowerCase()} over the whole way`);
  }
  return list;
}

/** Round trips that are not there: how a leg's delay grows is known by both of its figures. */
const missingTrips = (near: Leg, far: Leg, name: Name): string[] =>
  ([['near', near], ['far', far]] as const).flatMap(([leg, { trips }]) =>
    known(trips.idle) && known(trips.loaded) ? [] : [`round trips over ${name[leg]}`],
  );

function byRate(near: number, far: number): Vote {
  if (near * LOWER <= far) return 'near';
  return far * LOWER <= near ? 'far' : null;
}

function byDelay(near: number, far: number): Vote {
  if (near >= GROWS_MS && near >= GROWS * Math.max(far, 0)) return 'near';
  return far >= GROWS_MS && far >= GROWS * Math.max(near, 0) ? 'far' : null;
}

/** The worse leg by the rates of both, each way, and by how the delay of both grows while the whole
 *  way carries load. One figure that speaks for a leg is enough if none speaks for the other. Where
 *  delays are missing, rates alone judge, and it says so. */
export function judge(near: Leg, far: Leg, whole: Rates, name: Name): Judged {
  const trips = missingTrips(near, far, name);
  const rates = missingRates(near, far, whole, name);
  if (rates.length > 0) {
    const why = `Not measured: ${[...rates, ...trips].join(', ')}.`;
    return { worse: null, why, gone: '', evidence: [] };
  }
  const gone = trips.length > 0 ? `By rates alone. Not measured: ${trips.join(', ')}.` : '';
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
      return { worse: null, why, gone, evidence };
    }
  }
  if (gone === '') {
    const grown = ({ trips: { idle, loaded } }: Leg): number => (loaded as number) - (idle as number);
    const [one, other] = [grown(near), grown(far)];
    votes.push(byDelay(one, other));
    const by = (ms: number): string => word(delay(Math.max(ms, 0)));
    evidence.push(
      `While the whole way carries load, the round trip grows by ${by(one)} over ${name.near} and by ` +
        `${by(other)} over ${name.far}.`,
    );
  }
  const said = new Set(votes.filter((vote) => vote !== null));
  if (said.size === 1) return { worse: [...said][0] as 'near' | 'far', why: '', gone, evidence };
  const alike = `Rates are within ${Math.round((LOWER - 1) * 100)} % of each other`;
  const why =
    said.size === 2
      ? 'The figures disagree: each leg is the worse one by some of them.'
      : gone === ''
        ? `${alike}, and neither leg's delay grows by much more.`
        : `${alike}.`;
  return { worse: null, why, gone, evidence };
}
