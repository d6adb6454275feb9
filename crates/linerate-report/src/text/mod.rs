//! Records as terminal text.
//!
//! The order is fixed: what was measured, what the instrument itself spoiled, the figures with
//! their ceilings, the other caveats, the failure, one plain sentence. Colour is left to the
//! terminal, and its width is the caller's to tell; nothing here asks for them.

mod bench;
mod conform;
mod path_ceiling;
mod ping;
mod search;
mod simulate;
mod tcp;
mod tcp_means;
mod udp;

use linerate_core::record::{Caveat, Plan, Record, Status};

pub(crate) use bench::title as bench_title;
pub use conform::conformance;
pub use path_ceiling::path_ceiling;
pub(crate) use ping::{
    from_average as ping_from_average, title as ping_title, value as ping_value,
};
pub(crate) use search::{chart as search_chart, table as search_table};
pub(crate) use simulate::title as simulate_title;
pub use tcp::tcp_summary;
pub(crate) use tcp::{
    ceilings as tcp_ceilings, processors as tcp_processors, table as tcp_table, title as tcp_title,
};
pub(crate) use udp::{table as udp_table, title as udp_title};

use crate::{emulated, escape, number, words};

/// The final text of any record; lines are ended, the last one too.
pub fn record(record: &Record) -> String {
    record_within(record, None)
}

/// The final text of any record for a terminal of `width` columns: a wide table loses the columns
/// that tell least, remarks are broken earlier.
pub fn record_within(record: &Record, width: Option<usize>) -> String {
    match &record.plan {
        Plan::Tcp(plan) => tcp::summary(record, plan, width),
        Plan::Ping(plan) => ping::summary(record, plan),
        Plan::Udp(plan) => udp::summary(record, plan, width),
        Plan::Simulate(plan) => simulate::summary(record, plan, width),
        Plan::Bench(plan) => bench::summary(record, plan, width),
    }
}

/// One plain sentence on what the record says.
pub(crate) fn sentence(record: &Record) -> String {
    match &record.plan {
        Plan::Tcp(plan) => tcp::sentence(record, plan),
        Plan::Ping(plan) => ping::sentence(record, plan),
        Plan::Udp(plan) => udp::sentence(record, plan),
        Plan::Simulate(plan) => simulate::sentence(record, plan),
        Plan::Bench(plan) => bench::sentence(record, plan),
    }
}

/// Start, length, program, ends: the lines under the title.
fn facts(record: &Record) -> String {
    let mut out = format!(
        "  started {}, took {}, {} {}\n",
        record.started_at,
        number::seconds(record.duration_ns as f64),
        escape::line(&record.tool.name),
        escape::line(&record.tool.version),
    );
    for end in &record.ends {
        let about = words::end(end);
        if !about.is_empty() {
            out.push_str(&format!("  {:<6}  {}\n", end.role, escape::line(&about)));
        }
    }
    out.push_str(&emulated::lines(&record.paths));
    out
}

/// The caveats that come before the figures: the instrument was the limit.
fn own_limits(record: &Record) -> String {
    let (own, _) = words::caveats(record);
    own.iter().map(|caveat| caveat_line("limited by this host", caveat)).collect()
}

/// The other caveats, the failure, the sentence.
fn tail(record: &Record) -> String {
    let mut out = String::new();
    let (_, others) = words::caveats(record);
    others.iter().for_each(|caveat| out.push_str(&caveat_line("note", caveat)));
    if let Some(failure) = &record.failure {
        let how = match record.status {
            Status::Partial => "ended early",
            Status::Interrupted => "interrupted",
            Status::Ok | Status::Error => "failed",
        };
        out.push_str(&format!("  {how}: {}\n", escape::line(&failure.to_string())));
    }
    out.push_str(&escape::line(&sentence(record)));
    out.push('\n');
    out
}

fn caveat_line(label: &str, caveat: &Caveat) -> String {
    format!("  {label}: {}\n", escape::line(&caveat.to_string()))
}
