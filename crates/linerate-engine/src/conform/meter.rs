//! From a captured packet to an arrival: its length at the layer that counts, its colour, and why
//! some packets are not metered.

use linerate_core::conformance::{
    Analysis, Arrival, ConformPlan, Conformance, Ended, Facts, Layer, PlanError,
};
use linerate_core::theory::framing::{FCS_BYTES, FRAME_MIN_BYTES, frame_bytes, wire_bytes};
use linerate_core::theory::token_bucket::Colour;
use linerate_proto::capture::{CaptureDirection, CapturedPacket, Decoded, IpPacket, NoIp};

use super::MeteringLimits;

/// An analysis with its filter and limits.
pub(super) struct Metering {
    plan: ConformPlan,
    analysis: Analysis,
    packets_max: u64,
    span_ns_max: u64,
}

impl Metering {
    pub(super) fn new(plan: &ConformPlan, limits: &MeteringLimits) -> Result<Self, PlanError> {
        let span = limits.time.map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        Ok(Self {
            analysis: Analysis::new(plan)?,
            plan: plan.clone(),
            packets_max: limits.packets.unwrap_or(u64::MAX),
            span_ns_max: span.unwrap_or(u64::MAX),
        })
    }

    /// Meters a packet, whose capture left out `tag_bytes` of a VLAN tag. False when a limit is
    /// reached and no more are wanted.
    #[inline]
    pub(super) fn packet(&mut self, packet: &CapturedPacket<'_>, tag_bytes: u32) -> bool {
        let decoded = packet.decode();
        let ip = match decoded.ip {
            Ok(ip) => ip,
            Err(NoIp::Cut(_)) => {
                self.analysis.unused().cut += 1;
                return true;
            }
            Err(_) => {
                self.analysis.unused().without_ip += 1;
                return true;
            }
        };
        if !self.plan.filter.is_empty() && !self.passes(&decoded, &ip) {
            return true;
        }
        let Some(at_ns) = packet.at_ns else {
            self.analysis.unused().without_time += 1;
            return true;
        };
        let bytes = counted_bytes(self.plan.layer, packet, &decoded, &ip)
            + match self.plan.layer {
                Layer::Ip | Layer::Captured => 0,
                Layer::Frame | Layer::Wire => tag_bytes,
            };
        let (number, ip_bytes) = (packet.number, ip.ip_bytes);
        if self.analysis.is_beyond(at_ns, self.span_ns_max) {
            return false;
        }
        self.analysis.push(&Arrival { number, at_ns, bytes, ip_bytes, colour: colour(ip.dscp) });
        self.analysis.packets() < self.packets_max
    }

    fn passes(&mut self, decoded: &Decoded, ip: &IpPacket) -> bool {
        let facts = Facts {
            protocol: ip.protocol,
            source: ip.source,
            destination: ip.destination,
            ports: ip.ports.map(|ports| (ports.source, ports.destination)),
            outgoing: decoded.direction.map(|direction| direction == CaptureDirection::Outgoing),
        };
        let passes = self.plan.filter.passes(&facts);
        if !passes {
            let is_cut = self.plan.filter.asks_ports() && !ip.is_fragment && lost_ports(ip);
            let unused = self.analysis.unused();
            if is_cut {
                unused.cut += 1;
            } else {
                unused.filtered += 1;
            }
        }
        passes
    }

    /// Packets that the kernel dropped before they could be read.
    pub(super) const fn dropped(&mut self, packets: u64) {
        self.analysis.unused().dropped = Some(packets);
    }

    pub(super) fn conformance_result(
        &mut self,
        ended: Ended,
        failure: Option<String>,
    ) -> Conformance {
        self.analysis.result(ended, failure)
    }
}

/// True where the protocol has ports and the capture does not show them.
const fn lost_ports(ip: &IpPacket) -> bool {
    // TCP, UDP, DCCP, SCTP and UDP-Lite (IANA protocol numbers).
    matches!(ip.protocol, 6 | 17 | 33 | 132 | 136) && ip.ports.is_none()
}

/// Length of a packet at a layer. Where the capture has no Ethernet header, a frame is the packet
/// in Ethernet without tags.
fn counted_bytes(
    layer: Layer,
    packet: &CapturedPacket<'_>,
    decoded: &Decoded,
    ip: &IpPacket,
) -> u32 {
    let frame = || match decoded.frame_bytes {
        Some(bytes) => bytes.saturating_add(FCS_BYTES).max(FRAME_MIN_BYTES),
        None => frame_bytes(ip.ip_bytes, decoded.vlans.count),
    };
    match layer {
        Layer::Ip => ip.ip_bytes,
        Layer::Captured => decoded.frame_bytes.unwrap_or(packet.original_len),
        Layer::Frame => frame(),
        Layer::Wire => wire_bytes(frame()),
    }
}

/// The colour that an assured forwarding code point stands for: its drop precedence. All other
/// code points are green (RFC 2597 §6, RFC 2697 §4).
const fn colour(dscp: u8) -> Colour {
    let (class, precedence) = (dscp >> 3, dscp & 0b111);
    match (class, precedence) {
        (1..=4, 0b100) => Colour::Yellow,
        (1..=4, 0b110) => Colour::Red,
        _ => Colour::Green,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assured_forwarding_code_points_have_the_colour_of_their_drop_precedence() {
        // RFC 2597 §6: AF11 10, AF12 12, AF13 14, AF42 36, AF43 38. EF is 46, CS1 8.
        let cases = [
            (10, Colour::Green),
            (12, Colour::Yellow),
            (14, Colour::Red),
            (36, Colour::Yellow),
            (38, Colour::Red),
            (0, Colour::Green),
            (8, Colour::Green),
            (46, Colour::Green),
        ];
        for (dscp, want) in cases {
            assert_eq!(colour(dscp), want, "{dscp}");
        }
    }
}
