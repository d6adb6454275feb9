//! The sender's side of a search: takes the receiver's statuses, each on its arrival, and sets the
//! pace that the sending thread keeps.
//!
//! A thread of its own waits for them, since the sending one sleeps until its next datagram is due.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use linerate_core::record::{SearchDelay, SearchPlan, SearchTrial};
use linerate_core::search::{Adjustment, Feedback, StreamCounts};
use linerate_core::time::MonoTime;
use linerate_core::units::BitRate;
use linerate_proto::native::{NativeDatagramHeader, UdpStatus};
use linerate_sys::clock::{monotonic, realtime_offset_ns};
use linerate_sys::datagram_socket::{DatagramSocket, ReceiveBatch};

use super::search::{SearchEnd, arrival};
use super::socket::is_pause;
use crate::flow::endpoint::{StreamOutcome, StreamProgress, Switches};

/// The state that the sending thread and the thread for statuses share.
#[derive(Debug)]
pub(super) struct Steering {
    search: Arc<SearchEnd>,
    tag: u16,
    progress: Arc<StreamProgress>,
    pace_bps: AtomicU64,
    /// The start of sending, which the times of datagrams count from; 0 before it.
    begin_ns: AtomicU64,
    /// When the last datagram of the other end came; 0 before the first.
    heard_ns: AtomicU64,
    over: AtomicBool,
}

/// The state of the search by the statuses so far.
#[derive(Debug)]
struct Course {
    adjustment: Adjustment,
    delay: SearchDelay,
    last: u64,
    told: StreamCounts,
    rtt_min_ns: Option<u64>,
}

impl Steering {
    /// A search at its lowest rate.
    pub(super) fn new(search: Arc<SearchEnd>, tag: u16, progress: Arc<StreamProgress>) -> Self {
        let pace = search.payload_pace(linerate_core::search::rate_of_row(0));
        Self {
            search,
            tag,
            progress,
            pace_bps: AtomicU64::new(pace.bits_per_sec()),
            begin_ns: AtomicU64::new(0),
            heard_ns: AtomicU64::new(0),
            over: AtomicBool::new(false),
        }
    }

    /// Notes that the sender begins.
    pub(super) fn begin_sending(&self, now: MonoTime) {
        self.begin_ns.store(now.as_nanos(), Ordering::Release);
    }

    /// The pace to keep, in payload bits.
    pub(super) fn payload_pace(&self) -> BitRate {
        BitRate::from_bits_per_sec(self.pace_bps.load(Ordering::Relaxed))
    }

    /// When the other end was heard last.
    pub(super) fn last_heard(&self) -> Option<MonoTime> {
        let ns = self.heard_ns.load(Ordering::Relaxed);
        (ns > 0).then(|| MonoTime::from_nanos(ns))
    }

    /// Runs the sending thread's work, and takes statuses on a thread of its own meanwhile.
    pub(super) fn beside(
        &self,
        socket: &DatagramSocket,
        switches: &Switches,
        send: impl FnOnce() -> StreamOutcome,
    ) -> StreamOutcome {
        std::thread::scope(|scope| {
            let listening = std::thread::Builder::new().name("linerate-status".to_owned());
            let listening = listening.spawn_scoped(scope, || self.listen(socket, switches));
            let outcome = match listening {
                Ok(_) => send(),
                Err(error) => {
                    self.progress.failed.store(true, Ordering::Release);
                    self.progress.done.store(true, Ordering::Release);
                    StreamOutcome::failed(format!("start the thread for statuses: {error}"))
                }
            };
            self.over.store(true, Ordering::Relaxed);
            outcome
        })
    }

    /// Takes statuses until the sender is over.
    fn listen(&self, socket: &DatagramSocket, switches: &Switches) {
        socket.note_arrivals();
        let offset_ns = realtime_offset_ns();
        let mut batch = ReceiveBatch::new();
        let mut course = Course::new(&self.search.plan);
        while !self.over.load(Ordering::Relaxed) && !switches.halted() {
            match batch.receive(socket) {
                Ok(()) => {
                    let now = monotonic();
                    for arrived in batch.arrived() {
                        let at = arrival(arrived.arrived_ns, offset_ns, now);
                        self.take_datagram(arrived.bytes, at, &mut course);
                    }
                }
                Err(error) if is_pause(&error) => {}
                // The sending thread meets the same error, and tells of it.
                Err(_) => return,
            }
        }
    }

    fn take_datagram(&self, datagram: &[u8], at: MonoTime, course: &mut Course) {
        let header = NativeDatagramHeader::parse(datagram);
        if header.is_none_or(|header| header.tag != self.tag) {
            return;
        }
        self.heard_ns.store(at.as_nanos(), Ordering::Relaxed);
        let Some(status) = UdpStatus::parse(datagram) else { return };
        let begin_ns = self.begin_ns.load(Ordering::Acquire);
        if status.number <= course.last || begin_ns == 0 || self.has_ended() {
            return;
        }
        let trial = course.take_status(&status, at.as_nanos().saturating_sub(begin_ns));
        let sent = self.progress.counts().datagrams;
        let pace = self.search.payload_pace(course.adjustment.row_rate());
        self.pace_bps.store(pace.bits_per_sec(), Ordering::Relaxed);
        self.search.add_trial(SearchTrial { sent, ..trial });
    }

    fn has_ended(&self) -> bool {
        self.progress.is_done()
    }
}

