// From the events of a measurement from the server to columns of charts and points of the diagram.
import type { FromPart, FromReply, FromSample } from '../api/types';

type Column = (number | null)[];

/** Time, then the rate of each direction. Tests of a sweep stand one behind the other. */
export function rateColumns(samples: readonly FromSample[], seconds: number): Column[] {
  const columns: Column[] = [[], [], []];
  let last = -1;
  for (const one of samples) {
    const at = (one.part ?? 0) * seconds + one.t_s;
    // A line may cover a little more than its time; uPlot wants rising ones.
    const time = Math.max(at, last + 1e-6);
    last = time;
    (columns[0] as Column).push(time);
    (columns[1] as Column).push(one.direction === 'up' ? one.rate_bps : null);
    (columns[2] as Column).push(one.direction === 'down' ? one.rate_bps : null);
  }
  return columns;
}

/** Time, then round trips in milliseconds; a probe that was lost is a gap. */
export function replyColumns(replies: readonly FromReply[]): Column[] {
  const sorted = [...replies].sort((a, b) => a.t_s - b.t_s);
  return [
    sorted.map(({ t_s }) => t_s),
    sorted.map(({ rtt_us }) => (rtt_us === null ? null : rtt_us / 1000)),
  ];
}

export interface SweepPoint {
  id: string;
  window_bytes: number;
  rate_bps: number;
}

/** Points of a sweep, and the round trip of the path at rest by which theory's curve is drawn. */
export function sweep(parts: readonly FromPart[]): { points: SweepPoint[]; rttMs: number | null } {
  const points = parts.flatMap(({ record, window_bytes, rate_bps }) =>
    window_bytes === null || rate_bps === null ? [] : [{ id: record, window_bytes, rate_bps }],
  );
  const rtts = parts.flatMap(({ rtt_us }) => (rtt_us === null ? [] : [rtt_us / 1000]));
  return { points, rttMs: rtts.length === 0 ? null : Math.min(...rtts) };
}

/** Networks of one address, as a person writes a host. */
export const hosts = (networks: readonly string[]): string[] =>
  networks.flatMap((network) => {
    const [address = '', length] = network.split('/');
    return length === (address.includes(':') ? '128' : '32') ? [address] : [];
  });
