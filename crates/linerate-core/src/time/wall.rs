//! Wall time: a label on a record, never part of a difference.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::units::parse_span;

/// A point in civil time, in nanoseconds since 1970-01-01 UTC. Serialised as RFC 3339.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WallTime(jiff::Timestamp);

impl WallTime {
    /// The point `ns` nanoseconds after 1970-01-01 UTC; years beyond 9999 are held at the last.
    pub fn from_unix_nanos(ns: u128) -> Self {
        let ns = i128::try_from(ns).unwrap_or(i128::MAX);
        Self(jiff::Timestamp::from_nanosecond(ns).unwrap_or(jiff::Timestamp::MAX))
    }

    /// Milliseconds since 1970-01-01 UTC, as the UUIDv7 of a record needs them.
    pub fn unix_millis(self) -> u64 {
        u64::try_from(self.0.as_millisecond()).unwrap_or(0)
    }
}

impl WallTime {
    /// `Sun, 22 Nov 2026 04:39:40 GMT`, as RFC 9110 §5.6.7 has it.
    pub fn http_date(self) -> String {
        self.0.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
    }
}

impl WallTime {
    /// The time in UTC in a format of strftime(3); `None` where the format is none.
    pub fn format_utc(self, format: &str) -> Option<String> {
        let utc = self.0.to_zoned(jiff::tz::TimeZone::UTC);
        jiff::fmt::strtime::format(format, &utc).ok()
    }
}

impl WallTime {
    /// The point that a person names: `2h` or `3d` before `now`, `today` or `yesterday` (where they
    /// begin), a date, a date with a time of day, RFC 3339. Days are those of UTC.
    /// # Errors
    /// One line with what is accepted.
    pub fn from_user_text(text: &str, now: Self) -> Result<Self, String> {
        let utc = |date: jiff::civil::DateTime| {
            date.to_zoned(jiff::tz::TimeZone::UTC).map(|zoned| Self(zoned.timestamp()))
        };
        let today = now.0.to_zoned(jiff::tz::TimeZone::UTC).date();
        let day = match text.trim() {
            "today" => Some(today),
            "yesterday" => today.yesterday().ok(),
            text => text.parse().ok().filter(|_| text.len() == "2000-07-01".len()),
        };
        let refused = || {
            format!(
                "{text:?} is not a time; write 90m, 2h, 3d, today, yesterday, 2000-07-01, \
                 2000-07-01T12:00 or 2000-07-01T12:00:00Z, days in UTC"
            )
        };
        if let Some(day) = day {
            return utc(day.to_datetime(jiff::civil::Time::midnight())).map_err(|_| refused());
        }
        if let Ok(at) = text.trim().parse() {
            return Ok(Self(at));
        }
        if let Ok(at) = text.trim().parse::<jiff::civil::DateTime>() {
            return utc(at).map_err(|_| refused());
        }
        let days = text.trim().strip_suffix('d').and_then(|days| days.parse::<u32>().ok());
        let span = match days {
            Some(days) => Duration::from_secs(u64::from(days) * 86_400),
            None => parse_span(text).map_err(|_| refused())?,
        };
        now.0.checked_sub(span).map(Self).map_err(|_| refused())
    }
}

impl fmt::Display for WallTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3}", self.0)
    }
}

impl Serialize for WallTime {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for WallTime {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map(Self).map_err(serde::de::Error::custom)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for WallTime {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "WallTime".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "format": "date-time" })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_http_date_is_that_of_the_rfc() {
        // RFC 9110 §5.6.7: 784111777 seconds after 1970.
        let wall = WallTime::from_unix_nanos(784_111_777_000_000_000);
        assert_eq!(wall.http_date(), "Sun, 06 Nov 1994 08:49:37 GMT");
    }

    fn read(text: &str) -> Result<WallTime, crate::tree::Error> {
        crate::tree::from_value(text.into())
    }

    fn written(time: WallTime) -> String {
        crate::tree::to_value(time).expect("a time serialises").as_str().expect("text").to_owned()
    }

    #[test]
    fn the_examples_of_rfc_3339_are_read() {
        // RFC 3339 §5.8, with the same instants in milliseconds since 1970 (POSIX seconds).
        let cases = [
            ("1985-04-12T23:20:50.52Z", 482_196_050_520),
            ("1996-12-19T16:39:57-08:00", 851_042_397_000),
            ("1996-12-20T00:39:57Z", 851_042_397_000),
        ];
        for (text, ms) in cases {
            assert_eq!(read(text).expect(text).unix_millis(), ms, "{text}");
        }
        // Before 1970 nothing was measured; the time is kept, the identifier's part is 0.
        let early = read("1937-01-01T12:00:27.87+00:20").expect("RFC 3339 §5.8");
        assert_eq!(written(early), "1937-01-01T11:40:27.87Z");
        assert_eq!(early.unix_millis(), 0);
    }

