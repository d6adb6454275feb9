//! The most that Ethernet framing leaves of a link's rate, at every layer, for back-to-back full
//! packets of one flow.
//!
//! Left out: encapsulations other than VLAN tags, SACK options (they ride on acknowledgements,
//! which go the other way) and half duplex. Sizes: IEEE 802.3 §3 and §4.4, IEEE 802.1Q §9.

use thiserror::Error;

use crate::record::IpFamily;
use crate::units::{BitRate, FrameLen, PacketRate};

/// Preamble and start-of-frame delimiter, bytes (IEEE 802.3 §3.1.1: 7 + 1).
pub const PREAMBLE_BYTES: u32 = 8;
/// Inter-packet gap, bytes (IEEE 802.3 §4.4.2: 96 bit times).
pub const GAP_BYTES: u32 = 12;
/// Destination, source and type, bytes (IEEE 802.3 §3.1.1).
pub const HEADER_BYTES: u32 = 14;
/// Frame check sequence, bytes (IEEE 802.3 §3.1.1).
pub const FCS_BYTES: u32 = 4;
/// One VLAN tag, bytes (IEEE 802.1Q §9).
pub const VLAN_TAG_BYTES: u32 = 4;
/// Shortest frame, FCS included, bytes (IEEE 802.3 §4.4.2 minFrameSize).
pub const FRAME_MIN_BYTES: u32 = 64;
/// Frame sizes of router tests, FCS included, bytes: those that Bradner took and RFC 2544 §9.1
/// kept, 1280 for IPv6 (RFC 5180 §5.1.1), and 9018, the frame of a packet of 9000.
pub const FRAME_SIZES_BYTES: [u32; 8] = [64, 128, 256, 512, 1024, 1280, 1518, 9018];
/// Longest IP packet, bytes (RFC 791 §3.1: a total length of 16 bits). IPv6 without jumbograms
/// could reach 40 more; no Ethernet does.
pub const PACKET_MAX_BYTES: u32 = 65_535;

/// IPv4 header without options, bytes (RFC 791 §3.1).
pub const IPV4_HEADER_BYTES: u32 = 20;
/// IPv6 header without extensions, bytes (RFC 8200 §3).
pub const IPV6_HEADER_BYTES: u32 = 40;
/// TCP header without options, bytes (RFC 9293 §3.1).
pub const TCP_HEADER_BYTES: u32 = 20;
/// TCP timestamps option with its padding, bytes (RFC 7323 appendix A).
pub const TCP_TIMESTAMPS_BYTES: u32 = 12;
/// UDP header, bytes (RFC 768).
pub const UDP_HEADER_BYTES: u32 = 8;

/// An Ethernet link: rate, MTU and VLAN tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EthernetLink {
    /// Rate at which bits leave, preamble and gap among them.
    pub rate: BitRate,
    /// Largest IP packet of the link.
    pub mtu_bytes: u32,
    /// VLAN tags on every frame: 1 for 802.1Q, 2 for 802.1ad.
    pub vlan_tags: u8,
}

/// A link whose rate a shaper sets that counts the IP packet and the Ethernet header, and neither
/// FCS nor preamble nor gap: Linux's tbf and htb on an Ethernet interface without a `stab`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShapedLink {
    /// Rate of the shaper.
    pub rate: BitRate,
    /// Largest IP packet of the link.
    pub mtu_bytes: u32,
}

/// Transport header after the IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// TCP without options.
    Tcp,
    /// TCP with timestamps on every segment, as Linux sends it by default.
    TcpWithTimestamps,
    /// UDP.
    Udp,
}

/// The headers of a flow's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentHeaders {
    /// IP version of the packets.
    pub family: IpFamily,
    /// Transport header after the IP header.
    pub transport: Transport,
}

impl SegmentHeaders {
    /// IP and transport headers of a packet, bytes.
    pub const fn header_bytes(self) -> u32 {
        let ip = match self.family {
            IpFamily::V4 => IPV4_HEADER_BYTES,
            IpFamily::V6 => IPV6_HEADER_BYTES,
        };
        ip + match self.transport {
            Transport::Tcp => TCP_HEADER_BYTES,
            Transport::TcpWithTimestamps => TCP_HEADER_BYTES + TCP_TIMESTAMPS_BYTES,
            Transport::Udp => UDP_HEADER_BYTES,
        }
    }

