//! Mixes of frame lengths ("IMIX"): named ones, the genomes of RFC 6985, and custom shares such as
//! `64:7,594:4,1518:1`.
//!
//! | letter | a | b | c | d | e | f | g | h | i | j | z |
//! |---|---|---|---|---|---|---|---|---|---|---|---|
//! | bytes | 64 | 128 | 256 | 512 | 1024 | 1280 | 1518 | 2112 | 9000 | 16000 | MTU |
//!
//! The table is RFC 6985 §3; lengths include the FCS. Left out: its custom letters (§4), for which
//! there are shares, and `j`, which is above the longest frame.

use std::fmt;

use linerate_core::units::{FrameLen, FrameLenError};
use thiserror::Error;

/// Most frames before a mix repeats.
pub const MIX_FRAMES_MAX: usize = 64;
/// Most entries of a pattern that also has another template: the capacity of the generators.
pub const PATTERN_MAX: usize = 1024;

/// "Simple IMIX": 7 short, 4 medium and 1 long frame of IPv4 without tags. Its mean is 4342 / 12
/// bytes.
const SIMPLE: &str = "64:7,594:4,1518:1";

/// A repeating sequence of frame lengths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mix {
    lengths: Vec<FrameLen>,
    pattern: Vec<u8>,
}

/// Error in the text of a mix.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MixError {
    /// The text has none of the three forms.
    #[error(
        "\"{}\" is no mix of lengths; \"simple\", a genome such as aadbf or shares such as \
         64:7,594:4,1518:1 are", .0.escape_default()
    )]
    Form(String),
    /// An invalid frame length.
    #[error(transparent)]
    Length(#[from] FrameLenError),
    /// `z`, where the interface's MTU is not known.
    #[error("z is the longest frame of the interface, which is not known here")]
    Mtu,
    /// Too many frames, or none.
    #[error("a mix of {0} frames; at most 64 can be, so take smaller shares")]
    Frames(u64),
    /// The same length twice.
    #[error("{0} bytes are in the mix twice")]
    Twice(u32),
}

impl Mix {
    /// Frames of one length.
    pub fn single(len: FrameLen) -> Self {
        Self { lengths: vec![len], pattern: vec![0] }
    }

    /// Parses a mix. `longest` is the interface's longest frame, for `z`.
    /// # Errors
    /// A text that is no mix, or has more than [`MIX_FRAMES_MAX`] frames.
    /// # Source
    /// RFC 6985 §3 for genomes, whose order is kept: `aadbf` is 64, 64, 512, 128 and 1280 bytes.
    pub fn parse(text: &str, longest: Option<FrameLen>) -> Result<Self, MixError> {
        match text {
            "simple" => Self::parse(SIMPLE, longest),
            _ if text.contains(':') => Self::custom(text),
            _ => Self::genome(text, longest),
        }
    }

    fn custom(text: &str) -> Result<Self, MixError> {
        let form = || MixError::Form(text.chars().take(80).collect());
        let mut shares = Vec::new();
        for part in text.split(',') {
            let (len, share) = part.split_once(':').ok_or_else(form)?;
            let number = |text: &str| {
                let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
                is_number.then(|| text.parse::<u32>().ok()).flatten().ok_or_else(form)
            };
            let (len, share) = (number(len)?, number(share)?);
            if share == 0 {
                return Err(form());
            }
            shares.push((FrameLen::from_bytes(len)?, share));
        }
        Self::from_shares(&shares)
    }

