//! The document of a UDP throughput test, and of a search for the capacity.

use linerate_core::record::{
    DatagramTally, Direction, Flow, MetricId, PacedBy, Record, Stat, UdpPlan,
};

use super::datagrams::{losses, received, sent_counts, travel};
use super::streams::{self, Column, flows_in_direction, measured_bps};
use super::{goodput, search, tcp};
use crate::document::{Block, Document, ReportSection, ReportTable, Tile};
use crate::number::{self, or_dash};
use crate::{ceiling, words};

/// The metrics that a page defines.
const METRICS: &[MetricId] = &[
    MetricId::IpCapacity,
    MetricId::Goodput,
    MetricId::DatagramsSent,
    MetricId::DatagramsReceived,
    MetricId::DatagramsLost,
    MetricId::DatagramLossRatio,
    MetricId::DatagramsLostHere,
    MetricId::DatagramsDroppedAtSender,
    MetricId::DatagramDuplicates,
    MetricId::DatagramsReordered,
    MetricId::JitterRfc3550,
    MetricId::Pdv,
    MetricId::BusiestMs,
];

/// The figures of the test.
pub(super) fn document(record: &Record, plan: &UdpPlan) -> Document {
    let found = record.search.as_ref();
    let mut sections: Vec<ReportSection> =
        found.map(|found| search::figure(record, found)).into_iter().collect();
    sections.extend(goodput::figure(record));
    for &direction in words::each_direction(plan.test.directions) {
        let streams = streams_table(record, direction);
        let (mut blocks, lines) = match found {
            Some(found) => (search::blocks(found), search::result_lines(record, found)),
            None => (vec![Block::Table(streams.clone())], direction_lines(record, direction)),
        };
        blocks.extend([
            Block::Remarks(lines),
            Block::Lines(vec![tcp::processors(record, direction)]),
            Block::Remarks(tcp::ceilings(record, direction)),
        ]);
        blocks.extend(found.map(|_| Block::Table(streams.on_pages())));
        sections.push(ReportSection::without_blank_line(words::direction(direction), blocks));
    }
    Document {
        title: title_line(plan),
        tiles: result_tiles(record, plan),
        sections,
        metrics: METRICS.to_vec(),
        ..Document::default()
    }
}

/// Lines on losses, delays, the kept pace, the receiver, and how datagrams were handed over.
fn direction_lines(record: &Record, direction: Direction) -> Vec<String> {
    let each = [losses, delays, pace_kept_line, receiver_limited, travel];
    each.into_iter().filter_map(|line| line(record, direction)).collect()
}

fn result_tiles(record: &Record, plan: &UdpPlan) -> Vec<Tile> {
    let mut tiles = Vec::new();
    for &direction in words::each_direction(plan.test.directions) {
        let value = |metric| record.summary_value(metric, Stat::Value, Some(direction));
        let way = words::direction(direction);
        let mut ceiling = ceiling::brief_share(record.ceiling_of(direction));
        if plan.test.search.is_some() {
            let capacity = or_dash(value(MetricId::IpCapacity), number::rate_with_unit);
            let ceiling = std::mem::take(&mut ceiling);
            tiles.push(Tile::new(capacity, format!("most IP packets, {way}"), ceiling));
        }
        let goodput = or_dash(value(MetricId::Goodput), number::rate_with_unit);
        tiles.push(Tile::new(goodput, format!("payload, {way}"), ceiling));
        let sent = or_dash(value(MetricId::DatagramsSent), |n| format!("of {n:.0} sent"));
        let loss = or_dash(value(MetricId::DatagramLossRatio), number::percent);
        tiles.push(Tile::new(loss, format!("lost, {way}"), sent));
    }
    tiles
}

