//! How a receiver waits: asleep, or looking again and again for a bounded time.
//!
//! A sender wakes a receiver that sleeps, on its own time: about a microsecond of each call on the
//! same host. Where datagrams come as fast as possible and one after the other, a receiver that
//! looks again for some microseconds takes that from it. It sleeps as soon as waits are longer, and
//! always where it may use one processor only, which the sender may need.

use std::io;

use linerate_sys::clock::monotonic;
use linerate_sys::datagram_socket::{DatagramSocket, ReceiveBatch};
use linerate_sys::sched::cpus_allowed;

/// Longest that is looked for without sleeping; a mean wait that is longer is slept through.
const LOOK_NS: u64 = 50_000;

/// Waits of one receiver.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// Looking again without a sleep is worth the processor time.
    looks: bool,
    /// Mean of the last waits: a new one counts an eighth.
    wait_ns: u64,
}

impl Patience {
    /// For a test without a pace, or one that would be disturbed for nothing.
    pub(super) fn new(paced: bool) -> Self {
        Self { looks: !paced && cpus_allowed() > 1, wait_ns: 0 }
    }

    /// Takes what is there, or waits for it at most as long as the socket's time-out.
    pub(super) fn receive(
        &mut self,
        batch: &mut ReceiveBatch,
        socket: &DatagramSocket,
    ) -> io::Result<()> {
        if !self.looks {
            return batch.receive(socket);
        }
        let result = batch.receive_waiting(socket);
        if !result.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock) {
            self.learn_wait(0);
            return result;
        }
        let begin = monotonic();
        while self.wait_ns < LOOK_NS && monotonic().nanos_since(begin) < LOOK_NS {
            std::hint::spin_loop();
            let result = batch.receive_waiting(socket);
            if !result.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock) {
                self.learn_wait(monotonic().nanos_since(begin));
                return result;
            }
        }
        let result = batch.receive(socket);
        self.learn_wait(monotonic().nanos_since(begin));
        result
    }

    const fn learn_wait(&mut self, wait_ns: u64) {
        self.wait_ns = (self.wait_ns * 7).saturating_add(wait_ns) / 8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_waits_are_slept_through_and_short_ones_bring_the_looking_back() {
        let mut patience = Patience { looks: true, wait_ns: 0 };
        (0..20).for_each(|_| patience.learn_wait(340_000));
        assert!(patience.wait_ns > LOOK_NS, "datagrams of 1 Gbit/s in batches");
        (0..40).for_each(|_| patience.learn_wait(5_000));
        assert!(patience.wait_ns < LOOK_NS);
        patience.learn_wait(u64::MAX);
    }
}
