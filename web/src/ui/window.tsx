// Throughput by window with theory's curve, from TCP results that were made with a window: the
// diagram of the GigaSunet reports. Points are measured, the line is one window a round trip.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { ask } from '../api/client';
import type { Summary } from '../api/types';
import type { StoredRecord } from '../show/record';
import { windowRate } from '../show/theory';
import { rate, size, word } from '../show/units';

export interface Point {
  id: string;
  window_bytes: number;
  rate_bps: number;
}

const MOST = 60;
const BOX = { width: 720, height: 340, left: 84, right: 16, top: 16, bottom: 44 };

/** TCP results of the peer that has the most of them. */
export function candidates(results: readonly Summary[]): Summary[] {
  const tcp = results.filter((row) => row.kind === 'tcp' && row.rate_bps !== null && row.rtt_us);
  const byPeer = new Map<string, Summary[]>();
  for (const row of tcp) byPeer.set(row.peer ?? '', [...(byPeer.get(row.peer ?? '') ?? []), row]);
  const most = [...byPeer.values()].sort((a, b) => b.length - a.length)[0] ?? [];
  return most.slice(0, MOST);
}

async function points(rows: readonly Summary[]): Promise<Point[]> {
  const records = await Promise.all(
    rows.map((row) => ask<StoredRecord>(`/api/v1/results/${row.id}`).catch(() => null)),
  );
  return rows.flatMap((row, index) => {
    const window = records[index]?.plan.window_bytes;
    if (typeof window !== 'number' || row.rate_bps === null) return [];
    return [{ id: row.id, window_bytes: window, rate_bps: row.rate_bps }];
  });
}

export function WindowDiagram({ results }: { results: Summary[] }): JSX.Element | null {
  const [found, set] = useState<Point[] | null>(null);
  const rows = candidates(results);
  if (rows.length < 3) return null;
  const rtts = rows.flatMap((row) => (row.rtt_us ? [row.rtt_us / 1000] : []));
  const rttMs = Math.min(...rtts);
  return (
    <section>
      <h2>Throughput by window</h2>
      {found === null && (
        <button type="button" onClick={() => void points(rows).then(set)}>
          Draw from {rows.length} TCP results to {rows[0]?.peer ?? 'this peer'}
        </button>
      )}
      {found !== null && found.length < 2 && (
        <p class="soft">
          These tests left the window to the kernel. <code>linerate tcp HOST -w 64K</code> sets one.
        </p>
      )}
      {found !== null && found.length >= 2 && <Drawing points={found} rttMs={rttMs} />}
    </section>
  );
}

/** Positions on a logarithmic axis of base 2 for windows, linear for rates. */
export function scales(points: readonly Point[]) {
  const windows = points.map((point) => Math.log2(point.window_bytes));
  const from = Math.floor(Math.min(...windows) - 0.2);
  const to = Math.ceil(Math.max(...windows) + 0.2);
  const top = Math.max(...points.map((point) => point.rate_bps)) * 1.15;
  const { width, height, left, right, bottom } = BOX;
  return {
    from,
    to,
    top,
    x: (bytes: number): number =>
      left + ((Math.log2(bytes) - from) / (to - from)) * (width - left - right),
    y: (bps: number): number =>
      height - bottom - (Math.min(bps, top) / top) * (height - BOX.top - bottom),
  };
}

/** Round trips of a loopback are some µs. */
const shortTime = (ms: number): string =>
  ms < 0.1 ? `${(ms * 1000).toFixed(1)} µs` : `${ms.toFixed(2)} ms`;

export function Drawing({ points: list, rttMs }: { points: Point[]; rttMs: number }): JSX.Element {
  const { x, y, from, to, top } = scales(list);
  const cap = Math.max(...list.map((point) => point.rate_bps));
  const steps = Array.from({ length: (to - from) * 8 + 1 }, (_, step) => 2 ** (from + step / 8));
  const curve = steps.map((bytes) => `${x(bytes).toFixed(1)},${y(windowRate(bytes, rttMs, cap)).toFixed(1)}`);
  const ticks = Array.from({ length: to - from + 1 }, (_, index) => 2 ** (from + index));
  const floor = BOX.height - BOX.bottom;
  return (
    <figure>
      <svg viewBox={`0 0 ${BOX.width} ${BOX.height}`} role="img" class="drawing">
        <title>{`Throughput by window for ${list.length} tests and one window each ${shortTime(rttMs)}`}</title>
        {[0, 0.25, 0.5, 0.75, 1].map((share) => (
          <g key={share}>
            <line class="grid" x1={BOX.left} x2={BOX.width - BOX.right} y1={y(top * share)} y2={y(top * share)} />
            <text x={BOX.left - 8} y={y(top * share) + 4} text-anchor="end">
              {word(rate(top * share))}
            </text>
          </g>
        ))}
        {ticks.map((bytes, index) => (
          (ticks.length <= 10 || index % 2 === 0) && (
            <text key={bytes} x={x(bytes)} y={floor + 18} text-anchor="middle">
              {word(size(bytes))}
            </text>
          )
        ))}
        <polyline class="theory" points={curve.join(' ')} />
        {list.map((point) => (
          <circle key={point.id} class="point" cx={x(point.window_bytes)} cy={y(point.rate_bps)} r="4">
            <title>{`${word(size(point.window_bytes))}: ${word(rate(point.rate_bps))}`}</title>
          </circle>
        ))}
      </svg>
      <figcaption class="soft">
        Points: measured goodput by the window that was asked for. Line: one window each{' '}
        {shortTime(rttMs)}, the smallest round trip of these tests, up to the highest rate
        measured.
      </figcaption>
    </figure>
  );
}
