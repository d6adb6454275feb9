//! From what was gathered to the record: ends, flows, series, ceilings and caveats.

use linerate_core::record::{
    DatagramTally, Direction, EndReport, Flow, FlowEnd, FlowSide, MeasurementEnd, MetricId, Plan,
    ReceivedDatagrams, Record, SentDatagrams, Series, Stat, Summary,
};

use super::Sample;
use super::account::{Account, Connection, client_side, rate_bps};
use super::caveats::caveats;
use super::ceiling::{self, Sight, replace_ceilings};
use super::rows::DatagramTotals;
use super::summary::{direction_summary, goodput};
use super::tcp::signals;

/// Fills `record`, whose plan is that of the test, with everything that `account` knows.
pub(crate) fn fill_record(record: &mut Record, account: &Account) {
    record.ends = ends_with_stolen_time(account);
    record.flows =
        account.connections.iter().map(|place| flow_from_reports(place, account)).collect();
    for direction in [Direction::Up, Direction::Down] {
        let flows: Vec<&Flow> =
            record.flows.iter().filter(|flow| flow.direction == direction).collect();
        let summary = direction_summary(&flows, direction, account.one_sided);
        record.summary.extend(summary);
    }
    if let Some(place) = &account.background {
        let background = flow_from_reports(place, account);
        let rate = goodput(&background, false);
        let row = rate.map(|rate| Summary::from_value(MetricId::Background, Stat::Value, rate));
        record.summary.extend(row.map(|row| row.in_direction(place.direction)));
        record.background = Some(background);
    }
    if let Some(search) = &account.search {
        search.fill_record(record);
    }
    record.trials.clone_from(&account.trials);
    record.series = account.connections.iter().flat_map(|place| series(place, account)).collect();
    super::round_trips::add(record, account);
    super::probes::add(record, account.omit_ns);
    match &record.plan {
        Plan::Udp(plan) => ceiling::of_datagrams(record, &plan.clone(), account),
        _ => replace_ceilings(record, Sight::Plans),
    }
    record.caveats = caveats(record, account);
}

/// The record of both ends, each with the processor time that was taken from it.
fn ends_with_stolen_time(account: &Account) -> Vec<MeasurementEnd> {
    let mut ends = account.ends.clone();
    for (end, reports) in ends.iter_mut().zip([&account.local, &account.remote]) {
        end.stolen_ratio = reports.iter().find_map(|report| report.stolen_ratio);
        end.deltas = reports.iter().find_map(|report| report.deltas.clone());
    }
    ends
}

/// The record of one stream, with the accounts of both ends.
fn flow_from_reports(place: &Connection, account: &Account) -> Flow {
    let of = |reports: &[EndReport]| {
        let same =
            |report: &&EndReport| report.direction == place.direction && report.flow == place.flow;
        reports.iter().find(same).cloned()
    };
    let (local, remote) = (of(&account.local), of(&account.remote));
    let syn = remote.as_ref().and_then(|report| report.syn);
    let local = local.map(|report| report.end);
    // A server that went away has left its samples.
    let remote = remote.map(|report| report.end).or_else(|| last_sample(place, account));
    let (sender, receiver) = match client_side(place.direction) {
        FlowSide::Sender => (local, remote),
        FlowSide::Receiver => (remote, local),
    };
    Flow {
        flow: place.flow,
        direction: place.direction,
        client_addr: place.client_addr.clone(),
        server_addr: place.server_addr.clone(),
        sender,
        receiver,
        syn,
    }
}

/// The end of a stream as the server's last sample tells it.
fn last_sample(place: &Connection, account: &Account) -> Option<FlowEnd> {
    let stream = Sample::empty_at(place.direction, place.flow, 0);
    let sample = account.remote_samples.last()?.iter().find(|sample| sample.is_of(&stream))?;
    let end = FlowEnd {
        bytes: sample.bytes,
        bytes_measured: sample.bytes,
        span_ns: sample.t_ns,
        window_advertised_bytes_max: sample.receive_window_bytes,
        window_offered_bytes_max: sample.send_window_bytes,
        ..FlowEnd::default()
    };
    let Some(counts) = sample.datagrams else { return Some(end) };
    let size_bytes = account.size_bytes;
    if client_side(place.direction) == FlowSide::Receiver {
        let (count, measured) = (counts.datagrams, counts.datagrams);
        let sent = SentDatagrams { size_bytes, count, measured, ..SentDatagrams::default() };
        return Some(FlowEnd { sent_datagrams: Some(sent), ..end });
    }
    let tally = DatagramTally {
        sent: None,
        received: counts.datagrams,
        lost: counts.next.saturating_sub(counts.datagrams),
        lost_here: counts.lost_here,
        duplicates: counts.duplicates,
        reordered: counts.reordered,
        too_old: 0,
    };
    let (all, measured) = (tally, tally);
    let received = ReceivedDatagrams { size_bytes, all, measured, ..ReceivedDatagrams::default() };
    Some(FlowEnd { received_datagrams: Some(received), ..end })
}

