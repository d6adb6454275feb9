//! What an emulator did: the ground truth of a path, and how well it kept its own schedule.

use std::time::Duration;

use linerate_core::path::{Backlog, LossCause};
use linerate_core::record::Failure;
use linerate_core::stats::LogHistogram;

/// Beyond the release quantum, this much later than due counts as late: ten times what a host that
/// is not overloaded showed in the 99th percentile without real-time priority.
pub const LATE: Duration = Duration::from_millis(1);
/// More late packets than this share: the emulator fell behind.
pub const LATE_SHARE_MAX: f64 = 0.001;

/// What one direction did so far. Packets are IP packets, segments of super-packets each for
/// itself; bytes are those of IP packets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DirectionCounters {
    /// Packets that came from the host.
    pub taken_packets: u64,
    /// Their bytes.
    pub taken_bytes: u64,
    /// Reads: a super-packet counts once.
    pub reads: u64,
    /// Packets handed to the other host; copies that the path made count.
    pub delivered_packets: u64,
    /// Their bytes.
    pub delivered_bytes: u64,
    /// Writes: a run of segments counts once.
    pub writes: u64,
    /// Packets that the path made of others, which it sent as well.
    pub copied_packets: u64,
    /// Packets that the path lost, by cause. Cross traffic is not among them.
    pub lost: Vec<(LossCause, u64)>,
    /// Packets that the path damaged and delivered.
    pub corrupted_packets: u64,
    /// Packets that the path marked (Congestion Experienced).
    pub marked_packets: u64,
    /// Packets that the other host did not take: its link was down.
    pub refused_packets: u64,
    /// Packets dropped because the path held more than was planned for. Not part of the model.
    pub no_room_packets: u64,
    /// Copies whose bytes were no longer there. Not part of the model.
    pub orphaned_packets: u64,
    /// Packets handed over later than due by more than the quantum and [`LATE`].
    pub late_packets: u64,
    /// Latest of all.
    pub lateness_max_ns: u64,
    /// What waits in each element, in the order of the path.
    pub backlog: Vec<Backlog>,
    /// What waits in queues: all of that but what travels.
    pub queued: Backlog,
}

impl DirectionCounters {
    /// Packets lost to one cause.
    pub fn lost_to(&self, cause: LossCause) -> u64 {
        self.lost.iter().find(|(one, _)| *one == cause).map_or(0, |(_, count)| *count)
    }

    /// Packets lost to all causes.
    pub fn lost_packets(&self) -> u64 {
        self.lost.iter().map(|(_, count)| count).sum()
    }

    pub(super) fn lose(&mut self, cause: LossCause) {
        match self.lost.iter_mut().find(|(one, _)| *one == cause) {
            Some((_, count)) => *count += 1,
            None => self.lost.push((cause, 1)),
        }
    }
}

/// Both directions: from the first end to the second, and back.
pub type Counters = [DirectionCounters; 2];

/// What an emulator did, whole.
#[derive(Debug)]
pub struct EmulatorReport {
    /// From the first end to the second, and back.
    pub directions: [DirectionReport; 2],
    /// How long it ran.
    pub ran: Duration,
    /// Processor time of its thread; absent where the kernel does not tell.
    pub cpu: Option<Duration>,
    /// Time that its thread was ready to run and waited for a processor. Packets that came
    /// meanwhile began their way late, which no other figure here shows.
    pub run_queue_wait: Option<Duration>,
    /// Whether it had real-time priority.
    pub real_time: bool,
    /// Whether its memory was locked.
    pub locked: bool,
    /// Memory that it was allowed to take, at most.
    pub memory_bytes: u64,
    /// Why it ended, when nobody asked it to.
    pub failure: Option<Failure>,
}

/// One direction, with the times of its packets.
#[derive(Debug)]
pub struct DirectionReport {
    /// What it did.
    pub counters: DirectionCounters,
    /// Time at which each packet was handed to the other host, less the time at which it was due.
    pub lateness_ns: LogHistogram,
    /// Packets due within this of each other left together.
    pub quantum: Duration,
    /// Packets that the host dropped before the emulator read them, because it read too slowly;
    /// absent when the device is gone.
    pub unread_packets: Option<u64>,
}

impl EmulatorReport {
    /// Reasons for which its traffic was not the traffic of the path that was asked for, one line
    /// each. Empty: the path was what it was asked to be.
    pub fn faults(&self) -> Vec<String> {
        let mut faults: Vec<String> = self.failure.iter().map(ToString::to_string).collect();
        for (name, direction) in ["forward", "backward"].iter().zip(&self.directions) {
            faults.extend(direction.faults().map(|fault| format!("{name}: {fault}")));
        }
        faults
    }
}

impl DirectionReport {
    /// Whether it fell behind its own schedule: more than one packet, and more than
    /// [`LATE_SHARE_MAX`] of all, were late.
    pub fn fell_behind(&self) -> bool {
        let late = self.counters.late_packets as f64;
        late > (self.counters.delivered_packets as f64 * LATE_SHARE_MAX).max(1.0)
    }

    /// Reasons for which its traffic was not that of the path that was asked for, a line each.
    pub fn faults(&self) -> impl Iterator<Item = String> + use<> {
        let counters = &self.counters;
        let behind = self.fell_behind().then(|| {
            let threshold = self.quantum + LATE;
            format!(
                "{} of {} packets were handed over more than {:.2} ms late, up to {:.2} ms",
                counters.late_packets,
                counters.delivered_packets,
                threshold.as_secs_f64() * 1e3,
                counters.lateness_max_ns as f64 / 1e6,
            )
        });
        let counted = [
            (counters.no_room_packets, "packets were dropped: the path held more than planned"),
            (counters.orphaned_packets, "copies of packets were lost: their bytes were gone"),
            (counters.refused_packets, "packets were not taken by the host: its link was down"),
            (
                self.unread_packets.unwrap_or(0),
                "packets were dropped by the host: the emulator did not read them in time",
            ),
        ];
        let counted = counted.into_iter().filter(|(count, _)| *count > 0);
        behind.into_iter().chain(counted.map(|(count, what)| format!("{count} {what}")))
    }
}
