//! The thread of an emulator: both directions in turn, asleep while nothing is due.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use linerate_core::record::{Failure, Fault};
use linerate_core::stats::LogHistogram;
use linerate_core::time::MonoTime;
use linerate_sys::sched::ShortSlack;
use linerate_sys::timer::{Bell, HybridTimer};
use linerate_sys::tun::Tun;
use linerate_sys::{clock, realtime, thread};

use super::lane::{Lane, Wake, interface_gone_failure};
use super::report::Counters;
use super::stops::Stops;

/// Packets read from one device before the other has its turn: four super-packets take some 40 µs.
const BURST: u32 = 4;
/// Sleep ends at most this long before something is due; the rest is spent looking. A real-time
/// thread may look longer.
const SPIN_MAX: Duration = Duration::from_micros(60);
const SPIN_MAX_REAL_TIME: Duration = Duration::from_micros(120);
/// Shortest time between two looks at the counters from outside while packets flow.
const PUBLISH_EVERY: Duration = Duration::from_millis(1);

/// The state that the thread and its owner share.
#[derive(Debug)]
pub(super) struct WorkerShared {
    pub(super) stop: AtomicBool,
    pub(super) bell: Bell,
    counters: Mutex<Counters>,
    /// Asks the thread for all that it knows.
    wanted: AtomicBool,
    answer: Mutex<Option<WorkerSnapshot>>,
    answered: Condvar,
}

/// The counters of the thread at one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct WorkerSnapshot {
    pub(super) counters: Counters,
    pub(super) lateness_ns: [LogHistogram; 2],
    pub(super) stops: Stops,
    pub(super) run_queue_wait_ns: Option<u64>,
    pub(super) busy: Duration,
}

impl WorkerShared {
    pub(super) fn new() -> linerate_sys::Result<Self> {
        Ok(Self {
            stop: AtomicBool::new(false),
            bell: Bell::new()?,
            counters: Mutex::default(),
            wanted: AtomicBool::new(false),
            answer: Mutex::default(),
            answered: Condvar::new(),
        })
    }

    /// Asks the thread and waits; none when it does not answer in time.
    pub(super) fn request_snapshot(&self, patience: Duration) -> Option<WorkerSnapshot> {
        let mut answer = self.answer.lock().unwrap_or_else(PoisonError::into_inner);
        *answer = None;
        self.wanted.store(true, Ordering::Release);
        self.bell.make_readable();
        let waited = self.answered.wait_timeout_while(answer, patience, |known| known.is_none());
        waited.unwrap_or_else(PoisonError::into_inner).0.take()
    }

