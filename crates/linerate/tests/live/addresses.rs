//! Two namespaces on a cable: addresses that mean something on one link only, names with several
//! addresses, firewalls that drop or reject, and an own queue that is too short.

#![allow(clippy::print_stdout, reason = "the test runner shows why tests are skipped")]

use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use linerate_sys::clock::sleep;

use crate::support::{stderr, stdout};

const PROGRAM: &str = env!("CARGO_BIN_EXE_linerate");

/// Documentation prefixes of RFC 5737 and 3849.
const SERVER_V4: &str = "192.0.2.2";
const SERVER_V6: &str = "2001:db8::2";
/// A name of both.
const NAME: &str = "both.test";

fn done(words: &str) -> bool {
    crate::support::turn::take();
    let mut words = words.split_whitespace();
    let output = Command::new(words.next().expect("a program")).args(words).output();
    output.is_ok_and(|output| output.status.success())
}

/// Client and server on a cable; removed when dropped.
struct Lab {
    names: [String; 2],
    server: Option<Child>,
    hosts: PathBuf,
}

impl Lab {
    /// Builds it, where this machine lets it.
    fn build(lane: usize) -> Option<Self> {
        let names = ["a", "b"].map(|end| format!("linerate-at-{}-{lane}{end}", std::process::id()));
        let [a, b] = &names;
        // The hosts file of a namespace (ip-netns(8)).
        let hosts = PathBuf::from(format!("/etc/netns/{a}"));
        if !done("nft --version") || !done(&format!("ip netns add {a}")) {
            println!("skipped: no namespaces or no nft here");
            return None;
        }
        let lab = Self { hosts, server: None, names: names.clone() };
        let text = format!("127.0.0.1 localhost\n{SERVER_V6} {NAME}\n{SERVER_V4} {NAME}\n");
        std::fs::create_dir_all(&lab.hosts).expect("root");
        std::fs::write(lab.hosts.join("hosts"), text).expect("root");
        for words in [
            format!("ip netns add {b}"),
            format!("ip -n {a} link add e0 type veth peer name e1 netns {b}"),
            format!("ip -n {a} addr add 192.0.2.1/24 dev e0"),
            format!("ip -n {b} addr add {SERVER_V4}/24 dev e1"),
            format!("ip -n {a} addr add 2001:db8::1/64 dev e0 nodad"),
            format!("ip -n {b} addr add {SERVER_V6}/64 dev e1 nodad"),
            // Its link-local addresses are known beforehand, and used at once.
            format!("ip -n {a} addr add fe80::1/64 dev e0 nodad"),
            format!("ip -n {b} addr add fe80::2/64 dev e1 nodad"),
            format!("ip -n {a} link set lo up"),
            format!("ip -n {b} link set lo up"),
            format!("ip -n {a} link set e0 up"),
            format!("ip -n {b} link set e1 up"),
            format!("ip netns exec {b} nft add table inet t"),
        ] {
            assert!(done(&words), "{words}");
        }
        assert!(lab.rule("add chain inet t in { type filter hook input priority 0 ; }"));
        Some(lab)
    }

    /// Starts its server, on all addresses or on some.
    fn serve(mut self, flags: &[&str]) -> Self {
        let quiet = ["serve", "--no-web", "--foreign", "none", "--stamp-port", "none"];
        let mut server = self.at(1, &[&[PROGRAM][..], &quiet, flags].concat());
        self.server = Some(server.stderr(Stdio::null()).spawn().expect("it is built"));
        let listens = || {
            let output = self.at(1, &["ss", "-Hltn", "sport = :5210"]).output();
            output.is_ok_and(|output| !output.stdout.is_empty())
        };
        let up = (0..600).any(|_| {
            sleep(Duration::from_millis(50));
            listens()
        });
        assert!(up, "nobody listens");
        self
    }

    fn rule(&self, words: &str) -> bool {
        done(&format!("ip netns exec {} nft {words}", self.names[1]))
    }

    fn at(&self, end: usize, command: &[&str]) -> Command {
        let mut ip = Command::new("ip");
        ip.args(["netns", "exec", &self.names[end]]).args(command);
        ip
    }

    fn client(&self, arguments: &[&str]) -> Output {
        let command = [&[PROGRAM][..], arguments, &["--no-save"]].concat();
        self.at(0, &command).output().expect("it is built")
    }

    /// Runs the client, which must end with `code`; what it said.
    fn ends_with(&self, code: i32, arguments: &[&str]) -> String {
        let output = self.client(arguments);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        said + &stdout(&output)
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if let Some(server) = &mut self.server {
            let _ = server.kill();
            let _ = server.wait();
        }
        let _ = std::fs::remove_dir_all(&self.hosts);
        for name in &self.names {
            done(&format!("ip netns del {name}"));
        }
    }
}

