//! Why a test did not come to its end, in this program's words.

use linerate_core::record::{Failure, Fault};
use linerate_proto::dialect::Reason;
use linerate_proto::nuttcp::{Client, LineError, PeerFault, Server};

use crate::flow::Words;

const KEPT: &str = "the results so far are kept";

impl Words for Client {
    fn failure(peer: &str, reason: Reason<PeerFault>) -> Failure {
        let unreachable = |attempt, reason| Failure::new(Fault::Unreachable, attempt, peer, reason);
        match reason {
            Reason::Peer(PeerFault::Line(error)) => misbehaved(peer, &error),
            Reason::Peer(PeerFault::Refused(reason)) => {
                Failure::new(Fault::PeerRefused, "ask for a test with", peer, reason)
            }
            Reason::Peer(PeerFault::NoTimes(version)) => {
                let reason = format!("version {version} has none, 7.0.1 is the first that does");
                let failure =
                    Failure::new(Fault::PeerIncompatible, "ask nuttcp for", "jitter", reason);
                failure.advise("omit -j and -o")
            }
            Reason::Silent { awaited, .. } => silent(peer, awaited),
            Reason::Overdue | Reason::NoData(_) => {
                unreachable("hear from", "the data did not end in time").advise(KEPT)
            }
            Reason::Closed | Reason::Left => {
                unreachable("receive from", "the server closed the control connection").advise(KEPT)
            }
            Reason::Stopped => unreachable("test with", "stopped before the test began"),
        }
    }
}

impl Words for Server {
    fn failure(peer: &str, reason: Reason<LineError>) -> Failure {
        let unreachable = |attempt, reason| Failure::new(Fault::Unreachable, attempt, peer, reason);
        match reason {
            Reason::Peer(error) => misbehaved(peer, &error),
            Reason::Silent { awaited, .. } => silent(peer, awaited),
            Reason::Stopped => unreachable("serve", "the server is being stopped"),
            Reason::Closed | Reason::Left | Reason::NoData(_) | Reason::Overdue => {
                unreachable("receive from", "the client closed the control connection")
            }
        }
    }
}

fn misbehaved(peer: &str, error: &LineError) -> Failure {
    Failure::new(Fault::PeerMisbehaved, "talk to", peer, error)
}

/// What was awaited did not come.
pub(super) fn silent(peer: &str, awaited: &str) -> Failure {
    let reason = format!("no {awaited} came in time");
    Failure::new(Fault::Unreachable, "hear from", peer, reason)
}
