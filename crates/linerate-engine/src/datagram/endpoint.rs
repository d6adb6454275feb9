//! All streams of one end: starts their threads, samples them, and tells what they did.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use linerate_core::record::{
    Asked, DatagramsSent, Direction, EndReport, FlowEnd, Interface, SearchNews, Side,
};
use linerate_core::time::MonoTime;
use linerate_proto::native::{Token, UdpRequest, stream_tag};
use linerate_sys::clock::monotonic;
use linerate_sys::datagram_socket::{DatagramOptions, DatagramSocket};
use linerate_sys::sched;

use super::client::header_bytes;
use super::layout::Layout;
use super::progress::{CALL_TIMEOUT, Outcome, Progress, Switches};
use super::receiver::Receiver;
use super::search::{self, SearchEnd};
use super::search_sender::{self, Steering};
use super::sender::Sender;
use crate::environment::StolenTime;
use crate::flow::Sample;

/// Largest buffer that a receiver's socket asks for where the test names none, and all of a test's
/// together; and that of a search, whose rates are to be offered whatever the link makes of them.
const BUFFER_BYTES_MAX: u64 = 32 << 20;
const BUFFERS_BYTES_MAX: u64 = 64 << 20;

/// The largest buffer of one socket of a test.
pub(super) fn buffer_bytes_max(request: &UdpRequest) -> u64 {
    let streams = u64::from(request.streams) * request.each_direction().len() as u64;
    (BUFFERS_BYTES_MAX / streams.max(1)).min(BUFFER_BYTES_MAX)
}

/// The streams of one end of a test.
pub(crate) struct Endpoint {
    request: UdpRequest,
    layout: Layout,
    /// What every datagram holds before its layout writes to it; empty for nothing.
    head: Arc<[u8]>,
    streams: Vec<Stream>,
    switches: Arc<Switches>,
    started: MonoTime,
    stolen: Option<StolenTime>,
    /// The processor of the first thread; the others take those after it.
    cpu: Option<u32>,
    /// Round-trip time of the control connection, where known.
    rtt: Option<Duration>,
    /// Datagrams that leave at once within the pace.
    burst: Option<u32>,
    /// Datagrams that may still leave, where the caller keeps count of them.
    allowed: Option<Arc<AtomicU64>>,
}

/// One stream of one end.
struct Stream {
    socket: Arc<DatagramSocket>,
    direction: Direction,
    flow: u16,
    side: Side,
    tag: u16,
    client_addr: String,
    progress: Arc<Progress>,
    search: Option<Arc<SearchEnd>>,
    thread: Option<JoinHandle<Outcome>>,
}

/// Which stream a socket is.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) direction: Direction,
    pub(crate) flow: u16,
    pub(crate) side: Side,
    pub(crate) client_addr: String,
}

/// Opens a socket for a stream of a test.
pub(crate) fn open_socket(
    request: &UdpRequest,
    local: SocketAddr,
) -> linerate_sys::Result<DatagramSocket> {
    opened(request, local, false)
}

/// The same at a port that other sockets of this program have, too.
pub(crate) fn open_socket_at(
    request: &UdpRequest,
    local: SocketAddr,
) -> linerate_sys::Result<DatagramSocket> {
    opened(request, local, true)
}

fn opened(
    request: &UdpRequest,
    local: SocketAddr,
    shared: bool,
) -> linerate_sys::Result<DatagramSocket> {
    let options = DatagramOptions {
        local,
        window_bytes: request.window_bytes,
        buffer_bytes_max: buffer_bytes_max(request),
        dscp: request.dscp,
        shared,
    };
    let socket = DatagramSocket::open(&options)?;
    let searches = request.search.is_some();
    socket.set_call_timeout(if searches { search::CALL_TIMEOUT } else { CALL_TIMEOUT })?;
    Ok(socket)
}

impl Endpoint {
    pub(crate) fn new(request: UdpRequest, cpu: Option<u32>) -> Self {
        Self::with_layout(request, Layout::OWN, cpu)
    }

    /// The end of a test whose datagrams have another layout.
    pub(crate) fn with_layout(request: UdpRequest, layout: Layout, cpu: Option<u32>) -> Self {
        let switches = Arc::new(Switches::default());
        let started = MonoTime::default();
        Self {
            request,
            layout,
            head: Arc::default(),
            streams: Vec::new(),
            switches,
            started,
            stolen: None,
            cpu,
            rtt: None,
            burst: None,
            allowed: None,
        }
    }

    /// The senders end when they have sent as many datagrams as `allowed` holds, which the caller
    /// may add to while they run; the plan's own number does not count then.
    pub(crate) fn allow(&mut self, allowed: Arc<AtomicU64>) {
        self.allowed = Some(allowed);
    }

    /// What every datagram of this end's senders begins with, where its layout leaves it alone.
    pub(crate) fn begin_with(&mut self, head: &[u8]) {
        self.head = head.into();
    }

