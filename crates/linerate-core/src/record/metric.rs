//! The one table of metrics. JSON keys, CSV headers, legends, the manual and the direction of a
//! comparison come from here.

use serde::{Deserialize, Serialize};

use super::layer::{Better, HeaderLayer};

/// One row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Metric {
    /// Identifier of the metric, which ends in its unit.
    pub id: MetricId,
    /// Title for headings and legends.
    pub title: &'static str,
    /// Unit of stored values.
    pub unit: &'static str,
    /// Headers that a rate or size includes.
    pub layer: Option<HeaderLayer>,
    /// Definition: the things counted and those left out.
    pub definition: &'static str,
    /// Standard or document that the definition follows.
    pub source: &'static str,
    /// Direction in which the metric improves.
    pub better: Better,
}

macro_rules! metrics {
    ($($variant:ident = $key:literal, $title:literal, $unit:literal, $layer:expr, $better:ident,
       $definition:literal, $source:literal;)*) => {
        /// Identifier of a metric: a key in JSON and CSV, never reused for another meaning.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub enum MetricId {
            $(#[doc = $definition] #[serde(rename = $key)] $variant,)*
        }

        impl MetricId {
            /// The key, as in JSON and CSV.
            pub const fn key(self) -> &'static str {
                match self { $(Self::$variant => $key,)* }
            }
        }

        /// Every metric, in the order of the manual.
        pub const METRICS: &[Metric] = &[
            $(Metric {
                id: MetricId::$variant,
                title: $title,
                unit: $unit,
                layer: $layer,
                definition: $definition,
                source: $source,
                better: Better::$better,
            },)*
        ];
    };
}

