// What the page itself noticed about the browser and the way in, each with its evidence and with
// what it does to the figures.
import type { Direction } from '../api/types';
import { spread } from '../show/quantile';
import { bytes, delay, percent, rate, word } from '../show/units';
import { delaysOf, type Run } from './machine';

export interface Finding {
  title: string;
  evidence: string;
  effect: string;
}

/** Above this share of busy time the readers hardly ever waited for the network. */
export const BUSY_RATIO = 0.9;
/** The first byte may come this much later than the slowest idle round trip. */
export const FIRST_BYTE_MS = 1_000;
/** The browser's count may differ from the server's by this share: what was in flight at the end. */
export const COUNT_RATIO = 0.05;
/** …and by what lies in buffers between, which does not grow with the test. */
export const COUNT_BYTES = 8_000_000;

const WAYS: readonly Direction[] = ['down', 'up'];
const NAME = { down: 'download', up: 'upload' } as const;

/** Directions whose limit is the browser, by the server's word or by the readers' own. */
export function browserLimited(run: Run): Direction[] {
  return WAYS.filter((way) => run.parts[way]?.client_limited === true);
}

function proxies(run: Run): Finding[] {
  const names = [...new Set(WAYS.flatMap((way) => run.seen[way].via))];
  if (names.length === 0) return [];
  return [
    {
      title: 'A proxy is in between',
      evidence: `Answers carry ${names.join(', ')}.`,
      effect:
        'The figures are those of the path between the proxy and the server, and between this ' +
        'browser and the proxy only where that is slower.',
    },
  ];
}

function lateFirstByte(run: Run): Finding[] {
  const idle = spread(delaysOf(run, 'idle').map(({ ms }) => ms));
  return WAYS.flatMap((way) => {
    const first = run.seen[way].first_byte_ms;
    if (way === 'up' || first === null || first <= (idle?.max ?? 0) + FIRST_BYTE_MS) return [];
    return [
      {
        title: 'Something in between holds data back',
        evidence: `The first byte of the ${NAME[way]} came after ${word(delay(first))}.`,
        effect: 'A buffering proxy hides the rate of the path: do not take this for its figure.',
      },
    ];
  });
}

function counts(run: Run): Finding[] {
  return WAYS.flatMap((way) => {
    const part = run.parts[way];
    const seen = run.seen[way];
    if (part === undefined || seen.cut === seen.streams) return [];
    const server = part.bytes_all ?? part.bytes ?? 0;
    const apart = Math.abs(seen.bytes - server);
    // An unanswered POST is in the server's count and not in ours; it lasts up to 2 of the seconds.
    const allowed = way === 'up' ? 0.5 : COUNT_RATIO;
    if (apart <= COUNT_BYTES || apart <= server * allowed) return [];
    return [
      {
        title: `Browser and server count the ${NAME[way]} differently`,
        evidence: `Browser ${word(bytes(seen.bytes))}, server ${word(bytes(server))}.`,
        effect: 'Something in between keeps data, or the browser does before the page sees it. The server’s count is shown.',
      },
    ];
  });
}

function cutStreams(run: Run): Finding[] {
  return WAYS.flatMap((way) => {
    const { cut, streams } = run.seen[way];
    if (cut === 0 || run.parts[way] === undefined) return [];
    return [
      {
        title: `${cut} of ${streams} connections of the ${NAME[way]} were cut`,
        evidence: 'They ended with an error and not by the server’s last bytes.',
        effect: 'The others may have had more of the path: the sum still holds.',
      },
    ];
  });
}

function busy(run: Run): Finding[] {
  const share = run.seen.down.busy;
  if (share === null || share < BUSY_RATIO || run.parts.down?.client_limited === true) return [];
  const got = run.parts.down?.rate_bps;
  return [
    {
      title: 'The browser hardly waited for data',
      evidence: `Its readers were busy ${word(percent(share))} of the download, at ${word(rate(got))}.`,
      effect: 'A faster path would not show much more here; a program would.',
    },
  ];
}

/** The MSS of an Ethernet's packets over IPv6; over IPv4 it is 20 more (RFC 9293 §3.7.1). */
const MSS_WHOLE = 1_440;

/** What something on the way did to the handshake, by the SYN as it came to the server. */
function handshake(run: Run): Finding[] {
  const syn = run.parts.down?.syn ?? run.parts.up?.syn;
  if (syn == null) return [];
  const list: Finding[] = [];
  if (syn.window_scale === null) {
    list.push({
      title: 'No window scale',
      evidence: 'The SYN came without it, and every browser’s system sends one (RFC 7323).',
      effect: 'Something on the way removes it: one connection then carries 64 KiB a round trip.',
    });
  }
  if (!syn.sack_permitted) {
    list.push({
      title: 'No selective acknowledgements',
      evidence: 'The SYN came without SACK-permitted, which every browser’s system sends (RFC 2018).',
      effect: 'Something on the way removes it: losses then cost much more.',
    });
  }
  if (syn.mss_bytes !== null && syn.mss_bytes < MSS_WHOLE) {
    list.push({
      title: 'Smaller packets than Ethernet’s',
      evidence: `The SYN came with an MSS of ${syn.mss_bytes} bytes: packets of ${syn.mss_bytes + 40} over IPv4, ${syn.mss_bytes + 60} over IPv6.`,
      effect: 'A tunnel, a VPN or PPPoE on the way, or a router that lowers the MSS for one.',
    });
  }
  return list;
}