    /// Takes note of the round-trip time to the other end; there is none over the loopback, however
    /// long a busy host took to answer.
    pub(crate) fn note_rtt(&mut self, rtt: Option<Duration>, interface: Option<&Interface>) {
        let kind = interface.and_then(|interface| interface.kind.as_deref());
        self.rtt = if kind == Some("loopback") { Some(Duration::ZERO) } else { rtt };
    }

    /// Senders with a pace let so many datagrams leave at once.
    pub(crate) const fn in_bursts(mut self, burst: Option<u32>) -> Self {
        self.burst = burst;
        self
    }

    /// Takes over the socket of a stream that is open at both ends.
    pub(crate) fn add(&mut self, socket: DatagramSocket, place: Place, token: Token) {
        let local = socket.local_address().map(|address| address.ip());
        let headers = local.map_or(0, header_bytes);
        self.streams.push(Stream {
            search: SearchEnd::new(&self.request, headers).map(Arc::new),
            socket: Arc::new(socket),
            direction: place.direction,
            flow: place.flow,
            side: place.side,
            tag: stream_tag(token, place.direction, place.flow),
            client_addr: place.client_addr,
            progress: Arc::default(),
            thread: None,
        });
    }

    /// Starts the receiving threads, which have to be there before the first datagram.
    pub(crate) fn start_receivers(&mut self) -> linerate_sys::Result<()> {
        let cpus = self.cpus();
        for (stream, cpu) in self.streams.iter_mut().zip(cpus) {
            if stream.side == Side::Receiver {
                let receiver = Receiver {
                    socket: Arc::clone(&stream.socket),
                    request: self.request.clone(),
                    tag: stream.tag,
                    layout: self.layout,
                    switches: Arc::clone(&self.switches),
                    progress: Arc::clone(&stream.progress),
                    search: stream.search.clone(),
                };
                receiver.grant_first();
                stream.thread = Some(spawn(cpu, move || receiver.run())?);
            }
        }
        Ok(())
    }

    /// Starts the test: times count from here, and the senders send.
    pub(crate) fn start_senders(&mut self, now: MonoTime) -> linerate_sys::Result<()> {
        self.started = now;
        self.stolen = Some(StolenTime::begin());
        let planned =
            || self.request.datagram_budget().map(|count| Arc::new(AtomicU64::new(count)));
        let budget = self.allowed.clone().or_else(planned);
        let cpus = self.cpus();
        for (stream, cpu) in self.streams.iter_mut().zip(cpus) {
            if stream.side == Side::Sender {
                let steering = stream.steering();
                let sender = Sender {
                    socket: Arc::clone(&stream.socket),
                    request: self.request.clone(),
                    place: (stream.direction, stream.flow),
                    tag: stream.tag,
                    layout: self.layout,
                    head: Arc::clone(&self.head),
                    rtt: self.rtt,
                    burst: self.burst,
                    budget: budget.clone(),
                    switches: Arc::clone(&self.switches),
                    progress: Arc::clone(&stream.progress),
                    steering: steering.clone(),
                };
                stream.thread = Some(match steering {
                    None => spawn(cpu, move || sender.run())?,
                    Some(it) => spawn(cpu, move || search_sender::run(sender, &it))?,
                });
            }
        }
        Ok(())
    }

    fn cpus(&self) -> impl Iterator<Item = Option<u32>> + use<> {
        let first = self.cpu;
        (0..).map(move |index| first.map(|first| first.saturating_add(index)))
    }

    /// One sample of every stream at `now`.
    pub(crate) fn sample(&self, now: MonoTime) -> Vec<Sample> {
        let t_ns = now.nanos_since(self.started);
        let size = self.request.size_bytes;
        self.streams.iter().map(|stream| stream.sample(t_ns, size)).collect()
    }

    /// What there is to tell of a search since the last call; none in other tests.
    pub(crate) fn search_news(&self) -> Option<SearchNews> {
        let search = self.streams.iter().find_map(|stream| stream.search.as_ref())?;
        Some(search.take_news()).filter(|news| !news.is_empty())
    }

    /// Senders stop as if their time were up.
    pub(crate) fn stop_sending(&self) {
        self.switches.stop_sending.store(true, Ordering::Relaxed);
    }

    /// Everybody leaves at once.
    pub(crate) fn halt(&self) {
        self.switches.halt.store(true, Ordering::Relaxed);
    }

    /// The sockets of all streams, for what goes beside data.
    pub(crate) fn sockets(&self) -> impl Iterator<Item = &DatagramSocket> {
        self.streams.iter().map(|stream| &*stream.socket)
    }

    /// Whether senders have sent everything and receivers have taken everything.
    pub(crate) fn is_done(&self) -> bool {
        self.streams.iter().all(Stream::is_done)
    }

