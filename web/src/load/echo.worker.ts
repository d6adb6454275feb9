// Round trips by the server's WebSocket echo, in a thread of its own so that drawing does not bend
// them. Messages leave on a schedule and do not wait for answers: a queue that holds one up does not
// keep the next ones from being sent (RFC 7679 §3.8 asks the same of one-way delay).
import type { EchoOrder, EchoReport } from './messages';

/** More unanswered messages than this are not sent. */
const MOST_OPEN = 200;
const REPORT_MS = 100;

const clock = (): number => performance.timeOrigin + performance.now();

onmessage = ({ data }: MessageEvent<EchoOrder>): void => {
  const socket = new WebSocket(data.url);
  socket.binaryType = 'arraybuffer';
  const sent = new Map<number, number>();
  let number = 0;
  let delays: EchoReport['delays'] = [];
  let open = true;

  const report = (): void => {
    postMessage({ open, delays, unanswered: sent.size } satisfies EchoReport);
    delays = [];
  };
  const send = (): void => {
    if (socket.readyState !== WebSocket.OPEN || sent.size >= MOST_OPEN) return;
    const message = new DataView(new ArrayBuffer(16));
    message.setUint32(0, number);
    sent.set(number, clock());
    socket.send(message.buffer);
    number += 1;
  };
  const timers = [setInterval(report, REPORT_MS)];
  socket.onopen = (): void => {
    timers.push(setInterval(send, data.interval_ms));
    send();
  };
  socket.onmessage = (event: MessageEvent<ArrayBuffer>): void => {
    const back = clock();
    if (event.data.byteLength < 4) return;
    const which = new DataView(event.data).getUint32(0);
    const at = sent.get(which);
    if (at === undefined) return;
    sent.delete(which);
    delays.push({ at, ms: back - at });
  };
  socket.onclose = (): void => {
    timers.forEach(clearInterval);
    open = false;
    report();
  };
};
