//! The loop of a socket that answers: UDP echo and STAMP.

use std::net::IpAddr;
use std::time::Duration;

use linerate_core::time::MonoTime;
use linerate_sys::answer_socket::{AnswerSocket, ReceivedUdpRequest};
use linerate_sys::stop::Stop;
use linerate_sys::{clock, sched};

/// After an answer the next question is looked for at once for so long: a sleeping responder
/// adds 12 µs (p50) to each round trip, a spinning one is idle again after this.
const SPIN_NS: u64 = 100_000;
/// How often a sleeping responder looks at its stop flag.
const SLEEP: Duration = Duration::from_millis(100);
/// Bytes of the largest UDP datagram.
const DATAGRAM_BYTES_MAX: usize = 65_536;

/// Decides whether a source is answered.
pub(super) type Admits<'a> = &'a (dyn Fn(IpAddr) -> bool + Sync);

/// The protocol by which each question is answered.
pub(super) trait Answering {
    /// Answers `question`, which is at the start of `buffer`; whether another one is expected soon.
    fn answer(&mut self, question: &ReceivedUdpRequest, buffer: &mut [u8], now: MonoTime) -> bool;

    /// Called before each sleep.
    fn before_sleep(&mut self) {}
}

/// Answers until `stop` is asked.
pub(super) fn run(socket: &AnswerSocket, answering: &mut impl Answering, stop: &Stop) {
    let mut buffer = vec![0; DATAGRAM_BYTES_MAX];
    let spin_ns = if sched::cpus_allowed() > 1 { SPIN_NS } else { 0 };
    let mut last = MonoTime::default();
    while !stop.is_requested() {
        // An error is one of an earlier answer, say an unreachable asker: not our concern.
        let question = socket.receive(&mut buffer).unwrap_or(None);
        let now = clock::monotonic();
        match question {
            Some(question) => {
                if answering.answer(&question, &mut buffer, now) {
                    last = now;
                }
            }
            None if now.nanos_since(last) < spin_ns => std::hint::spin_loop(),
            None => {
                answering.before_sleep();
                socket.wait_for_datagram(SLEEP);
            }
        }
    }
}
