//! Delay under load: what the probes beside a throughput test saw.

use linerate_core::record::{Direction, MetricId, ProbePhase, Probes, Record, Stat};

use crate::document::{Block, Fact, Figure, Section};
use crate::svg::{self, Axis, LineChart};
use crate::{number, words};

/// The metrics that a page defines.
pub(super) const METRICS: [MetricId; 10] = [
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
];

/// Points of a curve that a page has room for.
const POINTS_MAX: usize = 4000;

/// `20.1 ms idle, 122.4 ms loaded (p99 130.2), +102.3 ms: 490 RPM`; why nothing is known, where
/// probes were sent; none where none were.
pub(crate) fn line(record: &Record, way: Option<Direction>) -> Option<String> {
    let of = |metric, stat| record.value(metric, stat, way);
    let Some(loaded) = of(MetricId::DelayLoaded, Stat::P50) else {
        return record.probes.as_ref()?.silent.clone();
    };
    let idle = record.value(MetricId::DelayIdle, Stat::P50, None);
    let p99 = of(MetricId::DelayLoaded, Stat::P99)
        .map_or_else(String::new, |ns| format!(" (p99 {})", ms(ns)));
    let mut text = idle.map_or_else(String::new, |ns| format!("{} ms idle, ", ms(ns)));
    text.push_str(&format!("{} ms loaded{p99}", ms(loaded)));
    if let Some(added) = of(MetricId::DelayAdded, Stat::Value) {
        let sign = if added < 0.0 { '\u{2212}' } else { '+' };
        text.push_str(&format!(", {sign}{} ms", ms(added.abs())));
    }
    if let Some(rpm) = of(MetricId::Responsiveness, Stat::Value) {
        text.push_str(&format!(": {rpm:.0} RPM"));
    }
    if let Some(lost) = of(MetricId::DelayLoss, Stat::Value).filter(|lost| *lost > 0.0) {
        text.push_str(&format!(", {} lost", number::percent(lost)));
    }
    Some(text)
}

/// What is added is a queue from here on: less, or a smaller share of the delay at rest, is noise.
const QUEUE_NS: f64 = 1e6;
const QUEUE_SHARE: f64 = 0.1;
/// A place with a smaller share of what is added is not named.
const PLACE_SHARE: f64 = 0.05;

/// Where the queue stands: `100.0 ms on the way there, 6.00 ms in this host's own queue (eth0)`;
/// none without a queue, or without stamps that tell.
pub(crate) fn queue(record: &Record) -> Option<String> {
    let of = |metric| record.value(metric, Stat::Value, None);
    let added = of(MetricId::DelayAdded)?;
    let idle = record.value(MetricId::DelayIdle, Stat::P50, None)?;
    if added < QUEUE_NS.max(QUEUE_SHARE * idle) {
        return None;
    }
    let path = of(MetricId::AddedPath)?;
    let [here, peer] = [MetricId::AddedHere, MetricId::AddedPeer].map(|id| of(id).unwrap_or(0.0));
    let mut places = match of(MetricId::AddedThere).zip(of(MetricId::AddedBack)) {
        Some((there, back)) => vec![(there, "on the way there"), (back, "on the way back")],
        None => vec![(path, "on the path")],
    };
    let own = format!("in this host's own queue{}", interface(record));
    places.push((here, &own));
    places.push((peer, "within the other end"));
    places.push((added - path - here - peer, "within this host"));
    places.retain(|(ns, _)| *ns >= PLACE_SHARE * added);
    places.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    let places = places.iter().map(|(ns, name)| format!("{} ms {name}", ms(*ns)));
    let places: Vec<String> = places.collect();
    (!places.is_empty()).then(|| places.join(", "))
}

/// The interface that probes leave by, in brackets.
fn interface(record: &Record) -> String {
    let interface = record.ends.first().and_then(|end| end.interface.as_ref());
    interface.map_or_else(String::new, |it| match it.shaper_bps {
        Some(bps) => format!(" (shaper of {} on {})", number::rate(bps as f64), it.name),
        None => format!(" ({})", it.name),
    })
}

/// `20.1 ms idle; loaded up 122.4 ms (p99 130.2), down 25.0 ms (p99 31.0)`, of what is known.
pub(crate) fn both_ways(record: &Record) -> Option<String> {
    let ways = [(Direction::Up, "up"), (Direction::Down, "down")].into_iter();
    let loaded = ways.filter_map(|(way, name)| {
        let of = |stat| record.value(MetricId::DelayLoaded, stat, Some(way));
        let p99 = of(Stat::P99).map_or_else(String::new, |ns| format!(" (p99 {})", ms(ns)));
        Some(format!("{name} {} ms{p99}", ms(of(Stat::P50)?)))
    });
    let loaded: Vec<String> = loaded.collect();
    let idle = record.value(MetricId::DelayIdle, Stat::P50, None);
    let idle = idle.map_or_else(String::new, |ns| format!("{} ms idle; ", ms(ns)));
    (!loaded.is_empty()).then(|| format!("{idle}loaded {}", loaded.join(", ")))
}

/// Milliseconds in as many digits as a reader of queues needs.
fn ms(ns: f64) -> String {
    let ms = ns / 1e6;
    match ms {
        _ if ms < 1.0 => format!("{ms:.3}"),
        _ if ms < 10.0 => format!("{ms:.2}"),
        _ => format!("{ms:.1}"),
    }
}

