//! The command line as a shell sees it: help, version, wrong use, exit codes, which stream says
//! what. Nothing here sends a packet. Commands with a network have test files of their own.

use std::fs::File;

use crate::support::{check_wrong_use, command, linerate, stderr, stdout};

/// The names of the commands that the help of `path` lists.
fn commands(path: &[&str]) -> Vec<String> {
    let help = stdout(&linerate(&[path, &["--help"]].concat()));
    let own = help.split("\nExamples:\n").next().unwrap_or_default();
    // The program's help has its commands in groups, that of a command has them under a heading.
    let list = own.split_once("\nCommands:\n").map_or("", |(_, rest)| rest);
    let list = if path.is_empty() { own } else { list.split("\n\n").next().unwrap_or("") };
    list.lines()
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help" && !name.starts_with('-'))
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_program_alone_prints_its_help_and_exits_2() {
    let output = linerate(&[]);
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(said.lines().count() < 10 && said.contains("  linerate serve "), "{said}");
    assert_eq!(stdout(&output), "");
}

/// Commands that are other programs' command lines, in those programs' words.
const PERSONALITIES: [&str; 4] = ["iperf3", "iperf", "nuttcp", "ttcp"];

#[test]
fn version_is_one_line_on_standard_output() {
    let output = linerate(&["--version"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(
        stdout(&output),
        format!("linerate {}\n", env!("CARGO_PKG_VERSION")),
        "no commit in a debug build"
    );
}

#[test]
fn every_command_prints_its_help_and_exits_0() {
    let names = commands(&[]);
    assert!(names.len() >= 9, "{names:?}");
    for name in &names {
        let mut paths = vec![vec![name.as_str()]];
        let below = commands(&[name]);
        paths.extend(below.iter().map(|child| vec![name.as_str(), child.as_str()]));
        for path in paths {
            let output = linerate(&[path.as_slice(), &["--help"]].concat());
            assert_eq!(output.status.code(), Some(0), "{path:?}");
            assert_eq!(stderr(&output), "", "{path:?}");
            let own = PERSONALITIES.contains(&name.as_str());
            let program = if own { "" } else { "linerate " };
            let usage = format!("Usage: {program}{}", path.join(" "));
            assert!(stdout(&output).contains(&usage), "{path:?}");
        }
    }
}

#[test]
fn a_wrong_flag_is_one_line_that_names_it_and_the_help() {
    for name in commands(&[]).iter().filter(|name| !PERSONALITIES.contains(&name.as_str())) {
        let help = format!("linerate {name}");
        check_wrong_use(&[name, "--no-such-flag"], &["'--no-such-flag'", &help, "--help"]);
    }
}

#[test]
fn a_wrong_flag_of_another_program_is_answered_as_that_program_does() {
    for name in PERSONALITIES {
        let output = linerate(&[name, "--no-such-flag"]);
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(1), ""), "{name}");
        let said = stderr(&output);
        // The words are getopt_long's (glibc); the usage follows.
        let first = format!("{name}: unrecognized option '--no-such-flag'\n");
        assert!(said.starts_with(&first) && said.contains(&format!("Usage: {name}")), "{said}");
    }
}

#[test]
fn a_file_that_cannot_be_written_is_found_before_anything_is_measured() {
    for command in [&["tcp", "127.0.0.1"][..], &["ping", "127.0.0.1"], &["test", "127.0.0.1"]] {
        // Nobody listens there: a measurement would end with 3.
        let flags = ["-o", "/nonexist/r.json", "-p", "1"];
        check_wrong_use(&[command, &flags].concat(), &["/nonexist/r.json", "make /nonexist first"]);
    }
    assert!(!std::path::Path::new("/nonexist").exists());
}

#[test]
fn a_source_that_cannot_be_read_is_a_problem_of_this_host() {
    check_wrong_use(&["conform", "nofile.pcap"], &["nofile.pcap", "no such file"]);
    let bucket = "rate=1M,burst=10k";
    check_wrong_use(&["conform", "/etc/passwd", "--token-bucket", bucket], &["pcap"]);
}

#[test]
fn flags_and_addresses_of_other_programs_are_read_or_answered_with_ours() {
    check_wrong_use(&["tcp", "-u", "h"], &["linerate udp HOST"]);
    check_wrong_use(&["ping", "127.0.0.1:5210"], &["ICMP has no ports", "--udp"]);
    check_wrong_use(&["tcp", "127.0.0.1:1", "-p", "2"], &["-p 2 names another port"]);
    check_wrong_use(&["tcp", "[::1"], &["[ADDRESS]:PORT"]);
    // Read as ours: the address is tried. Port 1 (tcpmux) is nobody's.
    let output = linerate(&["tcp", "-V", "-c", "127.0.0.1:1", "-S", "0xb8"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).starts_with("linerate: connect 127.0.0.1:1: "), "{}", stderr(&output));
}

#[test]
fn a_misspelt_command_is_answered_with_the_nearest_one() {
    check_wrong_use(&["pong"], &["'pong'", "'ping'"]);
}

#[test]
fn every_command_takes_color_and_the_page_of_the_program_says_so() {
    assert_eq!(linerate(&["doctor", "clock", "--color", "never"]).status.code(), Some(0));
    check_wrong_use(&["ping", "h", "--color", "pink"], &["'pink'", "always"]);
    assert!(stdout(&linerate(&["--help"])).contains("--color"));
}

#[test]
fn completions_know_every_command() {
    for shell in ["bash", "zsh", "fish"] {
        let output = linerate(&["generate", "completions", shell]);
        assert_eq!(output.status.code(), Some(0));
        let script = stdout(&output);
        for name in commands(&[]) {
            assert!(script.contains(&name), "{shell} lacks {name}");
        }
    }
}

#[test]
fn completions_ask_for_what_the_user_has_and_know_the_rest() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = stdout(&linerate(&["generate", "completions", shell]));
        assert!(!script.contains("ASK-"), "{shell}");
        assert!(script.contains("nuttcp") || shell.len() > 4, "{shell}");
    }
    for (shell, asked) in [
        ("bash", "$(_linerate_candidates hosts)"),
        ("zsh", "{_linerate_candidates results}"),
        (
            "fish",
            "-l run -d 'Each measurement of this run (a unique prefix of its ID is enough)' \
                  -r -f -a \"(command linerate generate candidates runs 2>/dev/null)\"",
        ),
    ] {
        let script = stdout(&linerate(&["generate", "completions", shell]));
        for value in [asked, "vmsplice", "_linerate"] {
            assert!(script.contains(value), "{shell} lacks {value}");
        }
    }
}

#[test]
fn a_reader_that_went_away_ends_the_output_quietly() {
    use std::process::Stdio;
    let mut child = command(&["generate", "schema"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("the program ends");
    assert_eq!(stderr(&output), "");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn results_that_could_not_be_written_fail_the_run_in_one_line() {
    // full(4): every write to it ends with ENOSPC.
    let Ok(full) = File::options().write(true).open("/dev/full") else {
        eprintln!("skipped: no /dev/full on this machine");
        return;
    };
    let output =
        command(&["generate", "schema"]).stdout(full).output().expect("the program starts");
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("write standard output: no space left"), "{said}");
}
