//! Handing an alert on: a command of the plan with the alert as JSON on its standard input.

use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::mpsc::Sender;
use std::time::Duration;

use linerate_sys::child::{die_with_parent, wait_while};
use linerate_sys::clock::monotonic;

/// A command that takes longer is ended.
const TAKES: Duration = Duration::from_secs(60);

/// An alert that is handed on.
#[derive(Clone, Debug)]
pub(super) struct Alert {
    /// The number of its event.
    pub event: i64,
    /// For `sh -c`.
    pub command: String,
    /// In one sentence.
    pub sentence: String,
    /// The whole.
    pub json: String,
}

/// How that went: the event's number, and why not.
pub(super) type Told = (i64, Result<(), String>);

/// Hands it on in a thread.
pub(super) fn tell(alert: Alert, told: Sender<Told>) {
    std::thread::spawn(move || {
        let result = run(&alert);
        let _ = told.send((alert.event, result));
    });
}

fn run(alert: &Alert) -> Result<(), String> {
    let mut command = Command::new("sh");
    command.args(["-c", &alert.command]).env("LINERATE_ALERT", &alert.sentence);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child = die_with_parent(&mut command).spawn().map_err(|error| error.to_string())?;
    if let Some(mut pipe) = child.stdin.take() {
        // A command that reads nothing has it in its environment.
        let _ = pipe.write_all(alert.json.as_bytes());
        let _ = pipe.write_all(b"\n");
    }
    let until = monotonic() + TAKES;
    let status = wait_while(&mut child, &|| monotonic() < until);
    let status = status.map_err(|error| error.to_string())?;
    if status.success() { Ok(()) } else { Err(format!("the alert's command ended with {status}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_gets_the_alert_and_one_that_fails_is_told() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let file = directory.path().join("got");
        let alert = Alert {
            event: 1,
            command: format!("cat > {0}; echo \"$LINERATE_ALERT\" >> {0}", file.display()),
            sentence: "it's slow".to_owned(),
            json: "{\"a\":1}".to_owned(),
        };
        assert_eq!(run(&alert), Ok(()));
        let got = std::fs::read_to_string(&file).expect("written");
        assert_eq!(got, "{\"a\":1}\nit's slow\n");
        let error = run(&Alert { command: "exit 3".to_owned(), ..alert }).expect_err("it failed");
        assert!(error.contains('3'), "{error}");
    }
}