/// The section of a page: the summary, how it was probed, the delay over time.
pub(super) fn section(record: &Record) -> Option<Section> {
    let probes = record.probes.as_ref()?;
    let mut facts = vec![Fact::new("delay", 8, line(record, None)?)];
    facts.extend(queue(record).map(|text| Fact::new("queue", 8, text)));
    facts.push(Fact::new("probes", 8, how(probes)));
    let figure = chart(probes).map(|chart| {
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

/// Delay over time; a lost probe leaves a gap.
fn chart(probes: &Probes) -> Option<LineChart> {
    probes.rtt_ns.iter().flatten().next()?;
    let points = probes.sent_ns.iter().zip(&probes.rtt_ns);
    let points =
        points.map(|(&sent, rtt)| (sent as f64 / 1e9, rtt.map_or(f64::NAN, |ns| ns as f64 / 1e6)));
    let points: Vec<(f64, f64)> = points.collect();
    let points = svg::thinned(&points, POINTS_MAX).copied().collect();
    Some(LineChart::new(
        "Round trip of each probe",
        format!("{} probes", probes.sent_ns.len()),
        [
            Axis::linear("seconds since the load began", number::short_signed),
            Axis::linear("round trip, ms", number::short_time),
        ],
        vec![svg::Series::new("delay", 0, points)],
    ))
}

#[cfg(test)]
mod tests {
    use linerate_core::record::{PingTransport, Plan, RecordId, Summary, TcpPlan, Tool};
    use linerate_core::time::WallTime;

    use super::*;

    fn record() -> Record {
        let tool = Tool { name: "linerate".to_owned(), version: "0.0.0".to_owned() };
        let (id, at) = (RecordId::from_parts(0, [0; 10]), WallTime::from_unix_nanos(0));
        Record::begin(id, tool, Plan::Tcp(TcpPlan::default()), at)
    }

    #[test]
    fn the_line_has_what_is_known_and_no_more() {
        let mut record = record();
        assert_eq!(line(&record, None), None);
        let row =
            |metric, stat, value| Summary::of(metric, stat, value).in_direction(Direction::Up);
        record.summary = vec![
            row(MetricId::DelayLoaded, Stat::P50, 122.44e6),
            row(MetricId::DelayLoaded, Stat::P99, 130.2e6),
            row(MetricId::DelayLoss, Stat::Value, 0.0),
            row(MetricId::Responsiveness, Stat::Value, 490.2),
        ];
        let text = |record: &Record| line(record, Some(Direction::Up));
        let expected = "122.4 ms loaded (p99 130.2): 490 RPM";
        assert_eq!(text(&record).as_deref(), Some(expected));
        record.summary.push(Summary::of(MetricId::DelayIdle, Stat::P50, 0.0312e6));
        record.summary.push(row(MetricId::DelayAdded, Stat::Value, 122.4088e6));
        record.summary[2].value = 0.01;
        let expected =
            "0.031 ms idle, 122.4 ms loaded (p99 130.2), +122.4 ms: 490 RPM, 1.00 % lost";
        assert_eq!(text(&record).as_deref(), Some(expected));
        let down = Summary::of(MetricId::DelayLoaded, Stat::P50, 25e6);
        record.summary.push(down.in_direction(Direction::Down));
        let expected = "0.031 ms idle; loaded up 122.4 ms (p99 130.2), down 25.0 ms";
        assert_eq!(both_ways(&record).as_deref(), Some(expected));
    }

    #[test]
    fn the_places_of_a_queue_come_by_size_and_small_ones_are_left_out() {
        let told = |values: &[(MetricId, f64)]| {
            let mut record = record();
            let row = |&(metric, ms): &(MetricId, f64)| {
                let stat = if metric == MetricId::DelayIdle { Stat::P50 } else { Stat::Value };
                Summary::of(metric, stat, ms * 1e6)
            };
            record.summary = values.iter().map(row).collect();
            queue(&record).unwrap_or_default()
        };
        let [idle, added] = [MetricId::DelayIdle, MetricId::DelayAdded];
        let [here, path] = [MetricId::AddedHere, MetricId::AddedPath];
        let [there, back, peer] = [MetricId::AddedThere, MetricId::AddedBack, MetricId::AddedPeer];
        let known = [(idle, 20.0), (added, 102.5), (here, 0.0), (path, 100.0), (peer, 0.1)];
        assert_eq!(told(&known), "100.0 ms on the path");
        let split = [&known[..], &[(there, 8.0), (back, 92.0)]].concat();
        assert_eq!(told(&split), "92.0 ms on the way back, 8.00 ms on the way there");
        let own = [(idle, 0.1), (added, 50.0), (here, 49.0), (path, 0.2)];
        assert_eq!(told(&own), "49.0 ms in this host's own queue");
        let late = [(idle, 0.1), (added, 10.0), (here, 0.0), (path, 0.2), (peer, 6.0)];
        assert_eq!(told(&late), "6.00 ms within the other end, 3.80 ms within this host");
        // 1.9 ms on 20 are no queue, and without stamps nobody knows.
        assert_eq!(told(&[(idle, 20.0), (added, 1.9), (path, 1.9)]), "");
        assert_eq!(told(&[(idle, 20.0), (added, 100.0)]), "");
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
