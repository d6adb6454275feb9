//! What is known of one direction of a transfer, each figure where it was seen and nothing else.
//!
//! A decision is made from this alone. Nothing here comes from the plan of an emulator or of a
//! laboratory: the figures are those that a host sees of a path that nobody described. Absent is
//! "not seen", 0 was seen. Rates are bit/s of payload, times seconds, sizes bytes.

use super::mechanism::Findings;
use crate::record::{
    Caveat, Direction, Handshake, Intervention, OptionChange, PathMtu, SourceNote, SynOptions,
    TcpOption, Unmeasured,
};
use crate::theory::ladder::Response;

/// Round trip under load over that at rest: no queue stands up to here.
pub(super) const NO_QUEUE: f64 = 1.25;

/// All that is known of one direction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evidence {
    /// Which way the data went.
    pub direction: Option<Direction>,
    /// Addresses of the connection, or the place of the result in its file, where there are
    /// several.
    pub connection: Option<String>,
    /// Connections that carried data in it.
    pub flows: u32,
    /// Caveat for which the measurement says nothing of the path: the tester spoilt it.
    pub spoilt: Option<Caveat>,
    /// Both ends are one host without a path between them.
    pub loopback: bool,
    /// Failure that ended the transfer early.
    pub failure: Option<String>,
    /// Options that the user gave the test.
    pub asked: TestOptions,
    /// The rate that was reached.
    pub rate: RateEvidence,
    /// Round-trip times of the flow.
    pub rtt: RoundTrips,
    /// Windows and what they held.
    pub window: Windows,
    /// Losses and retransmissions of the flow.
    pub loss: Loss,
    /// The end that sent.
    pub sender: HostEvidence,
    /// The end that received.
    pub receiver: HostEvidence,
    /// Options of the SYN, as sent and as arrived.
    pub syn: Syn,
    /// Results of probes beside the load.
    pub probes: ProbesSeen,
    /// Payload of a full segment.
    pub mss_bytes: Option<u32>,
    /// IP packet of a full segment.
    pub packet_bytes: Option<u32>,
    /// Rate of IP packets of the path's slowest link, where the user stated it.
    pub stated_bps: Option<f64>,
    /// Findings from the probe trains of this direction.
    pub trains: Option<Findings>,
    /// The largest packet that passes.
    pub mtu: Option<PathMtu>,
    /// Rate of IP packets at which the path's narrowest link delivers, by trains of probes.
    pub capacity_bps: Option<f64>,
    /// Rate of IP packets that passes for long, by paced probes.
    pub sustained_bps: Option<f64>,
    /// Short runs with one change each, and their results.
    pub interventions: Vec<Intervention>,
    /// Payload rate that several flows reached together, of another part of the same test.
    pub together: Option<Together>,
    /// Pings without load, where TCP did not come about: the last series of them.
    pub pings: Option<Pings>,
    /// Each of several flows that ran at once; empty for one.
    pub each: Vec<EachFlow>,
    /// Time between lumps in which the way back lets packets go that were sent evenly, in seconds.
    pub back_held_s: Option<f64>,
    /// One moment of a connection, where nothing else was seen of it.
    pub moment: Option<SocketMoment>,
    /// Datagrams instead of a connection.
    pub datagrams: Option<Datagrams>,
    /// Quantities that could not be measured.
    pub unseen: Vec<Unmeasured>,
    /// Remarks on the source of the record.
    pub remarks: Vec<SourceNote>,
}

/// Several flows at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Together {
    /// Number of these flows.
    pub flows: u32,
    /// Payload rate of all of them.
    pub bps: f64,
}

/// A series of pings at even distances.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pings {
    /// How many were sent.
    pub sent: u64,
    /// Pings without an answer.
    pub lost: u64,
    /// From the first to the last, in seconds.
    pub span_s: f64,
    /// Stretches of 0.2 s and more without an answer, with one before and one after.
    pub outages: u64,
    /// The longest of those, and all of them together, in seconds.
    pub outage_s: (f64, f64),
}

/// One of several flows that ran at once.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct EachFlow {
    /// Payload rate, by the receiver.
    pub bps: f64,
    /// Segments sent, those sent again among them.
    pub sent: f64,
    /// Segments that were sent again.
    pub again: f64,
    /// Median round trip once the start was over, in seconds.
    pub rtt_s: f64,
}

