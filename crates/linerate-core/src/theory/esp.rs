//! Sizes of encrypted tunnels: IPsec ESP, WireGuard and QUIC's short packets.
//!
//! Left out: handshakes, keepalives, and traffic flow confidentiality padding. Rules: RFC 4303
//! (ESP), RFC 4106 (AES-GCM), RFC 3602 (AES-CBC), RFC 2404 and 4868 (integrity), RFC 3948 (NAT),
//! the WireGuard paper §5.4.6, RFC 9000 §17.3 and §19.8 with RFC 9001 §5.3 (QUIC).

use crate::record::IpFamily;

use super::framing::{IPV4_HEADER_BYTES, IPV6_HEADER_BYTES, UDP_HEADER_BYTES};

/// Security parameters index and sequence number, bytes (RFC 4303 §2.1, §2.2).
pub const ESP_HEADER_BYTES: u32 = 8;
/// Pad length and next header, bytes (RFC 4303 §2.5, §2.6).
pub const ESP_TRAILER_BYTES: u32 = 2;
/// WireGuard's type, receiver and counter, 16, with the tag, 16, bytes (WireGuard paper §5.4.6).
pub const WIREGUARD_BYTES: u32 = 16 + 16;
/// WireGuard pads packets to a multiple of this, bytes (WireGuard paper §5.4.6).
pub const WIREGUARD_ALIGN_BYTES: u32 = 16;
/// QUIC: flags 1 and packet number 2 (RFC 9000 §17.3.1), STREAM frame type 1, stream 1 and an
/// offset of 8 (§19.8), tag 16 (RFC 9001 §5.3); the connection ID comes on top.
pub const QUIC_BYTES: u32 = 1 + 2 + 10 + 16;
/// Longest connection ID of QUIC version 1, bytes (RFC 9000 §17.2).
pub const QUIC_CONNECTION_ID_MAX_BYTES: u8 = 20;

/// Cipher and integrity check of ESP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cipher {
    /// AES-GCM with a tag of 16 bytes (RFC 4106).
    Gcm,
    /// AES-CBC with HMAC-SHA1-96 (RFC 3602, RFC 2404).
    CbcSha1,
    /// AES-CBC with HMAC-SHA-256-128 (RFC 3602, RFC 4868).
    CbcSha256,
}

impl Cipher {
    /// Bytes of the initialisation vector.
    pub const fn iv_bytes(self) -> u32 {
        match self {
            Self::Gcm => 8,
            Self::CbcSha1 | Self::CbcSha256 => 16,
        }
    }

    /// Packet, padding and trailer fill a multiple of this, bytes.
    pub const fn align_bytes(self) -> u32 {
        match self {
            Self::Gcm => 4,
            Self::CbcSha1 | Self::CbcSha256 => 16,
        }
    }

    /// Integrity check value, bytes.
    pub const fn icv_bytes(self) -> u32 {
        match self {
            Self::CbcSha1 => 12,
            Self::Gcm | Self::CbcSha256 => 16,
        }
    }
}

/// An ESP tunnel and its cipher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Esp {
    /// Cipher and integrity check.
    pub cipher: Cipher,
    /// True for ESP in UDP, to pass address translators (RFC 3948).
    pub nat_traversal: bool,
    /// IP version of the outer header.
    pub outer: IpFamily,
}

/// The outer IP header of a tunnel, bytes.
pub const fn ip_header_bytes(family: IpFamily) -> u32 {
    match family {
        IpFamily::V4 => IPV4_HEADER_BYTES,
        IpFamily::V6 => IPV6_HEADER_BYTES,
    }
}

impl Esp {
    /// Everything but the packet, its padding and the trailer, bytes.
    pub const fn fixed_bytes(self) -> u32 {
        let udp = if self.nat_traversal { UDP_HEADER_BYTES } else { 0 };
        let esp = ESP_HEADER_BYTES + self.cipher.iv_bytes() + self.cipher.icv_bytes();
        ip_header_bytes(self.outer) + udp + esp
    }

    /// The packet outside that carries `inner_bytes`: header, IV, the packet with its trailer
    /// padded to the cipher's block, ICV.
    ///
    /// 1400 bytes over IPv4: 1456 with AES-GCM, 1464 with AES-CBC and SHA-1, 1468 with SHA-256.
    /// # Source
    /// RFC 4303 §2; RFC 4106, RFC 3602, RFC 2404, RFC 4868.
    pub const fn outer_bytes(self, inner_bytes: u32) -> u32 {
        let padded =
            align_up(inner_bytes.saturating_add(ESP_TRAILER_BYTES), self.cipher.align_bytes());
        padded.saturating_add(self.fixed_bytes())
    }

