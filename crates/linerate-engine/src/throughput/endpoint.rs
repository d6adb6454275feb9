//! All data streams of one end: starts their threads, samples them, and tells what they did.

use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use linerate_core::record::{
    Asked, Direction, EndReport, FlowEnd, MultipathTcp, Side, SynOptions, TcpInfo,
};
use linerate_core::time::MonoTime;
use linerate_core::units::BitRate;
use linerate_proto::native::Request;
use linerate_sys::clock::{monotonic, sleep};
use linerate_sys::tcp::{self, Multipath, TcpOptions};

use crate::environment::StolenTime;
use crate::flow::Sample;

use super::data::{CALL_TIMEOUT, Outcome, Progress, Receiver, Sender, Switches};
use super::dealt::{Dealer, Dealt};
use super::delivery::{Delivery, Outstanding};
use super::intake::Treatment;
use super::outlet::Payload;
use super::span::Extent;

/// What is on the way of a flow in the background has this long to arrive once the test is over.
const BACKGROUND_END: Duration = Duration::from_secs(2);

/// The streams of one end of a test.
pub(crate) struct Endpoint {
    request: Request,
    manner: Manner,
    streams: Vec<Stream>,
    switches: Arc<Switches>,
    payload: Option<Arc<Payload>>,
    /// Processors of the data threads, in turn by stream number.
    cpus: Vec<u32>,
    /// Senders close their direction when they are done.
    closes: bool,
    /// Whole buffers that leave at once within the pace.
    burst: Option<u32>,
    /// Rate that the kernel holds senders to (SO_MAX_PACING_RATE).
    kernel_pace: Option<BitRate>,
    /// Senders write whole buffers, and spans of receivers are counted from the start of the test.
    as_iperf3: bool,
    /// Since when streams could bring data, where that was before the start.
    open_since: Option<MonoTime>,
    started: MonoTime,
    stolen: Option<StolenTime>,
}

/// How the streams of an end differ between this program's own protocol and others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    /// What senders send, by the length of one write.
    pub(crate) content: fn(usize) -> Vec<u8>,
    /// The other end tells nothing of what it received.
    pub(crate) one_sided: bool,
    /// Bytes that end a test are shared out to the streams beforehand.
    pub(crate) shares: bool,
    /// Senders of several streams deal whole buffers out to them in turn.
    pub(crate) dealt: bool,
}

impl Manner {
    /// Between two of this program.
    pub(crate) const OWN: Self =
        Self { content: own_content, one_sided: false, shares: false, dealt: false };
}

/// One stream of one end.
struct Stream {
    socket: Arc<TcpStream>,
    head: Vec<u8>,
    delivery: Option<Delivery>,
    direction: Direction,
    flow: u16,
    side: Side,
    client_addr: String,
    syn: Option<SynOptions>,
    /// Congestion window of a sending stream before its first byte, in segments.
    initial_window: Option<u32>,
    /// What the peer has acknowledged, from before the first byte on.
    acknowledged: Delivery,
    progress: Arc<Progress>,
    thread: Option<JoinHandle<Outcome>>,
    windows: Windows,
}

/// Largest windows and the fullest send buffer seen so far.
#[derive(Clone, Copy, Debug, Default)]
struct Windows {
    advertised: Option<u64>,
    offered: Option<u64>,
    queued: Option<u64>,
}

/// Options of the sockets of a test; they go before the handshake.
pub(crate) fn socket_options(request: &Request) -> TcpOptions {
    TcpOptions {
        window_bytes: request.window_bytes,
        mss_bytes: request.mss_bytes,
        congestion_control: request.congestion_control.clone(),
        nodelay: request.nodelay,
        dscp: request.dscp,
        mptcp: request.means.mptcp,
        ..TcpOptions::default()
    }
}

impl Endpoint {
    pub(crate) fn new(request: Request) -> Self {
        Self::in_manner(request, Manner::OWN)
    }

    /// The end of a test in the manner of another protocol.
    pub(crate) fn in_manner(request: Request, manner: Manner) -> Self {
        Self {
            request,
            manner,
            streams: Vec::new(),
            switches: Arc::default(),
            payload: None,
            cpus: Vec::new(),
            closes: true,
            burst: None,
            kernel_pace: None,
            as_iperf3: false,
            open_since: None,
            started: MonoTime::default(),
            stolen: None,
        }
    }

