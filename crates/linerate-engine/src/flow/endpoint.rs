//! All streams of one end: their threads, what is seen of them while they run, and their reports.
//!
//! What differs between TCP and UDP is the [`Transport`]: it starts the threads, whose loops stand
//! beside it, and tells what only its sockets know.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use linerate_core::record::{
    Contents, DatagramCounts, DatagramsSent, Direction, EndReport, FlowEnd, FlowSide,
    ReceivedDatagrams, SentDatagrams, SynOptions, Verified, ZeroCopySends,
};
use linerate_core::time::MonoTime;
use linerate_sys::clock::monotonic;
use linerate_sys::thread::{ThreadCost, schedule_of};

use super::{Sample, moved};
use crate::environment::StolenTime;
use crate::flow::tcp::span::MeasuredSpan;
use crate::host_counters::HostCounters;

/// Flags of a whole test at one end.
#[derive(Debug, Default)]
pub(crate) struct Switches {
    /// Senders stop as if their time were up.
    pub(crate) stop_sending: AtomicBool,
    /// Everybody leaves at once.
    pub(crate) halt: AtomicBool,
}

impl Switches {
    /// True where all threads are to leave.
    pub(crate) fn halted(&self) -> bool {
        self.halt.load(Ordering::Relaxed)
    }

    /// True where senders are to stop.
    pub(crate) fn stopped(&self) -> bool {
        self.stop_sending.load(Ordering::Relaxed) || self.halted()
    }
}

/// The state that a data thread shares with the thread that watches it.
#[derive(Debug, Default)]
pub(crate) struct StreamProgress {
    /// Payload bytes written or read so far over TCP.
    pub(crate) bytes: AtomicU64,
    counts: Mutex<DatagramCounts>,
    /// When a receiver last showed them, on the monotonic clock; 0 before.
    shown_ns: AtomicU64,
    /// The total that the sender of datagrams has sent, by its own word or the other end's, and
    /// since when that is known here.
    sent: Mutex<Option<(DatagramsSent, MonoTime)>>,
    /// A sender has sent everything, a receiver has taken everything.
    pub(crate) done: AtomicBool,
    /// The stream was given up.
    pub(crate) failed: AtomicBool,
    /// The kernel's number of the thread; 0 before it runs.
    pub(crate) thread: AtomicU32,
    /// When it began to move data over TCP, on the monotonic clock.
    begun_ns: AtomicU64,
    /// Time that it slept to keep a pace over TCP.
    asleep_ns: AtomicU64,
}

impl StreamProgress {
    /// The counts of datagrams so far, consistent with each other.
    pub(crate) fn counts(&self) -> DatagramCounts {
        *lock(&self.counts)
    }

    /// Shows new counts of datagrams.
    pub(crate) fn show_counts(&self, counts: DatagramCounts) {
        *lock(&self.counts) = counts;
    }

    /// Shows those of a receiver, to which some came by `now`.
    pub(crate) fn show_received(&self, counts: DatagramCounts, now: MonoTime) {
        self.show_counts(counts);
        self.shown_ns.store(now.as_nanos(), Ordering::Relaxed);
    }

    /// Time since a receiver last showed its counts, where it has.
    pub(crate) fn silent_ns(&self, now: MonoTime) -> Option<u64> {
        let shown_ns = self.shown_ns.load(Ordering::Relaxed);
        (shown_ns > 0).then(|| now.as_nanos().saturating_sub(shown_ns))
    }

    /// The total that the sender has sent, once it is known.
    pub(crate) fn datagrams_sent(&self) -> Option<DatagramsSent> {
        self.sent_since().map(|(sent, _)| sent)
    }

    /// The same, and since when it is known.
    pub(crate) fn sent_since(&self) -> Option<(DatagramsSent, MonoTime)> {
        *lock(&self.sent)
    }

    /// The sender is done; what it says later changes nothing.
    pub(crate) fn tell_sent(&self, sent: DatagramsSent, now: MonoTime) {
        lock(&self.sent).get_or_insert((sent, now));
    }

    /// True where the thread has left its loop.
    pub(crate) fn is_done(&self) -> bool {
        self.done.load(Ordering::Acquire)
    }

    /// The calling thread begins to move data of this stream.
    pub(crate) fn begin_transfer(&self, thread: u32, now: MonoTime) {
        self.begun_ns.store(now.as_nanos(), Ordering::Relaxed);
        self.thread.store(thread, Ordering::Relaxed);
    }

    /// The calling thread slept to keep a pace.
    pub(crate) fn add_sleep_time(&self, ns: u64) {
        self.asleep_ns.fetch_add(ns, Ordering::Relaxed);
    }

    /// Time that the thread slept to keep a pace so far.
    pub(crate) fn asleep_ns(&self) -> u64 {
        self.asleep_ns.load(Ordering::Relaxed)
    }