    /// The longest packet that fits `outer_bytes` outside; `None` when none does.
    ///
    /// 1500 over IPv4: 1446 with AES-GCM, 1438 with AES-CBC; behind a NAT 1438 and 1422.
    pub const fn inner_max_bytes(self, outer_bytes: u32) -> Option<u32> {
        let Some(room) = outer_bytes.checked_sub(self.fixed_bytes()) else { return None };
        (room - room % self.cipher.align_bytes()).checked_sub(ESP_TRAILER_BYTES)
    }
}

/// WireGuard's outer packet: 60 bytes over IPv4 (80 over IPv6) more than the inner one padded to
/// 16, but not beyond the tunnel's MTU.
///
/// A full packet of 1420 travels as 1480 over IPv4.
/// # Source
/// WireGuard paper §5.4.6; Linux drivers/net/wireguard/send.c.
pub const fn wireguard_outer_bytes(
    inner_bytes: u32,
    tunnel_mtu_bytes: u32,
    outer: IpFamily,
) -> u32 {
    let aligned = align_up(inner_bytes, WIREGUARD_ALIGN_BYTES);
    let limit = if tunnel_mtu_bytes > inner_bytes { tunnel_mtu_bytes } else { inner_bytes };
    let padded = if aligned > limit { limit } else { aligned };
    padded.saturating_add(wireguard_fixed_bytes(outer))
}

/// WireGuard's headers and tag with UDP and IP, bytes: 60 over IPv4, 80 over IPv6.
pub const fn wireguard_fixed_bytes(outer: IpFamily) -> u32 {
    ip_header_bytes(outer) + UDP_HEADER_BYTES + WIREGUARD_BYTES
}

/// Bytes of a UDP payload that QUIC takes: a short header with a connection ID and a packet number
/// of 2 bytes, one STREAM frame, the tag; 37 with a connection ID of 8.
pub const fn quic_bytes(connection_id_bytes: u8) -> u32 {
    QUIC_BYTES + connection_id_bytes as u32
}

const fn align_up(bytes: u32, align: u32) -> u32 {
    bytes.saturating_add((align - bytes % align) % align)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CIPHERS: [Cipher; 3] = [Cipher::Gcm, Cipher::CbcSha1, Cipher::CbcSha256];

    fn esp_over_ipv4(cipher: Cipher, nat_traversal: bool) -> Esp {
        Esp { cipher, nat_traversal, outer: IpFamily::V4 }
    }

    #[test]
    fn esp_packets_have_the_sizes_of_a_hand_sum() {
        // 20 + 8 + 8 + (1400 + 2 → 1404) + 16; 20 + 8 + 16 + (→ 1408) + 12 or 16.
        let outer = |inner| CIPHERS.map(|cipher| esp_over_ipv4(cipher, false).outer_bytes(inner));
        assert_eq!(outer(1400), [1456, 1464, 1468]);
        assert_eq!(outer(1500), [1556, 1560, 1564]);
    }

    #[test]
    fn the_longest_inner_packet_is_found() {
        let inner = |natt| CIPHERS.map(|cipher| esp_over_ipv4(cipher, natt).inner_max_bytes(1500));
        assert_eq!(inner(false), [Some(1446), Some(1438), Some(1438)]);
        assert_eq!(inner(true), [Some(1438), Some(1422), Some(1422)]);
        assert_eq!(esp_over_ipv4(Cipher::Gcm, false).inner_max_bytes(53), None);
    }

    #[test]
    fn wireguard_pads_to_sixteen_but_never_past_its_mtu() {
        let outer = |inner| wireguard_outer_bytes(inner, 1420, IpFamily::V4) - 60;
        assert_eq!([1400, 1408, 1409, 1420].map(outer), [1408, 1408, 1420, 1420]);
        assert_eq!(wireguard_outer_bytes(1420, 1420, IpFamily::V6), 1500);
    }

    #[test]
    fn quic_takes_37_bytes_of_a_datagram() {
        assert_eq!(quic_bytes(8), 37); // 1 + 8 + 2, 1 + 1 + 8, 16
        assert_eq!(1472 - quic_bytes(8), 1435);
    }

    proptest! {
        #[test]
        fn the_longest_inner_packet_fits_and_one_byte_more_does_not(
            outer in 60_u32..70_000, natt: bool, cipher in 0_usize..3,
        ) {
            let esp = esp_over_ipv4(CIPHERS[cipher], natt);
            if let Some(inner) = esp.inner_max_bytes(outer) {
                prop_assert!(esp.outer_bytes(inner) <= outer);
                prop_assert!(esp.outer_bytes(inner + 1) > outer);
            }
        }

        #[test]
        fn no_size_panics(inner: u32, mtu: u32) {
            for cipher in CIPHERS {
                let _ = esp_over_ipv4(cipher, true).outer_bytes(inner);
                let _ = esp_over_ipv4(cipher, true).inner_max_bytes(inner);
            }
            prop_assert!(wireguard_outer_bytes(inner, mtu, IpFamily::V6) >= inner);
        }
    }
}
