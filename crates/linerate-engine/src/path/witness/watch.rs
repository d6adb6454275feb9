//! One measurement over emulated paths, as their process sees it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use linerate_core::path::PathLossCause;
use linerate_core::record::{
    Direction, EmulatedPath, PathDirection, PathLoss, PathPlan, PathStops, QueueSeries,
};
use linerate_core::time::MonoTime;
use linerate_sys::clock;
use linerate_sys::tun::TunKind;

use super::super::netem::NetemLink;
use super::super::report::{fell_behind, too_slow};
use super::super::{
    Counters, DirectionCounters, DirectionReport, Emulator, EmulatorReport, LATE, Snapshot,
};
use crate::environment::StolenTime;

/// The facts that a record keeps of a path beside its counters.
#[derive(Clone, Debug)]
pub struct PathFacts {
    /// The place of the path: `r1 eth1 - r2 eth0`.
    pub name: String,
    /// The kind of its devices: IP packets or Ethernet frames.
    pub kind: TunKind,
    /// The plan that was asked for.
    pub plan: PathPlan,
    /// Largest IP packet of its devices.
    pub mtu_bytes: u32,
}

/// A path that runs.
#[derive(Debug)]
pub struct PathSite {
    /// The facts for the record.
    pub facts: PathFacts,
    /// The emulator or the kernel's discipline that carries its packets.
    carrier: Mutex<PathCarrier>,
}

/// The emulator or the kernel's netem that carries the packets of a path.
#[derive(Debug)]
enum PathCarrier {
    Own(Emulator),
    Netem(Box<NetemLink>),
}

impl PathSite {
    /// A path that linerate carries.
    pub const fn new(facts: PathFacts, emulator: Emulator) -> Self {
        Self { facts, carrier: Mutex::new(PathCarrier::Own(emulator)) }
    }

    /// A path that the kernel carries.
    pub fn of_netem(facts: PathFacts, link: NetemLink) -> Self {
        Self { facts, carrier: Mutex::new(PathCarrier::Netem(Box::new(link))) }
    }

    /// The facts and the emulator; none for a path that the kernel carries.
    pub fn into_emulator(self) -> (PathFacts, Option<Emulator>) {
        let carrier = self.carrier.into_inner().unwrap_or_else(PoisonError::into_inner);
        match carrier {
            PathCarrier::Own(emulator) => (self.facts, Some(emulator)),
            PathCarrier::Netem(_) => (self.facts, None),
        }
    }

    /// The counters so far.
    pub fn counters(&self) -> Counters {
        match &mut *self.lock_carrier() {
            PathCarrier::Own(emulator) => emulator.counters(),
            PathCarrier::Netem(link) => link.counters().unwrap_or_else(|| link.last_counters()),
        }
    }

    /// The counters so far, with the lateness of packets.
    pub fn snapshot(&self) -> Snapshot {
        match &mut *self.lock_carrier() {
            PathCarrier::Own(emulator) => emulator.snapshot(),
            PathCarrier::Netem(link) => {
                let told = link.counters();
                Snapshot {
                    answered: told.is_some(),
                    counters: told.unwrap_or_else(|| link.last_counters()),
                    ..Snapshot::default()
                }
            }
        }
    }

    /// True where it still carries packets.
    pub fn is_running(&self) -> bool {
        match &mut *self.lock_carrier() {
            PathCarrier::Own(emulator) => emulator.is_running(),
            PathCarrier::Netem(link) => link.counters().is_some(),
        }
    }

    fn datapath(&self) -> &'static str {
        match (&*self.lock_carrier(), self.facts.kind) {
            (PathCarrier::Netem(_), _) => "netem",
            (PathCarrier::Own(_), TunKind::Ip) => "tun",
            (PathCarrier::Own(_), TunKind::Ethernet) => "tap",
        }
    }

    fn memory_bytes(&self) -> u64 {
        match &*self.lock_carrier() {
            PathCarrier::Own(emulator) => emulator.memory_bytes(),
            PathCarrier::Netem(_) => 0,
        }
    }

    fn late_thresholds(&self) -> [Duration; 2] {
        match &*self.lock_carrier() {
            PathCarrier::Own(emulator) => emulator.late_thresholds(),
            PathCarrier::Netem(_) => Default::default(),
        }
    }

    fn lock_carrier(&self) -> std::sync::MutexGuard<'_, PathCarrier> {
        self.carrier.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A path on the way of a measurement, and which of its data the two directions carry.
#[derive(Clone, Debug)]
pub struct OnWay {
    /// The path on the way.
    pub path: Arc<PathSite>,
    /// The measurement's direction that the path carries forward and backward; none where it
    /// carries none.
    pub directions: [Option<Direction>; 2],
}

