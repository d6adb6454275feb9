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

/// Ends a command line that clap did not turn into flags: help and version go out as asked, a
/// mistake is one line, with the nearest name where there is one.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        crate::output::text(&error.render().to_string());
        return ExitCode::SUCCESS;
    }
    let text = error.render().to_string();
    if error.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        crate::output::note(text.trim_end());
    } else {
        crate::output::error_line(&mistake(&text));
    }
    ExitCode::from(2)
}

/// Clap's paragraphs as one line: what is wrong, its tips, where to read on.
fn mistake(text: &str) -> String {
    let mut lines = text.lines().map(str::trim);
    let mut what: Vec<&str> = lines.by_ref().take_while(|line| !line.is_empty()).collect();
    if let Some(first) = what.first_mut() {
        *first = first.trim_start_matches("error: ");
    }
    let mut said = what.join(" ");
    let mut command = "linerate".to_owned();
    for line in lines {
        if let Some(tip) = line.strip_prefix("tip: ") {
            said.push_str(&format!("; {tip}"));
        } else if let Some(usage) = line.strip_prefix("Usage: ") {
            let words = usage.split(' ').take_while(|word| !word.starts_with(['[', '<', '-']));
            command = words.collect::<Vec<_>>().join(" ");
        }
    }
    format!("{said}; see '{command} --help'")
}

#[cfg(test)]
mod tests {
    use super::mistake;

    #[test]
    fn a_mistake_in_several_paragraphs_becomes_one_line() {
        // As clap 4.6 prints it.
        let text = "error: unexpected argument '--jsn' found\n\n  tip: a similar argument exists: \
                    '--json'\n\nUsage: linerate tcp --json <HOST>\n\nFor more information, try \
                    '--help'.\n";
        assert_eq!(
            mistake(text),
            "unexpected argument '--jsn' found; a similar argument exists: '--json'; see \
             'linerate tcp --help'"
        );
    }

    #[test]
    fn missing_arguments_are_listed_on_the_same_line() {
        let text = "error: the following required arguments were not provided:\n  <HOST>\n\n\
                    Usage: linerate tcp <HOST>\n\nFor more information, try '--help'.\n";
        assert_eq!(
            mistake(text),
            "the following required arguments were not provided: <HOST>; see 'linerate tcp --help'"
        );
    }
}
