//! In the place of iperf3: its flags, its messages and its exit codes, as 3.21 has them.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::peer::{Peer, json};
use crate::support::{
    command, end_of, free_port, free_ports, interrupt, linerate, stderr, stdout,
    wait_until_listening,
};

/// Command lines that iperf3 3.21 refuses, and what it says (recorded with `iperf3 LINE`, November
/// 2026, glibc). The line that stands for `parameter error - ` begins with a dot.
const MISTAKES: &[(&str, &str)] = &[
    ("", ".must either be a client (-c) or server (-s)"),
    ("-1", ".must either be a client (-c) or server (-s)"),
    ("-D", ".must either be a client (-c) or server (-s)"),
    ("-c h -s", ".cannot be both server and client"),
    ("-s -c h", ".cannot be both server and client"),
    ("-c", "option requires an argument -- 'c'"),
    ("-x", "invalid option -- 'x'"),
    ("--foo", "unrecognized option '--foo'"),
    ("--len", "option '--length' requires an argument"),
    ("-c h --version6=1", "option '--version6' doesn't allow an argument"),
    ("-c h -p 0", ".port number must be between 1 and 65535 inclusive"),
    ("-c h --cport 65536", ".port number must be between 1 and 65535 inclusive"),
    ("-c h -t 86401", ".test duration valid values are 0 to 86400 seconds"),
    ("-s --server-max-duration -1", ".test duration valid values are 0 to 86400 seconds"),
    ("-c h -i 0.05", ".invalid report interval (min = 0.1, max = 60 seconds)"),
    ("-c h -D", ".some option you are trying to set is server only"),
    ("-c h -1", ".some option you are trying to set is server only"),
    ("-c h --time-skew-threshold 5", ".some option you are trying to set is server only"),
    ("-s -t 5", ".some option you are trying to set is client only"),
    ("-s -u", ".some option you are trying to set is client only"),
    ("-s --gsro", ".some option you are trying to set is client only"),
    ("-s -A 0,1", ".some option you are trying to set is client only"),
    ("-c h -P 129", ".number of parallel streams too large (maximum = 128)"),
    ("-c h -w 1G", ".socket buffer size too large (maximum = 536870912 bytes)"),
    ("-c h -b 1X", ".invalid unit value or suffix: '1X'"),
    ("-c h -n x", ".invalid unit value or suffix: 'x'"),
    ("-c h -b 1M/2000", ".invalid burst count (maximum = 1000)"),
    ("-c h -R --bidir", ".cannot be both reverse and bidirectional"),
    ("-c h -n 5 -k 5", ".only one test end condition (-t, -n, -k) may be specified"),
    ("-c h -n 5 -t 5", ".only one test end condition (-t, -n, -k) may be specified"),
    ("-c h --rcv-timeout 10", ".receive timeout value is incorrect or not in range"),
    ("-c h --rcv-timeout 1000", ".client receive timeout is valid only in receiving mode"),
    ("-c h -f x", ".bad format specifier (valid formats are in the set [kmgtKMGT])"),
    ("-c h -S 300", ".bad TOS value (must be between 0 and 255 inclusive)"),
    ("-c h --dscp foo", ".bad TOS value (must be between 0 and 255 inclusive)"),
    ("-c h -L 0", ".unable to set IPv6 flow label"),
    ("-c h -O 601", ".bogus value for --omit (maximum = 600 seconds)"),
    ("-c h -A 2000", ".unable to set CPU affinity"),
    ("-c h -F f -u", ".cannot transfer file using UDP"),
    ("-c h -l 2M", ".block size too large (maximum = 1048576 bytes)"),
    ("-c h -u -l 8", ".block size invalid (minimum = 16 bytes, maximum = 65507 bytes)"),
    ("-c h -M 40000", ".TCP MSS too large (maximum = 32767 bytes)"),
    ("-s --idle-timeout 0", ".idle timeout parameter is not positive or larger than allowed limit"),
    (
        "-s --server-bitrate-limit 1M/0.01",
        ".invalid time interval for calculating average data rate",
    ),
    (
        "-c h --username a",
        ".you must specify a username, password, and path to a valid RSA public key",
    ),
    (
        "-s --rsa-private-key-path x",
        ".you must specify a path to a valid RSA private key and a user credential file",
    ),
    (
        "-s --authorized-users-path x",
        ".you must specify a path to a valid RSA private key and a user credential file",
    ),
    ("-s --time-skew-threshold 0", ".skew threshold must be a positive number"),
    (
        "-c h --cntl-ka=1/2/3",
        ".control connection Keepalive period should be larger than the full retry period \
         (interval * count)",
    ),
];

