//! `--assert`: what a result has to keep to, and the exit code of one that does not.

use linerate_core::assertion::Assertion;
use linerate_core::record::Record;

/// Exit code of a result that does not keep to an assertion.
const NOT_MET: u8 = 7;

/// The flag of commands that have one result.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct AssertFlags {
    /// Exit with 7 unless this holds: 'goodput >= 0.9 * ceiling and loaded_rtt.p95 < 50 ms';
    /// metrics are those of --json, with or without their unit; repeatable
    #[arg(long = "assert", value_name = "EXPRESSION")]
    assertions: Vec<Assertion>,
}

impl AssertFlags {
    /// Says of each assertion whether it is met, and gives the exit code; a command that failed
    /// keeps its own.
    pub(crate) fn judge(&self, record: &Record, code: u8, say: fn(&str)) -> u8 {
        let mut met = true;
        for assertion in &self.assertions {
            let judged = assertion.judge(record);
            say(&linerate_report::assertion::line(assertion, &judged));
            met &= judged.met;
        }
        if code == 0 && !met { NOT_MET } else { code }
    }
}