    /// Frames of each length by its share, in an even order: at each frame the count of every
    /// length differs by less than 1 from its share.
    /// # Errors
    /// A length twice, no frame, or more than [`MIX_FRAMES_MAX`] after division by common factors.
    pub fn from_shares(shares: &[(FrameLen, u32)]) -> Result<Self, MixError> {
        let divisor = shares.iter().fold(0, |all, (_, share)| greatest_common(all, *share)).max(1);
        let shares: Vec<_> =
            shares.iter().map(|(len, share)| (*len, i64::from(share / divisor))).collect();
        let total: i64 = shares.iter().map(|(_, share)| share).sum();
        if total == 0 || total > MIX_FRAMES_MAX as i64 {
            return Err(MixError::Frames(total.unsigned_abs()));
        }
        let lengths: Vec<FrameLen> = shares.iter().map(|(len, _)| *len).collect();
        for (index, len) in lengths.iter().enumerate() {
            if lengths[..index].contains(len) {
                return Err(MixError::Twice(len.bytes()));
            }
        }
        // Each length gains its share with every frame; the one with the most credit is sent and
        // pays the total.
        let mut credit = vec![0; shares.len()];
        let mut pattern = Vec::new();
        for _ in 0..total {
            for (credit, (_, share)) in credit.iter_mut().zip(&shares) {
                *credit += share;
            }
            let best = (0..credit.len()).rev().max_by_key(|index| credit[*index]).unwrap_or(0);
            credit[best] -= total;
            // At most 64 lengths.
            pattern.push(best as u8);
        }
        Ok(Self { lengths, pattern })
    }

    fn genome(text: &str, longest: Option<FrameLen>) -> Result<Self, MixError> {
        let form = || MixError::Form(text.chars().take(80).collect());
        if text.is_empty() || !text.bytes().all(|letter| matches!(letter, b'a'..=b'j' | b'z')) {
            return Err(form());
        }
        if text.len() > MIX_FRAMES_MAX {
            return Err(MixError::Frames(text.len() as u64));
        }
        let (mut lengths, mut pattern) = (Vec::new(), Vec::new());
        for letter in text.bytes() {
            let len = match letter {
                b'z' => longest.ok_or(MixError::Mtu)?,
                letter => FrameLen::from_bytes(GENOME_BYTES[usize::from(letter - b'a')])?,
            };
            let index = lengths.iter().position(|known| *known == len).unwrap_or_else(|| {
                lengths.push(len);
                lengths.len() - 1
            });
            // Eleven letters at most.
            pattern.push(index as u8);
        }
        Ok(Self { lengths, pattern })
    }

    /// The different lengths: one template each.
    pub fn lengths(&self) -> &[FrameLen] {
        &self.lengths
    }

    /// Index of each frame's length, repeated, for `FrameLoad::parse_mix`.
    pub fn pattern(&self) -> &[u8] {
        &self.pattern
    }

    /// Number of frames of each length in one repetition.
    pub fn shares(&self) -> impl Iterator<Item = (FrameLen, usize)> {
        self.lengths.iter().enumerate().map(|(index, len)| {
            let entries = self.pattern.iter();
            let frames = entries.filter(|entry| usize::from(**entry) == index).count();
            (*len, frames)
        })
    }

    /// Mean length in bytes, with FCS.
    pub fn mean_bytes(&self) -> f64 {
        let bytes: f64 =
            self.shares().map(|(len, frames)| f64::from(len.bytes()) * frames as f64).sum();
        bytes / self.pattern.len() as f64
    }

    /// The pattern with another template, such as a broadcast, as every `every`th frame (RFC 2544
    /// §11.1: every 100th). Its index follows those of the lengths, whose shares stay exact. `None`
    /// for `every` below 2, or when the pattern needs more than [`PATTERN_MAX`] entries to repeat.
    pub fn with_one_in(&self, every: usize) -> Option<Vec<u8>> {
        let others = every.checked_sub(1).filter(|others| (1..PATTERN_MAX).contains(others))?;
        // At most 1,023 and 64.
        let common = greatest_common(others as u32, self.pattern.len() as u32) as usize;
        let rounds = self.pattern.len() / common;
        if rounds * every > PATTERN_MAX {
            return None;
        }
        let mut own = self.pattern.iter().copied().cycle();
        let mut pattern = Vec::with_capacity(rounds * every);
        for _ in 0..rounds {
            pattern.extend(own.by_ref().take(others));
            // At most 64 lengths.
            pattern.push(self.lengths.len() as u8);
        }
        Some(pattern)
    }
}

/// Bytes of the letters a to j (RFC 6985 §3).
const GENOME_BYTES: [u32; 10] = [64, 128, 256, 512, 1024, 1280, 1518, 2112, 9000, 16_000];

fn greatest_common(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { greatest_common(b, a % b) }
}

impl fmt::Display for Mix {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (len, frames)) in self.shares().enumerate() {
            write!(out, "{}{}:{frames}", if index == 0 { "" } else { "," }, len.bytes())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_mix(text: &str) -> Mix {
        Mix::parse(text, FrameLen::from_bytes(1518).ok()).expect(text)
    }

