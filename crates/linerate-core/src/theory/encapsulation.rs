//! What packets are wrapped in between the link and the flow: tags, labels, tunnels.
//!
//! Left out: compression, fragments, and padding of short inner Ethernet frames. Sizes of
//! encrypted tunnels are in `esp`. Rules: IEEE 802.1Q §9, RFC 3032 (MPLS), RFC 2516 and 4638
//! (PPPoE), RFC 2003 and 2473 (IP in IP), RFC 2784 and 2890 (GRE), RFC 7348 (VXLAN), RFC 8926
//! (Geneve).

use std::fmt;
use std::str::FromStr;

use crate::record::IpFamily;

use super::esp::{
    Cipher, Esp, QUIC_CONNECTION_ID_MAX_BYTES, ip_header_bytes, quic_bytes, wireguard_fixed_bytes,
    wireguard_outer_bytes,
};
use super::framing::{HEADER_BYTES, UDP_HEADER_BYTES, VLAN_TAG_BYTES};
use super::name::ParseNameError;

/// One MPLS label, bytes (RFC 3032 §2.1).
pub const MPLS_LABEL_BYTES: u32 = 4;
/// Labels of one stack that are taken.
pub const MPLS_LABELS_MAX: u8 = 16;
/// PPPoE header 6 and PPP protocol field 2, bytes (RFC 2516 §4).
pub const PPPOE_BYTES: u32 = 8;
/// GRE header, bytes (RFC 2784 §2.1).
pub const GRE_BYTES: u32 = 4;
/// Key of a GRE header, bytes (RFC 2890 §2).
pub const GRE_KEY_BYTES: u32 = 4;
/// VXLAN header, bytes (RFC 7348 §5).
pub const VXLAN_BYTES: u32 = 8;
/// Geneve header without options, bytes (RFC 8926 §3.4).
pub const GENEVE_BYTES: u32 = 8;
/// Longest Geneve options, bytes (RFC 8926 §3.4: 63 words of 4).
pub const GENEVE_OPTIONS_MAX_BYTES: u8 = 252;

/// Tag or tunnel that adds headers to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encapsulation {
    /// One 802.1Q tag, beyond the MTU.
    Vlan,
    /// Two tags, beyond the MTU (802.1ad).
    Qinq,
    /// A stack of MPLS labels, beyond the MTU.
    Mpls {
        /// Number of labels, 1 to [`MPLS_LABELS_MAX`].
        labels: u8,
    },
    /// PPPoE inside the MTU: 1500 leaves 1492.
    Pppoe,
    /// PPPoE beyond the MTU, on frames that may be longer (RFC 4638).
    PppoeBabyJumbo,
    /// IP packets in IP packets.
    IpIp {
        /// IP version of the outer header.
        outer: IpFamily,
    },
    /// Generic routing encapsulation (RFC 2784).
    Gre {
        /// IP version of the outer header.
        outer: IpFamily,
        /// True for a key of 4 bytes.
        key: bool,
    },
    /// VXLAN, which carries Ethernet.
    Vxlan {
        /// IP version of the outer header.
        outer: IpFamily,
    },
    /// Geneve, which carries Ethernet here.
    Geneve {
        /// IP version of the outer header.
        outer: IpFamily,
        /// A multiple of 4 up to [`GENEVE_OPTIONS_MAX_BYTES`].
        options_bytes: u8,
    },
    /// WireGuard tunnel over UDP.
    WireGuard {
        /// IP version of the outer header.
        outer: IpFamily,
    },
    /// An IPsec ESP tunnel.
    Esp(Esp),
    /// No header: the interface at this place has a smaller MTU than would fit.
    Mtu {
        /// MTU of the tunnel's interface.
        bytes: u32,
    },
    /// QUIC's short packets with one STREAM frame; last, for it takes from the UDP payload.
    Quic {
        /// Length of the connection ID, 0 to 20.
        connection_id_bytes: u8,
    },
}

