//! The request for chronyd's state (`chronyc tracking`) and its reply, as chronyd 4.3 sends
//! them on UDP port 323 (candm.h of chrony, protocol 6). Integers are big-endian.
//!
//! | request | | reply | |
//! |---|---|---|---|
//! | 0 | version 6, type 1, 0, 0 | 0 | version 6, type 2, 0, 0 |
//! | 4 | command 33 (2) | 4 | command, kind 5, status 0 (2 each) |
//! | 8 | number (4) | 16 | number of the request (4) |
//! | 20 | zeros up to the reply's length | 28 | below |
//!
//! From 28: reference (4), its address (16), family (2), 0 (2), stratum (2), leap (2), reference
//! time (12), then floats of 4: correction, last and RMS offset, frequency, residual, skew, root
//! delay, root dispersion, interval of updates. The other commands are left out.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Bytes of a request, and of its reply: a reply is never longer than its request.
pub const TRACKING_BYTES: usize = 104;
/// The port of commands (IANA names none; chrony.conf(5), cmdport).
pub const PORT: u16 = 323;

const VERSION: u8 = 6;
const TRACKING: u16 = 33;
const TRACKING_REPLY: u16 = 5;
/// The leap indicator of a clock that is not synchronised (RFC 5905 §7.3).
const LEAP_UNSYNCHRONISED: u16 = 3;

/// State of the system clock as chronyd reports it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tracking {
    /// Address of the NTP server that chronyd follows; `None` for a local reference clock.
    pub source: Option<IpAddr>,
    /// NTP stratum: distance from a reference clock.
    pub stratum: u16,
    /// False if the leap indicator says that the clock is not synchronised.
    pub synchronised: bool,
    /// Correction that is still to be applied to the system clock, in seconds.
    pub correction_s: f64,
    /// Round-trip delay to the reference clock, in seconds (RFC 5905).
    pub root_delay_s: f64,
    /// Root dispersion: the errors added up on the path to the reference clock, in seconds.
    pub root_dispersion_s: f64,
    /// Time between the last two clock updates, in seconds.
    pub update_interval_s: f64,
}

/// Builds the request for [`Tracking`] with this sequence number.
pub fn tracking_request(number: u32) -> [u8; TRACKING_BYTES] {
    let mut bytes = [0; TRACKING_BYTES];
    bytes[..2].copy_from_slice(&[VERSION, 1]);
    bytes[4..6].copy_from_slice(&TRACKING.to_be_bytes());
    bytes[8..12].copy_from_slice(&number.to_be_bytes());
    bytes
}

impl Tracking {
    /// Parses the reply to the request of that number; `None` for any other bytes.
    pub fn parse(bytes: &[u8], number: u32) -> Option<Self> {
        let two = |at: usize| Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?));
        let four = |at: usize| Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?));
        let ours = bytes.get(..2)? == [VERSION, 2] && two(4)? == TRACKING && four(16)? == number;
        if !ours || two(6)? != TRACKING_REPLY || two(8)? != 0 {
            return None;
        }
        let source = match two(48)? {
            1 => Some(IpAddr::V4(Ipv4Addr::from_bits(four(32)?))),
            2 => Some(IpAddr::V6(Ipv6Addr::from(*bytes.get(32..)?.first_chunk::<16>()?))),
            _ => None,
        };
        let leap = two(54)?;
        Some(Self {
            source,
            stratum: two(52)?,
            synchronised: leap != LEAP_UNSYNCHRONISED,
            correction_s: decode_float(four(68)?),
            root_delay_s: decode_float(four(92)?),
            root_dispersion_s: decode_float(four(96)?),
            update_interval_s: decode_float(four(100)?),
        })
    }

    /// The largest error of the clock, rounded up: correction + dispersion + half the delay
    /// (chronyc(1), tracking). `None` when it is not synchronised.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "not negative, and a float of chrony is below 2^63 s"
    )]
    pub fn error_ns(&self) -> Option<u64> {
        // A slewed clock can measure a delay below 0; it is as far off as one above.
        let s = self.correction_s.abs() + self.root_dispersion_s + self.root_delay_s.abs() / 2.0;
        let sound = self.synchronised && self.root_dispersion_s >= 0.0;
        sound.then(|| (s * 1e9).ceil() as u64)
    }
}

