// A session of datagrams: its worker, and which round is when. It comes only where it is needed.
import type { Admitted, Direction } from '../api/types';
import type { DatagramsOrder, DatagramsReport, RoundOrder, Stage } from '../load/messages';
import type { Event } from './machine';

/** A session opens within this, or not at all. */
const CONNECT_MS = 3_000;
/** Datagrams at rest: a hundred a second for five; beside load half as many a second. */
const REST = { count: 500, interval_ms: 10 };
const BESIDE_MS = 20;
const STAGES: Stage[] = ['idle', 'down', 'up'];

export interface Session {
  /** Sends beside the load of a direction, all but its last second. */
  beside: (direction: Direction, seconds: number) => void;
  end: () => void;
}

export function open(
  at: NonNullable<Admitted['datagrams']>,
  happen: (event: Event) => void,
): Session {
  const worker = new Worker(new URL('../load/datagrams.worker.ts', import.meta.url), {
    type: 'module',
  });
  const order = (it: DatagramsOrder | RoundOrder): void => worker.postMessage(it);
  const round = (phase: Stage, count: number, interval_ms: number): void =>
    order({ do: 'round', phase, number: STAGES.indexOf(phase), count, interval_ms });
  const unsent = (say: string): void => happen({ is: 'unsent', say });
  worker.onerror = (): void => unsent('a part of this page did not load');
  worker.onmessage = ({ data }: MessageEvent<DatagramsReport>): void => {
    if (data.is === 'open') round('idle', REST.count, REST.interval_ms);
    if (data.is === 'round') happen(data);
    if (data.is !== 'failed') return;
    const late = `UDP to port ${at.port} does not come through: no answer in ${CONNECT_MS / 1000} s`;
    const failed = `the session of datagrams to UDP port ${at.port} failed: ${data.say}`;
    unsent(data.say === null ? late : failed);
  };
  order({
    do: 'open',
    url: `https://${location.hostname}:${at.port}${at.path}`,
    sha256: at.certificate_sha256,
    within_ms: CONNECT_MS,
  });
  return {
    beside: (direction, seconds) => {
      round(direction, (1000 * Math.max(seconds - 1, 1)) / BESIDE_MS, BESIDE_MS);
    },
    end: () => worker.terminate(),
  };
}
