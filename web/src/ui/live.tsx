// The charts of a test as it runs and afterwards: rate above, round trips below, over one time.
import type { JSX } from 'preact';
import { useMemo } from 'preact/hooks';
import type { Direction } from '../api/types';
import { delaysOf, IDLE_MS, type Run } from '../run/machine';
import { quantile } from '../show/quantile';
import { delay, rate, word, type Quantity } from '../show/units';
import { Chart, type Band, type Line } from './chart';
import { Figure } from './parts';

const WAYS: readonly Direction[] = ['down', 'up'];
const NAME = { down: 'Download', up: 'Upload' } as const;
const RECENT_MS = 1_000;

type Column = (number | null)[];

/** Columns of the rate chart: time, then for each direction the streams and the sum. */
export function rateColumns(run: Run): Column[] {
  const count = run.admitted?.streams ?? run.wanted.streams;
  const zero = run.zero ?? 0;
  const width = count > 1 ? count + 1 : 1;
  const columns: Column[] = Array.from({ length: 1 + 2 * width }, () => []);
  WAYS.forEach((way, index) => {
    const begin = (run.began[way] ?? zero) - zero;
    for (const sample of run.samples[way]) {
      columns.forEach((column) => column.push(null));
      const row = (columns[0] as Column).length - 1;
      (columns[0] as Column)[row] = begin / 1000 + sample.t_s;
      const first = 1 + index * width;
      if (count > 1) {
        sample.streams.slice(0, count).forEach((bps, stream) => {
          (columns[first + stream] as Column)[row] = bps;
        });
      }
      (columns[first + width - 1] as Column)[row] = sample.rate_bps;
    }
  });
  return columns;
}

function rateLines(run: Run): Line[] {
  const count = run.admitted?.streams ?? run.wanted.streams;
  const single = Array.from({ length: count > 1 ? count : 0 });
  return WAYS.flatMap((way) => [
    ...single.map((_, stream) => ({
      label: `${NAME[way]}, connection ${stream + 1}`,
      ink: `--${way}`,
      thin: true,
    })),
    { label: NAME[way], ink: `--${way}`, fill: true },
  ]);
}

/** Columns of the latency chart: time, then idle, download, upload. */
export function delayColumns(run: Run): Column[] {
  const zero = run.zero ?? 0;
  const columns: Column[] = [[], [], [], []];
  (['idle', 'down', 'up'] as const).forEach((phase, index) => {
    for (const { at, ms } of delaysOf(run, phase)) {
      columns.forEach((column) => column.push(null));
      const row = (columns[0] as Column).length - 1;
      (columns[0] as Column)[row] = (at - zero) / 1000;
      (columns[1 + index] as Column)[row] = ms;
    }
  });
  return sortedByTime(columns);
}

/** uPlot wants rising times; an answer that was late comes in after later ones. */
function sortedByTime(columns: Column[]): Column[] {
  const times = columns[0] as number[];
  const order = times.map((_, row) => row).sort((a, b) => (times[a] ?? 0) - (times[b] ?? 0));
  return columns.map((column) => order.map((row) => column[row] ?? null));
}

function bands(run: Run, whole: number): Band[] {
  const zero = run.zero ?? 0;
  const list: Band[] = [];
  const starts = WAYS.flatMap((way) => {
    const at = run.began[way];
    return at === undefined ? [] : [{ from: (at - zero) / 1000, label: NAME[way] }];
  });
  list.push({ from: 0, to: starts[0]?.from ?? IDLE_MS / 1000, label: 'Idle' });
  starts.forEach(({ from, label }, index) => {
    list.push({ from, to: starts[index + 1]?.from ?? whole, label });
  });
  return list;
}

function wholeSeconds(run: Run): number {
  const each = run.admitted?.seconds ?? run.wanted.seconds;
  const planned = IDLE_MS / 1000 + each * run.wanted.directions.length;
  const last = run.ended.up ?? run.ended.down;
  const measured = last !== undefined && run.zero !== null ? (last - run.zero) / 1000 : 0;
  return Math.max(planned, measured);
}

export function Charts({ now }: { now: Run }): JSX.Element {
  const whole = wholeSeconds(now);
  const rates = useMemo(() => rateColumns(now), [now.samples, now.began]);
  const delays = useMemo(() => delayColumns(now), [now.delays, now.began, now.ended]);
  const marks = bands(now, whole);
  const dots = (['idle', 'down', 'up'] as const).map((phase) => ({
    label: phase,
    ink: phase === 'idle' ? '--idle' : `--${phase}`,
    dots: true,
  }));
  return (
    <div class="charts">
      <h2 class="caption">
        Rate <span class="soft">payload, by the server’s count; thin lines: each connection</span>
      </h2>
      <Chart
        label={`Rate over time. ${said(now)}`}
        show={(value) => word(rate(value))}
        lines={rateLines(now)}
        data={rates as never}
        range={[0, whole]}
        bands={marks}
        height={220}
        sync="test"
      />
      <h2 class="caption">
        Round trip <span class="soft">by WebSocket echo, beside the load</span>
      </h2>
      <Chart
        label="Round-trip time over time, idle and under load; the table has its quantiles."
        show={(value) => word(delay(value))}
        lines={dots}
        data={delays as never}
        range={[0, whole]}
        bands={marks}
        height={160}
        sync="test"
      />
    </div>
  );
}

const said = (run: Run): string =>
  WAYS.map((way) => `${NAME[way]} ${word(rate(rateNow(run, way)))}`).join(', ');

/** The result when there is one, else the last second's mean. */
export function rateNow(run: Run, way: Direction): number | null {
  const part = run.parts[way];
  if (part !== undefined) return part.rate_bps;
  const last = run.samples[way].slice(-10);
  if (last.length === 0) return null;
  return last.reduce((sum, sample) => sum + sample.rate_bps, 0) / last.length;
}

export function Live({ now }: { now: Run }): JSX.Element {
  const newest = now.delays.at(-1)?.at ?? 0;
  const recent = now.delays.filter(({ at }) => newest - at <= RECENT_MS).map(({ ms }) => ms);
  const figures: [string, string, Quantity][] = [
    ['Download', 'down', rate(rateNow(now, 'down'))],
    ['Upload', 'up', rate(rateNow(now, 'up'))],
    ['Round trip now', 'idle', delay(quantile(recent, 0.5))],
  ];
  return (
    <>
      <dl class="figures">
        {figures.map(([name, key, value]) => (
          <div key={name} class={key === now.phase ? 'current' : ''}>
            <dt>
              <i class={`key ${key}`} />
              {name}
            </dt>
            <dd>
              <Figure of={value} />
            </dd>
          </div>
        ))}
      </dl>
      <Charts now={now} />
    </>
  );
}