/// chrony's float: 7 bits of exponent and 25 of coefficient, each signed; coefficient × 2^(exponent
/// − 25).
fn decode_float(bits: u32) -> f64 {
    let signed = bits.cast_signed();
    let exponent = signed >> 25;
    let coefficient = signed << 7 >> 7;
    f64::from(coefficient) * 2f64.powi(exponent - 25)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_from_hex(hex: &str) -> Vec<u8> {
        let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
        let pair =
            |pair: &[u8]| std::str::from_utf8(pair).ok().map(|hex| u8::from_str_radix(hex, 16));
        digits.chunks(2).filter_map(pair).map(|byte| byte.expect("hexadecimal")).collect()
    }

    /// What chronyd 4.3 sent for `chronyc -c tracking`, which printed of it
    /// 0A630D01,10.99.13.1,9,1795445194.829490167,-0.000002548,0.000000078,0.000000282,0.041,0.001,
    /// 0.036,0.000007418,0.000001966,2.0,Normal
    const SYNCHRONISED: &str =
        "06020000 00210005 00000000 00000000 d4e2baf9 00000000 00000000 0a630d01
        0a630d01 00000000 00000000 00000000 00010000 00090000 00000000 6b0451ca
        317103f7 df5502e5 d4a7e9cc d89786c5 faa8f739 eece53d7 fa9332ae e0f8e823
        de83eefb 06822815";
    /// The same of one without a server: `Not synchronised`, root delay and dispersion 1 s.
    const LOST: &str = "06020000 00210005 00000000 00000000 83b1a734 00000000 00000000 00000000
        00000000 00000000 00000000 00000000 00000000 00000003 00000000 00000000
        00000000 00000000 00000000 00000000 00000000 00000000 00000000 04800000
        04800000 00000000";

    #[test]
    fn the_reply_of_a_real_chronyd_says_what_chronyc_printed() {
        let found = Tracking::parse(&bytes_from_hex(SYNCHRONISED), 0xd4e2_baf9).expect("a reply");
        assert_eq!(found.source, Some(IpAddr::from([10, 99, 13, 1])));
        assert_eq!((found.stratum, found.synchronised), (9, true));
        let near = |value: f64, printed: f64, digit: f64| (value - printed).abs() <= digit / 2.0;
        assert!(near(found.correction_s, -0.000_002_548, 1e-9), "{found:?}");
        assert!(near(found.root_delay_s, 0.000_007_418, 1e-9), "{found:?}");
        assert!(near(found.root_dispersion_s, 0.000_001_966, 1e-9), "{found:?}");
        assert!(near(found.update_interval_s, 2.0, 0.1), "{found:?}");
        // 2.548 + 1.966 + 7.418 / 2 = 8.223 us.
        assert!(found.error_ns().is_some_and(|ns| ns.abs_diff(8_223) <= 2), "{found:?}");
    }

    /// A dispersion below 0, which no chronyd has, does not take from an error; a delay below 0
    /// adds.
    #[test]
    fn no_part_of_an_error_makes_it_smaller() {
        let found = Tracking::parse(&bytes_from_hex(SYNCHRONISED), 0xd4e2_baf9).expect("a reply");
        let short = Tracking { root_delay_s: -found.root_delay_s, ..found };
        assert_eq!(short.error_ns(), found.error_ns());
        let damaged = Tracking { root_dispersion_s: -1e-6, ..found };
        assert_eq!(damaged.error_ns(), None);
    }

    #[test]
    fn a_clock_without_a_server_claims_nothing() {
        let found = Tracking::parse(&bytes_from_hex(LOST), 0x83b1_a734).expect("a reply");
        assert_eq!((found.source, found.stratum, found.error_ns()), (None, 0, None));
        assert!((found.root_delay_s - 1.0).abs() < 1e-9, "{found:?}");
    }

    /// What `chronyc tracking` sent, and what is no reply to it.
    #[test]
    fn the_request_is_that_of_chronyc_and_other_replies_are_none() {
        let mut expected = bytes_from_hex("0601 0000 0021 0000 d4e2 baf9");
        expected.resize(TRACKING_BYTES, 0);
        assert_eq!(tracking_request(0xd4e2_baf9)[..], expected);
        let reply = bytes_from_hex(SYNCHRONISED);
        assert_eq!(reply.len(), TRACKING_BYTES);
        for cut in 0..reply.len() {
            assert_eq!(Tracking::parse(&reply[..cut], 0xd4e2_baf9), None, "{cut}");
        }
        assert_eq!(Tracking::parse(&reply, 1), None, "of another request");
        for at in [0, 1, 5, 7, 9] {
            let mut other = reply.clone();
            other[at] ^= 1;
            assert_eq!(Tracking::parse(&other, 0xd4e2_baf9), None, "byte {at}");
        }
    }
}
