//! The message of a router to a sender whose packet is longer than the next link carries.
//!
//! ```text
//! ICMPv4 (RFC 792, RFC 1191 §4)                    ICMPv6 (RFC 4443 §3.2)
//! 0  u8 type 3   1  u8 code 4   2  u16 checksum    0  u8 type 2   1  u8 code 0   2  u16 checksum
//! 4  u16 0       6  u16 MTU     8  the packet      4  u32 MTU     8  the packet
//! ```
//! The packet is quoted as far as the message stays within 576 bytes (RFC 1812 §4.3.2.3), or 1280
//! (RFC 4443 §3.2). The path has no addresses, so the message comes from the packet's
//! destination, as one from a bridge does. Left out: fragmenting what may be fragmented, which is
//! lost without a message.

use linerate_core::theory::token_bucket::TokenBucket;
use linerate_core::time::MonoTime;
use linerate_core::units::{BitRate, Bytes};
use linerate_sys::tun::HEADER_BYTES;

use super::cut::{add, fold_checksum, write_be16};
use super::frame::EmulatedFrame;

/// Messages a second and at once, as many as a Linux router sends (icmp_msgs_per_sec and
/// icmp_msgs_burst, Documentation/networking/ip-sysctl.rst).
const MESSAGES_PER_S: u64 = 1000;
const MESSAGES_BURST: u64 = 50;
/// Longest ICMP messages in bytes, by family.
const IPV4_BYTES_MAX: usize = 576;
const IPV6_BYTES_MAX: usize = 1280;
const IPV4_HEADER_BYTES: usize = 20;
const IPV6_HEADER_BYTES: usize = 40;
const ICMP_HEADER_BYTES: usize = 8;
const ETHERNET_HEADER_BYTES: usize = 14;
const ICMP: u8 = 1;
const ICMPV6: u8 = 58;
/// Hops that a message may go; it goes to the next one.
const HOPS: u8 = 64;
/// Precedence 6, internetwork control (RFC 1812 §4.3.2.5).
const INTERNETWORK_CONTROL: u8 = 0xc0;

/// Room for a message with its virtio and Ethernet headers.
pub(super) const MESSAGE_BYTES_MAX: usize = HEADER_BYTES + ETHERNET_HEADER_BYTES + IPV6_BYTES_MAX;

/// Tells the senders of one direction.
#[derive(Debug)]
pub(super) struct TooBig {
    mtu_bytes: u32,
    /// A message is a byte to it.
    limit: TokenBucket,
}

impl TooBig {
    /// Tells of links that carry packets of `mtu_bytes`.
    pub(super) fn new(mtu_bytes: u32) -> Self {
        let rate = BitRate::from_bits_per_sec(MESSAGES_PER_S * 8);
        let limit = TokenBucket::new(rate, Bytes::new(MESSAGES_BURST));
        Self { mtu_bytes, limit: limit.expect("neither constant is 0") }
    }

    /// True where a message may be sent; it is taken from the allowance.
    pub(super) fn allow_message(&mut self, now: MonoTime) -> bool {
        self.limit.arrive(now.as_nanos(), 1).is_none()
    }

    /// Writes the message about a packet, which begins with its virtio header and has its
    /// checksums. Gives its length; none for packets that nobody is told about.
    pub(super) fn message(
        &self,
        packet: &[u8],
        frame: &EmulatedFrame,
        out: &mut [u8; MESSAGE_BYTES_MAX],
    ) -> Option<usize> {
        let (link, ip) = packet.split_at_checked(usize::from(frame.ip_at))?;
        out[..HEADER_BYTES].fill(0);
        let link = link.get(HEADER_BYTES..)?;
        if let Some((addresses, kind)) = link.split_at_checked(12) {
            let (to, from) = addresses.split_at(6);
            // A group's frame has no single one who should answer.
            if to[0] & 1 != 0 {
                return None;
            }
            let header = [from, to, kind].concat();
            out[HEADER_BYTES..usize::from(frame.ip_at)].copy_from_slice(&header);
        }
        let room = &mut out[usize::from(frame.ip_at)..];
        let length = match frame.version {
            4 if frame.dont_fragment && is_told_ipv4(ip) => self.write_ipv4_message(ip, room),
            6 if is_told_ipv6(ip) => self.write_ipv6_message(ip, room),
            _ => return None,
        };
        Some(usize::from(frame.ip_at) + length)
    }

    fn write_ipv4_message(&self, ip: &[u8], out: &mut [u8]) -> usize {
        let quote = &ip[..ip.len().min(IPV4_BYTES_MAX - IPV4_HEADER_BYTES - ICMP_HEADER_BYTES)];
        let length = IPV4_HEADER_BYTES + ICMP_HEADER_BYTES + quote.len();
        let (header, icmp) = out[..length].split_at_mut(IPV4_HEADER_BYTES);
        header.fill(0);
        header[..2].copy_from_slice(&[0x45, INTERNETWORK_CONTROL]);
        write_be16(header, 2, length as u16);
        header[8..10].copy_from_slice(&[HOPS, ICMP]);
        header[12..16].copy_from_slice(&ip[16..20]);
        header[16..20].copy_from_slice(&ip[12..16]);
        let sum = !fold_checksum(add(0, header));
        write_be16(header, 10, sum);
        icmp[..4].copy_from_slice(&[3, 4, 0, 0]);
        icmp[4..8].copy_from_slice(&self.mtu_bytes.min(0xffff).to_be_bytes());
        icmp[8..].copy_from_slice(quote);
        let sum = !fold_checksum(add(0, icmp));
        write_be16(icmp, 2, sum);
        length
    }

