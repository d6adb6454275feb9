// What schedules follow: one figure of one task over time, its smoke, and what happened.
import type { JSX } from 'preact';
import { ask } from '../api/client';
import { inUnit, metricName } from '../show/record';
import { smoke, type SeriesEvent, type SeriesValue } from '../show/smoke';
import { Failed, Loading, Notice, useLoaded } from './parts';

const BOX = { width: 720, height: 300, left: 90, right: 12, top: 14, bottom: 40 };
const day = (at_s: number): string => new Date(at_s * 1000).toISOString().slice(0, 16).replace('T', ' ');
const [unitOf, wayOf] = [(key: string) => key.split('/')[0] ?? key, (key: string) => key.split('/')[1] ?? ''];
const nameOf = (key: string): string => `${metricName(unitOf(key))} ${wayOf(key)}`.trim();
const href = (plan: string, { task, metric }: { task: string; metric: string }): string =>
  `/series?${new URLSearchParams({ plan, task, metric })}`;

export function SeriesView({ query }: { query: URLSearchParams }): JSX.Element {
  const [plan, task, metric] = ['plan', 'task', 'metric'].map((name) => query.get(name));
  return plan && task && metric ? (
    <One plan={plan} task={task} metric={metric} key={query.toString()} />
  ) : (
    <All />
  );
}

type Newest = SeriesValue & { plan: string; task: string; metric: string };

function All(): JSX.Element {
  const [found, again] = useLoaded('series', () => ask<{ series: Newest[] }>('/api/v1/series'));
  const list = found.is === 'there' ? found.value.series : [];
  return (
    <>
      <h1>Series</h1>
      {found.is === 'loading' && <Loading />}
      {found.is === 'failed' && <Failed error={found.error} again={again} />}
      {found.is === 'there' && list.length === 0 && (
        <Notice title="Nothing is followed yet">
          <p>
            <code>linerate schedule run PLAN</code> measures by a calendar and keeps series in the
            store of this server.
          </p>
        </Notice>
      )}
      {list.length > 0 && (
        <div class="scroll figures-table" tabIndex={0} role="region" aria-label="Series">
          <table>
            <thead>
              <tr>
                <th scope="col" class="words">Task</th>
                <th scope="col">Figure</th>
                <th scope="col">Newest</th>
                <th scope="col">At, UTC</th>
              </tr>
            </thead>
            <tbody>
              {list.map((one) => (
                <tr key={href(one.plan, one)}>
                  <th scope="row">
                    {one.plan} / {one.task}
                  </th>
                  <td>
                    <a href={href(one.plan, one)}>{nameOf(one.metric)}</a>
                  </td>
                  <td>{inUnit(unitOf(one.metric), one.value)}</td>
                  <td>{day(one.at_s)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  );
}

interface Whole {
  values: SeriesValue[];
  events: SeriesEvent[];
}

function One({ plan, task, metric }: { plan: string; task: string; metric: string }): JSX.Element {
  const path = `/api/v1/series?${new URLSearchParams({ plan, task, metric })}`;
  const [found, again] = useLoaded(path, () => ask<Whole>(path));
  return (
    <>
      <h1>
        {nameOf(metric)} of {task}
      </h1>
      <p>
        <a href="/series">All series</a>
      </p>
      {found.is === 'loading' && <Loading />}
      {found.is === 'failed' && <Failed error={found.error} again={again} />}
      {found.is === 'there' && <Smoke whole={found.value} metric={unitOf(metric)} />}
      {found.is === 'there' && <Events events={found.value.events} />}
    </>
  );
}

function Smoke({ whole, metric }: { whole: Whole; metric: string }): JSX.Element {
  const { values, events } = whole;
  if (values.length === 0) return <p class="soft">There is no value.</p>;
  const top = Math.max(...values.map(({ value }) => value)) * 1.1 || 1;
  const from = values[0]?.at_s ?? 0;
  const span = (values.at(-1)?.at_s ?? 0) - from || 1;
  const { width, height, left, right, bottom } = BOX;
  const x = (at: number): number => left + ((at - from) / span) * (width - left - right);
  const y = (value: number): number => height - bottom - (value / top) * (height - BOX.top - bottom);
  const band = smoke(values);
  const line = (key: 'low' | 'median' | 'high'): string[] =>
    band.map((at) => `${x(at.at_s).toFixed(1)},${y(at[key]).toFixed(1)}`);
  return (
    <figure>
      <svg viewBox={`0 0 ${width} ${height}`} role="img" class="drawing">
        <title>{`${values.length} values from ${day(from)} to ${day(from + span)}`}</title>
        {[0, 0.5, 1].map((share) => (
          <g key={share}>
            <line class="grid" x1={left} x2={width - right} y1={y(top * share)} y2={y(top * share)} />
            <text x={left - 8} y={y(top * share) + 4} text-anchor="end">{inUnit(metric, top * share)}</text>
          </g>
        ))}
        <polygon class="smoke" points={[...line('high'), ...line('low').reverse()].join(' ')} />
        {values.map((one) => (
          <circle key={one.at_s} class="point" cx={x(one.at_s)} cy={y(one.value)} r="2">
            <title>{`${day(one.at_s)}: ${inUnit(metric, one.value)}`}</title>
          </circle>
        ))}
        <polyline class="median" points={line('median').join(' ')} />
        {events.filter(({ at_s }) => at_s >= from && at_s <= from + span).map((one, index) => (
          <line key={index} class="event" x1={x(one.at_s)} x2={x(one.at_s)} y1={BOX.top} y2={height - bottom}>
            <title>{`${day(one.at_s)}: ${one.kind}`}</title>
          </line>
        ))}
        <text x={left} y={height - bottom + 20}>{day(from)}</text>
        <text x={width - right} y={height - bottom + 20} text-anchor="end">{day(from + span)}</text>
      </svg>
      <figcaption class="soft">
        Dots: each run, UTC. Line and band: median and range of the nine runs around. Upright lines:
        events.
      </figcaption>
    </figure>
  );
}

function Events({ events }: { events: SeriesEvent[] }): JSX.Element | null {
  if (events.length === 0) return null;
  return (
    <section>
      <h2>Events</h2>
      <ul class="told">
        {events.map((one, index) => (
          <li key={index}>
            {day(one.at_s)} UTC: {one.kind.replaceAll('_', ' ')}
            {one.task !== '' && ` of ${one.task}`}
          </li>
        ))}
      </ul>
    </section>
  );
}