    /// What the senders of this end have sent, once all are done; none without senders.
    pub(crate) fn sent(&self) -> Option<Vec<DatagramsSent>> {
        let senders = self.streams.iter().filter(|stream| stream.side == Side::Sender);
        let done = senders.map(|stream| stream.progress.sent().filter(|_| stream.is_done()));
        done.collect::<Option<Vec<DatagramsSent>>>().filter(|sent| !sent.is_empty())
    }

    /// Takes note of what the other end's senders have sent.
    pub(crate) fn told_sent(&self, sent: &[DatagramsSent]) {
        let now = monotonic();
        for told in sent {
            let same = |stream: &&Stream| {
                stream.side == Side::Receiver
                    && (stream.direction, stream.flow) == (told.direction, told.flow)
            };
            if let Some(stream) = self.streams.iter().find(same) {
                stream.progress.tell_sent(*told, now);
            }
        }
    }

    /// Whether a stream was given up.
    pub(crate) fn has_failed(&self) -> bool {
        self.streams.iter().any(|stream| stream.progress.failed.load(Ordering::Acquire))
    }

    /// Waits for the threads and tells what every stream did.
    pub(crate) fn finish(mut self) -> Vec<EndReport> {
        self.halt();
        let streams = std::mem::take(&mut self.streams);
        let outcomes = streams.into_iter().map(|mut stream| (stream.join(), stream));
        let outcomes: Vec<(Outcome, Stream)> = outcomes.collect();
        let stolen_ratio = self.stolen.and_then(StolenTime::ratio);
        let report = |(outcome, stream): (Outcome, Stream)| EndReport {
            stolen_ratio,
            ..stream.report(&self.request, self.started, outcome)
        };
        outcomes.into_iter().map(report).collect()
    }
}

impl Drop for Endpoint {
    /// An endpoint that is given up takes its threads along.
    fn drop(&mut self) {
        self.halt();
    }
}

fn spawn(
    cpu: Option<u32>,
    run: impl FnOnce() -> Outcome + Send + 'static,
) -> linerate_sys::Result<JoinHandle<Outcome>> {
    let held = move || {
        // Where the kernel refuses, the thread stays free; the record tells where it ran.
        let _held = cpu.map(sched::Pinned::to);
        run()
    };
    let spawned = std::thread::Builder::new().name("linerate-udp".to_owned()).spawn(held);
    spawned.map_err(|source| linerate_sys::Error::new("start", "a data thread", source))
}

impl Stream {
    fn steering(&self) -> Option<Arc<Steering>> {
        let search = Arc::clone(self.search.as_ref()?);
        Some(Arc::new(Steering::new(search, self.tag, Arc::clone(&self.progress))))
    }

    fn is_done(&self) -> bool {
        self.progress.done.load(Ordering::Acquire)
    }

    fn sample(&self, t_ns: u64, size_bytes: u32) -> Sample {
        let schedule = self.progress.schedule();
        let sample = Sample {
            cpu_ns: schedule.map(|(ran, _)| ran),
            run_queue_wait_ns: schedule.map(|(_, waited)| waited),
            ..Sample::of(self.direction, self.flow, t_ns)
        };
        sample.with_datagrams(self.progress.counts(), size_bytes)
    }

    fn join(&mut self) -> Outcome {
        let failed = |reason: &str| Outcome {
            failure: Some(reason.to_owned()),
            technique: "none",
            ..Outcome::default()
        };
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(outcome)) => outcome,
            Some(Err(_)) => failed("the data thread ended by a panic"),
            None => failed("never started"),
        }
    }

    fn report(self, request: &UdpRequest, started: MonoTime, outcome: Outcome) -> EndReport {
        let (sndbuf, rcvbuf) = self.socket.buffers();
        let size = u64::from(request.size_bytes);
        let (count, measured) = match (&outcome.sent, &outcome.received) {
            (Some(sent), _) => (sent.count, sent.measured),
            (None, Some(received)) => (received.all.received, received.measured.received),
            (None, None) => (0, 0),
        };
        let asked = |got| Asked { asked: request.window_bytes, got };
        let end = FlowEnd {
            bytes: count.saturating_mul(size),
            bytes_measured: measured.saturating_mul(size),
            span_start_ns: outcome.begin.map_or(0, |begin| begin.nanos_since(started)),
            span_ns: outcome.span_ns,
            io_calls: outcome.io_calls,
            cpu_user_ns: outcome.cost.user_ns,
            cpu_system_ns: outcome.cost.system_ns,
            run_queue_wait_ns: outcome.cost.run_queue_wait_ns,
            last_cpu: outcome.cost.cpu,
            sndbuf_bytes: asked(sndbuf),
            rcvbuf_bytes: asked(rcvbuf),
            technique: outcome.technique.to_owned(),
            sent_datagrams: outcome.sent,
            received_datagrams: outcome.received,
            ..FlowEnd::default()
        };
        EndReport {
            direction: self.direction,
            flow: self.flow,
            end,
            syn: None,
            client_addr: self.client_addr,
            failure: outcome.failure,
            stolen_ratio: None,
        }
    }
}