    /// The same with its data threads kept on these processors, in turn; none leaves them free.
    pub(crate) fn kept_on(mut self, cpus: &[u32]) -> Self {
        self.cpus = cpus.to_vec();
        self
    }

    /// An end of a test of iperf3: receivers may count whole buffers alone, and all streams have
    /// the span of the test.
    pub(crate) fn of_iperf3(request: Request) -> Self {
        let mut endpoint = Self::new(request);
        endpoint.as_iperf3 = true;
        endpoint
    }

    /// The same, but streams have been open since `then`: what waits when the test begins came
    /// after that.
    pub(crate) const fn open_since(mut self, then: MonoTime) -> Self {
        self.open_since = Some(then);
        self
    }

    /// The same, but the receiver learns of the end by other means than the end of the stream.
    pub(crate) const fn leaving_open(mut self) -> Self {
        self.closes = false;
        self
    }

    /// Senders are held to this rate by the kernel.
    pub(crate) const fn paced_by_kernel(mut self, rate_bps: Option<u64>) -> Self {
        self.kernel_pace = match rate_bps {
            Some(rate_bps) => Some(BitRate::from_bits_per_sec(rate_bps)),
            None => None,
        };
        self
    }

    /// Senders with a pace write so many buffers at once.
    pub(crate) const fn in_bursts(mut self, burst: Option<u32>) -> Self {
        self.burst = burst;
        self
    }

    /// What the stream that was added last sends before its payload.
    pub(crate) fn begin_with(&mut self, head: Vec<u8>) {
        if let Some(stream) = self.streams.last_mut() {
            stream.head = head;
        }
    }

    /// Takes over a connected data stream over which this end has sent nothing yet. `client_addr`
    /// is the client's address.
    pub(crate) fn add(
        &mut self,
        socket: TcpStream,
        (direction, flow, side): (Direction, u16, Side),
        client_addr: String,
    ) -> Arc<TcpStream> {
        let socket = Arc::new(socket);
        let sends = side == Side::Sender;
        let info = tcp::tcp_info(socket.as_fd()).filter(|_| sends);
        let counts = sends && self.manner.one_sided;
        let syn = tcp::saved_syn(socket.as_fd());
        self.streams.push(Stream {
            socket: Arc::clone(&socket),
            head: Vec::new(),
            delivery: counts.then(|| Delivery::of(&socket)),
            direction,
            flow,
            side,
            client_addr,
            syn,
            initial_window: info.and_then(|info| info.snd_cwnd),
            acknowledged: Delivery::of(&socket),
            progress: Arc::default(),
            thread: None,
            windows: Windows::default(),
        });
        socket
    }

    /// Makes what the senders of this end send. It takes a while, so it goes before the start:
    /// the first interval would otherwise show less than the path carries.
    pub(crate) fn prepare(&mut self) -> linerate_sys::Result<()> {
        if self.streams.iter().any(|stream| stream.side == Side::Sender) {
            self.payload = Some(Arc::new(Payload::of(&self.request, self.manner.content)?));
        }
        Ok(())
    }

