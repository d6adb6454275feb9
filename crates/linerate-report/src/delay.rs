//! Delay under load in words: one line each of what probes saw, where the queue stands, and what
//! probes of several kinds saw.

use linerate_core::record::{Direction, MetricId, PingTransport, Probes, Record, Stat};
use linerate_core::stats::Sorted;

use crate::{number, words};

/// `20.1 ms idle, 122.4 ms loaded (p99 130.2), +102.3 ms: 490 RPM`; why nothing is known, where
/// probes were sent; none where none were.
pub(crate) fn idle_and_loaded_line(record: &Record, way: Option<Direction>) -> Option<String> {
    let of = |metric, stat| record.summary_value(metric, stat, way);
    let Some(loaded) = of(MetricId::DelayLoaded, Stat::P50) else {
        return record.probes.as_ref()?.silent.clone();
    };
    let idle = record.summary_value(MetricId::DelayIdle, Stat::P50, None);
    let p99 = of(MetricId::DelayLoaded, Stat::P99)
        .map_or_else(String::new, |ns| format!(" (p99 {})", ms_three_digits(ns)));
    let mut text = idle.map_or_else(String::new, |ns| format!("{} ms idle, ", ms_three_digits(ns)));
    text.push_str(&format!("{} ms loaded{p99}", ms_three_digits(loaded)));
    if let Some(added) = of(MetricId::DelayAdded, Stat::Value) {
        let sign = if added < 0.0 { '\u{2212}' } else { '+' };
        text.push_str(&format!(", {sign}{} ms", ms_three_digits(added.abs())));
    }
    if let Some(rpm) = of(MetricId::Responsiveness, Stat::Value) {
        text.push_str(&format!(": {rpm:.0} RPM"));
    }
    if let Some(lost) = of(MetricId::DelayLoss, Stat::Value).filter(|lost| *lost > 0.0) {
        text.push_str(&format!(", {} lost", number::percent(lost)));
    }
    Some(text)
}

/// Added delay in nanoseconds from which on it is called a queue; less, or a smaller share of the
/// idle delay, is noise.
pub(crate) const QUEUE_NS: f64 = 1e6;
pub(crate) const QUEUE_SHARE: f64 = 0.1;
/// A place with a smaller share of what is added is not named.
const PLACE_SHARE: f64 = 0.05;

/// Where the queue stands: `100.0 ms on the way there, 6.00 ms in this host's own queue (eth0)`;
/// none without a queue, or without stamps that tell.
pub(crate) fn queue_places(record: &Record) -> Option<String> {
    queue_of(record, None)
}

/// The same for each direction of a survey, each measured alone: `up 74.3 ms on the way there; down
/// 30.1 ms on the way back`.
pub(crate) fn queues(record: &Record) -> Option<String> {
    let ways = [(Direction::Up, "up"), (Direction::Down, "down")].into_iter();
    let each =
        ways.filter_map(|(way, name)| Some(format!("{name} {}", queue_of(record, Some(way))?)));
    let each: Vec<String> = each.collect();
    (!each.is_empty()).then(|| each.join("; "))
}

fn queue_of(record: &Record, way: Option<Direction>) -> Option<String> {
    Some(listed(&QueueDelay::from_record(record, way)?.places))
}

/// The same beside what the load adds in all: the places add up to that, or it is said that they do
/// not.
fn places(record: &Record, way: Option<Direction>) -> Option<String> {
    let QueueDelay { added, places, halves } = QueueDelay::from_record(record, way)?;
    let sum: f64 = places.iter().map(|(ns, _)| ns).sum();
    let rest = added - sum;
    let is_off = |ns: f64| ns.abs() > ADDS_UP_SHARE * added;
    // Medians of two ways need not add up to that of the round trip.
    let apart = halves.is_some_and(is_off);
    Some(match places.len() {
        0 | 1 => listed(&places),
        _ if apart => format!("each way by its own median: {}", listed(&places)),
        _ if is_off(rest) => format!("{}, {} ms elsewhere", listed(&places), ms_three_digits(rest)),
        _ => listed(&places),
    })
}

/// Parts that fall short of their sum by no more than this are rounded.
const ADDS_UP_SHARE: f64 = 0.01;

fn listed(places: &[(f64, String)]) -> String {
    let each = places.iter().map(|(ns, name)| format!("{} ms {name}", ms_three_digits(*ns)));
    each.collect::<Vec<String>>().join(", ")
}

/// The delay that load adds, and the place on the path where it does.
struct QueueDelay {
    added: f64,
    /// The places that are worth a name, the largest first.
    places: Vec<(f64, String)>,
    /// Delay that both directions add less that of the path; `None` where the directions are not
    /// known apart.
    halves: Option<f64>,
}

