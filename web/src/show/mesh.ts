// A mesh's matrix: the two directions of each pair, and where a click on one leads.

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
}

export interface Mesh {
  mesh: string;
  revision: number;
  agents: MeshAgent[];
  tasks: string[];
  cells: MeshCell[];
  alerts: string[];
}

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

/** A span as people say it. */
export function age(seconds: number): string {
  if (seconds < 120) return `${Math.max(0, seconds)} s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} days`;
}
