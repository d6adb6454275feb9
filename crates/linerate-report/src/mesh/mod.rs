//! A mesh as it stands: a matrix a task, a row for who measures and a column for who is measured,
//! and its agents. Also how its calendar came out.

mod words;

pub use words::{booked, change_sentence, dropped_sentence, no_data_sentence, over_sentence};

use linerate_core::mesh::{BookedRun, Cell, Incident, Matrix, TaskRounds};

use crate::document::{Block, Document, ReportSection};
use crate::schedule::{span_in_words, utc_date_time, value_with_unit};
use crate::{Align, ReportTable};

/// Agents of a matrix that a terminal is wide enough for; of more, those in alert are named.
const AGENTS_SHOWN: usize = 16;
/// Bookings that a terminal shows, the newest first.
const BOOKINGS_SHOWN: usize = 20;

/// The state of a mesh.
pub fn document(matrix: &Matrix) -> Document {
    let mut sections = Vec::new();
    for (at, task) in matrix.tasks.iter().enumerate() {
        let of_task: Vec<&Cell> = matrix.cells.iter().filter(|cell| cell.task == at).collect();
        let dark = of_task.iter().filter(|cell| cell.no_data).count();
        let title = format!("{task}: {} pairs, {dark} without data", of_task.len());
        let block = if matrix.agents.len() <= AGENTS_SHOWN {
            Block::Table(pairs_table(matrix, &of_task))
        } else {
            let name = |at: usize| matrix.agents[at].name.as_str();
            let line = |cell: &&&Cell| format!("{} to {}", name(cell.from), name(cell.to));
            let dark = of_task.iter().filter(|cell| cell.no_data);
            Block::Remarks(dark.map(|cell| line(&cell)).take(AGENTS_SHOWN).collect())
        };
        sections.push(ReportSection::after_blank_line(title, [block]));
    }
    sections.push(ReportSection::after_blank_line("Agents", [Block::Table(agents(matrix))]));
    if !matrix.alerts.is_empty() {
        sections.push(ReportSection::after_blank_line(
            "In alert",
            [Block::Remarks(matrix.alerts.clone())],
        ));
    }
    if !matrix.incidents.is_empty() {
        sections
            .push(ReportSection::after_blank_line("Incidents", [Block::Table(incidents(matrix))]));
    }
    if !matrix.bookings.is_empty() {
        sections.push(ReportSection::after_blank_line("Booked", [Block::Table(bookings(matrix))]));
    }
    let alerts = match matrix.alerts.len() {
        0 => "nothing in alert".to_owned(),
        1 => format!("in alert: {}", matrix.alerts[0]),
        count => format!("{count} things in alert"),
    };
    Document {
        title: format!("Mesh {}, plan of revision {}", matrix.mesh, matrix.revision),
        sections,
        sentence: format!("{}: {alerts}.", matrix.mesh),
        ..Document::default()
    }
}

fn pairs_table(matrix: &Matrix, cells: &[&Cell]) -> ReportTable {
    let names = matrix.agents.iter().map(|agent| (format!("to {}", agent.name), Align::Right));
    let head = std::iter::once(("from".to_owned(), Align::Left)).chain(names);
    let mut table = ReportTable::from_columns(head);
    for (from, agent) in matrix.agents.iter().enumerate() {
        let of = |to: usize| cells.iter().find(|cell| cell.from == from && cell.to == to);
        let row = (0..matrix.agents.len())
            .map(|to| of(to).map_or_else(String::new, |cell| cell_text(cell)));
        table.add_measured_row(std::iter::once(agent.name.clone()).chain(row));
    }
    table
}

fn incidents(matrix: &Matrix) -> ReportTable {
    let mut table = ReportTable::from_columns([
        ("found", Align::Left),
        ("state", Align::Left),
        ("what", Align::Left),
    ]);
    for incident in &matrix.incidents {
        let Incident { opened_s, until_s, sentence, .. } = incident;
        let state = match until_s {
            None => "open".to_owned(),
            Some(until) => format!("over after {}", span_in_words(until - opened_s)),
        };
        table.add_measured_row([utc_date_time(*opened_s as f64), state, sentence.clone()]);
    }
    table
}

fn bookings(matrix: &Matrix) -> ReportTable {
    let mut table = ReportTable::from_columns([
        ("begins", Align::Left),
        ("what", Align::Left),
        ("why", Align::Left),
        ("state", Align::Left),
    ]);
    for booked in matrix.bookings.iter().take(BOOKINGS_SHOWN) {
        let BookedRun { booking, agent, why, state, reason, .. } = booked;
        let (name, to) = booking.task.split_once('/').unwrap_or((&booking.task, "?"));
        let end_s = booking.start_s + booking.takes_s;
        let state = match (state, reason) {
            (Some(state), Some(reason)) => format!("{state}: {reason}"),
            (Some(state), None) => state.to_string(),
            (None, _) if matrix.now_s < end_s => "to come".to_owned(),
            (None, _) => {
                format!("nothing heard of it since {}", span_in_words(matrix.now_s - end_s))
            }
        };
        let what = format!("{name} {agent} to {to}");
        table.add_measured_row([
            utc_date_time(booking.start_s as f64),
            what,
            why.to_string(),
            state,
        ]);
    }
    table
}

