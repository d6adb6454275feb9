//! The rates of the emulated paths on the way, which the laboratory tells exactly.
//!
//! Left out: what stands beside a line, such as policers and cross traffic (`core::path::Bound`).

use linerate_core::path::Bound;
use linerate_core::record::{Direction, EmulatedPath, PathPlan};
use linerate_core::theory::framing::FramingCeiling;

use super::Packet;
use super::link::{Counts, Known, LinkRate};

/// A packet by which rates are compared before the test's own are known.
const FULL_PACKET_BYTES: u32 = 1500;

/// One direction of an emulated path.
#[derive(Clone, Debug)]
pub(super) struct Emulated {
    plan: PathPlan,
    backward: bool,
    flows: usize,
}

/// Adds the rates of paths that carry a direction. The devices at their ends, which tell none, are
/// no longer unknown.
pub(super) fn add(known: &mut Known, paths: &[EmulatedPath], direction: Direction, flows: usize) {
    if known.no_link.is_some() {
        return;
    }
    for path in paths {
        let Some(carrying) = path.carrying(direction) else { continue };
        known.unknown.retain(|unknown| !unknown.contains("(tun)"));
        let plan = path.plan.clone();
        let emulated = Emulated { plan, backward: carrying.backward, flows };
        let Some(bound) = emulated.bound(FULL_PACKET_BYTES) else { continue };
        let bps = bound.packets_per_s * f64::from(bound.line_bytes) * 8.0;
        known.rates.push(LinkRate {
            bps: bound.rate.map_or(bps as u64, |rate| rate.bits_per_sec()),
            counts: Counts::Emulated(Box::new(emulated)),
            tags: 0,
            source: format!("laboratory link {}, {}", path.name, bound.what),
        });
    }
}

impl Emulated {
    fn bound(&self, ip_bytes: u32) -> Option<Bound> {
        self.plan.bound(self.backward, ip_bytes, self.flows).ok().flatten()
    }

    /// What the path leaves at each layer.
    pub(super) fn framing(&self, packet: &Packet) -> Option<FramingCeiling> {
        let bound = self.bound(packet.bytes)?;
        let payload_bytes = packet.bytes.checked_sub(packet.segment.header_bytes())?;
        Some(bound.framing(packet.bytes, payload_bytes))
    }
}
