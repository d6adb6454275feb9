//! Why a test with an iperf3 server did not come to its end, in this program's words.

use linerate_core::record::{Failure, Fault};
use linerate_proto::iperf3::{ClientEvent, ErrorCode};

use crate::failure::words_of;

/// A server that is busy does not say for how long; a second is as good as any.
const DENIED_MS: u64 = 1000;

/// The failure behind an event of the server `peer` that ends the test.
pub(super) fn refusal(peer: &str, event: ClientEvent) -> Failure {
    match event {
        ClientEvent::Denied => {
            let reason = "it is busy with another test";
            Failure::new(Fault::PeerRefused, "ask for a test with", peer, reason)
                .advise("try again later, or retry automatically with --wait")
                .retry_after(DENIED_MS)
        }
        ClientEvent::Terminated => {
            Failure::new(Fault::Unreachable, "test with", peer, "the server was interrupted")
                .advise("the results so far are kept")
        }
        ClientEvent::Failed(Some((code, errno))) => {
            let kernel = match errno {
                0 => String::new(),
                errno => {
                    format!(": {}", words_of(&std::io::Error::from_raw_os_error(errno)))
                }
            };
            let reason = format!("the server gave up: {code}{kernel}");
            let failure = Failure::new(Fault::PeerRefused, "test with", peer, reason);
            match code {
                ErrorCode::AUTHENTICATION => failure.advise(
                    "give --username and --rsa-public-key-path; servers before 3.17 need \
                     --use-pkcs1-padding, and the clocks must agree",
                ),
                _ => failure,
            }
        }
        ClientEvent::Failed(None) => {
            let reason = "the server aborted without a reason";
            Failure::new(Fault::PeerRefused, "test with", peer, reason)
        }
        _ => Failure::new(Fault::PeerMisbehaved, "test with", peer, "answers out of order"),
    }
}
