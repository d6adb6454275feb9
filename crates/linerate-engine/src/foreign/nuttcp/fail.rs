//! Why a test did not come to its end, in this program's words.

use linerate_core::record::{Failure, Fault};
use linerate_proto::dialect::TestFailureReason;
use linerate_proto::nuttcp::{
    LineError, NuttcpClientMachine, NuttcpPeerFault, NuttcpServerMachine,
};

use crate::flow::Words;

const KEPT: &str = "the results so far are kept";

impl Words for NuttcpClientMachine {
    fn failure(peer: &str, reason: TestFailureReason<NuttcpPeerFault>) -> Failure {
        let unreachable = |attempt, reason| Failure::new(Fault::Unreachable, attempt, peer, reason);
        match reason {
            TestFailureReason::Peer(NuttcpPeerFault::Line(error)) => misbehaved(peer, &error),
            TestFailureReason::Peer(NuttcpPeerFault::Refused(reason)) => {
                Failure::new(Fault::PeerRefused, "ask for a test with", peer, reason)
            }
            TestFailureReason::Peer(NuttcpPeerFault::NoTimes(version)) => {
                let reason = format!("version {version} has none, 7.0.1 is the first that does");
                let failure =
                    Failure::new(Fault::PeerIncompatible, "ask nuttcp for", "jitter", reason);
                failure.advise("omit -j and -o")
            }
            TestFailureReason::Silent { awaited, .. } => silent(peer, awaited),
            TestFailureReason::Overdue | TestFailureReason::NoData(_) => {
                unreachable("hear from", "the data did not end in time").advise(KEPT)
            }
            TestFailureReason::Closed | TestFailureReason::Left => {
                unreachable("receive from", "the server closed the control connection").advise(KEPT)
            }
            TestFailureReason::Stopped => unreachable("test with", "stopped before the test began"),
        }
    }
}

impl Words for NuttcpServerMachine {
    fn failure(peer: &str, reason: TestFailureReason<LineError>) -> Failure {
        let unreachable = |attempt, reason| Failure::new(Fault::Unreachable, attempt, peer, reason);
        match reason {
            TestFailureReason::Peer(error) => misbehaved(peer, &error),
            TestFailureReason::Silent { awaited, .. } => silent(peer, awaited),
            TestFailureReason::Stopped => unreachable("serve", "the server is being stopped"),
            TestFailureReason::Closed
            | TestFailureReason::Left
            | TestFailureReason::NoData(_)
            | TestFailureReason::Overdue => {
                unreachable("receive from", "the client closed the control connection")
            }
        }
    }
}

fn misbehaved(peer: &str, error: &LineError) -> Failure {
    Failure::new(Fault::PeerMisbehaved, "talk to", peer, error)
}

/// The failure of a peer that did not send what was awaited.
pub(super) fn silent(peer: &str, awaited: &str) -> Failure {
    let reason = format!("no {awaited} came in time");
    Failure::new(Fault::Unreachable, "hear from", peer, reason)
}
