// What a test's records are together: the direction of each, and its goodput over time.
import { together, type Series, type StoredRecord } from './record';

/** The direction of a test that has one. */
export function wayOf({ summary }: StoredRecord): string | null {
  const ways = new Set(summary.flatMap(({ direction }) => (direction === null ? [] : [direction])));
  const [only] = ways;
  return ways.size === 1 && only !== undefined ? only : null;
}

/** The goodput of a record over time, for each direction the sum of its flows as receivers saw them. */
export function goodputOf({ series }: StoredRecord): Series[] {
  const all = series.filter((one) => one.metric === 'goodput_bps' && one.t_ns.length > 1);
  return [...new Set(all.map((one) => one.direction))].map((direction) => {
    const mine = all.filter((one) => one.direction === direction);
    const [first] = mine as [Series];
    const flows = mine.filter((one) => one.side === first.side);
    const whole = flows.find((one) => one.flow === null);
    return whole ?? summed(flows);
  });
}

/** At each time the sum of what was measured last of each flow; before a flow's first nothing. */
function summed(flows: readonly Series[]): Series {
  const { data, lines } = together(flows);
  const [, ...columns] = data;
  const last: (number | null)[] = columns.map(() => null);
  const times = [...new Set(flows.flatMap((one) => one.t_ns))].sort((a, b) => a - b);
  const values = times.map((_, row) => {
    columns.forEach((column, flow) => {
      last[flow] = column[row] ?? last[flow] ?? null;
    });
    return last.every((value) => value !== null) ? last.reduce<number>((sum, it) => sum + (it ?? 0), 0) : null;
  });
  return { ...(lines[0] as Series), flow: null, side: null, t_ns: times, values };
}
