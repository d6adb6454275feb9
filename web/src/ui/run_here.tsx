// "Run from here": measurements from this server to targets that its operator allows, live.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { Server } from '../api/types';
import { askAllowed, begin, from, isGoing, leave, type FromRun, type Kind } from '../run/from_here';
import { hosts, rateColumns, replyColumns, sweep } from '../show/from_here';
import { delay, percent, rate, size, word } from '../show/units';
import { Chart } from './chart';
import { VerdictWords } from './outcome';
import { Notice } from './parts';
import { Token } from './token';
import { Drawing } from './window';

const NAMES: Record<Kind, string> = {
  ping: 'Ping: round trips by ICMP',
  tcp: 'TCP: throughput',
  udp: 'UDP: a paced stream',
  test: 'Test: survey of the path',
  trace: 'Trace: hop by hop',
  sweep: 'Window sweep: TCP by window',
};
const SECONDS: Record<Kind, number> = { ping: 5, tcp: 5, udp: 5, test: 35, trace: 10, sweep: 1 };
/** A survey has no time for less. */
const TEST_LEAST = 12;
const WINDOWS = 9;
const needsServer = (kind: Kind): boolean => kind !== 'ping' && kind !== 'trace';
const sends = (kind: Kind): boolean => kind === 'tcp' || kind === 'udp' || kind === 'sweep';

const LINES = `[[rule]]
name = "operators"
from = ["192.0.2.0/24"]             # who may ask; or token = "noc"
measure_to = ["198.51.100.0/24"]    # where this server may measure to`;

export function RunView({ server }: { server: Server }): JSX.Element {
  const [allowed, allow] = useState(server);
  const to = allowed.measure_from_here;
  return (
    <>
      <h1>Run from {server.host}</h1>
      {to === false ? <Nobody /> : <Form server={allowed} targets={to.targets} />}
      <TokenForm allow={allow} has={to !== false} />
      {from.value !== null && <Outcome now={from.value} />}
    </>
  );
}

function Nobody(): JSX.Element {
  return (
    <Notice title="This server measures to nobody">
      <p>
        Not for you, at least: it connects out only where a rule of its policy says so. Its operator
        adds lines as these to the policy file, and SIGHUP makes the server read it again:
      </p>
      <pre class="lines" tabIndex={0} role="region" aria-label="Lines of a policy">{LINES}</pre>
      <p>
        The server is started with <code>linerate serve --policy FILE</code>;{' '}
        <code>linerate policy explain FILE --from ADDRESS --measure-to ADDRESS</code> says what it
        would allow.
      </p>
    </Notice>
  );
}

function TokenForm({ allow, has }: { allow: (server: Server) => void; has: boolean }): JSX.Element {
  const [said, say] = useState('');
  const show = (): void => {
    askAllowed().then(
      (server) => {
        allow(server);
        say(server.measure_from_here === false ? 'No target is allowed with this token.' : '');
      },
      (error: Error) => say(error.message),
    );
  };
  return <Token has={has} said={said} show={show} />;
}

/** Seconds that a kind may have here. */
export function bounds(kind: Kind, limit: number | null): { least: number; most: number } {
  const most = Math.min(limit ?? 60, 60);
  if (kind === 'sweep') return { least: 1, most: Math.floor(most / WINDOWS) };
  return { least: kind === 'test' ? TEST_LEAST : 1, most };
}

function Form({ server, targets }: { server: Server; targets: string[] }): JSX.Element {
  const known = hosts(targets);
  const last = from.value?.wish;
  const [kind, setKind] = useState<Kind>(last?.kind ?? 'ping');
  const [target, setTarget] = useState(last?.target ?? known[0] ?? '');
  const [seconds, setSeconds] = useState(last?.seconds ?? SECONDS.ping);
  const [direction, setDirection] = useState(last?.direction ?? 'up');
  const [rateMbit, setRate] = useState('');
  const { least, most } = bounds(kind, server.limits.seconds);
  const choose = (next: Kind): void => {
    const range = bounds(next, server.limits.seconds);
    setKind(next);
    setSeconds(Math.max(range.least, Math.min(SECONDS[next], range.most)));
  };
  const run = (event: Event): void => {
    event.preventDefault();
    const rate_bps = Math.round(Number(rateMbit) * 1e6);
    begin({
      kind,
      target: target.trim(),
      seconds,
      ...(sends(kind) ? { direction } : {}),
      ...(sends(kind) && rate_bps > 0 ? { rate_bps } : {}),
    });
  };
  return (
    <>
      <p class="soft">
        Allowed targets: {targets.join(', ')}. Results are kept with the target’s address.{' '}
        {needsServer(kind) && (
          <>
            At the target <code>linerate serve</code> has to run.
          </>
        )}
      </p>
      <form class="filter" onSubmit={run}>
        <label>
          What
          <select
            class="wide"
            value={kind}
            onChange={(event) => choose(event.currentTarget.value as Kind)}
          >
            {(Object.keys(NAMES) as Kind[]).map((name) => (
              <option key={name} value={name}>
                {NAMES[name]}
              </option>
            ))}
          </select>
        </label>
        <label>
          Target
          <input
            required
            list="targets"
            value={target}
            placeholder={needsServer(kind) ? 'HOST or HOST:PORT' : 'HOST'}
            onInput={(event) => setTarget(event.currentTarget.value)}
          />
        </label>
        <datalist id="targets">
          {known.map((host) => (
            <option key={host} value={host} />
          ))}
        </datalist>
        <label>
          {kind === 'sweep' ? `Seconds, each of ${WINDOWS} windows` : 'Seconds'}
          <input
            type="number"
            min={least}
            max={Math.max(most, least)}
            value={seconds}
            onInput={(event) => setSeconds(Number(event.currentTarget.value))}
          />
        </label>
        {sends(kind) && (
          <label>
            Direction
            <select
              class="wide"
              value={direction}
              onChange={(event) => setDirection(event.currentTarget.value as 'up' | 'down')}
            >
              <option value="up">to the target</option>
              <option value="down">from the target</option>
            </select>
          </label>
        )}
        {sends(kind) && (
          <label>
            Rate, Mbit/s
            <input
              type="number"
              min="0.001"
              step="any"
              value={rateMbit}
              placeholder={usualRate(kind, server.limits.rate_bps)}
              onInput={(event) => setRate(event.currentTarget.value)}
            />
          </label>
        )}
        <button type="submit" class="go" disabled={isGoing(from.value)}>
          Measure
        </button>
      </form>
      {most < least && (
        <p role="status">A test here has {server.limits.seconds} s, which is too short for this.</p>
      )}
    </>
  );
}

