// The server by its IPv4 and its IPv6 address at the same time: how long a connection and an answer
// take, a few times in turn. In a worker of its own, because only its script may ask an address that
// is not the page's (its policy of content).
import type { FamiliesOrder, Reached } from './messages';

/** Connections over each, and how long one may take. */
const TRIES = 4;
const WITHIN_MS = 3_000;

const clock = (): number => performance.now();

async function one(host: string): Promise<Reached> {
  const times: number[] = [];
  let failed = 0;
  for (let at = 0; at < TRIES; at += 1) {
    const begin = clock();
    try {
      // The server closes after each answer, so that each has a connection of its own.
      await fetch(`http://${host}/api/v1/here`, {
        cache: 'no-store',
        credentials: 'omit',
        signal: AbortSignal.timeout(WITHIN_MS),
      });
      times.push(clock() - begin);
    } catch {
      // Once may be chance.
      failed += 1;
      if (failed > 1) break;
    }
  }
  return { host, times };
}

onmessage = ({ data }: MessageEvent<FamiliesOrder>): void => {
  void Promise.all(data.hosts.map(one)).then((reached) => {
    postMessage(reached satisfies Reached[]);
  });
};