impl EachFlow {
    /// Share of its segments that were sent again.
    pub fn retransmit_ratio(&self) -> f64 {
        self.again / self.sent.max(1.0)
    }
}

/// Options that the user gave the test.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TestOptions {
    /// Data went both ways at once (`--bidir`).
    pub both_ways: bool,
    /// Socket buffer that was asked for (`-w`).
    pub window_bytes: Option<u64>,
    /// Pace of all flows together (`-b`).
    pub pace_bps: Option<f64>,
    /// Pace of reading of all flows together (`--read-pace`).
    pub read_pace_bps: Option<f64>,
    /// Segment size that was asked for (`-M`).
    pub mss_bytes: Option<u32>,
    /// Bytes to move, where the test was not for a time.
    pub bytes: Option<u64>,
    /// Bytes of one write().
    pub write_bytes: Option<u64>,
    /// Bytes of one read().
    pub read_bytes: Option<u64>,
}

/// The receiver's payload rate.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RateEvidence {
    /// Over the whole measured span.
    pub mean_bps: Option<f64>,
    /// Median interval once the start was over.
    pub steady_bps: Option<f64>,
    /// Rates of the intervals, in order, start included.
    pub intervals_bps: Vec<f64>,
    /// Length of one of them.
    pub interval_s: Option<f64>,
    /// Highest sustained rate of delivery that the sender saw (90th percentile): no more than the
    /// path's capacity, and often less.
    pub delivery_bps: Option<f64>,
    /// Payload bytes that arrived.
    pub bytes: Option<f64>,
    /// Length of the measured span.
    pub span_s: Option<f64>,
}

/// Round trips of the direction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RoundTrips {
    /// The least that was seen before the load; else under it.
    pub base_s: Option<f64>,
    /// True when `base_s` was measured before the load.
    pub base_is_idle: bool,
    /// True where `base_s` is the least of samples that were taken under load, seconds apart: the
    /// path at rest may have a shorter round trip, and a queue may stand all the while.
    pub base_is_loaded: bool,
    /// Median that TCP saw once the start was over.
    pub loaded_s: Option<f64>,
    /// 95th percentile of that.
    pub loaded_p95_s: Option<f64>,
    /// 10th percentile of that.
    pub loaded_p10_s: Option<f64>,
    /// Round trip of one flow at the end of each interval of the rate, s; 0 where it has none.
    pub intervals_s: Vec<f64>,
}

/// Windows, and what was in flight.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Windows {
    /// Receive window that the sender was offered, once the start was over: median.
    pub offered_bytes: Option<f64>,
    /// Its least and its most over the same time.
    pub offered_range: Option<(f64, f64)>,
    /// The most that the sender was ever offered.
    pub offered_max_bytes: Option<f64>,
    /// The most that the receiver ever advertised, after its scaling.
    pub advertised_max_bytes: Option<f64>,
    /// Congestion window, median once the start was over.
    pub cwnd_bytes: Option<f64>,
    /// Congestion window at the first and at the last sample.
    pub cwnd_ends: Option<(f64, f64)>,
    /// The least and the most congestion window once the start was over.
    pub cwnd_range: Option<(f64, f64)>,
    /// True when the slow-start threshold was ever set.
    pub left_slow_start: Option<bool>,
    /// Segments that a new connection may send at once.
    pub initial_segments: Option<u32>,
    /// In flight, median once the start was over, as sampled.
    pub flight_bytes: Option<f64>,
    /// Send buffer that the kernel granted at the end.
    pub send_buffer_bytes: Option<f64>,
    /// Memory that the send buffer took up, median.
    pub send_memory_bytes: Option<f64>,
    /// Most payload that the send buffer was seen to hold.
    pub send_queue_max_bytes: Option<f64>,
    /// Written and not sent, median.
    pub unsent_bytes: Option<f64>,
    /// Received and not read, median.
    pub receive_queue_bytes: Option<f64>,
    /// Receive buffer that the kernel granted.
    pub receive_buffer_bytes: Option<f64>,
    /// Share of the sender's busy time that the peer's window held it back.
    pub window_limited: Option<f64>,
    /// Share of the sender's busy time that its buffer held it back.
    pub buffer_limited: Option<f64>,
    /// Share of samples whose delivery rate the application limited.
    pub application_limited: Option<f64>,
}

