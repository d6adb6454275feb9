//! A test of a template as a command.

use std::fmt::Display;

use serde_json::{Map, Value};

use super::{Notes, span};
use crate::record::IpFamily;

/// Seconds that a slot has beside its run: what a calendar keeps (`ROOM_S`), and the connection.
const ROOM_S: f64 = 9.0;
/// Seconds of one piece of a background measurement, which is cut into such.
const PIECE_S: f64 = 60.0;
/// Seconds between two probes, and how many, where a spec says nothing: those of perfSONAR's
/// owping (0.1 s, 100) and ping (1 s, 5).
const LATENCY: (f64, u64) = (0.1, 100);
const RTT: (f64, u64) = (1.0, 5);

/// A command, and how long it takes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ImportedCommand {
    pub(super) command: String,
    pub(super) family: Option<IpFamily>,
    /// Its period, where the test and not a schedule decides.
    pub(super) every_s: Option<u64>,
    /// Its slot; the command's own where nothing is said.
    pub(super) takes_s: Option<u64>,
}

/// The command of a test.
/// # Errors
/// Why there is none.
pub(super) fn run(place: &str, test: &Value, notes: &mut Notes) -> Result<ImportedCommand, String> {
    let kind = test.get("type").and_then(Value::as_str).unwrap_or_default();
    let known = ["throughput", "latency", "latencybg", "rtt", "trace"];
    if !known.contains(&kind) {
        return Err(format!("its test is of type {kind:?}, which has no counterpart"));
    }
    let empty = Map::new();
    let spec = test.get("spec").and_then(Value::as_object).unwrap_or(&empty);
    check_ends(spec, kind)?;
    let family = match spec.get("ip-version").and_then(Value::as_u64) {
        Some(4) => Some(IpFamily::V4),
        Some(6) => Some(IpFamily::V6),
        _ => None,
    };
    let mut spec = Spec { place, spec, flags: Vec::new(), done: Vec::new(), notes };
    spec.mark_used(&["source", "dest", "ip-version", "schema"]);
    let (program, every_s, takes_s) = match kind {
        "throughput" => spec.throughput(),
        "latency" => spec.latency(),
        "latencybg" => spec.background(),
        "rtt" => spec.round_trip(),
        _ => spec.trace_command(),
    };
    spec.note_unused_keys();
    let flags = spec.flags.concat();
    Ok(ImportedCommand { command: format!("{program} {{to}}{flags}"), family, every_s, takes_s })
}

/// A run goes from the first address of a pair to the second.
fn check_ends(spec: &Map<String, Value>, kind: &str) -> Result<(), String> {
    for (key, wanted, needed) in [("source", "address[0]", false), ("dest", "address[1]", true)] {
        let said = spec.get(key).and_then(Value::as_str);
        let inner =
            said.and_then(|template| template.trim().strip_prefix("{%")?.strip_suffix("%}"));
        match (said, inner) {
            (None, _) if !needed => {}
            (None, _) => return Err(format!("its {kind} test has no {key}")),
            (_, Some(inner)) if inner.trim() == wanted => {}
            (Some(said), _) => {
                return Err(format!("the {key} of its {kind} test is {said:?}, not {wanted}"));
            }
        }
    }
    Ok(())
}

