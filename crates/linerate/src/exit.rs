//! From the end of a command to the exit code of the process. The table is in the manual.

use std::process::ExitCode;

use linerate_core::record::Failure;

/// How a command ended: a code of the table, or a failure to print.
pub(crate) type Outcome = Result<u8, anyhow::Error>;

/// Prints the failure, if any, as one line and returns its exit code.
pub(crate) fn code(outcome: Outcome) -> ExitCode {
    match outcome {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            crate::output::error_line(&format!("{error:#}"));
            let code = error.downcast_ref::<Failure>().map_or(2, Failure::exit_code);
            ExitCode::from(code)
        }
    }
}