/// The one line that says what was asked.
fn title_line(plan: &UdpPlan) -> String {
    if let Some(search) = &plan.test.search {
        return search::title_line(plan, search);
    }
    let size =
        plan.test.size_bytes.map_or_else(|| "usual size".to_owned(), |b| format!("{b} bytes"));
    let pace = plan.test.pace.map_or_else(
        || "as fast as possible".to_owned(),
        |pace| format!("at {} a stream", number::rate_with_unit(pace.bits_per_sec() as f64)),
    );
    format!(
        "UDP with {} port {}: {}, {}, {}, datagrams of {size}, {pace}",
        plan.server.host,
        plan.server.port,
        words::directions(plan.test.directions),
        words::counted(plan.test.streams.into(), "stream"),
        words::finish(plan.test.finish),
    )
}

/// One row per stream, and the sum where there are several.
fn streams_table(record: &Record, direction: Direction) -> ReportTable {
    let of = |flow: &Flow, pick: fn(&DatagramTally) -> u64| {
        or_dash(received(flow), |datagrams| pick(&datagrams.measured).to_string())
    };
    let loss = |flow: &Flow| {
        let it = &received(flow)?.measured;
        let all = it.received + it.lost;
        (all > 0).then(|| it.lost as f64 / all as f64)
    };
    let goodput = |flow: &Flow| measured_bps(flow.receiver.as_ref()?);
    let jitter = |flow: &Flow| Some(received(flow)?.delay?.jitter_ns? as f64);
    let value = |metric| record.summary_value(metric, Stat::Value, Some(direction));
    let count = |metric| or_dash(value(metric), |n| format!("{n:.0}"));
    let (percent, ms) = (number::percent, number::ms_to_microsecond);
    let flows: Vec<&Flow> = flows_in_direction(record, direction).collect();
    let columns: [Column<'_>; 9] = [
        ("stream", &|flow| flow.flow.to_string(), format!("sum of {}", flows.len())),
        (
            "sent",
            &|flow| or_dash(sent_counts(flow), |datagrams| datagrams.measured.to_string()),
            count(MetricId::DatagramsSent),
        ),
        ("received", &|flow| of(flow, |tally| tally.received), count(MetricId::DatagramsReceived)),
        ("lost", &|flow| of(flow, |tally| tally.lost), count(MetricId::DatagramsLost)),
        (
            "loss",
            &|flow| or_dash(loss(flow), percent),
            or_dash(value(MetricId::DatagramLossRatio), percent),
        ),
        (
            "duplicates",
            &|flow| of(flow, |tally| tally.duplicates),
            count(MetricId::DatagramDuplicates),
        ),
        (
            "reordered",
            &|flow| of(flow, |tally| tally.reordered),
            count(MetricId::DatagramsReordered),
        ),
        (
            "jitter ms",
            &|flow| or_dash(jitter(flow), ms),
            or_dash(value(MetricId::JitterRfc3550), ms),
        ),
        (
            "goodput",
            &|flow| or_dash(goodput(flow), number::measured_rate),
            or_dash(value(MetricId::Goodput), number::measured_rate),
        ),
    ];
    streams::flows_table(&flows, &[], &columns).dropping(&[5, 6, 1])
}

/// How delays varied; the clocks of the ends need not agree.
fn delays(record: &Record, direction: Direction) -> Option<String> {
    let value = |stat| record.summary_value(MetricId::Pdv, stat, Some(direction));
    let ms = |stat| or_dash(value(stat), |ns| format!("{} ms", number::ms_to_microsecond(ns)));
    let kernel = flows_in_direction(record, direction).filter_map(|flow| received(flow)?.delay);
    let whose = match kernel.into_iter().all(|delay| delay.kernel_stamps) {
        true => "the kernel's time of arrival",
        false => "the program's time of arrival",
    };
    value(Stat::Max)?;
    Some(format!(
        "delay above the smallest: median {}, 99 % {}, most {} ({whose})",
        ms(Stat::P50),
        ms(Stat::P99),
        ms(Stat::Max)
    ))
}

