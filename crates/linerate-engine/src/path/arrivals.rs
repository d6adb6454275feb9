//! How long packets waited in a device until the emulator read them.
//!
//! The kernel's time of each is on the civil clock, which steps; a packet cannot have waited since
//! before its queue was seen empty, which bounds what a step adds. Left out: packets that the
//! kernel gave no time (those with a VLAN tag); they count as read at once.

use linerate_core::time::MonoTime;
use linerate_sys::clock;
use linerate_sys::handover_stamps::HandoverStamps;
use linerate_sys::tun::HEADER_BYTES;

/// The times of packets to one device.
#[derive(Debug, Default)]
pub(super) struct DeviceArrivals {
    stamps: Option<HandoverStamps>,
    emptied: MonoTime,
    /// When the packet came that was there first, of those read since the last look.
    first: Option<MonoTime>,
}

impl DeviceArrivals {
    pub(super) fn new(stamps: Option<HandoverStamps>) -> Self {
        Self { stamps, emptied: clock::monotonic(), first: None }
    }

    /// Notes that nothing waits now.
    pub(super) fn note_empty(&mut self, now: MonoTime) {
        self.emptied = now;
    }

    /// Time that a packet waited which was read at `now`, its virtio header before it.
    pub(super) fn note_read(&mut self, packet: &[u8], now: MonoTime) -> u64 {
        let stamps = self.stamps.as_mut();
        let at_ns = stamps.and_then(|stamps| stamps.take_time(packet.get(HEADER_BYTES..)?));
        let waited = at_ns.map_or(0, |at_ns| clock::realtime_ns().saturating_sub(at_ns));
        let waited = waited.min(now.nanos_since(self.emptied));
        let came = MonoTime::from_nanos(now.as_nanos() - waited);
        self.first = Some(self.first.map_or(came, |first| first.min(came)));
        waited
    }

    /// When the first packet came of those that were read since the last call.
    pub(super) fn take_first(&mut self) -> Option<MonoTime> {
        self.first.take()
    }
}