impl QueueDelay {
    /// None without a queue, or without stamps that tell where it is.
    fn from_record(record: &Record, way: Option<Direction>) -> Option<Self> {
        let of = |metric| record.summary_value(metric, Stat::Value, way);
        let added = of(MetricId::DelayAdded)?;
        let idle = record.summary_value(MetricId::DelayIdle, Stat::P50, None)?;
        if added < QUEUE_NS.max(QUEUE_SHARE * idle) {
            return None;
        }
        let path = of(MetricId::AddedPath)?;
        let [here, peer] =
            [MetricId::AddedHere, MetricId::AddedPeer].map(|id| of(id).unwrap_or(0.0));
        let ways = of(MetricId::AddedThere).zip(of(MetricId::AddedBack));
        let mut places = match ways {
            Some((there, back)) => {
                vec![(there, "on the way there".to_owned()), (back, "on the way back".to_owned())]
            }
            None => vec![(path, "on the path".to_owned())],
        };
        places.push((here, format!("in this host's own queue{}", interface(record))));
        places.push((peer, "within the other end".to_owned()));
        places.push((added - path - here - peer, "within this host".to_owned()));
        places.retain(|(ns, _)| *ns >= PLACE_SHARE * added);
        places.sort_by(|(one, _), (other, _)| other.total_cmp(one));
        let halves = ways.map(|(there, back)| there + back - path);
        (!places.is_empty()).then_some(Self { added, places, halves })
    }
}

/// The interface that probes leave by, in brackets.
fn interface(record: &Record) -> String {
    let interface = record.ends.first().and_then(|end| end.interface.as_ref());
    interface.map_or_else(String::new, |interface| match interface.shaper_bps {
        Some(bps) => {
            format!(" (shaper of {} on {})", number::rate_with_unit(bps as f64), interface.name)
        }
        None => format!(" ({})", interface.name),
    })
}

/// `20.1 ms idle; loaded up 122.4 ms (p99 130.2), down 25.0 ms (p99 31.0)`, of what is known.
pub(crate) fn both_ways(record: &Record) -> Option<String> {
    let ways = [(Direction::Up, "up"), (Direction::Down, "down")].into_iter();
    let loaded = ways.filter_map(|(way, name)| {
        let of = |stat| record.summary_value(MetricId::DelayLoaded, stat, Some(way));
        let p99 =
            of(Stat::P99).map_or_else(String::new, |ns| format!(" (p99 {})", ms_three_digits(ns)));
        Some(format!("{name} {} ms{p99}", ms_three_digits(of(Stat::P50)?)))
    });
    let loaded: Vec<String> = loaded.collect();
    let idle = record.summary_value(MetricId::DelayIdle, Stat::P50, None);
    let idle = idle.map_or_else(String::new, |ns| format!("{} ms idle; ", ms_three_digits(ns)));
    (!loaded.is_empty()).then(|| format!("{idle}loaded {}", loaded.join(", ")))
}

/// Median round trips under load by kind of probe: `BE 122.4 ms, CS1 130.2 ms, EF 25.0 ms, ICMP
/// 122.1 ms`; none where all probes were of one kind.
pub(crate) fn delays_by_kind(record: &Record) -> Option<String> {
    let first = record.probes.as_deref().filter(|_| !record.probes_beside.is_empty())?;
    let each = [first].into_iter().chain(&record.probes_beside).map(|probes| {
        let rtts = probes.round_trips(false).flatten().collect();
        let median = Sorted::new(rtts).quantile(0.5);
        let delay =
            median.map_or_else(|| "no answer".to_owned(), |ns| ms_three_digits(ns as f64) + " ms");
        format!("{} {delay}{}", probe_kind_name(probes), marked(probes))
    });
    Some(each.collect::<Vec<String>>().join(", "))
}

/// Responsiveness by the draft: `654 RPM: new connections 612 (handshake 98.0 ms), loaded ones 697
/// (86.1 ms)`; none without both.
pub(crate) fn responsiveness(record: &Record) -> Option<String> {
    let of = |metric| record.summary_value(metric, Stat::Value, None);
    let whole = of(MetricId::ResponsivenessDraft)?;
    let [new, loaded] = [MetricId::ResponsivenessNew, MetricId::ResponsivenessLoaded].map(of);
    let handshake = of(MetricId::DelayHandshake)
        .map_or_else(String::new, |ns| format!(" (handshake {} ms)", ms_three_digits(ns)));
    let rpm = |value: Option<f64>| number::or_dash(value, |rpm| format!("{rpm:.0}"));
    let (new, working) = (rpm(new), rpm(loaded));
    let rtt =
        loaded.map_or_else(String::new, |rpm| format!(" ({} ms)", ms_three_digits(60e9 / rpm)));
    Some(format!("{whole:.0} RPM: new connections {new}{handshake}, loaded ones {working}{rtt}"))
}

