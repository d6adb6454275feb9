//! The reasons not to trust a result, in words.

use linerate_core::comparison::ROUNDS_MIN;
use linerate_core::explain::{Decision, Doubt, Ground};
use linerate_core::record::{Caveat, CaveatCode, Record};

use super::note;
use crate::{number, words};

/// The reason in words; empty where the limit says the same in the same line.
pub(crate) fn doubt_reason(decision: &Decision, record: Option<&Record>) -> String {
    let Some(doubt) = &decision.doubt else { return String::new() };
    match doubt {
        Doubt::NothingMeasured => "nothing was measured".to_owned(),
        Doubt::NoAnswer => "no answer came".to_owned(),
        Doubt::Interrupted => "interrupted".to_owned(),
        Doubt::Failed(failure) => failure.to_string(),
        Doubt::EndedEarly(failure) => format!("ended early: {}", failure.reason),
        Doubt::WrongBytes(wrong) => {
            format!("{} arrived wrong", words::counted(*wrong, "byte"))
        }
        Doubt::TesterIsLimit => String::new(),
        Doubt::Caveat(caveat) if is_said(decision, caveat) => String::new(),
        Doubt::Caveat(caveat) if caveat.code == CaveatCode::EmulatorLate => emulator(record),
        Doubt::Caveat(caveat) => caveat.detail.clone(),
        Doubt::Spoilt(why) => why.as_ref().map_or_else(String::new, note::note_sentence),
        Doubt::FewRounds(rounds) => {
            let rounds = words::counted(*rounds as u64, "round");
            format!("{rounds} of the {ROUNDS_MIN} that an interval takes")
        }
        Doubt::DiffersFromItself(name) => format!("{name} differs from itself"),
        Doubt::NotInTurn => "not measured in turn".to_owned(),
        Doubt::BusyDuring { count, all, caveat } => {
            format!("in {count} of {all} measurements: {}", caveat.detail)
        }
        Doubt::WouldMiss { rounds, share } => {
            let rounds = words::counted(*rounds as u64, "round");
            format!("{rounds} would have missed {}", number::percent(*share))
        }
    }
}

/// A path emulator that did not keep to its plan, in one clause; `-v` shows the caveats.
fn emulator(record: Option<&Record>) -> String {
    let late = record.into_iter().flat_map(|record| &record.paths).filter(|path| path.late);
    let stood = late.map(|path| path.stops.share).reduce(f64::max);
    match stood.filter(|share| *share >= STALLS_FROM) {
        Some(share) => format!("the path emulator stalled {} of the time (-v)", percent(share)),
        None => "the path emulator did not keep to its plan (-v)".to_owned(),
    }
}

/// A share of the time that is worth a figure.
const STALLS_FROM: f64 = 0.001;

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// True of a limit that the caveat's own figure shows.
fn is_said(decision: &Decision, caveat: &Caveat) -> bool {
    let limits = [Some(&decision.limitation), decision.other.as_ref()];
    limits.into_iter().flatten().any(|limit| match (&limit.ground, caveat.code) {
        (Ground::Caveat(said), _) => said == caveat,
        (
            Ground::Computed(..) | Ground::WaitedForCore(..),
            CaveatCode::CpuBound | CaveatCode::RunQueueWait,
        )
        | (Ground::LostAtSocket(..), CaveatCode::ReceiveDrops)
        | (Ground::LostAtInterface(..), CaveatCode::OwnInterfaceDrops)
        | (Ground::StillRising, CaveatCode::SearchUnfinished) => true,
        _ => false,
    })
}
