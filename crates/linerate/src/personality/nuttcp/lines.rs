//! The lines of nuttcp 6.1.2: MB is 2^20 bytes, Mbps 10^6 bit/s.

use linerate_core::record::{Direction, FlowEnd, FlowSide, IntervalRow, MetricId, Record, Stat};
use linerate_proto::nuttcp::{NuttcpInterval, NuttcpSummary, Timed};

use super::asked::NuttcpOptions;
use crate::personality::together;

/// A row of `-i` of a test in which this end receives.
pub(super) fn interval(row: &IntervalRow, parse: bool) -> String {
    let seconds = (row.end_ns - row.start_ns) as f64 / 1e9;
    let interval = NuttcpInterval {
        retransmits: row.retransmits,
        datagrams: row
            .datagrams
            .map(|counts| (counts.lost, counts.received.cast_signed() + counts.lost)),
        ..NuttcpInterval::from_bytes(row.bytes, seconds)
    };
    interval.to_line(parse)
}

/// A row of the server, for programs: with the columns behind the usual ones too.
pub(super) fn server_row(interval: &NuttcpInterval, line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    let mut row = interval.to_line(true);
    for pair in words.windows(2) {
        // `3.5460 msMaxJitter` is `msmaxjitter=3.5460`, `0.1651 msAvgOWD` is `msavgOWD=0.1651`.
        let name = pair[1].strip_prefix("ms").filter(|name| name.len() > 3);
        let Some((which, what)) = name.and_then(|name| name.split_at_checked(3)) else { continue };
        let what = if what == "Jitter" { "jitter" } else { what };
        row += &format!(" ms{}{what}={}", which.to_ascii_lowercase(), pair[0]);
    }
    row
}

/// The line of the whole test; `told` is the server's summary at its end.
pub(super) fn result(
    asked: &NuttcpOptions,
    record: &Record,
    told: Option<&NuttcpSummary>,
) -> String {
    let direction = if asked.receives { Direction::Down } else { Direction::Up };
    let value = |metric, stat| record.summary_value(metric, stat, Some(direction));
    let (bytes, seconds) = match asked.receives && !asked.udp {
        // What was still on the way after the test's time is not of its span.
        true => together(record.flows.iter().filter_map(|flow| flow.receiver.as_ref())),
        false => {
            let bytes = value(MetricId::Bytes, Stat::Value).unwrap_or(0.0) as u64;
            (bytes, value(MetricId::Span, Stat::Value).unwrap_or(0.0) / 1e9)
        }
    };
    let parse = asked.parse;
    let figures = NuttcpInterval::from_bytes(bytes, seconds).to_line(parse);
    let mut line = figures.replace("real_sec=", "real_seconds=");
    for (side, name, key) in
        [(FlowSide::Sender, "%TX", "tx_cpu"), (FlowSide::Receiver, "%RX", "rx_cpu")]
    {
        let own = (side == FlowSide::Receiver) == asked.receives;
        let share =
            if own { cpu_share(record, direction, side) } else { told.and_then(reported_share) };
        if let Some(share) = share {
            let percent = (share * 100.0).round();
            line += &if parse { format!(" {key}={percent}") } else { format!(" {percent} {name}") };
        }
    }
    line += &match asked.udp {
        true => losses(asked, record, direction) + &delay_columns(asked, told),
        false => retransmits(asked, record, direction, told),
    };
    line
}

/// Columns of jitter and delay from the server's summary.
fn delay_columns(asked: &NuttcpOptions, told: Option<&NuttcpSummary>) -> String {
    let Some(told) = told else { return String::new() };
    let both =
        [(told.jitter, Timed::Jitter, asked.jitter), (told.delay, Timed::Delay, asked.delay)];
    let shown = both.into_iter().filter_map(|(spread, of, wanted)| {
        spread.map(|spread| spread.columns(of, wanted, asked.parse))
    });
    shown.collect()
}

fn losses(asked: &NuttcpOptions, record: &Record, direction: Direction) -> String {
    let value = |metric| record.summary_value(metric, Stat::Value, Some(direction)).unwrap_or(0.0);
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
    asked: &NuttcpOptions,
    record: &Record,
    direction: Direction,
    told: Option<&NuttcpSummary>,
) -> String {
    let value = |metric, stat| record.summary_value(metric, stat, Some(direction));
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
fn reported_share(told: &NuttcpSummary) -> Option<f64> {
    Some(told.cpu_seconds? / told.seconds.filter(|seconds| *seconds > 0.0)?)
}

/// Processor time of all streams of a side over the longest span, where it is known.
fn cpu_share(record: &Record, direction: Direction, side: FlowSide) -> Option<f64> {
    let flows = record.flows.iter().filter(|flow| flow.direction == direction);
    let ends = flows.map(|flow| match side {
        FlowSide::Sender => flow.sender.as_ref(),
        FlowSide::Receiver => flow.receiver.as_ref(),
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
    fn a_told_row_keeps_its_times_for_programs() {
        let line = "    0.5000 MB /   0.50 sec =    8.3876 Mbps     0 /    64 ~drop/pkt  \
            0.00 ~%loss 36.0314 msMaxJitter 0.1651 msAvgOWD";
        let interval = NuttcpInterval::parse(line).expect("a row");
        // nuttcp 7.3.3 -fparse.
        let parsed = "megabytes=0.5000 real_sec=0.50 rate_Mbps=8.3876 drop=0 pkt=64 \
            data_loss=0.00000 msmaxjitter=36.0314 msavgOWD=0.1651";
        assert_eq!(server_row(&interval, line), parsed);
    }

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
