// "Test this path": before, during and after.
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { Direction, Server } from '../api/types';
import { forget, leave, run, start } from '../run/drive';
import { isMeasuring, isOver, type Run } from '../run/machine';
import { bytes, rate, round, word } from '../show/units';
import { EXAMPLES, volume } from '../show/volume';
import { commands } from '../show/commands';
import { Live } from './live';
import { Outcome, remembered } from './outcome';
import { Commands, Notice } from './parts';

const STREAMS = 4;
/** A browser opens six connections to a host; one carries the events, one is for the rest. */
const MOST_STREAMS = 4;
const SECONDS = 8;

/** Load does not go over TLS: what is left there is the path at rest. */
const restOnly = (server: Server): boolean =>
  location.protocol === 'https:' && server.features.includes('datagrams');

const most = (limit: number | null, wanted: number): number =>
  limit === null ? wanted : Math.min(limit, wanted);

export function TestView({ server }: { server: Server }): JSX.Element {
  const now = run.value;
  const [streams, setStreams] = useState(most(server.limits.streams, STREAMS));
  const begin = (): void => {
    const seconds = most(server.limits.seconds, SECONDS);
    start({ streams, seconds, directions: restOnly(server) ? [] : ['down', 'up'] });
  };
  return (
    <>
      <h1>Path between this browser and {server.host}</h1>
      <Announcement now={now} />
      {now === null && (
        <Before server={server} streams={streams} setStreams={setStreams} begin={begin} />
      )}
      {now !== null && (now.phase === 'asking' || now.phase === 'queued') && <Queue now={now} />}
      {now !== null && isMeasuring(now.phase) && <During now={now} />}
      {now !== null && isOver(now.phase) && <After now={now} server={server} begin={begin} />}
      {(now === null || isOver(now.phase)) && <ByProgram server={server} />}
    </>
  );
}

/** What changed, for those who hear the page; rates are not read out ten times a second. */
function Announcement({ now }: { now: Run | null }): JSX.Element {
  const words: Partial<Record<Run['phase'], string>> = {
    queued: 'Waiting for a place',
    idle: 'Measuring idle latency',
    down: 'Measuring download',
    up: 'Measuring upload',
    verdict: 'Waiting for the verdict',
    done: 'The test is done',
    failed: now?.trouble?.title ?? 'The test failed',
    left: 'The test was stopped',
  };
  return (
    <p class="away" role="status">
      {now === null ? '' : (words[now.phase] ?? '')}
    </p>
  );
}

interface BeforeProps {
  server: Server;
  streams: number;
  setStreams: (count: number) => void;
  begin: () => void;
}

function Before({ server, streams, setStreams, begin }: BeforeProps): JSX.Element {
  const seconds = most(server.limits.seconds, SECONDS);
  const choices = [1, 2, 4].filter((count) => count <= most(server.limits.streams, MOST_STREAMS));
  return (
    <section class="before">
      <p class="lead">
        {restOnly(server)
          ? `Latency, packet loss and jitter at rest. Rates are measured without TLS: open http://${location.host}/`
          : `Idle latency, then download, then upload, ${seconds} s each way, with latency under load.`}
      </p>
      <div class="begin">
        <button type="button" class="primary" onClick={begin}>
          Test this path
        </button>
        <fieldset class="choice">
          <legend>TCP connections each way</legend>
          {choices.map((count) => (
            <label key={count}>
              <input
                type="radio"
                name="streams"
                checked={streams === count}
                onChange={() => setStreams(count)}
              />
              {count}
            </label>
          ))}
        </fieldset>
      </div>
      <Expected server={server} seconds={seconds} />
    </section>
  );
}

