//! Where the lines of a run go: standard output or the file of `--logfile`, each with the title.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use linerate_core::record::{Failure, Fault};
use linerate_engine::failure::words_of;
use linerate_sys::clock::wall_time;

use super::said::LOG_FILE;
use crate::output;

/// Takes the lines of a run.
#[derive(Debug)]
pub(super) struct Paper {
    file: Option<Mutex<File>>,
    title: Option<String>,
    /// Format of the time before each line.
    stamps: Option<String>,
}

impl Paper {
    /// Standard output, or the end of a file.
    pub(super) fn open(
        path: Option<&Path>,
        title: Option<String>,
        stamps: Option<String>,
    ) -> Result<Self, Failure> {
        if let Some(format) =
            stamps.as_ref().filter(|format| wall_time().format_utc(format).is_none())
        {
            let reason = "it is not a format of strftime";
            return Err(Failure::new(Fault::Usage, "write the time as", format, reason));
        }
        let open = |path: &Path| File::options().create(true).append(true).open(path);
        let file = path.map(|path| {
            open(path).map(Mutex::new).map_err(|error| {
                let object = path.display().to_string();
                Failure::new(Fault::System, LOG_FILE, object, words_of(&error))
            })
        });
        Ok(Self { file: file.transpose()?, title, stamps })
    }

    /// Standard output without a title.
    pub(super) const fn standard() -> Self {
        Self { file: None, title: None, stamps: None }
    }

    /// Takes lines, each with its end.
    pub(super) fn write_lines(&self, lines: &str) {
        if self.title.is_none() && self.stamps.is_none() {
            return self.write_text(lines);
        }
        let time = self
            .stamps
            .as_ref()
            .and_then(|format| wall_time().format_utc(format))
            .unwrap_or_default();
        let title = self.title.as_ref().map(|title| format!("{title}:  ")).unwrap_or_default();
        let with_both = |line: &str| format!("{time}{title}{line}\n");
        self.write_text(&lines.lines().map(with_both).collect::<String>());
    }

    /// Takes a text as it is.
    pub(super) fn write_text(&self, text: &str) {
        let Some(file) = &self.file else { return output::print_text(text) };
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        // A full disk ends the log, not the measurement; the record is in the store.
        let _ = file.write_all(text.as_bytes());
    }

    /// The line of a failure: in the log where there is one, else on standard error.
    pub(super) fn write_error(&self, line: &str) {
        match &self.file {
            Some(_) => self.write_text(&format!("iperf3: {line}\n")),
            None => output::print_note(&format!("iperf3: {line}")),
        }
    }
}
