//! What the ends of a search share: the plan of its stream, and what there is to tell.
//!
//! The receiver tells in a datagram what arrived (`search_receiver`), the sender takes it and
//! changes its pace (`search_sender`); sub-intervals and statuses go to the client's record by the
//! control connection. The machines behind both are in `linerate_core::search`.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use linerate_core::record::{Finish, SearchNews, SearchPlan, SearchSpan, SearchTrial, UdpTest};
use linerate_core::time::MonoTime;
use linerate_core::units::BitRate;

/// Blocking calls of a search come back this often: statuses leave on time at low rates, too.
pub(super) const CALL_TIMEOUT: Duration = Duration::from_millis(2);

/// Most statuses that wait for the control connection.
const TRIALS_MAX: usize = 12_000;

/// Longest time that a datagram waits in a socket's buffer before it is read. A kernel's time of
/// arrival further back, or ahead, is one of a clock that was set meanwhile.
const WAIT_MAX: Duration = Duration::from_secs(2);

/// One end of the stream of a search.
#[derive(Debug)]
pub(super) struct SearchEnd {
    pub(super) plan: SearchPlan,
    /// Length of a sub-interval.
    pub(super) length_ns: u64,
    /// Sub-intervals that the test has.
    pub(super) spans: u64,
    size_bytes: u32,
    packet_bytes: u32,
    news: Mutex<SearchNews>,
}

impl SearchEnd {
    /// The search of a request, whose packets have so many bytes of headers.
    pub(super) fn new(request: &UdpTest, header_bytes: u32) -> Option<Self> {
        let time_ns = match request.finish {
            Finish::TimeNs(ns) => ns,
            Finish::Bytes(_) | Finish::Buffers(_) => u64::MAX,
        };
        Some(Self {
            plan: request.search.clone()?,
            length_ns: request.interval_ns,
            spans: time_ns / request.interval_ns.max(1),
            size_bytes: request.size_bytes,
            packet_bytes: request.size_bytes.saturating_add(header_bytes),
            news: Mutex::default(),
        })
    }

    /// The pace in payload bits of a rate of IP packets.
    pub(super) fn payload_pace(&self, rate: BitRate) -> BitRate {
        payload_pace(rate, self.size_bytes, self.packet_bytes)
    }

    /// A sub-interval has ended.
    pub(super) fn add_span(&self, span: SearchSpan) {
        self.with_news(|news| news.spans.push(span));
    }

    /// Adds the trial of a status that came.
    pub(super) fn add_trial(&self, trial: SearchTrial) {
        self.with_news(|news| {
            if news.trials.len() < TRIALS_MAX {
                news.trials.push(trial);
            }
        });
    }

    /// The news since the last call.
    pub(super) fn take_news(&self) -> SearchNews {
        self.with_news(std::mem::take)
    }

    fn with_news<T>(&self, work: impl FnOnce(&mut SearchNews) -> T) -> T {
        work(&mut self.news.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The pace in payload bits of a rate of IP packets.
pub(super) fn payload_pace(rate: BitRate, size_bytes: u32, packet_bytes: u32) -> BitRate {
    let bps = u128::from(rate.bits_per_sec()) * u128::from(size_bytes);
    let bps = bps / u128::from(packet_bytes.max(1));
    BitRate::from_bits_per_sec(u64::try_from(bps).unwrap_or(u64::MAX).max(1))
}

/// When a buffer arrived, by CLOCK_MONOTONIC: the kernel's time where it is plausible, else that
/// of reading it. `offset_ns` is what CLOCK_REALTIME shows when CLOCK_MONOTONIC shows 0.
pub(super) fn arrival(arrived_ns: Option<u64>, offset_ns: i64, now: MonoTime) -> MonoTime {
    let at = |ns: u64| u64::try_from(ns.cast_signed().saturating_sub(offset_ns)).ok();
    let kernel = arrived_ns.and_then(at).map(MonoTime::from_nanos);
    kernel.filter(|at| *at <= now && now.duration_since(*at) <= WAIT_MAX).unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_of_packets_leaves_the_payload_its_share() {
        // 1472 of 1500 bytes of 300 Mbit/s; and never nothing.
        let pace = |bps| payload_pace(BitRate::from_bits_per_sec(bps), 1472, 1500);
        assert_eq!(pace(300_000_000).bits_per_sec(), 294_400_000);
        assert_eq!(pace(u64::MAX).bits_per_sec(), 18_102_404_851_000_306_651);
        assert_eq!(pace(0).bits_per_sec(), 1);
    }

    #[test]
    fn a_kernel_time_of_a_clock_that_was_set_is_not_believed() {
        let now = MonoTime::from_nanos(10_000_000_000);
        let at = |ns| arrival(ns, 1_000, now).as_nanos();
        assert_eq!(at(Some(9_999_001_000)), 9_999_000_000);
        assert_eq!(at(Some(8_000_001_000)), 8_000_000_000);
        for implausible in
            [None, Some(0), Some(8_000_000_999), Some(10_000_001_001), Some(u64::MAX)]
        {
            assert_eq!(at(implausible), now.as_nanos(), "{implausible:?}");
        }
    }
}
