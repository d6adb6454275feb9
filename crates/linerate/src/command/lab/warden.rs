//! The warden of a laboratory: a second process that ends what is left inside when the first is
//! gone, even killed.
//!
//! It is this program again with a pipe from the laboratory's process as standard input. The pipe
//! is closed when that process ends in whatever way. It holds no namespace itself.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use linerate_core::record::{Failure, Fault};
use linerate_engine::lab::{Lab, end_processes_inside};

use crate::exit::Outcome;

/// Flags of the hidden `linerate lab warden`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Inode numbers of the network namespaces
    namespaces: Vec<u64>,
}

/// Waits until standard input is closed, then ends the processes inside.
pub(super) fn wait_and_sweep(args: &Args) -> Outcome {
    let mut input = std::io::stdin().lock();
    // Nobody writes: every way out of the loop means that the laboratory is gone.
    while matches!(input.read(&mut [0]), Ok(count) if count > 0) {}
    end_processes_inside(&args.namespaces);
    Ok(0)
}

/// The warden's process, at its end in the laboratory's process.
pub(super) struct Warden {
    process: Child,
}

impl Warden {
    /// Starts the warden of a laboratory.
    pub(super) fn start(lab: &Lab) -> Result<Self, Failure> {
        let ids = lab.namespace_ids()?;
        let mut command = Command::new("/proc/self/exe");
        command.args(["lab", "warden"]).args(ids.iter().map(u64::to_string));
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // In a process group of its own, the terminal's Ctrl-C does not reach it.
        command.process_group(0);
        let process = command
            .spawn()
            .map_err(|error| Failure::new(Fault::System, "start warden of", lab.name(), error))?;
        Ok(Self { process })
    }

    /// Lets it do its work now, and waits until it has.
    pub(super) fn dismiss(mut self) {
        drop(self.process.stdin.take());
        // It always ends by itself, and its status says nothing.
        let _ = self.process.wait();
    }
}
