//! An ICMP echo request that is built once and updated for each probe: at 150,000 probes/s the
//! budget of a probe is 6.6 µs, and a full checksum over 1472 octets takes about 0.1 µs of it.

use std::net::IpAddr;

use linerate_core::record::IpFamily;

use super::sequence::extend;
use super::{MARKS_BYTES, Marks};
use crate::frame::checksum::Sum;
use crate::frame::icmp::{ECHO_HEADER_BYTES, Echo, echo_request};

/// Protocol number of ICMPv6 (RFC 8200 §4).
const NEXT_HEADER_ICMPV6: u16 = 58;

/// The echo request of one run, with one size and one cookie.
#[derive(Clone, Debug)]
pub struct IcmpProbe {
    family: IpFamily,
    message: Vec<u8>,
    /// Sum over the octets that are the same in every probe: type, identifier, cookie, filler.
    constant: Sum,
    marked: bool,
    cookie: u64,
    identifier: Option<u16>,
    /// True if the checksum is computed here, false if by the kernel.
    sums: bool,
    /// True if the checksums of answers are verified here.
    checked: bool,
    /// Sum over the pseudo header of ICMPv6 (RFC 8200 §8.1).
    pseudo: Sum,
}

impl IcmpProbe {
    /// A request with `payload_bytes` octets of data. `identifier` is checked on return when
    /// given; a datagram socket's kernel replaces it, so there it is `None`.
    pub fn new(
        family: IpFamily,
        identifier: Option<u16>,
        payload_bytes: usize,
        cookie: u64,
    ) -> Self {
        let mut message = vec![0; ECHO_HEADER_BYTES + payload_bytes];
        message[0] = echo_request(family);
        message[4..6].copy_from_slice(&identifier.unwrap_or(0).to_be_bytes());
        for (octet, value) in message[ECHO_HEADER_BYTES..].iter_mut().zip((0..=255u8).cycle()) {
            *octet = value;
        }
        let marked = payload_bytes >= MARKS_BYTES;
        if marked {
            let marks = Marks { cookie, sequence: 0, t1_ns: 0 };
            message[ECHO_HEADER_BYTES..ECHO_HEADER_BYTES + MARKS_BYTES]
                .copy_from_slice(&marks.octets());
        }
        let constant = Sum::from_bytes(&message);
        let (sums, checked, pseudo) = (family == IpFamily::V4, false, Sum::default());
        Self { family, message, constant, marked, cookie, identifier, sums, checked, pseudo }
    }

    /// The same request for raw frames, which bypass the kernel: computes the checksum also in
    /// ICMPv6, over the pseudo header (RFC 8200 §8.1) of these addresses, and accepts answers only
    /// with a correct checksum.
    #[must_use]
    pub fn past_the_kernel(mut self, source: IpAddr, target: IpAddr) -> Self {
        if let (IpAddr::V6(source), IpAddr::V6(target)) = (source, target) {
            let addresses =
                Sum::from_bytes(&source.octets()).add_sum(Sum::from_bytes(&target.octets()));
            let length = Sum::of_u64(self.message.len() as u64);
            self.pseudo = addresses.add_sum(length).add_sum(Sum::of_u16(NEXT_HEADER_ICMPV6));
            self.constant = self.constant.add_sum(self.pseudo);
        }
        (self.sums, self.checked) = (true, true);
        self
    }

    /// The request for probe `sequence`, sent at `t1_ns`. In ICMPv6 the checksum stays 0 unless
    /// [`Self::past_the_kernel`]: the kernel knows the addresses and fills it in (RFC 3542 §3.1).
    #[inline]
    pub fn request(&mut self, sequence: u64, t1_ns: u64) -> &[u8] {
        let low = sequence as u16;
        let mut sum = self.constant.add_sum(Sum::of_u16(low));
        self.message[6..8].copy_from_slice(&low.to_be_bytes());
        if self.marked {
            self.message[16..24].copy_from_slice(&sequence.to_be_bytes());
            self.message[24..32].copy_from_slice(&t1_ns.to_be_bytes());
            sum = sum.add_sum(Sum::of_u64(sequence)).add_sum(Sum::of_u64(t1_ns));
        }
        if self.sums {
            self.message[2..4].copy_from_slice(&sum.checksum().to_be_bytes());
        }
        &self.message
    }

