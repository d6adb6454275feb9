//! What the slowest link of a plan leaves of its rate for TCP's payload, where a shaper sets it:
//! the ends of a path do not see a shaper in its middle, and the plan does.
//!
//! Left out: emulated paths, whose ceiling the records know.

use linerate_core::record::{Ceiling, IpFamily};
use linerate_core::study::Topology;
use linerate_core::theory::framing::{SegmentHeaders, ShapedLink, Transport, shaped_ceiling};
use linerate_core::units::BitRate;

/// MTU of a link whose plan names none (RFC 894).
const ETHERNET_MTU_BYTES: u32 = 1500;

/// The bound of the slowest link in the plan on TCP payload, with the packet length and headers
/// that the ceiling of a run names.
pub(crate) fn slowest_link(topology: &Topology, seen: Option<&Ceiling>) -> Option<PlanLimit> {
    let packet = TcpPacketLength::from_ceiling(seen);
    let limits = topology.lab.links.iter().filter_map(|link| {
        let rate: BitRate = link.rate.as_deref()?.parse().ok()?;
        let mtu_bytes = link.mtu_bytes.unwrap_or(ETHERNET_MTU_BYTES).min(packet.bytes);
        let link = ShapedLink { rate, mtu_bytes };
        let ceiling = shaped_ceiling(&link, &packet.segment).ok()?;
        Some(PlanLimit { payload_bps: ceiling.payload_bps, rate, mtu_bytes, packet })
    });
    limits.min_by(|one, other| one.payload_bps.total_cmp(&other.payload_bps))
}

/// The bound on TCP payload by a link whose rate the plan sets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlanLimit {
    /// Bits per second of TCP payload.
    pub payload_bps: f64,
    /// Rate to which the link's shaper is set.
    pub rate: BitRate,
    /// Length in bytes of a full IP packet on the link.
    pub mtu_bytes: u32,
    packet: TcpPacketLength,
}

impl PlanLimit {
    /// Bytes of IP and TCP headers in a packet.
    pub(crate) const fn header_bytes(&self) -> u32 {
        self.packet.segment.header_bytes()
    }

    /// True if the header lengths come from a run; false if those that Linux sends are assumed.
    pub(crate) const fn headers_seen(&self) -> bool {
        self.packet.seen
    }
}

/// Length and headers of a run's TCP packets.
#[derive(Clone, Copy, Debug)]
struct TcpPacketLength {
    segment: SegmentHeaders,
    bytes: u32,
    seen: bool,
}

impl TcpPacketLength {
    /// Length and headers that the ceiling of a record names; without one TCP over IPv4 with
    /// timestamps, the default of Linux.
    fn from_ceiling(ceiling: Option<&Ceiling>) -> Self {
        let input = |name| Some(ceiling?.find_input(name)?.value);
        let families = [IpFamily::V4, IpFamily::V6].into_iter();
        let segments = families.flat_map(|family| {
            [Transport::Tcp, Transport::TcpWithTimestamps, Transport::Udp]
                .map(|transport| SegmentHeaders { family, transport })
        });
        let header = input("header_bytes");
        let mut fits = segments.filter(|segment| header == Some(f64::from(segment.header_bytes())));
        let usual =
            SegmentHeaders { family: IpFamily::V4, transport: Transport::TcpWithTimestamps };
        match (fits.next(), input("packet_bytes")) {
            (Some(segment), Some(bytes)) => Self { segment, bytes: bytes as u32, seen: true },
            _ => Self { segment: usual, bytes: u32::MAX, seen: false },
        }
    }
}

#[cfg(test)]
mod tests {
    use linerate_core::record::{CeilingInput, Direction};

    use super::*;

    #[test]
    fn packets_are_those_of_the_record_or_those_that_linux_sends() {
        let mut ceiling = Ceiling::of_goodput(Direction::Up);
        ceiling.inputs = vec![
            CeilingInput::from_value("packet_bytes", 1040.0, ""),
            CeilingInput::from_value("header_bytes", 72.0, ""),
        ];
        // 40 of IPv6, 20 of TCP, 12 of timestamps.
        let seen = TcpPacketLength::from_ceiling(Some(&ceiling));
        assert_eq!((seen.bytes, seen.segment.family, seen.seen), (1040, IpFamily::V6, true));
        assert_eq!(seen.segment.transport, Transport::TcpWithTimestamps);
        let usual = TcpPacketLength::from_ceiling(None);
        assert_eq!((usual.segment.header_bytes(), usual.seen), (52, false));
    }
}
