//! A mesh as OpenMetrics: each pair's newest figure and its age, agents, runs by how they ended,
//! incidents that are open. The number of series is bounded; what is left out is counted.

use linerate_core::mesh::{Cell, IncidentKind, Matrix, Row as AgentRow};
use linerate_core::record::Failure;
use linerate_mesh::Hub;
use linerate_store::OutcomeCount;

use super::open_metrics::{OpenMetrics, Row, labels};

/// Pairs of tasks that have series of their own: a full mesh of fifty agents and two tasks.
const PAIRS_MAX: usize = 5000;
/// Agents that have series of their own.
const AGENTS_MAX: usize = 1000;

/// State of a mesh as its hub knows it: matrix, counts of runs, alerts that wait.
#[derive(Debug, Default)]
pub(super) struct MeshState {
    pub(super) matrix: Matrix,
    /// Runs by agent and by how they ended, since the store counts them.
    pub(super) runs: Vec<OutcomeCount>,
    /// Alerts that an output has not got.
    pub(super) waiting: usize,
}

impl MeshState {
    /// # Errors
    /// When the store cannot be read.
    pub(super) fn from_hub(hub: &Hub) -> Result<Self, Failure> {
        let (matrix, (runs, waiting)) = (hub.matrix()?, hub.counts()?);
        Ok(Self { matrix, runs, waiting })
    }
}

/// A figure of a pair.
type OfPair = fn(&Matrix, &Cell) -> Option<f64>;
/// A figure of an agent.
type OfAgent = fn(&Matrix, &AgentRow) -> Option<f64>;

const PAIRS: [(&str, &str, OfPair); 3] = [
    (
        "linerate_mesh_pair_last_result_timestamp_seconds",
        "Begin of the last run with a result.",
        |matrix, cell| cell.age_s.map(|age| (matrix.now_s - age) as f64),
    ),
    ("linerate_mesh_pair_no_data", "1: three periods or more without a result.", |_, cell| {
        Some(f64::from(u8::from(cell.no_data)))
    }),
    ("linerate_mesh_pair_changed", "1: an open incident says that it changed.", |_, cell| {
        Some(f64::from(u8::from(cell.changed)))
    }),
];

const AGENTS: [(&str, &str, OfAgent); 4] = [
    (
        "linerate_mesh_agent_last_heard_timestamp_seconds",
        "When the agent was heard last.",
        |matrix, agent| agent.heard_s_ago.map(|ago| (matrix.now_s - ago) as f64),
    ),
    (
        "linerate_mesh_agent_waiting_results",
        "Results that the agent keeps until the hub has them.",
        |_, agent| agent.waiting.map(|waiting| waiting as f64),
    ),
    ("linerate_mesh_agent_plan_revision", "The plan that the agent has.", |_, agent| {
        agent.revision.map(|revision| revision as f64)
    }),
    (
        "linerate_mesh_agent_clock_offset_seconds",
        "How far the agent's clock is ahead of the hub's.",
        |_, agent| agent.ahead_s,
    ),
];

/// Newest values by their unit: name, help, what a metric's key ends with, and the factor to the
/// base unit.
const VALUES: [(&str, &str, &str, f64); 3] = [
    ("linerate_mesh_rate_bits_per_second", "Newest rate of a pair.", "_bps", 1.0),
    ("linerate_mesh_delay_seconds", "Newest delay of a pair.", "_ns", 1e-9),
    ("linerate_mesh_loss_ratio", "Newest share of loss of a pair.", "", 1.0),
];

/// Writes the figures of a mesh into a document of metrics.
pub(super) fn write(text: &mut OpenMetrics, state: &MeshState) {
    let matrix = &state.matrix;
    let mesh = matrix.mesh.as_str();
    let of_mesh = || labels(&[("mesh", mesh)]);
    let one = |value: f64| [(of_mesh(), value)];
    let revision = matrix.revision as f64;
    text.gauge("linerate_mesh_plan_revision", "The plan that the hub has.", &one(revision));
    write_pairs(text, matrix);
    for (name, help, pick) in AGENTS {
        let row = |agent: &AgentRow| {
            Some((labels(&[("mesh", mesh), ("agent", &agent.name)]), pick(matrix, agent)?))
        };
        let rows: Vec<Row> = matrix.agents.iter().take(AGENTS_MAX).filter_map(row).collect();
        text.gauge(name, help, &rows);
    }
    let row = |count: &OutcomeCount| {
        let OutcomeCount { agent, outcome, runs } = count;
        (labels(&[("mesh", mesh), ("agent", agent), ("result", outcome.name())]), *runs as f64)
    };
    let rows: Vec<Row> = state.runs.iter().map(row).collect();
    text.counter("linerate_mesh_runs", "Runs by how they ended; a gap by its reason.", &rows);
    let open = |kind: IncidentKind, word: &str| {
        let mine = matrix
            .incidents
            .iter()
            .filter(|incident| incident.kind == kind && incident.until_s.is_none());
        (labels(&[("mesh", mesh), ("kind", word)]), mine.count() as f64)
    };
    let rows = [open(IncidentKind::Change, "change"), open(IncidentKind::NoData, "no_data")];
    text.gauge("linerate_mesh_incidents_open", "Incidents that are not over.", &rows);
    let help = "Alerts of two days that an output has not got.";
    text.gauge("linerate_mesh_alerts_waiting", help, &one(state.waiting as f64));
}

fn write_pairs(text: &mut OpenMetrics, matrix: &Matrix) {
    let cells = &matrix.cells[..matrix.cells.len().min(PAIRS_MAX)];
    let name = |at: usize| matrix.agents[at].name.as_str();
    let of = |cell: &Cell, more: Option<&str>| {
        let (task, from, to) = (matrix.tasks[cell.task].as_str(), name(cell.from), name(cell.to));
        let mut all =
            vec![("mesh", matrix.mesh.as_str()), ("task", task), ("from", from), ("to", to)];
        all.extend(more.map(|metric| ("metric", metric)));
        labels(&all)
    };
    for (at, (family, help, ends, factor)) in VALUES.into_iter().enumerate() {
        let row = |cell: &Cell| {
            let (metric, value) = (cell.metric.as_deref()?, cell.value?);
            let unit = metric.split('/').next().unwrap_or(metric);
            let earlier = VALUES[..at].iter().any(|(_, _, ends, _)| unit.ends_with(ends));
            let mine = unit.ends_with(ends) && !earlier;
            mine.then(|| (of(cell, Some(metric)), value * factor))
        };
        text.gauge(family, help, &cells.iter().filter_map(row).collect::<Vec<_>>());
    }
    for (family, help, pick) in PAIRS {
        let row = |cell: &Cell| Some((of(cell, None), pick(matrix, cell)?));
        text.gauge(family, help, &cells.iter().filter_map(row).collect::<Vec<_>>());
    }
    let left = [(labels(&[("mesh", &matrix.mesh)]), (matrix.cells.len() - cells.len()) as f64)];
    text.gauge("linerate_mesh_pairs_left_out", "Pairs beyond the bound of series.", &left);
}

#[cfg(test)]
mod tests;
