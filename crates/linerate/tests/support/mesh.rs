//! What tests of a mesh share: programs that are killed, and hosts of a laboratory to run them on.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use super::{stderr, stdout};

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_linerate");

pub(crate) fn linerate(directory: &Path, words: &[&str]) -> Output {
    super::turn::take();
    let mut command = Command::new(PROGRAM);
    command.args(words).current_dir(directory).stdin(Stdio::null());
    command.env_remove("LINERATE_STORE").env("XDG_DATA_HOME", directory);
    command.output().expect("the program starts")
}

pub(crate) fn good(directory: &Path, words: &[&str]) -> String {
    let output = linerate(directory, words);
    assert_eq!(output.status.code(), Some(0), "{words:?}: {}", stderr(&output));
    stdout(&output).trim().to_owned()
}

/// Looks twice a second until it holds; fails after four minutes, or once a program that has to run
/// for it has ended, with what all of these programs said.
pub(crate) fn eventually(what: &str, programs: &[&Running], mut holds: impl FnMut() -> bool) {
    let said = || programs.iter().map(|program| program.said()).collect::<Vec<_>>().join("\n");
    for _ in 0..480 {
        // Looked at before: what it did last may be what is waited for.
        let one_ended = programs.iter().any(|program| program.has_ended());
        if holds() {
            return;
        }
        assert!(!one_ended, "a program ended before {what}:\n{}", said());
        linerate_sys::clock::sleep(Duration::from_millis(500));
    }
    panic!("not within four minutes: {what}:\n{}", said());
}

/// A process that is killed when dropped, whose lines are kept.
pub(crate) struct Running {
    pub(crate) child: Child,
    log: std::path::PathBuf,
}

impl Running {
    pub(crate) fn start(command: &mut Command, log: &Path) -> Self {
        let file = std::fs::File::options().create(true).append(true).open(log).expect("room");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(file);
        Self { child: command.spawn().expect("it starts"), log: log.to_owned() }
    }

    pub(crate) fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Whether it has ended: a child is a zombie until it is waited for (proc_pid_stat(5)).
    fn has_ended(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()));
        let state = stat.ok().and_then(|stat| stat.rsplit_once(") ")?.1.chars().next());
        state.is_none_or(|state| state == 'Z')
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().expect("it is ours");
        self.child.wait().expect("it ends");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A laboratory that another process holds.
pub(crate) struct Lab {
    held: Child,
}

impl Lab {
    pub(crate) fn start(directory: &Path, hosts: &[&str]) -> Self {
        let host = |name: &str| format!("[[host]]\nname = \"{name}\"\n");
        let link = |name: &str| format!("[[link]]\nends = [\"{name}\", \"s\"]\n");
        let plan: String = hosts
            .iter()
            .map(|name| host(name))
            .chain(["[[switch]]\nname = \"s\"\n".to_owned()])
            .chain(hosts.iter().map(|name| link(name)))
            .collect();
        Self::of(directory, &plan)
    }

    /// The same of any plan.
    pub(crate) fn of(directory: &Path, plan: &str) -> Self {
        std::fs::write(directory.join("lab.toml"), plan).expect("room");
        let mut command = Command::new(PROGRAM);
        command.args(["lab", "run", "lab.toml"]).current_dir(directory);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut held = command.spawn().expect("the program starts");
        let mut lines = BufReader::new(held.stdout.take().expect("piped")).lines();
        assert!(lines.any(|line| line.expect("UTF-8").starts_with("enter a host with")));
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        Self { held }
    }

    pub(crate) fn command(&self, host: &str, directory: &Path, words: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        let pid = self.held.id().to_string();
        command.args(["lab", "shell", host, "--lab", &pid, "--", PROGRAM]).args(words);
        command.current_dir(directory).env("XDG_DATA_HOME", directory).env_remove("LINERATE_STORE");
        command
    }

    /// Runs a program of this machine on a host, to its end.
    #[allow(dead_code, reason = "not every test needs another program")]
    pub(crate) fn run(&self, host: &str, directory: &Path, words: &[&str]) -> Output {
        let mut command = Command::new(PROGRAM);
        let pid = self.held.id().to_string();
        command.args(["lab", "shell", host, "--lab", &pid, "--"]).args(words);
        command.current_dir(directory).output().expect("the program starts")
    }

    pub(crate) fn start_on(
        &self,
        host: &str,
        directory: &Path,
        log: &str,
        words: &[&str],
    ) -> Running {
        Running::start(&mut self.command(host, directory, words), &directory.join(log))
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = self.held.kill();
        let _ = self.held.wait();
    }
}