    pub(super) fn counters(&self) -> Counters {
        self.counters.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Two devices and the directions between them.
pub(super) struct PathWorker {
    pub(super) tuns: [Tun; 2],
    pub(super) lanes: [Lane; 2],
    pub(super) real_time: bool,
    published: MonoTime,
    /// When the next turn should begin, as far as is known.
    expected: Option<MonoTime>,
    stops: Stops,
    /// The last turn ended without a wait.
    at_work: bool,
    /// Time in turns, without the waits between them.
    busy: Duration,
}

/// The results that the thread leaves when it ends. The devices end with it.
pub(super) struct WorkerResult {
    pub(super) lanes: [Lane; 2],
    pub(super) stops: Stops,
    pub(super) busy: Duration,
    pub(super) real_time: bool,
    pub(super) ran: Duration,
    pub(super) cpu: Option<Duration>,
    pub(super) run_queue_wait: Option<Duration>,
    pub(super) failure: Option<Failure>,
    pub(super) tuns: [Tun; 2],
}

impl PathWorker {
    pub(super) fn new(tuns: [Tun; 2], lanes: [Lane; 2], real_time: bool) -> Self {
        let (published, stops) = (MonoTime::default(), Stops::default());
        let busy = Duration::ZERO;
        Self { tuns, lanes, real_time, published, expected: None, stops, at_work: false, busy }
    }

    /// Carries packets until it is asked to stop or cannot go on.
    pub(super) fn run(mut self, shared: &WorkerShared) -> WorkerResult {
        let _slack = ShortSlack::shorten_slack();
        self.real_time = self.real_time && realtime::raise_priority().is_ok();
        let spin_max = if self.real_time { SPIN_MAX_REAL_TIME } else { SPIN_MAX };
        let mut timer = HybridTimer::new(spin_max);
        let (start, cost) = (clock::monotonic(), thread::current_cost());
        let mut failure = None;
        while failure.is_none() && !shared.stop.load(Ordering::Acquire) {
            failure = self.run_turn(shared, &mut timer).err();
        }
        let now = clock::monotonic();
        self.stops.count_conversation(now);
        self.publish(now, shared);
        let spent = thread::current_cost();
        let since = |after: Option<u64>, before: Option<u64>| {
            Some(Duration::from_nanos(after?.saturating_sub(before?)))
        };
        let cpu = |cost: thread::ThreadCost| Some(cost.user_ns? + cost.system_ns?);
        WorkerResult {
            lanes: self.lanes,
            stops: self.stops,
            busy: self.busy,
            real_time: self.real_time,
            ran: now.duration_since(start),
            cpu: since(cpu(spent), cpu(cost)),
            run_queue_wait: since(spent.run_queue_wait_ns, cost.run_queue_wait_ns),
            failure,
            tuns: self.tuns,
        }
    }

    fn run_turn(&mut self, shared: &WorkerShared, timer: &mut HybridTimer) -> Result<(), Failure> {
        let now = clock::monotonic();
        let expected = self.expected.replace(now);
        let slept = !std::mem::take(&mut self.at_work);
        if let Some(expected) = expected {
            self.busy += if slept { Duration::ZERO } else { now.duration_since(expected) };
        }
        if shared.wanted.swap(false, Ordering::Acquire) {
            shared.bell.make_unreadable();
            self.stops.note_wakeup(expected.unwrap_or(now), now);
            self.stops.count_conversation(now);
            self.answer(now, shared);
            // The bell may have been rung for the end, too.
            return Ok(());
        }
        let [one, other] = &self.tuns;
        let [forward, backward] = &mut self.lanes;
        forward.release(now, other)?;
        backward.release(now, one)?;
        let busy = admit_some(forward, one, other)? | admit_some(backward, other, one)?;
        let came = [forward.arrivals.take_first(), backward.arrivals.take_first()];
        let came = came.into_iter().flatten().min();
        // Who slept should have begun when the first of them came. Who did not had others to read
        // before them.
        let due = [expected, came.filter(|_| slept)].into_iter().flatten().min();
        self.stops.note_wakeup(due.unwrap_or(now), now);
        if forward.take_conversed() | backward.take_conversed() {
            self.stops.note_conversation(came.unwrap_or(now), now);
        }
        if !busy {
            let then = [forward.next_wake(), backward.next_wake()].into_iter().flatten().min();
            if then.is_none_or(|then| then.at.duration_since(now) > PUBLISH_EVERY) {
                self.publish(now, shared);
            }
            self.busy += clock::monotonic().duration_since(now);
            // A packet that comes sooner wakes it sooner.
            self.expected = then.map(|then| then.at.max(now));
            return self.wait_for_packets(then, shared, timer);
        }
        self.at_work = true;
        if now.duration_since(self.published) >= PUBLISH_EVERY {
            self.publish(now, shared);
        }
        Ok(())
    }

    fn wait_for_packets(
        &self,
        then: Option<Wake>,
        shared: &WorkerShared,
        timer: &mut HybridTimer,
    ) -> Result<(), Failure> {
        let [one, other] = &self.tuns;
        let fds = [one.as_fd(), other.as_fd(), shared.bell.as_fd()];
        let exact = then.is_some_and(|then| then.exact);
        let ready =
            timer.wait_for_events(fds, then.map(|then| then.at), exact).map_err(|error| {
                Failure::new(Fault::System, "wait for packets of", one.name(), error)
            })?;
        match ready {
            [seen, ..] if seen.failed => Err(interface_gone_failure(one)),
            [_, seen, _] if seen.failed => Err(interface_gone_failure(other)),
            _ => Ok(()),
        }
    }

    /// Tells one who waits for it.
    fn answer(&mut self, now: MonoTime, shared: &WorkerShared) {
        let known = self.lanes.each_mut().map(|lane| {
            lane.note_backlog(now);
            (lane.counters.clone(), lane.lateness_ns.clone())
        });
        let [(one, one_late), (other, other_late)] = known;
        let known = WorkerSnapshot {
            counters: [one, other],
            lateness_ns: [one_late, other_late],
            stops: self.stops.clone(),
            run_queue_wait_ns: thread::current_cost().run_queue_wait_ns,
            busy: self.busy,
        };
        let mut answer = shared.answer.lock().unwrap_or_else(PoisonError::into_inner);
        *answer = Some(known);
        shared.answered.notify_all();
    }

    /// Shows the counters outside; never waits for one who is looking.
    fn publish(&mut self, now: MonoTime, shared: &WorkerShared) {
        let Ok(mut shown) = shared.counters.try_lock() else { return };
        self.published = now;
        for (lane, shown) in self.lanes.iter_mut().zip(shown.iter_mut()) {
            lane.note_backlog(now);
            shown.clone_from(&lane.counters);
        }
    }
}

fn admit_some(lane: &mut Lane, from: &Tun, to: &Tun) -> Result<bool, Failure> {
    for count in 0..BURST {
        if !lane.admit_packet(from, to)? {
            return Ok(count > 0);
        }
    }
    Ok(true)
}
