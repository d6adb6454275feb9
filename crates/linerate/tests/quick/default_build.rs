//! What the program of the default build says where one uses a part that it lacks: one line with
//! what is missing and which program has it, and an exit code other than 0.
//!
//! `./dev test` builds the program with everything, so this runs by night (`./dev test nightly`):
//!
//!     cargo test -p linerate --test quick default_build::
//!
//! By day the same refusals are held by unit tests: `web/left_out_tests.rs`, `mesh/address.rs` and
//! `ask/post.rs` of linerate-server, `foreign/iperf3/no_keys.rs` of linerate-engine.
#![cfg(not(any(feature = "acme", feature = "datagrams", feature = "rsa", feature = "scale")))]

use std::process::Stdio;

use crate::support;

const TLS: &str = "this program was built without TLS; ";
const SIGNATURES: &str = "this program was built without signatures of plans; ";
const SCALE: &str = "this program was built without NATS, PostgreSQL and Parquet; ";
const RSA: &str = "this program was built without users of iperf3 (RSA); ";
const HAS_ALL: &str = "use the program of a package, or build all of it: ./dev build full";

const PLAN: &str = "mesh = \"m\"\nrevision = 1\n\n[[agent]]\nname = \"a\"\n\
    address = \"127.0.0.1\"\n\n[[agent]]\nname = \"b\"\naddress = \"127.0.0.2\"\n\n\
    [[task]]\nname = \"delay\"\nrun = \"ping {to} -c2\"\nevery = \"10s\"\ntakes = \"9s\"\n";

/// Ends with a code; what it says ends with one line of the part that is missing and its place.
fn refused(words: &[&str], code: i32, missing: &str) {
    let place = tempfile::tempdir().expect("a directory");
    std::fs::write(place.path().join("plan.toml"), PLAN).expect("written");
    std::fs::write(place.path().join("FILE"), "x\n").expect("written");
    let mut command = support::command(words);
    command.current_dir(place.path()).env("XDG_DATA_HOME", place.path()).stdin(Stdio::null());
    let output = command.env("IPERF3_PASSWORD", "x").output().expect("the program starts");
    let said = support::stderr(&output);
    assert_eq!(output.status.code(), Some(code), "{words:?}: {said}");
    assert_eq!(support::stdout(&output), "", "{words:?}");
    let lines: Vec<&str> = said.lines().filter(|line| line.contains(missing)).collect();
    let [line] = lines.as_slice() else { panic!("{words:?}: {said}") };
    assert!(line.contains(HAS_ALL), "{words:?}: {line}");
}

#[test]
fn each_part_that_is_missing_is_named_in_a_line_with_the_programs_that_have_it() {
    let serve = ["serve", "--port", "0", "--bind", "127.0.0.1", "--foreign", "none"];
    let server = |flags: &[&str], missing: &str| {
        refused(&[&serve[..], &["--stamp-port", "none"], flags].concat(), 2, missing);
    };
    server(&["--tls-cert", "FILE", "--tls-key", "FILE"], TLS);
    server(&["--acme", "speed.example.org"], "this program was built without ACME; ");
    server(&["--quic-port", "0"], "this program was built without WebTransport; ");
    server(&["--otlp", "https://127.0.0.1/v1/metrics"], TLS);
    server(&["--remote-write", "https://127.0.0.1/write"], TLS);
    server(&["--mesh", "plan.toml", "--mesh-bus", "nats://127.0.0.1"], SCALE);
    server(&["--mesh", "plan.toml", "--mesh-store", "postgresql://127.0.0.1/m"], SCALE);
    let users = ["--rsa-private-key-path", "FILE", "--authorized-users-path", "FILE"];
    server(&users, RSA);
    refused(&["mesh", "key", "KEY"], 2, SIGNATURES);
    refused(&["mesh", "sign", "plan.toml", "--key", "FILE"], 2, SIGNATURES);
    refused(&["mesh", "status", "--store", "postgres://127.0.0.1/m"], 2, SCALE);
    refused(&["mesh", "archive", "yesterday", "--into", "."], 2, SCALE);
    refused(&["agent", "--join", "https://127.0.0.1:1"], 2, TLS);
    refused(&["agent", "--join", "nats://127.0.0.1:1"], 2, SCALE);
    // iperf3's own exit code for wrong usage.
    let login = ["--username", "u", "--rsa-public-key-path", "FILE"];
    refused(&[&["iperf3", "-c", "127.0.0.1"][..], &login].concat(), 1, RSA);
    refused(&[&["iperf3", "-s"][..], &users].concat(), 1, RSA);
}
