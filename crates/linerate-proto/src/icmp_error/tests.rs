//! Messages by hand: fields, label stacks, kinds.

use std::net::IpAddr;

use super::*;
use linerate_core::record::MplsLabel;

/// An IPv4 time-exceeded message that quotes a UDP packet of `payload`. With an extension the quote
/// is padded to 128 octets, a length that the header gives if `with_length` (RFC 4884 §4.1).
fn exceeded(payload: &[u8], extension: &[u8], with_length: bool) -> Vec<u8> {
    let mut original = vec![0x45, 0xBA, 0, 28, 0, 1, 0x40, 0, 1, 17, 0, 0];
    original.extend([192, 0, 2, 1, 198, 51, 100, 7]);
    original.extend([0x80, 0, 0x82, 0x9A, 0, 20, 0x12, 0x34]);
    original.extend(payload);
    let mut message = vec![11, 0, 0, 0, 0, 0, 0, 0];
    if !extension.is_empty() {
        original.resize(128, 0);
        message[5] = if with_length { 32 } else { 0 };
    }
    message.extend(original);
    message.extend(extension);
    message
}

/// RFC 4884 §7 and RFC 4950 §3 by hand: version 2, no checksum, one object of 12 octets with
/// labels 16 (class 5, TTL 1) and 1048575 (class 0, bottom, TTL 254).
const TWO_LABELS: &[u8] =
    &[0x20, 0, 0, 0, 0, 12, 1, 1, 0x00, 0x01, 0x0A, 0x01, 0xFF, 0xFF, 0xF1, 0xFE];

#[test]
fn a_quote_of_eight_octets_has_ports_and_marks() {
    let message = exceeded(&[], &[], true);
    let error = IcmpError::parse(IpFamily::V4, &message).expect("an error");
    assert_eq!((error.kind, error.extension), (ErrorKind::Exceeded, &[][..]));
    let quote = Quote::parse(IpFamily::V4, error.original).expect("a quote");
    // 0xBA is DSCP 46 with ECT(0).
    assert_eq!((quote.dscp, quote.ecn, quote.ttl), (46, 2, 1));
    assert_eq!(quote.quoted_ports(), Some((0x8000, 33_434)));
    assert_eq!((quote.udp_payload(), quote.quoted_echo()), (&[][..], None));
    assert_eq!(quote.destination, IpAddr::from([198, 51, 100, 7]));
}

#[test]
fn a_label_stack_is_read_with_and_without_a_length() {
    let expected = [
        MplsLabel { label: 16, traffic_class: 5, ttl: 1 },
        MplsLabel { label: 0xF_FFFF, traffic_class: 0, ttl: 254 },
    ];
    for with_length in [true, false] {
        let mark = ProbeMark { cookie: 0xC0FF_EE00, number: 513 };
        let message = exceeded(&mark.octets(), TWO_LABELS, with_length);
        let error = IcmpError::parse(IpFamily::V4, &message).expect("an error");
        assert_eq!(labels(error.extension), expected, "with length: {with_length}");
        let quote = Quote::parse(IpFamily::V4, error.original).expect("a quote");
        assert_eq!(ProbeMark::read(quote.udp_payload()), Some(mark));
    }
}

#[test]
fn octets_that_look_like_extensions_and_have_a_wrong_checksum_are_none() {
    let mut wrong = TWO_LABELS.to_vec();
    wrong[3] = 1;
    let message = exceeded(&[7; 40], &wrong, false);
    let error = IcmpError::parse(IpFamily::V4, &message).expect("an error");
    assert!(error.extension.is_empty());
    // The right one is the complement of the sum: 0x2000 + 0x000C + 0x0101 + 0x0001 + 0x0A01 +
    // 0xFFFF + 0xF1FE = 0x21D0C, folded 0x1D0E, so 0xE2F1.
    wrong[2..4].copy_from_slice(&[0xE2, 0xF1]);
    let message = exceeded(&[7; 40], &wrong, false);
    let error = IcmpError::parse(IpFamily::V4, &message).expect("an error");
    assert_eq!(labels(error.extension).len(), 2);
}

#[test]
fn kinds_are_those_of_both_families() {
    let of = |family, kind, code, rest| ErrorKind::from_type_and_code(family, kind, code, rest);
    assert_eq!(of(IpFamily::V4, 3, 4, 1400), Some(ErrorKind::TooBig(1400)));
    assert_eq!(of(IpFamily::V6, 2, 0, 1280), Some(ErrorKind::TooBig(1280)));
    assert_eq!(of(IpFamily::V4, 3, 3, 0), Some(ErrorKind::PortUnreachable));
    assert_eq!(of(IpFamily::V6, 1, 4, 0), Some(ErrorKind::PortUnreachable));
    assert_eq!(of(IpFamily::V6, 3, 0, 0), Some(ErrorKind::Exceeded));
    assert_eq!(of(IpFamily::V4, 3, 13, 0), Some(ErrorKind::Unreachable(13)));
    // Echo replies and fragment reassembly are no answers to a probe's time to live.
    assert_eq!((of(IpFamily::V4, 0, 0, 0), of(IpFamily::V4, 11, 1, 0)), (None, None));
}

#[test]
fn an_ipv6_quote_has_its_fields() {
    let mut message = vec![3, 0, 0, 0, 0, 0, 0, 0];
    // Traffic class 0x28 is DSCP 10; flow label 0x12345.
    message.extend([0x62, 0x81, 0x23, 0x45, 0, 12, 58, 1]);
    message.extend([0x20, 0x01, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    message.extend([0x20, 0x01, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    message.extend([128, 0, 0, 0, 0x12, 0x34, 0, 9]);
    let error = IcmpError::parse(IpFamily::V6, &message).expect("an error");
    let quote = Quote::parse(IpFamily::V6, error.original).expect("a quote");
    assert_eq!((quote.dscp, quote.ecn, quote.ttl), (10, 0, 1));
    assert_eq!((quote.quoted_echo(), quote.quoted_ports()), (Some((0x1234, 9)), None));
}
