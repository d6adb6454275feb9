//! The TCP streams of one end: their sockets and options, and the threads that move their bytes.

use std::cell::Cell;
use std::net::{IpAddr, Shutdown, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use linerate_core::record::{
    Asked, EndReport, FlowEnd, FlowSide, MultipathTcp, SynOptions, TcpInfo, TcpTest,
};
use linerate_core::time::MonoTime;
use linerate_core::units::BitRate;
use linerate_sys::clock::{monotonic, sleep};
use linerate_sys::tcp::{self, Multipath, TcpOptions};

use super::data::{CALL_TIMEOUT, DRAIN_NS, Sender, TcpStreamReceiver};
use super::delivery::{Delivery, Outstanding};
use super::receive_method::{Framing, Treatment};
use super::round_robin::{StreamRounds, Turns};
use super::send_buffer;
use super::send_method::Payload;
use super::signals;
use super::span::Extent;
use crate::flow::Sample;
use crate::flow::budget::Budget;
pub(crate) use crate::flow::endpoint::StreamId;
use crate::flow::endpoint::{self, EndpointStream, Switches, Transport};

/// The time that bytes of a flow in the background have to arrive in once the test is over.
const BACKGROUND_END: Duration = Duration::from_secs(2);

/// The TCP streams of one end of a test.
pub(crate) type Endpoint = endpoint::Endpoint<Tcp>;

/// The settings that the streams of one end have in common.
pub(crate) struct Tcp {
    request: TcpTest,
    rules: StreamRules,
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
    /// Receivers count everything up to the last byte, whatever the rules are, and are told when to
    /// leave.
    counts_all: bool,
    /// Time for which receivers that are not told to leave read on after the span.
    drain_ns: u64,
    /// Since when streams could bring data, where that was before the start.
    open_since: Option<MonoTime>,
}

/// How the streams of an end differ between this program's own protocol and others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamRules {
    /// The content that senders send, by the length of one write.
    pub(crate) content: fn(usize) -> Vec<u8>,
    /// The other end tells nothing of what it received.
    pub(crate) one_sided: bool,
    /// Bytes that end a test are shared out to the streams beforehand.
    pub(crate) shares: bool,
    /// Senders of several streams deal whole buffers out to them in turn.
    pub(crate) round_robin: bool,
    /// Where a begin is omitted, the same time counts of all streams, and what a sender measures
    /// ends with it, not with the last acknowledgement: a steady part has no end of buffers that
    /// run dry one after the other.
    pub(crate) steady: bool,
}

impl StreamRules {
    /// The rules of streams between two linerate programs.
    pub(crate) const OWN: Self = Self {
        content: own_content,
        one_sided: false,
        shares: false,
        round_robin: false,
        steady: false,
    };
}

/// The socket of one stream.
pub(crate) struct StreamConnection {
    socket: Arc<TcpStream>,
    head: Vec<u8>,
    /// The framing that the payload of a receiving stream is wrapped in.
    framing: Option<Box<dyn Framing>>,
    delivery: Option<Delivery>,
    syn: Option<SynOptions>,
    /// Congestion window of a sending stream before its first byte, in segments.
    initial_window: Option<u32>,
    /// The bytes that the peer has acknowledged, from before the first byte on.
    acknowledged: Delivery,
    windows: Cell<LargestWindows>,
    /// The kernel's account at the start of the test.
    at_start: TcpInfo,
}

/// Largest windows and the fullest send buffer seen so far.
#[derive(Clone, Copy, Debug, Default)]
struct LargestWindows {
    advertised: Option<u64>,
    offered: Option<u64>,
    queued: Option<u64>,
}

/// Options of one stream's socket.
pub(crate) fn stream_options(request: &TcpTest, stream: u16) -> TcpOptions {
    TcpOptions { dscp: request.dscp_of(stream), ..socket_options(request) }
}