/// Values over time of a stream, from the end that knows them best.
fn series(place: &Connection, account: &Account) -> Vec<Series> {
    match account.size_bytes {
        0 => tcp_series(place, account),
        _ => datagram_series(place, account),
    }
}

/// Values over time at one end of a stream.
fn values_of(
    place: &Connection,
    metric: MetricId,
    side: FlowSide,
    t_ns: impl Iterator<Item = u64>,
    values: Vec<Option<f64>>,
) -> Series {
    Series {
        metric,
        direction: Some(place.direction),
        flow: Some(place.flow),
        side: Some(side),
        payload_bytes: None,
        t_ns: t_ns.collect(),
        values,
    }
}

fn tcp_series(place: &Connection, account: &Account) -> Vec<Series> {
    let (sent, received) = account.samples(place.direction);
    let (sent, received) = (samples_of(place, sent), samples_of(place, received));
    let build = |metric, side, samples: &[&Sample], values| {
        values_of(place, metric, side, samples.iter().map(|sample| sample.t_ns), values)
    };
    // What the sender's kernel saw acknowledged stands in for a count that nobody tells.
    let untold = account.one_sided && client_side(place.direction) == FlowSide::Sender;
    let counted = if untold { FlowSide::Sender } else { FlowSide::Receiver };
    let bytes = received.iter().map(|sample| (sample.t_ns, sample.bytes));
    let rates = interval_rates(bytes, account.row_ns_min);
    let mut all = vec![build(MetricId::Goodput, counted, &received, rates)];
    let received = if untold { Vec::new() } else { received };
    type Pick = fn(&Sample) -> Option<u64>;
    let picks: [(MetricId, FlowSide, Pick); 8] = [
        (MetricId::ReceiveWindow, FlowSide::Receiver, |sample| sample.receive_window_bytes),
        (MetricId::Cwnd, FlowSide::Sender, |sample| sample.cwnd_bytes),
        (MetricId::TcpRtt, FlowSide::Sender, |sample| sample.rtt_ns),
        (MetricId::Retransmits, FlowSide::Sender, |sample| sample.retransmits),
        (MetricId::SendWindow, FlowSide::Sender, |sample| sample.send_window_bytes),
        (MetricId::DeliveryRate, FlowSide::Sender, |sample| sample.delivery_rate_bps),
        (MetricId::TcpRttVar, FlowSide::Sender, |sample| sample.rtt_var_ns),
        (MetricId::PathMtu, FlowSide::Sender, |sample| sample.pmtu_bytes.map(u64::from)),
    ];
    let shares: [(MetricId, FlowSide, Pick); 8] = [
        (MetricId::CpuShareSender, FlowSide::Sender, |sample| sample.cpu_ns),
        (MetricId::CpuShareReceiver, FlowSide::Receiver, |sample| sample.cpu_ns),
        (MetricId::RunQueueWait, FlowSide::Sender, |sample| sample.run_queue_wait_ns),
        (MetricId::RunQueueWait, FlowSide::Receiver, |sample| sample.run_queue_wait_ns),
        (MetricId::Blocked, FlowSide::Sender, |sample| sample.blocked_ns),
        (MetricId::Blocked, FlowSide::Receiver, |sample| sample.blocked_ns),
        (MetricId::Asleep, FlowSide::Sender, |sample| sample.asleep_ns),
        (MetricId::Asleep, FlowSide::Receiver, |sample| sample.asleep_ns),
    ];
    let levels = picks.map(|(metric, side, pick)| (metric, side, pick, false));
    let shares = shares.map(|(metric, side, pick)| (metric, side, pick, true));
    for (metric, side, pick, share) in levels.into_iter().chain(shares) {
        let samples = if side == FlowSide::Sender { &sent } else { &received };
        let values: Vec<_> = if share {
            interval_shares(samples, pick)
        } else {
            samples.iter().map(|sample| pick(sample).map(|value| value as f64)).collect()
        };
        if values.iter().any(Option::is_some) {
            all.push(build(metric, side, samples, values));
        }
    }
    for (side, samples) in [(FlowSide::Sender, &sent), (FlowSide::Receiver, &received)] {
        for (at, metric) in signals::metrics(side).enumerate() {
            let told = |sample: &&Sample| *sample.signals.get(at)?;
            let values = samples.iter().map(|sample| told(sample).map(|value| value as f64));
            let values: Vec<_> = values.collect();
            if values.iter().any(Option::is_some) {
                all.push(build(metric, side, samples, values));
            }
        }
    }
    all
}

