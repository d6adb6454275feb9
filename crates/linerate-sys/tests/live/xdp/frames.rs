//! Frames to send and their checks, by plain sums.

use std::net::{Ipv4Addr, Ipv6Addr};

use linerate_core::device::{FrameTemplate, HeaderSum, SIGNATURE_BYTES, Signature, Varying};

pub(crate) const TRIAL: u32 = 0x4c52_0007;
pub(crate) const SRC: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
pub(crate) const DST: Ipv4Addr = Ipv4Addr::new(198, 19, 0, 1);

/// The Internet checksum of RFC 1071: the complement of the sum of 16-bit words.
pub(crate) fn checksum(parts: &[&[u8]]) -> u16 {
    let mut sum = 0_u64;
    for part in parts {
        for pair in part.chunks(2) {
            sum += u64::from(pair[0]) << 8 | u64::from(pair.get(1).copied().unwrap_or(0));
        }
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// A frame that ends with a signature and has zeros in front of it.
pub(crate) fn signed(trial: u32, stream: u8, sequence: u64, length: usize) -> Vec<u8> {
    let mut frame = vec![0; length - SIGNATURE_BYTES];
    frame[12] = 0x88;
    frame[13] = 0xb5;
    frame.extend(Signature { trial, stream, sequence, stamp: 0 }.to_bytes());
    frame
}

/// IPv4 and UDP with both checksums, a payload that counts up, and a balance word in front of the
/// signature.
pub(crate) fn ipv4_udp(length: usize, dst_mac: [u8; 6]) -> FrameTemplate {
    let mut bytes: Vec<u8> = (0..length).map(|at| at as u8).collect();
    bytes[..6].copy_from_slice(&dst_mac);
    bytes[6..14].copy_from_slice(&[2, 0, 0, 0, 0, 1, 8, 0]);
    let total = (length - 14) as u16;
    bytes[14..24].copy_from_slice(&[0x45, 0, 0, 0, 0x12, 0x34, 0, 0, 64, 17]);
    bytes[16..18].copy_from_slice(&total.to_be_bytes());
    bytes[24..26].fill(0);
    bytes[26..30].copy_from_slice(&SRC.octets());
    bytes[30..34].copy_from_slice(&DST.octets());
    let sum = checksum(&[&bytes[14..34]]);
    bytes[24..26].copy_from_slice(&sum.to_be_bytes());
    udp(&mut bytes, 34);
    let balance_at = Some((length - SIGNATURE_BYTES - 2 - length % 2) as u16);
    let header_sum = Some(HeaderSum { at: 24 });
    FrameTemplate { bytes, varying: vec![], flows: 1, shuffled: false, header_sum, balance_at }
}

/// IPv6 and UDP.
pub(crate) fn ipv6_udp(length: usize) -> FrameTemplate {
    let mut bytes: Vec<u8> = (0..length).map(|at| at as u8).collect();
    bytes[..14].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x86, 0xdd]);
    bytes[14..22].copy_from_slice(&[0x60, 0, 0, 0, 0, 0, 17, 64]);
    bytes[18..20].copy_from_slice(&((length - 54) as u16).to_be_bytes());
    let address = |last| Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, last).octets();
    bytes[22..38].copy_from_slice(&address(1));
    bytes[38..54].copy_from_slice(&address(2));
    udp(&mut bytes, 54);
    let balance_at = Some((length - SIGNATURE_BYTES - 2 - length % 2) as u16);
    FrameTemplate {
        bytes,
        varying: vec![],
        flows: 1,
        shuffled: false,
        header_sum: None,
        balance_at,
    }
}

/// The UDP header at `at`, with the checksum of a frame whose signature is zeros.
fn udp(bytes: &mut [u8], at: usize) {
    let length = bytes.len();
    bytes[length - SIGNATURE_BYTES..].fill(0);
    bytes[at..at + 4].copy_from_slice(&[0xc0, 0x20, 0, 7]);
    bytes[at + 4..at + 6].copy_from_slice(&((length - at) as u16).to_be_bytes());
    bytes[at + 6..at + 8].fill(0);
    let sum = udp_sum(bytes, at);
    bytes[at + 6..at + 8].copy_from_slice(&sum.to_be_bytes());
}

/// The checksum over pseudo-header, header and payload; 0 when the one in the frame is right.
fn udp_sum(bytes: &[u8], at: usize) -> u16 {
    let addresses = if at == 34 { &bytes[26..34] } else { &bytes[22..54] };
    let length = ((bytes.len() - at) as u16).to_be_bytes();
    checksum(&[addresses, &[0, 17], &length, &bytes[at..]])
}

/// Source port and last address go through flows of their own.
pub(crate) fn varied(mut template: FrameTemplate, flows: u32, shuffled: bool) -> FrameTemplate {
    let ipv4 = template.bytes[12] == 8;
    let (address, port) = if ipv4 { (26, 34) } else { (34, 54) };
    let word = |at: usize| {
        let bytes = &template.bytes[at..at + 4];
        u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
    };
    let field = |at, width, base, divisor, count| Varying {
        at,
        width,
        base,
        divisor,
        count,
        in_header_sum: ipv4 && width == 4,
        in_transport_sum: true,
    };
    template.varying =
        vec![field(address, 4, word(address.into()), 1, 7), field(port, 2, 0xc020, 7, 5)];
    template.flows = flows;
    template.shuffled = shuffled;
    template
}

/// Checks a frame that was sent from the template: its bytes, fields and checksums. Returns its
/// signature.
pub(crate) fn check_frame(frame: &[u8], template: &FrameTemplate) -> Signature {
    assert_eq!(frame.len(), template.bytes.len());
    let signature = Signature::at_end_of(frame).expect("longer than that");
    let mut expected = template.bytes.clone();
    let flow = template.flow_of(signature.sequence);
    for field in &template.varying {
        let (at, value) = (usize::from(field.at), field.value_in_flow(flow).to_be_bytes());
        let width = usize::from(field.width);
        expected[at..at + width].copy_from_slice(&value[4 - width..]);
    }
    let ipv4 = expected[12] == 8;
    let at = if ipv4 { 34 } else { 54 };
    if ipv4 {
        assert_eq!(checksum(&[&frame[14..34]]), 0, "header checksum {frame:02x?}");
        expected[24..26].copy_from_slice(&frame[24..26]);
    }
    assert_eq!(udp_sum(frame, at), 0, "UDP checksum {frame:02x?}");
    let balance = usize::from(template.balance_at.expect("there is one"));
    expected[balance..balance + 2].copy_from_slice(&frame[balance..balance + 2]);
    let end = template.signature_at();
    assert_eq!(frame[..end], expected[..end]);
    signature
}