/// ` (12.0 % marked there, 1.50 % back)`, of those that can be marked.
fn marked(probes: &Probes) -> String {
    if probes.ecn.is_none_or(|field| field == 0) {
        return String::new();
    }
    let share = |seen: &[Option<u8>]| {
        probes.ce_share(seen).map_or_else(|| number::NONE.to_owned(), number::percent)
    };
    format!(" ({} marked there, {} back)", share(&probes.ecn_there), share(&probes.ecn_back))
}

/// Some probes in a word: `EF`, `ECT(1)`, `EF ECT(1)`, `ICMP`, `ICMP EF`.
pub(crate) fn probe_kind_name(probes: &Probes) -> String {
    let class = words::class_name(probes.dscp.unwrap_or(0));
    match probes.transport {
        PingTransport::Tcp => "TCP handshake".to_owned(),
        PingTransport::WebSocket => "WebSocket".to_owned(),
        PingTransport::Icmp if class == "BE" => "ICMP".to_owned(),
        PingTransport::Icmp => format!("ICMP {class}"),
        _ => match (probes.ecn, class.as_str()) {
            (None, _) => class,
            (Some(field), "BE") => ecn_field_name(field).to_owned(),
            (Some(field), _) => format!("{class} {}", ecn_field_name(field)),
        },
    }
}

/// The ECN field (RFC 3168 §5).
const fn ecn_field_name(field: u8) -> &'static str {
    match field & 3 {
        0 => "not ECT",
        1 => "ECT(1)",
        2 => "ECT(0)",
        _ => "CE",
    }
}

/// `+102.3 ms under load (100.0 ms on the way there)`; none where it is not known.
pub(crate) fn added_under_load(record: &Record) -> Option<String> {
    let added = record.summary_value(MetricId::DelayAdded, Stat::Value, None)?;
    let sign = if added < 0.0 { '\u{2212}' } else { '+' };
    let place = places(record, None).map_or_else(String::new, |places| format!(" ({places})"));
    Some(format!("{sign}{} ms under load{place}", ms_three_digits(added.abs())))
}

/// Milliseconds in as many digits as a reader of queues needs.
pub(crate) fn ms_three_digits(ns: f64) -> String {
    let ms = ns / 1e6;
    match ms {
        _ if ms < 1.0 => format!("{ms:.3}"),
        _ if ms < 10.0 => format!("{ms:.2}"),
        _ => format!("{ms:.1}"),
    }
}

#[cfg(test)]
mod tests {
    use linerate_core::record::{Plan, ProbePhase, ProbeSpan, RecordId, Summary, TcpPlan, Tool};
    use linerate_core::time::WallTime;

    use super::*;

    fn record() -> Record {
        let tool = Tool { name: "linerate".to_owned(), version: "0.0.0".to_owned() };
        let (id, at) = (RecordId::from_parts(0, [0; 10]), WallTime::from_unix_nanos(0));
        Record::from_plan(id, tool, Plan::Tcp(TcpPlan::default()), at)
    }

    #[test]
    fn the_line_has_what_is_known_and_no_more() {
        let mut record = record();
        assert_eq!(idle_and_loaded_line(&record, None), None);
        let row = |metric, stat, value| {
            Summary::from_value(metric, stat, value).in_direction(Direction::Up)
        };
        record.summary = vec![
            row(MetricId::DelayLoaded, Stat::P50, 122.44e6),
            row(MetricId::DelayLoaded, Stat::P99, 130.2e6),
            row(MetricId::DelayLoss, Stat::Value, 0.0),
            row(MetricId::Responsiveness, Stat::Value, 490.2),
        ];
        let text = |record: &Record| idle_and_loaded_line(record, Some(Direction::Up));
        let expected = "122.4 ms loaded (p99 130.2): 490 RPM";
        assert_eq!(text(&record).as_deref(), Some(expected));
        record.summary.push(Summary::from_value(MetricId::DelayIdle, Stat::P50, 0.0312e6));
        record.summary.push(row(MetricId::DelayAdded, Stat::Value, 122.4088e6));
        record.summary[2].value = 0.01;
        let expected =
            "0.031 ms idle, 122.4 ms loaded (p99 130.2), +122.4 ms: 490 RPM, 1.00 % lost";
        assert_eq!(text(&record).as_deref(), Some(expected));
        let down = Summary::from_value(MetricId::DelayLoaded, Stat::P50, 25e6);
        record.summary.push(down.in_direction(Direction::Down));
        let expected = "0.031 ms idle; loaded up 122.4 ms (p99 130.2), down 25.0 ms";
        assert_eq!(both_ways(&record).as_deref(), Some(expected));
    }