/// Options of the sockets of a test; they go before the handshake.
pub(crate) fn socket_options(request: &TcpTest) -> TcpOptions {
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
    pub(crate) fn new(request: TcpTest) -> Self {
        Self::with_rules(request, StreamRules::OWN)
    }

    /// The end of a test in the manner of another protocol.
    pub(crate) fn with_rules(request: TcpTest, rules: StreamRules) -> Self {
        Self::with_transport(Tcp {
            request,
            rules,
            payload: None,
            cpus: Vec::new(),
            closes: true,
            burst: None,
            kernel_pace: None,
            as_iperf3: false,
            counts_all: false,
            drain_ns: DRAIN_NS,
            open_since: None,
        })
    }

    /// The same with its data threads kept on these processors, in turn; none leaves them free.
    pub(crate) fn kept_on(mut self, cpus: &[u32]) -> Self {
        self.transport.cpus = cpus.to_vec();
        self
    }

    /// An end of a test of iperf3: receivers may count whole buffers alone, and all streams have
    /// the span of the test.
    pub(crate) fn of_iperf3(request: TcpTest) -> Self {
        let mut endpoint = Self::new(request);
        endpoint.transport.as_iperf3 = true;
        endpoint
    }

    /// The same, but streams have been open since `then`: what waits when the test begins came
    /// after that.
    pub(crate) const fn open_since(mut self, then: MonoTime) -> Self {
        self.transport.open_since = Some(then);
        self
    }

    /// See [`Self::open_since`], of an end that is made before its streams can come.
    pub(crate) const fn set_open_since(&mut self, then: MonoTime) {
        self.transport.open_since = Some(then);
    }

    /// The same, but the receiver learns of the end by other means than the end of the stream.
    pub(crate) const fn leaving_open(mut self) -> Self {
        self.transport.closes = false;
        self
    }

    /// Receivers go on reading for so long after the span: what the sender's buffers hold comes at
    /// the rate of the path.
    pub(crate) const fn set_drain_ns(&mut self, drain_ns: u64) {
        self.transport.drain_ns = drain_ns;
    }

    /// The same, whose receivers count everything up to the last byte.
    pub(crate) const fn counting_all(mut self) -> Self {
        self.transport.counts_all = true;
        self
    }

    /// Senders are held to this rate by the kernel.
    pub(crate) const fn paced_by_kernel(mut self, rate_bps: Option<u64>) -> Self {
        self.transport.kernel_pace = match rate_bps {
            Some(rate_bps) => Some(BitRate::from_bits_per_sec(rate_bps)),
            None => None,
        };
        self
    }

    /// Senders with a pace write so many buffers at once.
    pub(crate) const fn in_bursts(mut self, burst: Option<u32>) -> Self {
        self.transport.burst = burst;
        self
    }

    /// Sets the bytes that the stream added last sends before its payload.
    pub(crate) fn begin_with(&mut self, head: Vec<u8>) {
        if let Some(stream) = self.streams.last_mut() {
            stream.socket.head = head;
        }
    }

    /// Sets the framing of the payload of the stream that was added last.
    pub(crate) fn wrapped_in(&mut self, framing: Box<dyn Framing>) {
        if let Some(stream) = self.streams.last_mut() {
            stream.socket.framing = Some(framing);
        }
    }

    /// Takes over a connected data stream over which this end has sent nothing yet.
    pub(crate) fn add(&mut self, socket: TcpStream, place: StreamId) -> Arc<TcpStream> {
        let socket = Arc::new(socket);
        let sends = place.side == FlowSide::Sender;
        let info = tcp::tcp_info(socket.as_fd()).filter(|_| sends);
        let counts = sends && self.transport.rules.one_sided;
        let connection = StreamConnection {
            socket: Arc::clone(&socket),
            head: Vec::new(),
            framing: None,
            delivery: counts
                .then(|| Delivery::from_stream(&socket).steady(self.transport.rules.steady)),
            syn: tcp::saved_syn(socket.as_fd()),
            initial_window: info.and_then(|info| info.snd_cwnd),
            acknowledged: Delivery::from_stream(&socket),
            windows: Cell::default(),
            at_start: TcpInfo::default(),
        };
        self.push(connection, place);
        socket
    }

    /// Makes what the senders of this end send. It takes a while, so it goes before the start:
    /// the first interval would otherwise show less than the path carries.
    pub(crate) fn prepare(&mut self) -> linerate_sys::Result<()> {
        if self.on_side(FlowSide::Sender).next().is_some() {
            let Tcp { request, rules, .. } = &self.transport;
            let payload = Payload::from_request(request, rules.content)?;
            if request.window_bytes.is_none() && payload.is_copied() {
                let senders = self.on_side(FlowSide::Sender);
                let sockets: Vec<_> = senders.map(|stream| &*stream.socket.socket).collect();
                send_buffer::keep_within_cache(&sockets)?;
            }
            self.transport.payload = Some(Arc::new(payload));
        }
        self.count_from_here();
        Ok(())
    }

    /// Starts every stream's thread; senders must be prepared.
    pub(crate) fn start_streams(&mut self, now: MonoTime) -> linerate_sys::Result<()> {
        self.start_clock(now);
        let heads: u64 = self.streams.iter().map(|stream| stream.socket.head.len() as u64).sum();
        let bytes = self.transport.request.byte_budget();
        let common = Common {
            started: self.transport.open_since.unwrap_or(now),
            budget: Budget::from_amount(bytes.map(|bytes| bytes.saturating_sub(heads))),
            rounds: Arc::default(),
            switches: Arc::clone(&self.switches),
        };
        for stream in &mut self.streams {
            tcp::set_call_timeout(&stream.socket.socket, CALL_TIMEOUT)?;
            stream.socket.at_start =
                tcp::tcp_info(stream.socket.socket.as_fd()).unwrap_or_default();
            let sends = stream.side == FlowSide::Sender;
            if let Some(rate) = self.transport.kernel_pace.filter(|_| sends) {
                tcp::set_pacing_rate(&stream.socket.socket, rate)?;
            }
            match self.transport.payload.clone().filter(|_| sends) {
                Some(payload) => {
                    let sender = self.transport.sender(stream, payload, &common);
                    stream.start_thread(move || sender.run())?;
                }
                None => {
                    let receiver = self.transport.receiver(stream, &common);
                    stream.start_thread(move || receiver.run())?;
                }
            }
        }
        Ok(())
    }

    /// Bytes that the receivers have read so far.
    pub(crate) fn received(&self) -> u64 {
        self.on_side(FlowSide::Receiver).map(stream_bytes).sum()
    }

    /// Bytes that all streams have moved so far.
    pub(crate) fn moved_bytes(&self) -> u64 {
        self.streams.iter().map(stream_bytes).sum()
    }

    /// The bytes that the peer's kernel has acknowledged of every sending stream at `now`, without
    /// the `head_bytes` that each began with: the receiver's count as far as this end can tell.
    pub(crate) fn acknowledged(&self, now: MonoTime, head_bytes: u64) -> Vec<Sample> {
        let t_ns = self.since_start_ns(now);
        let samples = self.on_side(FlowSide::Sender).map(|stream| {
            let info = tcp::tcp_info(stream.socket.socket.as_fd());
            let counted = info.and_then(|info| info.bytes_acked);
            let payload = counted.map(|bytes| bytes.saturating_sub(head_bytes));
            let bytes =
                stream.socket.acknowledged.acknowledged_bytes(payload, stream_bytes(stream));
            Sample { bytes, ..Sample::empty_at(stream.direction, stream.flow, t_ns) }
        });
        samples.collect()
    }

    /// Bytes that have come of every receiving stream by `now`, read or not, which began with
    /// `head_bytes` that do not count: what a thread that was kept waiting finds came in the time
    /// before.
    pub(crate) fn arrived(&self, now: MonoTime, head_bytes: u64) -> Vec<Sample> {
        let t_ns = self.since_start_ns(now);
        let one_path = !self.transport.request.means.mptcp;
        let samples = self.on_side(FlowSide::Receiver).map(|stream| {
            let info = tcp::tcp_info(stream.socket.socket.as_fd()).filter(|_| one_path);
            let came = info.and_then(|info| info.bytes_received).unwrap_or(0);
            let bytes = came.saturating_sub(head_bytes).max(stream_bytes(stream));
            Sample { bytes, ..Sample::empty_at(stream.direction, stream.flow, t_ns) }
        });
        samples.collect()
    }

    /// How far what the senders wrote has come, all streams together.
    pub(crate) fn outstanding(&self) -> Outstanding {
        let senders = self.on_side(FlowSide::Sender);
        let infos = senders.filter_map(|stream| tcp::tcp_info(stream.socket.socket.as_fd()));
        infos.fold(Outstanding::default(), |sum, info| sum.with_stream(&info))
    }

    /// True where every sending thread has left its loop.
    pub(crate) fn has_sent(&self) -> bool {
        self.on_side(FlowSide::Sender).all(|stream| stream.progress.is_done())
    }

    /// Receivers take what has arrived and leave, as if the sender had closed.
    pub(crate) fn stop_receiving(&self) {
        for stream in self.on_side(FlowSide::Receiver) {
            // A stream that the peer has reset is at its end already.
            let _ = stream.socket.socket.shutdown(Shutdown::Read);
        }
    }

    /// Ends a flow in the background: the sender stops, the receiver takes what is on the way, and
    /// neither may take longer than [`BACKGROUND_END`].
    pub(crate) fn end_background(self) -> Vec<EndReport> {
        self.stop_sending();
        let end = monotonic() + BACKGROUND_END;
        while !self.is_done() && monotonic() < end {
            sleep(Duration::from_millis(2));
        }
        self.halt_streams();
        self.finish()
    }
}

