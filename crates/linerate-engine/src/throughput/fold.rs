//! From what was gathered to the record: flows, series, summary.

use linerate_core::record::{
    Direction, End, Flow, FlowEnd, MetricId, Record, Series, Side, Stat, Summary, TcpInfo, TcpPlan,
};

use linerate_core::stats::jain_index;
use linerate_proto::native::{EndReport, FlowSample};

use super::account::{Account, Connection, rate_bps};
use super::caveats::caveats;
use super::ceiling::{Sight, see};
use super::client::{client_side, has};

/// Fills `record` with everything that `account` knows.
pub(crate) fn fold(record: &mut Record, plan: &TcpPlan, account: &Account) {
    record.ends = ends(account);
    record.flows = account.connections.iter().map(|place| flow(place, account)).collect();
    for direction in [Direction::Up, Direction::Down] {
        if has(plan.directions, direction) {
            let flows: Vec<&Flow> =
                record.flows.iter().filter(|flow| flow.direction == direction).collect();
            let summary = direction_summary(&flows, direction, account.one_sided);
            record.summary.extend(summary);
        }
    }
    if let Some(place) = &account.background {
        let background = flow(place, account);
        let rate = goodput(&background, false);
        let row = rate.map(|rate| Summary::of(MetricId::Background, Stat::Value, rate));
        record.summary.extend(row.map(|row| row.in_direction(place.direction)));
        record.background = Some(background);
    }
    record.trials.clone_from(&account.trials);
    record.series = series(account);
    see(record, Sight::Plans);
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
            |report: &&EndReport| report.direction == place.direction && report.flow == place.flow;
        reports.iter().find(same).cloned()
    };
    let (local, remote) = (of(&account.local), of(&account.remote));
    let syn = remote.as_ref().and_then(|report| report.syn);
    let local = local.map(|report| report.end);
    // A server that went away has left its samples.
    let remote = remote.map(|report| report.end).or_else(|| last_sample(place, account));
    let (sender, receiver) = match client_side(place.direction) {
        Side::Sender => (local, remote),
        Side::Receiver => (remote, local),
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

/// What the last sample of the server tells of a stream.
fn last_sample(place: &Connection, account: &Account) -> Option<FlowEnd> {
    let samples = account.remote_samples.last()?;
    let sample = samples
        .iter()
        .find(|sample| sample.direction == place.direction && sample.flow == place.flow)?;
    Some(FlowEnd {
        bytes: sample.bytes,
        bytes_measured: sample.bytes,
        span_ns: sample.t_ns,
        window_advertised_bytes_max: sample.receive_window_bytes,
        window_offered_bytes_max: sample.send_window_bytes,
        ..FlowEnd::default()
    })
}

/// Every summary row of one direction.
fn direction_summary(flows: &[&Flow], direction: Direction, one_sided: bool) -> Vec<Summary> {
    let mut rows = totals(flows, one_sided);
    rows.extend(sender_rows(flows));
    rows.extend(return_rows(flows));
    rows.extend(cpu_rows(flows));
    let rates: Vec<f64> = flows.iter().filter_map(|flow| goodput(flow, one_sided)).collect();
    if rates.len() > 1 {
        let fairness = jain_index(&rates);
        rows.extend(fairness.map(|index| Summary::of(MetricId::Fairness, Stat::Value, index)));
        for flow in flows {
            let row = goodput(flow, one_sided)
                .map(|rate| Summary::of(MetricId::Goodput, Stat::Value, rate));
            rows.extend(row.map(|row| row.of_flow(flow.flow)));
        }
    }
    rows.into_iter().map(|row| row.in_direction(direction)).collect()
}

/// The end whose count is the result: the receiver, or the sender that alone is known.
fn counting(flow: &Flow, one_sided: bool) -> Option<&FlowEnd> {
    let end = flow.receiver.as_ref().or_else(|| flow.sender.as_ref().filter(|_| one_sided));
    end.filter(|end| end.span_ns > 0)
}

/// A stream's payload rate at the end that counts.
pub(crate) fn goodput(flow: &Flow, one_sided: bool) -> Option<f64> {
    counting(flow, one_sided).map(|end| rate_bps(end.bytes_measured, end.span_ns))
}

/// Bytes, span and rate of all streams together: from the first stream's first byte to the last
/// stream's last.
pub(crate) fn totals(flows: &[&Flow], one_sided: bool) -> Vec<Summary> {
    let ends: Vec<&FlowEnd> = flows.iter().filter_map(|flow| counting(flow, one_sided)).collect();
    let first = ends.iter().map(|end| end.span_start_ns).min();
    let last = ends.iter().map(|end| end.span_start_ns + end.span_ns).max();
    let (Some(first), Some(last)) = (first, last) else { return Vec::new() };
    let bytes: u64 = ends.iter().map(|end| end.bytes_measured).sum();
    let n = ends.len() as u64;
    vec![
        Summary::of(MetricId::Goodput, Stat::Value, rate_bps(bytes, last - first)).with_n(n),
        Summary::of(MetricId::Bytes, Stat::Value, bytes as f64).with_n(n),
        Summary::of(MetricId::Span, Stat::Value, (last - first) as f64).with_n(n),
    ]
}

/// What the sending kernels tell.
fn sender_rows(flows: &[&Flow]) -> Vec<Summary> {
    let senders: Vec<&FlowEnd> = flows.iter().filter_map(|flow| flow.sender.as_ref()).collect();
    let infos: Vec<_> = senders.iter().filter_map(|end| end.tcp_info).collect();
    let mut rows = Vec::new();
    let mut push = |metric, stat, value: Option<f64>| {
        rows.extend(value.map(|value| Summary::of(metric, stat, value)));
    };
    let sum = |values: Option<u64>| values.map(|value| value as f64);
    let sent: u64 = senders.iter().map(|end| end.bytes).sum();
    push(MetricId::BytesSent, Stat::Value, (!senders.is_empty()).then_some(sent as f64));
    if infos.is_empty() {
        return rows;
    }
    let retransmits: Option<u64> = infos.iter().map(|info| info.total_retrans.map(u64::from)).sum();
    let segments: Option<u64> = infos.iter().map(|info| info.data_segs_out.map(u64::from)).sum();
    push(MetricId::Retransmits, Stat::Value, sum(retransmits));
    let ratio = retransmits.zip(segments).filter(|(_, segments)| *segments > 0);
    push(MetricId::RetransmitRatio, Stat::Value, ratio.map(|(re, all)| re as f64 / all as f64));
    let rtt_min = infos.iter().filter_map(|info| info.min_rtt_us).min();
    push(MetricId::TcpRttMin, Stat::Min, rtt_min.map(|us| f64::from(us) * 1000.0));
    let rtt = infos.iter().filter_map(|info| info.rtt_us).max();
    push(MetricId::TcpRtt, Stat::Value, rtt.map(|us| f64::from(us) * 1000.0));
    let cwnd: Option<u64> = infos.iter().map(TcpInfo::cwnd_bytes).sum();
    push(MetricId::Cwnd, Stat::Value, sum(cwnd));
    let offered = senders.iter().filter_map(|end| end.window_offered_bytes_max).max();
    push(MetricId::SendWindow, Stat::Max, sum(offered));
    rows
}

/// What the receiving kernels sent back.
fn return_rows(flows: &[&Flow]) -> Vec<Summary> {
    let infos: Option<Vec<_>> =
        flows.iter().map(|flow| flow.receiver.as_ref().and_then(|end| end.tcp_info)).collect();
    let infos = infos.unwrap_or_default();
    let sum = |pick: fn(&TcpInfo) -> Option<u32>| -> Option<u64> {
        infos.iter().map(|info| pick(info).map(u64::from)).sum()
    };
    let back = sum(|info| info.segs_out).filter(|_| !infos.is_empty());
    let data = sum(|info| info.data_segs_in).filter(|data| *data > 0);
    let ratio = back.zip(data).map(|(back, data)| back as f64 / data as f64);
    let back = back.map(|back| Summary::of(MetricId::ReturnSegments, Stat::Value, back as f64));
    let ratio = ratio.map(|ratio| Summary::of(MetricId::ReturnRatio, Stat::Value, ratio));
    back.into_iter().chain(ratio).collect()
}

/// Processor time of both ends, and waiting for a processor.
pub(crate) fn cpu_rows(flows: &[&Flow]) -> Vec<Summary> {
    let mut rows = Vec::new();
    let ends = [
        (Side::Sender, MetricId::CpuSender, MetricId::CpuShareSender),
        (Side::Receiver, MetricId::CpuReceiver, MetricId::CpuShareReceiver),
    ];
    for (side, per_gb, share) in ends {
        let ends: Vec<&FlowEnd> = flows
            .iter()
            .filter_map(|flow| match side {
                Side::Sender => flow.sender.as_ref(),
                Side::Receiver => flow.receiver.as_ref(),
            })
            .collect();
        let cpu: Option<u64> = ends.iter().map(|end| cpu_ns(end)).sum();
        let bytes: u64 = ends.iter().map(|end| end.bytes).sum();
        if let Some(cpu) = cpu.filter(|_| bytes > 0) {
            rows.push(Summary::of(per_gb, Stat::Value, cpu as f64 / bytes as f64));
        }
        let busiest = ends.iter().filter_map(|end| cpu_share(end)).reduce(f64::max);
        rows.extend(busiest.map(|value| Summary::of(share, Stat::Max, value)));
    }
    let ends = flows.iter().flat_map(|flow| [&flow.sender, &flow.receiver]).flatten();
    let waited = ends.filter_map(run_queue_share).reduce(f64::max);
    rows.extend(waited.map(|value| Summary::of(MetricId::RunQueueWait, Stat::Max, value)));
    rows
}

/// User and system time of a stream's data thread.
pub(crate) fn cpu_ns(end: &FlowEnd) -> Option<u64> {
    Some(end.cpu_user_ns? + end.cpu_system_ns?)
}

/// Processor time of a stream's data thread over its span.
pub(crate) fn cpu_share(end: &FlowEnd) -> Option<f64> {
    let span = end.span_start_ns + end.span_ns;
    (span > 0).then_some(cpu_ns(end)? as f64 / span as f64)
}

/// Time without a processor of a stream's data thread over its span.
pub(crate) fn run_queue_share(end: &FlowEnd) -> Option<f64> {
    let span = end.span_start_ns + end.span_ns;
    (span > 0).then_some(end.run_queue_wait_ns? as f64 / span as f64)
}

/// Values over time of every stream, from the end that knows them best.
fn series(account: &Account) -> Vec<Series> {
    let mut all = Vec::new();
    for place in &account.connections {
        let (sent, received) = match client_side(place.direction) {
            Side::Sender => (&account.local_samples, &account.remote_samples),
            Side::Receiver => (&account.remote_samples, &account.local_samples),
        };
        let sent = samples_of(place, sent);
        let received = samples_of(place, received);
        let build = |metric, side, samples: &[&FlowSample], values: Vec<Option<f64>>| Series {
            metric,
            direction: Some(place.direction),
            flow: Some(place.flow),
            side: Some(side),
            payload_bytes: None,
            t_ns: samples.iter().map(|sample| sample.t_ns).collect(),
            values,
        };
        // What the sender's kernel saw acknowledged stands in for a count that nobody tells.
        let (counted, side) = match received.is_empty() && account.one_sided {
            true => (&sent, Side::Sender),
            false => (&received, Side::Receiver),
        };
        let rates = interval_rates(counted, account.row_ns_min);
        all.push(build(MetricId::Goodput, side, counted, rates));
        type Pick = fn(&FlowSample) -> Option<u64>;
        let picks: [(MetricId, Side, Pick); 6] = [
            (MetricId::ReceiveWindow, Side::Receiver, |sample| sample.receive_window_bytes),
            (MetricId::Cwnd, Side::Sender, |sample| sample.cwnd_bytes),
            (MetricId::TcpRtt, Side::Sender, |sample| sample.rtt_ns),
            (MetricId::Retransmits, Side::Sender, |sample| sample.retransmits),
            (MetricId::SendWindow, Side::Sender, |sample| sample.send_window_bytes),
            (MetricId::DeliveryRate, Side::Sender, |sample| sample.delivery_rate_bps),
        ];
        let shares: [(MetricId, Side, Pick); 4] = [
            (MetricId::CpuShareSender, Side::Sender, |sample| sample.cpu_ns),
            (MetricId::CpuShareReceiver, Side::Receiver, |sample| sample.cpu_ns),
            (MetricId::RunQueueWait, Side::Sender, |sample| sample.run_queue_wait_ns),
            (MetricId::RunQueueWait, Side::Receiver, |sample| sample.run_queue_wait_ns),
        ];
        let levels = picks.map(|(metric, side, pick)| (metric, side, pick, false));
        let shares = shares.map(|(metric, side, pick)| (metric, side, pick, true));
        for (metric, side, pick, share) in levels.into_iter().chain(shares) {
            let samples = if side == Side::Sender { &sent } else { &received };
            let values: Vec<_> = if share {
                interval_shares(samples, pick)
            } else {
                samples.iter().map(|sample| pick(sample).map(|value| value as f64)).collect()
            };
            if values.iter().any(Option::is_some) {
                all.push(build(metric, side, samples, values));
            }
        }
    }
    all
}

fn samples_of<'a>(place: &Connection, samples: &'a [Vec<FlowSample>]) -> Vec<&'a FlowSample> {
    let same =
        |sample: &&FlowSample| sample.direction == place.direction && sample.flow == place.flow;
    samples.iter().flat_map(|interval| interval.iter().filter(same)).collect()
}