/// How evenly a paced direction was sent.
fn pace_kept_line(record: &Record, direction: Direction) -> Option<String> {
    let worst = flows_in_direction(record, direction)
        .filter_map(|flow| sent_counts(flow)?.pace)
        .max_by(|one, other| {
            let ratio =
                |kept: &linerate_core::record::PaceKept| kept.busiest_1ms_ratio.unwrap_or(0.0);
            ratio(one).total_cmp(&ratio(other))
        })?;
    let ms = |ns: Option<u64>| or_dash(ns, |ns| number::ms_to_microsecond(ns as f64));
    let ratio = |ratio| or_dash(ratio, |ratio| number::significant(ratio, 3));
    let rate = record.summary_value(MetricId::SendRate, Stat::Value, Some(direction));
    let by = match worst.paced_by {
        PacedBy::UserSpace => "by the sender itself",
        PacedBy::Fq => "by the kernel's fq",
    };
    Some(format!(
        "sent at {}, paced {by}, {} at a time; gaps {} ms in the median, 99 % {}, most {}; \
         busiest ms {} times the mean one, busiest 10 ms {}",
        or_dash(rate, number::rate_with_unit),
        worst.batch,
        ms(worst.gap_p50_ns),
        ms(worst.gap_p99_ns),
        ms(worst.gap_max_ns),
        ratio(worst.busiest_1ms_ratio),
        ratio(worst.busiest_10ms_ratio)
    ))
}

/// Below this share of the time, waiting for the receiver is not told.
const HELD_RATIO: f64 = 0.01;

/// The share of the time that a sender without a pace waited for the receiver; none below
/// [`HELD_RATIO`].
fn receiver_limited(record: &Record, direction: Direction) -> Option<String> {
    let share = flows_in_direction(record, direction).filter_map(|flow| {
        let end = flow.sender.as_ref().filter(|end| end.span_ns > 0)?;
        Some(end.sent_datagrams.as_ref()?.held_ns? as f64 / end.span_ns as f64)
    });
    let most = share.reduce(f64::max).filter(|share| *share >= HELD_RATIO)?.min(1.0);
    let share = number::percent(most);
    Some(format!("the sender waited {share} of the time for room in the receiver's socket"))
}

#[cfg(test)]
mod tests {
    use linerate_core::record::{
        DelayVariation, FlowEnd, PaceKept, Plan, ReceivedDatagrams, RecordId, SentDatagrams,
        ServerPlan, Summary, TcpDirections, Tool, UdpTest,
    };
    use linerate_core::time::WallTime;
    use linerate_core::units::BitRate;

    use super::*;