/// Retransmissions, by how they were triggered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Loss {
    /// Segments that were sent again.
    pub retransmits: Option<f64>,
    /// Segments sent again over segments sent.
    pub ratio: Option<f64>,
    /// Duplicate SACKs: retransmissions that were not needed.
    pub needless: Option<f64>,
    /// Times that reordering was seen by the sender.
    pub reordered_events: Option<f64>,
    /// Segments that arrived out of order, over those that arrived.
    pub out_of_order: Option<f64>,
    /// Times that the slow-start threshold was seen to change: losses of one window are one event.
    pub events: Option<f64>,
    /// Retransmission time-outs (RTO) of the sender.
    pub timeouts: Option<f64>,
    /// Time spent in them over the span.
    pub timeout_share: Option<f64>,
    /// Share of segments delivered with a congestion mark.
    pub marked: Option<f64>,
    /// Payload bytes sent, and of those sent again.
    pub bytes_sent: Option<(u64, u64)>,
    /// Response of the sender's congestion control to losses.
    pub response: Option<Response>,
    /// Name of its congestion control.
    pub control: Option<String>,
}

/// Host at one end of the path.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostEvidence {
    /// Time that the busiest data thread computed, over the span.
    pub cpu: Option<f64>,
    /// Time that it was ready and had no CPU, over the span.
    pub waited: Option<f64>,
    /// Time that it was blocked in write() or read().
    pub blocked: Option<f64>,
    /// Time that it slept of its own accord.
    pub asleep: Option<f64>,
    /// Time that a quota of its control group kept it from running, over the span.
    pub throttled: Option<f64>,
    /// Packets that this host dropped before a socket: backlog, softnet, ring.
    pub dropped: Option<f64>,
    /// Read or write calls each second.
    pub calls_per_s: Option<f64>,
    /// Socket buffer asked for.
    pub buffer_asked_bytes: Option<u64>,
    /// tcp_rmem of a receiver, tcp_wmem of a sender: least, default, most.
    pub tcp_mem_bytes: Option<[u64; 3]>,
    /// Sysctl net.core.rmem_max or wmem_max, bytes.
    pub core_max_bytes: Option<u64>,
    /// Sysctl net.ipv4.tcp_window_scaling is on.
    pub window_scaling: Option<bool>,
    /// Sysctl net.ipv4.tcp_sack is on.
    pub sack: Option<bool>,
    /// Sysctl net.ipv4.tcp_timestamps is on.
    pub timestamps: Option<bool>,
    /// Sysctl net.ipv4.tcp_mtu_probing, its value.
    pub mtu_probing: Option<u64>,
    /// Sysctl net.ipv4.tcp_no_metrics_save is on.
    pub no_metrics_save: Option<bool>,
    /// Name of its network interface.
    pub interface: Option<String>,
    /// Negotiated speed, where the interface has one that means something.
    pub speed_bps: Option<f64>,
    /// Rate of a queueing discipline on it.
    pub shaper_bps: Option<f64>,
    /// Name of that queueing discipline.
    pub shaper: Option<String>,
    /// MTU of the interface.
    pub mtu_bytes: Option<u32>,
}

/// TCP options that both ends agreed on when the connection opened.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Syn {
    /// The client's SYN as it reached the server.
    pub arrived: Option<SynOptions>,
    /// The client is the sender of this direction.
    pub client_sends: bool,
    /// Options that the sender's kernel took as agreed: timestamps, SACK, window scale.
    pub sender_agreed: Option<Agreed>,
    /// Options that the receiver's kernel has in force.
    pub receiver_agreed: Option<Agreed>,
    /// Options that something between the hosts removed or changed.
    pub changes: Vec<OptionChange>,
}

/// Options in force at one end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Agreed {
    /// Timestamps (RFC 7323) are in use.
    pub timestamps: bool,
    /// Selective acknowledgements (RFC 2018) are in use.
    pub sack: bool,
    /// Window scaling (RFC 7323) is in use.
    pub window_scale: bool,
}