const usualRate = (kind: Kind, limit: number | null): string => {
  if (kind === 'udp') return String(Math.min(1e6, limit ?? 1e6) / 1e6);
  return limit === null ? 'as fast as it goes' : String(limit / 1e6);
};

const TITLES: Record<FromRun['phase'], string> = {
  asking: 'Asking for a place',
  queued: 'The server is busy',
  running: 'Measuring',
  done: 'Done',
  failed: 'It did not come to its end',
};

function Outcome({ now }: { now: FromRun }): JSX.Element {
  const { kind } = now.wish;
  const whole = now.wish.seconds * (kind === 'sweep' ? WINDOWS : 1);
  const { points, rttMs } = sweep(now.parts);
  return (
    <section class="outcome">
      <h2>
        {NAMES[kind]} to {now.admitted?.target ?? now.wish.target}
      </h2>
      <p role="status" class={now.phase === 'failed' ? 'bad' : 'soft'}>
        {TITLES[now.phase]}
        {now.position !== null && `: you are number ${now.position} in the queue`}
        {now.phase !== 'done' && now.say !== '' && `. ${now.say}`}
      </p>
      {isGoing(now) && (
        <button type="button" onClick={leave}>
          {now.admitted === null ? 'Leave the queue' : 'Stop'}
        </button>
      )}
      {now.samples.length > 0 && <Rates now={now} whole={whole} />}
      {now.replies.length > 0 && <Replies now={now} whole={whole} />}
      {points.length >= 2 && rttMs !== null && <Drawing points={points} rttMs={rttMs} />}
      <Parts now={now} />
      {now.verdict !== null && (
        <section>
          <h2>What limits it</h2>
          <VerdictWords verdict={now.verdict} />
        </section>
      )}
      {now.notes.length > 0 && (
        <ul class="told soft">
          {now.notes.map((note, index) => (
            <li key={index}>{note}</li>
          ))}
        </ul>
      )}
    </section>
  );
}

function Rates({ now, whole }: { now: FromRun; whole: number }): JSX.Element {
  const newest = now.samples.at(-1);
  return (
    <>
      <h3>
        Rate <span class="soft">payload that arrived</span>
      </h3>
      <Chart
        label={`Rate over time; now ${word(rate(newest?.rate_bps))}.`}
        show={(value) => word(rate(value))}
        lines={[
          { label: 'to the target', ink: '--up', fill: true },
          { label: 'from the target', ink: '--down', fill: true },
        ]}
        data={rateColumns(now.samples, now.wish.seconds) as never}
        range={[0, whole]}
        height={200}
      />
    </>
  );
}

function Replies({ now, whole }: { now: FromRun; whole: number }): JSX.Element {
  const lost = now.replies.filter(({ rtt_us }) => rtt_us === null).length;
  return (
    <>
      <h3>
        Round trip{' '}
        <span class="soft">
          {now.replies.length} probes, {lost} without an answer
        </span>
      </h3>
      <Chart
        label="Round-trip time of each probe over time."
        show={(value) => word(delay(value))}
        lines={[{ label: 'round trip', ink: '--idle', dots: true }]}
        data={replyColumns(now.replies) as never}
        range={[0, whole]}
        height={180}
      />
    </>
  );
}

function Parts({ now }: { now: FromRun }): JSX.Element | null {
  if (now.parts.length === 0) return null;
  const shown = now.parts.map((part) => ({
    part,
    cells: [
      part.window_bytes === null ? part.kind : word(size(part.window_bytes)),
      word(rate(part.rate_bps)),
      word(delay(part.rtt_us === null ? null : part.rtt_us / 1000)),
      word(percent(part.loss)),
    ],
  }));
  const stored = now.phase !== 'running' && now.records.length > 0;
  return (
    <div class="scroll figures-table" tabIndex={0} role="region" aria-label="Records">
      <table>
        <thead>
          <tr>
            <th scope="col" class="words">
              {now.wish.kind === 'sweep' ? 'Window' : 'Kind'}
            </th>
            <th scope="col">Rate</th>
            <th scope="col">Round trip</th>
            <th scope="col">Loss</th>
            <th scope="col">Result</th>
          </tr>
        </thead>
        <tbody>
          {shown.map(({ part, cells: [name, ...cells] }) => (
            <tr key={part.record}>
              <th scope="row">{name}</th>
              {cells.map((cell, index) => (
                <td key={index}>{cell}</td>
              ))}
              <td>
                {stored ? <a href={`/results/${part.record}`}>{part.status}</a> : part.status}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
