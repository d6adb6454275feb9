// A session of datagrams: its worker, and which round is when. It comes only where it is needed.
import type { Admitted, Direction } from '../api/types';
import type { DatagramsOrder, DatagramsReport, RoundOrder, Stage } from '../load/messages';
import { ROUND_MS, type Event } from './machine';

/** A session opens within this, or not at all. */
const CONNECT_MS = 5_000;
/** Datagrams at rest: a hundred a second for five, or as many as there is time for after a slow
 *  handshake; beside load half as many a second. */
const REST = { count: 500, interval_ms: 10 };
const BESIDE_MS = 20;
/** After its last datagram a round takes so long. */
const TOLD_MS = 2_000;
const STAGES: Stage[] = ['idle', 'down', 'up'];

export interface Session {
  /** Sends beside the load of a direction, all but its last second. */
  beside: (direction: Direction, seconds: number) => void;
  end: () => void;
}

/** Why this page cannot send datagrams, in words; null where it can. */
function unable(at: Admitted['datagrams']): string | null {
  if (at == null) return 'this server takes no datagrams (linerate serve --quic-port)';
  if (!isSecureContext) return 'browsers send datagrams from pages over https or of localhost alone';
  return 'WebTransport' in globalThis ? null : 'this browser has no WebTransport';
}

/** Opens one and sends at rest; null, and why, where that cannot be. */
export function open(
  at: Admitted['datagrams'],
  happen: (event: Event) => void,
): Session | null {
  const unsent = (say: string): void => happen({ is: 'unsent', say });
  const why = unable(at);
  if (why !== null || at == null) {
    unsent(why ?? '');
    return null;
  }
  const worker = new Worker(new URL('../load/datagrams.worker.ts', import.meta.url), {
    type: 'module',
  });
  const order = (it: DatagramsOrder | RoundOrder): void => worker.postMessage(it);
  const round = (phase: Stage, count: number, interval_ms: number): void =>
    order({ do: 'round', phase, number: STAGES.indexOf(phase), count, interval_ms });
  const begin = performance.now();
  worker.onerror = (): void => unsent('a part of this page did not load');
  worker.onmessage = ({ data }: MessageEvent<DatagramsReport>): void => {
    if (data.is === 'open') {
      const left = ROUND_MS - TOLD_MS - (performance.now() - begin);
      round('idle', Math.min(REST.count, Math.floor(left / REST.interval_ms)), REST.interval_ms);
    }
    if (data.is === 'round') happen(data);
    if (data.is !== 'failed') return;
    const late = `UDP to port ${at.port} does not come through: nothing answers there`;
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