/// The state that the threads of one end share.
struct Common {
    /// When streams could bring data first.
    started: MonoTime,
    budget: Budget,
    rounds: Arc<StreamRounds>,
    switches: Arc<Switches>,
}

impl Tcp {
    fn sender(
        &self,
        stream: &mut EndpointStream<StreamConnection>,
        payload: Arc<Payload>,
        common: &Common,
    ) -> Sender {
        let head = std::mem::take(&mut stream.socket.head);
        Sender {
            stream: Arc::clone(&stream.socket.socket),
            payload,
            place: (stream.direction, stream.flow),
            cpu: in_turn(&self.cpus, stream.flow),
            finish: self.request.finish,
            omit_ns: self.request.omit_ns,
            pace: self.request.pace,
            burst: self.burst,
            closes: self.closes,
            whole_buffers: self.as_iperf3,
            budget: match self.request.byte_budget().filter(|_| self.rules.shares) {
                Some(bytes) => {
                    let own = stream_share(bytes, stream.flow, self.request.streams);
                    Budget::from_amount(Some(own.saturating_sub(head.len() as u64)))
                }
                None => common.budget.clone(),
            },
            head,
            turns: stream_turns(self.rules, &self.request, stream.flow, &common.rounds),
            delivery: stream.socket.delivery,
            begin: self.counts_together().then_some(common.started),
            switches: Arc::clone(&common.switches),
            progress: Arc::clone(&stream.progress),
        }
    }

