//! How a measurement learns what the emulated paths under it did: it asks whoever runs them.
//!
//! An emulator's process listens in the namespaces of its hosts at abstract sockets named
//! `@linerate/path/PID/N`. A measurement sends its target's address and a line end before its
//! first packet and gets `ok COUNT`; after its last it sends `end`, and gets a line of JSON: an
//! [`EmulatedPath`] for each path on the way, over just that time. Only processes of the same user
//! believe each other. Leaves out paths of other machines.

mod teller;
mod watch;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::IpAddr;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use linerate_core::record::{Caveat, CaveatCode, EmulatedPath};
use linerate_sys::fd_passing;

pub use teller::{OnWay, Site, Teller, Ways, route_device};
pub use watch::{PathFacts, PathSite, cause_name, ended, note_queues};

const PREFIX: &str = "linerate/path/";
/// An emulator's process that does not answer for this long is not asked.
const PATIENCE: Duration = Duration::from_secs(2);
/// Longest answer: 64 paths with their series.
const ANSWER_BYTES_MAX: u64 = 64 << 20;

/// Watches the paths under a measurement while it is kept.
#[derive(Debug, Default)]
pub(crate) struct Witness {
    streams: Vec<BufReader<UnixStream>>,
}

impl Witness {
    /// Asks every emulator that serves the calling thread's namespace; quiet where there is none.
    pub(crate) fn begin(target: IpAddr) -> Self {
        let names = fd_passing::abstract_names(PREFIX).unwrap_or_default();
        let streams = names.iter().filter_map(|name| ask(name, target.to_canonical()));
        Self { streams: streams.collect() }
    }

    /// What the paths did since the begin.
    pub(crate) fn end(self) -> Vec<EmulatedPath> {
        self.streams.into_iter().filter_map(answer).flatten().collect()
    }
}

fn ask(name: &str, target: IpAddr) -> Option<BufReader<UnixStream>> {
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
    serde_json::from_str(&line).ok()
}

/// One caveat for each path that was not the one that was asked for.
pub(crate) fn caveats(paths: &[EmulatedPath]) -> impl Iterator<Item = Caveat> + '_ {
    paths.iter().filter(|path| path.late).map(|path| {
        let detail = format!("path {}: {}", path.name, path.faults.join("; "));
        let advice = "what was measured is not the planned path: leave the emulator a processor, \
                      lower the rate, and repeat";
        Caveat::new(CaveatCode::EmulatorLate, detail, advice)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_path_that_was_not_as_planned_gives_a_caveat() {
        let path = |late: bool| EmulatedPath {
            name: "a eth0 - b eth0".to_owned(),
            late,
            faults: vec!["backward: 3 packets were dropped".to_owned()],
            ..EmulatedPath::default()
        };
        let paths = [path(false), path(true)];
        let caveats: Vec<Caveat> = caveats(&paths).collect();
        assert_eq!(caveats.len(), 1);
        assert_eq!(caveats[0].code, CaveatCode::EmulatorLate);
        assert_eq!(caveats[0].detail, "path a eth0 - b eth0: backward: 3 packets were dropped");
    }
}
