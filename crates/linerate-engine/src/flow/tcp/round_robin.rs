//! Whole buffers that the streams send in turn, as nuttcp's receiver takes them, one from
//! each stream in order, until the first stream ends.
//!
//! Every stream has its thread all the same; the receiver's order keeps them together. Only the end
//! has to be agreed on: all streams send as many buffers as the one that is furthest.

use std::sync::{Mutex, PoisonError};

/// The state by which the streams of a test take turns.
#[derive(Debug, Default)]
pub(crate) struct StreamRounds {
    state: Mutex<State>,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// Buffers of the stream that is furthest.
    begun: u64,
    /// Somebody's time is over: no new round begins.
    closed: bool,
}

/// The turns of one stream.
#[derive(Clone, Debug)]
pub(crate) struct Turns {
    pub(crate) rounds: std::sync::Arc<StreamRounds>,
    /// Buffers of this stream, where a number of them ends the test.
    pub(crate) count: Option<u64>,
}

impl StreamRounds {
    /// True where a stream that has sent `sent` buffers sends another.
    fn another(&self, sent: u64, over: bool) -> bool {
        let mut rounds = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        rounds.closed |= over;
        if sent >= rounds.begun && !rounds.closed {
            rounds.begun = sent + 1;
        }
        sent < rounds.begun
    }
}

impl Turns {
    /// The same, where the number may be known beforehand.
    pub(super) fn another(&self, sent: u64, over: bool) -> bool {
        match self.count {
            Some(count) => sent < count,
            None => self.rounds.another(sent, over),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_streams_end_with_the_buffers_of_the_one_that_is_furthest() {
        let rounds = StreamRounds::default();
        // Stream a has sent three, b two and c none when c's time is over.
        for sent in 0..3 {
            assert!(rounds.another(sent, false));
        }
        for sent in 0..2 {
            assert!(rounds.another(sent, false));
        }
        for sent in 0..3 {
            assert!(rounds.another(sent, true), "c sends its {sent}");
        }
        assert!(rounds.another(2, false), "b sends its third");
        assert!(!rounds.another(3, false) && !rounds.another(3, true));
    }
}
