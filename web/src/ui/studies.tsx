// Studies: those that come with the program, their runs, and one that is measured now.
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { ask, asApiError, post, type ApiError } from '../api/client';
import { shown } from '../run/from_here';
import { short } from '../show/record';
import { moment } from '../show/units';
import { go } from './nav';
import { CommandLine, Failed, Loading, Notice } from './parts';
import { Token } from './token';

interface StudyRun {
  run: string;
  study: string;
  title: string;
  state: 'running' | 'finished' | 'partial' | 'interrupted' | 'failed';
  stored: number;
  measurements: number;
  started_at: string;
  finished_at: string | null;
  here: boolean;
  said: string | null;
}

interface Studies {
  studies: { name: string; title: string; measurements: number }[];
  runs: StudyRun[];
  may_start: boolean;
  why_not: string | null;
}

const BASE = '/api/v1/studies';
/** A run that is measured is asked for so often, and a server that does not answer too. */
const POLL_MS = 1_000;
const AWAY_MS = 5_000;

const STATES: Record<StudyRun['state'], string> = {
  running: 'is measured',
  finished: 'is finished',
  partial: 'came to its end, and some measurements failed',
  interrupted: 'was interrupted',
  failed: 'failed',
};

interface Polled<T> {
  value: T | null;
  /** Why the last answer did not come; what is shown is older. */
  error: ApiError | null;
}

/** What `path` gives, asked for again while `going` says so, and at once after `again`. */
function usePolled<T>(path: string, going: (value: T) => boolean): [Polled<T>, () => void] {
  const [state, set] = useState<Polled<T>>({ value: null, error: null });
  const [turn, next] = useState(0);
  useEffect(() => {
    let current = true;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const look = async (): Promise<void> => {
      try {
        const value = await ask<T>(path, { headers: shown() });
        if (!current) return;
        set({ value, error: null });
        if (going(value)) timer = setTimeout(look, POLL_MS);
      } catch (error) {
        if (!current) return;
        set((known) => ({ ...known, error: asApiError(error) }));
        if (asApiError(error).status === 0) timer = setTimeout(look, AWAY_MS);
      }
    };
    void look();
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [path, turn]);
  return [state, () => next((value) => value + 1)];
}

export function StudiesView({ run }: { run: string | null }): JSX.Element {
  return run === null ? <List /> : <OneRun run={run} key={run} />;
}

function List(): JSX.Element {
  const [{ value, error }, again] = usePolled<Studies>(BASE, ({ runs }) => runs.some(({ here }) => here));
  return (
    <>
      <h1>Studies</h1>
      <p class="lead">
        Whole sets of measurements on virtual networks of the server, with the questions that they
        answer.
      </p>
      {value === null && error === null && <Loading />}
      {error !== null && <Failed error={error} again={again} />}
      {value !== null && <Known all={value} />}
      {value !== null && (
        <Token has={value.may_start} said={value.why_not ?? ''} show={again} />
      )}
      {value !== null && <Runs runs={value.runs} />}
    </>
  );
}

/** Asks for a run, and opens it; what is wrong in words. */
async function start(wish: object): Promise<string> {
  try {
    const { run } = await post<StudyRun>(BASE, wish, {
      headers: { 'content-type': 'application/json', ...shown() },
    });
    go(`/studies/${run}`);
    return '';
  } catch (error) {
    return asApiError(error).refusal.say;
  }
}

function Known({ all }: { all: Studies }): JSX.Element {
  const [said, say] = useState('');
  const busy = all.runs.some(({ here }) => here);
  return (
    <>
      <div class="scroll" tabIndex={0} role="region" aria-label="Studies that can be run">
        <table>
          <thead>
            <tr>
              <th scope="col" class="words">
                Study
              </th>
              <th scope="col">Measurements</th>
              <td />
            </tr>
          </thead>
          <tbody>
            {all.studies.map(({ name, title, measurements }) => (
              <tr key={name}>
                <th scope="row">
                  {name} <span class="soft">{title}</span>
                </th>
                <td>{measurements}</td>
                <td>
                  <button
                    type="button"
                    disabled={!all.may_start || busy}
                    aria-label={`Run ${name}`}
                    onClick={async () => say(await start({ study: name }))}
                  >
                    Run
                  </button>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {said !== '' && (
        <Notice title="It was not started" kind="bad">
          <p role="alert">{said}</p>
        </Notice>
      )}
    </>
  );
}

function Runs({ runs }: { runs: StudyRun[] }): JSX.Element {
  if (runs.length === 0) return <p class="soft">No run is stored.</p>;
  return (
    <section>
      <h2>Runs</h2>
      <div class="scroll figures-table" tabIndex={0} role="region" aria-label="Runs of studies">
        <table>
          <thead>
            <tr>
              <th scope="col" class="words">
                Begun
              </th>
              <th scope="col" class="words">
                Study
              </th>
              <th scope="col" class="words">
                State
              </th>
              <th scope="col">Measured</th>
            </tr>
          </thead>
          <tbody>
            {runs.map((one) => (
              <tr key={one.run}>
                <td class="words">
                  <a href={`/studies/${one.run}`}>{moment(one.started_at)}</a>
                </td>
                <td class="words">{one.study}</td>
                <td class="words">{one.state}</td>
                <td>{`${one.stored} of ${one.measurements}`}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function OneRun({ run }: { run: string }): JSX.Element {
  const [{ value, error }, again] = usePolled<StudyRun>(`${BASE}/${run}`, ({ here }) => here);
  const [said, say] = useState('');
  const measured = value?.here ?? false;
  useEffect(() => {
    // What was said of ending it is old once it has ended.
    if (!measured) say('');
  }, [measured]);
  if (value === null) {
    return error === null ? <Loading /> : <Failed heading="Study" error={error} again={again} />;
  }
  const end = async (): Promise<void> => {
    try {
      await ask(`${BASE}/${run}`, { method: 'DELETE', headers: shown() });
      say('It is asked to end; what was measured until then is kept.');
    } catch (wrong) {
      say(asApiError(wrong).refusal.say);
    }
  };
  const resume = async (): Promise<void> => {
    say(await start({ resume: run }));
    again();
  };
  const { title, study, state, stored, measurements, here } = value;
  const whole = state === 'finished' || state === 'running';
  return (
    <>
      <h1>{title}</h1>
      <p>
        <a href="/studies">{study}</a>, begun {moment(value.started_at)},{' '}
        <strong role="status">{STATES[state]}</strong>.
      </p>
      {error !== null && (
        <Notice title="The server does not answer">
          <p>{error.refusal.say} It is asked again; below is what it said last.</p>
        </Notice>
      )}
      <p>
        <label>
          {`${stored} of ${measurements} measured `}
          <progress value={stored} max={measurements} />
        </label>
      </p>
      {value.said !== null && (
        <Notice title="Why it failed" kind="bad">
          <p>{value.said}</p>
        </Notice>
      )}
      <p class="again">
        {here && (
          <button type="button" onClick={end}>
            Stop
          </button>
        )}
        {!whole && (
          <button type="button" onClick={resume}>
            Resume
          </button>
        )}{' '}
        <span role="status">{said}</span>
      </p>
      {!whole && <CommandLine line={`linerate study run --resume ${short(run)}`} />}
      {stored > 0 && (
        <p>
          <a href={`${BASE}/${run}/report`}>{state === 'finished' ? 'Report' : 'Report of what is there'}</a>. The
          address of this page and of the report are permanent.
        </p>
      )}
      {here && <p class="soft">It goes on when this page is closed.</p>}
    </>
  );
}