#[test]
fn mistakes_are_told_in_the_words_of_iperf3_and_end_with_1() {
    for (line, said) in MISTAKES {
        let words: Vec<&str> = std::iter::once("iperf3").chain(line.split_whitespace()).collect();
        let output = linerate(&words);
        let said = match said.strip_prefix('.') {
            Some(said) => format!("parameter error - {said}"),
            None => (*said).to_owned(),
        };
        let expected = format!(
            "iperf3: {said}\n\nUsage: iperf3 [-s|-c host] [options]\nTry `iperf3 --help' for more \
             information.\n"
        );
        assert_eq!((stderr(&output), output.status.code()), (expected, Some(1)), "{line}");
        assert_eq!(stdout(&output), "", "{line}");
    }
}

/// The flags of `iperf3 --help`, version 3.21, built with everything but SCTP, and its other names,
/// each with a value where it takes one. What takes none of this program's means stands below.
const FLAGS_OF_A_CLIENT: &[&str] = &[
    "-p 5201",
    "--port 5201",
    "-f m",
    "--format K",
    "-i 0",
    "--interval 60",
    "-A 0",
    "--affinity 0,0",
    "-B 127.0.0.1",
    "--bind 127.0.0.1%lo",
    "--bind-dev lo",
    "-V",
    "--verbose",
    "-J",
    "--json",
    "--json-stream",
    "--json-stream --json-stream-full-output",
    "--forceflush",
    "--timestamps",
    "--timestamps=%s",
    "-R --rcv-timeout 1000",
    "--snd-timeout 1000",
    "--cntl-ka",
    "--cntl-ka=10/2/3",
    "-m",
    "--mptcp",
    "-d",
    "--debug",
    "--debug=1",
    "-u",
    "--udp",
    "--connect-timeout 1000",
    "-b 1M",
    "--bitrate 1M/10",
    "--bandwidth 1M",
    "--pacing-timer 1000",
    "--fq-rate 1M",
    "-t 0",
    "-t 86400",
    "--time 1",
    "-n 1M",
    "--bytes 1M",
    "-k 1K",
    "--blockcount 10",
    "-l 1K",
    "--length 1K",
    "--cport 40404",
    "-P 128",
    "--parallel 2",
    "-R",
    "--reverse",
    "--bidir",
    "-w 64K",
    "--window 64K",
    "-C cubic",
    "--congestion cubic",
    "--linux-congestion cubic",
    "-M 1000",
    "--set-mss 1000",
    "-N",
    "--no-delay",
    "-4",
    "--version4",
    "-4 --version6 -4",
    "-S 0x20",
    "--tos 1",
    "--dscp ef",
    "-Z",
    "--zerocopy",
    "--skip-rx-copy",
    "-O 1",
    "--omit 600",
    "-T a",
    "--title a",
    "--extra-data a",
    "--get-server-output",
    "--udp-counters-64bit",
    "--gsro",
    "--repeating-payload",
    "--dont-fragment",
    "--no-fq-socket-pacing",
    "--use-pkcs1-padding",
    "stray",
    "--len 8 -l 9",
    "--rev",
];

