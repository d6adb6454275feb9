//! What this host adds to a round trip: stop-and-wait echo on loopback, which has no path. Half of
//! its probes against the other half (A/A) shows the smallest difference that means anything, and
//! some more with kernel timestamps show which of those come.

use std::net::{Ipv4Addr, SocketAddr};

use linerate_core::record::{Failure, PingMode, PingPlan};
use linerate_core::stats::{Moments, Sorted, median, median_interval};
use linerate_core::time::MonoTime;
use linerate_proto::echo::EchoTrackerLimits;
use linerate_sys::stop::Stop;
use linerate_sys::{clock, sched, timestamps};
use serde::Serialize;

use super::drive::{ProbePace, ProbeRunEnd, ProbeRunRules, Sink, drive_probes};
use super::socket_wire::{AnswerWaitMode, SocketWire};
use super::stamps::{Answered, CivilOffset, StampBook};
use super::target;
use super::wire::ProbeAnswer;

/// Octets of a probe: the classic ping's.
const PAYLOAD_BYTES: u32 = 56;
/// Probes before those that count: caches and branch predictors are cold.
const WARMUP: u64 = 50;
/// Loopback answers within microseconds; whatever is later was held up.
const TIMEOUT_NS: u64 = 100_000_000;
/// Blocks that the halves come in, two of one after two of the other.
const BLOCKS: usize = 32;
/// Probes with kernel timestamps.
const STAMPED: u64 = 50;
/// Confidence of what a half differs from the other.
const CONFIDENCE: f64 = 0.95;

/// The host's own share of any round trip.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Floor {
    /// The smallest round trip.
    pub min_ns: f64,
    /// The median round trip.
    pub p50_ns: f64,
    /// Sample standard deviation of round trips.
    pub stddev_ns: f64,
    /// Answered probes per second.
    pub pings_per_s: f64,
    /// The most that one half of the probes differs from the other by: the farther end of the 95 %
    /// interval of the median difference of neighbouring blocks.
    pub difference_ns: Option<f64>,
}

/// Kernel timestamps of echoes on loopback.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StampHealth {
    /// Probes that were answered.
    pub answered: u64,
    /// Probes with a send and a receive timestamp that lie within the program's own times.
    pub paired: u64,
    /// Probes of `paired` with a timestamp before the queueing discipline, too.
    pub split: u64,
}

/// Pings this host `count` times.
/// # Errors
/// Where it may not be pinged.
pub(super) fn measure_floor(count: u64, stop: &Stop) -> Result<Option<Floor>, Failure> {
    let mut wire = loopback()?;
    wire.prepare_run(PAYLOAD_BYTES, u64::from_ne_bytes(clock::random_bytes()))?;
    let mut times = Times::default();
    run(&mut wire, WARMUP + count, stop, &mut times)?;
    let kept = times.rtt_ns.split_off((WARMUP as usize).min(times.rtt_ns.len()));
    let moments: Moments = kept.iter().map(|ns| *ns as f64).collect();
    let difference_ns = difference(&kept);
    let answered = kept.len() as f64;
    let sorted = Sorted::new(kept);
    let span_ns = times.first.map_or(0, |first| times.last.nanos_since(first));
    Ok(sorted.quantile(0.5).map(|p50| Floor {
        min_ns: sorted.quantile(0.0).unwrap_or(p50) as f64,
        p50_ns: p50 as f64,
        stddev_ns: moments.stddev().unwrap_or(0.0),
        pings_per_s: (answered + WARMUP as f64) * 1e9 / span_ns.max(1) as f64,
        difference_ns,
    }))
}

/// Looks which kernel timestamps come.
/// # Errors
/// Where this host may not be pinged, or has no such timestamps.
pub(super) fn stamps(stop: &Stop) -> Result<StampHealth, Failure> {
    let mut wire = loopback()?;
    wire.start_stamps(true)?;
    clock::sleep(timestamps::START_DELAY);
    wire.take_notes(true);
    wire.prepare_run(PAYLOAD_BYTES, u64::from_ne_bytes(clock::random_bytes()))?;
    let mut civil = CivilOffset::default();
    civil.note_offset(clock::monotonic(), clock::realtime_offset_to_a_step_ns());
    let mut looked = Looked { book: StampBook::new(), civil, answered: 0 };
    run(&mut wire, STAMPED, stop, &mut looked)?;
    let Looked { book, answered, .. } = looked;
    Ok(StampHealth { answered, paired: book.paired, split: book.split })
}

