// One stored result: verdict, figures of the server, series to look into, the table of all numbers.
import type { JSX } from 'preact';
import { useMemo } from 'preact/hooks';
import { ask } from '../api/client';
import type { Figure as Picture, ResultWords, Verdict } from '../api/types';
import {
  inUnit,
  learnNames,
  metricName,
  metricsOf,
  rows,
  scope,
  short,
  type PageDatagrams,
  type Series,
  type StoredRecord,
} from '../show/record';
import { comparable } from '../show/published';
import { moment, seconds, word } from '../show/units';
import { VerdictWords } from './outcome';
import { CommandLine, Failed, Loading, useLoaded } from './parts';
import { Beside } from './published';
import { SeriesChart } from './series_chart';

// One script with this view: it has the same parts.
export { WholeView } from './whole';

const MOST_CHARTS = 8;

/** Extras of a result: without them the page still has the figures. */
const optional = <T,>(path: string): Promise<T | null> => ask<T>(path).catch(() => null);

/** A record, and what its server says of it in words. */
async function load(base: string): Promise<{ record: StoredRecord; words: ResultWords | null }> {
  const [record, words] = await Promise.all([
    ask<StoredRecord>(base),
    optional<ResultWords>(`${base}/words`),
  ]);
  learnNames(words?.names ?? {});
  return { record, words };
}

export function ResultView({ id }: { id: string }): JSX.Element {
  const base = `/api/v1/results/${id}`;
  const [state, again] = useLoaded(id, () => load(base));
  if (state.is === 'loading') return <Loading />;
  if (state.is === 'failed') return <Failed heading="Result" error={state.error} again={again} />;
  const { record, words } = state.value;
  const { plan } = record;
  const run = record.tags?.['run'];
  return (
    <>
      <h1>
        {plan.kind} {plan.host ?? ''}
      </h1>
      <p class="soft">
        <time dateTime={record.started_at}>{moment(record.started_at)}</time>,{' '}
        {word(seconds(record.duration_ns / 1e9))}, {record.status}
        {record.name !== null && `, ${record.name}`}
        {run !== undefined && (
          <>
            , part of <a href={`/results?run=${run}`}>a whole test</a>
          </>
        )}
      </p>
      <p class="answer">{words?.headline}</p>
      <Downloads base={base} record={record} />
      <Explained base={base} />
      <Numbers record={record} />
      <Datagrams all={record.page_datagrams ?? []} />
      {words !== null && <Caveats words={words} />}
      <Pictures base={base} />
      <SeriesCharts series={record.series} />
      {comparable(record.summary ?? []) && <Beside id={record.id} />}
    </>
  );
}

function Downloads({ base, record }: { base: string; record: StoredRecord }): JSX.Element {
  const name = `linerate-${record.plan.kind}-${short(record.id)}`;
  return (
    <p class="downloads">
      <a href={base} download={`${name}.json`}>
        JSON
      </a>
      <a href={`${base}.csv`} download={`${name}.csv`}>
        CSV
      </a>
      <a href={`${base}/report`} download={`${name}.html`}>
        HTML
      </a>
      <CommandLine line={location.href} />
    </p>
  );
}

function Explained({ base }: { base: string }): JSX.Element | null {
  const [state] = useLoaded(base, () => optional<Verdict>(`${base}/explain`));
  if (state.is !== 'there' || !state.value?.headline) return null;
  return (
    <section>
      <h2>What limits it</h2>
      <VerdictWords verdict={state.value} />
    </section>
  );
}

function Pictures({ base }: { base: string }): JSX.Element | null {
  const [state] = useLoaded(base, () => optional<Picture[]>(`${base}/figures`));
  if (state.is !== 'there' || !state.value?.length) return null;
  return (
    <section>
      <h2>Plots</h2>
      {state.value.map(({ name, svg }) => (
        <Picture key={name} name={name} svg={svg} />
      ))}
    </section>
  );
}

/** As an image, whose own styles the page's security policy does not touch. */
function Picture({ name, svg }: Picture): JSX.Element {
  const href = useMemo(() => `data:image/svg+xml,${encodeURIComponent(svg)}`, [svg]);
  const said = /<title>([^<]*)<\/title>/.exec(svg)?.[1] ?? metricName(name);
  return (
    <figure>
      <img src={href} alt={said} />
      <figcaption>
        <a href={href} download={`${name.replace(/\.svg$/, '')}.svg`}>
          SVG
        </a>
      </figcaption>
    </figure>
  );
}

function SeriesCharts({ series }: { series: Series[] }): JSX.Element | null {
  const metrics = metricsOf(series ?? []).slice(0, MOST_CHARTS);
  if (metrics.length === 0) return null;
  return (
    <section>
      <h2>Over time</h2>
      {metrics.map((metric) => (
        <SeriesChart key={metric} metric={metric} series={series} />
      ))}
    </section>
  );
}

/** What became of the page's datagrams, each way apart. */
function Datagrams({ all }: { all: PageDatagrams[] }): JSX.Element | null {
  if (all.length === 0) return null;
  return (
    <section>
      <h2>Datagrams</h2>
      <div class="scroll figures-table" tabIndex={0} role="region" aria-label="Datagrams">
        <table>
          <thead>
            <tr>
              <th scope="col" class="words">
                Way
              </th>
              <th scope="col">Lost</th>
              <th scope="col">Loss</th>
              <th scope="col">Out of order</th>
              <th scope="col">Jitter</th>
            </tr>
          </thead>
          <tbody>
            {all.map((one) => (
              <tr key={`${one.phase} ${one.direction}`}>
                <th scope="row">
                  {scope({ direction: one.direction, flow: null })},{' '}
                  {one.phase === 'idle' ? 'at rest' : 'under load'}
                </th>
                <td>{`${one.lost} of ${one.sent}`}</td>
                <td>{inUnit('_ratio', one.sent > 0 ? one.lost / one.sent : null)}</td>
                <td>{one.reordered}</td>
                <td>{inUnit('_ns', one.jitter_ns)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function Numbers({ record }: { record: StoredRecord }): JSX.Element | null {
  const found = rows(record.summary ?? []).filter((row) => row.stats.some((one) => one.flow === null));
  if (found.length === 0) return null;
  return (
    <section>
      <h2>Figures</h2>
      <div class="scroll" tabIndex={0} role="region" aria-label="Figures of the result">
        <table>
          <tbody>
            {found.map((row) => (
              <tr key={row.key}>
                <th scope="row">
                  {row.name}
                  {row.scope !== '' && <span class="soft">{` ${row.scope}`}</span>}
                </th>
                <td class="stats">
                  {row.stats.map(({ stat, metric, value }) => (
                    <span key={stat}>
                      {row.stats.length > 1 && <span class="soft">{stat} </span>}
                      {inUnit(metric, value)}
                    </span>
                  ))}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function Caveats({ words }: { words: ResultWords }): JSX.Element | null {
  const { caveats, failure } = words;
  if (caveats.length === 0 && failure === null) return null;
  return (
    <section>
      <h2>What bears on the figures</h2>
      <ul>
        {failure !== null && <li>{failure}</li>}
        {caveats.map((line) => (
          <li key={line}>{line}</li>
        ))}
      </ul>
    </section>
  );
}
