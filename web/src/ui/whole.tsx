// One test of a browser: its records under one address, a verdict for each direction, one picture.
import type { JSX } from 'preact';
import { useMemo } from 'preact/hooks';
import { ask } from '../api/client';
import type { ResultList, ResultWords, Verdict } from '../api/types';
import { inUnit, learnNames, scope, type StoredRecord, type SummaryRow } from '../show/record';
import { moment } from '../show/units';
import { goodputOf, wayOf } from '../show/whole';
import { VerdictWords } from './outcome';
import { CommandLine, Failed, Loading, Notice, useLoaded } from './parts';
import { SeriesChart } from './series_chart';

/** One record of the test, with what the server says of it. */
interface Part {
  record: StoredRecord;
  words: ResultWords;
  verdict: Verdict | null;
}

async function load(run: string): Promise<Part[]> {
  const { results } = await ask<ResultList>(`/api/v1/results?run=${run}&limit=100`);
  const parts = results.map(async ({ id }): Promise<Part> => {
    const base = `/api/v1/results/${id}`;
    const [record, words, verdict] = await Promise.all([
      ask<StoredRecord>(base),
      ask<ResultWords>(`${base}/words`),
      // Kinds without a diagnosis have none.
      ask<Verdict>(`${base}/explain`).catch(() => null),
    ]);
    return { record, words, verdict };
  });
  const found = await Promise.all(parts);
  found.forEach(({ words }) => learnNames(words.names));
  return found.sort((a, b) => a.record.started_at.localeCompare(b.record.started_at));
}

export function WholeView({ run }: { run: string }): JSX.Element {
  const [state, again] = useLoaded(run, () => load(run));
  if (state.is === 'loading') return <Loading />;
  if (state.is === 'failed') return <Failed heading="A test" error={state.error} again={again} />;
  const [first] = state.value;
  if (first === undefined) {
    return (
      <>
        <h1>A test</h1>
        <Notice title="No result">
          <p>
            Nothing of this test is kept here. <a href="/">Test this path</a>.
          </p>
        </Notice>
      </>
    );
  }
  return <Whole parts={state.value} first={first.record} />;
}

function Whole({ parts, first }: { parts: Part[]; first: StoredRecord }): JSX.Element {
  return (
    <>
      <h1>Test of the path to {first.plan.host ?? 'a browser'}</h1>
      <p class="soft">
        <time dateTime={first.started_at}>{moment(first.started_at)}</time>
        {first.name !== null && `, ${first.name}`}
      </p>
      <p class="downloads">
        <CommandLine line={location.href} />
      </p>
      <Figures parts={parts} />
      {parts.map((part) => (
        <Limited key={part.record.id} part={part} several={parts.length > 1} />
      ))}
      <Picture parts={parts} />
      <Records parts={parts} />
    </>
  );
}

const title = (record: StoredRecord): string => {
  const way = wayOf(record);
  return way === null ? record.plan.kind : way === 'down' ? 'Download' : 'Upload';
};

const ROWS: [string, string, string][] = [
  ['Goodput', 'goodput_bps', 'value'],
  ['Round trip at rest, median', 'delay_idle_ns', 'p50'],
  ['Round trip under load, median', 'delay_loaded_ns', 'p50'],
  ['Round trip of the kernel, minimum', 'tcp_rtt_min_ns', 'value'],
  ['Segments sent again', 'retransmits', 'value'],
];

function Figures({ parts }: { parts: Part[] }): JSX.Element {
  const find = ({ record }: Part, metric: string, stat: string): SummaryRow | undefined =>
    record.summary.find((row) => row.metric === metric && row.stat === stat && row.flow === null);
  const known = ROWS.filter(([, metric, stat]) => parts.some((part) => find(part, metric, stat)));
  return (
    <div class="scroll figures-table" tabIndex={0} role="region" aria-label="Figures">
      <table>
        <thead>
          <tr>
            <th scope="col">
              <span class="away">What</span>
            </th>
            {parts.map((part) => (
              <th scope="col" key={part.record.id}>
                {title(part.record)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {known.map(([name, metric, stat]) => (
            <tr key={metric}>
              <th scope="row">{name}</th>
              {parts.map((part) => (
                <td key={part.record.id}>{inUnit(metric, find(part, metric, stat)?.value)}</td>
              ))}
            </tr>
          ))}
          <tr>
            <th scope="row">Trust</th>
            {parts.map(({ record, words }) => (
              <td key={record.id}>{words.is_good ? 'good' : 'see below'}</td>
            ))}
          </tr>
        </tbody>
      </table>
    </div>
  );
}

function Limited({ part, several }: { part: Part; several: boolean }): JSX.Element {
  const { record, words, verdict } = part;
  return (
    <section>
      <h2>{several ? `${title(record)}: what limits it` : 'What limits it'}</h2>
      {verdict?.headline ? (
        <VerdictWords verdict={verdict} />
      ) : (
        <p class="verdict">{words.limit ?? words.headline}</p>
      )}
      {!words.is_good && <p class="soft">Trust: {words.trust}</p>}
      {words.failure !== null && <p class="bad">{words.failure}</p>}
    </section>
  );
}

/** Goodput of all directions in one chart, each from its own begin. */
function Picture({ parts }: { parts: Part[] }): JSX.Element | null {
  const series = useMemo(() => parts.flatMap(({ record }) => goodputOf(record)), [parts]);
  if (series.length === 0) return null;
  return (
    <section>
      <h2>Over time</h2>
      <SeriesChart metric="goodput_bps" series={series} />
    </section>
  );
}

function Records({ parts }: { parts: Part[] }): JSX.Element {
  return (
    <section>
      <h2>Every figure</h2>
      <ul>
        {parts.map(({ record }) => (
          <li key={record.id}>
            <a href={`/results/${record.id}`}>{title(record)}</a>
            {wayOf(record) !== null && (
              <span class="soft">{` ${scope({ direction: wayOf(record), flow: null })}`}</span>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}
