//! The table of exit codes, which help, man pages and the manual print.

/// Exit codes: number, meaning, what to do. `Failure::exit_code` chooses among 1 to 6.
pub(crate) const CODES: [(u8, &str, &str); 9] = [
    (0, "The test is complete and has a result. A ping got at least one reply.", ""),
    (
        1,
        "The test is complete and its result is outside the limits: no reply to a ping, corrupted \
         data (--verify), traffic that does not conform, a host unfit to measure (doctor).",
        "Check the path.",
    ),
    (
        2,
        "Wrong usage or a problem of this host: a flag, a file, a name that does not resolve, a \
         missing privilege, no space (also for standard output).",
        "Fix what the message names.",
    ),
    (
        3,
        "The server could not be reached, went away, or violated the protocol or speaks another \
         version.",
        "Start `linerate serve` there, open the port, or install the same version at both ends.",
    ),
    (
        4,
        "The server refused: busy, or the test exceeds its limits.",
        "Retry (--wait 60s retries for that long), or ask for less.",
    ),
    (
        5,
        "Part of a plan was measured and part of it failed.",
        "Read the failures in the record or report; a study resumes where it stopped.",
    ),
    (6, "This host was too busy for a valid result.", "Stop other work on this host and repeat."),
    (
        7,
        "The test is complete and an assertion (--assert) is not met, or a figure that it needs is \
         missing.",
        "Read the line of the assertion: it has both values, or what is missing.",
    ),
    (
        130,
        "Interrupted by Ctrl-C or SIGTERM, or the reader of the output exited. Results so far are \
         printed and stored first. A ping then exits 0 or 1, as ping does.",
        "",
    ),
];

#[cfg(test)]
mod tests {
    use linerate_core::record::{Failure, Fault};

    use super::CODES;

    #[test]
    fn the_table_of_the_manual_is_that_of_the_program_and_has_every_code_of_a_failure() {
        let manual = include_str!("../../../docs/manual/exit-codes.md");
        for (code, meaning, advice) in CODES {
            let row = format!("| {code} | {meaning} | {advice} |").replace("  ", " ");
            assert!(manual.contains(&row), "docs/manual/exit-codes.md lacks this row:\n{row}");
        }
        let rows = manual.lines().filter(|line| {
            line.strip_prefix("| ")
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        });
        assert_eq!(rows.count(), CODES.len());
        for fault in [
            Fault::Usage,
            Fault::System,
            Fault::Unreachable,
            Fault::PeerMisbehaved,
            Fault::PeerIncompatible,
            Fault::PeerRefused,
            Fault::Instrument,
            Fault::Corrupted,
        ] {
            let code = Failure::new(fault, "", "", "").exit_code();
            assert!(CODES.iter().any(|(known, ..)| *known == code), "{fault:?} gives {code}");
        }
    }
}