    fn write_ipv6_message(&self, ip: &[u8], out: &mut [u8]) -> usize {
        let quote = &ip[..ip.len().min(IPV6_BYTES_MAX - IPV6_HEADER_BYTES - ICMP_HEADER_BYTES)];
        let length = IPV6_HEADER_BYTES + ICMP_HEADER_BYTES + quote.len();
        let (header, icmp) = out[..length].split_at_mut(IPV6_HEADER_BYTES);
        header.fill(0);
        header[0] = 0x60;
        write_be16(header, 4, icmp.len() as u16);
        header[6..8].copy_from_slice(&[ICMPV6, HOPS]);
        header[8..24].copy_from_slice(&ip[24..40]);
        header[24..40].copy_from_slice(&ip[8..24]);
        icmp[..4].copy_from_slice(&[2, 0, 0, 0]);
        icmp[4..8].copy_from_slice(&self.mtu_bytes.to_be_bytes());
        icmp[8..].copy_from_slice(quote);
        // The pseudo-header of RFC 8200 §8.1.
        let start = icmp.len() as u64 + u64::from(ICMPV6);
        let sum = !fold_checksum(add(add(start, &header[8..40]), icmp));
        write_be16(icmp, 2, sum);
        length
    }
}

/// RFC 1122 §3.2.2: not about errors, later fragments, or what came from or went to many.
fn is_told_ipv4(ip: &[u8]) -> bool {
    let header = usize::from(ip[0] & 15) * 4;
    let is_error = || ip.get(header).is_none_or(|kind| matches!(kind, 3..=5 | 11 | 12));
    let is_later_fragment = u16::from_be_bytes([ip[6], ip[7]]) & 0x1fff != 0;
    let single = |first: u8| (1..224).contains(&first) && first != 127;
    single(ip[12]) && single(ip[16]) && !is_later_fragment && (ip[9] != ICMP || !is_error())
}

/// RFC 4443 §2.4 (e): not about errors and redirects, or to many and nobody. It allows messages
/// about packets to many, which have no single address that ours could come from.
fn is_told_ipv6(ip: &[u8]) -> bool {
    let is_error = || ip.get(40).is_none_or(|&kind| kind < 128 || kind == 137);
    let single = |address: &[u8]| address[0] != 0xff && address.iter().any(|&byte| byte != 0);
    single(&ip[8..24]) && single(&ip[24..40]) && (ip[6] != ICMPV6 || !is_error())
}

#[cfg(test)]
mod tests {
    use linerate_sys::tun::TunKind;

    use super::*;

    /// IPv4 and UDP from 10.9.0.1 to 10.9.0.2 in 1500 bytes, not to be fragmented, all zero behind
    /// the ports and the length.
    fn ipv4_udp_packet() -> Vec<u8> {
        let mut bytes = vec![0; HEADER_BYTES];
        // 4500 + 05dc + 1234 + 4000 + 4011 + 0a09 + 0001 + 0a09 + 0002 = f136; complement.
        bytes.extend([0x45, 0, 0x05, 0xdc, 0x12, 0x34, 0x40, 0, 64, 17, 0x0e, 0xc9]);
        bytes.extend([10, 9, 0, 1, 10, 9, 0, 2]);
        bytes.extend([0x1b, 0x58, 0x1b, 0x58, 0x05, 0xc8, 0, 0]);
        bytes.resize(HEADER_BYTES + 1500, 0);
        bytes
    }

