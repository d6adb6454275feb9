// Loss and jitter by numbered datagrams over WebTransport, in a thread of its own. The formats are
// those of spec/datagrams.md; what became of the datagrams is counted by the server, both ways, from
// what it saw come and what is reported here. In a worker because only its script may ask another
// port than the page's (its policy of content).
import type { DatagramsOrder, DatagramsReport, Round, RoundOrder } from './messages';

const BYTES = 100;
/** A host that is late takes a quarter longer at most. */
const LONGER = 1.25;
/** A handshake that failed after so long had no answer: browsers give one up by themselves, too. */
const NO_ANSWER_MS = 3_000;
/** After its last datagram a round waits so long for others, and so long where one is missing. */
const SETTLED_MS = 500;
const LATE_MS = 1_000;
const ANSWER_MS = 5_000;
/** It looks so often, and a few times: after a stop of this host its own queues come first. */
const LOOK_MS = 50;
const LOOKS = 3;

interface Taken {
  times: [number, number][];
  numbers: Set<number>;
  last: number;
}

const rounds = new Map<number, Taken>();
let transport: WebTransport | null = null;
let writer: WritableStreamDefaultWriter<Uint8Array> | null = null;

const now = (): number => performance.now();
const micros = (ms: number): bigint => BigInt(Math.round(ms * 1000));
const sleep = (ms: number): Promise<void> => new Promise((wake) => setTimeout(wake, ms));
const say = (report: DatagramsReport): void => postMessage(report);

async function open({ url, sha256, within_ms }: DatagramsOrder): Promise<void> {
  const value = Uint8Array.from(sha256.match(/../g) ?? [], (digits) => parseInt(digits, 16));
  const begin = now();
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    say({ is: 'failed', say: null });
    transport?.close();
  }, within_ms);
  try {
    const hashes = [{ algorithm: 'sha-256', value }];
    transport = new WebTransport(url, { serverCertificateHashes: hashes });
    await transport.ready;
    const { datagrams } = transport;
    // None is dropped here, neither one that waits to be read nor one that waits to be sent.
    datagrams.incomingHighWaterMark = 4_096;
    datagrams.outgoingMaxAge = 10_000;
    // The attribute of old drafts, and the method that is there instead now (W3C WebTransport §4).
    const { createWritable } = datagrams as { createWritable?: () => WritableStream<Uint8Array> };
    writer = (createWritable?.call(datagrams) ?? datagrams.writable).getWriter();
    // Where the session is lost, the round that is under way says so.
    take(datagrams.readable.getReader()).catch(() => undefined);
    say({ is: 'open' });
  } catch (error) {
    const slow = now() - begin >= NO_ANSWER_MS;
    if (!late) say({ is: 'failed', say: slow ? null : String((error as Error).message) });
  } finally {
    clearTimeout(timer);
  }
}

async function take(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
  for (;;) {
    const { done, value } = await reader.read();
    const at = now();
    if (done) return;
    const round = rounds.get(value[0] as number);
    if (round === undefined || value.length < 16) continue;
    const number = new DataView(value.buffer, value.byteOffset).getUint32(4);
    round.times.push([number, at]);
    round.numbers.add(number);
    round.last = at;
  }
}

/** Sends all of a round, each at its time and none at once behind a late one; how many left. */
async function send(order: RoundOrder): Promise<number> {
  const { number: round, count, interval_ms: every } = order;
  const begin = now();
  let due = begin;
  for (let number = 0; number < count; number += 1) {
    for (let at = now(); at < due; at = now()) await sleep(due - at);
    const at = now();
    if (at - begin > LONGER * every * count) return number;
    due = Math.max(due + every, at + every / 2);
    const datagram = new DataView(new ArrayBuffer(BYTES));
    datagram.setUint8(0, round);
    datagram.setUint32(4, number);
    datagram.setBigUint64(8, micros(now()));
    await writer?.write(new Uint8Array(datagram.buffer));
  }
  return count;
}

/** Until all that will come has come. */
async function settle(taken: Taken, { count, interval_ms }: RoundOrder): Promise<void> {
  const begin = now();
  taken.last = Math.max(taken.last, begin);
  const most = LATE_MS + LONGER * count * interval_ms;
  for (let quiet = 0; quiet < LOOKS && now() - begin < most; ) {
    await sleep(LOOK_MS);
    const whole = taken.numbers.size >= count;
    quiet = now() - taken.last >= (whole ? SETTLED_MS : LATE_MS) ? quiet + 1 : 0;
  }
}

function reportOf({ times }: Taken, sent: number): Uint8Array<ArrayBuffer> {
  const report = new DataView(new ArrayBuffer(8 + 12 * times.length));
  report.setUint32(0, sent);
  report.setUint32(4, times.length);
  times.forEach(([number, at], index) => {
    report.setUint32(8 + 12 * index, number);
    report.setBigUint64(12 + 12 * index, micros(at));
  });
  return new Uint8Array(report.buffer);
}

async function run(order: RoundOrder): Promise<void> {
  if (transport === null) return;
  const { phase, number: round, count, interval_ms } = order;
  const taken: Taken = { times: [], numbers: new Set(), last: 0 };
  rounds.set(round, taken);
  try {
    const { readable, writable } = await transport.createBidirectionalStream();
    const stream = writable.getWriter();
    const ask = new DataView(new ArrayBuffer(12));
    ask.setUint8(0, round);
    ask.setUint16(2, BYTES);
    ask.setUint32(4, count);
    ask.setUint32(8, interval_ms * 1000);
    await stream.write(new Uint8Array(ask.buffer));
    const sent = await send(order);
    await settle(taken, order);
    await stream.write(reportOf(taken, sent));
    await stream.close();
    const never = sleep(ANSWER_MS).then(() => {
      throw new Error('the server told no counts');
    });
    const answer = (await Promise.race([new Response(readable).json(), never])) as Round;
    say({ is: 'round', phase, round: answer });
  } catch (error) {
    say({ is: 'failed', say: String((error as Error).message) });
  }
}

onmessage = ({ data }: MessageEvent<DatagramsOrder | RoundOrder>): void => {
  void (data.do === 'open' ? open(data) : run(data));
};