    /// Starts every stream's thread; senders must be prepared.
    pub(crate) fn start(&mut self, now: MonoTime) -> linerate_sys::Result<()> {
        self.started = now;
        self.stolen = Some(StolenTime::begin());
        let heads: u64 = self.streams.iter().map(|stream| stream.head.len() as u64).sum();
        let bytes = self.request.byte_budget();
        let all = bytes.map(|bytes| Arc::new(AtomicU64::new(bytes.saturating_sub(heads))));
        let dealer = Arc::new(Dealer::default());
        let extent = self.extent();
        for stream in &mut self.streams {
            let (place, cpu) = ((stream.direction, stream.flow), in_turn(&self.cpus, stream.flow));
            tcp::set_call_timeout(&stream.socket, CALL_TIMEOUT)?;
            if let Some(rate) = self.kernel_pace.filter(|_| stream.side == Side::Sender) {
                tcp::set_pacing_rate(&stream.socket, rate)?;
            }
            stream.thread = Some(match (stream.side, &self.payload) {
                (Side::Sender, Some(payload)) => {
                    let sender = Sender {
                        stream: Arc::clone(&stream.socket),
                        payload: Arc::clone(payload),
                        place,
                        cpu,
                        finish: self.request.finish,
                        omit_ns: self.request.omit_ns,
                        pace: self.request.pace_bps.map(BitRate::from_bits_per_sec),
                        burst: self.burst,
                        closes: self.closes,
                        whole_buffers: self.as_iperf3,
                        budget: match bytes.filter(|_| self.manner.shares) {
                            Some(bytes) => Some(stream.share(bytes, self.request.streams)),
                            None => all.clone(),
                        },
                        head: std::mem::take(&mut stream.head),
                        dealt: dealt(self.manner, &self.request, stream.flow, &dealer),
                        delivery: stream.delivery,
                        switches: Arc::clone(&self.switches),
                        progress: Arc::clone(&stream.progress),
                    };
                    spawn(move || sender.run())?
                }
                _ => {
                    let receiver = Receiver {
                        stream: Arc::clone(&stream.socket),
                        finish: self.request.finish,
                        omit_ns: self.request.omit_ns,
                        started: self.open_since.unwrap_or(now),
                        extent,
                        autotuned: self.request.window_bytes.is_none(),
                        treatment: Treatment {
                            with: self.request.means.receive_with,
                            read_bytes: self.request.read_bytes,
                            verify_seed: self.request.means.verify_seed,
                            place,
                        },
                        cpu,
                        switches: Arc::clone(&self.switches),
                        progress: Arc::clone(&stream.progress),
                    };
                    spawn(move || receiver.run())?
                }
            });
        }
        Ok(())
    }

    /// Which span receivers measure.
    const fn extent(&self) -> Extent {
        match (self.as_iperf3, self.manner.one_sided) {
            (true, _) => Extent::Fixed,
            (false, true) => Extent::Whole,
            (false, false) => Extent::Own,
        }
    }

    /// One sample of every stream at `now`.
    pub(crate) fn sample(&mut self, now: MonoTime) -> Vec<Sample> {
        let t_ns = now.nanos_since(self.started);
        self.streams.iter_mut().map(|stream| stream.sample(t_ns)).collect()
    }

    /// Bytes that the receivers have read so far.
    pub(crate) fn received(&self) -> u64 {
        let receivers = self.streams.iter().filter(|stream| stream.side == Side::Receiver);
        receivers.map(|stream| stream.progress.bytes.load(Ordering::Relaxed)).sum()
    }

    /// Bytes that all streams have moved so far.
    pub(crate) fn moved(&self) -> u64 {
        self.streams.iter().map(|stream| stream.progress.bytes.load(Ordering::Relaxed)).sum()
    }

    /// What the peer's kernel has acknowledged of every sending stream at `now`, which began with
    /// `head_bytes` that do not count: the receiver's count as far as this end can tell.
    pub(crate) fn acknowledged(&self, now: MonoTime, head_bytes: u64) -> Vec<Sample> {
        let t_ns = now.nanos_since(self.started);
        let senders = self.streams.iter().filter(|stream| stream.side == Side::Sender);
        senders.map(|stream| stream.acknowledged(t_ns, head_bytes)).collect()
    }

    /// How far what the senders wrote has come, all streams together.
    pub(crate) fn outstanding(&self) -> Outstanding {
        let senders = self.streams.iter().filter(|stream| stream.side == Side::Sender);
        let infos = senders.filter_map(|stream| tcp::tcp_info(stream.socket.as_fd()));
        infos.fold(Outstanding::default(), |sum, info| sum.and(&info))
    }

    /// Whether the test has begun at this end.
    pub(crate) const fn has_started(&self) -> bool {
        self.stolen.is_some()
    }

    /// Whether every sending thread has left its loop.
    pub(crate) fn has_sent(&self) -> bool {
        let mut senders = self.streams.iter().filter(|stream| stream.side == Side::Sender);
        senders.all(|stream| stream.progress.done.load(Ordering::Acquire))
    }

    /// Receivers take what has arrived and leave, as if the sender had closed.
    pub(crate) fn stop_receiving(&self) {
        for stream in self.streams.iter().filter(|stream| stream.side == Side::Receiver) {
            // A stream that the peer has reset is at its end already.
            let _ = stream.socket.shutdown(Shutdown::Read);
        }
    }

    /// Senders stop as if their time were up.
    pub(crate) fn stop_sending(&self) {
        self.switches.stop_sending.store(true, Ordering::Relaxed);
    }

    /// Everybody leaves at once.
    pub(crate) fn halt(&self) {
        self.switches.halt.store(true, Ordering::Relaxed);
    }

