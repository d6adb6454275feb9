//! What is written is OpenMetrics, and what is asked of it in `docs/monitoring` is there.

use std::collections::BTreeSet;
use std::path::Path;

use linerate_core::mesh::{Incident, RunOutcome};

use super::super::open_metrics::read;
use super::*;

fn cell(from: usize, to: usize, metric: &str, value: f64) -> Cell {
    let metric = Some(metric.to_owned());
    Cell { from, to, metric, value: Some(value), age_s: Some(60), ..Cell::default() }
}

fn state() -> MeshState {
    let agent = |name: &str, heard: Option<i64>| AgentRow {
        name: name.to_owned(),
        heard_s_ago: heard,
        revision: heard.map(|_| 2),
        waiting: heard.map(|_| 7),
        ahead_s: heard.map(|_| -0.25),
    };
    let incident = Incident {
        id: "i".to_owned(),
        kind: IncidentKind::Change,
        opened_s: 0,
        since_s: 0.0,
        until_s: None,
        shared: None,
        hit: 1,
        of: 1,
        members: Vec::new(),
        confirmed: false,
        survey: None,
        sentence: String::new(),
    };
    let over = Incident { until_s: Some(1), ..incident.clone() };
    let matrix = Matrix {
        mesh: "m".to_owned(),
        revision: 3,
        now_s: 1_795_478_400,
        agents: vec![agent("a", Some(5)), agent("b", None)],
        tasks: vec!["rate".to_owned(), "delay".to_owned(), "loss".to_owned()],
        cells: vec![
            Cell { changed: true, ..cell(0, 1, "goodput_bps/up", 9e8) },
            Cell { task: 1, ..cell(0, 1, "rtt_kernel_ns", 2.5e6) },
            Cell { task: 2, ..cell(0, 1, "loss_ratio", 0.0) },
            Cell { from: 1, to: 0, no_data: true, ..Cell::default() },
        ],
        incidents: vec![incident, over],
        ..Matrix::default()
    };
    let runs = [(RunOutcome::Ok, 5), (RunOutcome::Late, 2)];
    let runs =
        runs.map(|(outcome, runs)| OutcomeCount { agent: "a".to_owned(), outcome, runs }).to_vec();
    MeshState { matrix, runs, waiting: 4 }
}

fn text_of(state: &MeshState) -> String {
    let mut text = OpenMetrics::default();
    write(&mut text, state);
    text.render_text()
}

#[test]
fn each_pair_has_its_figure_in_base_units_and_what_is_absent_is_not_0() {
    let text = text_of(&state());
    let families = read(&text);
    let line = |line: &str| assert!(text.contains(&format!("{line}\n")), "{line}: {text}");
    let pair = "mesh=\"m\",task=\"rate\",from=\"a\",to=\"b\"";
    line(&format!(
        "linerate_mesh_rate_bits_per_second{{{pair},metric=\"goodput_bps/up\"}} 900000000"
    ));
    let delay = "mesh=\"m\",task=\"delay\",from=\"a\",to=\"b\",metric=\"rtt_kernel_ns\"";
    line(&format!("linerate_mesh_delay_seconds{{{delay}}} 0.0025"));
    let loss = "mesh=\"m\",task=\"loss\",from=\"a\",to=\"b\",metric=\"loss_ratio\"";
    line(&format!("linerate_mesh_loss_ratio{{{loss}}} 0"));
    line(&format!("linerate_mesh_pair_last_result_timestamp_seconds{{{pair}}} 1795478340"));
    line(&format!("linerate_mesh_pair_changed{{{pair}}} 1"));
    line("linerate_mesh_pair_no_data{mesh=\"m\",task=\"rate\",from=\"b\",to=\"a\"} 1");
    line("linerate_mesh_agent_last_heard_timestamp_seconds{mesh=\"m\",agent=\"a\"} 1795478395");
    line("linerate_mesh_agent_clock_offset_seconds{mesh=\"m\",agent=\"a\"} -0.25");
    line("linerate_mesh_runs_total{mesh=\"m\",agent=\"a\",result=\"late\"} 2");
    line("linerate_mesh_incidents_open{mesh=\"m\",kind=\"change\"} 1");
    line("linerate_mesh_incidents_open{mesh=\"m\",kind=\"no_data\"} 0");
    line("linerate_mesh_alerts_waiting{mesh=\"m\"} 4");
    assert!(!text.contains("agent=\"b\""), "it was never heard: {text}");
    assert_eq!(families["linerate_mesh_pair_last_result_timestamp_seconds"].len(), 3);
    assert!(families.values().all(|samples| !samples.is_empty()), "{families:?}");
}

#[test]
fn series_are_bounded_and_what_is_left_out_is_counted() {
    let mut state = state();
    state.matrix.cells = vec![cell(0, 1, "goodput_bps/up", 1.0); PAIRS_MAX + 3];
    // The reader would find series that are there twice: give each a task of its own.
    state.matrix.tasks = (0..PAIRS_MAX + 3).map(|at| format!("t{at}")).collect();
    state.matrix.cells.iter_mut().enumerate().for_each(|(at, cell)| cell.task = at);
    let text = text_of(&state);
    assert_eq!(read(&text)["linerate_mesh_rate_bits_per_second"].len(), PAIRS_MAX);
    assert!(text.contains("linerate_mesh_pairs_left_out{mesh=\"m\"} 3\n"));
}

/// Names that a query asks for.
fn names(query: &str) -> impl Iterator<Item = &str> {
    let part = |c: char| !(c.is_ascii_alphanumeric() || c == '_');
    query.split(part).filter(|word| word.starts_with("linerate_"))
}

#[test]
fn dashboard_and_rules_ask_for_what_is_there() {
    let mut there: BTreeSet<String> =
        read(&text_of(&state())).values().flatten().map(|(sample, _)| sample.clone()).collect();
    // Of schedules, by the metrics beside these.
    there.insert("linerate_schedule_no_data".to_owned());
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/monitoring");
    let file = |name: &str| std::fs::read_to_string(folder.join(name)).expect("a file");
    let dashboard: serde_json::Value =
        linerate_core::tree::from_json(&file("grafana-mesh.json")).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let targets = panels.iter().flat_map(|it| it["targets"].as_array().expect("targets"));
    let of_panels = targets.map(|it| it["expr"].as_str().expect("a query").to_owned());
    let rules = file("alerts.yml");
    let of_rules = rules.lines().filter_map(|it| it.trim_start().strip_prefix("expr: "));
    let of_variables = [dashboard["templating"]["list"][1]["definition"].to_string()];
    let mut asked = BTreeSet::new();
    let queries: Vec<String> =
        of_panels.chain(of_rules.map(str::to_owned)).chain(of_variables).collect();
    assert!(queries.len() >= 22, "{queries:?}");
    for query in &queries {
        for name in names(query) {
            assert!(there.contains(name), "{name} is asked for and not there: {query}");
            asked.insert(name.to_owned());
        }
    }
    // And nothing is there that nobody looks at, but for these.
    let unasked: Vec<&String> = there.difference(&asked).collect();
    let known =
        ["linerate_mesh_loss_ratio", "linerate_mesh_pair_changed", "linerate_mesh_pairs_left_out"];
    assert_eq!(unasked, known);
}