    /// Payload of a packet that fills `mtu_bytes`, bytes.
    /// # Errors
    /// When the headers leave no payload, or no IP packet is so long.
    pub const fn payload_bytes(self, mtu_bytes: u32) -> Result<u32, FramingError> {
        let header_bytes = self.header_bytes();
        if mtu_bytes > PACKET_MAX_BYTES {
            return Err(FramingError::MtuTooLarge { mtu_bytes });
        }
        if mtu_bytes <= header_bytes {
            return Err(FramingError::MtuTooSmall { mtu_bytes, header_bytes });
        }
        Ok(mtu_bytes - header_bytes)
    }
}

/// Reason why a ceiling cannot be computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FramingError {
    /// A link without rate carries nothing.
    #[error("the link's rate is 0")]
    ZeroRate,
    /// An MTU in which no payload fits.
    #[error("an MTU of {mtu_bytes} bytes leaves no payload after {header_bytes} bytes of headers")]
    MtuTooSmall {
        /// The MTU that was given.
        mtu_bytes: u32,
        /// IP and transport headers.
        header_bytes: u32,
    },
    /// No packet is so long.
    #[error("an MTU of {mtu_bytes} bytes is above 65535, the longest IP packet")]
    MtuTooLarge {
        /// The MTU that was given.
        mtu_bytes: u32,
    },
}

/// Highest rates of one flow on a link, in bit/s at each layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FramingCeiling {
    /// Rate of the payload.
    pub payload_bps: f64,
    /// Rate of the IP packets.
    pub ip_bps: f64,
    /// Frames, header, tags and FCS included.
    pub frame_bps: f64,
    /// Frames with preamble and gap. On an Ethernet link this is its rate; on a shaped link it is
    /// what the frames take on the wire behind the shaper.
    pub wire_bps: f64,
    /// Frames per second.
    pub frames_per_s: f64,
}

/// Bytes of the frame that carries an IP packet: at least 64, FCS and tags included.
pub const fn frame_bytes(packet_bytes: u32, vlan_tags: u8) -> u32 {
    let tags = VLAN_TAG_BYTES * vlan_tags as u32;
    let bytes = packet_bytes.saturating_add(HEADER_BYTES + FCS_BYTES + tags);
    if bytes < FRAME_MIN_BYTES { FRAME_MIN_BYTES } else { bytes }
}

/// Bytes that a frame takes on the wire: preamble and gap added.
pub const fn wire_bytes(frame_bytes: u32) -> u32 {
    frame_bytes.saturating_add(PREAMBLE_BYTES + GAP_BYTES)
}

/// [`FRAME_SIZES_BYTES`] as lengths.
pub fn frame_sizes() -> [FrameLen; FRAME_SIZES_BYTES.len()] {
    FRAME_SIZES_BYTES.map(|bytes| FrameLen::from_bytes(bytes).expect("all are within 64 to 9242"))
}

/// Frames of `len` that fill a link, per second: rate / (8 (len + 20)).
/// # Source
/// RFC 5180 appendix A.
pub fn frame_rate(rate: BitRate, len: FrameLen) -> PacketRate {
    let per_frame = f64::from(wire_bytes(len.bytes())) * 8.0;
    PacketRate::from_per_sec(rate.bits_per_sec() as f64 / per_frame)
        .expect("a finite rate over at least 84 bytes is finite")
}

/// Whole frames of `len` that a link carries in a second: [`frame_rate`] rounded down.
///
/// ```
/// # use linerate_core::theory::framing::whole_frame_rate;
/// # use linerate_core::units::{BitRate, FrameLen};
/// let rate = BitRate::from_bits_per_sec(10_000_000_000);
/// assert_eq!(whole_frame_rate(rate, FrameLen::MIN), 14_880_952);
/// ```
/// # Source
/// RFC 5180 appendix A.
pub fn whole_frame_rate(rate: BitRate, len: FrameLen) -> u64 {
    rate.bits_per_sec() / (u64::from(wire_bytes(len.bytes())) * 8)
}

/// Highest rates of a flow of full packets on an Ethernet link.
///
/// frames/s = rate / (8 (max(64, MTU + 18 + 4 tags) + 20)); each layer is frames/s times its
/// bytes. At 1 Gbit/s with an MTU of 1500, TCP over IPv4 with timestamps gets 941.48 Mbit/s.
/// # Errors
/// A rate of 0, an MTU that the headers fill, an MTU above 65535.
/// # Source
/// IEEE 802.3; RFC 6349 gives 8127 frames/s and 94.9 Mbit/s of TCP at 100 Mbit/s.
pub fn ceiling(
    link: &EthernetLink,
    segment: &SegmentHeaders,
) -> Result<FramingCeiling, FramingError> {
    let frame = frame_bytes(link.mtu_bytes, link.vlan_tags);
    let sizes = PacketSizes {
        payload: segment.payload_bytes(link.mtu_bytes)?,
        ip: link.mtu_bytes,
        frame,
        counted: wire_bytes(frame),
    };
    sizes.ceiling_at_rate(link.rate)
}

