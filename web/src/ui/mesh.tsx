// The matrix of a mesh: a row and a column for each agent, and in each cell the two directions.
import type { JSX } from 'preact';
import { ask } from '../api/client';
import {
  age,
  booked,
  bookedRun,
  byPair,
  ended,
  moved,
  resultsOf,
  slot,
  standing,
  why,
  type Mesh,
  type MeshBooking,
  type MeshCell,
} from '../show/mesh';
import { inUnit } from '../show/record';
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
        {mesh.mesh}, plan of revision {mesh.revision}. The row measures the column in the upper half of a
        cell, the column the row in the lower one.
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
            <time>{new Date(one.opened_s * 1000).toLocaleString()}</time>, {standing(mesh, one)}: {one.sentence}
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
                  <time>{new Date(one.start_s * 1000).toLocaleString()}</time>, in {age(one.start_s - mesh.now_s)}
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
                  <time>{new Date(one.start_s * 1000).toLocaleString()}</time>
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
  return (
    <section>
      <h2>{name}</h2>
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
                    <Half mesh={mesh} cell={cells.get(`${row} ${column}`)} />
                    <Half mesh={mesh} cell={cells.get(`${column} ${row}`)} />
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

/** One direction: its newest figure; what is missing says why. */
function Half({ mesh, cell }: { mesh: Mesh; cell: MeshCell | undefined }): JSX.Element | null {
  if (!cell) return null;
  const [from, to] = [mesh.agents[cell.from]?.name, mesh.agents[cell.to]?.name];
  const figure = cell.metric !== null && cell.value !== null ? inUnit(unitOf(cell.metric), cell.value) : '–';
  const old = cell.age_s === null ? 'never measured' : `${age(cell.age_s)} ago`;
  const why = cell.reason === null ? '' : `; the last run: ${cell.reason}`;
  const changed = cell.changed ? '; changed lately' : '';
  const title = `${from} to ${to}: ${figure}, ${old}${changed}${why}`;
  const kind = cell.no_data ? 'half dark' : 'half';
  const href = resultsOf(mesh, cell);
  const text = `${figure}${cell.no_data ? ' !' : ''}${cell.changed ? ' ~' : ''}`;
  return href === null ? (
    <span class={kind} title={title}>{text}</span>
  ) : (
    <a class={kind} title={title} href={href}>{text}</a>
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
