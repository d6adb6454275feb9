//! The rates of the emulated paths on the way, which the laboratory tells exactly.
//!
//! Left out: what stands beside a line, such as policers and cross traffic (`core::path::Bound`).

use linerate_core::path::Bound;
use linerate_core::record::PathPlan;
use linerate_core::theory::framing::FramingCeiling;

use super::Packet;

/// One direction of an emulated path.
#[derive(Clone, Debug)]
pub(super) struct Emulated {
    pub(super) plan: PathPlan,
    pub(super) backward: bool,
    pub(super) flows: usize,
}

impl Emulated {
    /// What the path leaves of its rate for packets of a length.
    pub(super) fn bound(&self, ip_bytes: u32) -> Option<Bound> {
        self.plan.bound(self.backward, ip_bytes, self.flows).ok().flatten()
    }

    /// What the path leaves at each layer.
    pub(super) fn framing(&self, packet: &Packet) -> Option<FramingCeiling> {
        let bound = self.bound(packet.bytes)?;
        let payload_bytes = packet.bytes.checked_sub(packet.segment.header_bytes())?;
        Some(bound.framing(packet.bytes, payload_bytes))
    }
}
