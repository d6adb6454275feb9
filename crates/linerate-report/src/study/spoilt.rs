//! Runs that this host limited: what they rest on is marked, and they are counted with their
//! reasons before any figure is told.
//!
//! Left out: whether a limited run is wrong. It may say what the path does; it does not show it.

use std::collections::{BTreeMap, BTreeSet};

use linerate_core::explain::decide;
use linerate_core::record::{Caveat, CaveatCode, Record};

use crate::csv::variant_name;
use crate::words;

/// Mark behind a figure with a run that this host limited.
const MARK: &str = "*";

/// Printed in place of a ratio whose base this host limited, such as 783 % of localhost's
/// throughput: it would tell the load of the host and not the path.
pub(crate) const NOT_FIT: &str = "not fit to report";

/// True if this host, not the path, may have determined the figures of a run.
pub(crate) fn is_spoilt(record: &Record) -> bool {
    !limits(record).is_empty()
}

/// The caveats about this host that make a run's figures doubtful. A busy CPU does not count where
/// the link was full all the same.
fn limits(record: &Record) -> Vec<&Caveat> {
    let (mut own, _) = words::caveats(record);
    if !own.is_empty() {
        let decision = decide(record);
        own.retain(|caveat| decision.is_doubted_for(record, caveat.code));
    }
    own
}

/// A figure, with the mark if `spoilt`.
pub(crate) fn marked(figure: String, spoilt: bool) -> String {
    if spoilt { figure + MARK } else { figure }
}

/// A ratio, with the mark if this host limited the run it is of; [`NOT_FIT`] if this host limited
/// the run it is relative to.
pub(crate) fn ratio_marked(figure: String, is_spoilt: bool, is_base_spoilt: bool) -> String {
    if is_base_spoilt { NOT_FIT.to_owned() } else { marked(figure, is_spoilt) }
}

/// A sentence for a plot's caption that explains the marks; empty without a mark.
pub(crate) fn limited_caption<'a>(figures: impl IntoIterator<Item = &'a String>) -> &'static str {
    let any = figures.into_iter().any(|figure| figure.ends_with(MARK));
    if any { " *: this host limited a run behind the figure." } else { "" }
}

/// Number of runs, number of those that this host limited, and the number for each reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LimitedRuns {
    all: usize,
    spoilt: usize,
    reasons: BTreeMap<String, usize>,
}

impl LimitedRuns {
    /// Counts each run once, by the record's identifier.
    pub(crate) fn from_runs<'a>(runs: impl IntoIterator<Item = &'a Record>) -> Self {
        let mut out = Self::default();
        let mut seen = BTreeSet::new();
        for run in runs {
            if !seen.insert(run.id) {
                continue;
            }
            let reasons: BTreeSet<String> =
                limits(run).iter().map(|caveat| reason(caveat.code)).collect();
            out.all += 1;
            out.spoilt += usize::from(!reasons.is_empty());
            reasons.into_iter().for_each(|why| *out.reasons.entry(why).or_default() += 1);
        }
        out
    }

    /// The limited runs with their reasons: `158 of 208 runs (a CPU was busy in 120, waited for a
    /// CPU in 80)`; `None` without one.
    pub(crate) fn counted(&self) -> Option<String> {
        let mut reasons: Vec<(&String, &usize)> = self.reasons.iter().collect();
        reasons.sort_by(|one, other| other.1.cmp(one.1));
        let said = match reasons.as_slice() {
            [(why, count)] if **count == self.spoilt => (*why).clone(),
            some => {
                let each: Vec<String> =
                    some.iter().map(|(why, count)| format!("{why} in {count}")).collect();
                each.join(", ")
            }
        };
        let runs = match (self.spoilt, self.all) {
            (0, _) => return None,
            (1, 1) => "the only run".to_owned(),
            (some, all) if some == all => format!("all {all} runs"),
            (some, all) => format!("{some} of {all} runs"),
        };
        Some(format!("{runs} ({said})"))
    }

    /// The sentence above the first figure that explains the marks; `None` if this host limited no
    /// run.
    pub(crate) fn before_figures(&self) -> Option<String> {
        let rest = match self.all - self.spoilt {
            0 => String::new(),
            1 => "; all others on the only one that it did not limit".to_owned(),
            some => format!("; all others on the {some} that it did not limit"),
        };
        Some(format!("{}: figures marked {MARK} rest on them{rest}", self.counted()?))
    }
}

/// The reason for which this host limited runs, in words that follow `in 12 runs`.
fn reason(code: CaveatCode) -> String {
    let words = match code {
        CaveatCode::CpuBound => "a CPU was busy all the time",
        CaveatCode::RunQueueWait => "waited for a CPU",
        CaveatCode::ReceiveDrops => "the receiving socket dropped",
        CaveatCode::OwnInterfaceDrops => "an own interface dropped",
        CaveatCode::LateSends => "sent late",
        CaveatCode::CoarseClock => "the clock is coarse",
        CaveatCode::PaceNotKept => "the pace was not kept",
        CaveatCode::EmulatorLate => "the path emulator was late",
        CaveatCode::TesterLimited => "the tester itself could send no more",
        other => return variant_name(other),
    };
    words.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_counted_with_their_reasons_the_most_frequent_first() {
        let reasons = BTreeMap::from([("a".to_owned(), 2), ("b".to_owned(), 3)]);
        let some = LimitedRuns { all: 9, spoilt: 4, reasons };
        assert_eq!(some.counted().as_deref(), Some("4 of 9 runs (b in 3, a in 2)"));
        let said = "4 of 9 runs (b in 3, a in 2): figures marked * rest on them; all others on \
                    the 5 that it did not limit";
        assert_eq!(some.before_figures().as_deref(), Some(said));
        let one = LimitedRuns { all: 2, spoilt: 2, reasons: BTreeMap::from([("a".to_owned(), 2)]) };
        assert_eq!(one.counted().as_deref(), Some("all 2 runs (a)"));
        assert_eq!(LimitedRuns::default().before_figures(), None);
    }
}