fn loopback() -> Result<SocketWire, Failure> {
    let peer = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let plan =
        PingPlan { host: peer.ip().to_string(), mode: PingMode::Flood, ..PingPlan::default() };
    let (kind, socket) = target::open_echo_socket(&plan, peer)?;
    let waiting =
        if sched::cpus_allowed() > 1 { AnswerWaitMode::Spin } else { AnswerWaitMode::Sleep };
    Ok(SocketWire::new(socket, kind, peer, waiting))
}

fn run(
    wire: &mut SocketWire,
    count: u64,
    stop: &Stop,
    sink: &mut impl Sink,
) -> Result<(), Failure> {
    let limits = EchoTrackerLimits { timeout_ns: TIMEOUT_NS, capacity: 1 << 4 };
    let rules = ProbeRunRules {
        pace: ProbePace::Window(1),
        count: Some(count),
        deadline: None,
        limits,
        spacing: None,
    };
    match drive_probes(wire, &rules, stop, sink).ended {
        ProbeRunEnd::Failed(failure) => Err(failure),
        _ => Ok(()),
    }
}

/// The difference of one half from the other, in blocks A B B A A B B A …, so that a drift cancels.
fn difference(rtt_ns: &[u64]) -> Option<f64> {
    let blocks: Vec<f64> = rtt_ns
        .chunks_exact((rtt_ns.len() / BLOCKS).max(1))
        .take(BLOCKS)
        .filter_map(|block| median(&block.iter().map(|ns| *ns as f64).collect::<Vec<f64>>()))
        .collect();
    let pairs = blocks.chunks_exact(2).enumerate();
    let differences: Vec<f64> = pairs
        .map(|(place, pair)| {
            let later = pair[1] - pair[0];
            if place.is_multiple_of(2) { later } else { -later }
        })
        .collect();
    let interval = median_interval(&differences, CONFIDENCE)?;
    Some(interval.low.abs().max(interval.high.abs()))
}

/// Round trips in the order of sending.
#[derive(Debug, Default)]
struct Times {
    rtt_ns: Vec<u64>,
    first: Option<MonoTime>,
    last: MonoTime,
}

impl Sink for Times {
    fn probe_sent(&mut self, _: u64, t1: MonoTime) {
        self.first.get_or_insert(t1);
    }

    fn answered(&mut self, arrival: &ProbeAnswer, _: MonoTime, rtt_ns: u64) {
        self.last = arrival.at;
        self.rtt_ns.push(rtt_ns);
    }

    fn duplicate(&mut self, _: &ProbeAnswer) {}

    fn probe_lost(&mut self, _: u64) {}

    fn departed(&mut self, _: u64, _: u64) {}

    fn wants_departures(&self) -> bool {
        false
    }
}

/// The timestamps of a few probes.
struct Looked {
    book: StampBook,
    civil: CivilOffset,
    answered: u64,
}

impl Sink for Looked {
    fn probe_sent(&mut self, _: u64, _: MonoTime) {}

    fn answered(&mut self, arrival: &ProbeAnswer, t1: MonoTime, _: u64) {
        self.answered += 1;
        if let Some(arrived_ns) = arrival.stamp_ns {
            let (t1_ns, t4_ns) =
                (self.civil.civil_time_ns(t1), self.civil.civil_time_ns(arrival.at));
            self.book.answered(arrival.sequence, Answered { t1_ns, t4_ns, arrived_ns });
        }
    }

    fn duplicate(&mut self, _: &ProbeAnswer) {}

    fn probe_lost(&mut self, _: u64) {}

    fn departed(&mut self, sequence: u64, at_ns: u64) {
        self.book.departed(sequence, at_ns);
    }

    fn queued(&mut self, sequence: u64, at_ns: u64) {
        self.book.queued(sequence, at_ns);
    }

    fn wants_departures(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 3200 probes in 32 blocks of 100. A drift of 10 ns a block cancels: of the pairs every other
    /// one is turned round. What every second block of the halves has more does not.
    #[test]
    fn a_drift_is_no_difference_of_the_halves() {
        let blocks = |more: u64| {
            let of = move |block: u64| {
                let second = [0, 1, 1, 0][(block % 4) as usize];
                std::iter::repeat_n(5000 + 10 * block + more * second, 100)
            };
            (0..32).flat_map(of).collect::<Vec<u64>>()
        };
        // Half of the pairs are +10, half −10: the interval of their median is from −10 to 10.
        assert_eq!(difference(&blocks(0)), Some(10.0));
        assert_eq!(difference(&blocks(200)), Some(210.0));
        assert_eq!(difference(&[5000; 3]), None, "three are too few");
    }
}