/// Results of probes beside the load.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProbesSeen {
    /// Median round trip at rest.
    pub idle_s: Option<f64>,
    /// 99th percentile at rest less the least.
    pub idle_spread_s: Option<f64>,
    /// Median round trip under load.
    pub loaded_s: Option<f64>,
    /// Delay that the load added on the way of the data.
    pub added_forward_s: Option<f64>,
    /// Delay that the load added on the way back.
    pub added_back_s: Option<f64>,
    /// Delay that the load added in the sender's own queue.
    pub added_here_s: Option<f64>,
    /// Share lost under load.
    pub lost: Option<f64>,
    /// Probes sent under load.
    pub sent: Option<u64>,
    /// Stretches of 100 ms and more without an answer, and the longest.
    pub gaps: Option<(u64, f64)>,
    /// Share lost at rest.
    pub lost_idle: Option<f64>,
}

/// One moment of a socket beside its windows, round trips and losses.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SocketMoment {
    /// The timer that probes a closed window runs.
    pub persist_timer: bool,
    /// Written and not acknowledged: in flight and not sent.
    pub send_queue_bytes: Option<f64>,
    /// Received and not read.
    pub receive_queue_bytes: Option<f64>,
    /// Memory that the receive queue may take up, where it is known.
    pub receive_room_bytes: Option<f64>,
    /// Payload that arrived since the connection was opened.
    pub received_bytes: f64,
    /// Payload acknowledged since then.
    pub acknowledged_bytes: f64,
    /// Time in which something was to be acknowledged, in seconds.
    pub busy_s: Option<f64>,
    /// Time since the connection was opened, where its counters tell it, in seconds.
    pub age_s: Option<f64>,
    /// The last sample of the delivery rate was limited by the application.
    pub application_limited: bool,
    /// Rate that the last sample of delivery had.
    pub delivery_bps: Option<f64>,
    /// The most that the program allows (SO_MAX_PACING_RATE).
    pub pace_max_bps: Option<f64>,
}

/// Datagrams of a test, sender and receiver together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Datagrams {
    /// How many were sent.
    pub sent: f64,
    /// Datagrams that never arrived.
    pub lost: f64,
    /// Payload of one, in bytes.
    pub payload_bytes: Option<f64>,
    /// Payload rate at which they were sent.
    pub offered_bps: Option<f64>,
}

impl Evidence {
    /// Bytes in flight, as sampled; else the rate that arrived times the round trip that it took
    /// (Little's law), which needs no counter of the kernel.
    pub fn flight_bytes(&self) -> Option<f64> {
        self.window.flight_bytes.or_else(|| {
            let flows = f64::from(self.flows.max(1));
            Some(self.steady_bps()? * self.rtt.loaded_s? / 8.0 / flows)
        })
    }

    /// The rate once the start was over, else over the whole.
    pub fn steady_bps(&self) -> Option<f64> {
        self.rate.steady_bps.or(self.rate.mean_bps)
    }

    /// Round trip under load over that at rest.
    pub fn inflation(&self) -> Option<f64> {
        let base = self.rtt.base_s.filter(|base| *base > 0.0)?;
        Some(self.rtt.loaded_s? / base)
    }

    /// The same where it shows that no queue stands, which takes a round trip at rest.
    pub fn inflation_without_queue(&self) -> Option<f64> {
        self.inflation().filter(|times| *times <= NO_QUEUE && !self.rtt.base_is_loaded)
    }

    /// The window that bounds one flow: what was offered, and no more than fits the header where
    /// no scale was agreed (RFC 7323 §2.2). The kernel's own figure is higher then.
    pub fn offered_bytes(&self) -> Option<f64> {
        let offered = self.window.offered_bytes.or(self.window.offered_max_bytes)?;
        Some(if self.scale_agreed() == Some(false) { offered.min(65_535.0) } else { offered })
    }

    /// True when both ends scale their windows.
    pub fn scale_agreed(&self) -> Option<bool> {
        let ends = [self.syn.sender_agreed, self.syn.receiver_agreed];
        let known: Vec<bool> = ends.into_iter().flatten().map(|end| end.window_scale).collect();
        (!known.is_empty()).then(|| known.iter().all(|agreed| *agreed))
    }

    /// Where an option was removed between the hosts.
    pub fn removed(&self, option: TcpOption) -> Option<Handshake> {
        let gone = |change: &&OptionChange| change.option == option && change.arrived.is_none();
        self.syn.changes.iter().find(gone).map(|change| change.segment)
    }

    /// Bytes that fill the path for one flow at a rate.
    pub fn bdp_bytes(&self, bps: f64) -> Option<f64> {
        Some(bps * self.rtt.base_s? / 8.0)
    }
}