    #[test]
    fn the_leap_second_of_rfc_3339_is_read_as_the_second_before() {
        // RFC 3339 §5.8: both name the leap second at the end of 1990, which POSIX time lacks.
        for text in ["1990-12-31T23:59:60Z", "1990-12-31T15:59:60-08:00"] {
            assert_eq!(written(read(text).expect(text)), "1990-12-31T23:59:59Z");
        }
    }

    #[test]
    fn the_example_of_rfc_9562_is_printed_to_the_millisecond() {
        // RFC 9562 appendix A.6: 2022-02-22T14:22:22.00-05:00 is 0x017F22E279B0 milliseconds.
        let time = WallTime::from_unix_nanos(0x017F_22E2_79B0 * 1_000_000);
        assert_eq!(time.unix_millis(), 0x017F_22E2_79B0);
        assert_eq!(time.to_string(), "2022-02-22T19:22:22.000Z");
        assert_eq!(written(time), "2022-02-22T19:22:22Z");
        assert_eq!(read("2022-02-22T14:22:22.00-05:00").expect("its own text"), time);
    }

    #[test]
    fn nanoseconds_are_kept_in_what_is_stored() {
        let time = WallTime::from_unix_nanos(1_700_000_000_123_456_789);
        assert_eq!(written(time), "2023-11-14T22:13:20.123456789Z");
        assert_eq!(time.to_string(), "2023-11-14T22:13:20.123Z");
    }

    #[test]
    fn a_time_beyond_the_calendar_is_held_at_its_end() {
        assert!(written(WallTime::from_unix_nanos(u128::MAX)).starts_with("9999-12-"));
    }

    #[test]
    fn a_person_names_a_time_by_a_span_a_day_or_a_date() {
        let now = read("2026-11-23T07:45:30.5Z").expect("RFC 3339");
        let named = |text: &str| WallTime::from_user_text(text, now).map(|at| at.to_string());
        for (text, expected) in [
            ("2h", "2026-11-23T05:45:30.500Z"),
            ("90m", "2026-11-23T06:15:30.500Z"),
            ("3d", "2026-11-20T07:45:30.500Z"),
            ("today", "2026-11-23T00:00:00.000Z"),
            ("yesterday", "2026-11-22T00:00:00.000Z"),
            ("2000-07-01", "2000-07-01T00:00:00.000Z"),
            ("2000-07-01T12:00", "2000-07-01T12:00:00.000Z"),
            ("2000-07-01 12:00:05", "2000-07-01T12:00:05.000Z"),
            ("2000-07-01T12:00:00+02:00", "2000-07-01T10:00:00.000Z"),
        ] {
            assert_eq!(named(text).as_deref(), Ok(expected), "{text}");
        }
        for text in ["", "tomorrow", "2000-13-01", "-2h", "9999999d", "2000-07"] {
            assert!(named(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in ["", "yesterday", "2022-02-30T00:00:00Z", "2022-02-22", "2022-02-22T19:22:22"] {
            assert!(read(text).is_err(), "{text}");
        }
        assert!(crate::tree::from_json::<WallTime>("1700000000").is_err());
    }

    #[test]
    fn any_format_of_strftime_is_written_or_none() {
        // 1,700,000,000 s after 1970 (date -u -d @1700000000).
        let time = WallTime::from_unix_nanos(1_700_000_000_000_000_000);
        let written = time.format_utc("%a %b %e %H:%M:%S %Y ");
        assert_eq!(written.as_deref(), Some("Tue Nov 14 22:13:20 2023 "));
        assert_eq!(time.format_utc("%s|").as_deref(), Some("1700000000|"));
        assert_eq!(time.format_utc("%!"), None);
    }

    proptest! {
        #[test]
        fn a_stored_time_is_read_again_exactly(ns in 0_u128..253_402_000_000_000_000_000) {
            let time = WallTime::from_unix_nanos(ns);
            prop_assert_eq!(read(&written(time)).expect("what it wrote"), time);
            prop_assert_eq!(u128::from(time.unix_millis()), ns / 1_000_000);
        }
    }
}
