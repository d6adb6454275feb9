//! The rates of the emulated paths on the way, which the laboratory tells exactly.
//!
//! Left out: what stands beside a line, such as policers and cross traffic (`core::path::Bound`).

use linerate_core::path::{Bound, PathPlan};
use linerate_core::record::{Direction, EmulatedPath};
use linerate_core::theory::framing::{FramingCeiling, GAP_BYTES, PREAMBLE_BYTES};

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

    /// What the path leaves at each layer. On lines without frames of Ethernet the frame is all
    /// that the packet takes there.
    pub(super) fn framing(&self, packet: &Packet) -> Option<FramingCeiling> {
        let bound = self.bound(packet.bytes)?;
        let bps = |bytes: u32| bound.packets_per_s * f64::from(bytes) * 8.0;
        let payload_bytes = packet.bytes.checked_sub(packet.segment.header_bytes())?;
        let around = if bound.what == "ethernet" { PREAMBLE_BYTES + GAP_BYTES } else { 0 };
        Some(FramingCeiling {
            payload_bps: bps(payload_bytes),
            ip_bps: bps(packet.bytes),
            frame_bps: bps(bound.line_bytes - around),
            wire_bps: bps(bound.line_bytes),
            frames_per_s: bound.packets_per_s,
        })
    }
}