    /// IPv6 and UDP from fd00::1 to fd00::2 in 1500 bytes with a checksum of beef.
    fn ipv6_udp_packet() -> Vec<u8> {
        let mut bytes = vec![0; HEADER_BYTES];
        bytes.extend([0x60, 0, 0, 0, 0x05, 0xb4, 17, 64]);
        for host in [1, 2] {
            bytes.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host]);
        }
        bytes.extend([0x1b, 0x58, 0x1b, 0x58, 0x05, 0xb4, 0xbe, 0xef]);
        bytes.resize(HEADER_BYTES + 1500, 0);
        bytes
    }

    fn message(packet: &[u8], kind: TunKind) -> Option<Vec<u8>> {
        let frame = EmulatedFrame::read(packet, kind);
        let mut out = [0xee; MESSAGE_BYTES_MAX];
        let length = TooBig::new(1400).message(packet, &frame, &mut out)?;
        Some(out[..length].to_vec())
    }

    #[test]
    fn a_sender_of_ipv4_is_told_the_mtu_in_576_bytes() {
        let packet = ipv4_udp_packet();
        let told = message(&packet, TunKind::Ip).expect("a message");
        assert_eq!(told[..HEADER_BYTES], [0; HEADER_BYTES]);
        let ip = &told[HEADER_BYTES..];
        // 45c0 + 0240 + 4001 + 0a09 + 0002 + 0a09 + 0001 = 9c16; complement.
        let header =
            [0x45, 0xc0, 0x02, 0x40, 0, 0, 0, 0, 64, 1, 0x63, 0xe9, 10, 9, 0, 2, 10, 9, 0, 1];
        assert_eq!(ip[..20], header);
        // 0304 + 0578 + ffff of the quoted header + 1b58 + 1b58 + 05c8: 144f3, 44f4; complement.
        assert_eq!(ip[20..28], [3, 4, 0xbb, 0x0b, 0, 0, 0x05, 0x78]);
        assert_eq!(ip[28..], packet[HEADER_BYTES..HEADER_BYTES + 548]);
        assert_eq!(ip.len(), 576);
    }

    #[test]
    fn a_sender_of_ipv6_is_told_the_mtu_in_1280_bytes() {
        let packet = ipv6_udp_packet();
        let told = message(&packet, TunKind::Ip).expect("a message");
        let ip = &told[HEADER_BYTES..];
        // 8 + 1232 bytes of ICMPv6.
        assert_eq!(ip[..8], [0x60, 0, 0, 0, 0x04, 0xd8, 58, 64]);
        assert_eq!((ip[8..24][15], ip[24..40][15]), (2, 1));
        // Pseudo-header fd00 + 0002 + fd00 + 0001 + 04d8 + 003a = 1ff15; 0200 + 0578; quoted 6000 +
        // 05b4 + 1140 + 1fa03 + 1b58 + 1b58 + 05b4 + beef: 572d7, 72dc; complement.
        assert_eq!(ip[40..48], [2, 0, 0x8d, 0x23, 0, 0, 0x05, 0x78]);
        assert_eq!(ip[48..], packet[HEADER_BYTES..HEADER_BYTES + 1232]);
        assert_eq!(ip.len(), 1280);
    }

    #[test]
    fn a_message_on_ethernet_goes_back_to_the_senders_address() {
        let mut packet = vec![0; HEADER_BYTES];
        packet.extend([2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0]);
        packet.extend(&ipv4_udp_packet()[HEADER_BYTES..]);
        let told = message(&packet, TunKind::Ethernet).expect("a message");
        assert_eq!(told[HEADER_BYTES..][..14], [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0]);
        assert_eq!(told.len(), HEADER_BYTES + 14 + 576);
        // To all on the link.
        packet[HEADER_BYTES] = 0xff;
        assert_eq!(message(&packet, TunKind::Ethernet), None);
    }

    #[test]
    fn nobody_is_told_about_errors_groups_fragments_and_what_may_be_fragmented() {
        let changed = |packet: Vec<u8>, changes: &[(usize, u8)]| {
            let mut packet = packet;
            for &(at, value) in changes {
                packet[HEADER_BYTES + at] = value;
            }
            message(&packet, TunKind::Ip).is_some()
        };
        // Echo (8) is no error; destination unreachable (3) and time exceeded (11) are.
        assert!(changed(ipv4_udp_packet(), &[(9, 1), (20, 8)]));
        for changes in [
            &[(9, 1), (20, 3)][..],
            &[(9, 1), (20, 11)],
            &[(6, 0)],
            &[(7, 1)],
            &[(12, 224)],
            &[(16, 239)],
            &[(16, 255)],
            &[(12, 0)],
        ] {
            assert!(!changed(ipv4_udp_packet(), changes), "{changes:?}");
        }
        assert!(changed(ipv6_udp_packet(), &[(6, 58), (40, 128)]));
        for changes in [&[(6, 58), (40, 1)][..], &[(6, 58), (40, 137)], &[(24, 0xff)], &[(8, 0xff)]]
        {
            assert!(!changed(ipv6_udp_packet(), changes), "{changes:?}");
        }
        assert!(!changed(ipv6_udp_packet(), &[(8, 0), (23, 0)]), "from nobody");
    }

    #[test]
    fn packets_cut_anywhere_make_no_panic() {
        for whole in [ipv4_udp_packet(), ipv6_udp_packet()] {
            for length in HEADER_BYTES..HEADER_BYTES + 70 {
                let _ = message(&whole[..length], TunKind::Ip);
                let _ = message(&whole[..length], TunKind::Ethernet);
            }
        }
    }

    #[test]
    fn fifty_messages_go_at_once_and_then_one_a_millisecond() {
        let mut told = TooBig::new(1400);
        let at = MonoTime::from_nanos;
        assert_eq!((0..200).filter(|_| told.allow_message(at(0))).count(), 50);
        let later = (100..=1_000_000).step_by(100).filter(|us| told.allow_message(at(us * 1000)));
        // A second in steps of 0.1 ms.
        assert_eq!(later.count(), 1000);
    }
}