    /// The sample with the times of the data thread, while that runs.
    fn with_times(&self, sample: Sample, now: MonoTime) -> Sample {
        let Some((ran, waited)) = self.schedule() else { return sample };
        let times = Sample { cpu_ns: Some(ran), run_queue_wait_ns: Some(waited), ..sample };
        let begun = self.begun_ns.load(Ordering::Relaxed);
        if begun == 0 {
            return times;
        }
        let asleep = self.asleep_ns();
        let spent = ran.saturating_add(waited).saturating_add(asleep);
        let blocked = now.as_nanos().saturating_sub(begun).saturating_sub(spent);
        Sample { blocked_ns: Some(blocked), asleep_ns: Some(asleep), ..times }
    }

    /// Processor time and waiting for a processor so far, while the thread runs.
    fn schedule(&self) -> Option<(u64, u64)> {
        match self.thread.load(Ordering::Relaxed) {
            0 => None,
            thread => schedule_of(thread),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The results of one data thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct StreamOutcome {
    pub(crate) measured: MeasuredSpan,
    pub(crate) io_calls: u64,
    pub(crate) cost: ThreadCost,
    /// Time that the thread slept to keep a pace; none over UDP.
    pub(crate) asleep_ns: Option<u64>,
    pub(crate) failure: Option<String>,
    /// How data was moved, for the record.
    pub(crate) technique: String,
    pub(crate) contents: Option<Contents>,
    pub(crate) verified: Option<Verified>,
    pub(crate) zero_copy_sends: Option<ZeroCopySends>,
    pub(crate) sent: Option<SentDatagrams>,
    pub(crate) received: Option<ReceivedDatagrams>,
    /// Processors that the thread was seen on, and the one it was kept on.
    pub(crate) cpus: (Vec<u32>, Option<u32>),
}

impl StreamOutcome {
    /// The outcome of a thread that could not begin, or did not end.
    pub(crate) fn failed(reason: impl Into<String>) -> Self {
        let technique = "none".to_owned();
        Self { failure: Some(reason.into()), technique, ..Self::default() }
    }

    /// The end of a stream as the record keeps it, in a test that began at `started`.
    fn flow_end(&self, started: MonoTime) -> FlowEnd {
        FlowEnd {
            bytes: self.measured.bytes_total,
            bytes_measured: self.measured.bytes,
            span_start_ns: self.measured.begin.nanos_since(started),
            span_ns: self.measured.span_ns,
            io_calls: self.io_calls,
            cpu_user_ns: self.cost.user_ns,
            cpu_system_ns: self.cost.system_ns,
            run_queue_wait_ns: self.cost.run_queue_wait_ns,
            blocked_ns: self
                .asleep_ns
                .zip(self.cost.off_ns())
                .map(|(slept, off)| off.saturating_sub(slept)),
            asleep_ns: self.asleep_ns,
            last_cpu: self.cost.cpu,
            cpus_seen: self.cpus.0.clone(),
            pinned_cpu: self.cpus.1,
            technique: self.technique.clone(),
            contents: self.contents,
            verified: self.verified,
            zero_copy_sends: self.zero_copy_sends,
            sent_datagrams: self.sent.clone(),
            received_datagrams: self.received.clone(),
            ..FlowEnd::default()
        }
    }
}

/// The parts in which the streams of TCP and of UDP differ.
pub(crate) trait Transport {
    /// The state that an end holds of each stream beside its thread.
    type Socket;

    /// Threads of this transport go on until they are told to leave.
    const LINGERS: bool;

    /// Completes a sample of a stream with the counts of its sockets and its thread now.
    fn sample(&self, stream: &EndpointStream<Self::Socket>, sample: Sample) -> Sample;

    /// Completes the record of a stream that is over with the counts of its socket; also the
    /// client's SYN.
    fn flow_end(&self, socket: &Self::Socket, end: FlowEnd) -> (FlowEnd, Option<SynOptions>);

    /// Payload that a stream moved so far, bytes.
    fn moved_bytes(&self, stream: &EndpointStream<Self::Socket>) -> u64;

    /// The address that a stream's socket is connected to.
    fn connected_ip(&self, socket: &Self::Socket) -> Option<IpAddr>;
}

/// One stream of one end.
pub(crate) struct EndpointStream<S> {
    pub(crate) direction: Direction,
    pub(crate) flow: u16,
    pub(crate) side: FlowSide,
    client_addr: String,
    pub(crate) progress: Arc<StreamProgress>,
    pub(crate) socket: S,
    thread: Option<JoinHandle<StreamOutcome>>,
}

impl<S> EndpointStream<S> {
    /// Starts the stream's thread.
    pub(crate) fn start_thread(
        &mut self,
        run: impl FnOnce() -> StreamOutcome + Send + 'static,
    ) -> linerate_sys::Result<()> {
        let spawned = std::thread::Builder::new().name("linerate-data".to_owned()).spawn(run);
        let failed = |source| linerate_sys::Error::new("start", "a data thread", source);
        self.thread = Some(spawned.map_err(failed)?);
        Ok(())
    }

    fn join_thread(&mut self) -> StreamOutcome {
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(outcome)) => outcome,
            Some(Err(_)) => StreamOutcome::failed("the data thread ended by a panic"),
            None => StreamOutcome::failed("never started"),
        }
    }
}

/// Which stream a socket is.
#[derive(Clone, Debug)]
pub(crate) struct StreamId {
    pub(crate) direction: Direction,
    pub(crate) flow: u16,
    pub(crate) side: FlowSide,
    pub(crate) client_addr: String,
}

/// The streams of one end of a test.
pub(crate) struct Endpoint<T: Transport> {
    pub(crate) transport: T,
    pub(crate) streams: Vec<EndpointStream<T::Socket>>,
    pub(crate) switches: Arc<Switches>,
    started: MonoTime,
    stolen: Option<StolenTime>,
    counters: Option<HostCounters>,
}

impl<T: Transport> Endpoint<T> {
    /// An end without streams yet.
    pub(crate) fn with_transport(transport: T) -> Self {
        let (streams, switches) = (Vec::new(), Arc::default());
        let (started, stolen, counters) = (MonoTime::default(), None, None);
        Self { transport, streams, switches, started, stolen, counters }
    }

