//! What limited a result as the diagnosis of its record names it.

use linerate_core::explain::explain;
use linerate_core::record::{Cause, Confidence, Direction, Outcome, Record, Verdict};

use super::limit::{Limit, LimitedBy};
use crate::cause::{name, sign};

/// What limited the record where the diagnosis is sure of it: of both directions that which is
/// limited before that which is full.
pub(super) fn of(record: &Record) -> Option<Limit> {
    let verdicts = explain(record);
    let limited = verdicts.iter().filter(|verdict| verdict.outcome == Outcome::Limited);
    limited.chain(&verdicts).find_map(sure)
}

/// The limit of a verdict that is sure of it. A host as the limit is said by its own counters, with
/// which the headline begins.
pub(super) fn sure(verdict: &Verdict) -> Option<Limit> {
    let is_path = verdict.cause.is_some_and(|it| it != Cause::Tester);
    let is_sure = verdict.confidence >= Some(Confidence::Medium);
    (is_path && is_sure).then(|| limit(verdict))
}

/// The limit of a verdict as headlines have it.
pub(crate) fn limit(verdict: &Verdict) -> Limit {
    let Some(cause) = verdict.cause else { return Limit::new(LimitedBy::NotKnown, "") };
    let down = verdict.direction == Some(Direction::Down);
    let host = |local: bool| if local { LimitedBy::ThisHost } else { LimitedBy::OtherEnd };
    let by = match cause {
        Cause::ReceiveWindow | Cause::SendBuffer => LimitedBy::Window,
        Cause::SendingApplication => LimitedBy::Pace,
        Cause::SendingHost => host(!down),
        Cause::ReceivingHost | Cause::ReceivingApplication => host(down),
        Cause::Tester => LimitedBy::ThisHost,
        Cause::Link | Cause::LinkFallback => LimitedBy::Link,
        Cause::StartUp => LimitedBy::Time,
        _ => LimitedBy::Path,
    };
    let first = verdict.evidence.first().map_or_else(String::new, |it| format!(", {}", sign(it)));
    let what = match by {
        LimitedBy::Link => "it is full",
        _ => name(cause),
    };
    Limit::new(by, format!("{what}{first}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Headline;

    fn stored(text: &str) -> Record {
        serde_json::from_str(text).expect("a record")
    }

    /// Live results over paths whose cause is known: see testdata/explain.
    #[test]
    fn a_cause_that_no_counter_shows_is_named_by_the_diagnosis() {
        let record = stored(include_str!("../../../../testdata/explain/records/ackpath.json"));
        let line = Headline::of(&record).line();
        assert!(line.contains("limited by the path: the way back of acknowledgments"), "{line}");
        let record = stored(include_str!("../../../../testdata/explain/records/buf5.json"));
        assert_eq!(of(&record), None, "several causes agree");
    }
}
