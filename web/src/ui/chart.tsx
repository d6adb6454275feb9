// A chart over time by uPlot, in the page's colours, redrawn when these change. It is drawn on a
// canvas, so the words beside it say the same to those who do not see it.
import { useEffect, useRef } from 'preact/hooks';
import type { JSX } from 'preact';
import uPlot from 'uplot';
import { theme } from './theme';

export interface Line {
  label: string;
  /** A colour variable of the sheet, such as `--down`. */
  ink: string;
  width?: number;
  dots?: boolean;
  fill?: boolean;
  thin?: boolean;
}

export interface Band {
  from: number;
  to: number;
  label: string;
}

interface Props {
  label: string;
  /** What the axis shows, as figure and unit. */
  show: (value: number) => string;
  lines: Line[];
  data: uPlot.AlignedData;
  range?: [number, number];
  bands?: Band[];
  height?: number;
  /** Charts of one name share the cursor. */
  sync?: string;
}

/** A colour of the sheet as the canvas takes it. */
function ink(name: string): string {
  const probe = document.createElement('span');
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

const faint = (color: string, share: number): string =>
  color.replace(/^rgba?\(([^)]+)\)$/, (_, parts: string) => {
    const [r, g, b] = parts.split(/[ ,/]+/);
    return `rgba(${r}, ${g}, ${b}, ${share})`;
  });

/** Names of the phases along the top, and a line where each begins. */
function bandMarks(bands: () => Band[]): uPlot.Plugin {
  const draw = (plot: uPlot): void => {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.strokeStyle = ink('--rule');
    ctx.fillStyle = ink('--soft');
    ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
    ctx.textBaseline = 'top';
    ctx.textAlign = 'left';
    for (const { from, to, label } of bands()) {
      const left = plot.valToPos(from, 'x', true);
      const right = plot.valToPos(to, 'x', true);
      ctx.beginPath();
      ctx.moveTo(left, bbox.top);
      ctx.lineTo(left, bbox.top + bbox.height);
      ctx.stroke();
      const gap = 5 * devicePixelRatio;
      if (ctx.measureText(label).width + gap < right - left) {
        ctx.fillText(label, left + gap, bbox.top + gap / 2);
      }
    }
    ctx.restore();
  };
  return { hooks: { drawAxes: draw } };
}

function axes(show: Props['show']): uPlot.Axis[] {
  const look = {
    stroke: ink('--soft'),
    font: '11px system-ui, sans-serif',
    grid: { stroke: ink('--grid'), width: 1 },
    ticks: { show: false },
  };
  return [
    { ...look, size: 26, values: (_, splits) => splits.map((value) => `${value} s`) },
    { ...look, size: 76, values: (_, splits) => splits.map(show) },
  ];
}

function series(line: Line): uPlot.Series {
  const color = ink(line.ink);
  const thin = line.thin === true;
  const found: uPlot.Series = {
    label: line.label,
    stroke: thin ? faint(color, 0.45) : color,
    width: line.dots ? 0 : (line.width ?? (thin ? 1 : 2)),
    points: line.dots ? { show: true, size: 3, width: 0, fill: color } : { show: false },
    spanGaps: false,
  };
  if (line.fill) found.fill = faint(color, 0.08);
  if (line.dots) found.paths = () => null;
  return found;
}

function options(props: Props, width: number, bands: () => Band[], range: () => Range): uPlot.Options {
  const cursor: uPlot.Cursor = { points: { show: false }, drag: { x: false, y: false } };
  if (props.sync) cursor.sync = { key: props.sync };
  return {
    width,
    height: props.height ?? 200,
    legend: { show: false },
    cursor,
    padding: [8, 8, 0, 0],
    plugins: [bandMarks(bands)],
    scales: {
      x: { time: false, range: (_, min, max) => range() ?? [min ?? 0, max ?? 1] },
      y: { range: (_, __, max) => [0, Number.isFinite(max) && max > 0 ? max * 1.12 : 1] },
    },
    axes: axes(props.show),
    series: [{}, ...props.lines.map(series)],
  };
}

type Range = [number, number] | undefined;

export function Chart(props: Props): JSX.Element {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const latest = useRef(props);
  latest.current = props;
  const shape = JSON.stringify(props.lines);

  useEffect(() => {
    const box = place.current;
    if (box === null) return;
    const bands = (): Band[] => latest.current.bands ?? [];
    const range = (): Range => latest.current.range;
    const made = new uPlot(
      options(latest.current, box.clientWidth, bands, range),
      latest.current.data,
      box,
    );
    plot.current = made;
    const { height } = made;
    const watch = new ResizeObserver(() => {
      if (box.clientWidth > 0) made.setSize({ width: box.clientWidth, height });
    });
    watch.observe(box);
    return () => {
      watch.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [shape, theme.value]);

  useEffect(() => plot.current?.setData(props.data), [props.data]);

  return <div class="chart" ref={place} role="img" aria-label={props.label} />;
}
