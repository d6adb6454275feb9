// A stored result beside a table of an old study that comes with the program.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { ask } from '../api/client';
import { mine, times, type Mine, type PublishedAbout, type PublishedFigure, type PublishedTable } from '../show/published';
import { inUnit, metricName, type StoredRecord } from '../show/record';
import { digits, moment } from '../show/units';
import { go } from './nav';
import { Failed, Loading, Notice, useLoaded } from './parts';

const TABLES = '/api/v1/published';

/** The choice of a table, on the page of a result; the tables are asked for when it is opened. */
export function Beside({ id }: { id: string }): JSX.Element {
  const [open, opened] = useState(false);
  return (
    <details class="beside" onToggle={(event) => opened(event.currentTarget.open)}>
      <summary>Beside a published table</summary>
      {open && <Choice id={id} />}
    </details>
  );
}

function Choice({ id }: { id: string }): JSX.Element {
  const [found, again] = useLoaded('published', () => ask<{ tables: PublishedAbout[] }>(TABLES));
  if (found.is === 'loading') return <Loading />;
  if (found.is === 'failed') return <Failed error={found.error} again={again} />;
  return <Tables id={id} tables={found.value.tables} current={null} />;
}

function Tables(of: { id: string; tables: PublishedAbout[]; current: string | null }): JSX.Element {
  const { id, tables, current } = of;
  const [table, choose] = useState(current ?? tables[0]?.id ?? '');
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    go(`/results?compare=${id}&published=${table}`);
  };
  return (
    <form class="filter" onSubmit={submit}>
      <label>
        Table
        <select class="wide" value={table} onChange={(event) => choose(event.currentTarget.value)}>
          {tables.map((one) => (
            <option key={one.id} value={one.id}>
              {`${one.year}, ${one.study}: ${one.title}`}
            </option>
          ))}
        </select>
      </label>
      <button type="submit">Compare</button>
    </form>
  );
}

export function PublishedView({ id, table }: { id: string; table: string }): JSX.Element {
  const [found, again] = useLoaded(`${id} ${table}`, () =>
    Promise.all([
      ask<StoredRecord>(`/api/v1/results/${id}`),
      ask<PublishedTable>(`${TABLES}/${table}`),
      ask<{ tables: PublishedAbout[] }>(TABLES),
    ]),
  );
  const heading = 'Beside a published table';
  if (found.is === 'loading') return <Loading />;
  if (found.is === 'failed') return <Failed heading={heading} error={found.error} again={again} />;
  const [record, published, { tables }] = found.value;
  const { about, figures } = published;
  const values = mine(record.summary ?? [], figures);
  return (
    <>
      <h1>{heading}</h1>
      <p class="soft">
        <a href={`/results/${record.id}`}>
          {record.plan.kind} {record.plan.host ?? ''}, {moment(record.started_at)}
        </a>{' '}
        beside {about.title} ({about.year}).
      </p>
      <Tables id={id} tables={tables} current={about.id} key={about.id} />
      {values.length === 0 ? (
        <Notice title="Nothing in common">
          <p>
            A result of {record.plan.kind} has neither a rate nor a round trip that this table has.
          </p>
        </Notice>
      ) : (
        values.map((one) => <Figures key={`${one.metric} ${one.scope}`} mine={one} figures={figures} />)
      )}
      <p class="soft">
        Source: {about.source}. Other hosts, links and years: it says how far things have come, not
        what is wrong.
      </p>
    </>
  );
}

function Figures({ mine: one, figures }: { mine: Mine; figures: PublishedFigure[] }): JSX.Element {
  const own = inUnit(one.metric, one.value);
  const title = `${metricName(one.metric)}${one.scope === '' ? '' : `, ${one.scope}`}: ${own}`;
  return (
    <section>
      <h2>{title}</h2>
      <div class="scroll figures-table" tabIndex={0} role="region" aria-label={title}>
        <table>
          <thead>
            <tr>
              <th scope="col" class="words">
                Published
              </th>
              <th scope="col">As printed</th>
              <th scope="col">This result by it</th>
            </tr>
          </thead>
          <tbody>
            {figures
              .filter(({ metric }) => metric === one.metric)
              .map((figure) => (
                <tr key={figure.number}>
                  <th scope="row">{figure.name}</th>
                  <td>{figure.printed}</td>
                  <td>{factor(one.value, figure)}</td>
                </tr>
              ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function factor(value: number, figure: PublishedFigure): string {
  const found = times(value, figure);
  if (found === null) return '–';
  const [least, most] = found.map(digits) as [string, string];
  return least === most ? `× ${least}` : `× ${least} to ${most}`;
}