type Timed = (&'static str, Option<u64>, Option<u64>);

/// A spec of which key after key becomes a flag.
struct Spec<'a, 'b> {
    place: &'a str,
    spec: &'a Map<String, Value>,
    flags: Vec<String>,
    done: Vec<&'a str>,
    notes: &'b mut Notes,
}

impl Spec<'_, '_> {
    fn mark_used(&mut self, keys: &[&'static str]) {
        self.done.extend(keys);
    }

    fn add_flag(&mut self, flag: &str, value: impl Display) {
        self.flags.push(format!(" {flag}{value}"));
    }

    fn note_key(&mut self, key: &str, what: &str) {
        let value = self.spec.get(key).map_or_else(String::new, Value::to_string);
        self.notes.add_note(self.place, &format!("{key} {value}: {what}"));
    }

    /// A whole number.
    fn take_number(&mut self, key: &'static str) -> Option<u64> {
        let value = self.spec.get(key)?;
        self.done.push(key);
        let number = value.as_u64();
        if number.is_none() {
            self.note_key(key, "is no whole number, and left out");
        }
        number
    }

    /// A duration of ISO 8601, or a number of seconds.
    fn take_seconds(&mut self, key: &'static str) -> Option<f64> {
        let value = self.spec.get(key)?;
        self.done.push(key);
        let found = value.as_f64().or_else(|| span::seconds(value.as_str()?));
        let found = found.filter(|rate| (0.0..=1e6).contains(rate));
        if found.is_none() {
            self.note_key(key, "is no duration, and left out");
        }
        found
    }

    fn is_true(&mut self, key: &'static str) -> bool {
        match self.spec.get(key) {
            Some(Value::Bool(it)) => {
                self.done.push(key);
                *it
            }
            _ => false,
        }
    }

    fn counted(&mut self, key: &'static str, flag: &str) -> Option<u64> {
        let found = self.take_number(key)?;
        self.add_flag(flag, found);
        Some(found)
    }

    fn add_time_flag(&mut self, key: &'static str, flag: &str) -> Option<f64> {
        let found = self.take_seconds(key)?;
        self.add_flag(flag, milliseconds(found));
        Some(found)
    }

    /// The byte of the header has the DSCP in its upper six bits (RFC 2474 §3).
    fn add_dscp_flag(&mut self) {
        let Some(tos) = self.take_number("ip-tos").filter(|tos| *tos < 256) else { return };
        self.add_flag("--dscp=", tos >> 2);
        if tos & 3 != 0 {
            self.note_key("ip-tos", "its lower two bits are ECN's, and left out");
        }
    }

    /// Names what was not used.
    fn note_unused_keys(&mut self) {
        let left: Vec<String> =
            self.spec.keys().filter(|key| !self.done.contains(&key.as_str())).cloned().collect();
        for key in left.iter().filter(|key| *key != "_meta") {
            let what = match key.as_str() {
                "flip" => continue,
                "source-node" | "dest-node" => "an agent is reached at its address",
                "link-rtt" => "the slot has 9 s beside its run",
                "bucket-width" => "histograms have bins of a thousandth of their value",
                _ => "has no counterpart",
            };
            self.note_key(key, what);
        }
    }

    fn throughput(&mut self) -> Timed {
        let udp = self.is_true("udp");
        let time = self.take_seconds("duration").unwrap_or(10.0);
        self.add_flag("-t", milliseconds(time));
        let omit = self.add_time_flag("omit", "-O").unwrap_or_default();
        self.add_time_flag("interval", "-i");
        for (key, flag) in [
            ("parallel", "-P"),
            ("bandwidth", "-b"),
            ("window-size", "-w"),
            ("buffer-length", "-l"),
        ] {
            self.counted(key, flag);
        }
        self.add_dscp_flag();
        if self.is_true("reverse") {
            self.add_flag("-R", "");
        }
        if !udp {
            self.counted("mss", "--set-mss=");
            for (key, flag) in [("no-delay", "-N"), ("zero-copy", "-Z")] {
                if self.is_true(key) {
                    self.add_flag(flag, "");
                }
            }
            self.congestion();
        }
        (if udp { "udp" } else { "tcp" }, None, Some(whole_seconds(time + omit + ROOM_S)))
    }

    fn congestion(&mut self) {
        let Some(name) = self.spec.get("congestion").and_then(Value::as_str) else { return };
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        if !name.is_empty() && name.len() < 16 && name.bytes().all(plain) {
            self.done.push("congestion");
            self.add_flag("-C", name);
        }
    }

    /// Adds the flags of probes by the specification's keys for their count and interval; returns
    /// the seconds that they take.
    fn probes(
        &mut self,
        count_key: &'static str,
        interval_key: &'static str,
        usual: (f64, u64),
    ) -> f64 {
        let count = self.take_number(count_key).unwrap_or(usual.1);
        let interval = self.take_seconds(interval_key).unwrap_or(usual.0);
        self.add_flag("-c", count);
        self.add_flag("-i", milliseconds(interval));
        count as f64 * interval
    }

    fn latency(&mut self) -> Timed {
        let probes = self.probes("packet-count", "packet-interval", LATENCY);
        let wait = self.one_way(f64::MAX);
        ("stamp", None, Some(whole_seconds(probes + wait + ROOM_S)))
    }

    /// Adds the flags that both tests of one-way delay share; returns the seconds that a reply is
    /// waited for.
    fn one_way(&mut self, wait_max: f64) -> f64 {
        // 0 is the tool's own.
        let said = self.take_seconds("packet-timeout").filter(|wait| *wait > 0.0);
        let wait = said.map(|wait| wait.min(wait_max));
        if said != wait {
            self.note_key(
                "packet-timeout",
                &format!("{wait_max} s here, so that a slot has an end"),
            );
        }
        if let Some(wait) = wait {
            self.add_flag("-W", milliseconds(wait));
        }
        if self.spec.get("packet-padding").and_then(Value::as_u64) == Some(0) {
            self.done.push("packet-padding");
        }
        self.add_dscp_flag();
        wait.unwrap_or(1.0)
    }

    /// A measurement that never ends is one of each minute but for what a slot needs to end.
    fn background(&mut self) -> Timed {
        let interval = self.take_seconds("packet-interval").unwrap_or(LATENCY.0).max(0.001);
        let count = self.take_number("packet-count");
        let wait = self.one_way(20.0);
        let said = count.map_or(PIECE_S, |count| count as f64 * interval);
        let every = said.clamp(PIECE_S, 86_400.0).round();
        let run = every - wait - 1.0 - 6.0;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "above 30 s")]
        let sent = (run / interval).floor().max(1.0) as u64;
        self.add_flag("-c", sent);
        self.add_flag("-i", milliseconds(interval));
        let what = format!("is without a pause there, and {run:.0} s of each {every:.0} s here");
        self.notes.add_note(self.place, &what);
        ("stamp", Some(whole_seconds(every)), Some(whole_seconds(every - 1.0)))
    }

    fn round_trip(&mut self) -> Timed {
        let twamp = self.spec.get("protocol").and_then(Value::as_str) == Some("twamp");
        self.mark_used(&["protocol"]);
        let probes = self.probes("count", "interval", RTT);
        let wait = self.add_time_flag("timeout", "-W").unwrap_or(1.0);
        let deadline = self.add_time_flag("deadline", "-w");
        self.counted("length", "-s");
        if !twamp {
            self.counted("ttl", "-t");
            if self.spec.get("fragment").and_then(Value::as_bool) == Some(false) {
                self.done.push("fragment");
                self.add_flag("--dont-fragment", "");
            }
        }
        self.counted("flow-label", "--flow-label=");
        self.add_dscp_flag();
        let takes = (probes + wait).min(deadline.unwrap_or(f64::MAX)) + ROOM_S;
        (if twamp { "stamp" } else { "ping" }, None, Some(whole_seconds(takes)))
    }

    fn trace_command(&mut self) -> Timed {
        self.counted("hops", "-m");
        self.counted("queries", "-c");
        self.add_time_flag("wait", "-W");
        self.add_dscp_flag();
        let kind = self.spec.get("probe-type").and_then(Value::as_str).unwrap_or("udp");
        self.mark_used(&["probe-type"]);
        match kind {
            "icmp" => self.add_flag("--icmp", ""),
            "tcp" => match self.take_number("dest-port") {
                Some(port) => self.add_flag("--tcp=", port),
                None => self.add_flag("--tcp", ""),
            },
            _ => {
                self.counted("dest-port", "--probe-port=");
            }
        }
        ("trace", None, None)
    }
}

/// A span as flags take it.
fn milliseconds(seconds: f64) -> String {
    let ms = (seconds * 1000.0).round();
    if ms % 1000.0 == 0.0 { format!("{}s", ms / 1000.0) } else { format!("{ms}ms") }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "seconds of a slot")]
fn whole_seconds(seconds: f64) -> u64 {
    seconds.ceil() as u64
}
