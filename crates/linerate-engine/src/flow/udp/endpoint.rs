//! The UDP streams of one end: their sockets, and the threads that move their datagrams.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use linerate_core::record::{
    Asked, DatagramsSent, FlowEnd, FlowSide, RecordedInterface, SearchNews, SynOptions, UdpTest,
};
use linerate_core::time::MonoTime;
use linerate_proto::native::{Token, stream_tag};
use linerate_sys::clock::monotonic;
use linerate_sys::datagram_socket::DatagramSocket;
use linerate_sys::sched;

use super::layout::DatagramLayout;
use super::receiver::UdpStreamReceiver;
use super::search::SearchEnd;
use super::search_sender::Steering;
use super::sender::UdpStreamSender;
use super::socket::header_bytes;
pub(crate) use super::socket::{open_socket, open_socket_at};
use crate::flow::Sample;
use crate::flow::budget::Budget;
use crate::flow::contradiction;
pub(crate) use crate::flow::endpoint::StreamId;
use crate::flow::endpoint::{self, EndpointStream, StreamOutcome, Transport};

/// The UDP streams of one end of a test.
pub(crate) type Endpoint = endpoint::Endpoint<Udp>;

/// The settings that the streams of one end have in common.
pub(crate) struct Udp {
    request: UdpTest,
    layout: DatagramLayout,
    /// The bytes of every datagram before its layout writes to it; empty for nothing.
    head: Arc<[u8]>,
    /// The processor of the first thread; the others take those after it.
    cpu: Option<u32>,
    /// Round-trip time of the control connection, where known.
    rtt: Option<Duration>,
    /// Datagrams that leave at once within the pace.
    burst: Option<u32>,
    /// Datagrams that may still leave, where the caller keeps count of them.
    allowed: Option<Arc<AtomicU64>>,
}

/// The socket of one stream.
pub(crate) struct UdpStreamSocket {
    socket: Arc<DatagramSocket>,
    tag: u16,
    search: Option<Arc<SearchEnd>>,
}

impl Endpoint {
    pub(crate) fn new(request: UdpTest, cpu: Option<u32>) -> Self {
        Self::with_layout(request, DatagramLayout::OWN, cpu)
    }

    /// The end of a test whose datagrams have another layout.
    pub(crate) fn with_layout(request: UdpTest, layout: DatagramLayout, cpu: Option<u32>) -> Self {
        let (head, rtt, burst, allowed) = (Arc::default(), None, None, None);
        Self::with_transport(Udp { request, layout, head, cpu, rtt, burst, allowed })
    }

    /// The senders end when they have sent as many datagrams as `allowed` holds, which the caller
    /// may add to while they run; the plan's own number does not count then.
    pub(crate) fn allow_datagrams(&mut self, allowed: Arc<AtomicU64>) {
        self.transport.allowed = Some(allowed);
    }

    /// Sets the bytes that every datagram of this end's senders begins with, where its layout
    /// leaves them alone.
    pub(crate) fn begin_with(&mut self, head: &[u8]) {
        self.transport.head = head.into();
    }

    /// Takes note of the round-trip time to the other end; there is none over the loopback, however
    /// long a busy host took to answer.
    pub(crate) fn note_rtt(
        &mut self,
        rtt: Option<Duration>,
        interface: Option<&RecordedInterface>,
    ) {
        let kind = interface.and_then(|interface| interface.kind.as_deref());
        self.transport.rtt = if kind == Some("loopback") { Some(Duration::ZERO) } else { rtt };
    }

    /// Senders with a pace let so many datagrams leave at once.
    pub(crate) const fn in_bursts(mut self, burst: Option<u32>) -> Self {
        self.transport.burst = burst;
        self
    }

    /// Takes over the socket of a stream that is open at both ends.
    pub(crate) fn add(&mut self, socket: DatagramSocket, place: StreamId, token: Token) {
        let local = socket.local_address().map(|address| address.ip());
        let search = SearchEnd::new(&self.transport.request, local.map_or(0, header_bytes));
        let tag = stream_tag(token, place.direction, place.flow);
        let socket = Arc::new(socket);
        self.push(UdpStreamSocket { socket, tag, search: search.map(Arc::new) }, place);
    }

    /// Starts the receiving threads, which have to be there before the first datagram.
    pub(crate) fn start_receivers(&mut self) -> linerate_sys::Result<()> {
        let cpus = self.transport.stream_cpus();
        for (stream, cpu) in self.streams.iter_mut().zip(cpus) {
            if stream.side == FlowSide::Receiver {
                let receiver = UdpStreamReceiver {
                    socket: Arc::clone(&stream.socket.socket),
                    request: self.transport.request.clone(),
                    tag: stream.socket.tag,
                    layout: self.transport.layout,
                    switches: Arc::clone(&self.switches),
                    progress: Arc::clone(&stream.progress),
                    opened: monotonic(),
                    search: stream.socket.search.clone(),
                };
                receiver.prepare();
                stream.start_thread(kept_on(cpu, move || receiver.run()))?;
            }
        }
        Ok(())
    }