impl Encapsulation {
    /// Bytes that it adds to any packet; padding is not counted.
    pub const fn fixed_bytes(self) -> u32 {
        match self {
            Self::Vlan => VLAN_TAG_BYTES,
            Self::Qinq => 2 * VLAN_TAG_BYTES,
            Self::Mpls { labels } => MPLS_LABEL_BYTES * labels as u32,
            Self::Pppoe | Self::PppoeBabyJumbo => PPPOE_BYTES,
            Self::IpIp { outer } => ip_header_bytes(outer),
            Self::Gre { outer, key } => {
                ip_header_bytes(outer) + GRE_BYTES + if key { GRE_KEY_BYTES } else { 0 }
            }
            Self::Vxlan { outer } => {
                ip_header_bytes(outer) + UDP_HEADER_BYTES + VXLAN_BYTES + HEADER_BYTES
            }
            Self::Geneve { outer, options_bytes } => {
                let geneve = GENEVE_BYTES + options_bytes as u32;
                ip_header_bytes(outer) + UDP_HEADER_BYTES + geneve + HEADER_BYTES
            }
            Self::WireGuard { outer } => wireguard_fixed_bytes(outer),
            Self::Esp(esp) => esp.fixed_bytes() + super::esp::ESP_TRAILER_BYTES,
            Self::Mtu { .. } => 0,
            Self::Quic { connection_id_bytes } => quic_bytes(connection_id_bytes),
        }
    }

    /// Longest packet that fits into `outer_bytes`; `None` when none does.
    pub const fn inner_max_bytes(self, outer_bytes: u32) -> Option<u32> {
        match self {
            Self::Esp(esp) => esp.inner_max_bytes(outer_bytes),
            Self::Mtu { bytes } if bytes <= outer_bytes => Some(bytes),
            Self::Mtu { .. } => None,
            // It takes from the payload of a packet whose length stays.
            Self::Quic { .. } => Some(outer_bytes),
            _ => outer_bytes.checked_sub(self.fixed_bytes()),
        }
    }

    /// Bytes outside of a packet of `inner_bytes`; `tunnel_mtu_bytes` bounds WireGuard's padding.
    pub const fn outer_bytes(self, inner_bytes: u32, tunnel_mtu_bytes: u32) -> u32 {
        match self {
            Self::WireGuard { outer } => {
                wireguard_outer_bytes(inner_bytes, tunnel_mtu_bytes, outer)
            }
            Self::Esp(esp) => esp.outer_bytes(inner_bytes),
            Self::Quic { .. } => inner_bytes,
            _ => inner_bytes.saturating_add(self.fixed_bytes()),
        }
    }

    /// True when the link's MTU does not count its bytes.
    pub const fn is_beyond_mtu(self) -> bool {
        matches!(self, Self::Vlan | Self::Qinq | Self::Mpls { .. } | Self::PppoeBabyJumbo)
    }

    /// True when it is found in an Ethernet frame only.
    pub const fn needs_frame(self) -> bool {
        matches!(self, Self::Vlan | Self::Qinq | Self::Pppoe | Self::PppoeBabyJumbo)
    }

    /// True when it carries an Ethernet frame inside.
    pub const fn carries_frame(self) -> bool {
        matches!(self, Self::Vxlan { .. } | Self::Geneve { .. })
    }

    /// Number of VLAN tags in the frame.
    pub const fn vlan_tags(self) -> u8 {
        match self {
            Self::Vlan => 1,
            Self::Qinq => 2,
            _ => 0,
        }
    }

