//! From the probes of a test to the rows of its summary.

use linerate_core::record::{
    MetricId, PingTransport, Plan, ProbePhase, ProbeSpan, Probes, Record, Stat, Summary,
    TcpDirections,
};
use linerate_core::stats::{Sorted, median, round_trips_per_minute, trimmed_mean};

use super::phase_of;
use crate::flow::round_trips;

/// Notes the span of the load, without its first `omit_ns`, in the probes of a record, and adds
/// their rows to its summary.
pub(crate) fn add(record: &mut Record, omit_ns: u64) {
    let directions = match &record.plan {
        Plan::Tcp(plan) => plan.test.directions,
        Plan::Udp(plan) => plan.test.directions,
        _ => return,
    };
    let Some(to_ns) = load_end_ns(record) else { return };
    let from_ns = i64::try_from(omit_ns).unwrap_or(i64::MAX);
    let Some(probes) = &mut record.probes else { return };
    let span = ProbeSpan { phase: phase_of(directions), from_ns, to_ns };
    probes.phases.push(span);
    record.probes_beside.iter_mut().for_each(|probes| probes.phases.push(span));
    record.summary.extend(summary_rows(probes, directions));
    record.summary.extend(by_draft(record, directions, omit_ns));
}

/// Responsiveness by the draft: of new connections and of loaded ones; none without handshakes.
fn by_draft(record: &Record, directions: TcpDirections, omit_ns: u64) -> Vec<Summary> {
    let trimmed = |probes: &Probes| {
        let rtts: Vec<u64> = probes.round_trips(false).flatten().collect();
        trimmed_mean(&rtts)
    };
    let new = record.probes_beside.iter().find(|probes| probes.transport == PingTransport::Tcp);
    let Some(handshake_ns) = new.and_then(trimmed) else { return Vec::new() };
    let request_ns = record.probes.as_deref().and_then(trimmed);
    let of_loads: Vec<u64> = directions
        .each_direction()
        .iter()
        .flat_map(|way| round_trips::loaded(&record.series, *way, omit_ns))
        .collect();
    let loaded_ns = trimmed_mean(&of_loads);
    let rpm = |ns: f64| (ns > 0.0).then(|| 60e9 / ns);
    let new = request_ns.and_then(|request_ns| rpm(f64::midpoint(handshake_ns, request_ns)));
    let loaded = loaded_ns.and_then(rpm);
    let values = [
        (MetricId::DelayHandshake, Some(handshake_ns)),
        (MetricId::ResponsivenessNew, new),
        (MetricId::ResponsivenessLoaded, loaded),
        (
            MetricId::ResponsivenessDraft,
            new.zip(loaded).map(|(one, other)| f64::midpoint(one, other)),
        ),
    ];
    let rows = values.into_iter().filter_map(|(metric, value)| Some((metric, value?)));
    rows.map(|(metric, value)| Summary::from_value(metric, Stat::Value, value)).collect()
}

/// When the last stream ended, since the start of the load. What comes later is the exchange of
/// results, over an idle path.
fn load_end_ns(record: &Record) -> Option<i64> {
    let ends = record.flows.iter().flat_map(|flow| [&flow.receiver, &flow.sender]).flatten();
    let last = ends.map(|end| end.span_start_ns + end.span_ns).max()?;
    i64::try_from(last).ok().filter(|last| *last > 0)
}