impl Course {
    fn new(plan: &SearchPlan) -> Self {
        Self {
            adjustment: Adjustment::new(plan.clone()),
            delay: plan.delay,
            last: 0,
            told: StreamCounts::default(),
            rtt_min_ns: None,
        }
    }

    /// Takes a status that came `t_ns` after the sender's start.
    fn take_status(&mut self, status: &UdpStatus, t_ns: u64) -> SearchTrial {
        let missed = status.number.saturating_sub(self.last + 1);
        self.last = status.number;
        let told = std::mem::replace(&mut self.told, status.tally);
        let missing = |tally: &StreamCounts| tally.next.saturating_sub(tally.received);
        let lost = missing(&status.tally).saturating_sub(missing(&told));
        let reordered = status.tally.reordered.saturating_sub(told.reordered);
        let duplicates = status.tally.duplicates.saturating_sub(told.duplicates);
        let sequence_errors = lost.saturating_add(reordered).saturating_add(duplicates);
        let rtt_ns = status
            .newest
            .and_then(|newest| t_ns.checked_sub(newest.stamp_ns)?.checked_sub(newest.held_ns));
        self.rtt_min_ns = self.rtt_min_ns.into_iter().chain(rtt_ns).min();
        let delay_ns = match self.delay {
            SearchDelay::RoundTrip => rtt_ns.zip(self.rtt_min_ns).map(|(rtt, least)| rtt - least),
            SearchDelay::OneWay => status.newest.map(|newest| newest.delay.mean_ns),
        };
        let step = self.adjustment.apply_status(Feedback { sequence_errors, delay_ns });
        SearchTrial {
            t_ns,
            missed: u32::try_from(missed).unwrap_or(u32::MAX),
            sequence_errors,
            delay_ns,
            rtt_ns,
            sent: 0,
            step,
            confirmed: self.adjustment.is_congested(),
            row: self.adjustment.table_row(),
            offered_bps: self.adjustment.row_rate().bits_per_sec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use linerate_core::record::SearchStep;
    use linerate_core::search::DelayRange;
    use linerate_proto::native::Newest;

    use super::*;

    const MS: u64 = 1_000_000;

    fn status(number: u64, received: u64, next: u64, times: Option<[u64; 3]>) -> UdpStatus {
        UdpStatus {
            tag: 1,
            t_ns: 0,
            number,
            tally: StreamCounts { received, next, ..StreamCounts::default() },
            newest: times.map(|[stamp_ms, held_ms, mean_ms]| Newest {
                stamp_ns: stamp_ms * MS,
                held_ns: held_ms * MS,
                delay: DelayRange { min_ns: 0, mean_ns: mean_ms * MS, max_ns: u64::MAX },
            }),
        }
    }

    #[test]
    fn a_round_trip_is_from_sending_to_the_status_without_the_time_held() {
        let mut course = Course::new(&SearchPlan::default());
        // Sent at 10, held for 8, back at 60: 42 ms, the smallest so far.
        let trial = course.take_status(&status(1, 5, 5, Some([10, 8, 500])), 60 * MS);
        assert_eq!((trial.rtt_ns, trial.delay_ns), (Some(42 * MS), Some(0)));
        assert_eq!((trial.step, trial.row, trial.offered_bps), (SearchStep::Fast, 10, 10_000_000));
        // Sent at 60, held for 8, back at 160: 92 ms, 50 above the smallest.
        let trial = course.take_status(&status(2, 9, 9, Some([60, 8, 0])), 160 * MS);
        assert_eq!((trial.rtt_ns, trial.delay_ns), (Some(92 * MS), Some(50 * MS)));
        assert_eq!((trial.step, trial.row), (SearchStep::Hold, 10));
        // Nothing arrived: no delay, and a status of times that cannot be has none either.
        let trial = course.take_status(&status(3, 9, 9, None), 200 * MS);
        assert_eq!((trial.rtt_ns, trial.step), (None, SearchStep::Hold));
        let trial = course.take_status(&status(4, 9, 9, Some([u64::MAX / MS, 0, 0])), 250 * MS);
        assert_eq!(trial.rtt_ns, None);
    }

    #[test]
    fn one_way_the_mean_of_the_status_counts() {
        let plan = SearchPlan { delay: SearchDelay::OneWay, ..SearchPlan::default() };
        let mut course = Course::new(&plan);
        let trial = course.take_status(&status(1, 5, 5, Some([10, 8, 29])), 900 * MS);
        assert_eq!((trial.delay_ns, trial.step), (Some(29 * MS), SearchStep::Fast));
    }

    #[test]
    fn a_lost_status_is_noticed_and_the_next_one_tells_its_part() {
        let mut course = Course::new(&SearchPlan::default());
        course.take_status(&status(1, 100, 100, Some([10, 0, 0])), 20 * MS);
        // Of 100 more, 8 and 7 are missing; then 5 of them come late.
        let trial = course.take_status(&status(4, 285, 300, Some([150, 0, 0])), 160 * MS);
        assert_eq!((trial.missed, trial.sequence_errors), (2, 15));
        assert_eq!((trial.step, trial.row), (SearchStep::Down, 9));
        let late = UdpStatus {
            tally: StreamCounts { received: 390, next: 400, reordered: 5, duplicates: 1 },
            ..status(5, 0, 0, Some([200, 0, 0]))
        };
        let trial = course.take_status(&late, 210 * MS);
        // No more are missing than before: five came late, and one twice.
        assert_eq!((trial.missed, trial.sequence_errors), (0, 6));
    }
}
