//! The lines of nuttcp 6.1.2: MB is 2^20 bytes, Mbps 10^6 bit/s.

use linerate_core::record::{Direction, FlowEnd, IntervalRow, MetricId, Record, Side, Stat};
use linerate_proto::nuttcp::{Interval, Summary};

use super::asked::Asked;

/// A row of `-i` of a test in which this end receives.
pub(super) fn interval(row: &IntervalRow, parse: bool) -> String {
    let seconds = (row.end_ns - row.start_ns) as f64 / 1e9;
    let interval = Interval {
        retransmits: row.retransmits,
        datagrams: row.datagrams.map(|it| (it.lost, it.received.cast_signed() + it.lost)),
        ..Interval::of(row.bytes, seconds)
    };
    interval.to_line(parse)
}

/// The line of the whole test; `told` is what the server told of its end.
pub(super) fn result(asked: &Asked, record: &Record, told: Option<&Summary>) -> String {
    let direction = if asked.receives { Direction::Down } else { Direction::Up };
    let value = |metric, stat| record.value(metric, stat, Some(direction));
    let bytes = value(MetricId::Bytes, Stat::Value).unwrap_or(0.0);
    let seconds = value(MetricId::Span, Stat::Value).unwrap_or(0.0) / 1e9;
    let parse = asked.parse;
    let figures = Interval::of(bytes as u64, seconds).to_line(parse);
    let mut line = figures.replace("real_sec=", "real_seconds=");
    for (side, name, key) in [(Side::Sender, "%TX", "tx_cpu"), (Side::Receiver, "%RX", "rx_cpu")] {
        let own = (side == Side::Receiver) == asked.receives;
        let share = if own { share(record, direction, side) } else { told.and_then(told_share) };
        if let Some(share) = share {
            let percent = (share * 100.0).round();
            line += &if parse { format!(" {key}={percent}") } else { format!(" {percent} {name}") };
        }
    }
    line += &match asked.udp {
        true => losses(asked, record, direction),
        false => retransmits(asked, record, direction, told),
    };
    line
}

fn losses(asked: &Asked, record: &Record, direction: Direction) -> String {
    let value = |metric| record.value(metric, Stat::Value, Some(direction)).unwrap_or(0.0);
    let lost = value(MetricId::DatagramsLost);
    let all = value(MetricId::DatagramsReceived) + lost;
    let percent = if all > 0.0 { lost * 100.0 / all } else { 0.0 };
    let (parse, mut text) = (asked.parse, String::new());
    if !asked.hidden.drops {
        text += &match parse {
            true => format!(" drop={lost} pkt={all}"),
            false => format!(" {lost} / {all} drop/pkt"),
        };
    }
    if !asked.hidden.percent {
        text += &match parse {
            true => format!(" data_loss={percent:.5}"),
            false => format!(" {percent:.2} %loss"),
        };
    }
    text
}

fn retransmits(
    asked: &Asked,
    record: &Record,
    direction: Direction,
    told: Option<&Summary>,
) -> String {
    let value = |metric, stat| record.value(metric, stat, Some(direction));
    let (parse, mut text) = (asked.parse, String::new());
    let count = value(MetricId::Retransmits, Stat::Value).map(|count| count as u64);
    let count = count.or_else(|| told?.retransmits).filter(|_| !asked.hidden.retransmits);
    if let Some(count) = count {
        text += &if parse { format!(" retrans={count}") } else { format!(" {count} retrans") };
    }
    let rtt = value(MetricId::TcpRttMin, Stat::Min).filter(|_| !asked.hidden.rtt);
    if let Some(ns) = rtt {
        let ms = ns / 1e6;
        text += &if parse { format!(" rtt_ms={ms:.2}") } else { format!(" {ms:.2} msRTT") };
    }
    text
}

/// Processor time of the server's end.
fn told_share(told: &Summary) -> Option<f64> {
    Some(told.cpu_seconds? / told.seconds.filter(|seconds| *seconds > 0.0)?)
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
        assert!(line.starts_with("megabytes=1458.3125 real_sec=0.50 rate_Mbps=2439"), "{line}");
    }
}
