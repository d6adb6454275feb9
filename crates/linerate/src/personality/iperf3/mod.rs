//! `linerate iperf3`: iperf3's command line, with its lines, its document of results, its messages
//! and its exit codes, on this program's engine. What is left out is on the page of the protocol in
//! spec/.

mod asked;
mod client;
mod daemon;
mod flags;
mod login;
mod number;
mod paper;
mod said;
mod server;

use linerate_core::record::Failure;
use linerate_core::time::WallTime;
use linerate_report::iperf3::{Surroundings, VERSION};
use linerate_sys::host::system_info;
use linerate_sys::sched::Pinned;

use crate::exit::Outcome;
use crate::output;

use asked::{Iperf3Options, Mistake, ProgramRole};
pub(crate) use flags::described;
pub(crate) use login::GuardFlags;
use paper::Paper;

/// Runs iperf3's command line. A mistake and a failure end with 1, as they do there.
pub(super) fn run(words: &[String]) -> Outcome {
    let asked = match Iperf3Options::read(words) {
        Ok(asked) => asked,
        Err(mistake) => {
            let said = match mistake {
                Mistake::Flag(said) => said,
                Mistake::Parameter(said) => format!("parameter error - {said}"),
            };
            output::print_note(&format!("iperf3: {said}\n\n{}", flags::HINT));
            return Ok(1);
        }
    };
    for warning in &asked.warnings {
        output::print_note(&format!("warning: {warning}"));
    }
    let paper = match asked.open_output() {
        Ok(paper) => paper,
        Err(failure) => {
            output::print_note(&format!("iperf3: error - {}", said::failure_text(&failure)));
            return Ok(1);
        }
    };
    Ok(run_asked(&asked, &paper).unwrap_or_else(|failure| {
        paper.write_error(&format!("error - {}", said::failure_text(&failure)));
        1
    }))
}

fn run_asked(asked: &Iperf3Options, paper: &Paper) -> Result<u8, Failure> {
    let role = asked.role.as_ref();
    match role {
        Some(ProgramRole::Help) => {
            output::print_text(&flags::help_text());
            return Ok(0);
        }
        Some(ProgramRole::Version) => {
            output::print_text(&format!("{VERSION}\n{}\n{}\n", system_info(), FEATURES));
            return Ok(0);
        }
        _ => {}
    }
    if asked.daemon && daemon::start_in_background()? {
        return Ok(0);
    }
    let held = asked.affinity.map(Pinned::on_cpu);
    if held.as_ref().is_some_and(|held| !held.is_pinned()) {
        paper.write_error("error - unable to set CPU affinity: Invalid argument");
        return Ok(1);
    }
    let pid = asked.pidfile.as_deref().map(daemon::PidFile::write).transpose()?;
    let code = match role {
        Some(ProgramRole::Client(host)) => client::run(asked, host, paper),
        _ => server::run(asked, paper),
    };
    drop((pid, held));
    code
}

/// The line of `--version` with the features of this build.
const FEATURES: &str = "Optional features available: CPU affinity setting, TCP congestion \
                        algorithm setting, sendfile / zerocopy, socket pacing, authentication, \
                        bind to device, GSO/GRO support";

impl Iperf3Options {
    /// Output for the lines: standard output or the log file.
    fn open_output(&self) -> Result<Paper, Failure> {
        Paper::open(self.logfile.as_deref(), self.title.clone(), self.timestamps.clone())
    }
}

/// Host and time of a document, beside the test.
fn surroundings(now: WallTime) -> Surroundings {
    Surroundings { system: system_info(), time: now.http_date(), time_ms: now.unix_millis() }
}

/// The interval without rows: a day.
const NO_ROWS_NS: u64 = 86_400_000_000_000;

#[cfg(test)]
mod tests {
    #[test]
    fn the_version_on_the_page_is_that_of_the_protocol() {
        let begin = format!("iperf {} (", linerate_proto::iperf3::VERSION);
        assert!(linerate_report::iperf3::VERSION.starts_with(&begin));
    }
}
