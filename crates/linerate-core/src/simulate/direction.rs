//! One direction of a simulation: what enters its pipeline, and what has left but was not handed
//! over yet; and how an acknowledgement travels in a packet's tag.

use super::delivery::Transmission;
use super::receiver::Ack;
use crate::path::{Departure, Outlet, Packet, PathLossCause, Pipeline};
use crate::time::MonoTime;

/// Packets, copies and losses of one direction of the path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DirectionResult {
    /// Packets of the flows that entered it.
    pub taken_packets: u64,
    /// Bytes of those IP packets.
    pub taken_bytes: u64,
    /// Packets handed to the other end, copies among them.
    pub delivered_packets: u64,
    /// Bytes of those IP packets.
    pub delivered_bytes: u64,
    /// Packets of which the path made one more.
    pub copied_packets: u64,
    /// Packets of the flows that were lost, by cause, in the order of the first loss of each.
    pub lost: Vec<(PathLossCause, u64)>,
}

impl DirectionResult {
    /// Packets lost by any cause.
    pub fn lost_packets(&self) -> u64 {
        self.lost.iter().map(|(_, packets)| packets).sum()
    }

    fn count_loss(&mut self, cause: PathLossCause) {
        match self.lost.iter_mut().find(|(known, _)| *known == cause) {
            Some((_, packets)) => *packets += 1,
            None => self.lost.push((cause, 1)),
        }
    }
}

/// One direction of the path, with the packets in it.
#[derive(Debug)]
pub(super) struct DirectionState {
    pipeline: Pipeline,
    /// Packets that were sent since the pipeline was last run, in order of time.
    entry: Vec<Departure>,
    out: Outlet,
    /// Departures of `out` before this one were sent.
    handed: usize,
    pub(super) done: DirectionResult,
}

impl DirectionState {
    pub(super) fn new(pipeline: Pipeline) -> Self {
        let (out, done) = (Outlet::default(), DirectionResult::default());
        Self { pipeline, entry: Vec::new(), out, handed: 0, done }
    }

    pub(super) const fn pipeline(&self) -> &Pipeline {
        &self.pipeline
    }

    pub(super) fn send(&mut self, at: MonoTime, packet: Packet) {
        self.done.taken_packets += 1;
        self.done.taken_bytes += u64::from(packet.ip_bytes);
        self.entry.push(Departure { at, packet });
    }

    pub(super) fn has_entries(&self) -> bool {
        !self.entry.is_empty()
    }

    /// Takes the packets sent, when nothing more arrives at or before `now`. Reports the tags of
    /// lost packets.
    pub(super) fn run_ahead(&mut self, now: MonoTime, lost: impl FnMut(u64)) {
        self.pipeline.take_ahead(now, self.entry.drain(..), &mut self.out);
        self.count_losses(lost);
    }

    /// Runs the pipeline, no further than `now`.
    pub(super) fn run(&mut self, now: MonoTime, lost: impl FnMut(u64)) {
        for departure in self.entry.drain(..) {
            self.pipeline.receive(departure.at, departure.packet, &mut self.out);
        }
        self.pipeline.release(now, &mut self.out);
        self.count_losses(lost);
    }

    fn count_losses(&mut self, mut tell: impl FnMut(u64)) {
        // A simulated packet has no bytes to keep for a copy.
        self.done.copied_packets +=
            self.out.copied.drain(..).filter(|packet| !packet.is_cross()).count() as u64;
        for lost in self.out.lost.drain(..).filter(|lost| !lost.packet.is_cross()) {
            self.done.count_loss(lost.cause);
            tell(lost.packet.tag);
        }
    }

    /// The next packet to hand over.
    pub(super) fn next_departure(&self) -> Option<&Departure> {
        self.out.departures.get(self.handed)
    }

    /// The front was passed on.
    pub(super) fn pop(&mut self) {
        if let Some(front) = self.out.departures.get(self.handed) {
            self.done.delivered_packets += 1;
            self.done.delivered_bytes += u64::from(front.packet.ip_bytes);
        }
        self.handed += 1;
        if self.handed == self.out.departures.len() {
            self.out.departures.clear();
            self.handed = 0;
        }
    }

    /// Time of the next event in this direction.
    pub(super) fn next(&self) -> Option<MonoTime> {
        let sent = self.entry.first().map(|departure| departure.at);
        let left = self.next_departure().map(|departure| departure.at);
        [sent, left, self.pipeline.next()].into_iter().flatten().min()
    }
}

/// Bits of a tag that hold a segment's number: 2^39 segments of 1448 bytes are 0.8 PB.
const NUMBER_BITS: u32 = 39;
/// Bit of a tag that marks a retransmission.
const AGAIN: u64 = 1 << NUMBER_BITS;
/// The flow is above both.
const FLOW_SHIFT: u32 = NUMBER_BITS + 1;
/// Marks the tag of an acknowledgement that is in the slab.
const IN_SLAB: u64 = 1 << 63;

/// Flows of one simulation at the most.
pub(super) const FLOWS_MAX: usize = 1 << 23;

/// The tag of a segment, or of an acknowledgement that names the next one and no more.
pub(super) const fn tag_of(flow: usize, number: u64) -> u64 {
    (flow as u64) << FLOW_SHIFT | number
}

/// The tag of a transmission of a segment.
pub(super) const fn tag_of_sent(flow: usize, sent: Transmission) -> u64 {
    tag_of(flow, sent.number) | if sent.again { AGAIN } else { 0 }
}

/// Flow and transmission of such a tag.
pub(super) fn parts_of(tag: u64) -> (usize, Transmission) {
    let flow = usize::try_from(tag >> FLOW_SHIFT).expect("at most 24 bits");
    (flow, Transmission { number: tag & (AGAIN - 1), again: tag & AGAIN > 0 })
}

/// Acknowledgements on their way that carry more than the number of the next segment. A tag is the
/// place and, above it, the number of earlier uses of the place, so that a second copy differs from
/// another acknowledgement.
#[derive(Debug, Default)]
pub(super) struct AcksOnPath {
    entries: Vec<AckEntry>,
    free: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct AckEntry {
    uses: u32,
    flow: usize,
    ack: Ack,
}

impl AcksOnPath {
    pub(super) fn insert(&mut self, flow: usize, ack: Ack) -> u64 {
        if ack.is_plain() {
            return tag_of(flow, ack.next);
        }
        let place = self.free.pop().unwrap_or_else(|| {
            self.entries.push(AckEntry { uses: 0, flow, ack });
            u32::try_from(self.entries.len() - 1).expect("fewer packets than 2^32 are under way")
        });
        let entry = &mut self.entries[place as usize];
        (entry.flow, entry.ack) = (flow, ack);
        IN_SLAB | u64::from(entry.uses) << 32 | u64::from(place)
    }

    /// Flow and acknowledgement of a tag; `None` for a second copy of one with blocks, which has
    /// nothing new.
    pub(super) fn remove(&mut self, tag: u64) -> Option<(usize, Ack)> {
        if tag & IN_SLAB == 0 {
            let (flow, sent) = parts_of(tag);
            return Some((flow, Ack { next: sent.number, ..Ack::default() }));
        }
        let place = u32::try_from(tag & u64::from(u32::MAX)).expect("32 bits");
        let entry = &mut self.entries[place as usize];
        if u64::from(entry.uses) != (tag & !IN_SLAB) >> 32 {
            return None;
        }
        entry.uses = (entry.uses + 1) & (u32::MAX >> 1);
        self.free.push(place);
        Some((entry.flow, entry.ack))
    }
}
