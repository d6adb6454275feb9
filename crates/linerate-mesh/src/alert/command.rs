//! A command of the plan with the alert as JSON on its standard input.

use std::io::Write;
use std::process::{Command, Stdio};

use linerate_store::DueAlert;
use linerate_sys::child::{die_with_parent, wait_while};
use linerate_sys::clock::monotonic;

use super::TAKES;

/// Runs the command of an alert to its end; one that takes longer than a minute is killed.
pub(super) fn run(line: &str, alert: &DueAlert) -> Result<(), String> {
    let mut command = Command::new("sh");
    command.args(["-c", line]).env("LINERATE_ALERT", &alert.sentence);
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
        let alert = DueAlert {
            sentence: "it's slow".to_owned(),
            json: "{\"a\":1}".to_owned(),
            ..DueAlert::default()
        };
        let line = format!("cat > {0}; echo \"$LINERATE_ALERT\" >> {0}", file.display());
        assert_eq!(run(&line, &alert), Ok(()));
        let got = std::fs::read_to_string(&file).expect("written");
        assert_eq!(got, "{\"a\":1}\nit's slow\n");
        let error = run("exit 3", &alert).expect_err("it failed");
        assert!(error.contains('3'), "{error}");
    }
}
