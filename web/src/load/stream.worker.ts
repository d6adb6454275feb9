// One stream of load in a thread of its own: reads and drops a download, or sends blobs of random
// bytes. What it counts is only a check: the server's count is the result.
import type { LoadOrder, LoadReport } from './messages';
import { nextLength, POST_BYTES } from './post';

const REPORT_MS = 100;
/** A read that took longer than this waited for the network (timers are that coarse at worst). */
const WAITED_MS = 0.2;
const READ_BYTES = 1 << 20;
const RANDOM_BYTES = 8 << 20;

const say = (report: LoadReport): void => postMessage(report);
const now = (): number => performance.now();

/** Header fields by which a proxy names itself. */
function via(headers: Headers): string[] {
  const fields = ['via', 'x-cache', 'cf-ray', 'x-varnish', 'age', 'x-amz-cf-id'];
  return fields.filter((name) => headers.has(name)).map((name) => `${name}: ${headers.get(name)}`);
}

class Meter {
  bytes = 0;
  waited = 0;
  first: number | null = null;
  readonly start = now();
  private told = 0;

  constructor(readonly stream: number) {}

  count(bytes: number, waited: number): void {
    const at = now();
    if (this.first === null && bytes > 0) this.first = at - this.start;
    this.bytes += bytes;
    if (waited > WAITED_MS) this.waited += waited;
    if (at - this.told >= REPORT_MS) {
      this.told = at;
      this.tell(at);
    }
  }

  tell(at = now()): void {
    const lasted = at - this.start - (this.first ?? 0);
    const busy = lasted > 500 ? Math.max(0, 1 - this.waited / lasted) : null;
    const { stream, bytes, first } = this;
    say({ is: 'count', stream, bytes, busy, first_byte_ms: first });
  }
}

async function down(order: LoadOrder, meter: Meter): Promise<void> {
  const answer = await fetch(`${order.url}/down/${order.stream}`, { cache: 'no-store' });
  if (!answer.ok || answer.body === null) throw new Error(`HTTP ${answer.status}`);
  say({ is: 'via', stream: order.stream, via: via(answer.headers) });
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
    const asked = now();
    const { done, value } = await reader.read(new Uint8Array(buffer));
    if (value !== undefined) buffer = value.buffer;
    meter.count(value?.byteLength ?? 0, meter.first === null ? 0 : now() - asked);
    if (done) return;
  }
}

async function inPieces(body: ReadableStream<Uint8Array>, meter: Meter): Promise<void> {
  const reader = body.getReader();
  for (;;) {
    const asked = now();
    const { done, value } = await reader.read();
    meter.count(value?.byteLength ?? 0, meter.first === null ? 0 : now() - asked);
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

async function up(order: LoadOrder, meter: Meter): Promise<void> {
  const source = random();
  let length: number = POST_BYTES.first;
  for (;;) {
    const asked = now();
    const answer = await fetch(`${order.url}/up/${order.stream}`, {
      method: 'POST',
      cache: 'no-store',
      body: blobOf(source, length),
    });
    if (!answer.ok) throw new Error(`HTTP ${answer.status}`);
    if (meter.first === null) {
      say({ is: 'via', stream: order.stream, via: via(answer.headers) });
    }
    const said = (await answer.json()) as { bytes?: number; over?: boolean };
    meter.count(said.over === true ? (said.bytes ?? 0) : length, 0);
    if (said.over === true) return;
    length = nextLength(length, now() - asked, order.stream);
  }
}

onmessage = async ({ data }: MessageEvent<LoadOrder>): Promise<void> => {
  const meter = new Meter(data.stream);
  try {
    await (data.direction === 'down' ? down(data, meter) : up(data, meter));
    meter.tell();
    say({ is: 'over', stream: data.stream, bytes: meter.bytes });
  } catch (error) {
    meter.tell();
    const reason = (error as Error).message;
    say({ is: 'cut', stream: data.stream, bytes: meter.bytes, say: reason });
  }
};
