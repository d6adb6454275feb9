// How long the next POST of a stream is. A stream is silent from the end of a body until its answer
// has come, a round trip: bodies last long beside that, and each stream's a different time, so that
// no two are silent together and the path is never empty.

/** Bytes of a body: the first one, and the least and most there are. */
export const POST_BYTES = { first: 256 * 1024, least: 64 * 1024, most: 1 << 30 };
/** How long a body of the first stream is to last, and by how much longer the next stream's. */
const LASTS_MS = 900;
const APART_MS = 250;
/** By how much a body is longer than the one before it, at most: the first ones meet slow start. */
const GROWS = 8;

/** The length in bytes of the body after one of `length` bytes that lasted `lasted` milliseconds. */
export function nextLength(length: number, lasted: number, stream: number): number {
  const grown = (LASTS_MS + APART_MS * (stream % 4)) / Math.max(lasted, 1);
  const next = Math.floor(length * Math.min(grown, GROWS));
  return Math.min(Math.max(next, POST_BYTES.least), POST_BYTES.most);
}
