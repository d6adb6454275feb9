//! Why a test did not come to its end, in this program's words.

use std::io;

use linerate_core::record::{Failure, FailureCode, Fault};
use linerate_proto::dialect::TestFailureReason;
use linerate_proto::iperf3::{
    ErrorCode, Iperf3ClientMachine, Iperf3PeerFault, Iperf3ServerMachine, WireError,
};

use crate::failure::words_of;
use crate::flow::Words;

/// A server that is busy does not say for how long; a second is as good as any.
const DENIED_MS: u64 = 1000;
const KEPT: &str = "the results so far are kept";

impl Words for Iperf3ClientMachine {
    fn failure(peer: &str, reason: TestFailureReason<Iperf3PeerFault>) -> Failure {
        let unreachable = |attempt: &str, reason: &str| {
            Failure::new(Fault::Unreachable, attempt, peer, reason).advise(KEPT)
        };
        match reason {
            TestFailureReason::Peer(fault) => refusal(peer, fault),
            TestFailureReason::Silent { .. }
            | TestFailureReason::Left
            | TestFailureReason::Overdue => unreachable("hear from", "the server fell silent"),
            TestFailureReason::Closed => closed(peer),
            TestFailureReason::NoData(max) => {
                unreachable("receive from", &format!("nothing came for {} ms", max.as_millis()))
                    .with_code(FailureCode::NoData)
            }
            TestFailureReason::Stopped => {
                Failure::new(Fault::Unreachable, "test with", peer, "stopped before the test began")
            }
        }
    }
}

impl Words for Iperf3ServerMachine {
    fn failure(peer: &str, reason: TestFailureReason<WireError>) -> Failure {
        let serve = |fault, reason: &str| Failure::new(fault, "serve", peer, reason);
        match reason {
            TestFailureReason::Peer(error) => misbehaved(peer, &error),
            TestFailureReason::Silent { awaited, within } => {
                let attempt = format!("wait for {awaited} from");
                let reason = format!("nothing came within {within:?}");
                Failure::new(Fault::PeerMisbehaved, attempt, peer, reason)
            }
            TestFailureReason::Closed => closed(peer),
            TestFailureReason::Left | TestFailureReason::NoData(_) => {
                serve(Fault::Unreachable, "the client aborted the test")
                    .with_code(FailureCode::Aborted)
            }
            TestFailureReason::Overdue => {
                serve(Fault::PeerMisbehaved, "the client did not end the test in time")
            }
            TestFailureReason::Stopped => serve(Fault::Unreachable, "the server is being stopped"),
        }
    }
}

fn misbehaved(peer: &str, error: &WireError) -> Failure {
    Failure::new(Fault::PeerMisbehaved, "talk iperf3 to", peer, error)
}

fn closed(peer: &str) -> Failure {
    let reason = "the other end closed the control connection";
    Failure::new(Fault::Unreachable, "receive from", peer, reason)
        .advise("see that end's messages; the results so far are kept")
        .with_code(FailureCode::Closed)
}

/// The failure behind what the server `peer` did or said.
fn refusal(peer: &str, fault: Iperf3PeerFault) -> Failure {
    match fault {
        Iperf3PeerFault::Wire(error) => misbehaved(peer, &error),
        Iperf3PeerFault::Denied => {
            let reason = "it is busy with another test";
            Failure::new(Fault::PeerRefused, "ask for a test with", peer, reason)
                .advise("try again later, or retry automatically with --wait")
                .retry_after(DENIED_MS)
        }
        Iperf3PeerFault::Terminated => {
            Failure::new(Fault::Unreachable, "test with", peer, "the server was interrupted")
                .advise(KEPT)
                .with_code(FailureCode::Interrupted)
        }
        Iperf3PeerFault::Failed(Some((code, errno))) => {
            let kernel = match errno {
                0 => String::new(),
                errno => format!(": {}", words_of(&io::Error::from_raw_os_error(errno))),
            };
            let reason = format!("the server gave up: {code}{kernel}");
            let failure = Failure::new(Fault::PeerRefused, "test with", peer, reason)
                .with_code(FailureCode::Peer(i16::try_from(code.0).unwrap_or(i16::MAX)));
            match code {
                ErrorCode::AUTHENTICATION => failure.advise(
                    "give --username and --rsa-public-key-path; servers before 3.17 need \
                     --use-pkcs1-padding, and the clocks must agree",
                ),
                _ => failure,
            }
        }
        Iperf3PeerFault::Failed(None) => {
            let reason = "the server aborted without a reason";
            Failure::new(Fault::PeerRefused, "test with", peer, reason)
        }
    }
}