#[test]
fn a_link_local_address_keeps_its_interface_for_every_connection() {
    let Some(lab) = Lab::build(0) else { return };
    let lab = lab.serve(&[]);
    for flags in [
        &["tcp", "fe80::2%e0", "-t", "300ms", "-q"][..],
        // A listener of the test's own, and the other direction.
        &["tcp", "fe80::2%e0", "-t", "300ms", "-w", "64K", "-R", "-q"],
        &["tcp", "[fe80::2%e0]:5210", "-t", "300ms", "-B", "fe80::1%e0", "-q"],
        &["udp", "fe80::2%e0", "-t", "300ms", "-q"],
        &["udp", "fe80::2%e0", "-t", "300ms", "-B", "fe80::1", "--bidir", "-q"],
        &["ping", "fe80::2%e0", "--udp", "-c", "2", "-i", "10ms", "-q"],
    ] {
        lab.ends_with(0, flags);
    }
}

#[test]
fn a_server_on_one_of_its_names_addresses_is_found_there() {
    let Some(lab) = Lab::build(1) else { return };
    let lab = lab.serve(&["--bind", "0.0.0.0"]);
    let all = || {
        for flags in
            [&["tcp", NAME, "-t", "300ms", "--json"][..], &["udp", NAME, "-t", "300ms", "--json"]]
        {
            let output = lab.client(flags);
            assert_eq!(output.status.code(), Some(0), "{flags:?}: {}", stderr(&output));
            let record: serde_json::Value =
                serde_json::from_str(&stdout(&output)).expect("a record");
            let flow = record["flows"][0]["server_addr"].as_str().unwrap_or_default();
            assert!(flow.starts_with(SERVER_V4), "{flow}");
            // The probes beside it go there, too.
            let target = record["probes"]["target"].as_str().unwrap_or_default();
            assert!(target.starts_with(SERVER_V4), "{target}");
        }
        lab.ends_with(0, &["ping", NAME, "--udp", "-c", "1", "-q"]);
    };
    // The first address refuses.
    all();
    // It keeps silent (RFC 8305 §5).
    assert!(lab.rule("add rule inet t in meta nfproto ipv6 tcp dport 5210 drop"));
    all();
    let said = lab.ends_with(3, &["tcp", NAME, "-6", "--connect-timeout", "500ms"]);
    assert!(said.contains("timed out"), "{said}");
    assert!(lab.rule("flush chain inet t in"));
    let said = lab.ends_with(3, &["tcp", NAME, "-p", "1"]);
    assert!(said.contains("refused, and the other address of that name failed, too"), "{said}");
}

#[test]
fn what_a_firewall_does_is_not_taken_for_something_else() {
    let Some(lab) = Lab::build(2) else { return };
    let lab = lab.serve(&[]);
    assert!(lab.rule("add rule inet t in meta l4proto udp drop"));
    for flags in [&["udp", SERVER_V4, "-t", "1s"][..], &["udp", SERVER_V6, "-t", "1s", "-R"]] {
        let said = lab.ends_with(3, flags);
        assert!(said.contains("no datagram came through"), "{said}");
        assert!(said.contains("firewall"), "{said}");
    }
    for with in ["icmpx type admin-prohibited", "icmpx type host-unreachable"] {
        assert!(lab.rule("flush chain inet t in"));
        assert!(lab.rule(&format!("add rule inet t in tcp dport 5210 reject with {with}")));
        for host in [SERVER_V4, SERVER_V6] {
            let said = lab.ends_with(3, &["tcp", host, "-t", "1s"]);
            assert!(said.contains("firewall") && said.contains("ICMP"), "{with}: {said}");
            assert!(!said.contains("nobody answers"), "{with}: {said}");
        }
    }
    // Nobody has this address on the link.
    let said = lab.ends_with(3, &["tcp", "192.0.2.77", "-t", "1s"]);
    assert!(said.contains("nobody answers at this address on its link"), "{said}");
}

#[test]
fn probes_that_the_own_queue_never_takes_end_the_ping_and_are_no_loss() {
    let Some(lab) = Lab::build(3) else { return };
    // A bucket and a queue of one packet: of a datagram in three fragments two are dropped.
    let queue = "root tbf rate 1mbit burst 1600 limit 1600";
    let name = &lab.names[0];
    if !done(&format!("ip netns exec {name} tc qdisc add dev e0 {queue}")) {
        println!("skipped: no tbf here");
        return;
    }
    let large = ["ping", SERVER_V4, "-c", "3", "-i", "50ms", "-s", "4000"];
    let said = lab.ends_with(2, &large);
    assert!(said.contains("3 of 3 probes were not sent"), "{said}");
    let both = lab.ends_with(0, &["ping", SERVER_V4, "-c", "3", "-i", "50ms", "-s", "56,4000"]);
    assert!(both.contains("of 56 bytes, 0 of 3 lost"), "{both}");
}
