// The list of stored results: filter, page on, pick two to compare. The filter is in the address.
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { ask, asApiError } from '../api/client';
import type { Judgement, ResultList, Summary } from '../api/types';
import { delay, moment, percent, rate, word } from '../show/units';
import { go } from './nav';
import { Failed, Loading, Notice, useLoaded } from './parts';
import { WindowDiagram } from './window';

const FIELDS = ['kind', 'peer', 'name', 'since', 'until'] as const;
type Field = (typeof FIELDS)[number];
const KINDS = ['tcp', 'udp', 'ping', 'test', 'trace', 'bench', 'path', 'conform', 'simulate'];
const PAGE = 50;

/** What the address asks for, as the API takes it. Dates without a time are whole days. */
export function apiQuery(query: URLSearchParams): URLSearchParams {
  const found = new URLSearchParams({ limit: String(PAGE) });
  for (const field of FIELDS) {
    const value = query.get(field)?.trim() ?? '';
    if (value === '') continue;
    if (field === 'since' || field === 'until') {
      const at = new Date(`${value}T${field === 'since' ? '00:00:00' : '23:59:59.999'}`);
      if (!Number.isNaN(at.getTime())) found.set(field, at.toISOString());
    } else found.set(field, value);
  }
  return found;
}

export function ResultsView({ query }: { query: URLSearchParams }): JSX.Element {
  const wanted = apiQuery(query).toString();
  const [state, again] = useLoaded(wanted, () => ask<ResultList>(`/api/v1/results?${wanted}`));
  return (
    <>
      <h1>Results</h1>
      <Filter query={query} key={query.toString()} />
      {state.is === 'loading' && <Loading />}
      {state.is === 'failed' && <Failed error={state.error} again={again} />}
      {state.is === 'there' && <List first={state.value} wanted={wanted} key={wanted} />}
    </>
  );
}

function Filter({ query }: { query: URLSearchParams }): JSX.Element {
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const wanted = new URLSearchParams();
    for (const [field, value] of new FormData(event.target as HTMLFormElement)) {
      if (typeof value === 'string' && value.trim() !== '') wanted.set(field, value.trim());
    }
    go(wanted.size === 0 ? '/results' : `/results?${wanted}`);
  };
  const value = (field: Field): string => query.get(field) ?? '';
  return (
    <form class="filter" role="search" onSubmit={submit}>
      <label>
        Kind
        <select name="kind" defaultValue={value('kind')}>
          <option value="">any</option>
          {KINDS.map((kind) => (
            <option key={kind} value={kind} selected={kind === value('kind')}>
              {kind}
            </option>
          ))}
        </select>
      </label>
      <label>
        Peer
        <input name="peer" defaultValue={value('peer')} placeholder="address or name" />
      </label>
      <label>
        Text
        <input name="name" defaultValue={value('name')} placeholder="in the result’s name" />
      </label>
      <label>
        From
        <input name="since" type="date" defaultValue={value('since')} />
      </label>
      <label>
        Until
        <input name="until" type="date" defaultValue={value('until')} />
      </label>
      <button type="submit">Filter</button>
    </form>
  );
}

function List({ first, wanted }: { first: ResultList; wanted: string }): JSX.Element {
  const [list, setList] = useState(first);
  const [picked, pick] = useState<string[]>([]);
  const [say, setSay] = useState('');
  const known = useJudgements(wanted, list.results.length);
  useEffect(() => setList(first), [first]);
  const more = async (): Promise<void> => {
    try {
      const next = await ask<ResultList>(`/api/v1/results?${wanted}&before=${list.next}`);
      setList({ results: [...list.results, ...next.results], next: next.next });
      setSay('');
    } catch (error) {
      setSay(asApiError(error).refusal.say);
    }
  };
  const toggle = (id: string): void =>
    pick(picked.includes(id) ? picked.filter((one) => one !== id) : [...picked, id].slice(-2));
  if (list.results.length === 0) {
    return (
      <Notice title="No result">
        <p>
          Nothing that is stored fits. <a href="/results">Show all</a>, or{' '}
          <a href="/">test this path</a>.
        </p>
      </Notice>
    );
  }
  return (
    <>
      <div class="scroll" tabIndex={0} role="region" aria-label="List of results">
        <Rows results={list.results} known={known} picked={picked} toggle={toggle} />
      </div>
      <p class="below">
        {list.next !== null && (
          <button type="button" onClick={more}>
            Older ones
          </button>
        )}
        <button
          type="button"
          disabled={picked.length !== 2}
          onClick={() => go(`/results?compare=${picked.join(',')}`)}
        >
          Compare two
        </button>
        <span class="soft" role="status">
          {say || (picked.length === 2 ? '' : `${picked.length} of 2 chosen`)}
        </span>
      </p>
      <WindowDiagram results={list.results} />
    </>
  );
}

