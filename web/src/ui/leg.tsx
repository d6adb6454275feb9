// "Which leg": from this device to the server here, or from there to one outside: which is worse.
import type { JSX } from 'preact';
import type { Server } from '../api/types';
import { isMeasured, leave, leg, measure, planned, type LegRun, type Stage } from '../run/leg';
import { run } from '../run/drive';
import { isMeasuring } from '../run/machine';
import { judge, type Leg } from '../show/leg';
import { bytes, delay, rate, round, word } from '../show/units';
import { volume } from '../show/volume';
import { Notice } from './parts';

export function LegView({ server }: { server: Server }): JSX.Element {
  const now = leg.value;
  if (!server.outer) return <NoOuter host={server.host} />;
  return (
    <>
      <h1>Which leg is worse</h1>
      <p class="away" role="status">
        {now === null ? '' : WORDS[now.stage]}
      </p>
      <p class="lead">
        From this device to {server.host}, or from there to {server.outer}.
      </p>
      {now !== null && isMeasured(now) ? (
        <During now={now} server={server} />
      ) : (
        <Begin server={server} again={now !== null} />
      )}
      {now !== null && !isMeasured(now) && <Trouble now={now} />}
      {now !== null && <Found now={now} server={server} />}
    </>
  );
}

const WORDS: Record<LegRun['stage'], string> = {
  check: 'Asking the server outside',
  near: 'Measuring from this device to here',
  far: 'Measuring from here to outside',
  whole: 'Measuring from this device to outside',
  done: 'Both legs are measured',
  failed: 'It failed',
  left: 'It was stopped',
};

function NoOuter({ host }: { host: string }): JSX.Element {
  return (
    <>
      <h1>Which leg is worse</h1>
      <Notice title="No server outside is named">
        <p>
          The operator of {host} names one, which runs linerate serve too:{' '}
          <code>linerate serve --policy FILE --outer HOST:PORT</code>. The policy has to let clients
          measure there (<code>measure_to</code>), and that server is started with{' '}
          <code>--allow-origin {location.origin}</code>.
        </p>
      </Notice>
    </>
  );
}

function Begin({ server, again }: { server: Server; again: boolean }): JSX.Element {
  const { seconds } = planned(server, null);
  const busy = run.value !== null && isMeasuring(run.value.phase);
  const most = word(round(bytes(3 * volume(100e6, seconds, 2, null))));
  return (
    <>
      <p class="soft">
        Three tests in turn, so that none disturbs another: some {6 * seconds + 15} s, and {most} at
        100&nbsp;Mbit/s, two thirds of it by this device.
      </p>
      <p class="again">
        <button
          type="button"
          class={again ? '' : 'primary'}
          disabled={busy}
          onClick={() => measure(server)}
        >
          {again ? 'Measure again' : 'Measure both legs'}
        </button>
        {busy && ' A test of this path is running.'}
      </p>
    </>
  );
}

function During({ now, server }: { now: LegRun; server: Server }): JSX.Element {
  const steps: [Stage, string][] = [
    ['check', `Ask ${server.outer}`],
    ['near', `Device to ${server.host}`],
    ['far', `${server.host} to ${server.outer}`],
    ['whole', `Device to ${server.outer}`],
  ];
  const reached = steps.findIndex(([stage]) => stage === now.stage);
  return (
    <>
      <div class="progress">
        <ol class="steps">
          {steps.map(([stage, name], index) => (
            <li
              key={stage}
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
      {now.say !== '' && <p>{now.say}</p>}
      <p class="soft">{live()}</p>
    </>
  );
}

/** What the test of this browser measures now. */
function live(): string {
  const now = run.value;
  const way = now?.phase === 'down' || now?.phase === 'up' ? now.phase : null;
  const last = way === null ? undefined : now?.samples[way].at(-1);
  return last === undefined ? 'Measuring…' : `Now ${word(rate(last.rate_bps))} ${way}`;
}

function Trouble({ now }: { now: LegRun }): JSX.Element | null {
  if (now.stage === 'left') {
    return (
      <Notice title="Stopped">
        <p>What was measured until then is below.</p>
      </Notice>
    );
  }
  if (now.stage !== 'failed') return null;
  return (
    <Notice title={now.title} kind="bad">
      <p role="alert">{now.say}</p>
    </Notice>
  );
}

function Found({ now, server }: { now: LegRun; server: Server }): JSX.Element | null {
  const { near, far, whole } = now;
  const name = {
    near: `the leg to ${server.host}`,
    far: `the leg from there to ${server.outer}`,
  };
  const judged = judge(near, far, whole, name);
  const some = [near, far].some(({ rates }) => rates.down !== null || rates.up !== null);
  if (!some) return null;
  return (
    <>
      {now.stage === 'done' && (
        <section class="verdict-words">
          <h2>
            {judged.worse === null ? 'The legs are not told apart' : `Worse: ${name[judged.worse]}`}
          </h2>
          {judged.why !== '' && <p>{judged.why}</p>}
          {judged.gone !== '' && <p>{judged.gone}</p>}
          {now.unpinged !== '' && <p>{`No pings from ${server.host}: ${now.unpinged}`}</p>}
          {judged.evidence.length > 0 && (
            <ul>
              {judged.evidence.map((line) => (
                <li key={line}>{line}</li>
              ))}
            </ul>
          )}
        </section>
      )}
      <Figures now={now} server={server} />
      <Stored now={now} />
    </>
  );
}

function Figures({ now, server }: { now: LegRun; server: Server }): JSX.Element {
  const { near, far, whole } = now;
  const trip = (pick: (leg: Leg) => number | null): string[] => [
    word(delay(pick(near))),
    word(delay(pick(far))),
    '',
  ];
  const rows: [string, ...string[]][] = [
    ['Download', ...[near.rates, far.rates, whole].map(({ down }) => word(rate(down)))],
    ['Upload', ...[near.rates, far.rates, whole].map(({ up }) => word(rate(up)))],
    ['Round trip at rest', ...trip(({ trips }) => trips.idle)],
    ['Round trip while the whole way carries load', ...trip(({ trips }) => trips.loaded)],
  ];
  return (
    <section>
      <h2>Figures</h2>
      <div class="scroll figures-table" tabIndex={0} role="region" aria-label="Figures of both legs">
        <table>
          <thead>
            <tr>
              <td />
              <th scope="col">Device to {server.host}</th>
              <th scope="col">{`${server.host} to ${server.outer}`}</th>
              <th scope="col">Device to {server.outer}</th>
            </tr>
          </thead>
          <tbody>
            {rows.map(([name, ...cells]) => (
              <tr key={name}>
                <th scope="row">{name}</th>
                {cells.map((cell, index) => (
                  <td key={index}>{cell}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p class="soft">
        Download is towards this device. Rates of the middle column are measured by {server.host};
        round trips there are pings, those of the first column messages of this page.
      </p>
    </section>
  );
}

function Stored({ now }: { now: LegRun }): JSX.Element | null {
  if (now.stored.length === 0) return null;
  return (
    <p>
      Stored:{' '}
      {now.stored.map(({ href, name }, index) => (
        <span key={href}>
          {index > 0 && ', '}
          <a href={href}>{name}</a>
        </span>
      ))}
      .
    </p>
  );
}
