// A mesh's matrix: the two directions of each pair, and where a click on one leads.

import { bytes, moment, word } from './units';

export interface MeshAgent {
  name: string;
  heard_s_ago: number | null;
  revision: number | null;
  waiting: number | null;
  ahead_s: number | null;
}

export interface MeshCell {
  task: number;
  from: number;
  to: number;
  metric: string | null;
  value: number | null;
  age_s: number | null;
  record: string | null;
  reason: string | null;
  no_data: boolean;
  changed: boolean;
}

export interface MeshIncident {
  id: string;
  opened_s: number;
  until_s: number | null;
  sentence: string;
}

/** A run beside the calendar. */
export interface MeshBooking {
  id: string;
  /** The agent that runs it; `task` is `NAME/PEER`. */
  agent: string;
  task: string;
  start_s: number;
  takes_s: number;
  why: string;
  /** How it ended; null where that is not known. */
  state: string | null;
  reason: string | null;
  record: string | null;
}

/** A day of a task. */
export interface MeshPlanned {
  alone: boolean;
  runs_a_day: number;
  period_s: number;
  takes_s: number;
  bytes_a_day: number | null;
  /** Pairs of which no rate is known, and which `bytes_a_day` leaves out. */
  unknown: number;
}

/** A slot of the calendar. */
export interface MeshNextRun {
  task: number;
  from: number;
  to: number;
  start_s: number;
  takes_s: number;
}

export interface Mesh {
  mesh: string;
  revision: number;
  now_s: number;
  agents: MeshAgent[];
  tasks: string[];
  cells: MeshCell[];
  alerts: string[];
  incidents: MeshIncident[];
  planned: MeshPlanned[];
  next: MeshNextRun[];
  bookings: MeshBooking[];
}

/** What a figure is of each run, by the end of its key: as `followed` of the core takes it. */
export const statistic = (metric: string): string =>
  metric.endsWith('_ns') ? 'median of a run' : metric.endsWith('_ratio') ? 'share of a run' : 'mean of a run';

/** By how much a figure is off the median before it is marked. */
export const OFF = 0.25;
/** Shares of loss count from here: half of nothing is nothing. */
const LOSS_FLOOR = 0.001;

export type Mark = 'better' | 'worse' | 'near';

/** The median of the figures of one metric. */
export function median(values: readonly number[]): number | null {
  const sorted = [...values].sort((a, b) => a - b);
  const half = Math.floor(sorted.length / 2);
  const [low, high] = [sorted[(sorted.length - 1) >> 1], sorted[half]];
  return low === undefined || high === undefined ? null : (low + high) / 2;
}

/** How a figure stands against the median of its task: of rates more is better, of the rest less. */
export function mark(metric: string, value: number, middle: number | null): Mark {
  if (middle === null) return 'near';
  const floor = metric.endsWith('_ratio') ? LOSS_FLOOR : 0;
  const ratio = (value + floor) / (middle + floor);
  const more = metric.endsWith('_bps') ? ratio : 1 / ratio;
  if (more >= 1 + OFF) return 'better';
  return more <= 1 / (1 + OFF) ? 'worse' : 'near';
}

/** A second since 1970, in the reader's zone, the year first. */
export const second = (s: number): string => moment(new Date(s * 1000).toISOString());

/** The cells of one task by source and destination. */
export function byPair(mesh: Mesh, task: number): Map<string, MeshCell> {
  const mine = mesh.cells.filter((cell) => cell.task === task);
  return new Map(mine.map((cell) => [`${cell.from} ${cell.to}`, cell]));
}

/** The series of what one agent measured of another; none before the first result. */
export function resultsOf(mesh: Mesh, cell: MeshCell): string | null {
  const [from, to] = [mesh.agents[cell.from], mesh.agents[cell.to]];
  const task = mesh.tasks[cell.task];
  if (cell.metric === null || !from || !to || task === undefined) return null;
  const plan = `${mesh.mesh}/${from.name}`;
  return `/series?${new URLSearchParams({ plan, task: `${task}/${to.name}`, metric: cell.metric })}`;
}

/** How an incident stands: since when it is open, or how long it was. */
export function standing(mesh: Mesh, incident: MeshIncident): string {
  if (incident.until_s === null) return `open for ${age(mesh.now_s - incident.opened_s)}`;
  return `over after ${age(incident.until_s - incident.opened_s)}`;
}

const DAY_S = 86_400;

/** Bookings that are to come, the next first, and those that began within a day, the newest first. */
export function booked(mesh: Mesh): { next: MeshBooking[]; past: MeshBooking[] } {
  const of = (from: number, until: number, sign: number): MeshBooking[] =>
    mesh.bookings
      .filter(({ start_s }) => start_s > from && start_s <= until)
      .sort((a, b) => sign * (a.start_s - b.start_s));
  return { next: of(mesh.now_s, Infinity, 1), past: of(mesh.now_s - DAY_S, mesh.now_s, -1) };
}

/** About what a task moves a day, and of how many pairs nothing is known. */
export function moved({ bytes_a_day, unknown }: MeshPlanned): string {
  if (bytes_a_day === null) return 'not known yet';
  const amount = word(bytes(bytes_a_day));
  return unknown === 0 ? amount : `${amount} and ${unknown} ${unknown === 1 ? 'pair' : 'pairs'} without a rate`;
}

/** What a slot runs, from where to where. */
export function slot(mesh: Mesh, { task, from, to }: MeshNextRun): string {
  return `${mesh.tasks[task]}, ${mesh.agents[from]?.name} to ${mesh.agents[to]?.name}`;
}

/** What a booking runs, from where to where. */
export function bookedRun({ agent, task }: MeshBooking): string {
  const [name, to] = task.split('/');
  return `${name}, ${agent} to ${to}`;
}

const WHY: Record<string, string> = {
  adhoc: 'asked for',
  confirm: 'to confirm a change',
  survey: 'to explain a change',
};

export const why = (booking: MeshBooking): string => WHY[booking.why] ?? booking.why;

/** How a booking stands: when it begins, or how it ended. */
export function ended(mesh: Mesh, { start_s, takes_s, state, reason }: MeshBooking): string {
  if (state !== null) return reason === null ? state : `${state}: ${reason}`;
  if (start_s > mesh.now_s) return `in ${age(start_s - mesh.now_s)}`;
  return start_s + takes_s > mesh.now_s ? 'should be running' : 'nothing was heard of it yet';
}

/** A span as people say it. */
export function age(seconds: number): string {
  if (seconds < 120) return `${Math.max(0, seconds)} s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} days`;
}
