//! Datagrams that were dropped at the interface of the host that sent them.

use super::{Flow, SentDatagrams};

/// Number of the lost datagrams of a direction's streams that were dropped at the sender's own
/// interface. Counted are the sends that the kernel refused, and the interface's drops beyond those
/// refusals, since it drops some datagrams later; no more than are lost, since others may use the
/// interface. None where the sender did not look.
pub fn dropped_at_interface<'a>(flows: impl Iterator<Item = &'a Flow> + Clone) -> Option<u64> {
    let senders = || {
        let ends = flows.clone().filter_map(|flow| flow.sender.as_ref());
        ends.filter_map(|end| end.sent_datagrams.as_ref())
    };
    let sum = |pick: fn(&SentDatagrams) -> Option<u64>| {
        senders().filter_map(pick).reduce(u64::saturating_add)
    };
    let told = sum(|sent| sent.refused);
    // All streams of a direction leave by one interface.
    let counted = senders().filter_map(|sent| sent.interface_drops).max();
    let later = counted.map(|drops| drops.saturating_sub(sum(|sent| sent.refusals).unwrap_or(0)));
    let dropped = match (told, later) {
        (None, None) => return None,
        (told, later) => told.unwrap_or(0).saturating_add(later.unwrap_or(0)),
    };
    let receivers = flows.filter_map(|flow| flow.receiver.as_ref()?.received_datagrams.as_ref());
    let missing = receivers
        .map(|received| received.measured.lost.saturating_sub(received.measured.lost_here));
    Some(missing.reduce(u64::saturating_add).map_or(dropped, |missing| dropped.min(missing)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{DatagramTally, Direction, FlowEnd, ReceivedDatagrams};

    fn flow_with_drops(told: Option<[u64; 2]>, counted: Option<u64>, lost: u64) -> Flow {
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
        assert_eq!(of(&[flow_with_drops(None, None, 50)]), None, "nobody looked");
        assert_eq!(of(&[flow_with_drops(Some([0, 0]), Some(0), 50)]), Some(0));
        // Three buffers of 44 were refused, and the interface counted three.
        assert_eq!(of(&[flow_with_drops(Some([132, 3]), Some(3), 500)]), Some(132));
        // The interface does not tell.
        assert_eq!(of(&[flow_with_drops(Some([132, 3]), None, 500)]), Some(132));
        // What a discipline drops later is only counted.
        assert_eq!(of(&[flow_with_drops(Some([0, 0]), Some(30), 500)]), Some(30));
        assert_eq!(of(&[flow_with_drops(Some([44, 1]), Some(6), 500)]), Some(49));
        // A buffer was taken when it was sent again: the interface counted it, and nothing is lost.
        assert_eq!(of(&[flow_with_drops(Some([0, 1]), Some(1), 500)]), Some(0));
        // Of 50 lost ones, 10 were the receiver's; the rest of the 70 were somebody else's.
        assert_eq!(of(&[flow_with_drops(Some([0, 0]), Some(70), 50)]), Some(40));
        // Two streams are told each its own, and both see one interface.
        let two = [
            flow_with_drops(Some([5, 5]), Some(9), 50),
            flow_with_drops(Some([3, 3]), Some(8), 50),
        ];
        assert_eq!(of(&two), Some(9));
    }
}
