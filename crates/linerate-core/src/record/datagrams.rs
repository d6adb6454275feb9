//! What the ends of a UDP stream counted: datagrams by their numbers.
//!
//! A datagram belongs to the measured span by the time at which it was sent, which it carries; so
//! both ends mean the same datagrams, and sent = received + lost holds to the last one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Flow;

/// What a sender handed to its kernel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SentDatagrams {
    /// Payload of each.
    pub size_bytes: u32,
    /// All of them, numbered from 0.
    pub count: u64,
    /// Those sent after the omitted span.
    pub measured: u64,
    /// Those that were handed over with others in one buffer, for the kernel or the card to cut
    /// (UDP_SEGMENT).
    pub joined: u64,
    /// The most in one buffer.
    pub joined_max: u32,
    /// How evenly they left; null without a pace.
    pub pace: Option<PaceKept>,
    /// Time for which the sender waited because the receiver's socket had no room; null where no
    /// receiver tells, and with a pace.
    #[serde(default)]
    pub held_ns: Option<u64>,
    /// Those of the measured ones that this host's own interface refused: the kernel told so with
    /// the call (ENOBUFS). They count as sent. Null where nobody asked.
    #[serde(default)]
    pub refused: Option<u64>,
    /// Buffers that it refused, each of one datagram or of several joined ones; those among them
    /// that it took when they were sent again. Null where nobody asked.
    #[serde(default)]
    pub refusals: Option<u64>,
    /// Packets that the queueing discipline and the driver of this host's interface dropped
    /// meanwhile, by their own counters: those of every program, joined datagrams as one packet.
    /// Null where they do not tell, and for datagrams that leave in fragments.
    #[serde(default)]
    pub interface_drops: Option<u64>,
}

/// How many of the lost datagrams of a direction's streams were dropped at the sender's own
/// interface: those that its streams were told of, and as many as the interface counted beyond
/// the buffers that they were told of, since it drops some later; no more than are missing, since
/// others may use it. None where the sender did not look.
pub fn dropped_at_interface<'a>(flows: impl Iterator<Item = &'a Flow> + Clone) -> Option<u64> {
    let senders = || {
        let ends = flows.clone().filter_map(|flow| flow.sender.as_ref());
        ends.filter_map(|end| end.sent_datagrams.as_ref())
    };
    let sum = |pick: fn(&SentDatagrams) -> Option<u64>| {
        senders().filter_map(pick).reduce(u64::saturating_add)
    };
    let told = sum(|it| it.refused);
    // All streams of a direction leave by one interface.
    let counted = senders().filter_map(|it| it.interface_drops).max();
    let later = counted.map(|it| it.saturating_sub(sum(|it| it.refusals).unwrap_or(0)));
    let dropped = match (told, later) {
        (None, None) => return None,
        (told, later) => told.unwrap_or(0).saturating_add(later.unwrap_or(0)),
    };
    let receivers = flows.filter_map(|flow| flow.receiver.as_ref()?.received_datagrams.as_ref());
    let missing = receivers.map(|it| it.measured.lost.saturating_sub(it.measured.lost_here));
    Some(missing.reduce(u64::saturating_add).map_or(dropped, |missing| dropped.min(missing)))
}

/// What keeps a pace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PacedBy {
    /// The sender, which sleeps until each batch is due.
    #[default]
    UserSpace,
    /// The kernel's queueing discipline fq, which holds each buffer until the time that the sender
    /// gave it (SO_TXTIME).
    Fq,
}

/// How evenly a paced sender sent, by its own clock just before each call; by the times that it
/// gave to the kernel where that paces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PaceKept {
    /// Who kept it.
    #[serde(default)]
    pub paced_by: PacedBy,
    /// Datagrams of one batch, which leave one right after the other.
    pub batch: u32,
    /// Time from a batch to the next, median.
    pub gap_p50_ns: Option<u64>,
    /// 99th percentile of the same.
    pub gap_p99_ns: Option<u64>,
    /// Largest of the same.
    pub gap_max_ns: Option<u64>,
    /// Payload of the busiest millisecond over that of the mean one.
    pub busiest_1ms_ratio: Option<f64>,
    /// Payload of the busiest 10 ms over that of the mean ones.
    pub busiest_10ms_ratio: Option<f64>,
    /// Time by which the schedule was set back, because the sender was too late to make up for it.
    pub forgiven_ns: u64,
}

