//! Bits per second. Prefixes are powers of 1000 (IEC 80000-13), in text as in print.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Bytes;
use super::decimal::{PREFIXES, decimal_power, print_hundredths, split_unit};
use super::error::{ParseUnitError, QuantityInfo, UnitErrorReason};

/// A rate in bits per second; 1 Mbit/s is 1,000,000 bit/s.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct BitRate(u64);

const NANOS_PER_SECOND: u128 = 1_000_000_000;
const BITS_PER_BYTE: u128 = 8;

impl BitRate {
    /// A rate of `bps` bits per second.
    pub const fn from_bits_per_sec(bps: u64) -> Self {
        Self(bps)
    }

    /// A computed or stored rate to the nearest bit/s, so that it prints like any other; `None`
    /// when negative, not a number, or too large.
    pub fn from_nearest(bps: f64) -> Option<Self> {
        // 2^64, the first value that does not fit, is exact as f64.
        let rounded = bps.round();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the range is checked in the same line"
        )]
        (0.0..18_446_744_073_709_551_616.0).contains(&rounded).then_some(Self(rounded as u64))
    }

    /// The rate at which `bytes` pass in `span`, to the nearest bit/s, half up; `None` for a span
    /// of zero and for a rate that does not fit.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use linerate_core::units::{BitRate, Bytes};
    /// // A window of 65,536 bytes each 100 ms.
    /// let rate = BitRate::from_bytes_over(Bytes::new(65_536), Duration::from_millis(100));
    /// assert_eq!(rate, Some(BitRate::from_bits_per_sec(5_242_880)));
    /// ```
    pub fn from_bytes_over(bytes: Bytes, span: Duration) -> Option<Self> {
        let ns = span.as_nanos();
        if ns == 0 {
            return None;
        }
        // At most 2^64 * 8 * 10^9 < 2^97, so nothing here can overflow.
        let bits = u128::from(bytes.count()) * BITS_PER_BYTE * NANOS_PER_SECOND;
        u64::try_from((bits + ns / 2) / ns).ok().map(Self)
    }

    /// The rate in bits per second.
    pub const fn bits_per_sec(self) -> u64 {
        self.0
    }

    /// Whole bytes that pass in `span`, rounded down; `None` when they do not fit.
    pub fn bytes_in(self, span: Duration) -> Option<Bytes> {
        let bits = u128::from(self.0).checked_mul(span.as_nanos())? / NANOS_PER_SECOND;
        u64::try_from(bits / BITS_PER_BYTE).ok().map(Bytes::new)
    }
}

const RATE: QuantityInfo =
    QuantityInfo { name: "a rate", accepted: "for example 155.52 Mbit/s, 10G or 64kbps" };

impl FromStr for BitRate {
    type Err = ParseUnitError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text).map(Self).map_err(|reason| RATE.refuse(text, reason))
    }
}

/// Names of the unit, longest first.
const NAMES: [&str; 8] = ["bits/s", "bit/s", "bits", "bit", "bps", "b/s", "b", ""];

fn parse(text: &str) -> Result<u64, UnitErrorReason> {
    let (number, unit) = split_unit(text)?;
    if ["B", "Bps", "B/s"].iter().any(|bytes| unit.ends_with(bytes)) {
        return Err(UnitErrorReason::Other("a rate counts bits, not bytes".to_owned()));
    }
    number.multiply_rounded(thousands(decimal_power(unit, &NAMES)?))
}

