//! Where the lines of a run go: standard output or the file of `--logfile`, each with the title.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use linerate_core::record::{Failure, Fault};
use linerate_engine::failure::words_of;

use crate::output;

/// Takes the lines of a run.
#[derive(Debug)]
pub(super) struct Paper {
    file: Option<Mutex<File>>,
    title: Option<String>,
}

impl Paper {
    /// Standard output, or the end of a file.
    pub(super) fn open(path: Option<&Path>, title: Option<String>) -> Result<Self, Failure> {
        let open = |path: &Path| File::options().create(true).append(true).open(path);
        let file = path.map(|path| {
            open(path).map(Mutex::new).map_err(|error| {
                let object = path.display().to_string();
                Failure::new(Fault::System, "open log file", object, words_of(&error))
            })
        });
        Ok(Self { file: file.transpose()?, title })
    }

    /// Standard output without a title.
    pub(super) const fn standard() -> Self {
        Self { file: None, title: None }
    }

    /// Takes lines, each with its end.
    pub(super) fn lines(&self, lines: &str) {
        let Some(title) = &self.title else { return self.text(lines) };
        let with_title = |line: &str| format!("{title}:  {line}\n");
        self.text(&lines.lines().map(with_title).collect::<String>());
    }

    /// Takes a text as it is.
    pub(super) fn text(&self, text: &str) {
        let Some(file) = &self.file else { return output::text(text) };
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        // A full disk ends the log, not the measurement; the record is in the store.
        let _ = file.write_all(text.as_bytes());
    }

    /// The line of a failure: in the log where there is one, else on standard error.
    pub(super) fn error(&self, line: &str) {
        match &self.file {
            Some(_) => self.text(&format!("iperf3: {line}\n")),
            None => output::note(&format!("iperf3: {line}")),
        }
    }
}
