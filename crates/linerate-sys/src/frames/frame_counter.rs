//! A counter of test frames on a packet ring, which works on every interface
//! ([`crate::packet_capture`]), in a separate thread.
//!
//! Cost: 30 ns a frame for the kernel's copy of 64 bytes, 100 ns for both histograms. Frames
//! dropped because the ring was full are lost by the tester and not by the device, and are counted
//! separately. Times are the kernel's at the ring, converted to the monotonic clock to some 30 ns.
//! Left out: frames that the interface dropped, which are in its counters.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use linerate_core::device::{ForeignFrames, ReceiveCounts};

use crate::packet_capture::{BLOCK_AGE, CaptureCounts, CaptureOptions, PacketCapture};
use crate::sched::Pinned;
use crate::stop::Stop;
use crate::{Error, Result, clock};

use crate::frame_tally::FrameTally;
pub use crate::frame_tally::{SinkExpected, StreamExpected};

/// Longest wait for packets, so that requests are answered.
const WAIT: Duration = Duration::from_millis(5);

/// Number of readings of both clocks, of which the quickest is used.
const CLOCK_READINGS: usize = 9;

/// Change of the offset between both clocks from which the wall clock counts as set.
const CLOCK_STEP_NS: u64 = 5_000;

/// Options of a counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CounterOptions {
    /// Name of the interface, in the calling thread's network namespace.
    pub interface: String,
    /// Bytes of the ring: a frame takes its length and some 100 bytes.
    pub ring_bytes: usize,
    /// Processor to which the thread is pinned.
    pub cpu: Option<u32>,
}

impl CounterOptions {
    /// Options with a ring of 64 MiB: some 400,000 frames of 64 bytes.
    pub fn of_interface(name: &str) -> Self {
        Self { interface: name.to_owned(), ring_bytes: 64 << 20, cpu: None }
    }
}

/// Counts since the start of the trial.
#[derive(Clone, Debug, Default)]
pub struct CounterReading {
    /// Counts of each expected stream.
    pub streams: Vec<(u8, ReceiveCounts)>,
    /// Counts of all other frames.
    pub foreign: ForeignFrames,
    /// Frames dropped because the ring was full: lost by the tester, and in no other count.
    pub ring_dropped: u64,
    /// Frames received from the interface, including the dropped ones.
    pub seen: u64,
}

/// A running counter; its thread ends when it is dropped.
#[derive(Debug)]
pub struct FrameCounter {
    shared: Arc<SharedCounterState>,
    requests: Sender<CounterRequest>,
    thread: Option<JoinHandle<()>>,
    stop: Stop,
    name: String,
}

#[derive(Debug)]
struct SharedCounterState {
    frames: AtomicU64,
    /// Error of the capture since the start of the trial.
    broken: Mutex<Option<Error>>,
}

enum CounterRequest {
    Begin(SinkExpected, Sender<Result<()>>),
    Read { asked_ns: u64, answer: Sender<Result<CounterReading>> },
}

impl FrameCounter {
    /// Opens the ring in promiscuous mode, and starts the thread.
    /// # Errors
    /// The errors of [`PacketCapture::open`], or when no thread can be started.
    pub fn open(options: &CounterOptions, expected: SinkExpected) -> Result<Self> {
        let name = options.interface.clone();
        let capture = PacketCapture::open(&CaptureOptions {
            promiscuous: true,
            incoming_only: true,
            ring_bytes: options.ring_bytes,
            ..CaptureOptions::of_interface(&name)
        })?;
        let (shared, stop) = (Arc::new(SharedCounterState::new()), Stop::new());
        let (requests, inbox) = channel();
        let worker = Worker {
            capture,
            tally: FrameTally::new(expected),
            clocks: Clocks::read(),
            base: CaptureCounts::default(),
            begin_ns: 0,
            last_arrival_ns: 0,
            shared: shared.clone(),
            waiting: Vec::new(),
        };
        let (cpu, until) = (options.cpu, stop.clone());
        let thread = thread::Builder::new()
            .name("frame-counter".to_owned())
            .spawn(move || worker.count_until_stopped(cpu, &inbox, &until))
            .map_err(|source| Error::new("start the counter of", &name, source))?;
        Ok(Self { shared, requests, thread: Some(thread), stop, name })
    }

    /// Starts a trial: all counts are 0, and frames captured before are not counted.
    /// # Errors
    /// When the thread has ended, or the kernel's counts cannot be read.
    pub fn begin_trial(&self, expected: SinkExpected) -> Result<()> {
        self.ask_worker(|answer| CounterRequest::Begin(expected, answer))
    }

    /// Frames of the trial so far, without duplicates; some 10 ms old.
    pub fn frames(&self) -> u64 {
        self.shared.frames.load(Ordering::Relaxed)
    }

    /// Waits some 20 ms until all frames received so far are counted, and returns the counts.
    /// # Errors
    /// When the interface went down or was removed since the start of the trial.
    pub fn read(&self) -> Result<CounterReading> {
        let asked_ns = clock::monotonic().as_nanos();
        self.ask_worker(|answer| CounterRequest::Read { asked_ns, answer })
    }