    fn receiver(
        &self,
        stream: &mut EndpointStream<StreamConnection>,
        common: &Common,
    ) -> TcpStreamReceiver {
        TcpStreamReceiver {
            framing: stream.socket.framing.take(),
            stream: Arc::clone(&stream.socket.socket),
            finish: self.request.finish,
            omit_ns: self.request.omit_ns,
            started: common.started,
            extent: self.extent(),
            drain_ns: (!self.counts_all).then_some(self.drain_ns),
            autotuned: self.request.window_bytes.is_none(),
            treatment: Treatment {
                with: self.request.means.receive_with,
                read_bytes: self.request.read_bytes,
                read_pace: self.request.read_pace,
                verify_seed: self.request.means.verify_seed,
                place: (stream.direction, stream.flow),
            },
            cpu: in_turn(&self.cpus, stream.flow),
            switches: Arc::clone(&common.switches),
            progress: Arc::clone(&stream.progress),
        }
    }

    /// True where the same time counts of all streams. A sum over spans of their own that begin one
    /// after the other is divided by more time than any of them moved data in.
    const fn counts_together(&self) -> bool {
        self.rules.steady && self.request.omit_ns > 0
    }

    /// Which span receivers measure.
    const fn extent(&self) -> Extent {
        match (self.as_iperf3 || self.counts_together(), self.rules.one_sided) {
            _ if self.counts_all => Extent::Whole,
            (true, _) => Extent::Fixed,
            (false, true) => Extent::Whole,
            (false, false) => Extent::Own,
        }
    }
}

fn stream_bytes(stream: &EndpointStream<StreamConnection>) -> u64 {
    stream.progress.bytes.load(Ordering::Relaxed)
}

