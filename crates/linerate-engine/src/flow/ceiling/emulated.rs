//! The rates of the emulated paths on the way, which the laboratory tells exactly.
//!
//! Left out: what stands beside a line, such as policers and cross traffic (`core::path::Bound`).

use linerate_core::path::Bound;
use linerate_core::record::PathPlan;
use linerate_core::theory::framing::FramingCeiling;

use super::FullPacket;

/// One direction of an emulated path.
#[derive(Clone, Debug)]
pub(super) struct Emulated {
    pub(super) plan: PathPlan,
    pub(super) backward: bool,
    pub(super) flows: usize,
}

impl Emulated {
    /// The rate that the path leaves for packets of a length.
    pub(super) fn bound_for_ip_bytes(&self, ip_bytes: u32) -> Option<Bound> {
        self.plan.packet_rate_bound(self.backward, ip_bytes, self.flows).ok().flatten()
    }

    /// The rate that the path leaves at each layer.
    pub(super) fn framing(&self, packet: &FullPacket) -> Option<FramingCeiling> {
        let bound = self.bound_for_ip_bytes(packet.bytes)?;
        let payload_bytes = packet.bytes.checked_sub(packet.segment.header_bytes())?;
        Some(bound.framing(packet.bytes, payload_bytes))
    }
}
