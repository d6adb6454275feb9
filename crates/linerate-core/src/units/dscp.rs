//! Code points of differentiated services as text: numbers and the names of their standards.

/// Reads a code point: 0 to 63, or a name in either case: DF (best effort), LE, CS0 to CS7, AF11
/// to AF43, EF, VA.
///
/// ```
/// # use linerate_core::units::parse_dscp;
/// assert_eq!(parse_dscp("EF"), Ok(46));
/// assert_eq!(parse_dscp("af41"), Ok(34));
/// ```
/// # Errors
/// One line with what is accepted.
/// # Source
/// RFC 2474 §4.2.2 (CS), 2597 §6 (AF), 3246 §2.7 (EF), 5865 §2 (VA), 8622 §2 (LE); their use:
/// RFC 4594, 8325.
pub fn parse_dscp(text: &str) -> Result<u8, String> {
    let name = text.to_ascii_lowercase();
    let class = |prefix: &str| match name.strip_prefix(prefix)?.as_bytes() {
        digits @ [b'0'..=b'9'] | digits @ [b'0'..=b'9', b'0'..=b'9'] => {
            Some(digits.iter().fold(0, |number, digit| number * 10 + (digit - b'0')))
        }
        _ => None,
    };
    let point = match (name.as_str(), class("cs"), class("af")) {
        ("df" | "be", ..) => Some(0),
        ("le", ..) => Some(1),
        ("va" | "voice-admit", ..) => Some(44),
        ("ef", ..) => Some(46),
        (_, Some(class @ 0..=7), _) => Some(class * 8),
        (_, _, Some(af @ 11..=43)) if (1..=3).contains(&(af % 10)) => {
            Some(af / 10 * 8 + af % 10 * 2)
        }
        _ => text.parse().ok().filter(|point| *point < 64),
    };
    point.ok_or_else(|| "it is 0 to 63, or one of EF, VA, LE, DF, CS0-CS7, AF11-AF43".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_code_points_of_their_standards() {
        // RFC 2474 §4.2.2.2: CS7 is 111000; RFC 2597 §6: AF11 001010, AF43 100110; RFC 3246 §2.7:
        // EF 101110; RFC 5865 §2: VOICE-ADMIT 101100; RFC 8622 §2: LE 000001.
        for (text, point) in [
            ("CS0", 0),
            ("cs7", 0b11_1000),
            ("AF11", 0b00_1010),
            ("af43", 0b10_0110),
            ("EF", 0b10_1110),
            ("VA", 0b10_1100),
            ("le", 0b00_0001),
            ("DF", 0),
            ("46", 46),
        ] {
            assert_eq!(parse_dscp(text), Ok(point), "{text}");
        }
        for wrong in ["64", "cs8", "af14", "af44", "af1", "cs", "x", "", "-1", "cs+1"] {
            assert!(parse_dscp(wrong).is_err(), "{wrong}");
        }
    }
}
