// Quantiles of measured values, without interpolation: the smallest value that at least the share
// `q` of all does not exceed (nearest rank; definition 1 of Hyndman and Fan 1996).

export function quantile(values: readonly number[], q: number): number | null {
  if (values.length === 0) return null;
  const sorted = Float64Array.from(values).sort();
  const rank = Math.max(1, Math.ceil(q * sorted.length));
  return sorted[Math.min(rank, sorted.length) - 1] as number;
}

export interface Spread {
  count: number;
  min: number;
  median: number;
  p99: number;
  max: number;
}

export function spread(values: readonly number[]): Spread | null {
  if (values.length === 0) return null;
  return {
    count: values.length,
    min: quantile(values, 0) as number,
    median: quantile(values, 0.5) as number,
    p99: quantile(values, 0.99) as number,
    max: quantile(values, 1) as number,
  };
}

/** Round trips in a minute, one after the other, at this round-trip time. */
export const tripsPerMinute = (ms: number): number => 60_000 / ms;
