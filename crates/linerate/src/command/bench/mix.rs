//! `--mix` of `linerate bench`: frames of several lengths in fixed shares.

use std::fmt::Write as _;
use std::str::FromStr;

use linerate_core::units::FrameLen;

/// Most frames of a round: each has a place in the generator's list.
const ROUND_MAX: u32 = 256;

/// Most different lengths: each is a template of its own.
const LENGTHS_MAX: usize = 16;

/// The simple mix: seven short, four middle, one long (RFC 6985 §2.2 names its origin).
const IMIX: &str = "64:7,594:4,1518:1";

/// Lengths with FCS and how many frames of a round have each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mix {
    parts: Vec<(FrameLen, u32)>,
}

impl Mix {
    /// 64, 594 and 1518 bytes as 7 : 4 : 1.
    pub(super) fn imix() -> Self {
        IMIX.parse().expect("the table above is sound")
    }

    /// Mean length, rounded to the nearest byte.
    pub(super) fn mean_bytes(&self) -> u32 {
        let frames: u32 = self.parts.iter().map(|(_, share)| share).sum();
        let bytes: u64 =
            self.parts.iter().map(|(len, share)| u64::from(len.bytes()) * u64::from(*share)).sum();
        let frames = u64::from(frames);
        u32::try_from((bytes + frames / 2) / frames).unwrap_or(u32::MAX)
    }

    /// Its lengths.
    pub(super) fn lengths(&self) -> impl Iterator<Item = u32> {
        self.parts.iter().map(|(len, _)| len.bytes())
    }

    /// `64:7,594:4,1518:1`.
    pub(super) fn text(&self) -> String {
        let mut out = String::new();
        for (len, share) in &self.parts {
            let comma = if out.is_empty() { "" } else { "," };
            let _ = write!(out, "{comma}{}:{share}", len.bytes());
        }
        out
    }
}

impl FromStr for Mix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "imix" {
            return Ok(Self::imix());
        }
        let mut parts: Vec<(FrameLen, u32)> = Vec::new();
        for part in text.split(',') {
            let (len, share) = part.split_once(':').unwrap_or((part, "1"));
            let len: FrameLen = len.parse().map_err(|error| format!("{error}"))?;
            let share = share.parse().ok().filter(|share| (1..=ROUND_MAX).contains(share));
            let share = share.ok_or_else(|| format!("'{part}': a share is 1 to {ROUND_MAX}"))?;
            if parts.iter().any(|(other, _)| *other == len) {
                return Err(format!("{} is there twice", len.bytes()));
            }
            parts.push((len, share));
        }
        let frames: u32 = parts.iter().map(|(_, share)| share).sum();
        if parts.len() < 2 {
            return Err("a mix has two lengths or more; --sizes takes one".to_owned());
        }
        if parts.len() > LENGTHS_MAX || frames > ROUND_MAX {
            return Err(format!("at most {LENGTHS_MAX} lengths and {ROUND_MAX} frames a round"));
        }
        Ok(Self { parts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_of_a_mix_is_weighted_by_its_shares() {
        // (7 x 64 + 4 x 594 + 1518) / 12 = 4342 / 12 = 361.8.
        assert_eq!(Mix::imix().mean_bytes(), 362);
        assert_eq!(Mix::imix().text(), "64:7,594:4,1518:1");
        let even: Mix = "64,1518".parse().expect("one of each");
        assert_eq!((even.mean_bytes(), even.text()), (791, "64:1,1518:1".to_owned()));
        assert_eq!("imix".parse(), Ok(Mix::imix()));
    }

    #[test]
    fn what_is_no_mix_is_refused_in_one_line() {
        for (wrong, part) in [
            ("", "frame length"),
            ("64", "two lengths"),
            ("63:1,64:1", "shorter than 64"),
            ("64:0,128:1", "a share is 1"),
            ("64:x,128:1", "a share is 1"),
            ("64:1,64:2", "there twice"),
            ("64:200,128:200", "frames a round"),
        ] {
            let error = wrong.parse::<Mix>().expect_err(wrong);
            assert!(error.contains(part) && !error.contains('\n'), "{wrong}: {error}");
        }
    }
}