/// A figure and its age; `!` where there is no data, `~` where it changed.
fn cell_text(cell: &Cell) -> String {
    let figure =
        cell.metric.as_ref().zip(cell.value).map(|(key, value)| value_with_unit(key, value));
    let figure = figure.unwrap_or_else(|| "-".to_owned());
    let age = cell.age_s.map_or_else(String::new, |age| format!(", {}", span_in_words(age)));
    let mark = if cell.no_data { " !" } else { "" };
    let changed = if cell.changed { " ~" } else { "" };
    format!("{figure}{age}{mark}{changed}")
}

fn agents(matrix: &Matrix) -> ReportTable {
    let mut table = ReportTable::from_columns([
        ("agent", Align::Left),
        ("heard", Align::Right),
        ("plan", Align::Right),
        ("waiting", Align::Right),
        ("clock", Align::Right),
    ]);
    let none = || "-".to_owned();
    for agent in &matrix.agents {
        table.add_measured_row([
            agent.name.clone(),
            agent.heard_s_ago.map_or_else(none, |ago| format!("{} ago", span_in_words(ago))),
            agent.revision.map_or_else(none, |revision| revision.to_string()),
            agent.waiting.map_or_else(none, |waiting| waiting.to_string()),
            agent.ahead_s.map_or_else(none, |ahead| format!("{:+.0} ms", ahead * 1e3)),
        ]);
    }
    table
}

/// How the pairs of each task of a plan came out.
pub fn calendar(mesh: &str, rounds: &[TaskRounds]) -> Document {
    let mut table = ReportTable::from_columns([
        ("task", Align::Left),
        ("runs a period", Align::Right),
        ("slots", Align::Right),
        ("least possible", Align::Right),
    ]);
    for task in rounds {
        let background = || ("background".to_owned(), "-".to_owned());
        let (used, least) =
            task.used.map_or_else(background, |used| (used.to_string(), task.least.to_string()));
        table.add_measured_row([task.task.clone(), task.runs.to_string(), used, least]);
    }
    let runs: usize = rounds.iter().map(|task| task.runs).sum();
    Document {
        title: format!("Calendar of mesh {mesh}"),
        sections: vec![ReportSection::without_blank_line("", [Block::Table(table)])],
        sentence: format!("{mesh}: {runs} runs have their slots."),
        ..Document::default()
    }
}

#[cfg(test)]
mod tests {
    use linerate_core::mesh::{Booking, BookingWhy, Row};
    use linerate_core::schedule::RunState;

    use super::*;

    #[test]
    fn a_matrix_has_a_row_for_who_measures_and_marks_what_is_missing() {
        let row = |name: &str| Row {
            name: name.to_owned(),
            heard_s_ago: Some(4),
            revision: Some(3),
            waiting: Some(0),
            ahead_s: Some(-0.012),
        };
        let good = Cell {
            from: 0,
            to: 1,
            metric: Some("goodput_bps/up".to_owned()),
            value: Some(941e6),
            age_s: Some(240),
            ..Cell::default()
        };
        let dark = Cell { from: 1, to: 0, no_data: true, changed: true, ..Cell::default() };
        let incident = Incident {
            id: "i".to_owned(),
            kind: linerate_core::mesh::IncidentKind::NoData,
            opened_s: 1_795_478_400,
            since_s: 1_795_478_000.0,
            until_s: Some(1_795_478_700),
            shared: None,
            hit: 1,
            of: 1,
            members: Vec::new(),
            confirmed: false,
            survey: None,
            sentence: "m: no data from agent b".to_owned(),
        };
        let booked = BookedRun {
            booking: Booking {
                id: "i".to_owned(),
                task: "burst/b".to_owned(),
                start_s: 1_795_478_460,
                takes_s: 14,
            },
            agent: "a".to_owned(),
            why: BookingWhy::Adhoc,
            asked_s: 1_795_478_400,
            state: Some(RunState::Missed),
            reason: Some("the booking was not heard of in time".to_owned()),
            record: None,
        };
        let matrix = Matrix {
            mesh: "m".to_owned(),
            revision: 3,
            now_s: 0,
            agents: vec![row("a"), row("b")],
            tasks: vec!["rate".to_owned()],
            cells: vec![good, dark],
            alerts: vec!["rate: no data from b to a".to_owned()],
            incidents: vec![incident],
            planned: Vec::new(),
            next: Vec::new(),
            bookings: vec![booked],
        };
        let text = document(&matrix).text(Some(100));
        let line = |start: &str| text.lines().find(|line| line.trim().starts_with(start));
        let of_a = line("a ").expect("a row of a");
        assert!(of_a.contains("941") && of_a.contains("4 min"), "{text}");
        let incident = line("2026-11-24 00:00:00").expect("an incident");
        assert!(incident.contains("over after 5 min") && incident.contains("agent b"), "{text}");
        let booked = line("2026-11-24 00:01:00").expect("a booking");
        assert!(booked.contains("burst a to b") && booked.contains("adhoc"), "{text}");
        assert!(booked.contains("missed: the booking was not heard"), "{text}");
        assert!(text.contains("- ! ~") && text.contains("-12 ms"), "{text}");
        assert!(text.contains("1 without data") && text.contains("no data from b to a"), "{text}");
    }
}
