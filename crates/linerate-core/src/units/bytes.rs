//! Sizes in bytes: memory in powers of 1024, everything else as a plain count.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::decimal::{print_hundredths, split_unit};
use super::error::{ParseUnitError, QuantityInfo, UnitErrorReason};

/// A size or count of bytes.
///
/// Printed as memory: with the largest binary prefix that is exact in two decimals and four digits
/// before the point (`64 KiB`, `1.5 KiB`, `6 MiB`). A size that no prefix fits is printed as a
/// plain count below a million (`1500 bytes`, `65535 bytes`), so that it is never mistaken for its
/// round neighbour, and rounded to two decimals from there on.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Bytes(u64);

impl Bytes {
    /// A size of `count` bytes.
    pub const fn new(count: u64) -> Self {
        Self(count)
    }

    /// The number of bytes.
    pub const fn count(self) -> u64 {
        self.0
    }

    /// The size as an amount of transferred data: decimal, with four digits (`1.177 GB`), a plain
    /// count below 1000 (`900 B`).
    pub fn transferred(self) -> String {
        const PREFIXES: [&str; 7] = ["", "k", "M", "G", "T", "P", "E"];
        let mut value = self.0 as f64;
        let mut prefix = 0;
        // What rounds to 1000 has the next prefix.
        while value >= 999.95 && self.0 >= 1000 {
            value /= 1000.0;
            prefix += 1;
        }
        match prefix {
            0 => format!("{} B", self.0),
            _ => {
                let decimals = 1 + usize::from(value < 99.995) + usize::from(value < 9.9995);
                format!("{value:.decimals$} {}B", PREFIXES[prefix])
            }
        }
    }

    /// The size as a plain count: `1500 bytes`.
    pub const fn as_plain_bytes(self) -> PlainBytes {
        PlainBytes(self.0)
    }
}

const SIZE: QuantityInfo = QuantityInfo {
    name: "a size",
    accepted: "for example 65536, 64K, 64KiB (1024) or 64kB (1000)",
};

impl FromStr for Bytes {
    type Err = ParseUnitError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text).map(Self).map_err(|reason| SIZE.refuse(text, reason))
    }
}

fn parse(text: &str) -> Result<u64, UnitErrorReason> {
    let (number, unit) = split_unit(text)?;
    let factor = match unit {
        "" | "B" | "byte" | "bytes" => 1,
        "k" | "K" | "KiB" | "kiB" => 1 << 10,
        "m" | "M" | "MiB" => 1 << 20,
        "g" | "G" | "GiB" => 1 << 30,
        "t" | "T" | "TiB" => 1 << 40,
        "p" | "P" | "PiB" => 1 << 50,
        "e" | "E" | "EiB" => 1 << 60,
        "kB" | "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "TB" => 1_000_000_000_000,
        "PB" => 1_000_000_000_000_000,
        "EB" => 1_000_000_000_000_000_000,
        _ => return Err(UnitErrorReason::unknown_unit(unit)),
    };
    number.multiply_rounded(factor)
}

/// Binary prefixes, largest first, with the power of two that each stands for.
const BINARY: [(&str, u32); 6] =
    [("Ei", 60), ("Pi", 50), ("Ti", 40), ("Gi", 30), ("Mi", 20), ("Ki", 10)];

/// Size in bytes below which one that is not round is printed in full.
const PLAIN_BELOW: u64 = 1_000_000;

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.exact_text().or_else(|| self.rounded()) {
            Some(text) => f.pad(&text),
            None => self.as_plain_bytes().fmt(f),
        }
    }
}

impl Bytes {
    /// With the largest prefix that needs no rounding and at most four digits before the point.
    fn exact_text(self) -> Option<String> {
        let hundredfold = u128::from(self.0) * 100;
        BINARY.iter().filter(|(_, power)| self.0 >> power > 0).find_map(|(prefix, power)| {
            let hundredths = hundredfold >> power;
            let is_exact = hundredths << power == hundredfold && hundredths < 1_000_000;
            is_exact.then(|| format!("{} {prefix}B", print_hundredths(hundredths)))
        })
    }

    fn rounded(self) -> Option<String> {
        let (prefix, power) = BINARY.iter().find(|(_, power)| self.0 >> power > 0)?;
        let hundredths = (u128::from(self.0) * 100 + (1 << (power - 1))) >> power;
        (self.0 >= PLAIN_BELOW).then(|| format!("{} {prefix}B", print_hundredths(hundredths)))
    }
}

/// A size that prints as a plain count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlainBytes(u64);