    /// Name of the encapsulation: `GRE with a key`.
    pub fn display_title(self) -> String {
        let title = match self {
            Self::Vlan => "802.1Q tag",
            Self::Qinq => "two VLAN tags",
            Self::Mpls { labels: 1 } => "MPLS label",
            Self::Mpls { labels } => return format!("{labels} MPLS labels"),
            Self::Pppoe => "PPPoE",
            Self::PppoeBabyJumbo => "PPPoE beyond the MTU",
            Self::IpIp { .. } => "IP in IP",
            Self::Gre { key: false, .. } => "GRE",
            Self::Gre { key: true, .. } => "GRE with a key",
            Self::Vxlan { .. } => "VXLAN",
            Self::Geneve { .. } => "Geneve",
            Self::WireGuard { .. } => "WireGuard",
            Self::Esp(Esp { cipher: Cipher::Gcm, .. }) => "ESP with AES-GCM",
            Self::Esp(Esp { cipher: Cipher::CbcSha1, .. }) => "ESP with AES-CBC and SHA-1",
            Self::Esp(Esp { cipher: Cipher::CbcSha256, .. }) => "ESP with AES-CBC and SHA-256",
            Self::Mtu { bytes } => return format!("an MTU of {bytes}"),
            Self::Quic { .. } => "QUIC",
        };
        title.to_owned()
    }

    /// Headers with their bytes, in words: `IPv4 20, UDP 8, VXLAN 8, Ethernet 14`.
    pub fn headers_in_words(self) -> String {
        match self {
            Self::Vlan | Self::Qinq | Self::Mpls { .. } => self.display_title(),
            Self::Pppoe | Self::PppoeBabyJumbo => "PPPoE 6, PPP 2".to_owned(),
            Self::IpIp { outer } => ip_words(outer).to_owned(),
            Self::Gre { outer, key: false } => format!("{}, GRE 4", ip_words(outer)),
            Self::Gre { outer, key: true } => format!("{}, GRE 4, key 4", ip_words(outer)),
            Self::Vxlan { outer } => format!("{}, UDP 8, VXLAN 8, Ethernet 14", ip_words(outer)),
            Self::Geneve { outer, options_bytes } => {
                let geneve = GENEVE_BYTES + u32::from(options_bytes);
                format!("{}, UDP 8, Geneve {geneve}, Ethernet 14", ip_words(outer))
            }
            Self::WireGuard { outer } => {
                format!("{}, UDP 8, WireGuard 16, tag 16", ip_words(outer))
            }
            Self::Esp(esp) => esp_words(esp),
            Self::Mtu { .. } => "no bytes".to_owned(),
            Self::Quic { connection_id_bytes } => {
                format!("short header {}, STREAM 10, tag 16", 3 + u32::from(connection_id_bytes))
            }
        }
    }

    /// Standard that gives the bytes.
    pub const fn source(self) -> &'static str {
        match self {
            Self::Vlan | Self::Qinq => "IEEE 802.1Q §9",
            Self::Mpls { .. } => "RFC 3032 §2.1",
            Self::Pppoe => "RFC 2516 §4 and §7",
            Self::PppoeBabyJumbo => "RFC 4638",
            Self::IpIp { outer: IpFamily::V4 } => "RFC 2003 §3",
            Self::IpIp { outer: IpFamily::V6 } => "RFC 2473 §3",
            Self::Gre { key: false, .. } => "RFC 2784 §2",
            Self::Gre { key: true, .. } => "RFC 2890 §2",
            Self::Vxlan { .. } => "RFC 7348 §5",
            Self::Geneve { .. } => "RFC 8926 §3",
            Self::WireGuard { .. } => "WireGuard paper §5.4.6",
            Self::Esp(Esp { cipher: Cipher::Gcm, .. }) => "RFC 4303 §2; RFC 4106",
            Self::Esp(Esp { cipher: Cipher::CbcSha1, .. }) => "RFC 4303 §2; RFC 3602; RFC 2404",
            Self::Esp(Esp { cipher: Cipher::CbcSha256, .. }) => "RFC 4303 §2; RFC 3602; RFC 4868",
            Self::Mtu { .. } => "RFC 791 §3.1",
            Self::Quic { .. } => "RFC 9000 §17.3.1 and §19.8; RFC 9001 §5.3",
        }
    }
}

const fn ip_words(family: IpFamily) -> &'static str {
    match family {
        IpFamily::V4 => "IPv4 20",
        IpFamily::V6 => "IPv6 40",
    }
}

fn esp_words(esp: Esp) -> String {
    let udp = if esp.nat_traversal { ", UDP 8" } else { "" };
    let (iv, icv) = (esp.cipher.iv_bytes(), esp.cipher.icv_bytes());
    format!("{}{udp}, ESP 8, IV {iv}, padding and trailer, ICV {icv}", ip_words(esp.outer))
}

