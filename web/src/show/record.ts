// What the page reads of a stored record (spec/record.schema.json). The unit of a metric is the
// end of its name, so that metrics which come later are shown right without a change here.
import { bytes, delay, digits, percent, rate, size, word } from './units';

export interface SummaryRow {
  metric: string;
  stat: string;
  value: number | null;
  n: number | null;
  direction: string | null;
  flow: number | null;
  payload_bytes: number | null;
}

export interface Series {
  metric: string;
  direction: string | null;
  flow: number | null;
  side: string | null;
  t_ns: number[];
  values: (number | null)[];
}

/** What became of datagrams of the page, one way: at rest, or beside the load. */
export interface PageDatagrams {
  phase: 'idle' | 'up' | 'down';
  direction: 'up' | 'down';
  sent: number;
  lost: number;
  duplicates: number;
  reordered: number;
  jitter_ns: number | null;
}

export interface StoredRecord {
  schema: string;
  id: string;
  tool: { name: string; version: string };
  status: string;
  name: string | null;
  started_at: string;
  duration_ns: number;
  plan: { kind: string; host?: string | null; window_bytes?: number | null; streams?: number };
  summary: SummaryRow[];
  series: Series[];
  page_datagrams?: PageDatagrams[];
  tags?: Record<string, string>;
}

/** As programs name a result: the time of an identifier alone is that of its neighbours too. */
export const short = (id: string): string => id.slice(0, 13);

/** A value in the unit that the metric's name ends in. */
export function inUnit(metric: string, value: number | null | undefined): string {
  if (typeof value !== 'number' || !Number.isFinite(value)) return '–';
  if (metric.endsWith('_bps')) return word(rate(value));
  if (metric.endsWith('_ns')) return word(delay(value / 1e6));
  if (metric.endsWith('_bytes')) return word(metric.includes('window') ? size(value) : bytes(value));
  if (metric.endsWith('_ratio')) return word(percent(value));
  if (metric.endsWith('_per_sec')) return `${digits(value)}\u00a0/s`;
  return Number.isInteger(value) ? value.toLocaleString('en') : digits(value);
}

/** Titles of metrics by their keys, as the server's own table has them. */
const titles = new Map<string, string>();

export function learnNames(names: Record<string, string>): void {
  for (const [metric, title] of Object.entries(names)) titles.set(metric, title);
}

/** The title of a metric; of one that the server did not name the key without unit and underscores. */
export const metricName = (metric: string): string =>
  titles.get(metric) ?? metric.replace(/_(ns|bps|bytes|ratio|per_sec)$/, '').replaceAll('_', ' ');

const WAYS: Record<string, string> = {
  up: 'client to server',
  down: 'server to client',
};

/** Of which part of the test a row speaks; empty for all of it. */
export function scope(row: {
  direction: string | null;
  flow: number | null;
  payload_bytes?: number | null;
}): string {
  const parts: string[] = [];
  if (row.direction !== null) parts.push(WAYS[row.direction] ?? row.direction);
  if (row.flow !== null) parts.push(`flow ${row.flow}`);
  if (row.payload_bytes != null) parts.push(`${row.payload_bytes} bytes`);
  return parts.join(', ');
}

export interface Row {
  key: string;
  name: string;
  scope: string;
  stats: SummaryRow[];
}

/** The summary by metric and scope, each with its statistics, in the record's order. */
export function rows(summary: readonly SummaryRow[]): Row[] {
  const found = new Map<string, Row>();
  for (const row of summary) {
    const of = scope(row);
    const key = `${row.metric}|${of}`;
    const known = found.get(key) ?? { key, name: metricName(row.metric), scope: of, stats: [] };
    known.stats.push(row);
    found.set(key, known);
  }
  return [...found.values()];
}

/** Series of one metric, to be drawn together: times in seconds, one column each. */
export function together(series: readonly Series[]): { data: (number | null)[][]; lines: Series[] } {
  const times = [...new Set(series.flatMap((one) => one.t_ns))].sort((a, b) => a - b);
  const row = new Map(times.map((time, index) => [time, index]));
  const columns = series.map((one) => {
    const column: (number | null)[] = new Array(times.length).fill(null);
    one.t_ns.forEach((time, index) => {
      column[row.get(time) as number] = one.values[index] ?? null;
    });
    return column;
  });
  return { data: [times.map((ns) => ns / 1e9), ...columns], lines: [...series] };
}

/** Metrics in the order of interest: rates, times, then the rest as they come. */
export function metricsOf(series: readonly Series[]): string[] {
  const rank = (metric: string): number =>
    metric === 'goodput_bps' ? 0 : metric.includes('rtt') ? 1 : metric.endsWith('_bps') ? 2 : 3;
  const names = [...new Set(series.filter((one) => one.t_ns.length > 1).map((one) => one.metric))];
  return names.sort((a, b) => rank(a) - rank(b));
}

/** The metrics that both records have, for one beside the other. */
export interface Pair {
  key: string;
  name: string;
  scope: string;
  stat: string;
  metric: string;
  first: number | null;
  second: number | null;
}

export function pairs(first: readonly SummaryRow[], second: readonly SummaryRow[]): Pair[] {
  const keyOf = (row: SummaryRow): string => `${row.metric}|${scope(row)}|${row.stat}`;
  const others = new Map(second.map((row) => [keyOf(row), row]));
  return first.flatMap((row) => {
    const other = others.get(keyOf(row));
    if (other === undefined || row.flow !== null) return [];
    const { metric, stat } = row;
    const [name, of] = [metricName(metric), scope(row)];
    return [{ key: keyOf(row), name, scope: of, stat, metric, first: row.value, second: other.value }];
  });
}
