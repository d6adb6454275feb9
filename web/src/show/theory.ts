// TCP's limit by its window: one window each round trip (RFC 7323 §1.1), until something else caps
// it. 64 KiB at 10 ms: 65536 × 8 / 0.01 = 52.4 Mbit/s.

export function windowRate(windowBytes: number, rttMs: number, capBps = Infinity): number {
  return Math.min((windowBytes * 8 * 1000) / rttMs, capBps);
}

/** The window that carries the rate over the round trip: the bandwidth-delay product. */
export const windowFor = (rateBps: number, rttMs: number): number => (rateBps * rttMs) / 8000;