const ACCEPTED: &str = "vlan, qinq, mpls, mpls:2, pppoe, pppoe-rfc4638, ipip, gre, gre-key, vxlan, \
    geneve, geneve:8, wireguard, esp-gcm, esp-cbc-sha1 or esp-cbc-sha256 (with -natt behind a \
    NAT), all tunnels with -v6 for IPv6 outside, mtu:1420, quic or quic:8";

impl FromStr for Encapsulation {
    type Err = ParseNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let name = text.trim().to_ascii_lowercase();
        let found = match name.split_once(':') {
            Some((name, number)) => {
                number.parse().ok().and_then(|number| parse_numbered(name, number))
            }
            None => parse_unnumbered(&name),
        };
        found.ok_or_else(|| ParseNameError::new(text, "an encapsulation", ACCEPTED))
    }
}

/// Encapsulations that need no number.
fn parse_unnumbered(name: &str) -> Option<Encapsulation> {
    Some(match name {
        "vlan" => Encapsulation::Vlan,
        "qinq" => Encapsulation::Qinq,
        "mpls" => Encapsulation::Mpls { labels: 1 },
        "pppoe" => Encapsulation::Pppoe,
        "pppoe-rfc4638" => Encapsulation::PppoeBabyJumbo,
        "quic" => Encapsulation::Quic { connection_id_bytes: 8 },
        _ => return tunnel(name),
    })
}

/// Tunnels, `-v6` at the end for IPv6 outside.
fn tunnel(name: &str) -> Option<Encapsulation> {
    let (name, outer) = split_family(name);
    Some(match name {
        "ipip" => Encapsulation::IpIp { outer },
        "gre" => Encapsulation::Gre { outer, key: false },
        "gre-key" => Encapsulation::Gre { outer, key: true },
        "vxlan" => Encapsulation::Vxlan { outer },
        "geneve" => Encapsulation::Geneve { outer, options_bytes: 0 },
        "wireguard" => Encapsulation::WireGuard { outer },
        _ => {
            let (name, nat_traversal) = match name.strip_suffix("-natt") {
                Some(name) => (name, true),
                None => (name, false),
            };
            let cipher = match name {
                "esp-gcm" => Cipher::Gcm,
                "esp-cbc-sha1" => Cipher::CbcSha1,
                "esp-cbc-sha256" => Cipher::CbcSha256,
                _ => return None,
            };
            Encapsulation::Esp(Esp { cipher, nat_traversal, outer })
        }
    })
}

fn split_family(name: &str) -> (&str, IpFamily) {
    match name.strip_suffix("-v6") {
        Some(name) => (name, IpFamily::V6),
        None => (name, IpFamily::V4),
    }
}

/// Encapsulations with a number after a colon.
fn parse_numbered(name: &str, number: u32) -> Option<Encapsulation> {
    let byte = u8::try_from(number).ok();
    let found = match (split_family(name), byte) {
        (("mtu", IpFamily::V4), _) => Encapsulation::Mtu { bytes: number },
        (("mpls", IpFamily::V4), Some(labels)) => Encapsulation::Mpls { labels },
        (("geneve", outer), Some(options_bytes)) => Encapsulation::Geneve { outer, options_bytes },
        (("quic", IpFamily::V4), Some(connection_id_bytes)) => {
            Encapsulation::Quic { connection_id_bytes }
        }
        _ => return None,
    };
    found.is_possible().then_some(found)
}

impl Encapsulation {
    /// True when its numbers are within the bounds of the standards.
    pub const fn is_possible(self) -> bool {
        match self {
            Self::Mpls { labels } => labels >= 1 && labels <= MPLS_LABELS_MAX,
            Self::Geneve { options_bytes, .. } => {
                options_bytes % 4 == 0 && options_bytes <= GENEVE_OPTIONS_MAX_BYTES
            }
            Self::Quic { connection_id_bytes } => {
                connection_id_bytes <= QUIC_CONNECTION_ID_MAX_BYTES
            }
            _ => true,
        }
    }
}

