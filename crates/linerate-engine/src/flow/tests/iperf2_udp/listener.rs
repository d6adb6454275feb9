//! The port where a client of `-d` and `-r` takes what the server sends: it counts, and answers
//! ends.

use std::rc::Rc;

use linerate_core::time::{Clock, MonoTime, SimClock};
use linerate_proto::iperf2::{UdpCounted, UdpTally};

use super::{Pipe, Shared};

/// The client's port.
pub(super) struct Listener {
    world: Shared,
    clock: Rc<SimClock>,
    streams: Vec<Option<UdpTally>>,
}

impl Listener {
    pub(super) fn of(world: &Shared, clock: &Rc<SimClock>) -> Self {
        let streams = world.borrow().server.iter().map(|_| None).collect();
        Self { world: Rc::clone(world), clock: Rc::clone(clock), streams }
    }

    /// Takes what is there.
    pub(super) fn serve(&mut self) {
        let mut world = self.world.borrow_mut();
        let now = self.clock.now();
        for (at, flow, datagram) in world.arrived(Pipe::ToListener, now) {
            let begin = MonoTime::default();
            let late = at < begin + world.trouble.listens;
            if late || world.trouble.deaf.is_some_and(|gone| at >= begin + gone) {
                world.pass(now, Pipe::FromListener, flow, &[]);
                continue;
            }
            let tally = &mut self.streams[usize::from(flow)];
            let tally = tally.get_or_insert_with(|| UdpTally::from_first_datagram(&datagram, now));
            let answer = tally.count_datagram(&datagram, now, now.as_nanos() / 1000);
            if let UdpCounted::Iperf(counts) = tally.counted() {
                world.server[usize::from(flow)].back.counted = Some(counts);
            }
            if let Some(report) = answer {
                world.pass(now, Pipe::FromListener, flow, &report);
            }
        }
    }
}