/// Highest rates of a flow of full packets on a shaped link; bursts that the shaper lets through at
/// the start are not in it.
///
/// frames/s = rate / (8 (MTU + 14)). At 155.52 Mbit/s with an MTU of 1500, TCP over IPv4 with
/// timestamps gets 148.74 Mbit/s.
/// # Errors
/// A rate of 0, an MTU that the headers fill, an MTU above 65535.
/// # Source
/// Linux net/sched/sch_tbf.c: a packet costs its length from the Ethernet header on, and each
/// segment of a large send counts its own headers (qdisc_pkt_len_init in net/core/dev.c).
pub fn shaped_ceiling(
    link: &ShapedLink,
    segment: &SegmentHeaders,
) -> Result<FramingCeiling, FramingError> {
    let sizes = PacketSizes {
        payload: segment.payload_bytes(link.mtu_bytes)?,
        ip: link.mtu_bytes,
        frame: frame_bytes(link.mtu_bytes, 0),
        counted: link.mtu_bytes + HEADER_BYTES,
    };
    sizes.ceiling_at_rate(link.rate)
}

/// One full packet, in bytes at each layer.
struct PacketSizes {
    payload: u32,
    ip: u32,
    frame: u32,
    /// Bytes of a packet that the link's rate counts.
    counted: u32,
}