type Known = ReadonlyMap<string, { judgement: Judgement; run: string | undefined }>;

/** What the records of a list say, page by page: it is read from each, so it comes after the list. */
function useJudgements(wanted: string, count: number): Known {
  const [known, setKnown] = useState<Known>(new Map());
  useEffect(() => {
    let current = true;
    const read = async (): Promise<void> => {
      let before = '';
      const found = new Map(known);
      for (let seen = 0; seen < count && current; seen += PAGE) {
        const page = await ask<ResultList>(`/api/v1/results?${wanted}&judged=true${before}`);
        for (const { id, judgement, run } of page.results) {
          if (judgement !== undefined) found.set(id, { judgement, run });
        }
        if (current) setKnown(new Map(found));
        if (page.next === null) return;
        before = `&before=${page.next}`;
      }
    };
    // Without them the list has its figures.
    read().catch(() => undefined);
    return () => {
      current = false;
    };
  }, [wanted, count]);
  return known;
}

interface RowsProps {
  results: Summary[];
  known: Known;
  picked: string[];
  toggle: (id: string) => void;
}

function Rows({ results, known, picked, toggle }: RowsProps): JSX.Element {
  return (
    <table class="list">
      <thead>
        <tr>
          <th scope="col">
            <span class="away">Compare</span>
          </th>
          <th scope="col" class="words">
            Time
          </th>
          <th scope="col">Goodput</th>
          <th scope="col" class="words">
            Kind
          </th>
          <th scope="col" class="words">
            Limit
          </th>
          <th scope="col" class="words">
            Trust
          </th>
          <th scope="col" class="words">
            Peer
          </th>
          <th scope="col">Round trip</th>
          <th scope="col">Loss</th>
          <th scope="col" class="words">
            Name
          </th>
        </tr>
      </thead>
      <tbody>
        {results.map((row) => (
          <tr key={row.id} class={row.status === 'ok' ? '' : 'not-ok'}>
            <td>
              <input
                type="checkbox"
                checked={picked.includes(row.id)}
                onChange={() => toggle(row.id)}
                aria-label={`Compare the ${row.kind} result of ${moment(row.started_at)}`}
              />
            </td>
            <td class="words">
              <a href={`/results/${row.id}`}>
                <time dateTime={row.started_at}>{moment(row.started_at)}</time>
              </a>
            </td>
            <td>{word(rate(row.rate_bps))}</td>
            <td class="words">{row.kind}</td>
            <td class="words judged">{known.get(row.id)?.judgement.limit ?? '–'}</td>
            <td class="words judged">{known.get(row.id)?.judgement.trust ?? '–'}</td>
            <td class="words">{row.peer ?? '–'}</td>
            <td>{word(delay(row.rtt_us === null ? null : row.rtt_us / 1000))}</td>
            <td>{word(percent(row.loss))}</td>
            <td class="words">
              {row.name ?? ''}
              {row.status !== 'ok' && <em>{` ${row.status}`}</em>}
              <WholeTest run={known.get(row.id)?.run} row={row} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** The test of which a result is a part. */
function WholeTest({ run, row }: { run: string | undefined; row: Summary }): JSX.Element | null {
  if (run === undefined) return null;
  return (
    <a href={`/results?run=${run}`} aria-label={`Whole test of ${moment(row.started_at)}`}>
      whole test
    </a>
  );
}
