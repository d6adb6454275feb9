//! What a data thread shares with the thread that watches it, and what it leaves behind.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use linerate_core::record::{DatagramCounts, DatagramsSent, ReceivedDatagrams, SentDatagrams};
use linerate_core::time::MonoTime;
use linerate_sys::thread::{ThreadCost, schedule_of};

/// Blocking calls come back this often to look at the flags.
pub(super) const CALL_TIMEOUT: Duration = Duration::from_millis(20);

/// Flags of a whole test at one end.
#[derive(Debug, Default)]
pub(super) struct Switches {
    /// Senders stop as if their time were up.
    pub(super) stop_sending: AtomicBool,
    /// Everybody leaves at once.
    pub(super) halt: AtomicBool,
}

/// Counters and flags of one stream.
#[derive(Debug, Default)]
pub(super) struct Progress {
    counts: Mutex<DatagramCounts>,
    /// What the sender has sent in all, by its own word or the other end's, and since when that is
    /// known here.
    sent: Mutex<Option<(DatagramsSent, MonoTime)>>,
    /// A sender has sent everything, a receiver has taken everything.
    pub(super) done: AtomicBool,
    /// The stream was given up.
    pub(super) failed: AtomicBool,
    /// The kernel's number of the thread; 0 before it runs.
    pub(super) thread: AtomicU32,
}

impl Progress {
    /// The counts so far, consistent with each other.
    pub(super) fn counts(&self) -> DatagramCounts {
        *lock(&self.counts)
    }

    /// Shows new counts.
    pub(super) fn show(&self, counts: DatagramCounts) {
        *lock(&self.counts) = counts;
    }

    /// What the sender has sent in all, once it is known.
    pub(super) fn sent(&self) -> Option<DatagramsSent> {
        self.sent_since().map(|(sent, _)| sent)
    }

    /// The same, and since when it is known.
    pub(super) fn sent_since(&self) -> Option<(DatagramsSent, MonoTime)> {
        *lock(&self.sent)
    }

    /// The sender is done; what it says later changes nothing.
    pub(super) fn tell_sent(&self, sent: DatagramsSent, now: MonoTime) {
        lock(&self.sent).get_or_insert((sent, now));
    }

    /// Processor time and waiting for a processor so far, while the thread runs.
    pub(super) fn schedule(&self) -> Option<(u64, u64)> {
        match self.thread.load(Ordering::Relaxed) {
            0 => None,
            thread => schedule_of(thread),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a stream did at this end.
#[derive(Clone, Debug, Default)]
pub(super) struct Outcome {
    pub(super) sent: Option<SentDatagrams>,
    pub(super) received: Option<ReceivedDatagrams>,
    /// Start of the measured span, where anything was measured.
    pub(super) begin: Option<MonoTime>,
    pub(super) span_ns: u64,
    pub(super) io_calls: u64,
    pub(super) cost: ThreadCost,
    pub(super) failure: Option<String>,
    pub(super) technique: &'static str,
}

/// The call came back to let the loop look at its flags. A refusal is that of an earlier datagram
/// whose port was closed; whether the other end is there is told by its signs of life.
pub(super) fn is_pause(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, HostUnreachable, NetworkUnreachable};
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(
        error.kind(),
        Interrupted
            | TimedOut
            | WouldBlock
            | ConnectionRefused
            | HostUnreachable
            | NetworkUnreachable
    )
}
