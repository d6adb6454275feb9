//! A verdict in one line: the cause with how far it is proved, the figure that shows it, the share
//! of what the path carries.
//!
//! Left out: headlines, which join it with rate and trust.

use linerate_core::record::{Confidence, LimitVerdict, Outcome, SHARE_MAX};

use super::cause::{self, name};
use super::sign::figure_with_threshold;
use crate::number;

/// The cause, with how far it is proved.
pub fn cause_with_proof(verdict: &LimitVerdict) -> String {
    let confidence = verdict.confidence.map_or_else(String::new, |confidence| match confidence {
        Confidence::High => " (confidence high)".to_owned(),
        Confidence::Medium => " (confidence medium)".to_owned(),
        Confidence::Low => " (confidence low)".to_owned(),
    });
    match (verdict.outcome, verdict.cause) {
        (Outcome::NoVerdict, _) => "no verdict: the tester spoilt the measurement".to_owned(),
        (Outcome::AtCeiling, Some(cause)) => {
            format!("{}: the path is full{confidence}", name(cause))
        }
        (_, Some(cause)) => format!("{}{confidence}", name(cause)),
        (_, None) if verdict.between.is_empty() => {
            "undetermined: nothing that was seen explains the rate".to_owned()
        }
        (_, None) => format!("undetermined between {}", cause::listed(&verdict.between)),
    }
}

/// The figures that a verdict rests on, in words.
pub fn evidence(verdict: &LimitVerdict) -> Vec<String> {
    verdict.evidence.iter().map(figure_with_threshold).collect()
}

/// The figure that a verdict rests on first.
pub(crate) fn first_sign(verdict: &LimitVerdict) -> Option<String> {
    verdict.evidence.first().map(figure_with_threshold)
}

/// The share of what the path carries, and the same in words.
pub(crate) fn share_of_ceiling(verdict: &LimitVerdict) -> (Option<f64>, String) {
    let bound = verdict.ceiling_bps.filter(|bps| *bps > 0.0);
    let share = bound.zip(verdict.measured_bps).map(|(bound, bps)| bps / bound);
    let ceiling = share.zip(bound).map_or_else(String::new, |(share, bps)| {
        let bound = number::rate_with_unit(bps);
        match number::whole_percent(share) {
            // A rate above its bound is within the error of both.
            _ if (1.0..=SHARE_MAX).contains(&share) => {
                format!("all of the {bound} that the path carries")
            }
            share => format!("{share} of the {bound} that the path carries"),
        }
    });
    (share, ceiling)
}