    /// Sequence of the probe that `message` answers; `None` when it answers no probe of this run.
    /// `newest` is the last probe sent, from which a probe too short for the marks is numbered.
    #[inline]
    pub fn answered(&self, message: &[u8], newest: u64) -> Option<u64> {
        let echo = Echo::parse_reply(self.family, message)?;
        if message.len() != self.message.len() {
            return None;
        }
        if self.identifier.is_some_and(|identifier| identifier != echo.identifier) {
            return None;
        }
        if self.checked && self.pseudo.add_sum(Sum::from_bytes(message)).folded() != 0xFFFF {
            return None;
        }
        if !self.marked {
            return extend(echo.sequence, newest);
        }
        let marks = Marks::read(echo.data)?;
        (marks.cookie == self.cookie).then_some(marks.sequence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::checksum::verifies;

    const COOKIE: u64 = 0xFEED_FACE_CAFE_BEEF;

    fn reply_to(probe: &mut IcmpProbe, sequence: u64) -> Vec<u8> {
        let mut reply = probe.request(sequence, 77).to_vec();
        reply[0] = if reply[0] == 8 { 0 } else { 129 };
        reply
    }

    #[test]
    fn the_kept_sum_equals_a_fresh_one_at_every_size_and_number() {
        for size in [0, 1, 8, 23, 24, 25, 56, 1472, 1500, 65507] {
            let mut probe = IcmpProbe::new(IpFamily::V4, Some(0xABCD), size, COOKIE);
            for sequence in [0, 1, 0xFFFF, 0x1_0000, u64::MAX] {
                let request = probe.request(sequence, 0x0123_4567_89AB_CDEF);
                assert_eq!(request.len(), 8 + size);
                assert!(verifies(request), "size {size} sequence {sequence}");
            }
        }
    }

    #[test]
    fn the_answer_names_its_probe_beyond_16_bits() {
        let mut probe = IcmpProbe::new(IpFamily::V4, None, 56, COOKIE);
        let reply = reply_to(&mut probe, 70_000);
        assert_eq!(probe.answered(&reply, 70_000), Some(70_000));
        let mut small = IcmpProbe::new(IpFamily::V6, Some(9), 8, COOKIE);
        let reply = reply_to(&mut small, 70_000);
        assert_eq!(small.answered(&reply, 70_001), Some(70_000));
    }

    #[test]
    fn past_the_kernel_the_checksum_has_the_addresses_and_a_wrong_one_is_no_answer() {
        let [one, other] = ["2001:db8::1", "2001:db8::2"].map(|text| text.parse().expect("one"));
        for size in [0, 1, 56, 1452] {
            let probe = IcmpProbe::new(IpFamily::V6, Some(9), size, COOKIE);
            let mut probe = probe.past_the_kernel(one, other);
            let request = probe.request(7, 77).to_vec();
            // RFC 8200 §8.1: addresses, length of 32 bits, three zeros, next header.
            let octets = |addr| match addr {
                IpAddr::V6(addr) => addr.octets(),
                IpAddr::V4(_) => unreachable!(),
            };
            let whole = [
                &octets(other)[..],
                &octets(one),
                &(request.len() as u32).to_be_bytes(),
                &[0, 0, 0, 58],
                &request,
            ]
            .concat();
            assert!(verifies(&whole), "size {size}");
            // The reply's type is one more, so that its checksum is one of the high octet less.
            let mut reply = request.clone();
            reply[0] = 129;
            assert_eq!(probe.answered(&reply, 7), None, "a wrong checksum");
            let sum = Sum::of_u16(!u16::from_be_bytes([reply[2], reply[3]]));
            let sum = sum.add_sum(Sum::of_u16(0x0100)).checksum();
            reply[2..4].copy_from_slice(&sum.to_be_bytes());
            assert_eq!(probe.answered(&reply, 7), Some(7), "size {size}");
        }
    }

    #[test]
    fn answers_to_others_do_not_match() {
        let mut probe = IcmpProbe::new(IpFamily::V4, Some(1), 56, COOKIE);
        let mut other_cookie = IcmpProbe::new(IpFamily::V4, Some(1), 56, COOKIE + 1);
        let mut other_id = IcmpProbe::new(IpFamily::V4, Some(2), 56, COOKIE);
        let mut other_size = IcmpProbe::new(IpFamily::V4, Some(1), 57, COOKIE);
        for other in [&mut other_cookie, &mut other_id, &mut other_size] {
            let reply = reply_to(other, 3);
            assert_eq!(probe.answered(&reply, 3), None);
        }
        let request = probe.request(3, 0).to_vec();
        assert_eq!(probe.answered(&request, 3), None, "our own request is no answer");
    }

    #[test]
    fn cut_and_flipped_answers_never_panic() {
        let mut probe = IcmpProbe::new(IpFamily::V4, None, 32, COOKIE);
        let reply = reply_to(&mut probe, 5);
        for len in 0..reply.len() {
            assert_eq!(probe.answered(&reply[..len], 5), None, "length {len}");
        }
        for bit in 0..reply.len() * 8 {
            let mut bad = reply.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            let _ = probe.answered(&bad, 5);
        }
    }
}