impl PacketSizes {
    fn ceiling_at_rate(&self, rate: BitRate) -> Result<FramingCeiling, FramingError> {
        if rate.bits_per_sec() == 0 {
            return Err(FramingError::ZeroRate);
        }
        let bps = rate.bits_per_sec() as f64;
        let share = |bytes: u32| bps * (f64::from(bytes) / f64::from(self.counted));
        Ok(FramingCeiling {
            payload_bps: share(self.payload),
            ip_bps: share(self.ip),
            frame_bps: share(self.frame),
            wire_bps: share(wire_bytes(self.frame)),
            frames_per_s: bps / (f64::from(self.counted) * 8.0),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const V4: SegmentHeaders = SegmentHeaders { family: IpFamily::V4, transport: Transport::Tcp };
    const V4_TS: SegmentHeaders = SegmentHeaders { transport: Transport::TcpWithTimestamps, ..V4 };
    const V4_UDP: SegmentHeaders = SegmentHeaders { transport: Transport::Udp, ..V4 };
    const V6: SegmentHeaders = SegmentHeaders { family: IpFamily::V6, transport: Transport::Tcp };
    const V6_TS: SegmentHeaders = SegmentHeaders { transport: Transport::TcpWithTimestamps, ..V6 };
    const V6_UDP: SegmentHeaders = SegmentHeaders { transport: Transport::Udp, ..V6 };

    fn ethernet_link(rate: &str, mtu_bytes: u32, vlan_tags: u8) -> EthernetLink {
        EthernetLink { rate: rate.parse().expect("a rate"), mtu_bytes, vlan_tags }
    }

    fn payload_mbps(link: &EthernetLink, segment: &SegmentHeaders) -> f64 {
        ceiling(link, segment).expect("a possible link").payload_bps / 1e6
    }

    /// `got` rounds to `want`, whose last digit stands for `unit`.
    fn assert_rounds_to(got: f64, want: f64, unit: f64) {
        assert!((got - want).abs() <= unit * 0.501, "got {got}, want {want}");
    }

    /// One row: rate; frames/s of 64 and of 1518 bytes; Mbit/s of payload for TCP with timestamps,
    /// TCP, TCP over IPv6 with timestamps and UDP at MTU 1500, TCP with timestamps at MTU 9000.
    fn check_rates(rate: &str, frames: [f64; 2], mbps: [f64; 5]) {
        let bits = rate.parse().expect("a rate");
        for (bytes, want) in [64, 1518].into_iter().zip(frames) {
            let len = FrameLen::from_bytes(bytes).expect("a frame");
            let got = frame_rate(bits, len).per_sec();
            assert!((got - want).abs() <= want * 1e-7 + 0.005, "{rate} {bytes} {got} {want}");
        }
        let standard = ethernet_link(rate, 1500, 0);
        let got = [
            payload_mbps(&standard, &V4_TS),
            payload_mbps(&standard, &V4),
            payload_mbps(&standard, &V6_TS),
            payload_mbps(&standard, &V4_UDP),
            payload_mbps(&ethernet_link(rate, 9000, 0), &V4_TS),
        ];
        for (got, want) in got.into_iter().zip(mbps) {
            assert!(((got - want) / want).abs() < 1e-5, "{rate}: {got} {want}");
        }
    }

    #[test]
    fn ceilings_from_10_megabit_to_800_gigabit_come_out() {
        // 1e6 / (8 * 84) = 1488.0952, 1e6 / (8 * 1538) = 81.274382 frames/s each Mbit/s; payload
        // shares 1448, 1460, 1428 and 1472 of 1538 and 8948 of 9038.
        check_rates("10M", [14_880.95, 812.744], [9.4148, 9.4928, 9.2848, 9.5709, 9.9004]);
        check_rates("100M", [148_809.52, 8_127.438], [94.148, 94.928, 92.848, 95.709, 99.004]);
        check_rates(
            "1G",
            [1_488_095.24, 81_274.382],
            [941.482, 949.285, 928.479, 957.087, 990.042],
        );
        check_rates(
            "2.5G",
            [3_720_238.10, 203_185.956],
            [2353.706, 2373.212, 2321.196, 2392.718, 2475.105],
        );
        check_rates(
            "10G",
            [14_880_952.38, 812_743.82],
            [9414.82, 9492.85, 9284.79, 9570.87, 9900.42],
        );
        check_rates(
            "25G",
            [37_202_380.95, 2_031_859.56],
            [23_537.06, 23_732.12, 23_211.96, 23_927.18, 24_751.05],
        );
        check_rates(
            "100G",
            [148_809_523.8, 8_127_438.2],
            [94_148.2, 94_928.5, 92_847.9, 95_708.7, 99_004.2],
        );
        check_rates(
            "400G",
            [595_238_095.2, 32_509_752.9],
            [376_593.0, 379_713.9, 371_391.4, 382_834.9, 396_016.8],
        );
        check_rates(
            "800G",
            [1_190_476_190.5, 65_019_505.9],
            [753_186.0, 759_427.8, 742_782.8, 765_669.7, 792_033.6],
        );
    }

    #[test]
    fn rates_between_scale_linearly() {
        for (rate, gigabits) in [("5G", 5.0), ("40G", 40.0), ("50G", 50.0), ("200G", 200.0)] {
            assert_rounds_to(
                payload_mbps(&ethernet_link(rate, 1500, 0), &V4_TS),
                941.482_445 * gigabits,
                1e-3,
            );
        }
    }

    #[test]
    fn vlan_tags_cost_four_bytes_each() {
        let mbps = |tags| payload_mbps(&ethernet_link("1G", 1500, tags), &V4_TS);
        assert_rounds_to(mbps(1), 939.040, 1e-3); // 1448/1542
        assert_rounds_to(mbps(2), 936.611, 1e-3); // 1448/1546
    }

    #[test]
    fn the_frame_rates_of_rfc_5180_appendix_a_come_out() {
        // RFC 5180 appendix A.1: 10 Mb/s to 10 Gb/s, whole frames per second.
        let rates = ["10M", "100M", "1G", "10G"];
        let table = [
            (64, [14_880, 148_809, 1_488_095, 14_880_952]),
            (128, [8_445, 84_459, 844_594, 8_445_945]),
            (256, [4_528, 45_289, 452_898, 4_528_985]),
            (512, [2_349, 23_496, 234_962, 2_349_624]),
            (1024, [1_197, 11_973, 119_731, 1_197_318]),
            (1280, [961, 9_615, 96_153, 961_538]),
            (1518, [812, 8_127, 81_274, 812_743]),
        ];
        for (bytes, frames) in table {
            let len = FrameLen::from_bytes(bytes).expect("a frame");
            for (rate, frames) in rates.into_iter().zip(frames) {
                let rate = rate.parse().expect("a rate");
                assert_eq!(whole_frame_rate(rate, len), frames, "{bytes} bytes at {rate}");
            }
        }
    }

    #[test]
    fn the_figures_of_rfc_6349_come_out() {
        // RFC 6349: 100 Mbit/s, MTU 1500: 8127 frames/s, 94.9 Mbit/s of TCP payload.
        let ceiling = ceiling(&ethernet_link("100M", 1500, 0), &V4).expect("a possible link");
        assert_rounds_to(ceiling.frames_per_s, 8127.438, 1e-3);
        assert_rounds_to(ceiling.payload_bps / 1e6, 94.9, 0.1);
    }

    #[test]
    fn every_layer_holds_the_one_above_it() {
        // 1 Gbit/s, 9216: 9254 on the wire, 9234 in the frame, 9216 in IP, 9144 over IPv6 TCP.
        let ceiling = ceiling(&ethernet_link("1G", 9216, 0), &V6_TS).expect("a possible link");
        assert_rounds_to(ceiling.wire_bps, 1e9, 1e-3);
        assert_rounds_to(ceiling.frame_bps / 1e9, 9234.0 / 9254.0, 1e-12);
        assert_rounds_to(ceiling.ip_bps / 1e9, 9216.0 / 9254.0, 1e-12);
        assert_rounds_to(ceiling.payload_bps / 1e9, 9144.0 / 9254.0, 1e-12);
    }

    #[test]
    fn small_mtus_and_every_header_come_out_by_hand() {
        // MTU 576: 614 bytes on the wire.
        for (segment, payload) in
            [(V4, 536), (V4_TS, 524), (V4_UDP, 548), (V6, 516), (V6_TS, 504), (V6_UDP, 528)]
        {
            assert_eq!(segment.payload_bytes(576), Ok(payload));
            let want = 100.0 * f64::from(payload) / 614.0;
            assert_rounds_to(payload_mbps(&ethernet_link("100M", 576, 0), &segment), want, 1e-9);
        }
    }

    #[test]
    fn short_packets_are_padded_to_64_bytes() {
        assert_eq!(frame_bytes(46, 0), 64);
        assert_eq!(frame_bytes(29, 0), 64);
        assert_eq!(frame_bytes(47, 0), 65);
        // A tag takes the place of padding first (IEEE 802.1Q: the minimum stays 64).
        assert_eq!(frame_bytes(42, 1), 64);
        assert_eq!(wire_bytes(frame_bytes(1500, 2)), 1546);
    }

    #[test]
    fn a_shaper_counts_neither_fcs_nor_preamble_nor_gap() {
        let oc3 = ShapedLink { rate: "155.52M".parse().expect("a rate"), mtu_bytes: 1500 };
        let ceiling = shaped_ceiling(&oc3, &V4_TS).expect("a possible link");
        // 155,520,000 * 1448 / 1514 and / (8 * 1514); 1538 of 1514 on the wire behind it.
        assert_rounds_to(ceiling.payload_bps, 148_740_396.3, 0.1);
        assert_rounds_to(ceiling.frames_per_s, 12_840.158_5, 1e-4);
        assert_rounds_to(ceiling.frame_bps, 155_520_000.0 * 1518.0 / 1514.0, 1e-3);
        assert_rounds_to(ceiling.wire_bps, 155_520_000.0 * 1538.0 / 1514.0, 1e-3);
    }

    #[test]
    fn impossible_links_are_refused_in_one_line() {
        let message = |rate: &str, mtu, segment: &SegmentHeaders| {
            ceiling(&ethernet_link(rate, mtu, 0), segment).expect_err("impossible").to_string()
        };
        assert_eq!(message("0", 1500, &V4), "the link's rate is 0");
        assert_eq!(
            message("1G", 52, &V4_TS),
            "an MTU of 52 bytes leaves no payload after 52 bytes of headers"
        );
        assert_eq!(
            message("1G", 65_536, &V4),
            "an MTU of 65536 bytes is above 65535, the longest IP packet"
        );
        let shaped = ShapedLink { rate: BitRate::from_bits_per_sec(0), mtu_bytes: 1500 };
        assert_eq!(shaped_ceiling(&shaped, &V4), Err(FramingError::ZeroRate));
        assert!(shaped_ceiling(&ShapedLink { mtu_bytes: 0, ..shaped }, &V4).is_err());
        assert!(ceiling(&ethernet_link("1G", 53, 0), &V4_TS).is_ok());
    }

    proptest! {
        #[test]
        fn no_input_panics_and_no_ceiling_exceeds_the_link(
            bps: u64, mtu_bytes in 0_u32..70_000, vlan_tags: u8, v6: bool, udp: bool,
        ) {
            let segment = SegmentHeaders {
                family: if v6 { IpFamily::V6 } else { IpFamily::V4 },
                transport: if udp { Transport::Udp } else { Transport::TcpWithTimestamps },
            };
            let rate = BitRate::from_bits_per_sec(bps);
            if let Ok(got) = ceiling(&EthernetLink { rate, mtu_bytes, vlan_tags }, &segment) {
                let layers = [got.payload_bps, got.ip_bps, got.frame_bps, got.wire_bps];
                prop_assert!(layers.is_sorted());
                prop_assert!(got.wire_bps <= bps as f64 * (1.0 + 1e-12));
            }
        }
    }
}