impl OnWay {
    /// A path that carries all of a measurement's data: from its second end when `backward`.
    pub fn both_directions(path: &Arc<PathSite>, backward: bool) -> Self {
        let (up, down) = (Some(Direction::Up), Some(Direction::Down));
        let directions = if backward { [down, up] } else { [up, down] };
        Self { path: Arc::clone(path), directions }
    }
}

/// A path on the way of a measurement, watched from its begin on.
pub(super) struct Watched {
    on_way: OnWay,
    begin: MonoTime,
    first: Snapshot,
    stolen: StolenTime,
    queues: [QueueSeries; 2],
}

impl Watched {
    pub(super) fn begin_watching(on_way: OnWay, interval: Duration) -> Self {
        let first = on_way.path.snapshot();
        let queues = [(); 2].map(|()| QueueSeries::new(saturating_nanos(interval)));
        Self {
            on_way,
            begin: clock::monotonic(),
            first,
            stolen: StolenTime::start_measuring(),
            queues,
        }
    }

    /// Looks at the queues.
    pub(super) fn sample_queues(&mut self) {
        let at_ns = clock::monotonic().nanos_since(self.begin);
        note_queues(&mut self.queues, at_ns, &self.on_way.path.counters());
    }

    pub(super) fn finish_watching(mut self) -> EmulatedPath {
        self.sample_queues();
        let span = clock::monotonic().duration_since(self.begin);
        let mut path = path_since(&self.on_way.path, &self.first, span, self.queues);
        path.stolen_ratio = self.stolen.stolen_ratio();
        for (direction, carried) in path.directions.iter_mut().zip(self.on_way.directions) {
            direction.direction = carried;
        }
        path
    }
}

/// Notes what waits in both directions.
pub fn note_queues(queues: &mut [QueueSeries; 2], at_ns: u64, counters: &Counters) {
    for (queue, counters) in queues.iter_mut().zip(counters) {
        queue.add_backlog(at_ns, counters.queued.packets, counters.queued.bytes);
    }
}

/// The account of a path since a moment.
fn path_since(
    site: &PathSite,
    since: &Snapshot,
    span: Duration,
    queues: [QueueSeries; 2],
) -> EmulatedPath {
    let now = site.snapshot();
    let thresholds = site.late_thresholds();
    let report = |index: usize| DirectionReport {
        counters: difference(&now.counters[index], &since.counters[index]),
        lateness_ns: now.lateness_ns[index].samples_since(&since.lateness_ns[index]),
        quantum: thresholds[index].saturating_sub(LATE),
        unread_packets: now.unread[index]
            .map(|count| count.saturating_sub(since.unread[index].unwrap_or(0))),
    };
    let pace = EmulatorTiming {
        stops: now.stops.difference_since(&since.stops).within(span),
        busy_ratio: duration_ratio(now.busy.saturating_sub(since.busy), span),
        span,
    };
    let mut path = described(&site.facts, &[report(0), report(1)], pace, queues);
    site.datapath().clone_into(&mut path.datapath);
    path.busy_ratio = path.busy_ratio.filter(|_| path.datapath != "netem");
    path.memory_bytes = site.memory_bytes();
    path.run_queue_wait_ns =
        (now.run_queue_wait_ns).and_then(|now| Some(now.saturating_sub(since.run_queue_wait_ns?)));
    let silent = if !site.is_running() {
        Some("the emulator ended")
    } else if !now.answered || !since.answered {
        Some("the emulator's thread did not answer for 0.5 s")
    } else {
        None
    };
    path.late |= silent.is_some();
    path.faults.extend(silent.map(str::to_owned));
    path
}

/// The account of a path of its whole time, after its end.
pub fn path_after_end(
    facts: &PathFacts,
    report: &EmulatorReport,
    queues: [QueueSeries; 2],
) -> EmulatedPath {
    let pace = EmulatorTiming {
        stops: report.stops.within(report.ran),
        busy_ratio: duration_ratio(report.busy, report.ran),
        span: report.ran,
    };
    let mut path = described(facts, &report.directions, pace, queues);
    path.memory_bytes = report.memory_bytes;
    path.run_queue_wait_ns = report.run_queue_wait.map(saturating_nanos);
    path
}

/// How the emulator did over a span.
struct EmulatorTiming {
    stops: PathStops,
    busy_ratio: f64,
    span: Duration,
}

fn duration_ratio(part: Duration, whole: Duration) -> f64 {
    part.as_secs_f64() / whole.as_secs_f64().max(1e-9)
}