function Expected({ server, seconds }: { server: Server; seconds: number }): JSX.Element {
  const { limits } = server;
  const last = remembered();
  const at = (bps: number): string => {
    const capped = limits.rate_bps === null ? bps : Math.min(bps, limits.rate_bps);
    return word(round(bytes(volume(capped, seconds, 2, limits.bytes))));
  };
  const rates = EXAMPLES.filter((bps) => bps <= (limits.rate_bps ?? Infinity));
  return (
    <dl class="expected">
      <div>
        <dt>Data volume</dt>
        <dd>
          {last !== null && <>{word(bytes(last))} last time from this browser; </>}
          {rates.map((bps, index) => (
            <span key={bps}>
              {index > 0 && ', '}
              {at(bps)} at {word(round(rate(bps)))}
            </span>
          ))}
          . A mobile contract counts it.
        </dd>
      </div>
      <div>
        <dt>What is sent</dt>
        <dd>
          Random bytes by HTTP/1.1, which nothing in between can shrink, and 16 bytes forty times
          a second by WebSocket for latency. Only to this host.
        </dd>
      </div>
      <div>
        <dt>What is kept</dt>
        <dd>The figures, at the server, with your address as {server.client}.</dd>
      </div>
    </dl>
  );
}

function Queue({ now }: { now: Run }): JSX.Element {
  const [at, set] = useState(performance.timeOrigin + performance.now());
  useEffect(() => {
    const timer = setInterval(() => set(performance.timeOrigin + performance.now()), 250);
    return () => clearInterval(timer);
  }, []);
  const { queue } = now;
  if (queue === null) {
    return (
      <Notice title="Asking for a place">
        <button type="button" onClick={forget}>
          Do not wait
        </button>
      </Notice>
    );
  }
  const left = Math.max(0, Math.ceil((queue.retry_at - at) / 1000));
  return (
    <Notice title="The server is busy">
      <p>
        {queue.position !== null && (
          <>
            You are number <strong>{queue.position}</strong> in the queue.{' '}
          </>
        )}
        {queue.say}
      </p>
      <p>
        {left > 0 ? `Asks again in ${left} s` : 'Asking again'}, and begins by itself when a place
        is free.
      </p>
      <button type="button" onClick={forget}>
        Leave the queue
      </button>
    </Notice>
  );
}

const STEPS: [Run['phase'], string][] = [
  ['idle', 'Idle latency'],
  ['down', 'Download'],
  ['up', 'Upload'],
  ['verdict', 'Verdict'],
];

function During({ now }: { now: Run }): JSX.Element {
  const reached = STEPS.findIndex(([phase]) => phase === now.phase);
  return (
    <section class="during">
      <div class="progress">
        <ol class="steps">
          {STEPS.map(([phase, name], index) => (
            <li
              key={phase}
              class={index < reached ? 'past' : index === reached ? 'current' : ''}
              aria-current={index === reached ? 'step' : undefined}
            >
              {name}
            </li>
          ))}
        </ol>
        <button type="button" onClick={leave}>
          Stop
        </button>
      </div>
      <Live now={now} />
    </section>
  );
}

function After(props: { now: Run; server: Server; begin: () => void }): JSX.Element {
  const { now, server, begin } = props;
  const ways: Direction[] = ['down', 'up'];
  const some =
    now.rounds.idle !== undefined ||
    ways.some((way) => now.samples[way].length > 0 || now.parts[way] !== undefined);
  return (
    <>
      {now.phase === 'failed' && now.trouble !== null && (
        <Notice title={now.trouble.title} kind="bad">
          <p role="alert">{now.trouble.say}</p>
        </Notice>
      )}
      {now.phase === 'left' && (
        <Notice title="Stopped">
          <p>The place was given back. {some ? 'What was measured until then is below.' : ''}</p>
        </Notice>
      )}
      {some && <Outcome now={now} server={server} />}
      <p class="again">
        <button type="button" class={some ? '' : 'primary'} onClick={begin}>
          {now.phase === 'done' ? 'Test again' : 'Try again'}
        </button>
      </p>
    </>
  );
}

function ByProgram({ server }: { server: Server }): JSX.Element {
  return (
    <section>
      <h2>The same path by a program</h2>
      <p class="soft">
        A program has no browser in the way, reads the kernel’s counters at both ends, and goes
        above a few Gbit/s.
      </p>
      <Commands list={commands(server, location)} />
    </section>
  );
}
