//! What a packet takes on the line besides its own bytes, and the rate that counts it.
//!
//! The arithmetic is that of `theory`; here it is fixed once for a link, so that a packet costs a
//! few instructions. Left out: stuffing, whose length depends on content, and Wi-Fi, whose
//! overhead is time and not bytes.

use crate::theory::access::{PTM_CODE_BYTES, PTM_DATA_BYTES, PTM_FRAME_BYTES};
use crate::theory::atm;
use crate::theory::carrier::Carrier;
use crate::theory::framing::{FCS_BYTES, FRAME_MIN_BYTES, GAP_BYTES, HEADER_BYTES, PREAMBLE_BYTES};
use crate::theory::link::LinkTechnology;
use crate::theory::ppp::Stuffing;
use crate::theory::sonet::wan_phy_mac_bps;
use crate::units::BitRate;

/// Bytes that a packet takes on the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// No framing: the rate counts IP packets.
    Ip,
    /// A frame of the packet and some more, of a least length, and bytes around it.
    Frame {
        /// Header and check sequence.
        header_bytes: u32,
        /// Length of the shortest frame.
        frame_min_bytes: u32,
        /// Preamble and gap around a frame.
        outside_bytes: u32,
    },
    /// Cells of 53 bytes for 48 of the AAL5 frame: header, packet, trailer of 8, and padding.
    Aal5 {
        /// Encapsulation header: 8 for LLC/SNAP, 0 for VC multiplexing.
        header_bytes: u32,
    },
}

impl Framing {
    /// Ethernet on its wire: 38 bytes a packet, and 84 at the least (IEEE 802.3 §3, §4.4).
    pub const ETHERNET: Self = Self::Frame {
        header_bytes: HEADER_BYTES + FCS_BYTES,
        frame_min_bytes: FRAME_MIN_BYTES,
        outside_bytes: PREAMBLE_BYTES + GAP_BYTES,
    };

    /// A fixed number of bytes a packet.
    pub const fn fixed_header(header_bytes: u32) -> Self {
        Self::Frame { header_bytes, frame_min_bytes: 0, outside_bytes: 0 }
    }

    /// Bytes that a packet takes on the line.
    pub const fn line_bytes(self, ip_bytes: u32) -> u32 {
        match self {
            Self::Ip => ip_bytes,
            Self::Frame { header_bytes, frame_min_bytes, outside_bytes } => {
                let frame = ip_bytes + header_bytes;
                outside_bytes + if frame < frame_min_bytes { frame_min_bytes } else { frame }
            }
            Self::Aal5 { header_bytes } => {
                let frame = ip_bytes + header_bytes + atm::AAL5_TRAILER_BYTES;
                frame.div_ceil(atm::CELL_PAYLOAD_BYTES) * atm::CELL_BYTES
            }
        }
    }

    /// Rate of the bytes that the framing counts on a link, and the framing; `None` for a
    /// combination that has none.
    pub fn from_link(link: LinkTechnology, carrier: Carrier) -> Option<(BitRate, Self)> {
        if !link.supports_carrier(carrier) {
            return None;
        }
        let rate = match (link, carrier) {
            (LinkTechnology::Sonet(line), _) => BitRate::from_bits_per_sec(line.payload_bps()),
            (LinkTechnology::Pdh(line), Carrier::Aal5(_)) => {
                BitRate::from_nearest(line.cell_bps())?
            }
            (LinkTechnology::Pdh(line), _) => BitRate::from_nearest(line.packet_bps())?,
            (LinkTechnology::WanPhy, _) => BitRate::from_nearest(wan_phy_mac_bps())?,
            (LinkTechnology::Vdsl2(rate), _) => {
                let share = f64::from(PTM_DATA_BYTES) / f64::from(PTM_CODE_BYTES);
                BitRate::from_nearest(rate.bits_per_sec() as f64 * share)?
            }
            _ => link.bit_rate(),
        };
        Some((rate, Self::of_packets(link, carrier)?))
    }

    const fn of_packets(link: LinkTechnology, carrier: Carrier) -> Option<Self> {
        let frame = HEADER_BYTES + FCS_BYTES;
        Some(match (link, carrier) {
            (LinkTechnology::Shaped(_), _) => Self::fixed_header(HEADER_BYTES),
            (LinkTechnology::Docsis(_), _) => Self::Frame {
                header_bytes: frame,
                frame_min_bytes: FRAME_MIN_BYTES,
                outside_bytes: 0,
            },
            (LinkTechnology::Wifi(_) | LinkTechnology::WifiLegacy(_), _) => return None,
            (_, Carrier::Ethernet) => Self::ETHERNET,
            (_, Carrier::Aal5(mapping)) => Self::Aal5 { header_bytes: mapping.header_bytes() },
            (_, Carrier::Pos { stuffed: false }) => {
                Self::fixed_header(Stuffing::Octets.frame_bytes())
            }
            (_, Carrier::Hdlc { stuffed: false }) => {
                Self::fixed_header(Stuffing::Bits.frame_bytes())
            }
            (_, Carrier::Ptm { pppoe: false }) => Self::Frame {
                header_bytes: frame,
                frame_min_bytes: FRAME_MIN_BYTES,
                outside_bytes: PTM_FRAME_BYTES,
            },
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::IpFamily;
    use crate::theory::framing::{SegmentHeaders, Transport};
    use crate::theory::stack::{StackPlan, layer_rates};

    #[test]
    fn framings_take_what_their_standards_say() {
        // 1500 + 38; 46 + 38 = 84; 9180 + 8 + 8 = 9196 in 192 cells; 40 + 16 in 2, 40 + 8 in 1.
        assert_eq!(Framing::ETHERNET.line_bytes(1500), 1538);
        assert_eq!(Framing::ETHERNET.line_bytes(28), 84);
        assert_eq!(Framing::Aal5 { header_bytes: 8 }.line_bytes(9180), 192 * 53);
        assert_eq!(Framing::Aal5 { header_bytes: 8 }.line_bytes(40), 2 * 53);
        assert_eq!(Framing::Aal5 { header_bytes: 0 }.line_bytes(40), 53);
        assert_eq!(Framing::fixed_header(9).line_bytes(1500), 1509);
    }

    #[test]
    fn a_full_packet_takes_as_long_as_the_ceiling_says() {
        // The emulator and `linerate ceiling` must never disagree.
        let segment = SegmentHeaders { family: IpFamily::V4, transport: Transport::Udp };
        for name in ["1g", "oc3", "oc12", "ds3", "ds1", "10gbase-w", "vdsl2:50M", "docsis:100M"] {
            for carrier in Carrier::ALL {
                let link: LinkTechnology = name.parse().expect("a link");
                let Some((rate, framing)) = Framing::from_link(link, carrier) else { continue };
                let plan = StackPlan {
                    link,
                    carrier,
                    encapsulations: Vec::new(),
                    mtu_bytes: 1500,
                    segment,
                };
                let packets_per_s = layer_rates(&plan).expect("a possible link").packets_per_s;
                let ours = rate.bits_per_sec() as f64 / 8.0 / f64::from(framing.line_bytes(1500));
                let (name, error) = (carrier.name(), (ours / packets_per_s - 1.0).abs());
                assert!(error < 1e-6, "{link} {name}: {ours}, ceiling {packets_per_s}");
            }
        }
    }
}