fn described(
    facts: &PathFacts,
    reports: &[DirectionReport; 2],
    pace: EmulatorTiming,
    queues: [QueueSeries; 2],
) -> EmulatedPath {
    let names = ["forward", "backward"].into_iter().zip(reports);
    let faults = names.flat_map(|(name, report)| {
        report.faults().map(move |fault| format!("{name}: {fault}")).collect::<Vec<_>>()
    });
    let has_rate =
        facts.plan.direction_facts().is_ok_and(|both| both.iter().any(|one| one.rate.is_some()));
    let EmulatorTiming { stops, busy_ratio, span } = pace;
    let own = fell_behind(&stops).into_iter().chain(too_slow(busy_ratio, has_rate));
    let faults: Vec<String> = own.chain(faults).collect();
    let directions = reports.iter().zip(queues).enumerate();
    EmulatedPath {
        name: facts.name.clone(),
        datapath: match facts.kind {
            TunKind::Ip => "tun".to_owned(),
            TunKind::Ethernet => "tap".to_owned(),
        },
        plan: facts.plan.clone(),
        seed: facts.plan.seed.unwrap_or(1),
        mtu_bytes: facts.mtu_bytes,
        memory_bytes: 0,
        span_ns: saturating_nanos(span),
        stops,
        busy_ratio: Some(busy_ratio),
        run_queue_wait_ns: None,
        stolen_ratio: None,
        late: !faults.is_empty(),
        faults,
        directions: directions
            .map(|(index, (report, queue))| direction_of(report, index == 1, queue))
            .collect(),
    }
}

fn saturating_nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

fn direction_of(report: &DirectionReport, backward: bool, queue: QueueSeries) -> PathDirection {
    let counters = &report.counters;
    let unplanned = [
        counters.no_room_packets,
        counters.orphaned_packets,
        counters.refused_packets,
        report.unread_packets.unwrap_or(0),
    ];
    PathDirection {
        backward,
        direction: None,
        taken_packets: counters.taken_packets,
        taken_bytes: counters.taken_bytes,
        delivered_packets: counters.delivered_packets,
        delivered_bytes: counters.delivered_bytes,
        lost: losses(counters),
        copied_packets: counters.copied_packets,
        corrupted_packets: counters.corrupted_packets,
        marked_packets: counters.marked_packets,
        icmp_messages: counters.icmp_messages,
        unplanned_packets: unplanned.iter().sum(),
        late_packets: counters.late_packets,
        late_threshold_ns: saturating_nanos(report.quantum + LATE),
        lateness_p50_ns: report.lateness_ns.quantile(0.5),
        lateness_p99_ns: report.lateness_ns.quantile(0.99),
        lateness_max_ns: report.lateness_ns.quantile(1.0),
        queue,
    }
}

fn losses(counters: &DirectionCounters) -> Vec<PathLoss> {
    let by_cause: BTreeMap<&str, u64> =
        counters.lost.iter().map(|(cause, packets)| (cause_name(*cause), *packets)).collect();
    let lost = by_cause.into_iter().filter(|(_, packets)| *packets > 0);
    lost.map(|(cause, packets)| PathLoss { cause: cause.to_owned(), packets }).collect()
}

/// The name of a cause in records.
pub const fn cause_name(cause: PathLossCause) -> &'static str {
    match cause {
        PathLossCause::QueueFull => "queue_full",
        PathLossCause::QueueEarly => "queue_early",
        PathLossCause::Policed => "policed",
        PathLossCause::Random => "random",
        PathLossCause::Damaged => "damaged",
        PathLossCause::TooLong => "too_long",
        PathLossCause::Outage => "outage",
        PathLossCause::Untold => "untold",
    }
}

/// The counts after `before`.
fn difference(now: &DirectionCounters, before: &DirectionCounters) -> DirectionCounters {
    DirectionCounters {
        taken_packets: now.taken_packets - before.taken_packets,
        taken_bytes: now.taken_bytes - before.taken_bytes,
        reads: now.reads - before.reads,
        delivered_packets: now.delivered_packets - before.delivered_packets,
        delivered_bytes: now.delivered_bytes - before.delivered_bytes,
        writes: now.writes - before.writes,
        copied_packets: now.copied_packets - before.copied_packets,
        lost: now
            .lost
            .iter()
            .map(|&(cause, count)| (cause, count - before.lost_to(cause)))
            .collect(),
        corrupted_packets: now.corrupted_packets - before.corrupted_packets,
        marked_packets: now.marked_packets - before.marked_packets,
        icmp_messages: now.icmp_messages - before.icmp_messages,
        refused_packets: now.refused_packets - before.refused_packets,
        no_room_packets: now.no_room_packets - before.no_room_packets,
        orphaned_packets: now.orphaned_packets - before.orphaned_packets,
        late_packets: now.late_packets - before.late_packets,
        lateness_max_ns: now.lateness_max_ns,
        backlog: now.backlog.clone(),
        queued: now.queued,
    }
}
