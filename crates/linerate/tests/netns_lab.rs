//! `linerate lab` as a shell starts it: commands on hosts, a second process that enters, an end
//! that leaves nothing. Skipped where namespaces cannot be made.

mod support;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use support::{command, end_of, ends_with, interrupt, linerate, no_laboratory, stderr};

/// A laboratory that is held until it is dropped.
struct Held(Child);

impl Held {
    /// Builds a shipped plan and waits until it can be entered.
    fn build(plan: &str) -> Self {
        let mut child = command(&["lab", "run", plan])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let stderr = child.stderr.take().expect("a pipe");
        let stdout = child.stdout.take().expect("a pipe");
        // One of the two says how to enter, after the laboratory stands.
        let (tell, told) = std::sync::mpsc::channel();
        let other = tell.clone();
        std::thread::spawn(move || {
            BufReader::new(stderr).lines().map_while(Result::ok).for_each(|line| {
                let _ = other.send(line);
            });
        });
        std::thread::spawn(move || {
            BufReader::new(stdout).lines().map_while(Result::ok).for_each(|line| {
                let _ = tell.send(line);
            });
        });
        assert!(told.iter().any(|line| line.contains("lab shell")), "{plan} was built");
        Self(child)
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The IPv4 address of `eth0`, as `ip` prints it.
fn address(listing: &str) -> Option<&str> {
    let line = listing.lines().find(|line| line.starts_with("eth0"))?;
    line.split_whitespace().find(|word| word.contains('.'))
}

#[test]
fn a_command_runs_on_the_host_that_is_named_and_its_status_is_passed_on() {
    if let Some(reason) = no_laboratory() {
        println!("skipped: {reason}");
        return;
    }
    let on = |host| ends_with(0, &["lab", "run", "cable", "--on", host, "--", "ip", "-br", "a"]);
    let (a, b) = (on("a"), on("b"));
    assert!(address(&a).is_some(), "{a}");
    assert_ne!(address(&a), address(&b));
    ends_with(7, &["lab", "run", "cable", "--on", "a", "--", "sh", "-c", "exit 7"]);
    let output = linerate(&["lab", "run", "cable", "--on", "nobody", "--", "true"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("nobody"), "{}", stderr(&output));
}

#[test]
fn a_second_process_enters_the_laboratory_that_it_names() {
    if let Some(reason) = no_laboratory() {
        println!("skipped: {reason}");
        return;
    }
    // Two at once: they do not collide, and each is found by its process number.
    let (first, second) = (Held::build("cable"), Held::build("switch"));
    for held in [&first, &second] {
        let arguments = ["lab", "shell", "--lab", &held.pid(), "b", "--", "ip", "-br", "a"];
        let listing = ends_with(0, &arguments);
        assert!(address(&listing).is_some(), "{listing}");
    }
    let output = linerate(&["lab", "shell", "--lab", &first.pid(), "nobody", "--", "true"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("nobody"), "{}", stderr(&output));
}

#[test]
fn nothing_is_left_after_an_interrupt_or_a_kill() {
    if let Some(reason) = no_laboratory() {
        println!("skipped: {reason}");
        return;
    }
    for kill in [false, true] {
        let mut held = Held::build("cable");
        let pid = held.pid();
        if kill {
            held.0.kill().expect("it runs");
        } else {
            interrupt(&held.0);
        }
        assert!(end_of(&mut held.0).is_some(), "it ends");
        let output = linerate(&["lab", "shell", "--lab", &pid, "a", "--", "true"]);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        let named = Command::new("ip").args(["netns", "list"]).output();
        let named = named.map(|output| output.stdout).unwrap_or_default();
        assert!(!String::from_utf8_lossy(&named).contains("linerate"));
    }
}
