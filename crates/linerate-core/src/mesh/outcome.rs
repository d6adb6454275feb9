//! How a run ended, in one word of a few: reasons are sentences, and a count needs a bound.

/// Every word.
pub const OUTCOMES: [&str; 12] = [
    "ok",
    "failed",
    "late",
    "not_running",
    "busy",
    "clock",
    "killed",
    "spool_full",
    "disk_full",
    "booking",
    "double",
    "set_back",
];

/// Begins of reasons as agents give them, with the word of each.
const REASONS: [(&str, &str); 10] = [
    ("the schedule did not run then", "not_running"),
    ("a run of ", "busy"),
    ("the survey of ", "busy"),
    ("the clock was ", "clock"),
    (SPOOL_FULL, "spool_full"),
    (DISK_FULL, "disk_full"),
    ("the booking was ", "booking"),
    (DOUBLE, "double"),
    (SET_BACK, "set_back"),
    ("it was not over when its slot was", "late"),
];

/// The reason of a run whose result was dropped from a full spool.
pub const SPOOL_FULL: &str = "the spool was full";
/// The reason of a run that could not be written down.
pub const DISK_FULL: &str = "the disk was full";

/// The reason of a run that another program with the agent's secret was to make.
pub const DOUBLE: &str = "another program was this agent";
/// The reason of a run whose result was dropped here, and which the hub's store does not know any
/// more.
pub const SET_BACK: &str = "the hub's store was set back";

/// The word of a run's end.
pub fn outcome(state: &str, reason: Option<&str>) -> &'static str {
    if state == "ok" {
        return "ok";
    }
    let known = |text: &str| REASONS.iter().find(|(begin, _)| text.starts_with(begin));
    match (reason.and_then(known), state) {
        (Some((_, word)), _) => word,
        (None, "lost") => "killed",
        (None, _) => "failed",
    }
}

#[cfg(test)]
mod tests {
    use super::super::booking::UNHEARD;
    use super::*;

    #[test]
    fn each_reason_of_an_agent_has_its_word_and_any_other_is_a_failure() {
        for (state, reason, word) in [
            ("ok", None, "ok"),
            ("missed", Some("the schedule did not run then"), "not_running"),
            ("missed", Some("a run of rate/b went on"), "busy"),
            ("missed", Some("the clock was +3.1 s from the hub's"), "clock"),
            ("lost", Some("the schedule was killed during it"), "killed"),
            ("lost", Some("the spool was full: its result was dropped"), "spool_full"),
            ("lost", Some("the disk was full"), "disk_full"),
            ("missed", Some("the booking was refused: its hour is spent"), "booking"),
            ("missed", Some(UNHEARD), "booking"),
            ("missed", Some(DOUBLE), "double"),
            ("lost", Some("the hub's store was set back: its result was dropped"), "set_back"),
            ("failed", Some("it was not over when its slot was"), "late"),
            ("failed", Some("connect 192.0.2.1: refused"), "failed"),
            ("failed", None, "failed"),
        ] {
            assert_eq!(outcome(state, reason), word, "{state}: {reason:?}");
            assert!(OUTCOMES.contains(&word));
        }
    }
}
