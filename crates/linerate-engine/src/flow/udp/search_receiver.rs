//! The receiver's side of a search: sub-intervals by the times of arrival, and the datagrams that
//! tell the sender what became of its own.

use std::sync::Arc;
use std::time::Duration;

use linerate_core::search::{StampedArrival, StreamCounts, SubIntervalMeter};
use linerate_core::time::MonoTime;
use linerate_proto::native::{Newest, UdpStatus, UdpTracker};
use linerate_sys::clock::realtime_offset_ns;
use linerate_sys::datagram_socket::DatagramSocket;

use super::search::{SearchEnd, arrival};

/// Tells of the arrivals of one stream.
pub(super) struct Reporter {
    search: Arc<SearchEnd>,
    meter: SubIntervalMeter,
    tag: u16,
    begin: MonoTime,
    /// Statuses that were sent.
    number: u64,
    next: MonoTime,
    offset_ns: i64,
    /// Sub-intervals that have ended.
    ended: u64,
    last_stamp_ns: Option<u64>,
}

impl Reporter {
    /// The stream may begin.
    pub(super) fn starting_at(now: MonoTime, search: Arc<SearchEnd>, tag: u16) -> Self {
        Self {
            meter: SubIntervalMeter::new(search.length_ns),
            search,
            tag,
            begin: now,
            number: 0,
            next: now,
            offset_ns: realtime_offset_ns(),
            ended: 0,
            last_stamp_ns: None,
        }
    }

    /// A datagram is about to be counted: sub-intervals that ended before it are closed.
    #[inline]
    pub(super) fn arriving(
        &mut self,
        stamp_ns: u64,
        arrived_ns: Option<u64>,
        now: MonoTime,
        tracker: &UdpTracker,
    ) {
        let at_ns = arrival(arrived_ns, self.offset_ns, now).as_nanos();
        self.meter.start_at_arrival(at_ns);
        while self.meter.is_beyond(at_ns) {
            self.close_span(tracker);
        }
        // Datagrams of one call carry one time and queue behind each other: the first counts.
        if self.last_stamp_ns.replace(stamp_ns) != Some(stamp_ns) {
            self.meter.record_arrival(StampedArrival { stamp_ns, at_ns });
        }
    }

    #[cold]
    fn close_span(&mut self, tracker: &UdpTracker) {
        let span = self.meter.close_sub_interval(current_tally(tracker));
        if self.ended < self.search.spans {
            self.search.add_span(span);
        }
        self.ended += 1;
    }

    /// Tells the sender when it is time; from the first arrival on.
    pub(super) fn send_due_status(
        &mut self,
        socket: &DatagramSocket,
        now: MonoTime,
        tracker: &UdpTracker,
    ) {
        if now < self.next {
            return;
        }
        let feedback = Duration::from_nanos(self.search.plan.feedback_ns);
        self.next =
            if now.duration_since(self.next) < feedback { self.next } else { now } + feedback;
        if tracker.next_expected() == 0 {
            return;
        }
        self.number += 1;
        let newest = self.meter.status();
        let status = UdpStatus {
            tag: self.tag,
            t_ns: now.nanos_since(self.begin),
            number: self.number,
            tally: current_tally(tracker),
            newest: newest
                .map(|(delay, newest)| Newest::from_arrival(newest, delay, now.as_nanos())),
        };
        // One that is lost or refused is followed by the next, which tells as much.
        let _ = socket.send(&status.to_bytes());
    }

    /// The sender sent for `sent_ns` in all: its last whole sub-interval has ended.
    pub(super) fn end_last_span(&mut self, sent_ns: u64, tracker: &UdpTracker) {
        if self.meter.is_whole(sent_ns) {
            self.close_span(tracker);
        }
    }
}

fn current_tally(tracker: &UdpTracker) -> StreamCounts {
    let (all, _) = tracker.tallies(None, None, 1);
    StreamCounts {
        received: all.received,
        next: tracker.next_expected(),
        reordered: all.reordered,
        duplicates: all.duplicates,
    }
}