/// 1000^`power`, for the powers of [`PREFIXES`].
fn thousands(power: usize) -> u64 {
    (0..power).fold(1, |factor, _| factor * 1000)
}

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hundredths_at = |power| {
            let factor = u128::from(thousands(power));
            (u128::from(self.0) * 100 + factor / 2) / factor
        };
        // A number that rounds up to 1000 belongs to the next prefix.
        let last = PREFIXES.len() - 1;
        let power = (0..last).find(|&power| hundredths_at(power) < 100_000).unwrap_or(last);
        f.pad(&format!("{} {}bit/s", print_hundredths(hundredths_at(power)), PREFIXES[power]))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> u64 {
        text.parse::<BitRate>().unwrap_or_else(|error| panic!("{error}")).bits_per_sec()
    }

    fn refused(text: &str) -> String {
        text.parse::<BitRate>().expect_err(text).to_string()
    }

    #[test]
    fn rates_are_read_in_powers_of_1000() {
        let cases = [
            ("0", 0),
            ("1", 1),
            ("9600", 9600),
            ("64kbps", 64_000),
            ("64 Kbit/s", 64_000),
            ("1.5gbit", 1_500_000_000),
            ("100M", 100_000_000),
            ("100m", 100_000_000),
            ("10G", 10_000_000_000),
            ("10 Gb/s", 10_000_000_000),
            ("800gbits/s", 800_000_000_000),
            ("1.6Tbit/s", 1_600_000_000_000),
            ("1 bit/s", 1),
            (" 2.5 G ", 2_500_000_000),
            (".5M", 500_000),
            // SONET line rates: OC-1, OC-3, OC-12, OC-48, OC-192 (ITU-T G.707).
            ("51.84M", 51_840_000),
            ("155.52M", 155_520_000),
            ("622.08 Mbit/s", 622_080_000),
            ("2488.32Mbps", 2_488_320_000),
            ("9.95328 Gbit/s", 9_953_280_000),
            ("18446744073709551615", u64::MAX),
        ];
        for (text, bps) in cases {
            assert_eq!(read(text), bps, "{text}");
        }
    }

    #[test]
    fn a_part_of_a_bit_is_rounded_to_the_nearest() {
        assert_eq!(read("1.4"), 1);
        assert_eq!(read("1.5"), 2);
        assert_eq!(read("0.0015k"), 2);
        assert_eq!(read("0.9999999999999999999999999999"), 1);
    }

    #[test]
    fn what_is_no_rate_is_refused_in_one_line() {
        let accepted = "; write for example 155.52 Mbit/s, 10G or 64kbps";
        let cases = [
            ("", "\"\" is not a rate: it is empty"),
            ("  ", "\"  \" is not a rate: it is empty"),
            ("fast", "\"fast\" is not a rate: it does not start with a number"),
            ("-5M", "\"-5M\" is not a rate: it is negative"),
            ("1.2.3", "\"1.2.3\" is not a rate: it does not start with a number"),
            (".", "\".\" is not a rate: it does not start with a number"),
            ("10X", "\"10X\" is not a rate: unknown unit \"X\""),
            ("10Mibit/s", "\"10Mibit/s\" is not a rate: unknown unit \"Mibit/s\""),
            ("1,5G", "\"1,5G\" is not a rate: unknown unit \",5G\""),
            ("1e9", "\"1e9\" is not a rate: unknown unit \"e9\""),
            ("10 MB/s", "\"10 MB/s\" is not a rate: a rate counts bits, not bytes"),
            ("0.1", "\"0.1\" is not a rate: it rounds to zero"),
            ("19E", "\"19E\" is not a rate: it is too large"),
            ("99999999999999999999", "\"99999999999999999999\" is not a rate: it is too large"),
            ("1\n2", "\"1\\n2\" is not a rate: unknown unit \"2\""),
            ("10µ", "\"10µ\" is not a rate: unknown unit \"µ\""),
        ];
        for (text, message) in cases {
            assert_eq!(refused(text), format!("{message}{accepted}"));
        }
    }

    #[test]
    fn a_long_input_does_not_make_a_long_message() {
        assert!(refused(&"9".repeat(10_000)).len() < 200);
        assert!(refused(&format!("1{}", "x".repeat(10_000))).len() < 250);
    }

    #[test]
    fn rates_print_with_at_most_two_decimals_and_never_slip_a_prefix() {
        let cases = [
            (0, "0 bit/s"),
            (1, "1 bit/s"),
            (999, "999 bit/s"),
            (1_000, "1 kbit/s"),
            (64_000, "64 kbit/s"),
            (999_994, "999.99 kbit/s"),
            (999_995, "1 Mbit/s"),
            (155_520_000, "155.52 Mbit/s"),
            (622_080_000, "622.08 Mbit/s"),
            (941_482_445, "941.48 Mbit/s"),
            (999_999_999, "1 Gbit/s"),
            (9_400_000_000, "9.4 Gbit/s"),
            (9_414_824_447, "9.41 Gbit/s"),
            (9_953_280_000, "9.95 Gbit/s"),
            (10_000_000_000, "10 Gbit/s"),
            (800_000_000_000, "800 Gbit/s"),
            (999_994_999_999, "999.99 Gbit/s"),
            (999_995_000_000, "1 Tbit/s"),
            (1_000_000_000_000, "1 Tbit/s"),
            (1_050_000_000_000, "1.05 Tbit/s"),
            (12_800_000_000_000, "12.8 Tbit/s"),
            (1_000_000_000_000_000, "1 Pbit/s"),
            (u64::MAX, "18.45 Ebit/s"),
        ];
        for (bps, text) in cases {
            assert_eq!(BitRate::from_bits_per_sec(bps).to_string(), text);
        }
    }

    #[test]
    fn width_and_alignment_are_kept() {
        assert_eq!(format!("{:>12}", BitRate::from_bits_per_sec(10_000_000)), "   10 Mbit/s");
    }

    #[test]
    fn a_computed_rate_becomes_the_nearest_whole_one() {
        let nearest = |bps| BitRate::from_nearest(bps).map(BitRate::bits_per_sec);
        assert_eq!(nearest(941_482_444.7), Some(941_482_445));
        assert_eq!(nearest(0.4), Some(0));
        assert_eq!(nearest(-0.4), Some(0));
        for impossible in [-1.0, f64::NAN, f64::INFINITY, 18_446_744_073_709_551_616.0] {
            assert_eq!(nearest(impossible), None);
        }
    }

    #[test]
    fn bytes_over_a_span_round_to_the_nearest_bit_per_second() {
        let over = |bytes, ns| {
            BitRate::from_bytes_over(Bytes::new(bytes), Duration::from_nanos(ns))
                .map(BitRate::bits_per_sec)
        };
        assert_eq!(over(0, 1), Some(0));
        assert_eq!(over(125_000_000, 1_000_000_000), Some(1_000_000_000));
        assert_eq!(over(1, 3_000_000_000), Some(3)); // 8/3 = 2.67
        assert_eq!(over(1, 16_000_000_000), Some(1)); // 0.5, half up
        assert_eq!(over(1, 0), None);
        assert_eq!(over(u64::MAX, 1), None);
    }

    #[test]
    fn bytes_in_a_span_round_down() {
        let in_ns = |bps, ns| {
            BitRate::from_bits_per_sec(bps).bytes_in(Duration::from_nanos(ns)).map(Bytes::count)
        };
        assert_eq!(in_ns(1_000_000_000, 21_000_000), Some(2_625_000));
        assert_eq!(in_ns(15, 1_000_000_000), Some(1));
        assert_eq!(in_ns(0, u64::MAX), Some(0));
        assert_eq!(BitRate::from_bits_per_sec(u64::MAX).bytes_in(Duration::MAX), None);
        assert_eq!(in_ns(u64::MAX, 9_000_000_000), None);
    }

    /// From here on, what is printed is rounded up to more than the largest rate.
    const PRINTED_ABOVE_MAX_BPS: u64 = 18_445_000_000_000_000_000;

    proptest! {
        #[test]
        fn what_is_printed_is_read_again_within_its_digits(bps in 0..PRINTED_ABOVE_MAX_BPS) {
            let again = read(&BitRate::from_bits_per_sec(bps).to_string());
            // Two decimals of a number of at least 1: half a hundredth of it.
            prop_assert!(again.abs_diff(bps) as f64 <= bps as f64 * 0.005 + 0.5);
        }

        #[test]
        fn a_plain_number_is_exact(bps: u64) {
            prop_assert_eq!(read(&bps.to_string()), bps);
        }

        #[test]
        fn decimals_are_exact(hundredths in 1_u64..1_000_000_000) {
            let text = format!("{}.{:02}M", hundredths / 100, hundredths % 100);
            prop_assert_eq!(read(&text), hundredths * 10_000);
        }

        #[test]
        fn no_text_panics(text in ".{0,30}|[0-9.]{1,40}[kKMGTPE]?(bit/s|bps|B)?") {
            let _ = text.parse::<BitRate>();
        }
    }
}
