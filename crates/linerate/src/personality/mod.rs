//! The command lines of other programs: `linerate ttcp ...`, or a link to this program that has
//! the name `ttcp`. Flags and output have the shape of the original; its odd units stay there.
//!
//! What this leaves out of each is on the page of its protocol in spec/.

mod getopt;
mod iperf2;
pub(crate) mod iperf3;
mod listening;
mod nuttcp;
mod ttcp;

use std::ffi::OsString;
use std::path::Path;

use linerate_core::record::{FlowEnd, IpFamily, ServerPlan, Via};

use crate::exit::Outcome;

/// The server that a client's command line names, where it names one.
fn server_plan(via: Via, host: Option<&str>, port: u16, family: Option<IpFamily>) -> ServerPlan {
    ServerPlan { family, ..ServerPlan::new(Some(via), host.unwrap_or_default(), port) }
}

/// The words of another program's command line.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct ProgramArguments {
    /// Options and arguments of that program
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
    words: Vec<OsString>,
}

/// A program whose command line is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Personality {
    /// The command line of ttcp.
    Ttcp,
    /// The command line of iperf 2.
    Iperf,
    /// The command line of nuttcp.
    Nuttcp,
    /// The command line of iperf 3.
    Iperf3,
}

impl Personality {
    const ALL: [Self; 4] = [Self::Ttcp, Self::Iperf, Self::Nuttcp, Self::Iperf3];

    const fn name(self) -> &'static str {
        match self {
            Self::Ttcp => "ttcp",
            Self::Iperf => "iperf",
            Self::Nuttcp => "nuttcp",
            Self::Iperf3 => "iperf3",
        }
    }

    /// Runs the program with its words.
    pub(crate) fn run(self, words: ProgramArguments) -> Outcome {
        let words = words.words.into_iter().map(|word| word.to_string_lossy().into_owned());
        let words: Vec<String> = words.collect();
        match self {
            Self::Ttcp => ttcp::run(&words),
            Self::Iperf => iperf2::run(&words),
            Self::Nuttcp => nuttcp::run(&words),
            Self::Iperf3 => iperf3::run(&words),
        }
    }
}

/// Bytes of streams and the seconds from the first's begin to the last's end: over the longest span
/// alone, streams that begin one after the other would have more than the path carried.
fn together<'a>(ends: impl Iterator<Item = &'a FlowEnd> + Clone) -> (u64, f64) {
    let begin_ns = ends.clone().map(|end| end.span_start_ns).min().unwrap_or(0);
    let end_ns = ends.clone().map(|end| end.span_start_ns + end.span_ns).max().unwrap_or(0);
    let bytes = ends.map(|end| end.bytes_measured).sum();
    (bytes, end_ns.saturating_sub(begin_ns) as f64 / 1e9)
}

/// The command line with the name of a link put in as its command.
pub(crate) fn arguments(mut arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let Some(called) = arguments.next() else { return Vec::new() };
    let name = Path::new(&called).file_name().unwrap_or_default().to_owned();
    let mut names = Personality::ALL.into_iter().map(Personality::name);
    let command = names.find(|known| *known == name).map(OsString::from);
    [called].into_iter().chain(command).chain(arguments).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_together_have_the_time_from_the_first_to_the_last() {
        // Two streams of 1 s at 60 MB/s each, the second 0.5 s later: 120 MB in 1.5 s, and what
        // came after the measured second counts nowhere.
        let end = |span_start_ns| FlowEnd {
            bytes: 70_000_000,
            bytes_measured: 60_000_000,
            span_start_ns,
            span_ns: 1_000_000_000,
            ..FlowEnd::default()
        };
        let ends = [end(200_000_000), end(700_000_000)];
        assert_eq!(together(ends.iter()), (120_000_000, 1.5));
        assert_eq!(together([].iter()), (0, 0.0));
    }

    fn check_arguments(given: &[&str], expected: &[&str]) {
        let all = arguments(given.iter().map(OsString::from));
        assert_eq!(all, expected);
    }

    #[test]
    fn the_name_of_a_link_is_the_command() {
        check_arguments(&["/usr/bin/ttcp", "-t"], &["/usr/bin/ttcp", "ttcp", "-t"]);
        check_arguments(&["iperf"], &["iperf", "iperf"]);
        check_arguments(&["/usr/bin/iperf3", "-s"], &["/usr/bin/iperf3", "iperf3", "-s"]);
        check_arguments(&["./linerate", "ttcp"], &["./linerate", "ttcp"]);
        check_arguments(&["ttcp-old", "x"], &["ttcp-old", "x"]);
    }
}
