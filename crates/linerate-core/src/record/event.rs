//! What an engine tells while it measures: the live line, and one line of `--jsonl`.

use serde::Serialize;

use super::{BenchTrial, Caveat, Direction, Plan, SubInterval};

/// An event during a measurement.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", content = "data", rename_all = "snake_case")]
#[allow(clippy::large_enum_variant, reason = "there is one plan, and events are borrowed")]
pub enum Event {
    /// The plan with every default filled in, before anything is sent.
    Plan(Plan),
    /// A line for the reader: the host reached, the protocol, the address.
    Connected(String),
    /// A data stream is connected.
    Stream(StreamOpened),
    /// An interval of a throughput test has ended.
    Interval(IntervalRow),
    /// A sub-interval of a search has ended.
    SubInterval(SubInterval),
    /// A probe was answered, or given up.
    Reply(PingReply),
    /// Progress of a fast run of probes, a few times a second.
    Progress(PingProgress),
    /// A trial of a benchmark has ended, the next may come at once.
    BenchTrial(Box<BenchTrial>),
    /// The next step of a benchmark, in a line: a test, a search, the tester's own check.
    BenchStep(String),
    /// A line for the reader about something on the way: a router's message.
    Note(String),
    /// A caveat that a reader should know before the numbers.
    Caveat(Caveat),
}

/// A connected data stream, before its first byte.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StreamOpened {
    /// Direction of its data.
    pub direction: Direction,
    /// Stream number within its direction, from 0.
    pub flow: u16,
    /// Address and port of this end.
    pub local_addr: String,
    /// Address and port of the other end.
    pub remote_addr: String,
    /// Maximum segment size, where the kernel reports it.
    pub mss_bytes: Option<u32>,
    /// SO_SNDBUF, where the kernel reports it.
    pub sndbuf_bytes: Option<u64>,
    /// SO_RCVBUF, where the kernel reports it.
    pub rcvbuf_bytes: Option<u64>,
    /// Identifier that the connections of the test share, where the protocol shows it.
    pub session: Option<String>,
}

/// One interval of one stream, or of all streams of a direction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct IntervalRow {
    /// Start of the interval since the start of the test.
    pub start_ns: u64,
    /// End of the interval since the start of the test.
    pub end_ns: u64,
    /// Direction of the data.
    pub direction: Direction,
    /// Stream number, or null for the sum.
    pub flow: Option<u16>,
    /// Payload bytes that the receiver took in.
    pub bytes: u64,
    /// Rate of those bytes over the interval, in bit/s.
    pub goodput_bps: f64,
    /// Segments retransmitted in the interval, where the sender reported it.
    pub retransmits: Option<u64>,
    /// Congestion window at the end of the interval, where the sender reported it.
    pub cwnd_bytes: Option<u64>,
    /// Smoothed round-trip time at the end of the interval, where the sender reported it.
    pub rtt_ns: Option<u64>,
    /// Mean deviation of that time, where the sender reported it.
    pub rtt_var_ns: Option<u64>,
    /// Window that the receiver offers at the end of the interval, where the sender reported it.
    pub send_window_bytes: Option<u64>,
    /// Path MTU at the end of the interval, where the sender reported it.
    pub pmtu_bytes: Option<u32>,
    /// True inside the span that `--omit` leaves out.
    pub omitted: bool,
    /// Datagrams received and lost in the interval; none in a TCP test.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub datagrams: Option<DatagramRow>,
}

/// Datagrams of one interval. Both ends count from the start of the test, each at its own time, so
/// a datagram under way at the end of an interval is in flight there and arrived or lost later:
/// over all intervals up to any one, sent = received + lost + what is in flight at its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct DatagramRow {
    /// Datagrams sent, by the sender's report or by the numbers of arrivals.
    pub sent: u64,
    /// Different ones that arrived.
    pub received: u64,
    /// Numbers that were passed over; negative when some of them arrived after all.
    pub lost: i64,
    /// Lost datagrams for which the receiver's own socket buffer had no room.
    pub lost_here: u64,
    /// Arrivals of a datagram that had arrived before.
    pub duplicates: u64,
    /// Arrivals below a number that had arrived before, duplicates left out.
    pub reordered: u64,
    /// Sent and not yet arrived or lost at the end of the interval.
    pub in_flight: u64,
    /// Smoothed jitter (RFC 3550) at the end of the interval.
    pub jitter_ns: Option<u64>,
}

/// One probe of a ping.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PingReply {
    /// Sequence number, from 0.
    pub sequence: u64,
    /// Payload bytes sent.
    pub payload_bytes: u32,
    /// Round-trip time, or null when no answer arrived in time.
    pub rtt_ns: Option<u64>,
    /// Time to live of the answer, where the kernel reports it.
    pub ttl: Option<u8>,
    /// True when this answer had arrived before.
    pub duplicate: bool,
}

/// The state of a run of probes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PingProgress {
    /// Payload bytes of this run.
    pub payload_bytes: u32,
    /// Probes sent so far.
    pub sent: u64,
    /// Probes answered in time so far.
    pub answered: u64,
    /// Probes to send, or null when there is no end.
    pub count: Option<u64>,
    /// Time since the first probe of this run.
    pub elapsed_ns: u64,
}
