// What a test will move: the rate is not known before, so a few are shown.

export interface Volume {
  rate_bps: number;
  bytes: number;
}

/** Bytes of payload in all, at this rate, within the server's limit on bytes. */
export function volume(
  rateBps: number,
  seconds: number,
  directions: number,
  mostBytes: number | null,
): number {
  const all = (rateBps / 8) * seconds * directions;
  return mostBytes === null ? all : Math.min(all, mostBytes);
}

export const EXAMPLES = [10e6, 100e6, 1e9] as const;
