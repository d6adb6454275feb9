//! The lines of nuttcp 6.1.2: MB is 2^20 bytes, Mbps 10^6 bit/s.

use linerate_core::record::{Direction, FlowEnd, IntervalRow, MetricId, Record, Side, Stat};

const MB: f64 = 1_048_576.0;

/// A row of `-i`.
pub(super) fn interval(row: &IntervalRow, parse: bool) -> String {
    let seconds = (row.end_ns - row.start_ns) as f64 / 1e9;
    let line = amounts(row.bytes as f64, seconds, parse);
    match (row.retransmits, parse) {
        (Some(count), false) => format!("{line} {count:5} retrans"),
        (Some(count), true) => format!("{line} retrans={count}"),
        (None, _) => line,
    }
}

/// The line of the whole test.
pub(super) fn result(record: &Record, direction: Direction, parse: bool) -> String {
    let value = |metric, stat| record.value(metric, stat, Some(direction));
    let bytes = value(MetricId::Bytes, Stat::Value).unwrap_or(0.0);
    let seconds = value(MetricId::Span, Stat::Value).unwrap_or(0.0) / 1e9;
    let mut line = amounts(bytes, seconds, parse);
    for (side, name, key) in [(Side::Sender, "%TX", "tx_cpu"), (Side::Receiver, "%RX", "rx_cpu")] {
        if let Some(share) = share(record, direction, side) {
            let percent = (share * 100.0).round();
            line += &if parse { format!(" {key}={percent}") } else { format!(" {percent} {name}") };
        }
    }
    if let Some(count) = value(MetricId::Retransmits, Stat::Value) {
        line += &if parse { format!(" retrans={count}") } else { format!(" {count} retrans") };
    }
    if let Some(ns) = value(MetricId::TcpRttMin, Stat::Min) {
        let ms = ns / 1e6;
        line += &if parse { format!(" rtt_ms={ms:.2}") } else { format!(" {ms:.2} msRTT") };
    }
    line
}

fn amounts(bytes: f64, seconds: f64, parse: bool) -> String {
    let (mb, mbps) = (bytes / MB, if seconds > 0.0 { bytes * 8e-6 / seconds } else { 0.0 });
    if parse {
        format!("megabytes={mb:.4} real_seconds={seconds:.2} rate_Mbps={mbps:.4}")
    } else {
        format!("{mb:10.4} MB / {seconds:6.2} sec = {mbps:9.4} Mbps")
    }
}

/// Processor time of all streams of a side over the longest span, where it is known.
fn share(record: &Record, direction: Direction, side: Side) -> Option<f64> {
    let flows = record.flows.iter().filter(|flow| flow.direction == direction);
    let ends = flows.map(|flow| match side {
        Side::Sender => flow.sender.as_ref(),
        Side::Receiver => flow.receiver.as_ref(),
    });
    let ends: Vec<&FlowEnd> = ends.collect::<Option<_>>()?;
    let spent = |end: &&FlowEnd| Some(end.cpu_user_ns? + end.cpu_system_ns?);
    let spent: u64 = ends.iter().map(spent).sum::<Option<u64>>()?;
    let span = ends.iter().map(|end| end.span_ns).max().filter(|span| *span > 0)?;
    Some(spent as f64 / span as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_the_columns_of_the_original() {
        // 1458.3125 MB in 0.5 s and a little: recorded from 6.1.2 with -i.5.
        let row = IntervalRow {
            start_ns: 0,
            end_ns: 501_550_000,
            direction: Direction::Up,
            flow: None,
            bytes: 1_529_151_488,
            goodput_bps: 0.0,
            retransmits: Some(0),
            cwnd_bytes: None,
            rtt_ns: None,
            rtt_var_ns: None,
            send_window_bytes: None,
            pmtu_bytes: None,
            datagrams: None,
            omitted: false,
        };
        // 1,529,151,488 × 8 / 0.50155 s = 24,390.81 Mbit/s.
        let line = interval(&row, false);
        let (figures, rest) = line.split_at(31);
        assert_eq!(figures, " 1458.3125 MB /   0.50 sec = 24");
        assert!(rest.ends_with(" Mbps     0 retrans"), "{line}");
        let line = interval(&row, true);
        assert!(line.starts_with("megabytes=1458.3125 real_seconds=0.50 rate_Mbps=2439"), "{line}");
    }
}