    /// Takes over the socket of an open stream.
    pub(crate) fn push(&mut self, socket: T::Socket, place: StreamId) {
        let StreamId { direction, flow, side, client_addr } = place;
        let (progress, thread) = (Arc::default(), None);
        let stream =
            EndpointStream { direction, flow, side, client_addr, progress, socket, thread };
        self.streams.push(stream);
    }

    /// Times count from here.
    pub(crate) fn start_clock(&mut self, now: MonoTime) {
        self.started = now;
        self.stolen = Some(StolenTime::start_measuring());
        if self.counters.is_none() {
            self.count_from_here();
        }
    }

    /// The counters of the host count from here. Reading them takes some milliseconds, so an end
    /// does it before the start where it can.
    pub(crate) fn count_from_here(&mut self) {
        let mut peers =
            self.streams.iter().filter_map(|stream| self.transport.connected_ip(&stream.socket));
        self.counters = Some(HostCounters::start_counting(peers.next()));
    }

    /// True where the test has begun at this end.
    pub(crate) const fn has_started(&self) -> bool {
        self.stolen.is_some()
    }

    /// Takes a sample of every stream at `now`.
    pub(crate) fn sample(&self, now: MonoTime) -> Vec<Sample> {
        let t_ns = now.nanos_since(self.started);
        let samples = self.streams.iter().map(|stream| {
            let sample = Sample::empty_at(stream.direction, stream.flow, t_ns);
            self.transport.sample(stream, stream.progress.with_times(sample, now))
        });
        samples.collect()
    }

    /// The streams that this end sends, or those that it receives.
    pub(crate) fn on_side(
        &self,
        side: FlowSide,
    ) -> impl Iterator<Item = &EndpointStream<T::Socket>> {
        self.streams.iter().filter(move |stream| stream.side == side)
    }

    /// Time since the start of the test.
    pub(crate) const fn since_start_ns(&self, now: MonoTime) -> u64 {
        now.nanos_since(self.started)
    }

    /// Senders stop as if their time were up.
    pub(crate) fn stop_sending(&self) {
        self.switches.stop_sending.store(true, Ordering::Relaxed);
    }

    /// Everybody leaves at once.
    pub(crate) fn halt_streams(&self) {
        self.switches.halt.store(true, Ordering::Relaxed);
    }

    /// True where senders have sent everything and receivers have taken everything.
    pub(crate) fn is_done(&self) -> bool {
        self.streams.iter().all(|stream| stream.progress.is_done())
    }

    /// True where a stream was given up.
    pub(crate) fn has_failed(&self) -> bool {
        self.streams.iter().any(|stream| stream.progress.failed.load(Ordering::Acquire))
    }

    /// Waits for the threads and tells what every stream did.
    pub(crate) fn finish(mut self) -> Vec<EndReport> {
        if T::LINGERS {
            self.halt_streams();
        }
        let mut streams = std::mem::take(&mut self.streams);
        let outcomes: Vec<StreamOutcome> =
            streams.iter_mut().map(EndpointStream::join_thread).collect();
        for stream in &streams {
            moved::add_client_bytes(&stream.client_addr, self.transport.moved_bytes(stream));
        }
        let stolen_ratio = self.stolen.take().and_then(StolenTime::stolen_ratio);
        let mut deltas = self.counters.take().map(HostCounters::deltas);
        let reports = streams.into_iter().zip(outcomes).map(|(stream, outcome)| {
            let end = outcome.flow_end(self.started);
            let (mut end, syn) = self.transport.flow_end(&stream.socket, end);
            end.tcp_info_at_ns = end.tcp_info.map(|_| monotonic().nanos_since(self.started));
            let EndpointStream { direction, flow, client_addr, .. } = stream;
            EndReport {
                direction,
                flow,
                end,
                syn,
                client_addr,
                failure: outcome.failure,
                stolen_ratio,
                deltas: deltas.take(),
            }
        });
        reports.collect()
    }
}

impl<T: Transport> Drop for Endpoint<T> {
    /// An endpoint that is given up takes its threads along.
    fn drop(&mut self) {
        self.halt_streams();
        for stream in &self.streams {
            moved::add_client_bytes(&stream.client_addr, self.transport.moved_bytes(stream));
        }
    }
}