    fn pattern_lengths(mix: &Mix) -> Vec<u32> {
        mix.pattern().iter().map(|index| mix.lengths()[usize::from(*index)].bytes()).collect()
    }

    #[test]
    fn simple_imix_has_a_mean_of_361_83_bytes() {
        let mix = parse_mix("simple");
        // (7 x 64 + 4 x 594 + 1518) / 12 = 4342 / 12.
        assert!((mix.mean_bytes() - 4342.0 / 12.0).abs() < 1e-9);
        assert_eq!(mix.to_string(), "64:7,594:4,1518:1");
        assert_eq!(mix.pattern().len(), 12);
    }

    #[test]
    fn shares_are_spread_evenly() {
        // After k frames, a length of share s has come k s / 12 times, within one.
        let mix = parse_mix("64:7,594:4,1518:1");
        for frames in 1..=12 {
            for (index, share) in [7.0, 4.0, 1.0].into_iter().enumerate() {
                let seen =
                    mix.pattern()[..frames].iter().filter(|entry| usize::from(**entry) == index);
                let due = share * frames as f64 / 12.0;
                assert!((seen.count() as f64 - due).abs() < 1.0, "{:?}", mix.pattern());
            }
        }
    }

    #[test]
    fn common_factors_go() {
        assert_eq!(parse_mix("64:700,594:400,1518:100"), parse_mix("simple"));
        assert_eq!(pattern_lengths(&parse_mix("128:5")), [128]);
    }

    #[test]
    fn a_genome_keeps_its_order() {
        assert_eq!(pattern_lengths(&parse_mix("aadbf")), [64, 64, 512, 128, 1280]);
        assert_eq!(parse_mix("aadbf").lengths().len(), 4);
        assert_eq!(
            pattern_lengths(&parse_mix("bcefghiz")),
            [128, 256, 1024, 1280, 1518, 2112, 9000, 1518]
        );
        // g and z are one length here: one template.
        assert_eq!(parse_mix("gz").lengths().len(), 1);
    }

    #[test]
    fn what_is_no_mix_says_why() {
        for (text, says) in [
            ("", "is no mix"),
            ("64:7,594", "is no mix"),
            ("64:0,128:1", "is no mix"),
            ("64:-1", "is no mix"),
            ("64:+1", "is no mix"),
            ("aak", "is no mix"),
            ("63:1", "shorter than 64"),
            ("aj", "longer than 9242"),
            ("64:60,128:5,256:1", "66 frames"),
            ("64:1,64:2", "twice"),
            ("64:4294967295,128:4294967294", "at most 64"),
        ] {
            let error = Mix::parse(text, None).expect_err(text).to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
        assert_eq!(Mix::parse("z", None), Err(MixError::Mtu));
        assert_eq!(Mix::parse(&"a".repeat(65), None), Err(MixError::Frames(65)));
    }

    #[test]
    fn another_template_comes_once_in_so_many() {
        let single = Mix::single(FrameLen::MIN);
        assert_eq!(single.with_one_in(4), Some(vec![0, 0, 0, 1]));
        assert_eq!(single.with_one_in(100).expect("fits").len(), 100);
        assert_eq!((single.with_one_in(1025), single.with_one_in(1)), (None, None));
        // 99 = 3 x 33 and 12 = 3 x 4: after 4 rounds of 100 both end together.
        let pattern = parse_mix("simple").with_one_in(100).expect("fits");
        assert_eq!(pattern.len(), 400);
        let count = |number| pattern.iter().filter(|entry| **entry == number).count();
        // 396 frames of 12 shares: 33 x 7, 33 x 4, 33 x 1.
        assert_eq!([count(0), count(1), count(2), count(3)], [231, 132, 33, 4]);
        assert_eq!((pattern[99], pattern[399]), (3, 3));
        // 64 lengths of one frame and 98 others: 32 rounds of 99 are 3,168.
        let many: Vec<_> =
            (64..128).filter_map(|len| Some((FrameLen::from_bytes(len).ok()?, 1))).collect();
        assert_eq!(Mix::from_shares(&many).expect("64").with_one_in(99), None);
    }
}
