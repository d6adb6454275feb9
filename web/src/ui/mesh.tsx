// The matrix of a mesh: a row and a column for each agent, and in each cell what the row measures of the column.
import type { JSX } from 'preact';
import { ask } from '../api/client';
import {
  age,
  booked,
  bookedRun,
  byPair,
  ended,
  mark,
  median,
  moved,
  resultsOf,
  second,
  slot,
  standing,
  statistic,
  why,
  type Mesh,
  type MeshBooking,
  type MeshCell,
} from '../show/mesh';
import { inUnit, metricName } from '../show/record';
import { Failed, Loading, Notice, useLoaded } from './parts';

const unitOf = (key: string): string => key.split('/')[0] ?? key;

export function MeshView(): JSX.Element {
  const [found, again] = useLoaded('mesh', () => ask<Mesh>('/api/v1/mesh'));
  return (
    <>
      <h1>Mesh</h1>
      {found.is === 'loading' && <Loading />}
      {found.is === 'failed' && <Failed error={found.error} again={again} />}
      {found.is === 'there' && <Whole mesh={found.value} />}
    </>
  );
}

function Whole({ mesh }: { mesh: Mesh }): JSX.Element {
  return (
    <>
      <p class="soft">
        {mesh.mesh}, plan of revision {mesh.revision}. The row measures the column; each cell has the newest
        figure and its age.
      </p>
      {mesh.alerts.length > 0 && (
        <Notice title="In alert">
          <ul class="told">
            {mesh.alerts.map((one) => (
              <li key={one}>{one}</li>
            ))}
          </ul>
        </Notice>
      )}
      {mesh.tasks.map((name, task) => (
        <Matrix key={name} mesh={mesh} task={task} name={name} />
      ))}
      {mesh.incidents.length > 0 && <Incidents mesh={mesh} />}
      <Calendar mesh={mesh} />
      <Bookings mesh={mesh} />
      <Agents mesh={mesh} />
    </>
  );
}

/** What was found, the newest first: open, and over within a day. */
function Incidents({ mesh }: { mesh: Mesh }): JSX.Element {
  return (
    <section>
      <h2>Incidents</h2>
      <ul class="told">
        {mesh.incidents.map((one) => (
          <li key={one.id}>
            <time>{second(one.opened_s)}</time>, {standing(mesh, one)}: {one.sentence}
          </li>
        ))}
      </ul>
    </section>
  );
}

