// The shapes of /api/v1 of `linerate serve`. Units are the last word of a name.

export type Direction = 'down' | 'up';

export interface Limits {
  tests: number | null;
  streams: number | null;
  seconds: number | null;
  bytes: number | null;
  rate_bps: number | null;
}

export interface Server {
  name: string;
  version: string;
  /** The page has the address for a server that gives no name. */
  host: string;
  now: string;
  /** The client's address as the server keeps it: shortened. */
  client: string;
  limits: Limits;
  running: number;
  waiting: number;
  other_programs: { program: string; port: number }[];
  udp_echo: boolean;
  stamp_port: number | null;
  features: string[];
  measure_from_here: false | { targets: string[] };
  /** A server outside, `HOST:PORT`; null where none is named. */
  outer?: string | null;
  /** Limits of its policy; null where there are none. */
  results_kept: { seconds: number | null; count: number | null; bytes: number | null } | null;
}

export interface Admitted {
  run: string;
  token: string;
  events: string;
  load: string;
  streams: number;
  seconds: number;
  directions: Direction[];
  /** The server over IPv4 and over IPv6, as `ADDRESS:PORT`; empty unless it answers over both. */
  families?: string[];
  /** Where its datagrams go: a UDP port, the path with its token, the certificate's SHA-256. */
  datagrams?: { port: number; path: string; certificate_sha256: string } | null;
}

/** The body of every error. The last three with `busy` only. */
export interface Refusal {
  error: string;
  say: string;
  position?: number;
  retry_after_ms?: number;
  ticket?: string;
}

export interface StateEvent {
  state: 'waiting' | 'idle' | 'down' | 'up' | 'running' | 'done' | 'failed';
  say?: string;
}

export interface Sample {
  direction: Direction;
  /** Since the direction's first byte, by the server's clock. */
  t_s: number;
  rate_bps: number;
  streams: number[];
  rtt_us: (number | null)[] | null;
  retransmits: number | null;
}

export interface Cause {
  cause: string | null;
  confidence: string | null;
  say: string;
}

export interface Syn {
  window_scale: number | null;
  mss_bytes: number | null;
  sack_permitted: boolean;
  timestamps: boolean;
  ecn: boolean;
  /** Of the SYN's packet as it came. */
  dscp?: number;
  ecn_field?: number;
}

export interface Part {
  direction: Direction;
  rate_bps: number | null;
  /** Of the time that counts; `bytes_all` with the omitted begin. */
  bytes: number | null;
  bytes_all?: number;
  seconds: number;
  omitted_s?: number;
  /** The SYN of the first connection, as it came to the server. */
  syn?: Syn | null;
  /** The shortest round trip of the connections as the server's kernel saw it. */
  rtt_min_us?: number | null;
  /** Whether they use ECN, and whether a packet came here that says so. */
  ecn?: { negotiated: boolean; seen: boolean } | null;
  record: string | null;
  client_limited: boolean;
  limited_by: Cause | null;
}

export interface Verdict {
  direction?: Direction | null;
  cause: string | null;
  confidence: string | null;
  headline: string;
  evidence: string[];
  remedy: string[];
  next_limit: { rate_bps: number | null; say: string } | null;
  commands: (string | { at?: string; line: string })[];
  /** The same of each direction, where there are several. */
  ways?: Verdict[];
}

export interface End {
  records: string[];
}

/** A line of the list of results. */
export interface Summary {
  id: string;
  kind: string;
  started_at: string;
  peer: string | null;
  name: string | null;
  status: string;
  rate_bps: number | null;
  loss: number | null;
  rtt_us: number | null;
  /** The test that it is a part of, and what its record says, where that was asked for. */
  run?: string;
  judgement?: Judgement;
}

/** What limited a result, null where it is no rate, and how far to trust it. */
export interface Judgement {
  limit: string | null;
  trust: string;
  is_good: boolean;
}

/** A result in words. */
export interface ResultWords extends Judgement {
  headline: string;
  caveats: string[];
  failure: string | null;
  names: Record<string, string>;
}

export interface ResultList {
  results: Summary[];
  next: string | null;
}

export interface Figure {
  name: string;
  svg: string;
}

/** The answer to a measurement from the server. */
export interface FromAdmitted {
  run: string;
  token: string;
  events: string;
  kind: string;
  target: string;
  seconds: number;
  windows_bytes: number[];
}

/** An interval of a measurement from the server; `up` is from the server to the target. */
export interface FromSample {
  direction: Direction;
  t_s: number;
  rate_bps: number;
  rtt_us: number | null;
  retransmits: number | null;
  lost: number | null;
  /** Which test of a sweep; the page counts them. */
  part?: number;
}

export interface FromReply {
  t_s: number;
  rtt_us: number | null;
}

export interface FromPart {
  record: string;
  kind: string;
  status: string;
  say: string;
  rate_bps: number | null;
  rtt_us: number | null;
  loss: number | null;
  window_bytes: number | null;
  limited: boolean;
  failure: string | null;
}
