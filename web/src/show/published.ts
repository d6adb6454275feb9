// A stored result beside the figures of a published table: the same metric, each way apart.
import { scope, type SummaryRow } from './record';

export interface PublishedAbout {
  id: string;
  title: string;
  study: string;
  year: number;
  source: string;
}

/** In the unit of its metric; both ends of a range. */
export interface PublishedFigure {
  number: number;
  name: string;
  metric: string;
  low: number;
  high: number;
  printed: string;
}

export interface PublishedTable {
  about: PublishedAbout;
  figures: PublishedFigure[];
}

/** One value of the result that stands beside the table. */
export interface Mine {
  metric: string;
  scope: string;
  stat: string;
  value: number;
}

/** The statistic of each metric that old studies print: the rate of all streams, the mean round trip. */
const STATS: Record<string, readonly string[]> = {
  goodput_bps: ['value', 'mean'],
  rtt_ns: ['mean', 'p50'],
};

/** The values of a result that have a figure beside them, each way and size apart. */
export function mine(summary: readonly SummaryRow[], figures: readonly PublishedFigure[]): Mine[] {
  const metrics = new Set(figures.map(({ metric }) => metric));
  const found = new Map<string, Mine>();
  for (const row of summary) {
    const stats = STATS[row.metric] ?? [];
    if (!metrics.has(row.metric) || row.flow !== null || row.value === null) continue;
    if (!stats.includes(row.stat)) continue;
    const of = scope(row);
    const known = found.get(`${row.metric} ${of}`);
    if (known !== undefined && stats.indexOf(known.stat) <= stats.indexOf(row.stat)) continue;
    found.set(`${row.metric} ${of}`, { metric: row.metric, scope: of, stat: row.stat, value: row.value });
  }
  return [...found.values()];
}

/** How many times the published figure a value is: both ends of it where that is a range. */
export function times(value: number, { low, high }: PublishedFigure): [number, number] | null {
  if (!(low > 0) || !(high > 0)) return null;
  return [value / high, value / low];
}

/** Whether a result has a value that old studies print. */
export const comparable = (summary: readonly SummaryRow[]): boolean =>
  summary.some(({ metric, flow, value }) => metric in STATS && flow === null && value !== null);
