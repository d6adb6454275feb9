// Two stored results beside each other, metric by metric.
import type { JSX } from 'preact';
import { ask } from '../api/client';
import { inUnit, pairs, short, type StoredRecord } from '../show/record';
import { digits, moment } from '../show/units';
import { CommandLine, Failed, Loading, Notice, useLoaded } from './parts';

/** By how much the second differs, as a factor: means of single runs, so no judgement. */
export function factor(first: number | null, second: number | null): string {
  if (first === null || second === null || first === 0) return '–';
  return `× ${digits(second / first)}`;
}

export function CompareView({ first, second }: { first: string; second: string }): JSX.Element {
  const [state, again] = useLoaded(`${first},${second}`, () =>
    Promise.all([first, second].map((id) => ask<StoredRecord>(`/api/v1/results/${id}`))),
  );
  if (state.is === 'loading') return <Loading />;
  if (state.is === 'failed') {
    return <Failed heading="Two results" error={state.error} again={again} />;
  }
  const [a, b] = state.value as [StoredRecord, StoredRecord];
  const list = pairs(a.summary ?? [], b.summary ?? []);
  return (
    <>
      <h1>Two results</h1>
      {list.length === 0 ? (
        <Notice title="Nothing in common">
          <p>
            A result of {a.plan.kind} and one of {b.plan.kind} have no metric of the same scope.
          </p>
        </Notice>
      ) : (
        <div class="scroll" tabIndex={0} role="region" aria-label="Both results">
          <table>
            <thead>
              <tr>
                <th scope="col" class="words">
                  Metric
                </th>
                {[a, b].map((record) => (
                  <th scope="col" key={record.id}>
                    <a href={`/results/${record.id}`}>{moment(record.started_at)}</a>
                    <br />
                    <span class="soft">
                      {record.plan.kind} {record.plan.host ?? ''}
                    </span>
                  </th>
                ))}
                <th scope="col">Second by first</th>
              </tr>
            </thead>
            <tbody>
              {list.map((pair) => (
                <tr key={pair.key}>
                  <th scope="row">
                    {pair.name} <span class="soft">{`${pair.stat} ${pair.scope}`}</span>
                  </th>
                  <td>{inUnit(pair.metric, pair.first)}</td>
                  <td>{inUnit(pair.metric, pair.second)}</td>
                  <td>{factor(pair.first, pair.second)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      <p class="soft">
        One run each does not tell a difference from chance. Several in turn do:
      </p>
      <CommandLine line={`linerate compare @${short(first)} @${short(second)}`} />
    </>
  );
}