/// Flags of a server; an address that is no host's (RFC 5737) ends it at once.
const FLAGS_OF_A_SERVER: &[&str] = &[
    "-s",
    "--server",
    "-D -1 -D",
    "--daemon",
    "-1",
    "--one-off",
    "--idle-timeout 5",
    "--server-max-duration 60",
    "-I pid",
    "--pidfile pid",
    "--logfile log",
    "-i 0",
    "-p 5299",
    "-V",
];

#[test]
fn every_flag_of_3_21_is_taken() {
    let port = free_port();
    for flags in FLAGS_OF_A_CLIENT {
        let words = ["iperf3", "-c", "127.0.0.1"].into_iter().chain(flags.split(' '));
        let words: Vec<&str> = words.chain(["-p", &port]).collect();
        let output = linerate(&words);
        let said = stderr(&output) + &stdout(&output);
        assert!(said.contains("unable to connect to server - "), "{flags}: {said}");
        assert_eq!(output.status.code(), Some(1), "{flags}");
    }
    let folder = tempfile::tempdir().expect("a directory");
    for flags in
        FLAGS_OF_A_SERVER.iter().filter(|flags| !flags.contains("-D") && **flags != "--daemon")
    {
        let words = ["iperf3", "-s", "-B", "192.0.2.1"].into_iter().chain(flags.split(' '));
        let words: Vec<&str> = words.collect();
        let output = command(&words).current_dir(folder.path()).output().expect("it starts");
        let log = std::fs::read_to_string(folder.path().join("log")).unwrap_or_default();
        let said = stderr(&output) + &log;
        let reason = "iperf3: error - unable to start listener for connections: Cannot assign";
        assert!(said.contains(reason), "{flags}: {said}");
        assert_eq!(output.status.code(), Some(1), "{flags}");
    }
    let help = stdout(&linerate(&["iperf3", "--help"]));
    let flags = FLAGS_OF_A_CLIENT.iter().chain(FLAGS_OF_A_SERVER);
    let flags = flags.flat_map(|flags| flags.split(' ')).filter(|word| word.starts_with("--"));
    // Names that the help of 3.21 leaves out as well, and a beginning.
    let others = ["--bandwidth", "--linux-congestion", "--no-fq-socket-pacing", "--len", "--rev"];
    for flag in flags.map(|flag| flag.split('=').next().unwrap_or(flag)) {
        assert!(others.contains(&flag) || help.contains(flag), "{flag}: {help}");
    }
}

#[test]
fn what_is_left_out_is_refused_in_words_of_iperf3() {
    for flags in [
        "-c h --file f",
        "-s --file f",
        "-c h --flowlabel 1",
        "-c h --sctp",
        "-c h --xbind ::1",
        "-c h --nstreams 2",
        "-s --server-bitrate-limit 1M",
        "-c h -u -l 2000 --dont-fragment",
    ] {
        let words: Vec<&str> = std::iter::once("iperf3").chain(flags.split(' ')).collect();
        let output = linerate(&words);
        let begin = "iperf3: parameter error - an option you are trying to set is not implemented \
                     yet: --";
        assert!(stderr(&output).starts_with(begin), "{flags}: {}", stderr(&output));
        assert_eq!(output.status.code(), Some(1), "{flags}");
    }
}

#[test]
fn a_link_named_iperf3_is_iperf3() {
    let folder = tempfile::tempdir().expect("a directory");
    let link = folder.path().join("iperf3");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_linerate"), &link).expect("a link");
    let run = |words: &[&str]| Command::new(&link).args(words).output().expect("the link starts");
    let output = run(&["--version"]);
    assert!(stdout(&output).starts_with("iperf 3.21 (linerate "), "{}", stdout(&output));
    assert_eq!(output.status.code(), Some(0));
    let output = run(&["-h"]);
    assert!(stdout(&output).starts_with("Usage: iperf3 [-s|-c host] [options]\n"));
    assert_eq!(output.status.code(), Some(0));
    let output = run(&["--nonsense"]);
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    assert!(said.starts_with("iperf3: unrecognized option '--nonsense'\n"), "{said}");
    assert!(!said.contains("linerate") && !said.contains("iperf3 iperf3"), "{said}");
}