    #[test]
    fn a_survey_has_the_queue_of_each_direction() {
        let mut record = record();
        let row = |metric, ms: f64| Summary::from_value(metric, Stat::Value, ms * 1e6);
        let idle = Summary::from_value(MetricId::DelayIdle, Stat::P50, 20e6);
        let ways = |up, [added, there, back]: [f64; 3]| {
            let [a, p, t, b] = [
                row(MetricId::DelayAdded, added),
                row(MetricId::AddedPath, added),
                row(MetricId::AddedThere, there),
                row(MetricId::AddedBack, back),
            ];
            let way = if up { Direction::Up } else { Direction::Down };
            [a, p, t, b].map(|row| row.in_direction(way))
        };
        record.summary = [vec![idle], ways(true, [74.0, 74.0, 0.0]).to_vec()].concat();
        assert_eq!(queues(&record).as_deref(), Some("up 74.0 ms on the way there"));
        record.summary.extend(ways(false, [30.0, 0.2, 29.8]));
        let expected = "up 74.0 ms on the way there; down 29.8 ms on the way back";
        assert_eq!(queues(&record).as_deref(), Some(expected));
    }

    #[test]
    fn kinds_are_told_apart_by_their_class_and_transport() {
        let kind = |transport, dscp, rtt_ns| Probes {
            dscp: Some(dscp),
            phases: vec![ProbeSpan { phase: ProbePhase::Both, from_ns: 0, to_ns: 10 }],
            sent_ns: vec![0, 1, 2],
            rtt_ns,
            ..Probes::new(transport, String::new(), 40)
        };
        let three = |ms: u64| vec![Some(1), Some(ms * 1_000_000), Some(1_000_000_000)];
        let mut record = record();
        record.probes = Some(Box::new(kind(PingTransport::Udp, 0, three(122))));
        assert_eq!(delays_by_kind(&record), None, "there is but one");
        record.probes_beside = vec![
            kind(PingTransport::Udp, 46, three(25)),
            kind(PingTransport::Udp, 34, vec![None; 3]),
            kind(PingTransport::Icmp, 0, three(121)),
            kind(PingTransport::Icmp, 8, three(3)),
        ];
        let expected = "BE 122.0 ms, EF 25.0 ms, AF41 no answer, ICMP 121.0 ms, ICMP CS1 3.00 ms";
        assert_eq!(delays_by_kind(&record).as_deref(), Some(expected));
        assert_eq!(words::class_name(1), "DSCP 1");
        let l4s = |ecn, ecn_there| Probes {
            ecn: Some(ecn),
            ecn_there,
            ..kind(PingTransport::Udp, 0, three(2))
        };
        record.probes = Some(Box::new(l4s(0, vec![Some(0); 3])));
        record.probes_beside = vec![l4s(1, vec![Some(3), Some(1), Some(1)])];
        let expected = "not ECT 2.00 ms, ECT(1) 2.00 ms (33.3 % marked there, \u{2014} back)";
        assert_eq!(delays_by_kind(&record).as_deref(), Some(expected));
    }

    #[test]
    fn places_beside_their_sum_add_up_or_it_is_said_that_they_do_not() {
        let told = |[total, path, there, back]: [f64; 4]| {
            let mut record = record();
            let row = |metric, ms: f64| Summary::from_value(metric, Stat::Value, ms * 1e6);
            record.summary = vec![
                Summary::from_value(MetricId::DelayIdle, Stat::P50, 20e6),
                row(MetricId::DelayAdded, total),
                row(MetricId::AddedPath, path),
                row(MetricId::AddedThere, there),
                row(MetricId::AddedBack, back),
            ];
            added_under_load(&record).unwrap_or_default()
        };
        let sum = "+34.1 ms under load (17.6 ms on the way there, 16.5 ms on the way back)";
        assert_eq!(told([34.1, 34.1, 17.6, 16.5]), sum);
        // 17.6 and 16.5 are not 25.1.
        let apart = "+25.1 ms under load (each way by its own median: 17.6 ms on the way there, \
                     16.5 ms on the way back)";
        assert_eq!(told([25.1, 25.1, 17.6, 16.5]), apart);
        // 1.2 of 35.3 ms within this host are too few for a name, and too many to be left out.
        let rest = "+35.3 ms under load (17.6 ms on the way there, 16.5 ms on the way back, 1.20 \
                    ms elsewhere)";
        assert_eq!(told([35.3, 34.1, 17.6, 16.5]), rest);
    }

    #[test]
    fn the_places_of_a_queue_come_by_size_and_small_ones_are_left_out() {
        let told = |values: &[(MetricId, f64)]| {
            let mut record = record();
            let row = |&(metric, ms): &(MetricId, f64)| {
                let stat = if metric == MetricId::DelayIdle { Stat::P50 } else { Stat::Value };
                Summary::from_value(metric, stat, ms * 1e6)
            };
            record.summary = values.iter().map(row).collect();
            queue_places(&record).unwrap_or_default()
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
}
