// Series of one metric in one chart, each with its name.
import type { JSX } from 'preact';
import { useMemo } from 'preact/hooks';
import { inUnit, metricName, scope, together, type Series } from '../show/record';
import { Chart } from './chart';

const INKS = ['--down', '--up', '--third', '--fourth', '--fifth', '--sixth'];

export function SeriesChart({ metric, series }: { metric: string; series: Series[] }): JSX.Element {
  const mine = useMemo(() => series.filter((one) => one.metric === metric), [series, metric]);
  const { data, lines } = useMemo(() => together(mine), [mine]);
  const labels = lines.map((one) => {
    const side = one.side === null || one.side === undefined ? '' : `, ${one.side}`;
    return `${scope({ direction: one.direction, flow: one.flow })}${side}`.replace(/^, /, '');
  });
  const inked = labels.map((label, index) => ({
    label,
    ink: INKS[index % INKS.length] as string,
  }));
  return (
    <div class="series">
      <h3 class="caption">{metricName(metric)}</h3>
      {labels.length > 1 && labels.length <= 8 && (
        <ul class="legend">
          {inked.map(({ label, ink }) => (
            <li key={label}>
              <i class={`key ${ink.slice(2)}`} />
              {label}
            </li>
          ))}
        </ul>
      )}
      <Chart
        label={`${metricName(metric)} over time; the table has its figures`}
        show={(value) => inUnit(metric, value)}
        lines={inked}
        data={data as never}
        height={160}
        sync="record"
      />
    </div>
  );
}
