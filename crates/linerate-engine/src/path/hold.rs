//! Where the bytes of packets are while the path has them: a ring of memory, filled at one end.
//!
//! A super-packet is kept until the last of its segments has left or is lost. The ring is free
//! again from both ends: behind the oldest packets that left, and before the newest that a full
//! queue lost at once, so that any overload leaves it room. An empty one starts over at the same,
//! warm, bytes. Nothing is allocated after the start.

use std::collections::VecDeque;

use linerate_sys::Result;
use linerate_sys::arena::Arena;

use super::frame::EmulatedFrame;

/// Longest read: virtio and Ethernet header, and an IPv6 packet without jumbo payload.
pub(super) const READ_BYTES: usize = 65_664;
/// Packets start at multiples of a cache line.
const LINE_BYTES: usize = 64;
/// Bits of a tag for the segment: a super-packet has fewer than 65,536.
const SEGMENT_BITS: u32 = 16;

/// A packet in the ring.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeldPacket {
    pub(super) frame: EmulatedFrame,
    /// Time that it waited to be read.
    pub(super) waited_ns: u64,
    offset: usize,
    /// Segments that the path still has.
    left: u32,
}

/// A ring of packets of one direction.
#[derive(Debug)]
pub(super) struct PacketRing {
    arena: Arena,
    held: VecDeque<HeldPacket>,
    /// Most packets at once.
    entries: usize,
    /// Number of the oldest in the ring.
    oldest: u64,
    tail: usize,
}

/// Bytes of ring for each packet that can be told of: small packets with their virtio header take
/// one or two lines.
const ENTRY_BYTES: u64 = 96;

/// Bytes of the ring for paths that have at most `ip_bytes` at once: half more for headers, line
/// ends and super-packets that are not yet gone whole, and four reads at work.
pub(super) const fn ring_bytes(ip_bytes: u64) -> u64 {
    (ip_bytes.saturating_add(ip_bytes / 2)).saturating_add(4 * READ_BYTES as u64)
}

/// Bytes that tell of the packets in a ring: one entry here and one in the elements for each.
pub(super) const fn ledger_bytes(ring_bytes: u64) -> u64 {
    let entry = size_of::<HeldPacket>() + size_of::<linerate_core::path::Departure>();
    (ring_bytes / ENTRY_BYTES).saturating_mul(entry as u64)
}

impl PacketRing {
    pub(super) fn new(bytes: usize) -> Result<Self> {
        let entries = bytes / ENTRY_BYTES as usize;
        let mut held = VecDeque::with_capacity(entries);
        // Touches the memory of the entries, so that no page of it comes later.
        let blank = HeldPacket {
            frame: EmulatedFrame::read(&[0; 64], Default::default()),
            waited_ns: 0,
            offset: 0,
            left: 0,
        };
        held.resize(entries, blank);
        held.clear();
        Ok(Self { arena: Arena::new(bytes)?, held, entries, oldest: 0, tail: 0 })
    }

    pub(super) const fn locked(&self) -> bool {
        self.arena.locked()
    }

    /// Room for one read; none when the ring is full.
    pub(super) fn space_for_read(&mut self) -> Option<&mut [u8]> {
        let Some(head) = self.held.front().map(|oldest| oldest.offset) else {
            self.tail = 0;
            return self.arena.get_mut(..READ_BYTES);
        };
        if self.tail > head && self.arena.len() - self.tail < READ_BYTES {
            self.tail = 0;
        }
        // The tail never reaches the head again: equal would look empty.
        let meets = self.tail <= head && head - self.tail <= READ_BYTES;
        if meets || self.held.len() == self.entries {
            return None;
        }
        self.arena.get_mut(self.tail..self.tail + READ_BYTES)
    }

    /// Keeps a packet as [`Self::keep_after`] does, read without a wait.
    #[cfg(test)]
    pub(super) fn keep_packet(&mut self, frame: EmulatedFrame) -> u64 {
        self.keep_after(0, frame)
    }

    /// Keeps what was read into the room, and how long it waited to be read; the tag of its first
    /// segment.
    pub(super) fn keep_after(&mut self, waited_ns: u64, frame: EmulatedFrame) -> u64 {
        let number = self.oldest + self.held.len() as u64;
        let left = u32::from(frame.segments);
        self.held.push_back(HeldPacket { frame, waited_ns, offset: self.tail, left });
        self.tail += (frame.length as usize).next_multiple_of(LINE_BYTES);
        number << SEGMENT_BITS
    }

    /// A packet by the tag of any of its segments; none once it was let go.
    pub(super) fn get(&self, tag: u64) -> Option<(&HeldPacket, &[u8])> {
        let index = usize::try_from((tag >> SEGMENT_BITS).checked_sub(self.oldest)?).ok()?;
        let held = self.held.get(index)?;
        if held.left == 0 {
            return None;
        }
        let bytes = &self.arena[held.offset..held.offset + held.frame.length as usize];
        Some((held, bytes))
    }

    /// Lets segments of a packet go.
    pub(super) fn release(&mut self, tag: u64, segments: u16) {
        let Some(index) = (tag >> SEGMENT_BITS).checked_sub(self.oldest) else { return };
        let Some(held) = self.held.get_mut(index as usize) else { return };
        held.left = held.left.saturating_sub(u32::from(segments));
        while self.held.front().is_some_and(|oldest| oldest.left == 0) {
            self.held.pop_front();
            self.oldest += 1;
        }
        // Nothing means a packet any more that is gone whole: its number is free for the next.
        while let Some(&newest) = self.held.back().filter(|newest| newest.left == 0) {
            self.held.pop_back();
            self.tail = newest.offset;
        }
    }

    /// Keeps a packet longer: the path made more copies of its segments.
    pub(super) fn retain(&mut self, tag: u64) {
        let Some(index) = (tag >> SEGMENT_BITS).checked_sub(self.oldest) else { return };
        if let Some(held) = self.held.get_mut(index as usize) {
            held.left += 1;
        }
    }

    /// Gives back the bytes behind segment `last` of the newest packet: those after it are lost.
    pub(super) fn trim_newest(&mut self, tag: u64, last: u16) {
        let newest = self.oldest + (self.held.len() as u64).wrapping_sub(1);
        let Some(held) = self.held.back().filter(|_| tag >> SEGMENT_BITS == newest) else { return };
        let Some(parts) = held.frame.super_packet else { return };
        let end = held.frame.payload(&parts, last, last).end;
        self.tail = held.offset + end.next_multiple_of(LINE_BYTES);
    }
}

/// The segment that a tag means.
pub(super) const fn segment_of(tag: u64) -> u16 {
    (tag & ((1 << SEGMENT_BITS) - 1)) as u16
}
