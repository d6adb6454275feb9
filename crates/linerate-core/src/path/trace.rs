//! A link whose packets leave at recorded times: a trace of delivery opportunities.
//!
//! Mahimahi's format: each line of the file is a time in whole milliseconds at which 1504 bytes
//! may leave; after its last time the trace begins again (mahimahi's link_queue, netravali et al.
//! 2015). An opportunity that finds nothing to send is lost; what is left of one when a packet is
//! finished goes to the next packet.

use super::queue::Queue;
use super::{Backlog, Element, Outlet, Packet};
use crate::time::MonoTime;

/// Bytes of one opportunity.
pub const OPPORTUNITY_BYTES: u32 = 1504;

/// Most opportunities that a trace may have: an hour at 12 Mbit/s a millisecond.
pub const OPPORTUNITIES_MAX: usize = 10_000_000;

/// Times at which a packet may leave, in milliseconds from the start of the trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    times_ms: Vec<u64>,
}

/// Latest time of a trace, ms: a year, so that no round of it is beyond the clock's 584 years.
const TIME_MS_MAX: u64 = 365 * 86_400_000;

/// A text that is no trace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    /// A line is no whole number.
    #[error("line {line}: {text:?} is not a time in whole milliseconds")]
    NotATime {
        /// Number of the line, from 1.
        line: usize,
        /// Beginning of the line.
        text: String,
    },
    /// A time that is before the one of the line above.
    #[error("line {line}: the time is before the one above it")]
    GoesBack {
        /// Number of the line, from 1.
        line: usize,
    },
    /// No line, or no time above 0, with which it could begin again.
    #[error("the trace has no time above 0")]
    Empty,
    /// A time with which no link could be computed.
    #[error("line {line}: the time is beyond {TIME_MS_MAX} ms, which is a year")]
    TooLate {
        /// Number of the line, from 1.
        line: usize,
    },
    /// The name of a file where its text is needed.
    #[error(
        "{name:?} is the name of a file; the trace itself stands here, its lines with \\n between \
         them, and linerate path --plan alone reads files"
    )]
    FileName {
        /// Beginning of the text.
        name: String,
    },
    /// Longer than memory is meant for.
    #[error("the trace has more than {OPPORTUNITIES_MAX} lines")]
    TooLong,
}

impl Trace {
    /// Reads a trace.
    /// # Errors
    /// [`TraceError`] with the line that does not fit.
    pub fn from_text(text: &str) -> Result<Self, TraceError> {
        if Self::is_file_name(text) {
            return Err(TraceError::FileName { name: text.trim().chars().take(40).collect() });
        }
        let mut times_ms: Vec<u64> = Vec::new();
        for (index, text) in text.lines().enumerate() {
            let line = index + 1;
            if text.trim().is_empty() {
                continue;
            }
            let not_a_time =
                |_| TraceError::NotATime { line, text: text.chars().take(40).collect() };
            let time = text.trim().parse().map_err(not_a_time)?;
            if times_ms.last().is_some_and(|&last| time < last) {
                return Err(TraceError::GoesBack { line });
            }
            if time > TIME_MS_MAX {
                return Err(TraceError::TooLate { line });
            }
            if times_ms.len() == OPPORTUNITIES_MAX {
                return Err(TraceError::TooLong);
            }
            times_ms.push(time);
        }
        match times_ms.last() {
            Some(1..) => Ok(Self { times_ms }),
            _ => Err(TraceError::Empty),
        }
    }

    /// True when a text is no trace but the name of its file: one line that is no number.
    pub fn is_file_name(text: &str) -> bool {
        let text = text.trim();
        !text.is_empty() && !text.contains('\n') && text.parse::<f64>().is_err()
    }

    /// Length of one round of the trace.
    pub fn length_ms(&self) -> u64 {
        self.times_ms.last().copied().unwrap_or(0)
    }

    /// Mean rate over a round, in bit/s.
    pub fn mean_bps(&self) -> f64 {
        let bits = self.times_ms.len() as f64 * f64::from(OPPORTUNITY_BYTES) * 8.0;
        bits / (self.length_ms() as f64 / 1000.0)
    }
}

/// A link that follows a trace.
pub struct TraceLink {
    trace: Trace,
    start: MonoTime,
    queue: Box<dyn Queue>,
    /// The packet at the head and its bytes that have not left yet.
    head: Option<(Packet, u32)>,
    round: u64,
    index: usize,
}

impl TraceLink {
    /// A link whose trace begins at `start`.
    pub fn new(trace: Trace, queue: impl Queue + 'static, start: MonoTime) -> Self {
        Self { trace, start, queue: Box::new(queue), head: None, round: 0, index: 0 }
    }

