//! How a measurement learns what the emulated paths under it did: it asks whoever runs them.
//!
//! An emulator's process listens in the namespaces of its hosts at abstract sockets named
//! `@linerate/path/PID/N`. A measurement sends its target's address and a line end before its
//! first packet and gets `ok COUNT`; after its last it sends `end`, and gets a line of
//! JSON: an [`EmulatedPath`] for each path on the way, over just that time. Only processes of the
//! same user believe each other. Leaves out paths of other machines.

mod teller;
mod watch;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::IpAddr;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use linerate_core::record::{Caveat, CaveatCode, EmulatedPath};
use linerate_sys::fd_passing;

pub use teller::{Site, Teller, Ways, route_device};
pub use watch::{OnWay, PathFacts, PathSite, cause_name, note_queues, path_after_end};

const PREFIX: &str = "linerate/path/";
/// An emulator's process that does not answer for this long is not asked.
const PATIENCE: Duration = Duration::from_secs(2);
/// Longest answer: 64 paths with their series.
const ANSWER_BYTES_MAX: u64 = 64 << 20;

/// Watches the paths under a measurement while it is kept.
#[derive(Debug, Default)]
pub(crate) struct PathWitness {
    streams: Vec<BufReader<UnixStream>>,
}

impl PathWitness {
    /// Asks every emulator that serves the calling thread's namespace; quiet where there is none.
    pub(crate) fn begin_watching(target: IpAddr) -> Self {
        let names = fd_passing::abstract_names(PREFIX).unwrap_or_default();
        let streams = names.iter().filter_map(|name| ask_emulator(name, target.to_canonical()));
        Self { streams: streams.collect() }
    }

    /// The account of each path since the begin.
    pub(crate) fn collect_paths(self) -> Vec<EmulatedPath> {
        self.streams.into_iter().filter_map(answer).flatten().collect()
    }
}

fn ask_emulator(name: &str, target: IpAddr) -> Option<BufReader<UnixStream>> {
    let stream = fd_passing::connect(name).ok()?;
    if !fd_passing::peer_is_same_user(&stream) {
        return None;
    }
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.set_write_timeout(Some(PATIENCE)).ok()?;
    (&stream).write_all(format!("{target}\n").as_bytes()).ok()?;
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    stream.by_ref().take(64).read_line(&mut line).ok()?;
    let count: usize = line.trim_end().strip_prefix("ok ")?.parse().ok()?;
    (count > 0).then_some(stream)
}

fn answer(mut stream: BufReader<UnixStream>) -> Option<Vec<EmulatedPath>> {
    stream.get_mut().write_all(b"end\n").ok()?;
    let mut line = String::new();
    stream.take(ANSWER_BYTES_MAX).read_line(&mut line).ok()?;
    linerate_core::tree::from_json(&line).ok()
}

/// Caveats, one for each path that was not the one that was asked for, or not all the time.
pub(crate) fn caveats(paths: &[EmulatedPath]) -> impl Iterator<Item = Caveat> + '_ {
    paths.iter().filter_map(|path| {
        let (what, advice) = if path.late {
            let advice = "the path was not the planned one: leave the emulator a CPU, lower the \
                          rate, and repeat";
            (path.faults.join("; "), advice)
        } else {
            let advice = "the run is valid; repeat it if differences of a few per mille matter";
            (path.timing_slips()?, advice)
        };
        let detail = format!("path {}: {what}", path.name);
        Some(Caveat::new(CaveatCode::EmulatorLate, detail, advice))
    })
}

#[cfg(test)]
mod tests {
    use linerate_core::record::PathDirection;

    use super::*;

    #[test]
    fn a_path_that_was_not_as_planned_and_one_that_was_late_once_have_a_caveat_each() {
        let path = |late: bool, late_packets: u64| EmulatedPath {
            name: "a eth0 - b eth0".to_owned(),
            late,
            faults: if late { vec!["3 packets were dropped".to_owned()] } else { Vec::new() },
            directions: vec![PathDirection {
                late_packets,
                lateness_max_ns: Some(2_000_000),
                ..PathDirection::default()
            }],
            ..EmulatedPath::default()
        };
        let paths = [path(false, 0), path(true, 5), path(false, 1)];
        let caveats: Vec<Caveat> = caveats(&paths).collect();
        let details: Vec<&str> = caveats.iter().map(|caveat| caveat.detail.as_str()).collect();
        let name = "path a eth0 - b eth0: ";
        assert_eq!(
            details,
            [
                format!("{name}3 packets were dropped"),
                format!("{name}1 packet late by up to 2.0 ms"),
            ]
        );
        assert!(caveats.iter().all(|caveat| caveat.code == CaveatCode::EmulatorLate));
        assert!(caveats[1].advice.starts_with("the run is valid"), "{}", caveats[1].advice);
    }
}
