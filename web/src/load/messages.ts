// What the page and its workers say to each other.
import type { Direction } from '../api/types';

export interface LoadOrder {
  direction: Direction;
  /** Absolute, without a stream's number. */
  url: string;
  streams: number;
}

/** What all streams of a direction came to, together: `busy` is the share of the time in which not all
 *  of them waited to read, `first_byte_ms` that of the slowest; null before. `over` and `cut` tell the
 *  end of one stream each. */
export type LoadReport =
  | { is: 'count'; bytes: number; busy: number | null; first_byte_ms: number | null }
  | { is: 'via'; via: string[] }
  | { is: 'over' }
  | { is: 'cut'; say: string };

export interface FamiliesOrder {
  /** `ADDRESS:PORT` of each family. */
  hosts: string[];
}

/** Times from asking for a connection to the end of the answer, in ms; none where none came. */
export interface Reached {
  host: string;
  times: number[];
}

export type Stage = 'idle' | Direction;

export interface DatagramsOrder {
  do: 'open';
  url: string;
  /** Of the certificate, in hexadecimal digits. */
  sha256: string;
  within_ms: number;
}

export interface RoundOrder {
  do: 'round';
  phase: Stage;
  number: number;
  count: number;
  interval_ms: number;
}

/** What became of datagrams one way, by the server's count. */
export interface Fate {
  sent: number;
  lost: number;
  reordered: number;
  jitter_us: number | null;
}

export type Round = Record<Direction, Fate>;

/** `say` is null where no connection came in time. */
export type DatagramsReport =
  | { is: 'open' }
  | { is: 'round'; phase: Stage; round: Round }
  | { is: 'failed'; say: string | null };

export interface Pulse {
  every_ms: number;
}

export interface EchoOrder {
  url: string;
  interval_ms: number;
}

/** Times are milliseconds since 1970 by the clock of `performance`, which is the page's too. */
export interface EchoReport {
  open: boolean;
  delays: { at: number; ms: number }[];
  unanswered: number;
}
