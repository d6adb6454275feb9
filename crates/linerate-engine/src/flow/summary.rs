//! The summary of one direction: what its streams carried together, from both ends' reports.

use linerate_core::record::{
    DatagramTally, DelayVariation, Direction, Flow, FlowEnd, FlowSide, MetricId, ReceivedDatagrams,
    SentDatagrams, Stat, Summary, TcpInfo, dropped_at_interface,
};
use linerate_core::stats::jain_index;

use super::account::rate_bps;

/// Every summary row of one direction.
pub(super) fn direction_summary(
    flows: &[&Flow],
    direction: Direction,
    one_sided: bool,
) -> Vec<Summary> {
    let mut rows = totals(flows, one_sided);
    rows.extend(count_rows(flows));
    rows.extend(sender_rows(flows));
    rows.extend(datagram_sender_rows(flows));
    rows.extend(delay_rows(flows));
    rows.extend(return_rows(flows));
    rows.extend(cpu_rows(flows));
    let rates: Vec<f64> = flows.iter().filter_map(|flow| goodput(flow, one_sided)).collect();
    if rates.len() > 1 {
        let fairness = jain_index(&rates);
        rows.extend(
            fairness.map(|index| Summary::from_value(MetricId::Fairness, Stat::Value, index)),
        );
        for flow in flows {
            let row = goodput(flow, one_sided)
                .map(|rate| Summary::from_value(MetricId::Goodput, Stat::Value, rate));
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
        Summary::from_value(MetricId::Goodput, Stat::Value, rate_bps(bytes, last - first))
            .with_n(n),
        Summary::from_value(MetricId::Bytes, Stat::Value, bytes as f64).with_n(n),
        Summary::from_value(MetricId::Span, Stat::Value, (last - first) as f64).with_n(n),
    ]
}

/// The rows of the sending kernels' counters.
fn sender_rows(flows: &[&Flow]) -> Vec<Summary> {
    let senders: Vec<&FlowEnd> = flows.iter().filter_map(|flow| flow.sender.as_ref()).collect();
    let infos: Vec<_> = senders.iter().filter_map(|end| end.tcp_info).collect();
    let mut rows = Vec::new();
    let mut push = |metric, stat, value: Option<f64>| {
        rows.extend(value.map(|value| Summary::from_value(metric, stat, value)));
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

/// The rows of the receiving kernels' counters of what they sent back.
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
    let back =
        back.map(|back| Summary::from_value(MetricId::ReturnSegments, Stat::Value, back as f64));
    let ratio = ratio.map(|ratio| Summary::from_value(MetricId::ReturnRatio, Stat::Value, ratio));
    back.into_iter().chain(ratio).collect()
}

/// Processor time of both ends, and waiting for a processor.
pub(crate) fn cpu_rows(flows: &[&Flow]) -> Vec<Summary> {
    let mut rows = Vec::new();
    let ends = [
        (FlowSide::Sender, MetricId::CpuSender, MetricId::CpuShareSender),
        (FlowSide::Receiver, MetricId::CpuReceiver, MetricId::CpuShareReceiver),
    ];
    for (side, per_gb, share) in ends {
        let ends: Vec<&FlowEnd> = flows
            .iter()
            .filter_map(|flow| match side {
                FlowSide::Sender => flow.sender.as_ref(),
                FlowSide::Receiver => flow.receiver.as_ref(),
            })
            .collect();
        let cpu: Option<u64> = ends.iter().map(|end| cpu_ns(end)).sum();
        let bytes: u64 = ends.iter().map(|end| end.bytes).sum();
        if let Some(cpu) = cpu.filter(|_| bytes > 0) {
            rows.push(Summary::from_value(per_gb, Stat::Value, cpu as f64 / bytes as f64));
        }
        let busiest = ends.iter().filter_map(|end| cpu_share(end)).reduce(f64::max);
        rows.extend(busiest.map(|value| Summary::from_value(share, Stat::Max, value)));
    }
    let ends = flows.iter().flat_map(|flow| [&flow.sender, &flow.receiver]).flatten();
    let waited = ends.filter_map(run_queue_share).reduce(f64::max);
    rows.extend(waited.map(|value| Summary::from_value(MetricId::RunQueueWait, Stat::Max, value)));
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

/// The rows of all streams' datagrams: sent, received, lost, and how fast they came.
fn count_rows(flows: &[&Flow]) -> Vec<Summary> {
    let tallies = flows.iter().filter_map(|flow| Some(received(flow)?.measured));
    let tallies: Vec<DatagramTally> = tallies.collect();
    if tallies.is_empty() {
        return Vec::new();
    }
    let sum = |pick: fn(&DatagramTally) -> u64| tallies.iter().map(pick).sum::<u64>();
    let (received, lost) = (sum(|tally| tally.received), sum(|tally| tally.lost));
    let row = |metric, value: f64| Summary::from_value(metric, Stat::Value, value);
    let mut rows = vec![
        row(MetricId::DatagramsReceived, received as f64),
        row(MetricId::DatagramsLost, lost as f64),
        row(MetricId::DatagramDuplicates, sum(|tally| tally.duplicates) as f64),
        row(MetricId::DatagramsReordered, sum(|tally| tally.reordered) as f64),
    ];
    let here = sum(|tally| tally.lost_here);
    // Another program's receiver does not tell what its own socket dropped.
    let mut ends = flows.iter().filter_map(|flow| self::received(flow));
    if here > 0 || ends.any(|datagrams| datagrams.socket_drops.is_some()) {
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
    let rate =
        span.filter(|span| span.value > 0.0).map(|summary| received as f64 * 1e9 / summary.value);
    rows.extend(rate.map(|rate| row(MetricId::DatagramRate, rate)));
    rows
}

/// The rows of the senders of datagrams.
fn datagram_sender_rows(flows: &[&Flow]) -> Vec<Summary> {
    let senders = flows.iter().filter_map(|flow| flow.sender.as_ref());
    let senders: Vec<(&FlowEnd, &SentDatagrams)> =
        senders.filter_map(|end| Some((end, end.sent_datagrams.as_ref()?))).collect();
    if senders.is_empty() {
        return Vec::new();
    }
    let measured: u64 = senders.iter().map(|(_, sent)| sent.measured).sum();
    let rates = senders.iter().map(|(end, _)| rate_bps(end.bytes_measured, end.span_ns));
    let mut rows = vec![
        Summary::from_value(MetricId::DatagramsSent, Stat::Value, measured as f64),
        Summary::from_value(MetricId::SendRate, Stat::Value, rates.sum()),
    ];
    let busiest = senders.iter().filter_map(|(_, sent)| sent.pace?.busiest_1ms_ratio);
    let busiest = busiest.reduce(f64::max);
    rows.extend(busiest.map(|ratio| Summary::from_value(MetricId::BusiestMs, Stat::Max, ratio)));
    rows
}

/// How delays varied: the worst stream's.
fn delay_rows(flows: &[&Flow]) -> Vec<Summary> {
    let delays: Vec<_> = flows.iter().filter_map(|flow| received(flow)?.delay).collect();
    let n: u64 = delays.iter().map(|delay| delay.n).sum();
    let mut rows = Vec::new();
    let mut push = |metric, stat, value: Option<u64>| {
        rows.extend(value.map(|ns| Summary::from_value(metric, stat, ns as f64).with_n(n)));
    };
    let most = |pick: fn(&DelayVariation) -> Option<u64>| delays.iter().filter_map(pick).max();
    push(MetricId::JitterRfc3550, Stat::Value, most(|delay| delay.jitter_ns));
    push(MetricId::Pdv, Stat::P50, most(|delay| delay.pdv_p50_ns));
    push(MetricId::Pdv, Stat::P99, most(|delay| delay.pdv_p99_ns));
    push(MetricId::Pdv, Stat::Max, most(|delay| delay.pdv_max_ns));
    rows
}

fn received(flow: &Flow) -> Option<&ReceivedDatagrams> {
    flow.receiver.as_ref()?.received_datagrams.as_ref()
}

#[cfg(test)]
mod tests {
    use super::*;

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