/// What 3.21 says where nobody listens.
const REFUSED: &str = "unable to connect to server - server may have stopped running or use a \
                       different port, firewall issue, etc.: Connection refused";

#[test]
fn nobody_there_is_the_one_line_of_iperf3_and_code_1() {
    let port = free_port();
    let output = linerate(&["iperf3", "-c", "127.0.0.1", "-p", &port]);
    assert_eq!(output.status.code(), Some(1));
    let expected = format!("iperf3: error - {REFUSED}\n");
    assert_eq!((stdout(&output), stderr(&output)), (String::new(), expected));
    let output = linerate(&["iperf3", "-c", "127.0.0.1", "-p", &port, "-J"]);
    assert_eq!((output.status.code(), stderr(&output)), (Some(1), String::new()));
    let document: Value = serde_json::from_slice(&output.stdout).expect("a document");
    assert_eq!(document["error"], REFUSED);
    assert_eq!(document["end"], serde_json::json!({}));
    let output = linerate(&["iperf3", "-c", "127.0.0.1", "-p", &port, "--json-stream"]);
    let lines: Vec<String> = stdout(&output).lines().map(str::to_owned).collect();
    let error = format!("{{\"event\":\"error\",\"data\":\"{REFUSED}\"}}");
    assert_eq!(lines, [error, "{\"event\":\"end\",\"data\":{}}".to_owned()]);
    let output = linerate(&["iperf3", "-c", "::1", "-p", &port, "--version6"]);
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_busy_server_and_an_interrupted_one_are_told_of_as_iperf3_does() {
    let mut server = Peer::personality(&[]);
    let flags =
        ["iperf3", "-c", "127.0.0.1", "-p", &server.port, "-t", "20", "-b", "1M", "-i", "0.1"];
    let start = || {
        let mut client = command(&flags);
        client.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
    };
    let mut first = start();
    let mut lines = BufReader::new(first.stdout.take().expect("a pipe")).lines();
    assert!(lines.any(|line| line.is_ok_and(|line| line.contains("sec"))), "it runs");
    let output = server.asked(&["-t", "1"]);
    let busy = "iperf3: error - the server is busy running a test. try again later\n";
    assert_eq!((stdout(&output), stderr(&output)), (String::new(), busy.to_owned()));
    assert_eq!(output.status.code(), Some(1));

    interrupt(&first);
    assert_eq!(end_of(&mut first).and_then(|status| status.code()), Some(0));
    let mut said = String::new();
    first.stderr.take().expect("a pipe").read_to_string(&mut said).expect("UTF-8");
    assert_eq!(said, "iperf3: interrupt - the client has terminated by signal Interrupt(2)\n");
    let rest: Vec<String> = lines.map_while(Result::ok).collect();
    assert!(rest.iter().any(|line| line.ends_with("sender")), "{rest:?}");

    let mut second = start();
    let mut lines = BufReader::new(second.stdout.take().expect("a pipe")).lines();
    assert!(lines.any(|line| line.is_ok_and(|line| line.contains("sec"))), "it runs");
    interrupt(&server.child);
    assert_eq!(end_of(&mut server.child).and_then(|status| status.code()), Some(0));
    assert_eq!(end_of(&mut second).and_then(|status| status.code()), Some(1));
    let mut said = String::new();
    second.stderr.take().expect("a pipe").read_to_string(&mut said).expect("UTF-8");
    assert_eq!(said, "iperf3: error - the server has terminated\n");
    let mut said = String::new();
    server.child.stderr.take().expect("a pipe").read_to_string(&mut said).expect("UTF-8");
    let last = "iperf3: interrupt - the server has terminated by signal Interrupt(2)";
    assert_eq!(said.lines().last(), Some(last), "{said}");
}

#[test]
fn a_taken_port_is_told_as_iperf3_does() {
    let server = Peer::personality(&[]);
    let output = linerate(&["iperf3", "-s", "-B", "127.0.0.1", "-p", &server.port]);
    let said = "iperf3: error - unable to start listener for connections: Address already in use\n";
    assert_eq!((stderr(&output), output.status.code()), (said.to_owned(), Some(1)));
}

#[test]
fn a_test_without_rows_has_one_at_its_end() {
    let server = Peer::personality(&[]);
    // Shorter than an interval, without intervals, and a test that ends within its second one.
    for flags in [
        &["-n", "100K"][..],
        &["-n", "100K", "-i", "0"],
        &["-n", "100K", "-R"],
        &["-u", "-k", "5"],
        &["-u", "-k", "5", "-R"],
        &["-n", "100K", "--bidir", "-i", "0"],
    ] {
        let document = json(&server.asked(&[flags, &["-J"]].concat()));
        let rows = document["intervals"].as_array().expect("intervals");
        assert_eq!(rows.len(), 1, "{flags:?}: {rows:?}");
        assert_eq!(rows[0]["streams"][0]["start"], 0, "{flags:?}");
        let bytes = rows[0]["sum"]["bytes"].as_u64().expect("counted");
        assert!(bytes > 0, "{flags:?}: {rows:?}");
    }
}

#[test]
fn a_verbose_or_debugging_client_prints_one_document() {
    let server = Peer::personality(&[]);
    for flag in ["-V", "-d", "--debug=4"] {
        let output = server.asked(&["-n", "100K", "-J", flag]);
        // A block of 128 KiB holds 100 KiB.
        assert_eq!(json(&output)["end"]["sum_received"]["bytes"], 131_072, "{flag}");
    }
}

#[test]
fn a_stream_of_lines_may_end_with_the_whole_document() {
    let server = Peer::personality(&[]);
    let output = server.asked(&["-n", "100K", "--json-stream", "--json-stream-full-output"]);
    let text = stdout(&output);
    let at = text.find("\n{\n").expect("a document behind the lines") + 1;
    let document: Value = serde_json::from_str(&text[at..]).expect("one document");
    assert_eq!(document["end"]["sum_received"]["bytes"], 131_072);
    assert!(text[..at].lines().all(|line| line.starts_with("{\"event\":\"")), "{text}");
}

#[test]
fn streams_take_the_local_ports_that_were_asked_for() {
    let server = Peer::personality(&[]);
    for udp in [&[][..], &["-u"]] {
        let first: u16 = free_ports(2).parse().expect("a number");
        let port = first.to_string();
        let flags = ["-n", "20K", "-P", "2", "--cport", &port, "--bind-dev", "lo", "-J"];
        let document = json(&server.asked(&[udp, &flags].concat()));
        let ports: Vec<u64> = document["start"]["connected"]
            .as_array()
            .expect("streams")
            .iter()
            .filter_map(|stream| stream["local_port"].as_u64())
            .collect();
        assert_eq!(ports, [u64::from(first), u64::from(first) + 1], "{udp:?}");
    }
    let output = server.asked(&["-n", "20K", "--bind-dev", "no-such"]);
    let said = "iperf3: error - Unable to bind-to-device (check perror, maybe permissions?)\n";
    assert_eq!((stderr(&output), output.status.code()), (said.to_owned(), Some(1)));
}

#[test]
fn a_server_in_the_background_leaves_no_file_behind() {
    let folder = tempfile::tempdir().expect("a directory");
    let (pid, port) = (folder.path().join("pid"), free_port());
    let pid_path = pid.to_string_lossy();
    let flags = ["iperf3", "-s", "-1", "-B", "127.0.0.1", "-p", &port, "-I", &pid_path];
    let mut server = command(&flags).stdout(Stdio::null()).spawn().expect("it starts");
    wait_until_listening(&port);
    assert!(pid.exists());
    let output = linerate(&["iperf3", "-c", "127.0.0.1", "-p", &port, "-n", "1K"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(end_of(&mut server).and_then(|status| status.code()), Some(0));
    assert!(!pid.exists());
}