    /// Whether every thread has left its loop.
    pub(crate) fn is_done(&self) -> bool {
        self.streams.iter().all(|stream| stream.progress.done.load(Ordering::Acquire))
    }

    /// Ends a flow in the background: the sender stops, the receiver takes what is on the way, and
    /// neither may take longer than [`BACKGROUND_END`].
    pub(crate) fn end_background(self) -> Vec<EndReport> {
        self.stop_sending();
        let end = monotonic() + BACKGROUND_END;
        while !self.is_done() && monotonic() < end {
            sleep(Duration::from_millis(2));
        }
        self.halt();
        self.finish()
    }

    /// Waits for the threads and tells what every stream did.
    pub(crate) fn finish(mut self) -> Vec<EndReport> {
        let (started, request) = (self.started, self.request.clone());
        let streams = std::mem::take(&mut self.streams);
        let reports = streams.into_iter().map(|stream| stream.report(&request, started));
        let reports: Vec<EndReport> = reports.collect();
        let stolen_ratio = self.stolen.and_then(StolenTime::ratio);
        reports.into_iter().map(|report| EndReport { stolen_ratio, ..report }).collect()
    }
}

impl Drop for Endpoint {
    /// An endpoint that is given up takes its threads along.
    fn drop(&mut self) {
        self.halt();
    }
}

fn spawn(
    run: impl FnOnce() -> Outcome + Send + 'static,
) -> linerate_sys::Result<JoinHandle<Outcome>> {
    let spawned = std::thread::Builder::new().name("linerate-data".to_owned()).spawn(run);
    spawned.map_err(|source| linerate_sys::Error::new("start", "a data thread", source))
}

/// A stream's place where buffers are dealt out; with one stream nobody takes turns.
fn dealt(manner: Manner, request: &Request, flow: u16, dealer: &Arc<Dealer>) -> Option<Dealt> {
    let buffers = request.byte_budget().map(|bytes| bytes.div_ceil(request.buffer_bytes.into()));
    (manner.dealt && request.streams > 1).then(|| Dealt {
        dealer: Arc::clone(dealer),
        count: buffers.map(|buffers| share(buffers, flow, request.streams)),
    })
}

/// The processor of stream `flow`.
fn in_turn(cpus: &[u32], flow: u16) -> Option<u32> {
    cpus.get(usize::from(flow) % cpus.len().max(1)).copied()
}

