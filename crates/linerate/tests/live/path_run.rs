//! `linerate path run` as a program: what it carries, what it says, and what is left of it.
//!
//! Needs the privilege to make network namespaces and /dev/net/tun; says so and passes when they
//! are absent. Waits are loops with an end.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests")]

use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use linerate_sys::clock;
use linerate_sys::netlink::RouteSocket;
use linerate_sys::netns::Netns;
use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_linerate");

fn run(arguments: &[&str]) -> Output {
    crate::support::turn::take();
    let mut command = Command::new(PROGRAM);
    command.args(["path", "run"]).args(arguments).stdin(Stdio::null()).output().unwrap()
}

/// The one line of a failure.
fn error(output: &Output) -> String {
    let text = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(text.lines().count(), 1, "one line: {text}");
    text
}

/// Whether this host lets the program make a path between two namespaces of its own.
fn paths_are_possible() -> bool {
    let output = run(&["--ends", "new:l,new:r", "--quiet", "--", "true"]);
    if output.status.success() {
        return true;
    }
    println!("skipped: {}", String::from_utf8_lossy(&output.stderr).trim_end());
    false
}

/// A path that another process holds between two new namespaces.
struct Held {
    process: Child,
}

impl Held {
    fn start(arguments: &[&str]) -> Self {
        let mut command = Command::new(PROGRAM);
        command.args(["path", "run"]).args(arguments).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let held = Self { process: command.spawn().unwrap() };
        eventually("the right device", || held.right().is_some());
        held
    }

    /// The namespace of the right end, by the process's descriptors, once the device is in it.
    fn right(&self) -> Option<Netns> {
        namespaces_with(self.process.id(), "right0").pop()
    }

    /// Waits for its end: exit code, standard output and error.
    fn end(mut self) -> (Option<i32>, String, String) {
        let mut status = None;
        eventually("its end", || {
            status = self.process.try_wait().unwrap();
            status.is_some()
        });
        let read = |stream: Option<&mut dyn std::io::Read>| {
            let mut text = String::new();
            stream.unwrap().read_to_string(&mut text).unwrap();
            text
        };
        let out = read(self.process.stdout.as_mut().map(|it| it as &mut dyn std::io::Read));
        let err = read(self.process.stderr.as_mut().map(|it| it as &mut dyn std::io::Read));
        (status.unwrap().code(), out, err)
    }

    fn signal(&self, name: &str) {
        let pid = self.process.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &pid]).status().unwrap().success());
    }
}

/// The namespaces that a process has open and that have a device of this name, each once.
fn namespaces_with(pid: u32, device: &str) -> Vec<Netns> {
    let mut seen = std::collections::BTreeSet::new();
    let entries = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let netns = entries.filter_map(|entry| {
        let target = std::fs::read_link(entry.path()).ok()?.to_string_lossy().into_owned();
        if !target.starts_with("net:[") || !seen.insert(target) {
            return None;
        }
        Some(Netns::from_fd(std::fs::File::open(entry.path()).ok()?.into()))
    });
    netns.filter(|netns| has_device(netns, device)).collect()
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Looks every 10 ms until it holds; fails after 20 s.
fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..2000 {
        if holds() {
            return;
        }
        clock::sleep(Duration::from_millis(10));
    }
    panic!("20 s passed without {what}");
}

/// On a thread inside: a namespace is entered by threads.
fn within<T: Send>(netns: &Netns, work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let inside = scope.spawn(|| {
            netns.enter().unwrap();
            work()
        });
        inside.join().unwrap()
    })
}

fn has_device(netns: &Netns, name: &str) -> bool {
    within(netns, || RouteSocket::open().unwrap().link_by_name(name).is_ok())
}

const ENDS: [&str; 2] = ["--ends", "new:left0,new:right0"];

