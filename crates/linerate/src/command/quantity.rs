//! Quantities whose unit a bare number leaves open. Where ping and iperf3 have a habit (`-i 1`,
//! `-t 10`, `-b 1000000`), that holds; elsewhere a number without a unit is answered with the two
//! that it may be.

use std::time::Duration;

use linerate_core::units::{BitRate, parse_span};

/// Below this a bare rate is hardly one in bit/s.
const RATE_BARE_MIN: f64 = 1000.0;

/// Below this a bare limit of a queue is hardly one in bytes: ten packets of Ethernet.
const QUEUE_BARE_MIN: f64 = 15_000.0;

/// A time of a path, which is seldom seconds.
pub(super) fn time_with_unit(text: &str) -> Result<Duration, String> {
    time_text(text)?;
    parse_span(text).map_err(|error| error.to_string())
}

/// The same as text.
pub(super) fn time_text(text: &str) -> Result<String, String> {
    match parse_bare_number(text) {
        Some(_) => Err(format!("{0}ms or {0}s?", text.trim())),
        None => Ok(text.to_owned()),
    }
}

/// A rate, which is seldom below 1 kbit/s.
pub(crate) fn rate_with_unit(text: &str) -> Result<BitRate, String> {
    rate_text(text)?;
    text.parse().map_err(|error| format!("{error}"))
}

/// The same as text.
pub(crate) fn rate_text(text: &str) -> Result<String, String> {
    match parse_bare_number(text).filter(|number| *number < RATE_BARE_MIN) {
        Some(_) => Err(format!("{0}M (Mbit/s) or {0}bps?", text.trim())),
        None => Ok(text.to_owned()),
    }
}

/// A limit of a queue as text, which is seldom below ten packets' worth of bytes.
pub(super) fn queue_text(text: &str) -> Result<String, String> {
    match parse_bare_number(text).filter(|number| *number < QUEUE_BARE_MIN) {
        Some(_) => Err(format!("'{0} packets' or {0}kB?", text.trim())),
        None => Ok(text.to_owned()),
    }
}

/// A number without a unit; zero needs none.
fn parse_bare_number(text: &str) -> Option<f64> {
    let number = text.trim();
    let plain = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    number.parse().ok().filter(|value| plain && *value > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_number_is_answered_with_what_it_may_be() {
        assert_eq!(time_with_unit("10").expect_err("no unit"), "10ms or 10s?");
        assert_eq!(time_with_unit("0.5").expect_err("no unit"), "0.5ms or 0.5s?");
        assert_eq!(time_with_unit("10ms"), Ok(Duration::from_millis(10)));
        assert_eq!(time_with_unit("0"), Ok(Duration::ZERO));
        assert_eq!(rate_with_unit("50").expect_err("no unit"), "50M (Mbit/s) or 50bps?");
        for (text, bps) in [("50M", 50_000_000), ("50bps", 50), ("51795580", 51_795_580), ("0", 0)]
        {
            assert_eq!(rate_with_unit(text), Ok(BitRate::from_bits_per_sec(bps)), "{text}");
        }
        assert_eq!(queue_text("100").expect_err("no unit"), "'100 packets' or 100kB?");
        assert!(queue_text("100 packets").is_ok() && queue_text("65536").is_ok());
        assert!(time_with_unit("x").is_err() && rate_with_unit("1e3").is_err());
    }
}