fn datagram_series(place: &Connection, account: &Account) -> Vec<Series> {
    let known = account.datagram_totals(place.direction, place.flow);
    let build = |metric, values| {
        values_of(place, metric, FlowSide::Receiver, known.iter().map(|known| known.t_ns), values)
    };
    let bytes = known.iter().map(|known| (known.t_ns, known.bytes));
    let rates = interval_rates(bytes, account.row_ns_min);
    type Pick = fn(&DatagramTotals) -> Option<u64>;
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

fn samples_of<'a>(place: &Connection, samples: &'a [Vec<Sample>]) -> Vec<&'a Sample> {
    let same = |sample: &&Sample| sample.direction == place.direction && sample.flow == place.flow;
    samples.iter().flat_map(|interval| interval.iter().filter(same)).collect()
}

/// The growth of a counter of nanoseconds in each interval, over the interval; absent where the
/// counter is.
fn interval_shares(samples: &[&Sample], pick: fn(&Sample) -> Option<u64>) -> Vec<Option<f64>> {
    let mut before = (0, Some(0));
    samples
        .iter()
        .map(|sample| {
            let now = (sample.t_ns, pick(sample));
            let (t_ns, spent) = std::mem::replace(&mut before, now);
            let span = sample.t_ns.checked_sub(t_ns).filter(|span| *span > 0)?;
            Some(now.1?.saturating_sub(spent?) as f64 / span as f64)
        })
        .collect()
}

/// The rate of each interval from the times and bytes at their ends; absent in the rest after the
/// last whole one, which is too short to stand beside the others.
fn interval_rates(points: impl Iterator<Item = (u64, u64)>, span_ns_min: u64) -> Vec<Option<f64>> {
    let mut before = (0, 0);
    let rates = points.map(|now| {
        let (t_ns, bytes) = std::mem::replace(&mut before, now);
        let span = now.0.saturating_sub(t_ns);
        let comparable = span > 0 && span >= span_ns_min;
        comparable.then(|| rate_bps(now.1.saturating_sub(bytes), span))
    });
    rates.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(t_ns: u64, bytes: u64, cpu_ns: Option<u64>) -> Sample {
        Sample { bytes, cpu_ns, ..Sample::empty_at(Direction::Up, 0, t_ns) }
    }

    /// The end that the goodput of a stream of one sample is of.
    fn goodput_of(direction: Direction, one_sided: bool) -> Option<FlowSide> {
        let samples =
            vec![vec![Sample { bytes: 100, ..Sample::empty_at(direction, 0, 1_000_000_000) }]];
        let (local_samples, remote_samples) = (samples.clone(), samples);
        let mut account =
            Account { one_sided, local_samples, remote_samples, ..Account::default() };
        account.connected(direction, 0, "192.0.2.1:1", ([192, 0, 2, 2], 5210).into());
        let all = series(&account.connections[0], &account);
        all.iter().find(|series| series.metric == MetricId::Goodput)?.side
    }

    #[test]
    fn a_rate_is_the_receiver_s_but_where_the_server_that_receives_tells_nothing() {
        for (direction, one_sided, side) in [
            (Direction::Up, false, FlowSide::Receiver),
            (Direction::Up, true, FlowSide::Sender),
            (Direction::Down, false, FlowSide::Receiver),
            (Direction::Down, true, FlowSide::Receiver),
        ] {
            assert_eq!(goodput_of(direction, one_sided), Some(side), "{direction:?} {one_sided}");
        }
    }

    #[test]
    fn the_flow_in_the_background_has_the_reports_of_its_direction() {
        let mut account = Account::default();
        let server = ([192, 0, 2, 2], 5210).into();
        account.connected_background(Direction::Down, "192.0.2.1:1", server);
        let end = |bytes| FlowEnd { bytes_measured: bytes, ..FlowEnd::default() };
        account.local = vec![
            EndReport::from_flow_end(Direction::Up, 0, end(7)),
            EndReport::from_flow_end(Direction::Down, 0, end(5)),
        ];
        account.remote = vec![EndReport::from_flow_end(Direction::Down, 0, end(6))];
        let found = flow_from_reports(account.background.as_ref().expect("it was noted"), &account);
        let bytes = [found.sender, found.receiver].map(|end| end.map(|end| end.bytes_measured));
        assert_eq!(bytes, [Some(6), Some(5)]);
    }

    #[test]
    fn shares_and_rates_are_differences_over_their_own_intervals() {
        let samples =
            [sample(100, 50, Some(80)), sample(300, 100, Some(130)), sample(400, 100, None)];
        let samples: Vec<&Sample> = samples.iter().collect();
        // 80 of 100, then 50 of 200, then the thread has ended.
        let shares = interval_shares(&samples, |sample| sample.cpu_ns);
        assert_eq!(shares, [Some(0.8), Some(0.25), None]);
        // 50 bytes in 100 ns are 4 Gbit/s, 50 in 200 ns are 2, then nothing.
        let rates = |least| {
            let points = samples.iter().map(|sample| (sample.t_ns, sample.bytes));
            interval_rates(points, least)
        };
        assert_eq!(rates(0), [Some(4e9), Some(2e9), Some(0.0)]);
        assert_eq!(rates(150), [None, Some(2e9), None]);
    }
}
