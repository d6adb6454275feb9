//! The link by which a sender's datagrams leave this host: what its queueing discipline does with
//! them, how fast it is, and what it dropped meanwhile.
//!
//! Left out: links under anything but VLANs, and a route that changes while the test runs.

use std::net::IpAddr;

use linerate_sys::datagram_socket::DatagramSocket;
use linerate_sys::netlink::{EgressDrops, disciplines_to, egress_drops_to, route_to};

/// The way out of one sender.
#[derive(Clone, Debug, Default)]
pub(super) struct Egress {
    peer: Option<IpAddr>,
    /// Queueing disciplines of the interface; empty where the kernel does not tell.
    kinds: Vec<String>,
    /// True where another link is under the interface.
    has_lower: bool,
    /// Where the driver tells.
    pub(super) speed_bps: Option<u64>,
    before: Option<EgressDrops>,
}

impl Egress {
    /// The egress of a connected socket; its drops count from here.
    pub(super) fn from_socket(socket: &DatagramSocket) -> Self {
        let Some(peer) = socket.peer_address().map(|peer| peer.ip().to_canonical()) else {
            return Self::default();
        };
        let route = route_to(peer).ok();
        let mut way = Self {
            peer: Some(peer),
            kinds: disciplines_to(peer).unwrap_or_default(),
            has_lower: route.as_ref().is_some_and(|route| route.lower.is_some()),
            speed_bps: route.and_then(|route| route.speed_bps),
            before: None,
        };
        way.count_from_here();
        way
    }

    /// Drops count from here.
    pub(super) fn count_from_here(&mut self) {
        self.before = self.read_drops();
    }

    /// Packets of any program that it dropped since.
    pub(super) fn dropped(&self) -> Option<u64> {
        Some(self.read_drops()?.drops_since(self.before.as_ref()?))
    }

    fn read_drops(&self) -> Option<EgressDrops> {
        egress_drops_to(self.peer?).ok()
    }

    /// True where it holds each buffer back until the time that it is given: with the discipline
    /// fq, alone or below mq (tc-fq(8)).
    pub(super) fn holds_back(&self) -> bool {
        let fq = |kind: &String| kind == "fq";
        self.kinds.iter().any(fq) && self.kinds.iter().all(|kind| fq(kind) || kind == "mq")
    }

    /// True where datagrams may have to wait before it. The loopback and a veth hand them over
    /// within the sender's call, unless a discipline was put before them.
    pub(super) fn queues(&self) -> bool {
        let none = !self.kinds.is_empty() && self.kinds.iter().all(|kind| kind == "noqueue");
        self.has_lower || !none
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn egress_with_kinds(kinds: &[&str]) -> Egress {
        let kinds = kinds.iter().map(|&kind| kind.to_owned()).collect();
        Egress { kinds, ..Egress::default() }
    }

    #[test]
    fn fq_alone_or_below_mq_holds_datagrams_back_and_nothing_else_does() {
        assert!(
            egress_with_kinds(&["fq"]).holds_back()
                && egress_with_kinds(&["mq", "fq", "fq"]).holds_back()
        );
        for others in [&[][..], &["noqueue"], &["mq"], &["fq_codel"], &["mq", "fq", "fq_codel"]] {
            assert!(!egress_with_kinds(others).holds_back(), "{others:?}");
        }
    }

    #[test]
    fn datagrams_wait_before_every_link_that_is_not_known_to_have_no_queue() {
        for (kinds, queues) in [(&[][..], true), (&["noqueue"], false), (&["tbf", "bfifo"], true)] {
            assert_eq!(egress_with_kinds(kinds).queues(), queues, "{kinds:?}");
        }
        // A VLAN has no queue of its own; the link under it has.
        assert!(Egress { has_lower: true, ..egress_with_kinds(&["noqueue"]) }.queues());
    }
}