#[test]
fn what_cannot_be_is_one_line_and_code_2() {
    let cases: [(&[&str], &str); 10] = [
        (&["--rate", "5x"], "rate: \"5x\" is not a rate"),
        (&["--delay", "5 parsec"], "delay: "),
        (&["--loss", "200%"], "loss: \"200%\" is not a share"),
        (&["--jitter", "x"], "jitter.most: "),
        (&["--link", "oc12", "--carrier", "ethernet"], "carrier: ethernet does not run on oc12"),
        (&["--queue", "fast"], "tail, red, codel, fq-codel, cake and dualpi2"),
        (&["--buffer", "much"], "buffer: write for example"),
        (&["--ends", "a:b"], "two ends are NETNS:DEV,NETNS:DEV"),
        (&["--left-address", "here"], "an address with its prefix length"),
        (&["--plan", "/nowhere/path.toml"], "read path /nowhere/path.toml: no such file"),
    ];
    for (arguments, words) in cases {
        let output = run(&[&["--ends", "new:l,new:r", "-q"][..], arguments].concat());
        // A flag that is given twice is clap's to refuse.
        let output = if arguments[0] == "--ends" { run(arguments) } else { output };
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let line = error(&output);
        assert!(line.contains(words), "{line}\nwanted {words}");
    }
}

#[test]
fn a_plan_with_a_mistake_is_told_with_line_and_column() {
    let file = std::env::temp_dir().join(format!("linerate-path-{}.toml", std::process::id()));
    std::fs::write(&file, "delay = \"1 ms\"\nrat = \"1M\"\n").unwrap();
    let output = run(&["--quiet", "--plan", file.to_str().unwrap()]);
    std::fs::remove_file(&file).unwrap();
    assert_eq!(output.status.code(), Some(2));
    let line = error(&output);
    assert!(line.contains(".toml:2:1: unknown field `rat`"), "{line}");
}

#[test]
fn a_path_beyond_its_memory_is_refused_before_anything_is_made() {
    if !paths_are_possible() {
        return;
    }
    let output = run(&[&ENDS[..], &["-q", "--rate", "10G", "--delay", "2s"]].concat());
    assert_eq!(output.status.code(), Some(2));
    let line = error(&output);
    assert!(line.contains("of memory, 1073 MB are allowed"), "{line}");
    let little = ["-q", "--rate", "1G", "--delay", "20ms", "--memory", "1MB", "--time", "1s"];
    let output = run(&[&ENDS[..], &little].concat());
    assert!(error(&output).contains("1 MB are allowed"));
}

/// A JSON document of a run, its directions' figures by name.
fn direction(document: &Value, way: usize, name: &str) -> u64 {
    document["path"]["directions"][way][name].as_u64().unwrap()
}

