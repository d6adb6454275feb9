//! From what was gathered to the record: flows, series, summary.

use linerate_core::record::{
    DatagramTally, Direction, End, Flow, FlowEnd, MetricId, ReceivedDatagrams, Record,
    SentDatagrams, Series, Side, Stat, Summary, UdpPlan, dropped_at_interface,
};
use linerate_core::stats::jain_index;
use linerate_proto::native::EndReport;

use super::account::{Account, Connection, Known};
use super::caveats::{caveats, ceiling};
use crate::throughput::{client_side, cpu_rows, goodput, has, rate_bps, totals};

/// Fills `record` with everything that `account` knows.
pub(crate) fn fold(record: &mut Record, plan: &UdpPlan, account: &Account) {
    record.ends = ends(account);
    record.flows = account.connections.iter().map(|place| flow(place, account)).collect();
    let ways =
        [Direction::Up, Direction::Down].into_iter().filter(|way| has(plan.directions, *way));
    for direction in ways.clone() {
        let flows: Vec<&Flow> =
            record.flows.iter().filter(|flow| flow.direction == direction).collect();
        let summary = direction_summary(&flows, direction);
        record.summary.extend(summary);
    }
    if let Some(search) = &account.search {
        search.fold(record);
    }
    record.series = account.connections.iter().flat_map(|place| series(place, account)).collect();
    let mut ceilings = ways.filter_map(|direction| ceiling(record, plan, account, direction));
    let (first, second) = (ceilings.next(), ceilings.next());
    (record.ceiling, record.ceiling_reverse) = (first, second);
    record.caveats = caveats(record, plan, account);
}

/// Both ends, each with the processor time that was taken from it.
fn ends(account: &Account) -> Vec<End> {
    let mut ends = account.ends.clone();
    for (end, reports) in ends.iter_mut().zip([&account.local, &account.remote]) {
        end.stolen_ratio = reports.iter().find_map(|report| report.stolen_ratio);
    }
    ends
}

/// One stream with what both ends saw of it.
fn flow(place: &Connection, account: &Account) -> Flow {
    let of = |reports: &[EndReport]| {
        let same =
            |report: &&EndReport| (report.direction, report.flow) == (place.direction, place.flow);
        reports.iter().find(same).map(|report| report.end.clone())
    };
    // A server that went away has left its samples.
    let remote = of(&account.remote).or_else(|| last_sample(place, account));
    let (sender, receiver) = match client_side(place.direction) {
        Side::Sender => (of(&account.local), remote),
        Side::Receiver => (remote, of(&account.local)),
    };
    Flow {
        flow: place.flow,
        direction: place.direction,
        client_addr: place.client_addr.clone(),
        server_addr: place.server_addr.clone(),
        sender,
        receiver,
        syn: None,
    }
}

/// What the last sample of the server tells of a stream.
fn last_sample(place: &Connection, account: &Account) -> Option<FlowEnd> {
    let samples = account.remote_samples.last()?;
    let same = (place.direction, place.flow);
    let sample = samples.iter().find(|sample| (sample.direction, sample.flow) == same)?;
    let counts = sample.counts;
    let bytes = counts.datagrams * u64::from(account.size_bytes);
    let mut end =
        FlowEnd { bytes, bytes_measured: bytes, span_ns: sample.t_ns, ..FlowEnd::default() };
    let size_bytes = account.size_bytes;
    let (count, measured) = (counts.datagrams, counts.datagrams);
    match client_side(place.direction) {
        Side::Receiver => {
            end.sent_datagrams =
                Some(SentDatagrams { size_bytes, count, measured, ..SentDatagrams::default() });
        }
        Side::Sender => {
            let tally = DatagramTally {
                sent: None,
                received: count,
                lost: counts.next.saturating_sub(count),
                lost_here: counts.lost_here,
                duplicates: counts.duplicates,
                reordered: counts.reordered,
                too_old: 0,
            };
            end.received_datagrams = Some(ReceivedDatagrams {
                size_bytes,
                all: tally,
                measured: tally,
                ..ReceivedDatagrams::default()
            });
        }
    }
    Some(end)
}

/// Every summary row of one direction.
fn direction_summary(flows: &[&Flow], direction: Direction) -> Vec<Summary> {
    let mut rows = totals(flows, false);
    rows.extend(count_rows(flows));
    rows.extend(sender_rows(flows));
    rows.extend(delay_rows(flows));
    rows.extend(cpu_rows(flows));
    let rates: Vec<f64> = flows.iter().filter_map(|flow| goodput(flow, false)).collect();
    if rates.len() > 1 {
        let fairness = jain_index(&rates);
        rows.extend(fairness.map(|index| Summary::of(MetricId::Fairness, Stat::Value, index)));
        for flow in flows {
            let row =
                goodput(flow, false).map(|rate| Summary::of(MetricId::Goodput, Stat::Value, rate));
            rows.extend(row.map(|row| row.of_flow(flow.flow)));
        }
    }
    rows.into_iter().map(|row| row.in_direction(direction)).collect()
}