/// A multiplicative sequence: not compressible by runs, the same on every host.
fn own_content(length: usize) -> Vec<u8> {
    (0..length as u64).map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

/// What stream `flow` of `streams` has of an amount: all have the same, the first ones one more.
pub(crate) fn share(amount: u64, flow: u16, streams: u16) -> u64 {
    let (flow, streams) = (u64::from(flow), u64::from(streams.max(1)));
    amount / streams + u64::from(flow < amount % streams)
}

impl Stream {
    /// This stream's own budget of a direction's bytes, what goes before the payload taken off.
    fn share(&self, bytes: u64, streams: u16) -> Arc<AtomicU64> {
        let own = share(bytes, self.flow, streams);
        Arc::new(AtomicU64::new(own.saturating_sub(self.head.len() as u64)))
    }

    fn sample(&mut self, t_ns: u64) -> Sample {
        let info = tcp::tcp_info(self.socket.as_fd()).unwrap_or_default();
        self.windows.see(&info);
        let schedule = self.progress.schedule();
        let moved = self.progress.bytes.load(Ordering::Relaxed);
        let micros = |us: Option<u32>| us.map(|us| u64::from(us) * 1000);
        Sample {
            direction: self.direction,
            flow: self.flow,
            t_ns,
            bytes: self.delivery.map_or(moved, |seen| seen.bytes(info.bytes_acked, moved)),
            retransmits: info.total_retrans.map(u64::from),
            cwnd_bytes: info.cwnd_bytes(),
            rtt_ns: micros(info.rtt_us),
            send_window_bytes: info.snd_wnd_bytes.map(u64::from),
            receive_window_bytes: info.rcv_wnd_bytes.map(u64::from),
            delivery_rate_bps: info.delivery_rate_bytes_per_s.map(|rate| rate * 8),
            rtt_var_ns: micros(info.rttvar_us),
            pmtu_bytes: info.pmtu_bytes,
            datagrams: None,
            cpu_ns: schedule.map(|(ran, _)| ran),
            run_queue_wait_ns: schedule.map(|(_, waited)| waited),
        }
    }

    fn acknowledged(&self, t_ns: u64, head_bytes: u64) -> Sample {
        let counted = tcp::tcp_info(self.socket.as_fd()).and_then(|info| info.bytes_acked);
        let payload = counted.map(|bytes| bytes.saturating_sub(head_bytes));
        let written = self.progress.bytes.load(Ordering::Relaxed);
        let bytes = self.acknowledged.bytes(payload, written);
        Sample { bytes, ..Sample::of(self.direction, self.flow, t_ns) }
    }

    fn report(mut self, request: &Request, started: MonoTime) -> EndReport {
        let outcome = match self.thread.take().map(JoinHandle::join) {
            Some(Ok(outcome)) => outcome,
            Some(Err(_)) => Outcome {
                failure: Some("the data thread ended by a panic".to_owned()),
                ..Outcome::default()
            },
            None => Outcome { failure: Some("never started".to_owned()), ..Outcome::default() },
        };
        let info = tcp::tcp_info(self.socket.as_fd());
        self.windows.see(&info.unwrap_or_default());
        EndReport {
            direction: self.direction,
            flow: self.flow,
            end: self.flow_end(request, started, &outcome, info),
            syn: self.syn,
            client_addr: self.client_addr,
            failure: outcome.failure,
            stolen_ratio: None,
        }
    }

    fn flow_end(
        &self,
        request: &Request,
        started: MonoTime,
        outcome: &Outcome,
        tcp_info: Option<TcpInfo>,
    ) -> FlowEnd {
        let (sndbuf, rcvbuf) = tcp::buffers(&self.socket);
        let measured = outcome.measured;
        FlowEnd {
            bytes: measured.bytes_total,
            bytes_measured: measured.bytes,
            span_start_ns: measured.begin.nanos_since(started),
            span_ns: measured.span_ns,
            io_calls: outcome.io_calls,
            cpu_user_ns: outcome.cost.user_ns,
            cpu_system_ns: outcome.cost.system_ns,
            run_queue_wait_ns: outcome.cost.run_queue_wait_ns,
            last_cpu: outcome.cost.cpu,
            cpus_seen: outcome.cpus.0.clone(),
            pinned_cpu: outcome.cpus.1,
            sndbuf_bytes: Asked { asked: request.window_bytes, got: sndbuf },
            rcvbuf_bytes: Asked { asked: request.window_bytes, got: rcvbuf },
            window_advertised_bytes_max: self.windows.advertised,
            window_offered_bytes_max: self.windows.offered,
            send_queue_bytes_max: self.windows.queued.filter(|queued| *queued > 0),
            congestion_control: Asked {
                asked: request.congestion_control.clone(),
                got: tcp::congestion_control(self.socket.as_fd()),
            },
            mss_bytes: Asked { asked: request.mss_bytes, got: tcp::mss(self.socket.as_fd()) },
            initial_window_segments: self.initial_window,
            nodelay: request.nodelay,
            technique: outcome.technique.clone(),
            contents: outcome.contents,
            verified: outcome.verified,
            zero_copy_sends: outcome.zero_copy_sends,
            mptcp: request.means.mptcp.then(|| multipath(&self.socket)),
            tcp_info,
            ..FlowEnd::default()
        }
    }
}

/// Whether a connection that asked for Multipath TCP has it.
fn multipath(socket: &TcpStream) -> MultipathTcp {
    let plain =
        |reason: &str| MultipathTcp { reason: Some(reason.to_owned()), ..MultipathTcp::default() };
    match tcp::multipath(socket.as_fd()) {
        Multipath::Used(more) => {
            MultipathTcp { used: true, subflows_more: Some(more.into()), reason: None }
        }
        Multipath::FellBack => plain("the other end or the path does not have it"),
        Multipath::Unavailable if tcp::has_multipath() => plain("the other end does not have it"),
        Multipath::Unavailable => plain("this host's kernel does not have it, or it is off"),
    }
}

impl Windows {
    fn see(&mut self, info: &TcpInfo) {
        self.advertised = self.advertised.max(info.rcv_wnd_bytes.map(u64::from));
        self.offered = self.offered.max(info.snd_wnd_bytes.map(u64::from));
        self.queued = self.queued.max(info.send_queue_bytes());
    }
}