/// The rows of the probes of a load in these directions.
fn summary_rows(probes: &Probes, directions: TcpDirections) -> Vec<Summary> {
    let of = |idle| probes.round_trips(idle).collect::<Vec<Option<u64>>>();
    let (idle, loaded) = (of(true), of(false));
    let [at_rest, under_load] =
        [&idle, &loaded].map(|all| Sorted::new(all.iter().flatten().copied().collect()));
    let mut rows = Vec::new();
    let mut push = |metric, stat, value: Option<f64>, n: usize| {
        rows.extend(value.map(|value| Summary::from_value(metric, stat, value).with_n(n as u64)));
    };
    let n = at_rest.samples().len();
    for (stat, share) in [(Stat::Min, 0.0), (Stat::P50, 0.5), (Stat::P99, 0.99)] {
        push(MetricId::DelayIdle, stat, at_rest.quantile(share).map(|ns| ns as f64), n);
    }
    let n = under_load.samples().len();
    let stats = [(Stat::P50, 0.5), (Stat::P95, 0.95), (Stat::P99, 0.99), (Stat::Max, 1.0)];
    for (stat, share) in stats {
        push(MetricId::DelayLoaded, stat, under_load.quantile(share).map(|ns| ns as f64), n);
    }
    let medians = under_load.quantile(0.5).zip(at_rest.quantile(0.5));
    let added = medians.map(|(loaded, idle)| loaded as f64 - idle as f64);
    push(MetricId::DelayAdded, Stat::Value, added, n);
    let lost = loaded.iter().filter(|rtt| rtt.is_none()).count();
    // Of a target that never answers nothing is known of losses, nor where TCP hides them.
    let by_packets = probes.transport != PingTransport::WebSocket;
    let known = by_packets && probes.silent.is_none() && !loaded.is_empty();
    let ratio = known.then(|| lost as f64 / loaded.len() as f64);
    push(MetricId::DelayLoss, Stat::Value, ratio, loaded.len());
    for (metric, added) in places_added(probes) {
        push(metric, Stat::Value, added, n);
    }
    // Messages on a WebSocket wait for lost segments too: they are no probes of the draft.
    let rpm = round_trips_per_minute(under_load.samples()).filter(|_| by_packets);
    push(MetricId::Responsiveness, Stat::Value, rpm, n);
    let one = match directions.each_direction() {
        [one] => Some(*one),
        _ => None,
    };
    let of_load = |row: Summary| match one {
        Some(way) if row.metric != MetricId::DelayIdle => row.in_direction(way),
        _ => row,
    };
    rows.into_iter().map(of_load).collect()
}

/// Fewer probes of a place, at rest or under load, say nothing of it.
const COUNT_MIN: usize = 5;
/// A way that gets shorter under load by this much, or by this share of what the path adds, is a
/// clock that moved.
const CLOCK_MOVED_NS: f64 = 500_000.0;
const CLOCK_MOVED_SHARE: f64 = 0.05;

/// The delay that the load adds in each place: the median under load less the median at rest.
fn places_added(probes: &Probes) -> [(MetricId, Option<f64>); 5] {
    let here = added_delay(probes, &probes.own_queue_ns, |ns| ns as f64);
    let path = added_delay(probes, &probes.path_ns, |ns| ns as f64);
    let peer = added_delay(probes, &probes.peer_ns, |ns| ns as f64);
    // Of numbers of 10^18 a float has 128 ns left: the smallest is taken off before.
    let ways = [&probes.there_ns, &probes.back_ns].map(|column| {
        let least = column.iter().flatten().min().copied().unwrap_or(0);
        added_delay(probes, column, |ns| ns.wrapping_sub(least) as f64)
    });
    let most = CLOCK_MOVED_NS.max(CLOCK_MOVED_SHARE * path.unwrap_or(0.0));
    let moved = ways.iter().any(|way| way.is_none_or(|added| added < -most));
    let [there, back] = if moved { [None, None] } else { ways };
    [
        (MetricId::AddedHere, here),
        (MetricId::AddedPath, path),
        (MetricId::AddedThere, there),
        (MetricId::AddedBack, back),
        (MetricId::AddedPeer, peer),
    ]
}

fn added_delay<T: Copy>(
    probes: &Probes,
    column: &[Option<T>],
    ns: impl Fn(T) -> f64,
) -> Option<f64> {
    let typical = |idle: bool| {
        let places = probes.sent_in(move |phase| (phase == ProbePhase::Idle) == idle);
        let values = places.filter_map(|place| column.get(place).copied().flatten());
        let values: Vec<f64> = values.map(&ns).collect();
        (values.len() >= COUNT_MIN).then(|| median(&values)).flatten()
    };
    Some(typical(false)? - typical(true)?)
}