impl fmt::Display for Encapsulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let v6 = |outer: IpFamily| if outer == IpFamily::V6 { "-v6" } else { "" };
        f.pad(&match *self {
            Self::Vlan => "vlan".to_owned(),
            Self::Qinq => "qinq".to_owned(),
            Self::Mpls { labels: 1 } => "mpls".to_owned(),
            Self::Mpls { labels } => format!("mpls:{labels}"),
            Self::Pppoe => "pppoe".to_owned(),
            Self::PppoeBabyJumbo => "pppoe-rfc4638".to_owned(),
            Self::IpIp { outer } => format!("ipip{}", v6(outer)),
            Self::Gre { outer, key } => {
                format!("gre{}{}", if key { "-key" } else { "" }, v6(outer))
            }
            Self::Vxlan { outer } => format!("vxlan{}", v6(outer)),
            Self::Geneve { outer, options_bytes: 0 } => format!("geneve{}", v6(outer)),
            Self::Geneve { outer, options_bytes } => format!("geneve{}:{options_bytes}", v6(outer)),
            Self::WireGuard { outer } => format!("wireguard{}", v6(outer)),
            Self::Esp(Esp { cipher, nat_traversal, outer }) => {
                let cipher = match cipher {
                    Cipher::Gcm => "gcm",
                    Cipher::CbcSha1 => "cbc-sha1",
                    Cipher::CbcSha256 => "cbc-sha256",
                };
                let natt = if nat_traversal { "-natt" } else { "" };
                format!("esp-{cipher}{natt}{}", v6(outer))
            }
            Self::Mtu { bytes } => format!("mtu:{bytes}"),
            Self::Quic { connection_id_bytes: 8 } => "quic".to_owned(),
            Self::Quic { connection_id_bytes } => format!("quic:{connection_id_bytes}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Encapsulation {
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn every_name_is_read_as_it_is_printed() {
        let names = "vlan qinq mpls mpls:2 mpls:16 pppoe pppoe-rfc4638 ipip ipip-v6 gre gre-v6 \
            gre-key gre-key-v6 vxlan vxlan-v6 geneve geneve-v6 geneve:8 geneve-v6:252 wireguard \
            wireguard-v6 esp-gcm esp-gcm-natt esp-cbc-sha1 esp-cbc-sha1-natt esp-cbc-sha256 \
            esp-cbc-sha256-natt-v6 esp-gcm-v6 mtu:1420 quic quic:0 quic:20";
        for name in names.split_whitespace() {
            assert_eq!(read(name).to_string(), name);
            assert!(
                !read(name).display_title().is_empty() && !read(name).headers_in_words().is_empty()
            );
        }
    }

    #[test]
    fn headers_have_the_bytes_of_their_standards() {
        let table = [
            ("vlan", 4),
            ("qinq", 8),
            ("mpls:3", 12),
            ("pppoe", 8),
            ("ipip", 20),
            ("ipip-v6", 40),
            ("gre", 24),
            ("gre-key", 28),
            ("vxlan", 50),
            ("vxlan-v6", 70),
            ("geneve", 50),
            ("geneve:8", 58),
            ("wireguard", 60),
            ("wireguard-v6", 80),
            ("quic", 37),
        ];
        for (name, bytes) in table {
            assert_eq!(read(name).fixed_bytes(), bytes, "{name}");
        }
    }

    #[test]
    fn what_is_no_encapsulation_is_refused_in_one_line() {
        let cases = [
            "",
            "x",
            "mpls:0",
            "mpls:17",
            "mpls:",
            "geneve:3",
            "geneve:256",
            "quic:21",
            "vlan-v6",
            "mtu:-1",
            "mtu:99999999999",
            "pppoe:2",
            "esp",
            "esp-natt",
            "mpls-v6:2",
        ];
        for text in cases {
            let message = text.parse::<Encapsulation>().expect_err(text).to_string();
            assert!(!message.contains('\n'), "{message}");
        }
    }
}