metrics! {
    Goodput = "goodput_bps", "goodput", "bit/s", Some(HeaderLayer::Payload), Higher,
        "Payload bits that the receiving application read, over the time from the first byte (or \
         the end of the omitted time) to the last byte; retransmissions do not count.",
        "RFC 6349 §3.3 (TCP throughput as the application sees it)";
    Bytes = "payload_bytes", "bytes received", "bytes", Some(HeaderLayer::Payload), Higher,
        "Payload bytes that the receiving application read within the measured time.",
        "own";
    BytesSent = "sent_bytes", "bytes sent", "bytes", Some(HeaderLayer::Payload), Neither,
        "Payload bytes that the sending application wrote, including the omitted time.",
        "own";
    Span = "span_ns", "measured span", "ns", None, Neither,
        "From the first byte (or the end of the omitted span) to the last byte, at the receiver.",
        "own";
    Retransmits = "retransmits", "segments retransmitted", "segments", None, Lower,
        "Segments that the sender's kernel retransmitted (tcpi_total_retrans), including spurious \
         ones.",
        "RFC 4898 tcpEStatsPerfSegsRetrans";
    RetransmitRatio = "retransmit_ratio", "retransmitted share", "1", None, Lower,
        "Retransmitted segments over data segments sent, both from the sending kernel.",
        "RFC 6349 §4.2 (TCP efficiency is 1 minus this, by segments)";
    Cwnd = "cwnd_bytes", "congestion window", "bytes", None, Neither,
        "tcpi_snd_cwnd times tcpi_snd_mss at the sender, when sampled.",
        "RFC 5681 §2";
    TcpRtt = "tcp_rtt_ns", "smoothed RTT of TCP", "ns", None, Lower,
        "Smoothed round-trip time of the sending kernel (tcpi_rtt), when sampled.",
        "RFC 6298 §2";
    TcpRttMin = "tcp_rtt_min_ns", "smallest RTT of TCP", "ns", None, Lower,
        "Smallest round-trip time that the sending kernel saw (tcpi_min_rtt).",
        "Linux tcp_info";
    IdleRtt = "idle_rtt_ns", "round trip without load", "ns", None, Lower,
        "Smallest round-trip time of the control connection before data flows, by the kernel: of \
         the SYN and of the first messages (tcpi_min_rtt).",
        "RFC 6349 §4.1 (baseline round-trip time), Linux tcp_info";
    LoadedRtt = "loaded_rtt_ns", "round trip under load", "ns", None, Lower,
        "Over TCP, the smoothed round-trip times of the sending kernels (tcpi_rtt) as sampled once \
         an interval after the omitted span: median and 95th percentile. Over UDP, the round trip \
         without load and the one-way delay of the datagrams above its smallest, median and 99th \
         percentile: the way back is taken to be idle.",
        "RFC 6349 §4.2 (buffer delay), RFC 5481 §4.2";
    DelayIdle = "delay_idle_ns", "delay at rest", "ns", None, Lower,
        "Round-trip time of the probes that were sent before the load of a throughput test, as \
         rtt_ns.",
        "RFC 2681 §2";
    DelayLoaded = "delay_loaded_ns", "delay under load", "ns", None, Lower,
        "Round-trip time of the probes that were sent while a throughput test loaded the path, as \
         rtt_ns, in packets of their own; those of the omitted span do not count.",
        "RFC 2681 §2, draft-ietf-ippm-responsiveness-08 (foreign probes)";
    DelayAdded = "delay_added_ns", "delay added by the load", "ns", None, Lower,
        "Median delay under load less the median at rest: the queues that the load fills.",
        "RFC 6349 §4.2 (buffer delay), by probes";
    AddedHere = "delay_added_here_ns", "added in this host's queue", "ns", None, Lower,
        "Median time of the probes in the queueing discipline of this host's interface under \
         load, less that at rest.",
        "Linux SOF_TIMESTAMPING_TX_SCHED to SOF_TIMESTAMPING_TX_SOFTWARE";
    AddedPath = "delay_added_path_ns", "added on the path", "ns", None, Lower,
        "Median time from leaving this host's queueing discipline to the arrival of the answer, \
         under load, less that at rest; without the time at the other end where that is reported.",
        "Linux SO_TIMESTAMPING, spec/udp-echo.md";
    AddedThere = "delay_added_there_ns", "added on the way there", "ns", None, Lower,
        "That part of it which the way to the other end adds, by both hosts' clocks; their \
         difference cancels. Absent where a clock moved meanwhile.",
        "Linux SO_TIMESTAMPING, spec/udp-echo.md (T2)";
    AddedBack = "delay_added_back_ns", "added on the way back", "ns", None, Lower,
        "That part of it which the way back adds, queues of the other end's interface among it.",
        "Linux SO_TIMESTAMPING, spec/udp-echo.md (T3)";
    AddedPeer = "delay_added_peer_ns", "added within the other end", "ns", None, Lower,
        "Median time from the arrival of a probe at the other end to the answer of its program, \
         under load, less that at rest.",
        "spec/udp-echo.md (T3 - T2)";
    DelayLoss = "delay_probes_lost_ratio", "probes lost under load", "1", None, Lower,
        "Probes sent under load that were not answered within 3 s, or within twice the longest \
         delay before the end of the test, over those sent.",
        "RFC 7680 §2, RFC 6673 (round trip)";
    Responsiveness = "responsiveness_rpm", "responsiveness", "round trips/min", None, Higher,
        "60 000 ms over the mean of the lowest 95 % of the delays under load. Of the draft's \
         probes these are the foreign ones, one packet each way on an existing path; handshakes \
         of new connections are not in it.",
        "draft-ietf-ippm-responsiveness-08 (trimmed mean), foreign probes only";
    DelayHandshake = "delay_handshake_ns", "handshake under load", "ns", None, Lower,
        "Mean of the lowest 95 % of the handshakes of new TCP connections to the server while a \
         throughput test loaded the path: from connect() to its return.",
        "draft-ietf-ippm-responsiveness-09 §4.3.1 (tcp_f)";
    ResponsivenessNew = "responsiveness_new_rpm", "responsiveness of new connections",
        "round trips/min", None, Higher,
        "60 000 ms over the mean of two trimmed means: handshakes of new connections, and UDP \
         echo in place of the first request. Without TLS.",
        "draft-ietf-ippm-responsiveness-09 §5.3.1.1, the form without TLS";
    ResponsivenessLoaded = "responsiveness_loaded_rpm", "responsiveness of loaded connections",
        "round trips/min", None, Higher,
        "60 000 ms over the trimmed mean of the round trips that TCP saw of its own segments on \
         the connections of the load (tcpi_rtt): what waits in the sender's buffer is not in it.",
        "draft-ietf-ippm-responsiveness-09 §5.3.1.1 (http_l), by Linux tcp_info";
    ResponsivenessDraft = "responsiveness_draft_rpm", "responsiveness, both", "round trips/min",
        None, Higher,
        "Mean of responsiveness_new_rpm and responsiveness_loaded_rpm.",
        "draft-ietf-ippm-responsiveness-09 §5.3.1.1";
    DeliveryRate = "delivery_rate_bps", "delivery rate", "bit/s",
        Some(HeaderLayer::Payload), Higher,
        "Rate of acknowledged data over the last flight, by the sending kernel \
         (tcpi_delivery_rate).",
        "Linux tcp_info";
    SendWindow = "send_window_bytes", "window offered", "bytes", None, Neither,
        "Receive window that the peer advertises, after scaling (tcpi_snd_wnd), when sampled.",
        "RFC 9293 §3.8.6, RFC 7323 §2";
    ReceiveWindow = "receive_window_bytes", "window advertised", "bytes", None, Neither,
        "Receive window that this end advertises, after scaling (tcpi_rcv_wnd), when sampled.",
        "RFC 9293 §3.8.6, RFC 7323 §2";
    ReturnSegments = "return_segments", "segments sent back", "segments", None, Neither,
        "Segments that the receiving end sent: acknowledgements and window updates, counted before \
         offload joins them (tcpi_segs_out at the receiver).",
        "RFC 4898 tcpEStatsPerfSegsOut";
    ReturnRatio = "return_ratio", "segments back per segment", "1", None, Neither,
        "Segments that the receiving end sent over data segments that it received, both from its \
         kernel; 0.5 acknowledges every second segment.",
        "RFC 5681 §4.2 (delayed acknowledgements), Linux tcp_info";
    Background = "background_bps", "rate of the background flow", "bit/s",
        Some(HeaderLayer::Payload),
        Neither,
        "Payload bits of the background flow, against the test's direction, that its receiver \
         read, from its first byte (or the end of the omitted time) to its end.",
        "own";
    SegmentsSent = "segments_sent", "segments sent", "segments", None, Neither,
        "Data segments that the sender sent, retransmissions among them (tcpi_data_segs_out, or \
         counted in a simulation).",
        "RFC 4898 tcpEStatsPerfSegsOut";
    LossEvents = "loss_events", "loss events", "events", None, Lower,
        "Times that a simulated sender entered fast recovery: once for all losses of a window; \
         time-outs are counted apart.",
        "RFC 5681 §3.2, RFC 6675 §5";
    Timeouts = "timeouts", "time-outs", "events", None, Lower,
        "Times that the retransmission timer of the sender ran out (tcpi_total_rto, or counted in \
         a simulation).",
        "RFC 6298 §5";
    Transfer = "transfer_ns", "time of the transfer", "ns", None, Lower,
        "From the start of the first flow until the last byte of all was acknowledged, in virtual \
         time; of one flow from its own start. Absent where the transfer did not end.",
        "own";
    Acked = "acked_bytes", "payload acknowledged", "bytes", Some(HeaderLayer::Payload), Neither,
        "Payload of a flow that its sender knows to have arrived, without gaps, by then: the \
         sequence of a time-sequence diagram.",
        "RFC 9293 §3.3.1 (SND.UNA less the initial sequence number)";
    Ssthresh = "ssthresh_bytes", "slow-start threshold", "bytes", None, Neither,
        "Payload of the window below which it grows by slow start; null before the first loss.",
        "RFC 5681 §3.1";
    Unacked = "unacked_bytes", "in flight", "bytes", Some(HeaderLayer::Payload), Neither,
        "Segments sent and not acknowledged (tcpi_unacked) times tcpi_snd_mss, when sampled.",
        "RFC 5681 §2 (FlightSize)";
    Unsent = "unsent_bytes", "written and not sent", "bytes", Some(HeaderLayer::Payload), Neither,
        "Payload that the application wrote and TCP has not sent yet (tcpi_notsent_bytes), when \
         sampled.",
        "Linux tcp_info";
    SendQueue = "send_queue_bytes", "payload in the send buffer", "bytes",
        Some(HeaderLayer::Payload),
        Neither,
        "Payload written and not acknowledged, sent or not (SIOCOUTQ), when sampled.",
        "tcp(7)";
    SendMemory = "send_memory_bytes", "memory of the send buffer", "bytes", None, Neither,
        "What the send buffer takes up with the kernel's own bookkeeping (SK_MEMINFO_WMEM_QUEUED); \
         it may exceed send_buffer_bytes, to which whole super-packets are added.",
        "Linux SO_MEMINFO";
    SendBuffer = "send_buffer_bytes", "send buffer granted", "bytes", None, Neither,
        "What the send buffer may take up now (SK_MEMINFO_SNDBUF): set, or tuned by the kernel.",
        "Linux SO_MEMINFO";
    LostSegments = "lost_segments", "taken for lost", "segments", None, Lower,
        "Segments in flight that the sender takes for lost and has not seen repaired (tcpi_lost), \
         when sampled.",
        "Linux tcp_info";
    CongestionState = "congestion_state", "state of congestion avoidance", "1", None, Neither,
        "tcpi_ca_state when sampled: 0 open, 1 disorder, 2 CWR, 3 recovery, 4 loss.",
        "Linux tcp_info";
    ReorderingSegments = "reordering_segments", "reordering tolerated", "segments", None, Neither,
        "Distance of reordering that the sender takes for no loss (tcpi_reordering), when sampled.",
        "Linux tcp_info";
    ReorderingEvents = "reordering_events", "reordering seen", "events", None, Lower,
        "Times that the sender saw reordering, so far (tcpi_reord_seen).",
        "Linux tcp_info";
    DsackDuplicates = "dsack_duplicates", "needless retransmissions", "segments", None, Lower,
        "Segments that the receiver reported to have got twice, so far (tcpi_dsack_dups).",
        "RFC 2883, Linux tcp_info";
    Delivered = "delivered_segments", "segments delivered", "segments", None, Neither,
        "Segments acknowledged or selectively acknowledged, so far (tcpi_delivered).",
        "Linux tcp_info";
    DeliveredCe = "delivered_ce_segments", "delivered with a congestion mark", "segments", None,
        Lower,
        "Segments of which an acknowledgement came with ECE, so far (tcpi_delivered_ce).",
        "RFC 3168, Linux tcp_info";
    TimeoutTime = "timeout_ns", "time in time-outs", "ns", None, Lower,
        "Time that the sender spent in retransmission time-outs, so far (tcpi_total_rto_time).",
        "Linux tcp_info";
    BusyTime = "busy_ns", "time with data outstanding", "ns", None, Neither,
        "Time in which the sender had unacknowledged data, since the start of the test \
         (tcpi_busy_time); the next two are part of it.",
        "Linux tcp_info";
    WindowLimited = "receive_window_limited_ns", "held back by the peer's window", "ns", None,
        Lower,
        "Time in which the window that the peer offers held the sender back, since the start \
         (tcpi_rwnd_limited). A sender that paces counts less of it for the same cause.",
        "Linux tcp_info";
    BufferLimited = "send_buffer_limited_ns", "held back by the send buffer", "ns", None, Lower,
        "Time in which the size of the send buffer held the sender back, since the start \
         (tcpi_sndbuf_limited). A sender that does not pace counts little or none of it.",
        "Linux tcp_info";
    ApplicationLimited = "application_limited", "rate limited by the application", "1", None,
        Neither,
        "1 where the latest sample of the delivery rate was taken while the sender had nothing to \
         send (tcpi_delivery_rate_app_limited), else 0; so it does where a send buffer is short.",
        "Linux tcp_info";
    PacingRate = "pacing_rate_bps", "pacing rate", "bit/s", None, Neither,
        "Rate to which TCP would spread what it sends (tcpi_pacing_rate), when sampled; kept by \
         congestion controls that pace, by fq, and where a pace was asked of the kernel.",
        "Linux tcp_info";
    TcpRttVar = "tcp_rtt_var_ns", "deviation of TCP's RTT", "ns", None, Lower,
        "Mean deviation of the round-trip time of the sending kernel (tcpi_rttvar), when sampled.",
        "RFC 6298 §2";
    PathMtu = "path_mtu_bytes", "path MTU of TCP", "bytes", Some(HeaderLayer::Ip), Higher,
        "Largest packet that the sending kernel takes the path to carry (tcpi_pmtu), when sampled.",
        "RFC 1191, RFC 4821, Linux tcp_info";
    ReceiveQueue = "receive_queue_bytes", "received and not read", "bytes",
        Some(HeaderLayer::Payload),
        Neither,
        "Payload in order that the application has not read (SIOCINQ), when sampled.",
        "tcp(7)";
    ReceiveMemory = "receive_memory_bytes", "memory of the receive buffer", "bytes", None, Neither,
        "What the receive buffer takes up with the kernel's own bookkeeping, segments out of order \
         included (SK_MEMINFO_RMEM_ALLOC), when sampled.",
        "Linux SO_MEMINFO";
    ReceiveBuffer = "receive_buffer_bytes", "receive buffer granted", "bytes", None, Neither,
        "What the receive buffer may take up now (SK_MEMINFO_RCVBUF): set, or tuned by the kernel.",
        "Linux SO_MEMINFO";
    OutOfOrder = "out_of_order_segments", "arrived out of order", "segments", None, Lower,
        "Segments that arrived out of order at the receiver, so far (tcpi_rcv_ooopack).",
        "Linux tcp_info";
    SegmentsReceived = "segments_received", "segments received", "segments", None, Neither,
        "Segments with data that the receiver got, so far (tcpi_data_segs_in).",
        "RFC 4898 tcpEStatsPerfSegsIn, Linux tcp_info";
    ReceiverRtt = "receiver_rtt_ns", "RTT as the receiver estimates it", "ns", None, Lower,
        "Round-trip time by the receiver's own estimate (tcpi_rcv_rtt), by which it tunes its \
         buffer.",
        "Linux tcp_info";
    CpuSender = "cpu_sender_s_per_gb", "sender CPU per GB", "s/GB", None, Lower,
        "User and system time of the sending threads over 10^9 payload bytes sent; work in \
         interrupt context on other cores is not in it.",
        "getrusage(2), RUSAGE_THREAD";
    CpuReceiver = "cpu_receiver_s_per_gb", "receiver CPU per GB", "s/GB", None, Lower,
        "User and system time of the receiving threads over 10^9 payload bytes received; work in \
         interrupt context on other cores is not in it.",
        "getrusage(2), RUSAGE_THREAD";
    CpuShareSender = "cpu_sender_ratio", "sender CPU share", "1", None, Lower,
        "User and system time of the busiest sending thread over the test's duration.",
        "getrusage(2), RUSAGE_THREAD";
    CpuShareReceiver = "cpu_receiver_ratio", "receiver CPU share", "1", None, Lower,
        "User and system time of the busiest receiving thread over the test's duration.",
        "getrusage(2), RUSAGE_THREAD";
    RunQueueWait = "run_queue_wait_ratio", "waiting for a core", "1", None, Lower,
        "Time that a data thread was runnable but waited for a CPU, over the same time; for the \
         whole test that of the busiest thread.",
        "Linux /proc/PID/schedstat, second field";
    Blocked = "blocked_ratio", "blocked in write or read", "1", None, Neither,
        "Time that a data thread neither ran, nor waited for a CPU, nor slept of its own accord, \
         over the same time: it waited in write() for room, or in read() for data.",
        "Linux /proc/PID/schedstat, own clock";
    Asleep = "asleep_ratio", "asleep between paced writes", "1", None, Neither,
        "Time that a data thread slept of its own accord, to keep the pace that was asked for, \
         over the same time.",
        "own";
    Fairness = "fairness_ratio", "fairness of streams", "1", None, Higher,
        "Jain's index of the streams' goodputs: 1 when all are equal, 1/n when one has all.",
        "RFC 5166 §2.3.1";
    Rtt = "rtt_ns", "round-trip time", "ns", None, Lower,
        "From just before the send call of the probe to just after the receive call of the reply, \
         by this host's monotonic clock; duplicates and late replies do not count.",
        "RFC 2681 §2";
    RttKernel = "rtt_kernel_ns", "kernel round-trip time", "ns", None, Lower,
        "From the kernel's transmit timestamp of the probe to its receive timestamp of the reply: \
         the path and the peer, without this host's scheduling.",
        "RFC 2681 §2.7.2 (wire times), Linux SO_TIMESTAMPING";
    RttSend = "rtt_send_ns", "time of sending", "ns", None, Lower,
        "From just before the send call of the probe to the kernel's timestamp before the queueing \
         discipline: the system call and this host's protocol stack. With rtt_queue_ns, \
         rtt_kernel_ns and rtt_wake_ns of the same probe it makes its rtt_ns.",
        "Linux SO_TIMESTAMPING (SOF_TIMESTAMPING_TX_SCHED)";
    RttQueue = "rtt_queue_ns", "time in the own queue", "ns", None, Lower,
        "From the kernel's timestamp before the queueing discipline to that before the driver: what \
         this host's own queue holds back.",
        "Linux SO_TIMESTAMPING (SOF_TIMESTAMPING_TX_SCHED, SOF_TIMESTAMPING_TX_SOFTWARE)";
    RttWake = "rtt_wake_ns", "time of waking up", "ns", None, Lower,
        "From the kernel's receive timestamp of the reply to just after the receive call: the \
         socket's queue, the wake-up of the program, and copying.",
        "Linux SO_TIMESTAMPING";
    RttScheduled = "rtt_scheduled_ns", "round trip from the schedule", "ns", None, Lower,
        "From the time at which a paced probe was planned to leave to just after the receive call: \
         with what the prober itself was late. Probes that a late prober left out count with the \
         time that each would have waited, so that a stall weighs as much as it lasted.",
        "Tene, How NOT to Measure Latency (coordinated omission); HdrHistogram";
    Outages = "outages", "outages", "outages", None, Lower,
        "Stretches of two and more successive probes without an answer.",
        "RFC 3357 §5 (loss periods)";
    OutageMax = "outage_max_ns", "longest outage", "ns", None, Lower,
        "From the sending of the first lost probe of an outage to that of the next answered one.",
        "RFC 3357 §5, fping -o";
    CongestionMarked = "congestion_marked_ratio", "congestion marked", "1", None, Lower,
        "Replies that came with the ECN bits 11 (CE) over replies, where probes were sent with ECT: \
         a queue on the way there, whose marks an echo repeats, or on the way back.",
        "RFC 3168 §5";
    RttPath = "rtt_path_ns", "path round-trip time", "ns", None, Lower,
        "(T4 - T1) - (T3 - T2): the round trip without the time that the reflector took, by the \
         best time stamps that both ends gave.",
        "RFC 8762 §4 (T1 to T4), RFC 2681";
    Residence = "residence_ns", "time in the reflector", "ns", None, Lower,
        "T3 - T2, both by the reflector's clock: how long the probe stayed there.",
        "RFC 8762 §4.3";
    OneWayDelay = "owd_ns", "one-way delay", "ns", None, Lower,
        "T2 - T1 upwards, T4 - T3 downwards; `clocks` in the record says by which clocks and how \
         wrong it may be. Negative where the clocks disagree by more than the delay. Absent \
         where the offset of the clocks is not known.",
        "RFC 7679 §3";
    Ipdv = "ipdv_ns", "delay variation of neighbours", "ns", None, Lower,
        "Magnitude of the difference of the one-way delays of two probes sent one after the other; \
         undefined where either was lost.",
        "RFC 3393, RFC 5481 §4.1";
    LossOneWay = "loss_one_way_ratio", "loss of one direction", "1", None, Lower,
        "Probes lost on the way there, or answers on the way back, over those sent there, by the \
         reflector's own count between the first and the last answered probe.",
        "RFC 7680 §2, RFC 8762 §4.3";
    ReorderedOneWay = "reordered_one_way", "reordered, one direction", "packets", None, Lower,
        "Probes that reached the reflector after one that was sent later, or answers that came back \
         after one that left later, by the reflector's own count.",
        "RFC 4737 §3.3, RFC 8762 §4.3";
    Pps = "pings_per_sec", "pings per second", "1/s", None, Higher,
        "Answered probes over the time from the first send to the last answer.",
        "own";
    PpsPaper = "pings_per_sec_from_avg", "pings per second, 1000/avg", "1/s", None, Higher,
        "One second over the mean round-trip time, as the studies of 2000 printed it.",
        "PREN study 2000 §2.2";
    Sent = "probes_sent", "probes sent", "probes", None, Neither,
        "Probes sent, without warm-up.",
        "RFC 7680 §2";
    Received = "probes_answered", "probes answered", "probes", None, Neither,
        "Probes answered within the time-out, duplicates not counted.",
        "RFC 7680 §2";
    LossRatio = "loss_ratio", "loss", "1", None, Lower,
        "Probes not answered within the time-out over probes sent.",
        "RFC 7680 §2, RFC 6673 (round trip)";
    LossRatioHigh = "loss_ratio_high", "loss, upper bound", "1", None, Lower,
        "Upper end of the 95 % Wilson score interval of the loss ratio.",
        "Wilson 1927";
    Duplicates = "duplicates", "duplicates", "answers", None, Lower,
        "Answers to a probe that was already answered.",
        "RFC 5560";
    Reordered = "reordered", "reordered", "answers", None, Lower,
        "Answers whose sequence number is below one that came before; duplicates removed first.",
        "RFC 4737 §4.1";
    DatagramRate = "datagrams_per_sec", "datagrams per second", "1/s", None, Higher,
        "Distinct datagrams that the receiving application read, over the measured time.",
        "own";
    DatagramsSent = "datagrams_sent", "datagrams sent", "datagrams", None, Neither,
        "Datagrams that the sender gave to its kernel after the omitted span, by its own count.",
        "RFC 7680 §2";
    DatagramsReceived = "datagrams_received", "datagrams received", "datagrams", None, Higher,
        "Different datagrams of those sent after the omitted span that arrived; duplicates do not \
         count.",
        "RFC 7680 §2";
    DatagramsLost = "datagrams_lost", "datagrams lost", "datagrams", None, Lower,
        "Datagrams sent after the omitted span that had not arrived half a second after the last \
         arrival (of a browser's page: a second); sent = received + lost.",
        "RFC 7680 §2";
    DatagramLossRatio = "datagram_loss_ratio", "loss of datagrams", "1", None, Lower,
        "Datagrams lost, one way, over datagrams sent.",
        "RFC 7680 §2";
    DatagramsLostHere = "datagrams_lost_at_receiver", "lost at the receiver", "datagrams", None,
        Lower,
        "Datagrams lost because the receiver's socket buffer was full: gaps in the sequence \
         numbers where the kernel's drop counter grew. They are included in the lost ones, and are \
         not losses of the path.",
        "Linux SO_RXQ_OVFL";
    DatagramsDroppedAtSender = "datagrams_dropped_at_sender", "dropped at the sender's interface",
        "datagrams", None, Lower,
        "Datagrams dropped at the sender's own interface, by its queueing discipline or driver: \
         those that it refused when they were sent, and what it counted beyond these meanwhile, \
         but no more than are lost. They are among the lost, and not the path's doing.",
        "Linux IP_RECVERR (ENOBUFS), TCA_STATS2, IFLA_STATS64";
    DatagramDuplicates = "datagram_duplicates", "duplicates", "datagrams", None, Lower,
        "Arrivals of a datagram that had arrived before.",
        "RFC 5560";
    DatagramsReordered = "datagrams_reordered", "reordered", "datagrams", None, Lower,
        "Arrivals below a number that had arrived before, duplicates left out.",
        "RFC 4737 §4.1";
    DatagramsInFlight = "datagrams_in_flight", "datagrams in flight", "datagrams", None, Neither,
        "Datagrams sent up to the end of an interval and neither arrived nor passed over by then: \
         sent = received + lost + in flight.",
        "own";
    IpCapacity = "ip_capacity_max_bps", "maximum IP capacity", "bit/s",
        Some(HeaderLayer::Ip), Higher,
        "Bits of the IP packets (payload, UDP and IP headers) of different datagrams that arrived \
         in the best sub-interval of a search over that sub-interval's length.",
        "RFC 9097 §6 (Maximum_IP_Capacity)";
    SendRate = "send_rate_bps", "rate sent", "bit/s", Some(HeaderLayer::Payload), Neither,
        "Payload bits of datagrams sent after the omitted span over the time of sending them.",
        "own";
    BusiestMs = "busiest_ms_ratio", "busiest millisecond", "1", None, Lower,
        "Payload that a paced sender sent in its busiest millisecond over that of its mean one, \
         by its own clock before each call.",
        "own";
    JitterRfc3550 = "jitter_rfc3550_ns", "jitter", "ns", None, Lower,
        "Smoothed difference of the transit times of successive arrivals at the end of the test; \
         datagrams that were sent in one call count once, duplicates do not.",
        "RFC 3550 §6.4.1";
    Pdv = "pdv_ns", "delay above the smallest", "ns", None, Lower,
        "One-way delay of a datagram less the smallest of its stream; the clocks of the ends need \
         not agree. Thinned evenly beyond 65,536 samples; the largest is of all.",
        "RFC 5481 §4.2";
    Late = "late", "late answers", "answers", None, Lower,
        "Answers that came after the time-out; they count as lost.",
        "RFC 7680 §2";
    TheoreticalFrames = "theoretical_frames_per_sec", "theoretical frame rate", "frames/s",
        Some(HeaderLayer::Frame), Neither,
        "Frames of this size per second that the medium carries, preamble and gap included; absent \
         if there is no medium, as on virtual links.",
        "RFC 2544 appendix B, RFC 5180 appendix A";
    TesterFrames = "tester_frames_per_sec", "tester's own frame rate", "frames/s",
        Some(HeaderLayer::Frame), Neither,
        "Frames per second that the tester sends from one port and receives without loss, without \
         the device: results close to it are limited by the tester.",
        "RFC 2285 §3.5.3 (maximum offered load), taken without a device";
    TesterLatency = "tester_latency_ns", "tester's own latency", "ns", None, Neither,
        "Median delay of the tester with a cable in place of the device; the latencies of the \
         device include it.",
        "own";
    ThroughputStrict = "throughput_strict_frames_per_sec", "throughput, strict", "frames/s",
        Some(HeaderLayer::Frame), Higher,
        "Highest load of one sending port at which a trial of full length loses not one frame; \
         the forwarding rate at the lower bound of the goal `strict`. Trials are of 60 s unless \
         the plan shortens them.",
        "RFC 1242 §3.17, RFC 2544 §24 and §26.1";
    ThroughputTypical = "throughput_typical_frames_per_sec", "throughput, typical", "frames/s",
        Some(HeaderLayer::Frame), Higher,
        "Highest load of one sending port at which at least half of the trials, by time, lose not \
         one frame; the forwarding rate at the lower bound of the goal `typical`.",
        "RFC 9971 (MLRsearch), conditional throughput";
    ThroughputVerified = "throughput_verified_frames_per_sec", "throughput, verified", "frames/s",
        Some(HeaderLayer::Frame), Higher,
        "As strict, with a lossy trial repeated before it counts; the goal `verified`.",
        "ETSI GS NFV-TST 009 §12.3.3 (binary search with loss verification)";
    ForwardingRateMax = "forwarding_rate_max_frames_per_sec", "maximum forwarding rate", "frames/s",
        Some(HeaderLayer::Frame), Higher,
        "Highest rate of frames that came out at any load of the tests flood, loss-curve and \
         overload, all sending ports together, with or without loss.",
        "RFC 2285 §3.6.3";
    FloodOffered = "flood_offered_frames_per_sec", "maximum offered load", "frames/s",
        Some(HeaderLayer::Frame),
        Neither,
        "Frames per second that all sending ports together offered while each sent at its maximum.",
        "RFC 2285 §3.5.3";
    FloodForwarded = "flood_forwarded_frames_per_sec", "flood rate", "frames/s",
        Some(HeaderLayer::Frame), Higher,
        "Frames per second that came out at the maximum offered load: Bradner's flood rate.",
        "RFC 2285 §3.6.2 (forwarding rate at maximum offered load)";
    Stalls = "stalls_per_sec", "stalls", "1/s", None, Lower,
        "How often per second frames were lost below the typical throughput: the reason why strict \
         is lower.",
        "own";
    FrameLatency = "frame_latency_ns", "frame latency", "ns", None, Lower,
        "Delay of each frame at the throughput, the tester's own included; the record says by \
         which of the two definitions.",
        "RFC 1242 §3.8, RFC 2544 §26.2, RFC 8219 §7.2 (median and 99.9th percentile)";
    FramePdv = "frame_pdv_ns", "frame delay variation", "ns", None, Lower,
        "99.9th percentile of the delay of frames less the smallest.",
        "RFC 8219 §7.3.1";
    BurstFrames = "burst_frames", "back-to-back frames", "frames", None, Higher,
        "Longest burst at the smallest legal gap of which nothing is lost, each repetition.",
        "RFC 1242 §3.1, RFC 2544 §26.4, RFC 9004";
    BurstBufferTime = "burst_buffer_ns", "corrected buffer time", "ns", None, Higher,
        "Mean burst over its rate, less what the device forwards while the burst arrives.",
        "RFC 9004 §6.4";
    Recovery = "recovery_ns", "system recovery", "ns", None, Lower,
        "From the reduction of an overload to half its load until the last lost frame.",
        "RFC 2544 §26.5";
    ResetByLoss = "reset_by_loss_ns", "reset time, by frames lost", "ns", None, Lower,
        "Frames lost over a reset at a constant rate, over that rate.",
        "RFC 2544 §26.6, RFC 6201 (frame-loss method)";
    ResetByStamps = "reset_by_stamps_ns", "reset time, by time stamps", "ns", None, Lower,
        "From the last frame before a reset to the first after it, at the receiver.",
        "RFC 2544 §26.6, RFC 6201 (time-stamp method)";
    AddressesCached = "addresses_cached", "address caching capacity", "addresses", None, Higher,
        "Most MAC addresses that the bridge stores at once without flooding a frame.",
        "RFC 2285 §3.8.1, RFC 2889 §5.7";
    AddressRate = "address_learning_frames_per_sec", "address learning rate", "frames/s",
        None, Higher,
        "Most new MAC addresses per second that the bridge learns without missing one.",
        "RFC 2285 §3.8.2, RFC 2889 §5.8";
    BlockedLoss = "blocked_loss_ratio", "loss on the uncongested port", "1", None, Lower,
        "Share of the frames to an uncongested port that is lost while another port is congested: \
         above 0 is head-of-line blocking.",
        "RFC 2285 §3.7.3, RFC 2889 §5.5";
    SoakLoss = "soak_loss_ratio", "loss in the soak", "1", None, Lower,
        "Frames lost over frames sent in one long run at a constant load.",
        "RFC 1242 §3.6";
    SoakErroredSeconds = "soak_errored_seconds", "errored seconds in the soak", "seconds", None,
        Lower,
        "Seconds of the long run in which a frame was lost.",
        "ITU-T G.826 §4.2 (errored second), of frames";
    ContractCir = "contract_cir_bps", "committed rate found", "bit/s",
        Some(HeaderLayer::Frame), Neither,
        "Sustained rate that a policer or shaper lets pass, bits of frames from the destination \
         address to the FCS.",
        "ITU-T Y.1564, MEF 10.4 (bandwidth profile)";
    ContractCbs = "contract_cbs_bytes", "committed burst found", "bytes", Some(HeaderLayer::Frame),
        Neither,
        "Burst that a policer passes after a pause, in bytes of frames.",
        "ITU-T Y.1564, MEF 10.4 (bandwidth profile)";
}