/** What the plan has ahead: a day of each task, and the next slots. */
function Calendar({ mesh }: { mesh: Mesh }): JSX.Element {
  return (
    <section>
      <h2>Calendar</h2>
      <div class="scroll figures-table" tabIndex={0} role="region" aria-label="A day of each task">
        <table>
          <thead>
            <tr>
              <th scope="col" class="words">Task</th>
              <th scope="col">Runs a day</th>
              <th scope="col">Every</th>
              <th scope="col">Takes</th>
              <th scope="col" class="words">Beside others</th>
              <th scope="col" class="words">Moves a day, about</th>
            </tr>
          </thead>
          <tbody>
            {mesh.planned.map((one, at) => (
              <tr key={mesh.tasks[at]}>
                <th scope="row">{mesh.tasks[at]}</th>
                <td>{Math.round(one.runs_a_day)}</td>
                <td>{age(one.period_s)}</td>
                <td>{age(one.takes_s)}</td>
                <td class="words">{one.alone ? 'no' : 'yes'}</td>
                <td class="words">{moved(one)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <h3>Next slots</h3>
      <div class="scroll figures-table" tabIndex={0} role="region" aria-label="Next slots">
        <table>
          <thead>
            <tr>
              <th scope="col" class="words">Run</th>
              <th scope="col" class="words">Begins</th>
              <th scope="col">Takes</th>
            </tr>
          </thead>
          <tbody>
            {mesh.next.map((one) => (
              <tr key={`${one.task} ${one.from} ${one.to}`}>
                <th scope="row">{slot(mesh, one)}</th>
                <td class="words">
                  <time>{second(one.start_s)}</time>, in {age(one.start_s - mesh.now_s)}
                </td>
                <td>{age(one.takes_s)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

/** Runs beside the calendar; nothing where there are none. */
function Bookings({ mesh }: { mesh: Mesh }): JSX.Element | null {
  const { next, past } = booked(mesh);
  if (next.length + past.length === 0) return null;
  return (
    <section>
      <h2>Bookings</h2>
      {next.length > 0 && <Booked mesh={mesh} list={next} title="To come" />}
      {past.length > 0 && <Booked mesh={mesh} list={past} title="Of the last day" />}
    </section>
  );
}

function Booked(props: { mesh: Mesh; list: MeshBooking[]; title: string }): JSX.Element {
  const { mesh, list, title } = props;
  return (
    <>
      <h3>{title}</h3>
      <div class="scroll figures-table" tabIndex={0} role="region" aria-label={`Bookings: ${title}`}>
        <table>
          <thead>
            <tr>
              <th scope="col" class="words">Run</th>
              <th scope="col" class="words">Begins</th>
              <th scope="col">Takes</th>
              <th scope="col" class="words">Why</th>
              <th scope="col" class="words">State</th>
            </tr>
          </thead>
          <tbody>
            {list.map((one) => (
              <tr key={`${one.agent} ${one.id}`}>
                <th scope="row">{bookedRun(one)}</th>
                <td class="words">
                  <time>{second(one.start_s)}</time>
                </td>
                <td>{age(one.takes_s)}</td>
                <td class="words">{why(one)}</td>
                <td class="words wrap">
                  {ended(mesh, one)}
                  {one.record !== null && (
                    <>
                      {', '}
                      <a href={`/results/${one.record}`} aria-label={`result of ${bookedRun(one)}`}>result</a>
                    </>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

function Matrix({ mesh, task, name }: { mesh: Mesh; task: number; name: string }): JSX.Element {
  const cells = byPair(mesh, task);
  const middles = mediansOf([...cells.values()]);
  return (
    <section>
      <h2>{name}</h2>
      {[...middles].map(([metric, middle]) => (
        <p class="soft small" key={metric}>
          {metricName(unitOf(metric))}
          {metric.includes('/') && ` ${metric.split('/')[1]}`}, {statistic(unitOf(metric))}. Median of the
          pairs: {inUnit(unitOf(metric), middle)}. {SIGNS.better} better and {SIGNS.worse} worse by a
          quarter or more; {CHANGED} changed lately; {DARK} no data.
        </p>
      ))}
      <div class="scroll matrix" tabIndex={0} role="region" aria-label={`Matrix of ${name}`}>
        <table>
          <thead>
            <tr>
              <td />
              {mesh.agents.map((to) => (
                <th scope="col" key={to.name}>{to.name}</th>
              ))}
            </tr>
          </thead>
          <tbody>
            {mesh.agents.map((from, row) => (
              <tr key={from.name}>
                <th scope="row">{from.name}</th>
                {mesh.agents.map((to, column) => (
                  <td key={to.name}>
                    <Pair mesh={mesh} cell={cells.get(`${row} ${column}`)} middles={middles} />
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

/** Signs beside the colours, which not everybody sees. */
const SIGNS = { better: '▲', worse: '▼', near: '' } as const;
const CHANGED = '~';
const DARK = '!';

/** The median of each metric of a task. */
function mediansOf(cells: readonly MeshCell[]): Map<string, number | null> {
  const values = new Map<string, number[]>();
  for (const { metric, value } of cells) {
    if (metric === null || value === null) continue;
    values.set(metric, [...(values.get(metric) ?? []), value]);
  }
  return new Map([...values].map(([metric, all]) => [metric, median(all)]));
}

/** One pair, one way: its newest figure, how that stands, its age; what is missing says why. */
function Pair(props: {
  mesh: Mesh;
  cell: MeshCell | undefined;
  middles: ReadonlyMap<string, number | null>;
}): JSX.Element | null {
  const { mesh, cell, middles } = props;
  if (!cell) return null;
  const { metric, value } = cell;
  const [from, to] = [mesh.agents[cell.from]?.name, mesh.agents[cell.to]?.name];
  const is = metric !== null && value !== null;
  const figure = is ? inUnit(unitOf(metric), value) : '–';
  const stands = is ? mark(unitOf(metric), value, middles.get(metric) ?? null) : 'near';
  const old = cell.age_s === null ? 'never measured' : `${age(cell.age_s)} ago`;
  const why = cell.reason === null ? '' : `; the last run: ${cell.reason}`;
  const changed = cell.changed ? '; changed lately' : '';
  const against = stands === 'near' ? '' : `, ${stands} than the median`;
  const title = `${from} to ${to}: ${figure}${against}, ${old}${changed}${why}`;
  const href = resultsOf(mesh, cell);
  const signs = [cell.no_data ? DARK : SIGNS[stands], cell.changed ? CHANGED : ''];
  const content = (
    <>
      {[figure, ...signs].filter((one) => one !== '').join(' ')}
      {cell.age_s !== null && <small>{age(cell.age_s)}</small>}
    </>
  );
  const kind = `pair ${cell.no_data ? 'dark' : stands}`;
  return href === null ? (
    <span class={kind} title={title}>{content}</span>
  ) : (
    <a class={kind} title={title} href={href}>{content}</a>
  );
}

function Agents({ mesh }: { mesh: Mesh }): JSX.Element {
  return (
    <section>
      <h2>Agents</h2>
      <div class="scroll figures-table" tabIndex={0} role="region" aria-label="Agents">
        <table>
          <thead>
            <tr>
              <th scope="col" class="words">Agent</th>
              <th scope="col">Heard</th>
              <th scope="col">Plan</th>
              <th scope="col">Results it keeps</th>
              <th scope="col">Clock</th>
            </tr>
          </thead>
          <tbody>
            {mesh.agents.map((one) => (
              <tr key={one.name}>
                <th scope="row">{one.name}</th>
                <td>{one.heard_s_ago === null ? 'never' : `${age(one.heard_s_ago)} ago`}</td>
                <td>{one.revision ?? '–'}</td>
                <td>{one.waiting ?? '–'}</td>
                <td>{one.ahead_s === null ? '–' : `${(one.ahead_s * 1000).toFixed(0)} ms`}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