#[cfg(test)]
mod tests {
    use linerate_core::record::{Direction, PingTransport};

    use super::*;

    const MS: i64 = 1_000_000;

    /// Ten probes before the load at 20 ms, a hundred beside it of which 1 … 95 take 120 ms, four
    /// 220 ms and one is lost; one while it begins, and one behind its end.
    fn probes() -> Probes {
        let phase = |phase, from, to| ProbeSpan { phase, from_ns: from * MS, to_ns: to * MS };
        let idle = (0..10).map(|number| ((number * 10 - 200) * MS, Some(20_000_000)));
        let load = (0..100).map(|number| {
            let rtt = match number {
                0..95 => Some(120_000_000),
                95..99 => Some(220_000_000),
                _ => None,
            };
            ((number * 20 + 500) * MS, rtt)
        });
        let outside = [(100 * MS, Some(50_000_000)), (2_500 * MS, Some(20_000_000))];
        let (sent_ns, rtt_ns) = idle.chain(load).chain(outside).unzip();
        Probes {
            phases: vec![phase(ProbePhase::Idle, -200, -100), phase(ProbePhase::Up, 500, 2500)],
            sent_ns,
            rtt_ns,
            ..Probes::new(PingTransport::Udp, String::new(), 40)
        }
    }

    /// The delay added in each place, in ms, by a queue under load of so many ms in this host, on
    /// the way there, on the way back and within the other end, whose clock is far off and moves by
    /// `step` when the load begins.
    fn queues([here, there, back, peer]: [i64; 4], step: i64) -> Vec<Option<f64>> {
        const OFF: i64 = 1 << 60;
        let mut probes = probes();
        for sent in probes.sent_ns.clone() {
            let of = |ms: i64| if sent > 400 * MS { ms * MS } else { 0 };
            let as_u64 = |ns: i64| Some(ns.cast_unsigned());
            probes.own_queue_ns.push(as_u64(1000 + of(here)));
            probes.path_ns.push(as_u64(20 * MS + of(there) + of(back)));
            probes.there_ns.push(Some(OFF + 10 * MS + of(there) + of(step)));
            probes.back_ns.push(Some(10 * MS - OFF + of(back) - of(step)));
            probes.peer_ns.push(as_u64(5000 + of(peer)));
        }
        places_added(&probes).into_iter().map(|(_, ns)| ns.map(|ns| ns / 1e6)).collect()
    }

    #[test]
    fn a_queue_is_found_in_its_place_without_synchronised_clocks() {
        let ms = |values: [f64; 5]| values.map(Some).to_vec();
        assert_eq!(queues([100, 0, 0, 0], 0), ms([100.0, 0.0, 0.0, 0.0, 0.0]));
        assert_eq!(queues([2, 100, 0, 0], 0), ms([2.0, 100.0, 100.0, 0.0, 0.0]));
        assert_eq!(queues([0, 0, 80, 0], 0), ms([0.0, 80.0, 0.0, 80.0, 0.0]));
        assert_eq!(queues([0, 0, 0, 7], 0), ms([0.0, 0.0, 0.0, 0.0, 7.0]));
        // A clock that jumps by 30 ms would make the way back shorter under load.
        let unknown = vec![Some(0.0), Some(20.0), None, None, Some(0.0)];
        assert_eq!(queues([0, 20, 0, 0], 30), unknown);
    }

    #[test]
    fn a_kernel_without_stamps_leaves_the_places_open() {
        assert!(places_added(&probes()).iter().all(|(_, added)| added.is_none()));
    }

    fn row_value(rows: &[Summary], metric: MetricId, stat: Stat) -> Option<f64> {
        rows.iter().find(|row| (row.metric, row.stat) == (metric, stat)).map(|row| row.value)
    }