/** Bits that a network adds on the way, by the SYN as it came and by what the kernel saw since. */
function marks(run: Run): Finding[] {
  const syn = run.parts.down?.syn ?? run.parts.up?.syn;
  const list: Finding[] = [];
  if (syn?.dscp !== undefined && syn.dscp !== 0) {
    list.push({
      title: 'Packets come marked',
      evidence: `The SYN came with DSCP ${syn.dscp}; browsers send 0.`,
      effect: 'This computer or a network sets it: queues may treat it apart.',
    });
  }
  const up = run.parts.up;
  if (up?.ecn?.negotiated === true && !up.ecn.seen && (up.bytes_all ?? 0) >= TELLING_BYTES) {
    list.push({
      title: 'Congestion marks are wiped out',
      evidence: 'ECN was agreed on, and no packet of the upload came with ECT (RFC 3168).',
      effect: 'Something clears it: queues then drop instead of marking.',
    });
  }
  return list;
}

/** So much that many packets came. */
const TELLING_BYTES = 100_000;

/** A proxy by its distance: the messages of the browser take so much longer than the server's TCP. */
const NEARER_RATIO = 2;
const NEARER_MS = 10;

function hiddenProxy(run: Run): Finding[] {
  const us = WAYS.flatMap((way) => run.parts[way]?.rtt_min_us ?? []);
  const idle = spread(delaysOf(run, 'idle').map(({ ms }) => ms));
  if (us.length === 0 || idle === null || proxies(run).length > 0) return [];
  const tcp = Math.min(...us) / 1000;
  if (idle.min < tcp * NEARER_RATIO || idle.min - tcp < NEARER_MS) return [];
  return [
    {
      title: 'A proxy is suspected',
      evidence: `The server’s TCP has a round trip of ${word(delay(tcp))}, this browser’s messages ${word(delay(idle.min))} at the least.`,
      effect:
        'Something nearer to the server ends the browser’s connections: the figures are those of ' +
        'both its sides.',
    },
  ];
}

/** Below this of a whole direction no full packet came. */
const STALLED_BYTES = 20_000;
/** Messages that came back meanwhile. */
const PASSED = 20;

function blackHole(run: Run): Finding[] {
  return WAYS.flatMap((way) => {
    const [began, part, samples] = [run.began[way], run.parts[way], run.samples[way]];
    // A direction that stands still may have no result: ten samples a second.
    const came = part?.bytes_all ?? samples.reduce((sum, { rate_bps }) => sum + rate_bps / 80, 0);
    const passed = delaysOf(run, way).length;
    if (began === undefined || samples.length === 0) return [];
    if (came > STALLED_BYTES || passed < PASSED) return [];
    const seconds = Math.round(((run.ended[way] ?? run.since) - began) / 1000);
    return [
      {
        title: `Large packets of the ${NAME[way]} do not pass`,
        evidence: `${word(bytes(came))} came in ${seconds} s, while ${passed} messages of 16 bytes went there and back.`,
        effect:
          'A link takes smaller ones only, and its word of that is lost (RFC 2923): let ICMP pass, ' +
          'or lower the MTU.',
      },
    ];
  });
}

/** One family is slower where each of its answers takes longer than all of the other's, and the
 *  quickest of them so much longer: a busy host is late now and then. */
const SLOWER_RATIO = 1.5;
const SLOWER_MS = 10;

function families(run: Run): Finding[] {
  const all = (run.families ?? []).map(({ host, times }, index) => ({
    name: index === 0 ? 'IPv4' : 'IPv6',
    host,
    ms: spread(times)?.min ?? Infinity,
    most: spread(times)?.max ?? Infinity,
  }));
  const [fast, slow] = all.sort((a, b) => a.ms - b.ms);
  if (fast === undefined || slow === undefined || fast.ms === Infinity) return [];
  const best = `over ${fast.name} an answer in ${word(delay(fast.ms))}`;
  if (slow.ms === Infinity) {
    return [
      {
        title: `${slow.name} does not work to this server`,
        evidence: `No connection to ${slow.host}, and ${best}.`,
        effect: 'Programs that try it first begin late (RFC 8305).',
      },
    ];
  }
  const apart = slow.ms > fast.most && slow.ms >= fast.ms * SLOWER_RATIO;
  if (!apart || slow.ms - fast.ms < SLOWER_MS) return [];
  return [
    {
      title: `${slow.name} is slower than ${fast.name}`,
      evidence: `A new connection has an answer in ${word(delay(slow.ms))}, and ${best}.`,
      effect: 'A tunnel, or another route.',
    },
  ];
}

/** `isolated` is `crossOriginIsolated` of the page. */
export function findings(run: Run, isolated: boolean): Finding[] {
  const list = [
    ...proxies(run),
    ...lateFirstByte(run),
    ...counts(run),
    ...cutStreams(run),
    ...busy(run),
    ...handshake(run),
    ...marks(run),
    ...hiddenProxy(run),
    ...blackHole(run),
    ...families(run),
  ];
  if (run.hidden) {
    list.push({
      title: 'The tab was in the background',
      evidence: 'The browser reported it as hidden during the test.',
      effect: 'Browsers slow hidden tabs down: repeat it with the tab in front.',
    });
  }
  if (!isolated) {
    list.push({
      title: 'Coarse clock',
      evidence:
        'The page is not cross-origin isolated, as is no page over plain HTTP from another host.',
      effect:
        'Browsers then round times to 0.1 ms: latency below 1 ms has one digit that counts. ' +
        'Rates are by the server’s clock and do not change.',
    });
  }
  return list;
}