    /// 1000 datagrams of 1000 bytes sent in a second, of which 10 were lost, 4 of them at the
    /// receiver.
    fn record() -> (Record, UdpPlan) {
        let plan = UdpPlan {
            server: ServerPlan::new(None, "b", 5210),
            test: UdpTest {
                directions: TcpDirections::Up,
                size_bytes: Some(1000),
                pace: Some(BitRate::from_bits_per_sec(8_000_000)),
                ..UdpTest::default()
            },
            ..UdpPlan::default()
        };
        let tally = DatagramTally {
            sent: Some(1000),
            received: 990,
            lost: 10,
            lost_here: 4,
            duplicates: 2,
            reordered: 3,
            too_old: 1,
        };
        let delay = DelayVariation {
            n: 990,
            jitter_ns: Some(12_000),
            pdv_p50_ns: Some(100_000),
            pdv_p99_ns: Some(2_000_000),
            pdv_max_ns: Some(5_000_000),
            kernel_stamps: true,
        };
        let receiver = FlowEnd {
            bytes_measured: 990_000,
            span_ns: 1_000_000_000,
            received_datagrams: Some(ReceivedDatagrams {
                size_bytes: 1000,
                all: tally,
                measured: tally,
                strays: 5,
                joined: 495,
                joined_max: 2,
                socket_drops: Some(4),
                delay: Some(delay),
            }),
            ..FlowEnd::default()
        };
        let pace = PaceKept {
            paced_by: PacedBy::UserSpace,
            batch: 1,
            gap_p50_ns: Some(1_000_000),
            gap_p99_ns: Some(1_050_000),
            gap_max_ns: Some(3_000_000),
            busiest_1ms_ratio: Some(2.0),
            busiest_10ms_ratio: Some(1.1),
            forgiven_ns: 0,
        };
        let sent = SentDatagrams {
            size_bytes: 1000,
            count: 1000,
            measured: 1000,
            joined: 500,
            joined_max: 2,
            pace: Some(pace),
            refused: Some(3),
            ..SentDatagrams::default()
        };
        let sender = FlowEnd { sent_datagrams: Some(sent), ..FlowEnd::default() };
        let tool = Tool { name: "linerate".to_owned(), version: "test".to_owned() };
        let id = RecordId::from_parts(0, [0; 10]);
        let at = WallTime::from_unix_nanos(0);
        let mut record = Record::from_plan(id, tool, Plan::Udp(plan.clone()), at);
        record.flows = vec![Flow {
            flow: 0,
            direction: Direction::Up,
            client_addr: String::new(),
            server_addr: String::new(),
            sender: Some(sender),
            receiver: Some(receiver),
            syn: None,
        }];
        let row = |metric, stat, value| {
            Summary::from_value(metric, stat, value).in_direction(Direction::Up)
        };
        record.summary = vec![
            row(MetricId::Goodput, Stat::Value, 7.92e6),
            row(MetricId::DatagramLossRatio, Stat::Value, 0.01),
            row(MetricId::SendRate, Stat::Value, 8e6),
            row(MetricId::Pdv, Stat::P50, 100_000.0),
            row(MetricId::Pdv, Stat::P99, 2_000_000.0),
            row(MetricId::Pdv, Stat::Max, 5_000_000.0),
        ];
        (record, plan)
    }

    #[test]
    fn losses_are_told_by_place_and_what_is_of_no_use_beside_them() {
        let (record, plan) = record();
        let text = document(&record, &plan).text(None);
        for part in [
            "1 stream, 10.0 s, datagrams of 1000 bytes, at 8 Mbit/s a stream",
            "lost: 3 on the path, 4 at the receiver's own socket, 3 dropped at the sender's own",
            "interface; 5",
            "stray; 1 too old",
            "delay above the smallest: median 0.100 ms, 99 % 2.000 ms, most 5.000 ms",
            "sent at 8 Mbit/s, paced by the sender itself, 1 at a time; gaps 1.000 ms in the",
            "up to 2 datagrams per call (GSO), 50.0 % received merged (GRO), up to 2 at once",
        ] {
            assert!(text.contains(part), "'{part}' is not in {text}");
        }
        let row = text.lines().find(|line| line.trim_start().starts_with("0 ")).expect("its row");
        let cells: Vec<&str> = row.split_whitespace().collect();
        let expected =
            ["0", "1000", "990", "10", "1.00", "%", "2", "3", "0.012", "7.920", "Mbit/s"];
        assert_eq!(cells, expected);
    }

    #[test]
    fn a_sender_that_did_not_look_at_its_interface_may_have_lost_them_there() {
        let (mut record, _) = record();
        let end = record.flows[0].sender.as_mut().expect("a sender");
        end.sent_datagrams = None;
        let expected = "lost: 6 on the path, or at the sender's own interface, 4 at the receiver's \
                        own socket; 5 stray; 1 too old";
        assert_eq!(losses(&record, Direction::Up).as_deref(), Some(expected));
    }

    #[test]
    fn nothing_measured_is_dashes_and_one_sentence() {
        let (mut record, plan) = record();
        record.summary.clear();
        record.flows.clear();
        let text = document(&record, &plan).text(Some(80));
        assert!(text.contains(number::NONE), "{text}");
        let headline = crate::Headline::from_record(&record);
        assert_eq!(headline.result, "nothing was measured with b");
    }
}
