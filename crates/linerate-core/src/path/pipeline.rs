//! The elements of one direction in a row.

use std::time::Duration;

use super::{Departure, Element, Outlet, Packet};
use crate::time::MonoTime;

/// One direction of a path. An empty one forwards at once.
#[derive(Default)]
pub struct Pipeline {
    stages: Vec<PipelineStage>,
    taken: u64,
    /// Scratch: packets that enter the next stage.
    entering: Outlet,
    /// Scratch: packets that leave the present stage.
    leaving: Outlet,
}

/// An element, and when it has something due. The copy spares a call for each packet.
struct PipelineStage {
    element: Box<dyn Element>,
    next: Option<MonoTime>,
    transit_min: Duration,
}

impl PipelineStage {
    fn release(&mut self, now: MonoTime, out: &mut Outlet) {
        if self.next.is_some_and(|next| next <= now) {
            self.element.release(now, out);
            self.next = self.element.next();
        }
    }

    fn receive(&mut self, at: MonoTime, packet: Packet, out: &mut Outlet) {
        self.release(at, out);
        self.element.receive(at, packet, out);
        self.next = self.element.next();
    }
}

impl Pipeline {
    /// The elements in the order in which a packet meets them.
    pub fn new(elements: Vec<Box<dyn Element>>) -> Self {
        let stage = |element: Box<dyn Element>| PipelineStage {
            next: element.next(),
            transit_min: element.transit_min(),
            element,
        };
        Self { stages: elements.into_iter().map(stage).collect(), ..Self::default() }
    }

    /// Takes a packet at `at`, numbers it if it is counted, and puts out all that has left the path
    /// by then. Times must not go back.
    pub fn receive(&mut self, at: MonoTime, packet: Packet, out: &mut Outlet) {
        self.enter_packet(at, packet);
        self.run(at, false, out);
    }

    /// Puts out all that leaves the path at or before `now`, in order of time.
    pub fn release(&mut self, now: MonoTime, out: &mut Outlet) {
        if self.next().is_some_and(|next| next <= now) {
            self.run(now, false, out);
        }
    }

    /// Takes packets in order of time, when no other arrives at or before `now`, and puts out all
    /// that leaves until `now` and [`Pipeline::transit_min`], which is certain by then.
    pub fn take_ahead(
        &mut self,
        now: MonoTime,
        packets: impl Iterator<Item = Departure>,
        out: &mut Outlet,
    ) {
        for departure in packets {
            self.enter_packet(departure.at, departure.packet);
        }
        self.run(now, true, out);
    }

    /// The shortest time that any packet spends on the way.
    pub fn transit_min(&self) -> Duration {
        self.stages.iter().map(|stage| stage.transit_min).sum()
    }

    /// True when an element shares its time with one of another pipeline.
    pub fn is_shared(&self) -> bool {
        self.stages.iter().any(|stage| stage.element.is_shared())
    }

    /// The earliest time at which any element has something to do.
    pub fn next(&self) -> Option<MonoTime> {
        self.stages.iter().filter_map(|stage| stage.next).min()
    }

    /// A time before which nothing leaves the path, as far as is known now: a packet that an
    /// element has ready still spends the transit time of those behind it.
    pub fn next_departure(&self) -> Option<MonoTime> {
        let mut rest = Duration::ZERO;
        let mut earliest: Option<MonoTime> = None;
        for stage in self.stages.iter().rev() {
            let leaves = stage.next.map(|next| next + rest);
            earliest = earliest.into_iter().chain(leaves).min();
            rest += stage.transit_min;
        }
        earliest
    }

    /// The elements, for their counters.
    pub fn elements(&self) -> impl Iterator<Item = &dyn Element> {
        self.stages.iter().map(|stage| &*stage.element)
    }

    fn enter_packet(&mut self, at: MonoTime, mut packet: Packet) {
        if packet.number != Packet::UNNUMBERED {
            packet.number = self.taken;
            self.taken += 1;
        }
        self.entering.forward(at, packet);
    }

    /// Every element up to `now`, or as far ahead as the elements before it allow.
    fn run(&mut self, mut now: MonoTime, ahead: bool, out: &mut Outlet) {
        for stage in &mut self.stages {
            for departure in self.entering.departures.drain(..) {
                stage.receive(departure.at, departure.packet, &mut self.leaving);
            }
            if ahead {
                now += stage.transit_min;
            }
            stage.release(now, &mut self.leaving);
            std::mem::swap(&mut self.entering, &mut self.leaving);
            out.lost.append(&mut self.entering.lost);
            out.copied.append(&mut self.entering.copied);
        }
        let leaving = self.entering.departures.drain(..);
        out.departures.extend(leaving.filter(|departure| !departure.packet.is_cross()));
    }
}

impl std::fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pipeline").field("stages", &self.stages.len()).finish_non_exhaustive()
    }
}