    /// Starts the test: times count from here, and the senders send.
    pub(crate) fn start_senders(&mut self, now: MonoTime) -> linerate_sys::Result<()> {
        self.start_clock(now);
        let Udp { request, layout, head, rtt, burst, allowed, .. } = &self.transport;
        let budget = match allowed {
            Some(allowed) => Budget::of_shared(Arc::clone(allowed)),
            None => Budget::from_amount(request.datagram_budget()),
        };
        let cpus = self.transport.stream_cpus();
        for (stream, cpu) in self.streams.iter_mut().zip(cpus) {
            if stream.side == FlowSide::Sender {
                let UdpStreamSocket { socket, tag, search } = &stream.socket;
                let progress = &stream.progress;
                let steering = search.as_ref().map(|search| {
                    Arc::new(Steering::new(Arc::clone(search), *tag, Arc::clone(progress)))
                });
                let sender = UdpStreamSender {
                    socket: Arc::clone(socket),
                    request: request.clone(),
                    place: (stream.direction, stream.flow),
                    tag: *tag,
                    layout: *layout,
                    head: Arc::clone(head),
                    rtt: *rtt,
                    burst: *burst,
                    budget: budget.clone(),
                    switches: Arc::clone(&self.switches),
                    progress: Arc::clone(progress),
                    steering: steering.clone(),
                };
                match steering {
                    None => stream.start_thread(kept_on(cpu, move || sender.run()))?,
                    Some(it) => {
                        let socket = Arc::clone(socket);
                        let switches = Arc::clone(&self.switches);
                        let run = move || it.beside(&socket, &switches, || sender.run());
                        stream.start_thread(kept_on(cpu, run))?;
                    }
                }
            }
        }
        Ok(())
    }

    /// The news of a search since the last call; none in other tests.
    pub(crate) fn search_news(&self) -> Option<SearchNews> {
        let search = self.streams.iter().find_map(|stream| stream.socket.search.as_ref())?;
        Some(search.take_news()).filter(|news| !news.is_empty())
    }

    /// The sockets of all streams, for what goes beside data.
    pub(crate) fn sockets(&self) -> impl Iterator<Item = &DatagramSocket> {
        self.streams.iter().map(|stream| &*stream.socket.socket)
    }

    /// The datagrams that the senders of this end have sent, once all are done; none without
    /// senders.
    pub(crate) fn datagrams_sent(&self) -> Option<Vec<DatagramsSent>> {
        let senders = self.on_side(FlowSide::Sender).map(|stream| &stream.progress);
        let done = senders.map(|progress| progress.datagrams_sent().filter(|_| progress.is_done()));
        done.collect::<Option<Vec<DatagramsSent>>>().filter(|sent| !sent.is_empty())
    }

    /// Takes note of what the other end's senders have sent; why one of them cannot have, where
    /// what came of it counts alone.
    pub(crate) fn reported_sent(&self, sent: &[DatagramsSent]) -> Option<String> {
        let now = monotonic();
        let elapsed_ns = self.since_start_ns(now);
        let mut wrong = None;
        for told in sent {
            let same = |stream: &&EndpointStream<UdpStreamSocket>| {
                (stream.direction, stream.flow) == (told.direction, told.flow)
            };
            let Some(stream) = self.on_side(FlowSide::Receiver).find(same) else { continue };
            let reason = contradiction::of_sender(&self.transport.request, told, elapsed_ns);
            let silent_ns = stream.progress.silent_ns(now).unwrap_or(elapsed_ns);
            let came = stream.progress.counts().next;
            let reason = reason.or_else(|| contradiction::of_jump(told.datagrams, came, silent_ns));
            let known = match reason {
                None => *told,
                Some(_) => {
                    let datagrams = stream.progress.counts().next;
                    DatagramsSent { datagrams, measured: datagrams, span_ns: 0, ..*told }
                }
            };
            stream.progress.tell_sent(known, now);
            wrong = wrong.or(reason);
        }
        wrong
    }
}

impl Udp {
    fn stream_cpus(&self) -> impl Iterator<Item = Option<u32>> + use<> {
        let first = self.cpu;
        (0..).map(move |index| first.map(|first| first.saturating_add(index)))
    }
}

/// The same on a processor. Where the kernel refuses, the thread stays free; the record tells
/// where it ran.
fn kept_on(
    cpu: Option<u32>,
    run: impl FnOnce() -> StreamOutcome + Send + 'static,
) -> impl FnOnce() -> StreamOutcome + Send + 'static {
    move || {
        let _held = cpu.map(sched::Pinned::on_cpu);
        run()
    }
}

impl Transport for Udp {
    type Socket = UdpStreamSocket;

    const LINGERS: bool = true;

    fn sample(&self, stream: &EndpointStream<UdpStreamSocket>, sample: Sample) -> Sample {
        sample.with_datagrams(stream.progress.counts(), self.request.size_bytes)
    }

    fn moved_bytes(&self, stream: &EndpointStream<UdpStreamSocket>) -> u64 {
        let size = u64::from(self.request.size_bytes);
        stream.progress.counts().datagrams.saturating_mul(size)
    }

    fn flow_end(&self, socket: &UdpStreamSocket, end: FlowEnd) -> (FlowEnd, Option<SynOptions>) {
        let (sndbuf, rcvbuf) = socket.socket.buffers();
        let asked = |got| Asked { asked: self.request.window_bytes, got };
        (FlowEnd { sndbuf_bytes: asked(sndbuf), rcvbuf_bytes: asked(rcvbuf), ..end }, None)
    }

    fn connected_ip(&self, socket: &UdpStreamSocket) -> Option<IpAddr> {
        socket.socket.peer_address().map(|peer| peer.ip())
    }
}
