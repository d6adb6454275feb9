//! A simulation in words and tables.

use linerate_core::explain::simulated_limit;
use linerate_core::simulate::{FlowSummary, RunSummary, SimulationReport, TcpSummary};
use linerate_core::stats::Moments;
use linerate_core::units::print_span;

use crate::document::{Block, Document, Fact, ReportTable};
use crate::headline::{Headline, LimitText, Quality};
use crate::{number, words};

/// Flows of one run that are listed one by one.
const FLOWS_LISTED: usize = 16;

/// The page of a simulation: its plan, each flow of the first run, and all runs.
pub fn document(report: &SimulationReport) -> Document {
    let headline = headline(report);
    let document = Document {
        sentence: headline.summary_line(),
        headline: Some(headline),
        brief: brief_blocks(report),
        ..Document::default()
    };
    report_parts(report).into_iter().fold(document, Document::with_section)
}

/// The mean over the runs, its share, and what the model says limited it.
fn headline(report: &SimulationReport) -> Headline {
    let mean = |of: fn(&RunSummary) -> Option<f64>| report.over_runs(of).mean();
    let share = mean(|run| run.share_of_ceiling);
    let runs = match report.runs.len() {
        1 => String::new(),
        count => format!(" in the mean of {count} runs"),
    };
    let rate = mean(|run| Some(run.goodput_bps));
    let lossy = report.runs.iter().map(|run| run.retransmitted).sum::<u64>();
    let limit = LimitText::from(&simulated_limit(share, lossy));
    let incomplete = report.runs.iter().any(|run| !run.complete);
    Headline {
        result: match rate {
            Some(bps) => format!("{} by the model{runs}", number::measured_rate(bps)),
            None => "nothing was simulated".to_owned(),
        },
        share,
        ceiling: match (share, report.ceiling_bps) {
            (Some(share), Some(bps)) => {
                let (share, bps) = (number::percent(share), number::measured_rate(bps));
                format!("{share} of the ceiling {bps}")
            }
            _ => String::new(),
        },
        limit,
        quality: match (rate, incomplete) {
            (None, _) => Quality::Bad,
            (_, true) => Quality::Doubtful,
            _ => Quality::Good,
        },
        doubt: if incomplete { "it did not end in its time".to_owned() } else { String::new() },
        id: String::new(),
    }
}

/// The simulated path, and the totals of one run or the range of several.
fn brief_blocks(report: &SimulationReport) -> Vec<Block> {
    let asked = [("path", path_text(report))];
    let found = match report.runs.as_slice() {
        [run] => run_totals(run).into_iter().filter(|(label, _)| *label != "goodput").collect(),
        runs => {
            let rates = report.over_runs(|run| Some(run.goodput_bps));
            let range = rates.min().zip(rates.max()).map(|(least, most)| {
                let (least, most) = (number::measured_rate(least), number::measured_rate(most));
                format!("{}, from {least} to {most}", words::counted(runs.len() as u64, "run"))
            });
            range.map(|range| ("runs", range)).into_iter().collect::<Vec<_>>()
        }
    };
    facts_block(asked.into_iter().chain(found))
}

/// The same in its parts.
pub(crate) fn report_parts(report: &SimulationReport) -> Vec<Vec<Block>> {
    let asked = [
        ("path", path_text(report)),
        ("tcp", tcp_text(&report.tcp)),
        ("flows", flows_text(report)),
    ];
    let mut parts = vec![facts_block(asked)];
    if let [run] = report.runs.as_slice() {
        parts.extend(flow_table(report, run).map(|table| vec![Block::Table(table)]));
        parts.push(facts_block(run_totals(run)));
    } else if !report.runs.is_empty() {
        parts.push(vec![Block::Table(run_table(report))]);
    }
    if let Some(speed) = &report.speed {
        let speed = format!(
            "{} simulated seconds per second, {} events/s, {}",
            number::significant(speed.simulated_s_per_s, 3),
            number::short_count(speed.events_per_s),
            number::seconds(speed.wall_ns as f64),
        );
        parts.last_mut().expect("what was asked is there").extend(facts_block([("speed", speed)]));
    }
    parts
}

