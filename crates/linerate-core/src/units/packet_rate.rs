//! Packets (or frames, probes, replies) per second.

use std::fmt;
use std::str::FromStr;

use super::decimal::{PREFIXES, decimal_power, split_number};
use super::error::{ParseUnitError, QuantityInfo, UnitErrorReason};

/// A rate in packets per second: finite and not negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct PacketRate(f64);

impl PacketRate {
    /// A rate of `per_sec` packets per second; `None` when negative, infinite or not a number.
    pub fn from_per_sec(per_sec: f64) -> Option<Self> {
        // Adding zero turns the negative zero into the one that prints as 0.
        (per_sec.is_finite() && per_sec >= 0.0).then_some(Self(per_sec + 0.0))
    }

    /// Packets per second.
    pub const fn per_sec(self) -> f64 {
        self.0
    }
}

const PACKET_RATE: QuantityInfo =
    QuantityInfo { name: "a packet rate", accepted: "for example 14.88 Mpps, 1k or 10 packets/s" };

impl FromStr for PacketRate {
    type Err = ParseUnitError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text).map_err(|reason| PACKET_RATE.refuse(text, reason))
    }
}

/// Names of the unit, longest first.
const NAMES: [&str; 5] = ["packets/s", "packet/s", "pps", "p/s", ""];

fn parse(text: &str) -> Result<PacketRate, UnitErrorReason> {
    let (number, unit) = split_number(text)?;
    let power = decimal_power(unit, &NAMES)?;
    // One conversion of the whole decimal text rounds once, so 14.88 M is 14,880,000 exactly.
    let value: f64 =
        format!("{number}e{}", 3 * power).parse().map_err(|_| UnitErrorReason::NotANumber)?;
    PacketRate::from_per_sec(value).ok_or(UnitErrorReason::TooLarge)
}

impl fmt::Display for PacketRate {
    /// At most two decimals, trailing zeros dropped; three significant digits below 1.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut value = self.0;
        let mut prefixes = PREFIXES.iter();
        let mut prefix = prefixes.next().unwrap_or(&"");
        // 999.995 would print as 1000.00, which belongs to the next prefix.
        while value >= 999.995 {
            let Some(next) = prefixes.next() else { break };
            (value, prefix) = (value / 1000.0, next);
        }
        let digits = format!("{value:.*}", decimals(value));
        let digits = match digits.contains('.') {
            true => digits.trim_end_matches('0').trim_end_matches('.'),
            false => &digits,
        };
        f.pad(&format!("{digits} {prefix}pps"))
    }
}

/// Decimals to print: 2, or as many as give three significant digits below 1.
fn decimals(value: f64) -> usize {
    if value <= 0.0 || value >= 1.0 {
        return 2;
    }
    let leading_zeros = (1..400_u16).find(|&places| value * 10_f64.powi(places.into()) >= 1.0);
    usize::from(leading_zeros.unwrap_or(0)) + 2
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> f64 {
        text.parse::<PacketRate>().unwrap_or_else(|error| panic!("{error}")).per_sec()
    }

    fn printed(per_sec: f64) -> String {
        PacketRate::from_per_sec(per_sec).expect("a finite rate").to_string()
    }

    #[test]
    fn packet_rates_are_read_in_powers_of_1000() {
        let cases = [
            ("0", 0.0),
            ("10", 10.0),
            ("0.2", 0.2),
            ("1k", 1_000.0),
            ("1 K", 1_000.0),
            ("14.88 Mpps", 14_880_000.0),
            ("14.88Mpackets/s", 14_880_000.0),
            ("2pps", 2.0),
            ("2 p/s", 2.0),
            ("2 packets/s", 2.0),
            ("1.19Gpps", 1_190_000_000.0),
            ("2P", 2e15),
            ("2Ppps", 2e15),
        ];
        for (text, per_sec) in cases {
            assert_eq!(read(text), per_sec, "{text}");
        }
    }

    #[test]
    fn what_is_no_packet_rate_is_refused_in_one_line() {
        let refused = |text: &str| text.parse::<PacketRate>().expect_err(text).to_string();
        assert_eq!(
            refused("5 Mbps"),
            "\"5 Mbps\" is not a packet rate: unknown unit \"Mbps\"; write for example \
             14.88 Mpps, 1k or 10 packets/s"
        );
        for (text, reason) in [
            ("", "it is empty"),
            ("-1", "it is negative"),
            ("nan", "it does not start with a number"),
            ("inf", "it does not start with a number"),
            ("1..2", "it does not start with a number"),
            ("1x", "unknown unit"),
        ] {
            assert!(refused(text).contains(reason), "{}", refused(text));
        }
        assert!(refused(&"9".repeat(400)).contains("it is too large"));
    }

    #[test]
    fn only_finite_rates_that_are_not_negative_exist() {
        for per_sec in [-1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(PacketRate::from_per_sec(per_sec), None);
        }
        assert_eq!(printed(-0.0), "0 pps");
    }

    #[test]
    fn packet_rates_print_short() {
        let cases = [
            (0.0, "0 pps"),
            (0.001_234, "0.00123 pps"),
            (0.5, "0.5 pps"),
            (1.0, "1 pps"),
            (10.0, "10 pps"),
            (100.0, "100 pps"),
            (812.744, "812.74 pps"),
            (999.996, "1 kpps"),
            (148_809.52, "148.81 kpps"),
            (14_880_952.38, "14.88 Mpps"),
            (1_190_476_190.5, "1.19 Gpps"),
            (1.5e12, "1.5 Tpps"),
        ];
        for (per_sec, text) in cases {
            assert_eq!(printed(per_sec), text);
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_again_within_its_digits(per_sec in 1e-9_f64..1e19) {
            prop_assert!((read(&printed(per_sec)) - per_sec).abs() <= per_sec * 0.005_001);
        }

        #[test]
        fn any_finite_rate_prints(bits: u64) {
            if let Some(rate) = PacketRate::from_per_sec(f64::from_bits(bits)) {
                let again = rate.to_string().parse::<PacketRate>().expect("what it printed");
                prop_assert_eq!(again.per_sec() == 0.0, rate.per_sec() == 0.0);
            }
        }

        #[test]
        fn no_text_panics(text in ".{0,30}|[0-9.]{1,40}[kKMGTPE]?(pps)?") {
            let _ = text.parse::<PacketRate>();
        }
    }
}