/// The turns of a stream where whole buffers go round; with one stream nobody takes turns.
fn stream_turns(
    rules: StreamRules,
    request: &TcpTest,
    flow: u16,
    rounds: &Arc<StreamRounds>,
) -> Option<Turns> {
    let buffers = request.byte_budget().map(|bytes| bytes.div_ceil(request.buffer_bytes.into()));
    (rules.round_robin && request.streams > 1).then(|| Turns {
        rounds: Arc::clone(rounds),
        count: buffers.map(|buffers| stream_share(buffers, flow, request.streams)),
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

/// The share of stream `flow` of `streams` in an amount: all have the same, the first ones one
/// more.
pub(crate) fn stream_share(amount: u64, flow: u16, streams: u16) -> u64 {
    let (flow, streams) = (u64::from(flow), u64::from(streams.max(1)));
    amount / streams + u64::from(flow < amount % streams)
}

impl Transport for Tcp {
    type Socket = StreamConnection;

    const LINGERS: bool = false;

    fn sample(&self, stream: &EndpointStream<StreamConnection>, sample: Sample) -> Sample {
        let info = tcp::tcp_info(stream.socket.socket.as_fd()).unwrap_or_default();
        stream.socket.note_windows(&info);
        let moved = stream_bytes(stream);
        let micros = |us: Option<u32>| us.map(|us| u64::from(us) * 1000);
        let delivered = |seen: Delivery| seen.acknowledged_bytes(info.bytes_acked, moved);
        Sample {
            bytes: stream.socket.delivery.map_or(moved, delivered),
            retransmits: info.total_retrans.map(u64::from),
            cwnd_bytes: info.cwnd_bytes(),
            rtt_ns: micros(info.rtt_us),
            send_window_bytes: info.snd_wnd_bytes.map(u64::from),
            receive_window_bytes: info.rcv_wnd_bytes.map(u64::from),
            delivery_rate_bps: info.delivery_rate_bytes_per_s.map(|rate| rate * 8),
            rtt_var_ns: micros(info.rttvar_us),
            pmtu_bytes: info.pmtu_bytes,
            signals: signals::read_values(
                stream.socket.socket.as_fd(),
                &info,
                &stream.socket.at_start,
                stream.side,
            ),
            ..sample
        }
    }

    fn moved_bytes(&self, stream: &EndpointStream<StreamConnection>) -> u64 {
        stream_bytes(stream)
    }

    fn flow_end(
        &self,
        connection: &StreamConnection,
        end: FlowEnd,
    ) -> (FlowEnd, Option<SynOptions>) {
        let Self { request, .. } = self;
        let socket = &connection.socket;
        let tcp_info = tcp::tcp_info(socket.as_fd());
        let (sndbuf, rcvbuf) = tcp::buffers(socket);
        let windows = connection.note_windows(&tcp_info.unwrap_or_default());
        let end = FlowEnd {
            sndbuf_bytes: Asked { asked: request.window_bytes, got: sndbuf },
            rcvbuf_bytes: Asked { asked: request.window_bytes, got: rcvbuf },
            window_advertised_bytes_max: windows.advertised,
            window_offered_bytes_max: windows.offered,
            send_queue_bytes_max: windows.queued.filter(|queued| *queued > 0),
            congestion_control: Asked {
                asked: request.congestion_control.clone(),
                got: tcp::congestion_control(socket.as_fd()),
            },
            mss_bytes: Asked { asked: request.mss_bytes, got: tcp::segment_size(socket.as_fd()) },
            initial_window_segments: connection.initial_window,
            nodelay: request.nodelay,
            mptcp: request.means.mptcp.then(|| multipath(socket)),
            tcp_info,
            ..end
        };
        (end, connection.syn)
    }

    fn connected_ip(&self, connection: &StreamConnection) -> Option<IpAddr> {
        connection.socket.peer_addr().ok().map(|peer| peer.ip())
    }
}

impl StreamConnection {
    /// Takes note of windows and the send buffer; the largest so far.
    fn note_windows(&self, info: &TcpInfo) -> LargestWindows {
        let before = self.windows.get();
        let windows = LargestWindows {
            advertised: before.advertised.max(info.rcv_wnd_bytes.map(u64::from)),
            offered: before.offered.max(info.snd_wnd_bytes.map(u64::from)),
            queued: before.queued.max(info.send_queue_bytes()),
        };
        self.windows.set(windows);
        windows
    }
}

/// The state of Multipath TCP on a connection that asked for it.
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
