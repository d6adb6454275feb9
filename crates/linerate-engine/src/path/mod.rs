//! The path emulator live: packets between two devices of this host through two
//! [`linerate_core::path::Pipeline`]s, one for each direction.
//!
//! ```text
//!  host --> TUN --read--> ring --segments--> pipeline --runs--> write --> TUN --> host
//! ```
//! A TUN device hands over TCP and UDP super-packets of up to 64 KiB whole. Their bytes are copied
//! into the ring once and out of it once; each segment is a packet to the pipeline, and segments of
//! one super-packet that are due together go out in one write, the kernel left to cut them.
//!
//! The floor, for one super-packet of 44 segments of 1500 bytes through a path without elements:
//! one read (64 KiB copied, some 6 µs), 44 admissions (some 30 ns each: 1.3 µs), one write (64 KiB
//! copied, some 6 µs, and the receiving host's whole TCP input), and a look for more: 3 system
//! calls and 128 KiB copied for 64 KiB carried, 25 to 30 Gbit/s of one processor. At a rate R with
//! a quantum Q a super-packet leaves in about 5·10^5 bit / (R Q) writes: at 1 Gbit/s and 200 µs in
//! 3, 5,000 writes a second.
//!
//! One thread serves both directions: two gained nothing on two processors. The emulator fails
//! closed: with its process or thread the devices are gone, and nothing passes. Leaves out the
//! time to live: the path is a link and no hop.

mod arrivals;
mod cut;
mod device;
mod frame;
mod hold;
mod lane;
pub mod netem;
mod of_plan;
pub mod pcap;
mod plan;
mod report;
mod stops;
#[cfg(test)]
mod tests;
mod too_big;
pub mod witness;
mod worker;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use linerate_core::record::{Failure, Fault};
use linerate_core::stats::LogHistogram;
use linerate_sys::netlink::RouteSocket;

pub use of_plan::directions;
pub use plan::{EmulatedDirection, EmulatedEnd, EmulatorPlan, MEMORY_LIMIT_BYTES};
pub use report::{
    Counters, DirectionCounters, DirectionReport, EmulatorReport, STOP_MAX, STOPPED_SHARE_MAX,
};
pub use stops::{LATE, Stops};

use lane::Lane;
use worker::{PathWorker, WorkerResult, WorkerShared, WorkerSnapshot};

/// An emulated path that carries packets. Dropping it ends it.
#[derive(Debug)]
pub struct Emulator {
    shared: Arc<WorkerShared>,
    thread: Option<JoinHandle<WorkerResult>>,
    /// Sockets in the namespaces of the ends, with the names of the devices.
    sockets: [(RouteSocket, String); 2],
    memory_bytes: u64,
    late_thresholds: [Duration; 2],
}

/// A thread that does not answer for this long has a processor of its own no longer.
const SNAPSHOT_WAIT: Duration = Duration::from_millis(500);

/// The counters of an emulator up to a time.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// The counters of both directions.
    pub counters: Counters,
    /// Time at which each packet was handed over, less the time at which it was due, and the time
    /// that it waited to be read.
    pub lateness_ns: [LogHistogram; 2],
    /// Times in which its thread stood still.
    pub stops: Stops,
    /// Time that its thread was ready to run and waited for a processor.
    pub run_queue_wait_ns: Option<u64>,
    /// Time that its thread was at work.
    pub busy: Duration,
    /// Packets that the host dropped before they were read; absent when a device is gone.
    pub unread: [Option<u64>; 2],
    /// True where its thread answered; without that only the counters are known.
    pub answered: bool,
}

impl Emulator {
    /// Takes the memory, makes the devices, and carries packets when it returns.
    /// # Errors
    /// When the plan cannot be or needs more memory than it allows, without the privilege to make
    /// devices in the namespaces, or when a name is taken there.
    pub fn start(plan: EmulatorPlan<'_>) -> Result<Self, Failure> {
        plan.check_limits()?;
        let memory_bytes = plan.memory_bytes();
        let late_thresholds =
            plan.directions.each_ref().map(|direction| direction.release_quantum() + LATE);
        let [forward, backward] = plan.directions;
        let lane = |direction| Lane::new(direction).map_err(|error| crate::failure::system(&error));
        let mut lanes = [lane(forward)?, lane(backward)?];
        let shared = WorkerShared::new().map_err(|error| crate::failure::system(&error))?;
        let shared = Arc::new(shared);
        let [one, other] = device::make_devices(&plan.ends)?;
        let stamps = [one.stamps, other.stamps];
        lanes.iter_mut().zip(stamps).for_each(|(lane, stamps)| lane.note_waits_by(stamps));
        let names = [one.tun.name().to_owned(), other.tun.name().to_owned()];
        let worker = PathWorker::new([one.tun, other.tun], lanes, plan.real_time);
        let theirs = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("path".to_owned())
            .spawn(move || worker.run(&theirs))
            .map_err(|source| {
                let reason = crate::failure::words_of(&source);
                Failure::new(Fault::System, "start thread for path on", &names[0], reason)
            })?;
        let [first, second] = names;
        let sockets = [(one.socket, first), (other.socket, second)];
        Ok(Self { shared, thread: Some(thread), sockets, memory_bytes, late_thresholds })
    }