fn facts_block(facts: impl IntoIterator<Item = (&'static str, String)>) -> Vec<Block> {
    let fact = |(label, text)| Fact::new(label, 7, text);
    vec![Block::Facts(facts.into_iter().map(fact).collect())]
}

fn path_text(report: &SimulationReport) -> String {
    let link = report.link_bps.map_or_else(|| "no link".to_owned(), number::rate_with_unit);
    let rtt = format!("round trip {} ms", number::time_in_ms(report.rtt_ns as f64));
    match report.ceiling_bps {
        Some(bps) => format!("{link}, {rtt}; at most {} of payload", number::rate_with_unit(bps)),
        None => format!("{link}, {rtt}"),
    }
}

fn tcp_text(tcp: &TcpSummary) -> String {
    let counted = if tcp.bytes_counted { "" } else { ", acknowledgements counted" };
    let hystart = if tcp.hystart { ", HyStart" } else { "" };
    let offload = if tcp.segmentation_offload { ", segmentation offload" } else { "" };
    format!(
        "{}, recovery by {}, {}-byte segments, window {}, first flight {} segments{hystart}{offload}{counted}",
        tcp.congestion_control,
        tcp.recovery,
        tcp.mss_bytes,
        number::amount(tcp.window_bytes),
        tcp.initial_window,
    )
}

fn flows_text(report: &SimulationReport) -> String {
    let each = report
        .flow_bytes
        .map_or(String::new(), |bytes| format!(", {} each", number::amount(bytes)));
    let spread = std::time::Duration::from_nanos(report.start_spread_ns);
    let begin = if spread.is_zero() {
        String::new()
    } else {
        format!(", beginning within {}", print_span(spread))
    };
    format!("{}{each}{begin}", report.flow_count)
}

fn flow_table(report: &SimulationReport, run: &RunSummary) -> Option<ReportTable> {
    if run.flows.len() == 1 {
        return None;
    }
    if run.flows.len() > FLOWS_LISTED {
        return Some(spread_of_flows(run));
    }
    let share = |flow: &FlowSummary| report.ceiling_bps.map(|most| flow.goodput_bps / most);
    Some(ReportTable::from_rows(
        (1..).zip(&run.flows),
        &[
            ("flow", &|row: &(u32, &FlowSummary)| row.0.to_string()),
            ("goodput Mbit/s", &|(_, flow)| number::rate_in_mbit(flow.goodput_bps)),
            ("of ceiling", &|(_, flow)| number::or_dash(share(flow), number::percent)),
            ("sent", &|(_, flow)| flow.segments_sent.to_string()),
            ("retransmitted", &|(_, flow)| flow.retransmitted.to_string()),
            ("recoveries", &|(_, flow)| flow.recoveries.to_string()),
            ("time-outs", &|(_, flow)| flow.timeouts.to_string()),
            ("time s", &|(_, flow)| number::or_dash(flow.transfer_ns, seconds)),
        ],
    ))
}

/// Extremes and middle of many flows.
fn spread_of_flows(run: &RunSummary) -> ReportTable {
    let mut rates: Vec<f64> = run.flows.iter().map(|flow| flow.goodput_bps).collect();
    rates.sort_by(f64::total_cmp);
    let at = |share: f64| rates[((rates.len() - 1) as f64 * share) as usize];
    let mut table = ReportTable::new(["flows", "min", "p10", "median", "p90", "max"]);
    let cells = [0.0, 0.1, 0.5, 0.9, 1.0].map(|share| number::rate_in_mbit(at(share)));
    table.add_measured_row(["goodput Mbit/s".to_owned()].into_iter().chain(cells));
    table
}

fn run_totals(run: &RunSummary) -> Vec<(&'static str, String)> {
    let share = run.share_of_ceiling;
    let of_ceiling =
        share.map_or(String::new(), |share| format!(", {} of the ceiling", number::percent(share)));
    let sent = format!(
        "{} segments, {} of them retransmitted, {} recoveries, {} time-outs",
        run.segments_sent, run.retransmitted, run.recoveries, run.timeouts
    );
    let lost = format!("{} data packets, {} acknowledgements", run.lost_forward, run.lost_backward);
    let time = match run.transfer_ns {
        Some(ns) => format!("{} s for all", seconds(ns)),
        None => format!("{} s simulated", seconds(run.span_ns)),
    };
    let mut facts = vec![
        ("goodput", format!("{}{of_ceiling}", number::rate_with_unit(run.goodput_bps))),
        ("sent", sent),
        ("lost", lost),
        ("time", time),
    ];
    let fairness = run.fairness.map(|fairness| number::significant(fairness, 4));
    facts.extend(fairness.map(|fairness| ("fairness", format!("{fairness} (Jain)"))));
    facts
}

/// A figure of a run: its heading, the figure, and how it is printed as one and as a mean.
type Column = (&'static str, fn(&RunSummary) -> Option<f64>, [fn(f64) -> String; 2]);

const COLUMNS: [Column; 8] = [
    ("goodput Mbit/s", |run| Some(run.goodput_bps), [number::rate_in_mbit; 2]),
    ("of ceiling", |run| run.share_of_ceiling, [number::percent; 2]),
    ("sent", |run| Some(run.segments_sent as f64), COUNT),
    ("retransmitted", |run| Some(run.retransmitted as f64), COUNT),
    ("recoveries", |run| Some(run.recoveries as f64), COUNT),
    ("time-outs", |run| Some(run.timeouts as f64), COUNT),
    ("time s", |run| run.transfer_ns.map(|ns| ns as f64 / 1e9), [five_digits; 2]),
    ("fairness", |run| run.fairness, [four_digits; 2]),
];

/// A statistic over runs, by its name.
type Statistic = (&'static str, fn(&Moments) -> Option<f64>);

/// Counts are whole; their means are not.
const COUNT: [fn(f64) -> String; 2] = [|count| format!("{count:.0}"), four_digits];

fn four_digits(value: f64) -> String {
    number::significant(value, 4)
}

fn five_digits(value: f64) -> String {
    number::significant(value, 5)
}

/// A row for each seed, and their extremes, mean and standard deviation.
fn run_table(report: &SimulationReport) -> ReportTable {
    let mut table = ReportTable::new(["seed"].into_iter().chain(COLUMNS.map(|(name, ..)| name)));
    for run in &report.runs {
        let mark = if run.complete { "" } else { " (incomplete)" };
        let cells = COLUMNS.iter().map(|(_, of, [show, _])| number::or_dash(of(run), show));
        table.add_measured_row(std::iter::once(format!("{}{mark}", run.seed)).chain(cells));
    }
    let statistics: [Statistic; 4] = [
        ("min", Moments::min),
        ("max", Moments::max),
        ("mean", Moments::mean),
        ("std", Moments::stddev),
    ];
    for (name, statistic) in statistics {
        let cells = COLUMNS
            .iter()
            .map(|(_, of, [_, show])| number::or_dash(statistic(&report.over_runs(of)), show));
        table.add_measured_row(std::iter::once(name.to_owned()).chain(cells));
    }
    table
}

fn seconds(ns: u64) -> String {
    five_digits(ns as f64 / 1e9)
}
