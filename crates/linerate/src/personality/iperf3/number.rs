//! Numbers as iperf3's flags have them: sizes by powers of 1024, rates by powers of 1000, letters
//! in either case, fractions allowed.

use std::time::Duration;

/// `64K`, `1.5M`, `1G`: bytes or blocks, by powers of 1024.
pub(super) fn size(text: &str) -> Result<u64, String> {
    with_letter(text, 1024.0)
}

/// A pace and how unevenly it is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pace {
    /// Bit/s by powers of 1000; 0 is none.
    pub(super) rate_bps: u64,
    /// Blocks that leave at once; none is an even pace.
    pub(super) burst: Option<u32>,
}

/// `10M`, `1G/32`: bit/s, and the blocks of a burst.
pub(super) fn pace(text: &str) -> Result<Pace, String> {
    let (rate, burst) =
        text.split_once('/').map_or((text, None), |(rate, burst)| (rate, Some(burst)));
    let burst = burst.map(|burst| match burst.parse() {
        Ok(count @ 1..=1000) => Ok(count),
        _ => Err(format!("{burst} is not a burst of 1 to 1000 blocks")),
    });
    Ok(Pace { rate_bps: with_letter(rate, 1000.0)?, burst: burst.transpose()? })
}

fn with_letter(text: &str, step: f64) -> Result<u64, String> {
    let (digits, power) = match text.char_indices().last() {
        Some((at, letter)) if letter.is_ascii_alphabetic() => {
            let power = "KMGT".find(letter.to_ascii_uppercase());
            let power = power.ok_or_else(|| format!("{letter} is none of K, M, G, T"))?;
            (&text[..at], i32::try_from(power).unwrap_or(0) + 1)
        }
        _ => (text, 0),
    };
    let number: f64 = digits.parse().map_err(|_| format!("{text} is no number"))?;
    let value = number * step.powi(power);
    if (0.0..1.8e19).contains(&value) {
        Ok(value as u64)
    } else {
        Err(format!("{text} is too much"))
    }
}

/// Seconds, whole or with a fraction.
pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| format!("{text} is no number of seconds"))?;
    Duration::try_from_secs_f64(seconds).map_err(|_| format!("{text} is no time"))
}

/// Milliseconds.
pub(super) fn milliseconds(text: &str) -> Result<Duration, String> {
    let ms = text.parse().map_err(|_| format!("{text} is no number of milliseconds"))?;
    Ok(Duration::from_millis(ms))
}

/// The code point of a type of service octet: decimal, 0x34 or 064.
pub(super) fn tos(text: &str) -> Result<u8, String> {
    let octet = integer(text)?;
    match octet {
        0..=255 if octet % 4 == 0 => Ok(u8::try_from(octet / 4).unwrap_or(0)),
        0..=255 => Err(format!("the lower two bits of {text} belong to ECN (RFC 3168)")),
        _ => Err(format!("{text} is not 0 to 255")),
    }
}

/// A code point: a number as above, or its name.
pub(super) fn dscp(text: &str) -> Result<u8, String> {
    let name = text.to_ascii_lowercase();
    // RFC 2474 §4.2.2, RFC 2597 §6, RFC 3246 §2.7, RFC 8622 §4, RFC 5865.
    let class = |prefix: &str| name.strip_prefix(prefix).and_then(|rest| rest.parse::<u8>().ok());
    match (name.as_str(), class("cs"), class("af")) {
        ("ef", ..) => Ok(46),
        ("le", ..) => Ok(1),
        ("va" | "voice-admit", ..) => Ok(44),
        (_, Some(class @ 0..=7), _) => Ok(class * 8),
        (_, _, Some(af @ 11..=43)) if (1..=3).contains(&(af % 10)) => Ok(af / 10 * 8 + af % 10 * 2),
        _ => match integer(text)? {
            value @ 0..=63 => Ok(u8::try_from(value).unwrap_or(0)),
            _ => Err(format!("{text} is not 0 to 63")),
        },
    }
}

fn integer(text: &str) -> Result<u32, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16),
        None if text.len() > 1 && text.starts_with('0') => u32::from_str_radix(&text[1..], 8),
        None => text.parse(),
    };
    parsed.map_err(|_| format!("{text} is no number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_rates_have_their_own_powers() {
        assert_eq!(size("64K"), Ok(65_536));
        assert_eq!(size("1.5m"), Ok(1_572_864));
        assert_eq!(size("1000"), Ok(1000));
        let of = |rate_bps, burst| Ok(Pace { rate_bps, burst });
        assert_eq!(pace("10M"), of(10_000_000, None));
        assert_eq!(pace("1g"), of(1_000_000_000, None));
        assert_eq!(pace("10M/5"), of(10_000_000, Some(5)));
        assert_eq!(pace("0/1000"), of(0, Some(1000)));
        for wrong in ["", "K", "1X", "-1", "1e300"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
        for wrong in ["10M/", "10M/0", "10M/1001", "10M/x", "/5"] {
            assert!(pace(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn code_points_have_names_and_octets() {
        // RFC 2597 §6: AF41 is 100010, AF11 001010; RFC 3246: EF is 101110.
        for (text, value) in [("af41", 34), ("AF11", 10), ("ef", 46), ("cs1", 8), ("0x2e", 46)] {
            assert_eq!(dscp(text), Ok(value), "{text}");
        }
        assert_eq!((tos("0xb8"), tos("32"), tos("040")), (Ok(46), Ok(8), Ok(8)));
        for wrong in ["af14", "cs8", "64", "x"] {
            assert!(dscp(wrong).is_err(), "{wrong}");
        }
        assert!(tos("1").is_err() && tos("256").is_err());
    }
}
