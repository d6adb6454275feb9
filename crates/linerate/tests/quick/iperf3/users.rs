//! Users and passwords, with iperf3 at either end and without it.

use std::io::{Read, Write};
use std::process::{Command, Output};
use std::time::Duration;

use super::peer::{Peer, has_iperf3};
use crate::support::{command, linerate, stderr};

/// A file of testdata/iperf3/users (its README says how it was made).
fn user_file(name: &str) -> String {
    format!("{}/../../testdata/iperf3/users/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Flags of a server that asks who its clients are.
fn asking() -> [String; 2] {
    [("rsa-private-key-path", "private.pem"), ("authorized-users-path", "users")]
        .map(|(flag, file)| format!("--{flag}={}", user_file(file)))
}

/// Runs a client with a password; flags that name the key are added.
fn as_user(mut client: Command, name: &str, password: &str, flags: &[&str]) -> Output {
    let key = user_file("public.pem");
    client.args(["--username", name, "--rsa-public-key-path", &key]).args(flags);
    client.env("IPERF3_PASSWORD", password).output().expect("it starts")
}

/// The bytes that a server answers to parameters with a token.
fn answer_to_token(port: &str, token: &str) -> Vec<u8> {
    let mut stream = std::net::TcpStream::connect(format!("127.0.0.1:{port}")).expect("it listens");
    stream.write_all(&[b'a'; 36]).and_then(|()| stream.write_all(&[0])).expect("it reads");
    let json = format!(r#"{{"tcp":true,"time":1,"parallel":1,"authtoken":"{}"}}"#, token.trim());
    let length = u32::try_from(json.len()).expect("short").to_be_bytes();
    stream.write_all(&length).and_then(|()| stream.write_all(json.as_bytes())).expect("it reads");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a time-out");
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    answer
}

#[test]
fn a_server_that_asks_lets_in_users_with_their_password_and_nobody_else() {
    let flags = asking();
    let flags: Vec<&str> =
        flags.iter().map(String::as_str).chain(["--use-pkcs1-padding"]).collect();
    for server in [Peer::personality(&flags), Peer::serve(&flags)] {
        let port = server.ready();
        let own = || command(&["iperf3", "-c", "127.0.0.1", "-n", "100K", "-p", port]);
        for padding in [&[][..], &["--use-pkcs1-padding"]] {
            let output = as_user(own(), "mario", "rossi", padding);
            assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
            for (name, password) in [("mario", "verdi"), ("peach", "rossi")] {
                let output = as_user(own(), name, password, padding);
                let said = stderr(&output);
                assert_eq!(output.status.code(), Some(1), "{said}");
                assert!(said.contains("error - test authorization failed"), "{said}");
            }
        }
        let output = own().output().expect("it starts");
        assert!(stderr(&output).contains("authorization failed"), "{}", stderr(&output));
        // Recorded long ago: the clocks differ. Parameter exchange, server error, 142.
        for token in ["token-3.12", "token-oaep"] {
            let token = std::fs::read_to_string(user_file(token)).expect("it is there");
            let answer = answer_to_token(port, &token);
            assert_eq!(answer, [9, 0xfe, 0, 0, 0, 142, 0, 0, 0, 0]);
        }
        if has_iperf3() {
            let theirs = || {
                let mut client = Command::new("iperf3");
                client.args(["-c", "127.0.0.1", "-n", "100K", "-p", port]);
                client
            };
            let output = as_user(theirs(), "luigi", "verdi", &[]);
            assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
            let output = as_user(theirs(), "luigi", "rossi", &[]);
            assert!(stderr(&output).contains("test authorization failed"), "{}", stderr(&output));
        }
    }
}

#[test]
fn a_server_of_iperf3_that_asks_lets_this_client_in_with_the_right_password() {
    if !has_iperf3() {
        return;
    }
    let server = Peer::iperf3_with(&asking());
    let own = || command(&["iperf3", "-c", "127.0.0.1", "-n", "100K", "-p", server.ready()]);
    let older = ["--use-pkcs1-padding"];
    let output = as_user(own(), "mario", "rossi", &older);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let output = as_user(own(), "mario", "verdi", &older);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("authorization failed"), "{}", stderr(&output));
    // 3.12 does not know the newer padding.
    let output = as_user(own(), "mario", "rossi", &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("authorization failed"), "{}", stderr(&output));
    let token = std::fs::read_to_string(user_file("token-3.12")).expect("it is there");
    let answer = answer_to_token(server.ready(), &token);
    assert_eq!(answer, [9, 0xfe, 0, 0, 0, 142], "the clocks differ");
}

#[test]
fn a_key_under_a_passphrase_is_refused() {
    let key = format!("--rsa-private-key-path={}", user_file("private-locked.pem"));
    let users = format!("--authorized-users-path={}", user_file("users"));
    let output = linerate(&["serve", "--port=0", "--foreign=none", &key, &users]);
    assert!(stderr(&output).contains("passphrase"), "{}", stderr(&output));
    let output = linerate(&["serve", "--port=0", "--foreign=none", "--time-skew-threshold=0"]);
    assert!(stderr(&output).contains("--time-skew-threshold"), "{}", stderr(&output));
}
