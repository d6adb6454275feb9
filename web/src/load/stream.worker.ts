// All streams of load of one direction: reads and drops downloads, or sends blobs of random bytes. What
// it counts is only a check: the server's count is the result. One thread for all of them: each byte
// goes through one thread of the browser's network process before, which takes more time for it than
// this one does, so that more threads here only take turns with that one where cores are few.
import type { LoadOrder, LoadReport } from './messages';
import { nextLength, POST_BYTES } from './post';

const REPORT_MS = 100;
/** A read that took longer than this waited for the network (timers are that coarse at worst). */
const WAITED_MS = 0.2;
const READ_BYTES = 1 << 20;
/** Stays in a cache, and is longer than what packers on a way remember of it (zlib: 32 KiB). */
const RANDOM_BYTES = 1 << 20;

const say = (report: LoadReport): void => postMessage(report);
const now = (): number => performance.now();

/** Header fields by which a proxy names itself. */
function via(headers: Headers): string[] {
  const fields = ['via', 'x-cache', 'cf-ray', 'x-varnish', 'age', 'x-amz-cf-id'];
  return fields.filter((name) => headers.has(name)).map((name) => `${name}: ${headers.get(name)}`);
}

/** What one stream moved. */
interface Meter {
  bytes: number;
  /** From asking for it to its first byte, in ms. */
  first: number | null;
}

const start = now();
let meters: Meter[] = [];
let told = 0;
/** When a read was asked for last, by any stream, and for how long all waited for one since data came. */
let asked: number | null = null;
let waited = 0;

function count(meter: Meter, bytes: number): void {
  const at = now();
  if (asked !== null && at - asked > WAITED_MS && meters.some(({ first }) => first !== null)) {
    waited += at - asked;
  }
  if (bytes > 0) meter.first ??= at - start;
  meter.bytes += bytes;
  if (at - told >= REPORT_MS) tell(at);
}

/** Tells what the streams came to so far, all together. */
function tell(at = now()): void {
  told = at;
  const firsts = meters.map(({ first }) => first).filter((ms) => ms !== null);
  const lasted = at - start - Math.min(...firsts);
  say({
    is: 'count',
    bytes: meters.reduce((sum, { bytes }) => sum + bytes, 0),
    busy: asked !== null && lasted > 500 ? Math.max(0, 1 - waited / lasted) : null,
    first_byte_ms: firsts.length > 0 ? Math.max(...firsts) : null,
  });
}

async function down(url: string, meter: Meter): Promise<void> {
  const answer = await fetch(url, { cache: 'no-store' });
  if (!answer.ok || answer.body === null) throw new Error(`HTTP ${answer.status}`);
  say({ is: 'via', via: via(answer.headers) });
  await (readsOwnBuffer ? intoOneBuffer(answer.body, meter) : inPieces(answer.body, meter));
}

/** Whether bodies can be read into one buffer again and again, without memory for each piece. */
const readsOwnBuffer = ((): boolean => {
  try {
    new Response('x').body?.getReader({ mode: 'byob' }).releaseLock();
    return true;
  } catch {
    return false;
  }
})();

async function intoOneBuffer(body: ReadableStream<Uint8Array>, meter: Meter): Promise<void> {
  const reader = body.getReader({ mode: 'byob' });
  let buffer = new ArrayBuffer(READ_BYTES);
  for (;;) {
    asked = now();
    const { done, value } = await reader.read(new Uint8Array(buffer));
    if (value !== undefined) buffer = value.buffer;
    count(meter, value?.byteLength ?? 0);
    if (done) return;
  }
}

async function inPieces(body: ReadableStream<Uint8Array>, meter: Meter): Promise<void> {
  const reader = body.getReader();
  for (;;) {
    asked = now();
    const { done, value } = await reader.read();
    count(meter, value?.byteLength ?? 0);
    if (done) return;
  }
}

/** Random bytes, so that nothing on the way can shrink them. */
function random(): Blob {
  const bytes = new Uint8Array(RANDOM_BYTES);
  // The call gives 65,536 bytes at most (W3C Web Cryptography API §10.1.1).
  for (let at = 0; at < bytes.length; at += 65_536) {
    crypto.getRandomValues(bytes.subarray(at, at + 65_536));
  }
  return new Blob([bytes]);
}

/** A blob of `length` bytes that refers to `source` as often as needed; nothing is copied. */
function blobOf(source: Blob, length: number): Blob {
  const parts: Blob[] = [];
  for (let left = length; left > 0; left -= RANDOM_BYTES) {
    parts.push(left >= RANDOM_BYTES ? source : source.slice(0, left));
  }
  // Without a type: with one, a browser asks another origin first whether it may send it.
  return new Blob(parts);
}

async function up(url: string, meter: Meter, stream: number, source: Blob): Promise<void> {
  let length: number = POST_BYTES.first;
  for (;;) {
    const begun = now();
    const body = blobOf(source, length);
    const answer = await fetch(url, { method: 'POST', cache: 'no-store', body });
    if (!answer.ok) throw new Error(`HTTP ${answer.status}`);
    if (meter.first === null) say({ is: 'via', via: via(answer.headers) });
    const said = (await answer.json()) as { bytes?: number; over?: boolean };
    count(meter, said.over === true ? (said.bytes ?? 0) : length);
    if (said.over === true) return;
    length = nextLength(length, now() - begun, stream);
  }
}

onmessage = ({ data }: MessageEvent<LoadOrder>): void => {
  const { direction, streams } = data;
  const source = direction === 'up' ? random() : new Blob();
  meters = Array.from({ length: streams }, () => ({ bytes: 0, first: null }));
  meters.forEach((meter, stream) => {
    const url = `${data.url}/${direction}/${stream}`;
    const moved = direction === 'up' ? up(url, meter, stream, source) : down(url, meter);
    moved.then(
      () => [tell(), say({ is: 'over' })],
      (error: Error) => [tell(), say({ is: 'cut', say: error.message })],
    );
  });
};