impl fmt::Display for PlainBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            1 => f.pad("1 byte"),
            count => f.pad(&format!("{count} bytes")),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> u64 {
        text.parse::<Bytes>().unwrap_or_else(|error| panic!("{error}")).count()
    }

    #[test]
    fn a_single_letter_is_binary_and_kb_is_decimal() {
        let cases = [
            ("0", 0),
            ("1500", 1500),
            ("1500 bytes", 1500),
            ("1 byte", 1),
            ("512B", 512),
            // iperf3 3.12 -w 64K asks for 65536 bytes.
            ("64K", 65_536),
            ("64k", 65_536),
            ("64 KiB", 65_536),
            ("64kB", 64_000),
            ("64KB", 64_000),
            ("1.5M", 1_572_864),
            ("6 MiB", 6_291_456),
            ("8MB", 8_000_000),
            ("1G", 1_073_741_824),
            ("1GB", 1_000_000_000),
            ("2T", 2_199_023_255_552),
            ("1.3K", 1331), // 1331.2
            ("18446744073709551615", u64::MAX),
        ];
        for (text, count) in cases {
            assert_eq!(read(text), count, "{text}");
        }
    }

    #[test]
    fn what_is_no_size_is_refused_in_one_line() {
        let refused = |text: &str| text.parse::<Bytes>().expect_err(text).to_string();
        assert_eq!(
            refused("64kbit"),
            "\"64kbit\" is not a size: unknown unit \"kbit\"; write for example 65536, 64K, \
             64KiB (1024) or 64kB (1000)"
        );
        for (text, reason) in [
            ("", "it is empty"),
            ("-1", "it is negative"),
            ("K", "it does not start with a number"),
            ("16384P", "it is too large"),
            ("0.4", "it rounds to zero"),
            ("64kb", "unknown unit \"kb\""),
        ] {
            assert!(refused(text).contains(reason), "{}", refused(text));
        }
    }

    #[test]
    fn transferred_data_prints_in_powers_of_1000_with_four_digits() {
        for (bytes, printed) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1.000 kB"),
            (9_999, "9.999 kB"),
            (99_994, "99.99 kB"),
            (99_996, "100.0 kB"),
            (999_949, "999.9 kB"),
            (999_951, "1.000 MB"),
            (6_158_158_848, "6.158 GB"),
            (u64::MAX, "18.45 EB"),
        ] {
            assert_eq!(Bytes::new(bytes).transferred(), printed, "{bytes}");
        }
    }

    #[test]
    fn memory_prints_in_powers_of_1024_when_that_is_exact() {
        let cases = [
            (0, "0 bytes"),
            (1, "1 byte"),
            (1023, "1023 bytes"),
            (1024, "1 KiB"),
            (1500, "1500 bytes"),
            (1536, "1.5 KiB"),
            (9000, "9000 bytes"),
            (65_535, "65535 bytes"),
            (65_536, "64 KiB"),
            (524_288, "512 KiB"),
            (1_048_576, "1 MiB"),
            (1_049_600, "1025 KiB"),
            (6_291_456, "6 MiB"),
            (1_000_000, "976.56 KiB"), // 976.5625
            (2_625_000, "2.5 MiB"),    // 2.5034
            (1_073_725_440, "1023.98 MiB"),
            (u64::MAX, "16 EiB"),
        ];
        for (count, text) in cases {
            assert_eq!(Bytes::new(count).to_string(), text);
        }
        assert_eq!(Bytes::new(65_536).as_plain_bytes().to_string(), "65536 bytes");
        assert_eq!(format!("{:>8}", Bytes::new(1024)), "   1 KiB");
    }

    proptest! {
        #[test]
        fn a_size_below_a_million_is_read_again_exactly(count in 0..PLAIN_BELOW) {
            prop_assert_eq!(read(&Bytes::new(count).to_string()), count);
        }

        #[test]
        fn a_plain_size_is_read_again_exactly(count: u64) {
            prop_assert_eq!(read(&Bytes::new(count).as_plain_bytes().to_string()), count);
        }

        #[test]
        fn a_large_size_is_read_again_within_its_digits(count in 0_u64..1 << 58) {
            let again = read(&Bytes::new(count).to_string());
            prop_assert!(again.abs_diff(count) as f64 <= count as f64 * 0.005);
        }

        #[test]
        fn no_text_panics(text in ".{0,30}|[0-9.]{1,40}[kKMGTP]?(i?B)?") {
            let _ = text.parse::<Bytes>();
        }
    }
}