    fn ask_worker<T>(
        &self,
        request: impl FnOnce(Sender<Result<T>>) -> CounterRequest,
    ) -> Result<T> {
        let (answer, reply) = channel();
        let gone = |_| {
            let source = std::io::Error::other("its thread has ended");
            Error::new("ask the counter of", &self.name, source)
        };
        self.requests.send(request(answer)).map_err(|_| gone(()))?;
        reply.recv().map_err(|_| gone(()))?
    }
}

impl Drop for FrameCounter {
    fn drop(&mut self) {
        self.stop.request_stop();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has already been printed; its counts are lost.
            let _ = thread.join();
        }
    }
}

impl SharedCounterState {
    const fn new() -> Self {
        Self { frames: AtomicU64::new(0), broken: Mutex::new(None) }
    }

    fn broken(&self) -> MutexGuard<'_, Option<Error>> {
        self.broken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Worker {
    capture: PacketCapture,
    tally: FrameTally,
    clocks: Clocks,
    /// Counts of the ring at the start of the trial.
    base: CaptureCounts,
    /// Start of the trial; earlier arrivals are not counted.
    begin_ns: u64,
    last_arrival_ns: u64,
    shared: Arc<SharedCounterState>,
    /// Requested readings that wait for the frames in the ring.
    waiting: Vec<(u64, Sender<Result<CounterReading>>)>,
}

impl Worker {
    fn count_until_stopped(
        mut self,
        cpu: Option<u32>,
        inbox: &Receiver<CounterRequest>,
        stop: &Stop,
    ) {
        let _pinned = cpu.map(Pinned::on_cpu);
        while !stop.is_requested() {
            let taken = self.count_block();
            // The requester may have gone, and then the answer is dropped.
            for request in inbox.try_iter() {
                match request {
                    CounterRequest::Begin(expected, answer) => {
                        let _ = answer.send(self.begin_trial(expected));
                    }
                    CounterRequest::Read { asked_ns, answer } => {
                        self.waiting.push((asked_ns, answer))
                    }
                }
            }
            self.answer(taken);
        }
    }

    /// Counts one block of the ring; returns its number of frames.
    fn count_block(&mut self) -> usize {
        let Self { capture, tally, clocks, begin_ns, last_arrival_ns, .. } = self;
        let taken = capture.take_packets(WAIT, |packet| {
            let tag = if packet.vlan.is_some() { 4 } else { 0 };
            *last_arrival_ns = clocks.monotonic(packet.at_ns);
            if *last_arrival_ns >= *begin_ns {
                tally.add(packet.data, packet.original_len as usize + tag, *last_arrival_ns);
            }
        });
        self.clocks.update();
        self.shared.frames.store(self.tally.frames(), Ordering::Relaxed);
        taken.unwrap_or_else(|error| {
            // A link that is down may come up again; the counts stay.
            *self.shared.broken() = Some(error);
            clock::sleep(WAIT);
            0
        })
    }

    fn begin_trial(&mut self, expected: SinkExpected) -> Result<()> {
        self.base = self.capture.counts()?;
        self.tally.begin_trial(expected);
        self.clocks = Clocks::read();
        self.begin_ns = clock::monotonic().as_nanos();
        self.shared.frames.store(0, Ordering::Relaxed);
        *self.shared.broken() = None;
        Ok(())
    }

    /// Answers the requests whose time the counts have reached: the kernel hands a block over when
    /// it is full or old, and blocks are in order.
    fn answer(&mut self, taken: usize) {
        let now_ns = clock::monotonic().as_nanos();
        let age_ns = 2 * BLOCK_AGE.as_nanos() as u64;
        let reached_ns = if taken == 0 { now_ns.saturating_sub(age_ns) } else { 0 };
        let reached_ns = reached_ns.max(self.last_arrival_ns);
        let (ready, waiting) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition::<Vec<_>, _>(|(asked_ns, _)| *asked_ns <= reached_ns);
        self.waiting = waiting;
        for (_, answer) in ready {
            let _ = answer.send(self.reading());
        }
    }

    fn reading(&mut self) -> Result<CounterReading> {
        let counts = self.capture.counts()?;
        if let Some(error) = &*self.shared.broken() {
            // Every reading of the trial returns the error.
            let source = std::io::Error::new(error.source.kind(), error.source.to_string());
            return Err(Error::new(error.call, &error.object, source));
        }
        Ok(CounterReading {
            streams: self.tally.streams(),
            foreign: self.tally.foreign(),
            ring_dropped: counts.dropped - self.base.dropped,
            seen: counts.seen - self.base.seen,
        })
    }
}

/// Offset of the wall clock from the monotonic clock.
#[derive(Clone, Copy, Debug)]
struct Clocks {
    offset_ns: i64,
}

impl Clocks {
    fn read() -> Self {
        let reading = || {
            let before = clock::monotonic().as_nanos();
            let offset = clock::realtime_offset_ns();
            (clock::monotonic().as_nanos() - before, offset)
        };
        let quickest = (0..CLOCK_READINGS).map(|_| reading()).min_by_key(|(took, _)| *took);
        Self { offset_ns: quickest.map_or(0, |(_, offset)| offset) }
    }

    const fn monotonic(self, wall_ns: u64) -> u64 {
        wall_ns.saturating_add_signed(self.offset_ns.wrapping_neg())
    }

    /// Reads the offset again if the wall clock was set.
    fn update(&mut self) {
        let now = clock::realtime_offset_ns();
        if now.abs_diff(self.offset_ns) > CLOCK_STEP_NS {
            *self = Self::read();
        }
    }
}
