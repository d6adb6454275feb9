//! Probe trains and the path MTU of a survey as text: what was sent, what was lost and where, and
//! at which rate the rest arrived.

use linerate_core::record::{AboveMtu, DatagramTrain, Direction, PathMtu, Record};

use crate::document::{ReportSection, ReportTable};
use crate::{number, words};

/// Trains of one kind: direction, size of packet, offered load in bit/s where they were paced.
type Kind = (Direction, u32, Option<u64>);

/// The trains of a survey, one line for each kind; none where none were sent.
pub(crate) fn section(record: &Record) -> Option<ReportSection> {
    let mut kinds: Vec<(Kind, Vec<&DatagramTrain>)> = Vec::new();
    for train in &record.trains {
        let kind = (train.direction, train.ip_bytes, train.offered_bps.map(|rate| rate as u64));
        match kinds.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, trains)) => trains.push(train),
            None => kinds.push((kind, vec![train])),
        }
    }
    let head = ["", "IP bytes", "offered", "trains", "packets", "lost", "first lost", "received"];
    let mut table = ReportTable::new(head.map(str::to_owned));
    for ((direction, ip_bytes, offered), trains) in &kinds {
        let packets: usize = trains.iter().map(|train| train.arrived_ns.len()).sum();
        let lost: usize = trains.iter().map(|train| lost_packets(train)).sum();
        let offered =
            offered.map_or("back to back".to_owned(), |rate| number::rate_with_unit(rate as f64));
        table.add_measured_row([
            direction_word(*direction).to_owned(),
            ip_bytes.to_string(),
            offered,
            trains.len().to_string(),
            packets.to_string(),
            number::percent(lost as f64 / packets.max(1) as f64),
            number::or_dash(
                mean_value(trains.iter().filter_map(|train| first_lost(train))),
                |index| format!("{index:.1}"),
            ),
            number::or_dash(
                median(trains.iter().filter_map(|train| received_bps(train))),
                number::rate_with_unit,
            ),
        ]);
    }
    let notes = words::listed(&record.path_mtu.iter().map(mtu_sentence).collect::<Vec<_>>());
    let notes = if notes.is_empty() { vec![] } else { vec![format!("{notes}.")] };
    (!kinds.is_empty()).then(|| ReportSection::from_tables("Probe trains", [table], notes))
}

/// The path MTU of the directions in which larger packets do not just end at the sender's link.
pub(crate) fn limited_mtu(record: &Record) -> Option<String> {
    let notable = |it: &&PathMtu| matches!(it.above, AboveMtu::Icmp | AboveMtu::Silent);
    let found: Vec<String> = record.path_mtu.iter().filter(notable).map(mtu_sentence).collect();
    (!found.is_empty()).then(|| words::listed(&found))
}

fn mtu_sentence(found: &PathMtu) -> String {
    let above = match found.above {
        AboveMtu::Link => "the limit of the sender's link",
        AboveMtu::Icmp => "routers report larger ones",
        AboveMtu::Silent => "larger ones vanish without a message: a black hole",
        AboveMtu::Unknown => "no larger one was sent",
    };
    format!(
        "packets {} of up to {} bytes pass ({above})",
        direction_word(found.direction),
        found.ip_bytes
    )
}

const fn direction_word(direction: Direction) -> &'static str {
    match direction {
        Direction::Up => "up",
        Direction::Down => "down",
    }
}

fn lost_packets(train: &DatagramTrain) -> usize {
    train.arrived_ns.iter().filter(|stamp| stamp.is_none()).count()
}

/// The place of the first packet that was lost, from 0.
fn first_lost(train: &DatagramTrain) -> Option<f64> {
    train.arrived_ns.iter().position(Option::is_none).map(|index| index as f64)
}

/// Bits of all packets but the first, over the time from the first arrival to the last.
fn received_bps(train: &DatagramTrain) -> Option<f64> {
    let came = || train.arrived_ns.iter().flatten();
    let span_ns = came().max()? - came().min()?;
    let bits = (came().count() - 1) as f64 * f64::from(train.ip_bytes) * 8.0;
    (span_ns > 0).then(|| bits * 1e9 / span_ns as f64)
}

fn mean_value(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_train_has_its_first_loss_and_the_rate_of_what_arrived() {
        let train = DatagramTrain {
            direction: Direction::Up,
            ip_bytes: 1500,
            offered_bps: None,
            started_ns: 0,
            sent_ns: vec![0; 5],
            arrived_ns: vec![Some(1_000_000), Some(1_240_000), None, Some(1_480_000), None],
            socket_drops: Some(0),
        };
        assert_eq!((lost_packets(&train), first_lost(&train)), (2, Some(2.0)));
        // Two packets of 12,000 bits in 480 us.
        assert_eq!(received_bps(&train), Some(50e6));
        let none = DatagramTrain { arrived_ns: vec![None; 5], ..train };
        assert_eq!((received_bps(&none), first_lost(&none)), (None, Some(0.0)));
    }

    #[test]
    fn a_black_hole_is_named_and_the_limit_of_a_link_is_not() {
        let found = |direction, ip_bytes, above| PathMtu {
            direction,
            ip_bytes,
            lost_bytes: Some(ip_bytes + 1),
            above,
            icmp_mtu_bytes: None,
        };
        let hole = found(Direction::Down, 1400, AboveMtu::Silent);
        let words = "packets down of up to 1400 bytes pass (larger ones vanish without a message: \
                     a black hole)";
        assert_eq!(mtu_sentence(&hole), words);
    }
}
