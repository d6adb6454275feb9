// The smoke of a series: the spread of neighbouring runs, after Tobi Oetiker's SmokePing.
import { quantile } from './quantile';

export interface SeriesValue {
  at_s: number;
  value: number;
  record: string;
}

export interface SeriesEvent {
  task: string;
  at_s: number;
  kind: string;
}

export interface Band {
  at_s: number;
  low: number;
  median: number;
  high: number;
}

/** Runs on each side that count with one. */
const AROUND = 4;

/** Median and range of each run and its neighbours. */
export const smoke = (values: readonly SeriesValue[]): Band[] =>
  values.map(({ at_s }, index) => {
    const near = values.slice(Math.max(0, index - AROUND), index + AROUND + 1).map((one) => one.value);
    const at = (share: number): number => quantile(near, share) ?? 0;
    return { at_s, low: Math.min(...near), median: at(0.5), high: Math.max(...near) };
  });