    /// The counters so far, at most a few milliseconds old. Does not disturb the emulator.
    pub fn counters(&self) -> Counters {
        self.shared.counters()
    }

    /// The counters so far with the lateness of packets. Waits for the emulator's thread, some 20
    /// µs of which it takes.
    pub fn snapshot(&mut self) -> Snapshot {
        let known = self.shared.request_snapshot(SNAPSHOT_WAIT);
        let unread = self.unread();
        let answered = known.is_some();
        let WorkerSnapshot { counters, lateness_ns, stops, run_queue_wait_ns, busy } = known
            .unwrap_or_else(|| WorkerSnapshot {
                counters: self.counters(),
                ..WorkerSnapshot::default()
            });
        Snapshot { counters, lateness_ns, stops, run_queue_wait_ns, busy, unread, answered }
    }

    /// Packets that the host put on the devices and nobody read in time.
    fn unread(&mut self) -> [Option<u64>; 2] {
        self.sockets.each_mut().map(|(socket, name)| {
            socket.link_by_name(name).ok().map(|link| link.counters.tx_dropped)
        })
    }

    /// Memory that it may take at most.
    pub const fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }

    /// Lateness beyond which a packet of a direction counts as late.
    pub const fn late_thresholds(&self) -> [Duration; 2] {
        self.late_thresholds
    }

    /// True where it still carries packets; [`Emulator::stop`] tells why not.
    pub fn is_running(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Ends it and removes the devices. Packets on the way are lost.
    pub fn stop(mut self) -> EmulatorReport {
        let ended = self.stop_thread();
        let unread = self.unread();
        report(ended, unread, self.memory_bytes, self.shared.counters())
    }

    fn stop_thread(&mut self) -> Option<WorkerResult> {
        self.shared.stop.store(true, Ordering::Release);
        self.shared.bell.make_readable();
        self.thread.take()?.join().ok()
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        let _ = self.stop_thread();
    }
}

/// The report of a thread that ended, or of one that died.
fn report(
    ended: Option<WorkerResult>,
    unread: [Option<u64>; 2],
    memory_bytes: u64,
    last: Counters,
) -> EmulatorReport {
    let Some(ended) = ended else { return panic_report(unread, memory_bytes, last) };
    let WorkerResult { lanes, stops, busy, real_time, ran, cpu, run_queue_wait, failure, tuns } =
        ended;
    let locked = lanes.iter().all(Lane::locked);
    let [unread_forward, unread_backward] = unread;
    let direction = |lane: Lane, unread_packets| DirectionReport {
        quantum: lane.quantum(),
        counters: lane.counters,
        lateness_ns: lane.lateness_ns,
        unread_packets,
    };
    let [forward, backward] = lanes;
    let directions = [direction(forward, unread_forward), direction(backward, unread_backward)];
    drop(tuns);
    EmulatorReport {
        directions,
        stops,
        busy,
        ran,
        cpu,
        run_queue_wait,
        real_time,
        locked,
        memory_bytes,
        failure,
    }
}

fn panic_report(unread: [Option<u64>; 2], memory_bytes: u64, last: Counters) -> EmulatorReport {
    let mut unread = unread.into_iter();
    let directions = last.map(|counters| DirectionReport {
        counters,
        lateness_ns: Default::default(),
        quantum: Default::default(),
        unread_packets: unread.next().flatten(),
    });
    let failure = Failure::new(Fault::System, "emulate path", "thread", "an element panicked");
    EmulatorReport {
        directions,
        stops: Stops::default(),
        busy: Duration::ZERO,
        ran: Default::default(),
        cpu: None,
        run_queue_wait: None,
        real_time: false,
        locked: false,
        memory_bytes,
        failure: Some(failure),
    }
}
