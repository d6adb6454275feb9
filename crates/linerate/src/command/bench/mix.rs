//! `--mix` of `linerate bench`: frames of several lengths in fixed shares.

use std::str::FromStr;

use linerate_core::units::FrameLen;
use linerate_proto::test_frame::Mix;

/// `64:7,594:4,1518:1`, or a genome of RFC 6985 §3: `aadbf`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MixArg(Mix);

impl MixArg {
    /// Seven of the shortest frames, four of 594 bytes, one of the longest; 64 and 1518 bytes where
    /// the headers leave room.
    pub(super) fn imix(shortest: u32, longest: u32) -> Self {
        let text = format!("{shortest}:7,594:4,{longest}:1");
        text.parse().expect("headers of no protocol take 594 bytes")
    }

    /// Frame lengths of the mix.
    pub(super) fn lengths(&self) -> impl Iterator<Item = u32> {
        self.0.lengths().iter().map(|len| len.bytes())
    }

    /// The mix as a flag has it: `64:7,594:4,1518:1`.
    pub(super) fn flag_text(&self) -> String {
        self.0.to_string()
    }
}

impl FromStr for MixArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mix = Mix::parse(text, FrameLen::from_bytes(1518).ok());
        let mix = mix.map_err(|error| error.to_string())?;
        if mix.lengths().len() < 2 {
            return Err("a mix has two lengths or more; --sizes takes one".to_owned());
        }
        Ok(Self(mix))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mix_has_shares_or_letters() {
        assert_eq!(MixArg::imix(64, 1518).flag_text(), "64:7,594:4,1518:1");
        let genome: MixArg = "ag".parse().expect("64 and 1518 by RFC 6985");
        assert_eq!(genome.flag_text(), "64:1,1518:1");
        assert_eq!(genome.lengths().collect::<Vec<_>>(), [64, 1518]);
    }

    #[test]
    fn what_is_no_mix_is_refused_in_one_line() {
        for (wrong, part) in [
            ("", "is no mix"),
            ("64:1", "two lengths"),
            ("63:1,64:1", "shorter than 64"),
            ("64:0,128:1", "is no mix"),
            ("64:1,64:2", "twice"),
            ("64:200,128:201", "at most 64"),
        ] {
            let error = wrong.parse::<MixArg>().expect_err(wrong);
            assert!(error.contains(part) && !error.contains('\n'), "{wrong}: {error}");
        }
    }
}