#[test]
fn a_command_at_the_right_end_sees_the_delay_and_the_record_what_it_sent() {
    if !paths_are_possible() {
        return;
    }
    let directory = std::env::temp_dir().join(format!("linerate-path-run-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let file = |name: &str| directory.join(name).to_str().unwrap().to_owned();
    let (pcap, svg, record) = (file("right.pcap"), file("queue.svg"), file("record.json"));
    let arguments = [
        &ENDS[..],
        &["--rate", "100M", "--delay", "15ms", "--seed", "7", "--json", "--mtu", "1400"],
        &["--left-address", "10.1.2.1/24", "--right-address", "10.1.2.2/24"],
        &["--pcap", &pcap, "--pcap-right", "--svg", &svg, "--"],
        &[PROGRAM, "ping", "10.1.2.1", "-c", "10", "-i", "5ms", "--warmup", "0", "--no-save"],
        &["-q", "-o", &record],
    ];
    let output = run(&arguments.concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // The ping's own text comes before the document.
    let text = String::from_utf8(output.stdout).unwrap();
    let document: Value = serde_json::from_str(&text[text.find("{\n").unwrap()..]).unwrap();
    assert_eq!(document["schema"], "linerate.path/1");
    assert_eq!(
        (&document["path"]["seed"], &document["path"]["mtu_bytes"]),
        (&7.into(), &1400.into())
    );
    for way in [0, 1] {
        assert!((10..20).contains(&direction(&document, way, "delivered_packets")), "{text}");
    }
    let ping: Value = serde_json::from_slice(&std::fs::read(&record).unwrap()).unwrap();
    let rtt = ping["summary"].as_array().unwrap().iter();
    let mut rtt = rtt.filter(|row| row["metric"] == "rtt_ns" && row["stat"] == "min");
    let rtt_ms = rtt.next().unwrap()["value"].as_f64().unwrap() / 1e6;
    // The best of ten; a busy machine adds to all.
    assert!((30.0..45.0).contains(&rtt_ms), "{rtt_ms} ms");
    // Right to left is the path's backward direction, and the ping's own way up.
    let told = &ping["paths"][0]["directions"][1];
    assert_eq!((&told["backward"], &told["direction"]), (&true.into(), &"up".into()));
    let capture = std::fs::read(&pcap).unwrap();
    assert_eq!(capture[..4], 0xa1b2_3c4d_u32.to_ne_bytes());
    // 20 packets of 84 bytes with 16 of header each, and the file's own 24.
    assert!(capture.len() >= 24 + 20 * 100, "{}", capture.len());
    assert!(std::fs::read_to_string(&svg).unwrap().contains("Queue of path new:left0"));
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn an_overload_of_three_times_does_not_spoil_the_path() {
    if !paths_are_possible() {
        return;
    }
    let addresses = ["--left-address", "10.1.2.1/24", "--right-address", "10.1.2.2/24"];
    let path = ["--rate", "10M", "--delay", "10ms", "--json", "-q"];
    let held = Held::start(&[&ENDS[..], &path, &addresses].concat());
    let right = held.right().unwrap();
    // 30 Mbit/s for a second: 25 datagrams of 1472 bytes each 10 ms, what a pause left out as well.
    within(&right, || {
        let socket = std::net::UdpSocket::bind("10.1.2.2:0").unwrap();
        socket.connect("10.1.2.1:9").unwrap();
        let (start, mut sent) = (clock::monotonic(), 0);
        while sent < 2500 {
            let due = clock::monotonic().nanos_since(start) / 10_000_000 * 25;
            while sent < due.min(2500) {
                // Nobody listens there: the refusal that comes back ends no test.
                let _ = socket.send(&[0; 1472]);
                sent += 1;
            }
            clock::sleep(Duration::from_millis(5));
        }
    });
    held.signal("INT");
    let (_, out, err) = held.end();
    let document: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{err}"));
    // A busy machine may be late for a packet, but a queue of 100 packets and 10 ms of 10 Mbit/s
    // are all that the path holds, whatever is offered.
    let faults = document["path"]["faults"].to_string();
    assert!(!faults.contains("held more than planned"), "{faults}");
    let lost = document["path"]["directions"][1]["lost"].to_string();
    assert!(lost.contains("queue_full"), "{lost}");
}

#[test]
fn all_keys_have_their_flags_and_flags_take_the_place_of_keys() {
    if !paths_are_possible() {
        return;
    }
    let file = std::env::temp_dir().join(format!("linerate-keys-{}.toml", std::process::id()));
    std::fs::write(&file, "rate = \"1M\"\nduplicate = \"0.5\"\nseed = 3\n").unwrap();
    let arguments = [
        &ENDS[..],
        &["--plan", file.to_str().unwrap(), "--link", "oc3", "--carrier", "aal5-llcsnap"],
        &["--delay", "1ms", "--jitter", "1ms", "--loss", "1e-3", "--buffer", "90 kB"],
        &["--queue", "red", "--tap", "--json", "--time", "50ms"],
    ];
    let output = run(&arguments.concat());
    std::fs::remove_file(&file).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let plan = &document["path"]["plan"];
    let expected = serde_json::json!({
        "link": "oc3", "carrier": "aal5-llcsnap", "delay": "1ms", "loss": "1e-3", "buffer": "90 kB",
        "queue": "red", "duplicate": "0.5", "seed": 3,
        "jitter": { "most": "1ms", "reorder": false },
    });
    assert_eq!(*plan, expected);
    assert_eq!(document["path"]["datapath"], "tap");
    assert_eq!(document["path"]["mtu_bytes"], 9180);
}

#[test]
fn ctrl_c_prints_the_summary_and_a_kill_leaves_no_device() {
    if !paths_are_possible() {
        return;
    }
    let held = Held::start(&[&ENDS[..], &["--rate", "10M"]].concat());
    held.signal("INT");
    let (code, out, err) = held.end();
    assert_eq!(code, Some(0), "{err}");
    assert!(out.starts_with("path new:left0 - new:right0: 10 Mbit/s\n"), "{out}");
    assert!(out.contains("\n    forward ") && out.contains("\n    backward "), "{out}");

    let held = Held::start(&[&ENDS[..], &["--rate", "10M"]].concat());
    let right = held.right().unwrap();
    held.signal("KILL");
    // The namespace lives on with this descriptor; the device does not.
    eventually("the end of the device", || !has_device(&right, "right0"));
}

#[test]
fn a_killed_laboratory_takes_its_paths_along_and_its_bridge_has_no_port_left() {
    if !paths_are_possible() {
        return;
    }
    let file = std::env::temp_dir().join(format!("linerate-lab-{}.toml", std::process::id()));
    let lab = "host = [{ name = \"a\" }, { name = \"b\" }]\nswitch = [{ name = \"sw\" }]\n\
               [[link]]\nends = [\"a\", \"sw\"]\npath = { rate = \"10 Mbit/s\" }\n\
               [[link]]\nends = [\"sw\", \"b\"]\npath = { delay = \"1 ms\" }\n";
    std::fs::write(&file, lab).unwrap();
    let mut command = Command::new(PROGRAM);
    command.args(["lab", "run", file.to_str().unwrap()]).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let held = Held { process: command.spawn().unwrap() };
    let mut sites = Vec::new();
    eventually("two hosts and a switch with devices", || {
        sites = namespaces_with(held.process.id(), "eth0");
        sites.len() >= 3 && sites.iter().any(|site| has_device(site, "br0"))
    });
    held.signal("KILL");
    std::fs::remove_file(&file).unwrap();
    for site in &sites {
        eventually("the end of the paths", || !has_device(site, "eth0"));
        assert!(!has_device(site, "eth1"), "all of a process's devices go at once");
    }
    // The namespaces live on with these descriptors; nothing in them leads anywhere.
    let kinds = sites
        .iter()
        .flat_map(|site| within(site, || RouteSocket::open().unwrap().list_links().unwrap()));
    let mut names: Vec<String> = kinds.map(|link| link.name).filter(|name| name != "lo").collect();
    names.dedup();
    assert_eq!(names, ["br0"]);
}

#[test]
fn netem_is_for_laboratories() {
    let file = std::env::temp_dir().join(format!("linerate-netem-{}.toml", std::process::id()));
    std::fs::write(&file, "emulator = \"netem\"\ndelay = \"1 ms\"\n").unwrap();
    let output = run(&["--quiet", "--plan", file.to_str().unwrap()]);
    std::fs::remove_file(&file).unwrap();
    assert_eq!(output.status.code(), Some(2));
    let line = error(&output);
    assert!(line.contains("netem carries links of a laboratory alone"), "{line}");
}

#[test]
fn a_device_that_vanishes_ends_the_path_with_one_line() {
    if !paths_are_possible() {
        return;
    }
    let held = Held::start(&[&ENDS[..], &["--quiet", "--rate", "10M"]].concat());
    let right = held.right().unwrap();
    let deleted = within(&right, || {
        Command::new("ip").args(["link", "delete", "right0"]).status().is_ok_and(|it| it.success())
    });
    if !deleted {
        println!("skipped: no program ip");
        return;
    }
    let (code, out, err) = held.end();
    assert_eq!(code, Some(2), "{out}{err}");
    assert_eq!(err.lines().count(), 1, "{err}");
    assert!(err.contains("emulate path on right0: the interface vanished"), "{err}");
}
