//! A server in the background, and the file with its number.
//!
//! The process starts itself again in a process group of its own, without the terminal, and ends;
//! no fork of a program with threads.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use linerate_core::record::{Failure, Fault};
use linerate_engine::failure::words_of;

use super::said::PROCESS_FILE;

/// Tells the second process that it is the one in the background.
const MARK: &str = "LINERATE_IN_BACKGROUND";

/// Starts this command line again in the background; false in the process that is there.
pub(super) fn start_in_background() -> Result<bool, Failure> {
    if std::env::var_os(MARK).is_some() {
        return Ok(false);
    }
    let fail = |error: std::io::Error| {
        Failure::new(Fault::System, "start in the background", "iperf3 -s", words_of(&error))
    };
    let mut arguments = std::env::args_os();
    let mut command = Command::new(std::env::current_exe().map_err(fail)?);
    // A link's name is its command line.
    if let Some(name) = arguments.next() {
        command.arg0(name);
    }
    command.args(arguments).env(MARK, "1").process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().map_err(fail)?;
    Ok(true)
}

/// The file with the number of this process; it is removed at the end.
#[derive(Debug)]
pub(super) struct PidFile<'a> {
    path: &'a Path,
}

impl<'a> PidFile<'a> {
    /// Writes the number of this process, a zero byte behind it as iperf3 does.
    pub(super) fn write(path: &'a Path) -> Result<Self, Failure> {
        std::fs::write(path, format!("{}\0", std::process::id())).map_err(|error| {
            let object = path.display().to_string();
            Failure::new(Fault::System, PROCESS_FILE, object, words_of(&error))
        })?;
        Ok(Self { path })
    }
}

impl Drop for PidFile<'_> {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(self.path);
    }
}