    #[test]
    fn delays_losses_and_responsiveness_are_those_of_their_phases() {
        let rows = summary_rows(&probes(), TcpDirections::Up);
        let of = |metric, stat| row_value(&rows, metric, stat);
        assert_eq!(of(MetricId::DelayIdle, Stat::P50), Some(20e6));
        assert_eq!(of(MetricId::DelayLoaded, Stat::P50), Some(120e6));
        // Of 99 answered the 99th (98.01 rounded up) is the largest; the 95th (94.05) is of 120.
        assert_eq!(of(MetricId::DelayLoaded, Stat::P99), Some(220e6));
        assert_eq!(of(MetricId::DelayLoaded, Stat::P95), Some(120e6));
        assert_eq!(of(MetricId::DelayAdded, Stat::Value), Some(100e6));
        assert_eq!(of(MetricId::DelayLoss, Stat::Value), Some(0.01));
        // The lowest 95 of 99 take 120 ms: 500 in a minute.
        assert_eq!(of(MetricId::Responsiveness, Stat::Value), Some(500.0));
        let ways: Vec<_> = rows.iter().map(|row| row.direction).collect();
        assert_eq!((ways[0], ways[3]), (None, Some(Direction::Up)));
    }

    /// Handshakes of 60 ms and UDP echo of 60 ms, and 20 ms on the loaded connections: 1000 and
    /// 3000 round trips, 2000 on average, as in the worked value of the theory.
    #[test]
    fn responsiveness_by_the_draft_is_the_mean_of_new_and_of_loaded_connections() {
        let at = linerate_core::time::WallTime::from_unix_nanos(0);
        let id = linerate_core::record::RecordId::from_parts(0, [0; 10]);
        let tool =
            linerate_core::record::Tool { name: "linerate".to_owned(), version: String::new() };
        let plan = Plan::Tcp(linerate_core::record::TcpPlan::default());
        let mut record = Record::from_plan(id, tool, plan, at);
        let all = |transport, ns| Probes {
            transport,
            rtt_ns: probes().sent_ns.iter().map(|_| Some(ns)).collect(),
            ..probes()
        };
        record.probes = Some(Box::new(all(PingTransport::Udp, 60_000_000)));
        assert_eq!(by_draft(&record, TcpDirections::Up, 0), [], "no handshakes");
        record.probes_beside = vec![all(PingTransport::Tcp, 60_000_000)];
        let series = linerate_core::record::Series {
            metric: MetricId::TcpRtt,
            direction: Some(Direction::Up),
            flow: Some(0),
            side: None,
            payload_bytes: None,
            t_ns: vec![1, 2],
            values: vec![Some(20e6), Some(20e6)],
        };
        record.series = vec![series];
        let rows = by_draft(&record, TcpDirections::Up, 0);
        let of = |metric| row_value(&rows, metric, Stat::Value);
        assert_eq!(of(MetricId::DelayHandshake), Some(60e6));
        assert_eq!(of(MetricId::ResponsivenessNew), Some(1000.0));
        assert_eq!(of(MetricId::ResponsivenessLoaded), Some(3000.0));
        assert_eq!(of(MetricId::ResponsivenessDraft), Some(2000.0));
    }

    #[test]
    fn probes_that_nobody_answered_make_no_rows() {
        let mut probes = probes();
        probes.rtt_ns.iter_mut().for_each(|rtt| *rtt = None);
        probes.silent = Some("none of 112 probes was answered".to_owned());
        assert_eq!(summary_rows(&probes, TcpDirections::Both), []);
    }

    #[test]
    fn without_probes_at_rest_nothing_is_said_of_what_was_added() {
        let mut probes = probes();
        probes.phases.remove(0);
        let rows = summary_rows(&probes, TcpDirections::Both);
        assert_eq!(row_value(&rows, MetricId::DelayAdded, Stat::Value), None);
        assert_eq!(row_value(&rows, MetricId::DelayLoaded, Stat::P50), Some(120e6));
        assert!(rows.iter().all(|row| row.direction.is_none()));
    }
}