    /// The time of the next opportunity.
    fn opportunity(&self) -> MonoTime {
        let ms = self.round * self.trace.length_ms() + self.trace.times_ms[self.index];
        MonoTime::from_nanos(self.start.as_nanos() + ms * 1_000_000)
    }

    const fn pass_on(&mut self) {
        self.index += 1;
        if self.index == self.trace.times_ms.len() {
            self.index = 0;
            self.round += 1;
        }
    }

    /// Skips the opportunities before `at`, which found nothing to send.
    fn skip_until(&mut self, at: MonoTime) {
        let round_ns = self.trace.length_ms() * 1_000_000;
        let behind = at.nanos_since(self.opportunity()) / round_ns;
        self.round += behind.saturating_sub(1);
        while self.opportunity() < at {
            self.pass_on();
        }
    }

    fn send_opportunity(&mut self, at: MonoTime, out: &mut Outlet) {
        let mut room = OPPORTUNITY_BYTES;
        while let Some((packet, left)) = self.head {
            if left > room {
                self.head = Some((packet, left - room));
                return;
            }
            room -= left;
            out.forward(at, packet);
            self.head = self.queue.get(at, out).map(|packet| (packet, packet.ip_bytes));
        }
    }
}

impl Element for TraceLink {
    fn receive(&mut self, at: MonoTime, packet: Packet, out: &mut Outlet) {
        if self.head.is_some() {
            self.queue.enqueue(at, packet, out);
        } else if let Some(packet) = self.queue.pass_through(at, packet, out) {
            self.skip_until(at);
            self.head = Some((packet, packet.ip_bytes));
        }
    }

    fn release(&mut self, now: MonoTime, out: &mut Outlet) {
        while self.head.is_some() && self.opportunity() <= now {
            let at = self.opportunity();
            self.pass_on();
            self.send_opportunity(at, out);
        }
    }

    fn next(&self) -> Option<MonoTime> {
        self.head.map(|_| self.opportunity())
    }

    fn backlog(&self, _: MonoTime) -> Backlog {
        let mut waiting = self.queue.backlog();
        if let Some((_, left)) = self.head {
            waiting.packets += 1;
            waiting.bytes += u64::from(left);
        }
        waiting
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{packet, send_packets, time_at_ns};
    use super::*;
    use crate::path::{Limit, TailDrop};

    const MS: u64 = 1_000_000;

    fn trace_link(text: &str) -> TraceLink {
        let trace = Trace::from_text(text).expect("a trace");
        TraceLink::new(trace, TailDrop::new(Limit::Packets(1000)), time_at_ns(0))
    }

    fn left_ms(out: &Outlet) -> Vec<u64> {
        out.departures.iter().map(|left| left.at.as_nanos() / MS).collect()
    }

    #[test]
    fn packets_leave_at_the_times_of_the_trace_again_and_again() {
        // One at 2, two at 5; then 7, 10, 10.
        let out = send_packets(&mut trace_link("2\n5\n5\n"), 6, 1504, 1);
        assert_eq!(left_ms(&out), [2, 5, 5, 7, 10, 10]);
    }

    #[test]
    fn a_short_packet_leaves_room_for_the_next_and_a_long_one_takes_several() {
        let out = send_packets(&mut trace_link("1\n2\n3\n4\n"), 3, 752, 1);
        assert_eq!(left_ms(&out), [1, 1, 2]);
        let out = send_packets(&mut trace_link("1\n2\n3\n4\n"), 2, 3008, 1);
        assert_eq!(left_ms(&out), [2, 4]);
    }

    #[test]
    fn opportunities_that_find_nothing_are_gone() {
        let mut link = trace_link("1\n2\n3\n");
        let mut out = Outlet::default();
        link.receive(time_at_ns(1_000_000 * MS + MS / 2), packet(1504), &mut out);
        // 1,000,000 = 333,333 rounds of 3 ms and 1 ms more: the next is at 1,000,001 ms.
        assert_eq!(link.next(), Some(time_at_ns(1_000_001 * MS)));
    }

    #[test]
    fn what_is_no_trace_is_refused_with_its_line() {
        let refused = |text: &str| Trace::from_text(text).expect_err("no trace").to_string();
        assert_eq!(refused("1\nx\n"), "line 2: \"x\" is not a time in whole milliseconds");
        assert_eq!(refused("2\n1\n"), "line 2: the time is before the one above it");
        assert_eq!(refused("0\n0\n"), "the trace has no time above 0");
        assert_eq!(refused(""), "the trace has no time above 0");
        assert!(refused("att.down").starts_with("\"att.down\" is the name of a file"));
        assert_eq!(refused("1.5"), "line 1: \"1.5\" is not a time in whole milliseconds");
    }
}
