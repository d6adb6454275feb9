//! The README's examples are what the program prints: those that read a file or calculate are run,
//! and each line that the README shows has to stand in the output, in this order, however it is
//! wrapped. Examples that measure are left out: they show another value at each run.

use std::path::Path;
use std::process::Command;

/// Commands of the README whose output is the same everywhere.
const REPEATABLE: &[&str] = &["linerate explain ", "linerate ceiling "];

/// A command of the README and the lines that it shows below it, `...` and blank ones left out.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Example<'a> {
    command: &'a str,
    lines: Vec<&'a str>,
}

/// The examples whose output is the same everywhere.
pub(crate) fn examples(page: &str) -> Vec<Example<'_>> {
    let mut examples: Vec<Example<'_>> = Vec::new();
    let mut is_shown = false;
    for line in page.lines() {
        let is_block = line.starts_with("    ") || line.is_empty();
        if let Some(command) = line.strip_prefix("    $ ") {
            is_shown = REPEATABLE.iter().any(|start| command.starts_with(start));
            if is_shown {
                examples.push(Example { command, lines: Vec::new() });
            }
        } else if is_shown && is_block {
            let line = line.trim();
            let example = examples.last_mut().filter(|_| !matches!(line, "" | "..."));
            example.into_iter().for_each(|example| example.lines.push(line));
        } else {
            is_shown = false;
        }
    }
    examples
}

impl Example<'_> {
    /// Runs the example in `folder` and returns its lines that the output does not have.
    pub(crate) fn wrong(&self, program: &str, folder: &Path) -> Vec<String> {
        let arguments = self.command.split_whitespace().skip(1);
        let output = Command::new(program).args(arguments).current_dir(folder).output();
        let output = output.expect("the program starts");
        let printed = String::from_utf8_lossy(&output.stdout);
        self.missing(&printed)
    }

    fn missing(&self, printed: &str) -> Vec<String> {
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let printed = words(printed);
        let mut rest = printed.as_str();
        let mut missing = Vec::new();
        for line in &self.lines {
            let line = words(line);
            match rest.split_once(&line) {
                Some((_, after)) => rest = after,
                None => {
                    missing.push(format!("README.md: {} does not print {line:?}", self.command))
                }
            }
        }
        missing
    }
}

#[test]
fn a_line_that_is_not_printed_is_found() {
    let page = "Text:\n\n    $ linerate explain a.json\n    limited by  the\n      window\n\n\
                \x20   ...\nText.\n\n    $ linerate tcp B\n    9 Mbit/s\n";
    let examples = examples(page);
    let lines = vec!["limited by  the", "window"];
    assert_eq!(examples, [Example { command: "linerate explain a.json", lines }]);
    assert_eq!(examples[0].missing("limited by   the window\n").len(), 0);
    assert_eq!(examples[0].missing("the window\nlimited by\n").len(), 1);
}
