//! Buffers dealt out to the streams in turn, as nuttcp's receiver takes them: whole ones, one from
//! each stream in order, until the first stream ends.
//!
//! Every stream has its thread all the same; the receiver's order keeps them together. Only the end
//! has to be agreed on: all streams send as many buffers as the one that is furthest.

use std::io;
use std::sync::{Mutex, PoisonError};

use linerate_core::time::MonoTime;
use linerate_sys::clock::{monotonic, sleep_until};

use super::data::{Counted, Sender, is_pause, soon};
use super::outlet::Outlet;
use super::pace::Pacer;
use crate::failure::words_of;

/// What the streams of a test agree on.
#[derive(Debug, Default)]
pub(crate) struct Dealer {
    state: Mutex<Rounds>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Rounds {
    /// Buffers of the stream that is furthest.
    begun: u64,
    /// Somebody's time is over: no new round begins.
    closed: bool,
}

/// A stream's place among those that are dealt to.
#[derive(Clone, Debug)]
pub(crate) struct Dealt {
    pub(crate) dealer: std::sync::Arc<Dealer>,
    /// Buffers of this stream, where a number of them ends the test.
    pub(crate) count: Option<u64>,
}

impl Dealer {
    /// Whether a stream that has sent `sent` buffers sends another.
    fn another(&self, sent: u64, over: bool) -> bool {
        let mut rounds = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        rounds.closed |= over;
        if sent >= rounds.begun && !rounds.closed {
            rounds.begun = sent + 1;
        }
        sent < rounds.begun
    }
}

impl Dealt {
    fn another(&self, sent: u64, over: bool) -> bool {
        match self.count {
            Some(count) => sent < count,
            None => self.dealer.another(sent, over),
        }
    }
}

impl Sender {
    /// Writes whole buffers until the streams agree that it is over.
    pub(super) fn write_dealt(
        &self,
        (begin, deadline): (MonoTime, MonoTime),
        dealt: &Dealt,
        (outlet, counted): (&mut Outlet<'_>, &mut Counted),
    ) -> (u64, u64, Option<String>) {
        let mut pacer = self.pace.map(|rate| Pacer::starting_at(rate, begin));
        let whole = self.payload.length();
        let (mut total, mut calls, mut sent) = (0, 0, 0);
        while dealt.another(sent, monotonic() >= deadline || self.switches.stopped()) {
            let mut left = whole;
            while left > 0 {
                if self.switches.halted() {
                    return (total, calls, None);
                }
                self.note(counted, (monotonic(), begin), total);
                if let Some(due) = pacer.map(|pacer| pacer.due()).filter(|due| *due > monotonic()) {
                    sleep_until(due.min(soon()));
                    continue;
                }
                let wanted = pacer.map_or(left, |pacer| pacer.write_bytes(left));
                calls += 1;
                let count = match outlet.send(&self.stream, wanted) {
                    Ok(count) => count,
                    Err(error) if is_pause(&error) => 0,
                    Err(error) => return (total, calls, Some(said(&error))),
                };
                left -= count;
                total += count as u64;
                self.progress.bytes.store(total, std::sync::atomic::Ordering::Relaxed);
                if let Some(pacer) = &mut pacer {
                    pacer.wrote(count, monotonic());
                }
            }
            sent += 1;
        }
        (total, calls, None)
    }
}

fn said(error: &io::Error) -> String {
    format!("write: {}", words_of(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_streams_end_with_the_buffers_of_the_one_that_is_furthest() {
        let dealer = Dealer::default();
        // Stream a has sent three, b two and c none when c's time is over.
        for sent in 0..3 {
            assert!(dealer.another(sent, false));
        }
        for sent in 0..2 {
            assert!(dealer.another(sent, false));
        }
        for sent in 0..3 {
            assert!(dealer.another(sent, true), "c sends its {sent}");
        }
        assert!(dealer.another(2, false), "b sends its third");
        assert!(!dealer.another(3, false) && !dealer.another(3, true));
    }
}