/// What a counter of nanoseconds grew by in each interval, over the interval; absent where the
/// counter is.
fn interval_shares(
    samples: &[&FlowSample],
    pick: fn(&FlowSample) -> Option<u64>,
) -> Vec<Option<f64>> {
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

/// The rate of each interval; absent in the rest after the last whole one, which is too short to
/// stand beside the others.
fn interval_rates(samples: &[&FlowSample], span_ns_min: u64) -> Vec<Option<f64>> {
    let mut before = (0, 0);
    samples
        .iter()
        .map(|sample| {
            let (t_ns, bytes) = std::mem::replace(&mut before, (sample.t_ns, sample.bytes));
            let span = sample.t_ns.saturating_sub(t_ns);
            let comparable = span > 0 && span >= span_ns_min;
            comparable.then(|| rate_bps(sample.bytes.saturating_sub(bytes), span))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(t_ns: u64, bytes: u64, cpu_ns: Option<u64>) -> FlowSample {
        FlowSample {
            direction: Direction::Up,
            flow: 0,
            t_ns,
            bytes,
            retransmits: None,
            cwnd_bytes: None,
            rtt_ns: None,
            send_window_bytes: None,
            receive_window_bytes: None,
            delivery_rate_bps: None,
            rtt_var_ns: None,
            pmtu_bytes: None,
            cpu_ns,
            run_queue_wait_ns: None,
        }
    }

    #[test]
    fn shares_and_rates_are_differences_over_their_own_intervals() {
        let samples =
            [sample(100, 50, Some(80)), sample(300, 100, Some(130)), sample(400, 100, None)];
        let samples: Vec<&FlowSample> = samples.iter().collect();
        // 80 of 100, then 50 of 200, then the thread has ended.
        let shares = interval_shares(&samples, |sample| sample.cpu_ns);
        assert_eq!(shares, [Some(0.8), Some(0.25), None]);
        // 50 bytes in 100 ns are 4 Gbit/s, 50 in 200 ns are 2, then nothing.
        assert_eq!(interval_rates(&samples, 0), [Some(4e9), Some(2e9), Some(0.0)]);
        assert_eq!(interval_rates(&samples, 150), [None, Some(2e9), None]);
    }

    #[test]
    fn streams_together_are_their_bytes_from_the_first_begin_to_the_last_end() {
        let end = |span_start_ns, span_ns, bytes_measured| FlowEnd {
            span_start_ns,
            span_ns,
            bytes_measured,
            ..FlowEnd::default()
        };
        let flow = |receiver| Flow {
            flow: 0,
            direction: Direction::Up,
            client_addr: String::new(),
            server_addr: String::new(),
            sender: None,
            receiver: Some(receiver),
            syn: None,
        };
        let flows =
            [flow(end(0, 1_000_000_000, 1000)), flow(end(500_000_000, 1_500_000_000, 3000))];
        let rows = totals(&flows.iter().collect::<Vec<_>>(), false);
        // 4000 bytes in 2 s are 16 kbit/s.
        assert_eq!((rows[0].metric, rows[0].value), (MetricId::Goodput, 16_000.0));
    }
}
