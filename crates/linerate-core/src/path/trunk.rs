//! A trunk: links side by side, each flow on one of them by its hash, so that order is kept and
//! an unlucky flow shares a member while another is idle.

use super::{Backlog, Bernoulli, Element, Outlet, Packet, PathLossCause};
use crate::time::MonoTime;

/// Links in parallel. The member of a flow is its hash modulo the number of members (IEEE 802.1AX
/// leaves the choice to the device).
pub struct Trunk {
    members: Vec<Box<dyn Element>>,
    /// Loss of members, in their order; those behind its end have none.
    loss: Vec<Bernoulli>,
}

impl Trunk {
    /// A trunk of `members`, of which there is at least one.
    pub fn new(members: Vec<Box<dyn Element>>) -> Self {
        Self { members, loss: Vec::new() }
    }

    /// The same trunk with members that lose packets: a bad one harms the flows hashed to it alone.
    pub fn with_loss(mut self, loss: Vec<Bernoulli>) -> Self {
        self.loss = loss;
        self
    }
}

impl Element for Trunk {
    fn receive(&mut self, at: MonoTime, packet: Packet, out: &mut Outlet) {
        let index = packet.flow as usize % self.members.len();
        if self.loss.get_mut(index).is_some_and(Bernoulli::draw_loss) {
            out.record_loss(at, packet, PathLossCause::Random);
        } else {
            self.members[index].receive(at, packet, out);
        }
    }

    fn release(&mut self, now: MonoTime, out: &mut Outlet) {
        let before = out.departures.len();
        for member in &mut self.members {
            member.release(now, out);
        }
        // Stable: packets of one member keep their order.
        out.departures[before..].sort_by_key(|departure| departure.at);
    }

    fn next(&self) -> Option<MonoTime> {
        self.members.iter().filter_map(|member| member.next()).min()
    }

    fn backlog(&self, now: MonoTime) -> Backlog {
        self.members.iter().map(|member| member.backlog(now)).fold(
            Backlog::default(),
            |sum, one| Backlog { packets: sum.packets + one.packets, bytes: sum.bytes + one.bytes },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{packet, time_at_ns};
    use super::*;
    use crate::path::{Framing, Limit, QueuedLink, Random, TailDrop};
    use crate::units::BitRate;

    #[test]
    fn two_flows_of_one_member_share_it_while_the_other_is_idle() {
        let member = || -> Box<dyn Element> {
            let rate = BitRate::from_bits_per_sec(12_000_000);
            Box::new(QueuedLink::new(rate, Framing::Ip, TailDrop::new(Limit::Packets(100))))
        };
        let finish = |flows: [u32; 2]| {
            let mut trunk = Trunk::new(vec![member(), member()]);
            let mut out = Outlet::default();
            for _ in 0..10 {
                for flow in flows {
                    trunk.receive(time_at_ns(0), Packet { flow, ..packet(1500) }, &mut out);
                }
            }
            trunk.release(time_at_ns(u64::MAX), &mut out);
            assert!(out.departures.is_sorted_by_key(|left| left.at));
            out.departures.last().map(|left| left.at.as_nanos() / 1_000_000)
        };
        // 1 ms a packet: 20 packets on one member, or 10 on each.
        assert_eq!(finish([0, 2]), Some(20));
        assert_eq!(finish([0, 1]), Some(10));
    }

    #[test]
    fn a_bad_member_loses_packets_of_the_flows_hashed_to_it_and_no_others() {
        let member = || -> Box<dyn Element> {
            let rate = BitRate::from_bits_per_sec(1_000_000_000);
            Box::new(QueuedLink::new(rate, Framing::Ip, TailDrop::new(Limit::Packets(100_000))))
        };
        let bad = [0.0, 0.25].map(|share| Bernoulli::new(share, Random::new(3, 0)));
        let mut trunk = Trunk::new((0..4).map(|_| member()).collect()).with_loss(bad.into());
        let mut out = Outlet::default();
        for number in 0..40_000 {
            let flow = u32::try_from(number % 8).unwrap_or(0);
            trunk.receive(time_at_ns(number), Packet { flow, ..packet(100) }, &mut out);
        }
        assert!(out.lost.iter().all(|lost| [1, 5].contains(&lost.packet.flow)));
        // 10,000 packets of flows 1 and 5 at a quarter: standard error 43; four of them.
        assert!(out.lost.len().abs_diff(2500) < 174, "{}", out.lost.len());
    }
}
