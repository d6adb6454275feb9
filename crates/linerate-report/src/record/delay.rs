//! Delay under load: what the probes beside a throughput test saw.

use linerate_core::record::{MetricId, ProbePhase, Probes, Record};

use crate::delay::{kind, kinds, line, queue, responsiveness};
use crate::document::{Block, Fact, Figure, Section};
use crate::svg::{self, Axis, LineChart};
use crate::{number, words};

/// The metrics that a page defines.
pub(super) const METRICS: [MetricId; 14] = [
    MetricId::DelayIdle,
    MetricId::DelayLoaded,
    MetricId::DelayAdded,
    MetricId::AddedHere,
    MetricId::AddedPath,
    MetricId::AddedThere,
    MetricId::AddedBack,
    MetricId::AddedPeer,
    MetricId::DelayLoss,
    MetricId::Responsiveness,
    MetricId::DelayHandshake,
    MetricId::ResponsivenessNew,
    MetricId::ResponsivenessLoaded,
    MetricId::ResponsivenessDraft,
];

/// Points of a curve that a page has room for.
const POINTS_MAX: usize = 4000;

/// The section of a page: the summary, how it was probed, the delay over time.
pub(super) fn section(record: &Record) -> Option<Section> {
    let probes = record.probes.as_ref()?;
    let mut facts = vec![Fact::new("delay", 8, line(record, None)?)];
    facts.extend(queue(record).map(|text| Fact::new("queue", 8, text)));
    facts.extend(kinds(record).map(|text| Fact::new("kinds", 8, text)));
    facts.extend(responsiveness(record).map(|text| Fact::new("draft", 8, text)));
    facts.push(Fact::new("probes", 8, how(probes)));
    let figure = chart(record).map(|chart| {
        let caption = "Round trips of the probes; a gap is a lost one. The load began at 0.";
        Block::Figure(Figure::of("Delay over time", caption, chart.svg()))
    });
    let blocks = [Block::Facts(facts)].into_iter().chain(figure);
    Some(Section::close("delay under load", blocks))
}

fn how(probes: &Probes) -> String {
    let transport = words::transport(probes.transport);
    let count = |idle| probes.sent_in(|phase| (phase == ProbePhase::Idle) == idle).count();
    let class = probes.dscp.map_or_else(String::new, |dscp| format!(", DSCP {dscp}"));
    format!(
        "{transport} to {}, {} at rest and {} under load, {} of payload{class}",
        probes.target,
        count(true),
        count(false),
        words::counted(probes.payload_bytes.into(), "byte"),
    )
}

/// Delay over time, of each kind; a lost probe leaves a gap.
fn chart(record: &Record) -> Option<LineChart> {
    let all: Vec<&Probes> =
        record.probes.iter().map(AsRef::as_ref).chain(&record.probes_beside).collect();
    all.iter().find(|probes| probes.rtt_ns.iter().any(Option::is_some))?;
    let most = POINTS_MAX / all.len();
    let one = |(place, probes): (usize, &&Probes)| {
        let points = probes.sent_ns.iter().zip(&probes.rtt_ns);
        let points = points
            .map(|(&sent, rtt)| (sent as f64 / 1e9, rtt.map_or(f64::NAN, |ns| ns as f64 / 1e6)));
        let points: Vec<(f64, f64)> = points.collect();
        let points = svg::thinned(&points, most).copied().collect();
        let name = if all.len() == 1 { "delay".to_owned() } else { kind(probes) };
        svg::Series::new(name, place, points)
    };
    let count: usize = all.iter().map(|probes| probes.sent_ns.len()).sum();
    Some(LineChart::new(
        "Round trip of each probe",
        format!("{count} probes"),
        [
            Axis::linear("seconds since the load began", number::short_signed),
            Axis::linear("round trip, ms", number::short_time),
        ],
        all.iter().enumerate().map(one).collect(),
    ))
}

#[cfg(test)]
mod tests {
    use linerate_core::record::{PingTransport, Plan, RecordId, TcpPlan, Tool};
    use linerate_core::time::WallTime;

    use super::*;

    fn record() -> Record {
        let tool = Tool { name: "linerate".to_owned(), version: "0.0.0".to_owned() };
        let (id, at) = (RecordId::from_parts(0, [0; 10]), WallTime::from_unix_nanos(0));
        Record::begin(id, tool, Plan::Tcp(TcpPlan::default()), at)
    }

    #[test]
    fn probes_that_nobody_answered_say_why() {
        let mut record = record();
        let silent = "none of 20 probes by UDP echo to 192.0.2.1:5210 was answered";
        record.probes = Some(Box::new(Probes {
            silent: Some(silent.to_owned()),
            sent_ns: vec![-5],
            rtt_ns: vec![None],
            ..Probes::new(PingTransport::Udp, "192.0.2.1:5210".to_owned(), 40)
        }));
        assert_eq!(line(&record, None).as_deref(), Some(silent));
        let text = crate::record::document(&record).text(None);
        assert!(text.contains(silent), "{text}");
    }
}