/// What became of the datagrams of all streams, and how fast they came.
fn count_rows(flows: &[&Flow]) -> Vec<Summary> {
    let tallies = flows.iter().filter_map(|flow| Some(received(flow)?.measured));
    let tallies: Vec<DatagramTally> = tallies.collect();
    if tallies.is_empty() {
        return Vec::new();
    }
    let sum = |pick: fn(&DatagramTally) -> u64| tallies.iter().map(pick).sum::<u64>();
    let (received, lost) = (sum(|it| it.received), sum(|it| it.lost));
    let row = |metric, value: f64| Summary::of(metric, Stat::Value, value);
    let mut rows = vec![
        row(MetricId::DatagramsReceived, received as f64),
        row(MetricId::DatagramsLost, lost as f64),
        row(MetricId::DatagramDuplicates, sum(|it| it.duplicates) as f64),
        row(MetricId::DatagramsReordered, sum(|it| it.reordered) as f64),
    ];
    let here = sum(|it| it.lost_here);
    // Another program's receiver does not tell what its own socket dropped.
    let mut ends = flows.iter().filter_map(|flow| self::received(flow));
    if here > 0 || ends.any(|it| it.socket_drops.is_some()) {
        rows.insert(2, row(MetricId::DatagramsLostHere, here as f64));
    }
    if let Some(dropped) = dropped_at_interface(flows.iter().copied()) {
        rows.push(row(MetricId::DatagramsDroppedAtSender, dropped as f64));
    }
    if received + lost > 0 {
        let ratio = lost as f64 / (received + lost) as f64;
        rows.push(row(MetricId::DatagramLossRatio, ratio).with_n(received + lost));
    }
    let span = totals(flows, false).into_iter().find(|row| row.metric == MetricId::Span);
    let rate = span.filter(|span| span.value > 0.0).map(|it| received as f64 * 1e9 / it.value);
    rows.extend(rate.map(|rate| row(MetricId::DatagramRate, rate)));
    rows
}

/// What the senders did.
fn sender_rows(flows: &[&Flow]) -> Vec<Summary> {
    let senders = flows.iter().filter_map(|flow| flow.sender.as_ref());
    let senders: Vec<(&FlowEnd, &SentDatagrams)> =
        senders.filter_map(|end| Some((end, end.sent_datagrams.as_ref()?))).collect();
    if senders.is_empty() {
        return Vec::new();
    }
    let bytes: u64 = senders.iter().map(|(end, _)| end.bytes).sum();
    let measured: u64 = senders.iter().map(|(_, sent)| sent.measured).sum();
    let rate = |(end, _): &(&FlowEnd, _)| rate_bps(end.bytes_measured, end.span_ns);
    let mut rows = vec![
        Summary::of(MetricId::BytesSent, Stat::Value, bytes as f64),
        Summary::of(MetricId::DatagramsSent, Stat::Value, measured as f64),
        Summary::of(MetricId::SendRate, Stat::Value, senders.iter().map(rate).sum()),
    ];
    let busiest = senders.iter().filter_map(|(_, sent)| sent.pace?.busiest_1ms_ratio);
    let busiest = busiest.reduce(f64::max);
    rows.extend(busiest.map(|ratio| Summary::of(MetricId::BusiestMs, Stat::Max, ratio)));
    rows
}

/// How delays varied: the worst stream's.
fn delay_rows(flows: &[&Flow]) -> Vec<Summary> {
    let delays: Vec<_> = flows.iter().filter_map(|flow| received(flow)?.delay).collect();
    let n: u64 = delays.iter().map(|delay| delay.n).sum();
    let mut rows = Vec::new();
    let mut push = |metric, stat, value: Option<u64>| {
        rows.extend(value.map(|ns| Summary::of(metric, stat, ns as f64).with_n(n)));
    };
    let most = |pick: fn(&linerate_core::record::DelayVariation) -> Option<u64>| {
        delays.iter().filter_map(pick).max()
    };
    push(MetricId::JitterRfc3550, Stat::Value, most(|delay| delay.jitter_ns));
    push(MetricId::Pdv, Stat::P50, most(|delay| delay.pdv_p50_ns));
    push(MetricId::Pdv, Stat::P99, most(|delay| delay.pdv_p99_ns));
    push(MetricId::Pdv, Stat::Max, most(|delay| delay.pdv_max_ns));
    rows
}

fn received(flow: &Flow) -> Option<&ReceivedDatagrams> {
    flow.receiver.as_ref()?.received_datagrams.as_ref()
}

/// Values over time of one stream: the rate of each interval, and counts from the start.
fn series(place: &Connection, account: &Account) -> Vec<Series> {
    let known = account.known(place.direction, place.flow);
    let build = |metric, values: Vec<Option<f64>>| Series {
        metric,
        direction: Some(place.direction),
        flow: Some(place.flow),
        side: Some(Side::Receiver),
        payload_bytes: None,
        t_ns: known.iter().map(|known| known.t_ns).collect(),
        values,
    };
    let mut before = Known::default();
    let rates = known.iter().map(|now| {
        let span_ns = now.t_ns.saturating_sub(before.t_ns);
        let datagrams = now.received.saturating_sub(before.received);
        let comparable = span_ns > 0 && span_ns >= account.row_ns_min;
        before = *now;
        comparable.then(|| rate_bps(datagrams * u64::from(account.size_bytes), span_ns))
    });
    let rates = rates.collect();
    type Pick = fn(&Known) -> Option<u64>;
    let counts: [(MetricId, Pick); 6] = [
        (MetricId::DatagramsSent, |known| Some(known.sent)),
        (MetricId::DatagramsReceived, |known| Some(known.received)),
        (MetricId::DatagramsLost, |known| Some(known.lost)),
        (MetricId::DatagramsLostHere, |known| Some(known.lost_here)),
        (MetricId::DatagramsInFlight, |known| Some(known.in_flight())),
        (MetricId::JitterRfc3550, |known| known.jitter_ns),
    ];
    let counts = counts.into_iter().map(|(metric, pick)| {
        build(metric, known.iter().map(|known| pick(known).map(|value| value as f64)).collect())
    });
    [build(MetricId::Goodput, rates)].into_iter().chain(counts).collect()
}