/// What a receiver took in.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReceivedDatagrams {
    /// Payload of each.
    pub size_bytes: u32,
    /// Of all of them.
    pub all: DatagramTally,
    /// Of those sent after the omitted span.
    pub measured: DatagramTally,
    /// Datagrams that are not of this stream, too short, or of another length. They count nowhere
    /// else.
    pub strays: u64,
    /// Datagrams that arrived with others in one buffer: never cut apart on the way, or joined
    /// again by this host (UDP_GRO).
    pub joined: u64,
    /// The most in one buffer; 1 where each came by itself, 0 where nothing came or nobody looked.
    #[serde(default)]
    pub joined_max: u32,
    /// Buffers that the socket did not take for want of room, as the kernel counts them.
    pub socket_drops: Option<u64>,
    /// How the delay varied.
    pub delay: Option<DelayVariation>,
}

/// Datagrams of one span. When `sent` is known, sent = received + lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DatagramTally {
    /// As the sender told at its end; null when it did not.
    pub sent: Option<u64>,
    /// Different ones that arrived.
    pub received: u64,
    /// Sent and not received; up to the highest number that arrived where `sent` is null.
    pub lost: u64,
    /// Those of the lost that this host's own socket had no room for.
    pub lost_here: u64,
    /// Arrivals of a datagram that had arrived before.
    pub duplicates: u64,
    /// Arrivals below a number that had arrived before, duplicates left out.
    pub reordered: u64,
    /// Arrivals too far below the highest number to tell whether they are duplicates; they count
    /// as lost.
    pub too_old: u64,
}

/// Delay variation of one stream. The clocks of the ends need not agree: only differences count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DelayVariation {
    /// Arrivals that were looked at: the first of each batch.
    pub n: u64,
    /// Smoothed difference of neighbours (RFC 3550 §6.4.1) at the end.
    pub jitter_ns: Option<u64>,
    /// Delay above the smallest one (RFC 5481 §4.2), median.
    pub pdv_p50_ns: Option<u64>,
    /// 99th percentile of the same.
    pub pdv_p99_ns: Option<u64>,
    /// Largest of the same.
    pub pdv_max_ns: Option<u64>,
    /// Whether arrivals are the kernel's times, or the program's own.
    pub kernel_stamps: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Direction, FlowEnd};

    fn flow(told: Option<[u64; 2]>, counted: Option<u64>, lost: u64) -> Flow {
        let sent = SentDatagrams {
            refused: told.map(|[datagrams, _]| datagrams),
            refusals: told.map(|[_, buffers]| buffers),
            interface_drops: counted,
            ..SentDatagrams::default()
        };
        let measured = DatagramTally { lost, lost_here: 10, ..DatagramTally::default() };
        let received = ReceivedDatagrams { measured, ..ReceivedDatagrams::default() };
        Flow {
            flow: 0,
            direction: Direction::Up,
            client_addr: String::new(),
            server_addr: String::new(),
            sender: Some(FlowEnd { sent_datagrams: Some(sent), ..FlowEnd::default() }),
            receiver: Some(FlowEnd { received_datagrams: Some(received), ..FlowEnd::default() }),
            syn: None,
        }
    }

    #[test]
    fn what_the_interface_dropped_is_no_more_than_is_missing_and_nothing_twice() {
        let of = |flows: &[Flow]| dropped_at_interface(flows.iter());
        assert_eq!(of(&[flow(None, None, 50)]), None, "nobody looked");
        assert_eq!(of(&[flow(Some([0, 0]), Some(0), 50)]), Some(0));
        // Three buffers of 44 were refused, and the interface counted three.
        assert_eq!(of(&[flow(Some([132, 3]), Some(3), 500)]), Some(132));
        // The interface does not tell.
        assert_eq!(of(&[flow(Some([132, 3]), None, 500)]), Some(132));
        // What a discipline drops later is only counted.
        assert_eq!(of(&[flow(Some([0, 0]), Some(30), 500)]), Some(30));
        assert_eq!(of(&[flow(Some([44, 1]), Some(6), 500)]), Some(49));
        // A buffer was taken when it was sent again: the interface counted it, and nothing is lost.
        assert_eq!(of(&[flow(Some([0, 1]), Some(1), 500)]), Some(0));
        // Of 50 lost ones, 10 were the receiver's; the rest of the 70 were somebody else's.
        assert_eq!(of(&[flow(Some([0, 0]), Some(70), 50)]), Some(40));
        // Two streams are told each its own, and both see one interface.
        let two = [flow(Some([5, 5]), Some(9), 50), flow(Some([3, 3]), Some(8), 50)];
        assert_eq!(of(&two), Some(9));
    }
}
