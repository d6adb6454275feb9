//! Datagrams of a direction: where they were lost, and whether they travelled by themselves.

use linerate_core::record::{
    Direction, Flow, ReceivedDatagrams, Record, SentDatagrams, dropped_at_interface,
};

use super::streams::flows_in_direction;
use crate::number;

/// The receiver's counts of a flow's datagrams.
pub(super) fn received(flow: &Flow) -> Option<&ReceivedDatagrams> {
    flow.receiver.as_ref()?.received_datagrams.as_ref()
}

/// The sender's counts of a flow's datagrams.
pub(super) fn sent_counts(flow: &Flow) -> Option<&SentDatagrams> {
    flow.sender.as_ref()?.sent_datagrams.as_ref()
}

/// Where the lost ones were lost, and what came that is of no use.
pub(super) fn losses(record: &Record, direction: Direction) -> Option<String> {
    let all: Vec<&ReceivedDatagrams> =
        flows_in_direction(record, direction).filter_map(received).collect();
    let sum = |pick: fn(&ReceivedDatagrams) -> u64| {
        all.iter().map(|datagrams| pick(datagrams)).sum::<u64>()
    };
    let (lost, here) =
        (sum(|datagrams| datagrams.measured.lost), sum(|datagrams| datagrams.measured.lost_here));
    let mut parts = Vec::new();
    if lost > 0 {
        let dropped = dropped_at_interface(flows_in_direction(record, direction));
        let path = lost.saturating_sub(here).saturating_sub(dropped.unwrap_or(0));
        let told = here > 0 || all.iter().all(|datagrams| datagrams.socket_drops.is_some());
        // What nobody looked at may be where they were lost.
        let (way, here) = match told {
            true => ("on the path", format!(", {here} at the receiver's own socket")),
            false => ("on the path or at the receiver's own socket", String::new()),
        };
        parts.push(match dropped {
            Some(count) => {
                format!("lost: {path} {way}{here}, {count} dropped at the sender's own interface")
            }
            None => format!("lost: {path} {way}, or at the sender's own interface{here}"),
        });
    }
    let others = [
        (sum(|datagrams| datagrams.strays), "stray"),
        (sum(|datagrams| datagrams.measured.too_old), "too old"),
    ];
    let others = others.into_iter().filter(|(count, _)| *count > 0);
    parts.extend(others.map(|(count, what)| format!("{count} {what}")));
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// How datagrams were handed over: one by one, or several per call (GSO) and received merged (GRO).
pub(super) fn travel(record: &Record, direction: Direction) -> Option<String> {
    let (mut handed, mut most, mut joined, mut widest, mut all) = (0, 0, 0, 0, 0);
    for flow in flows_in_direction(record, direction) {
        if let Some(sent) = sent_counts(flow) {
            (handed, most) = (handed + sent.joined, most.max(sent.joined_max));
        }
        if let Some(received) = received(flow) {
            (joined, all) = (joined + received.joined, all + received.all.received);
            widest = widest.max(received.joined_max);
        }
    }
    let sent = match handed {
        0 => "one datagram per call".to_owned(),
        _ => format!("up to {most} datagrams per call (GSO)"),
    };
    let came = match (joined, all) {
        (_, 0) => return Some(sent),
        (0, _) if handed > 0 => {
            "received one by one: split on the path, or by the receiver's kernel".to_owned()
        }
        (0, _) => "received one by one".to_owned(),
        _ => {
            let share = number::percent(joined as f64 / all.max(1) as f64);
            format!("{share} received merged (GRO), up to {widest} at once")
        }
    };
    Some(format!("{sent}, {came}"))
}
