//! One cause that agrees with the evidence, before it is chosen.

use crate::record::{Cause, Confidence, Note, RemedyLine, Sign};

/// A cause and what speaks for it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Candidate {
    /// Cause that it names.
    pub cause: Cause,
    /// The rate that it alone would allow, where it has one.
    pub bps: Option<f64>,
    /// How far it is proved.
    pub confidence: Confidence,
    /// Figures that speak for the cause.
    pub signs: Vec<Sign>,
    /// Commands and advice against the cause.
    pub remedy: Vec<RemedyLine>,
    /// Remarks for the reader beside the cause.
    pub notes: Vec<Note>,
}

impl Candidate {
    /// A cause with its signs.
    pub(super) fn new(cause: Cause, confidence: Confidence, signs: Vec<Sign>) -> Self {
        Self { cause, bps: None, confidence, signs, remedy: Vec::new(), notes: Vec::new() }
    }

    /// The same with the rate that it allows.
    pub(super) fn allowing(self, bps: f64) -> Self {
        Self { bps: Some(bps), ..self }
    }

    /// The same with what would mend it.
    pub(super) fn mended_by(self, remedy: Vec<RemedyLine>) -> Self {
        Self { remedy, ..self }
    }
}

/// A share of another figure; absent where one is.
pub(super) fn share_of(part: Option<f64>, whole: Option<f64>) -> Option<f64> {
    let whole = whole.filter(|whole| *whole > 0.0)?;
    Some(part? / whole)
}
