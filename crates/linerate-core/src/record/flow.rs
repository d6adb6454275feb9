//! One TCP connection or UDP stream that carried data: asked and got, at both ends.

use serde::{Deserialize, Serialize};

use super::{
    Contents, Direction, MultipathTcp, ReceivedDatagrams, SentDatagrams, TcpInfo, Verified,
    ZeroCopySends,
};

/// A setting as it was asked for and as the kernel granted it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Asked<T> {
    /// Null when nothing was asked for.
    pub asked: Option<T>,
    /// The granted value; null when the kernel does not report it.
    pub got: Option<T>,
}

/// One stream of a throughput test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Flow {
    /// Stream number within its direction, from 0.
    pub flow: u16,
    /// Direction of the data.
    pub direction: Direction,
    /// Local address and port of the client.
    pub client_addr: String,
    /// Address and port of the server.
    pub server_addr: String,
    /// The end that sent.
    pub sender: Option<FlowEnd>,
    /// The end that received; its count is the result.
    pub receiver: Option<FlowEnd>,
    /// The client's SYN as it reached the server.
    pub syn: Option<SynOptions>,
}

/// Counters of a stream at one end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlowEnd {
    /// Payload bytes written to or read from the socket, the omitted span included.
    pub bytes: u64,
    /// Payload bytes within the measured span.
    pub bytes_measured: u64,
    /// Start of the measured span since this end's start of the test.
    #[serde(default)]
    pub span_start_ns: u64,
    /// Length of the measured span: from the end of the omitted span, or the first byte, to the
    /// last byte.
    pub span_ns: u64,
    /// write() or read() calls.
    pub io_calls: u64,
    /// User time of the data thread.
    pub cpu_user_ns: Option<u64>,
    /// System time of the data thread.
    pub cpu_system_ns: Option<u64>,
    /// Time that the data thread was ready to run but had no CPU.
    pub run_queue_wait_ns: Option<u64>,
    /// Time that it waited in write() for room, or in read() for data; null over UDP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked_ns: Option<u64>,
    /// Time that it slept to keep the pace that was asked for; null over UDP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asleep_ns: Option<u64>,
    /// The CPU that the data thread ended on.
    pub last_cpu: Option<u32>,
    /// CPUs that the data thread was seen on, in the order of their first time; the first 16.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpus_seen: Vec<u32>,
    /// The CPU that the data thread was kept on; null when the scheduler chose.
    #[serde(default)]
    pub pinned_cpu: Option<u32>,
    /// SO_SNDBUF. The kernel doubles what was asked for (socket(7)).
    pub sndbuf_bytes: Asked<u64>,
    /// SO_RCVBUF. The kernel doubles what was asked for (socket(7)).
    pub rcvbuf_bytes: Asked<u64>,
    /// Largest receive window that this end advertised, after scaling.
    pub window_advertised_bytes_max: Option<u64>,
    /// Largest receive window that this end was offered by its peer, after scaling.
    pub window_offered_bytes_max: Option<u64>,
    /// Most payload that this end's send buffer was seen to hold: sent and not acknowledged, and
    /// not sent yet (tcpi_unacked x tcpi_snd_mss + tcpi_notsent_bytes), when sampled. It may be
    /// more than SO_SNDBUF, to which senders that do not pace add whole super-packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_queue_bytes_max: Option<u64>,
    /// Congestion control of the socket.
    pub congestion_control: Asked<String>,
    /// Maximum segment size.
    pub mss_bytes: Asked<u32>,
    /// Congestion window before the first byte, in segments, where this end sent.
    #[serde(default)]
    pub initial_window_segments: Option<u32>,
    /// TCP_NODELAY was set.
    pub nodelay: bool,
    /// Calls that moved the data: `write`, `vmsplice`, `read`, `trunc, low-water mark`, `sendmmsg,
    /// joined`.
    pub technique: String,
    /// Treatment of the bytes at this end; null where that is not known.
    #[serde(default)]
    pub contents: Option<Contents>,
    /// Result of comparing received bytes with the pattern, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<Verified>,
    /// The kernel's reports of sends with MSG_ZEROCOPY.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zero_copy_sends: Option<ZeroCopySends>,
    /// Use of Multipath TCP, where it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mptcp: Option<MultipathTcp>,
    /// The kernel's own account at the end.
    pub tcp_info: Option<TcpInfo>,
    /// Time at which TCP_INFO was read, since this end's start of the test: once all was sent and
    /// acknowledged, so that its times are shares of this and not of the measured span.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp_info_at_ns: Option<u64>,
    /// Datagrams that this end sent; none in a TCP test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_datagrams: Option<SentDatagrams>,
    /// Datagrams that this end received; none in a TCP test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received_datagrams: Option<ReceivedDatagrams>,
}

/// Options of a SYN segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SynOptions {
    /// Window field, never scaled on a SYN (RFC 7323 §2.2).
    pub window_bytes: u32,
    /// Window scale shift, null when not offered.
    pub window_scale: Option<u8>,
    /// Maximum segment size, null when not offered.
    pub mss_bytes: Option<u16>,
    /// Selective acknowledgements permitted.
    pub sack_permitted: bool,
    /// Timestamps offered.
    pub timestamps: bool,
    /// ECN offered (ECE and CWR set on the SYN, RFC 3168 §6.1.1).
    pub ecn: bool,
    /// Differentiated services code point of its packet where it arrived (RFC 2474 §3).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dscp: Option<u8>,
    /// ECN field of its packet where it arrived (RFC 3168 §5): 0 is not ECT, 1 ECT(1), 2 ECT(0), 3
    /// CE.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ecn_field: Option<u8>,
}

impl SynOptions {
    /// Reads the options from an IP packet that begins with its header and holds a TCP header.
    /// Returns `None` when it is cut or holds no TCP.
    /// # Source
    /// RFC 791 §3.1, RFC 8200 §3, RFC 9293 §3.1 and §3.2, RFC 7323 §2.2 and §3.2, RFC 2018 §2.
    pub fn from_ip_packet(packet: &[u8]) -> Option<Self> {
        let version = packet.first()? >> 4;
        let second = *packet.get(1)?;
        // IPv6 has the traffic class across the first two bytes.
        let (header, class) = match version {
            4 => (usize::from(packet[0] & 0x0f) * 4, second),
            6 => (40, packet[0] << 4 | second >> 4),
            _ => return None,
        };
        let tcp = packet.get(header..)?;
        let length = usize::from(*tcp.get(12)? >> 4) * 4;
        let (fixed, options) = tcp.get(..length)?.split_at_checked(20)?;
        let mut syn = Self {
            window_bytes: u32::from(u16::from_be_bytes([fixed[14], fixed[15]])),
            ecn: fixed[13] & 0xc0 == 0xc0,
            dscp: Some(class >> 2),
            ecn_field: Some(class & 3),
            ..Self::default()
        };
        syn.read_options(options);
        Some(syn)
    }

    fn read_options(&mut self, mut options: &[u8]) {
        loop {
            match options {
                [] | [0, ..] => return,
                [1, rest @ ..] => options = rest,
                [kind, length, ..] => {
                    let length = usize::from(*length);
                    let Some((option, rest)) = options.split_at_checked(length) else { return };
                    match (*kind, option) {
                        (_, [] | [_]) => return,
                        (2, [_, _, high, low]) => {
                            self.mss_bytes = Some(u16::from_be_bytes([*high, *low]));
                        }
                        (3, [_, _, shift]) => self.window_scale = Some(*shift),
                        (4, [_, _]) => self.sack_permitted = true,
                        (8, _) => self.timestamps = true,
                        _ => {}
                    }
                    options = rest;
                }
                [_] => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A SYN built by hand: IPv4 header (RFC 791), ports 49152 → 5210, window 64240 (0xfaf0), data
    /// offset 10 words, options MSS 1460, SACK permitted, timestamps, NOP, window scale 7: the
    /// order in which Linux sends them.
    const SYN: [u8; 60] = [
        0x45, 0, 0, 60, 0, 0, 0x40, 0, 64, 6, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1, // IP
        0xc0, 0, 0x14, 0x5a, 0, 0, 0, 1, 0, 0, 0, 0, 0xa0, 0x02, 0xfa, 0xf0, 0, 0, 0,
        0, // TCP
        2, 4, 0x05, 0xb4, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7, // options
    ];

    #[test]
    fn the_options_of_a_syn_are_read() {
        let expected = SynOptions {
            window_bytes: 64_240,
            window_scale: Some(7),
            mss_bytes: Some(1460),
            sack_permitted: true,
            timestamps: true,
            ecn: false,
            dscp: Some(0),
            ecn_field: Some(0),
        };
        assert_eq!(SynOptions::from_ip_packet(&SYN), Some(expected));
    }

    #[test]
    fn the_marks_of_a_syn_are_read_from_either_header() {
        let marks =
            |packet: &[u8]| SynOptions::from_ip_packet(packet).map(|syn| (syn.dscp, syn.ecn_field));
        // DSCP 46 (RFC 3246) and ECT(0): 46 * 4 + 2 = 0xba.
        let mut packet = SYN;
        packet[1] = 0xba;
        assert_eq!(marks(&packet), Some((Some(46), Some(2))));
        // The same class in IPv6 (RFC 8200 §3): version, class and flow label in 4 bytes.
        let mut packet = vec![0x6b, 0xa0, 0, 0, 0, 40, 6, 64];
        packet.extend([0; 32]);
        packet.extend(&SYN[20..]);
        assert_eq!(marks(&packet), Some((Some(46), Some(2))));
    }

    #[test]
    fn a_cut_or_damaged_syn_never_panics() {
        for cut in 0..SYN.len() {
            assert_eq!(SynOptions::from_ip_packet(&SYN[..cut]), None, "cut at {cut}");
        }
        for bit in 0..SYN.len() * 8 {
            let mut damaged = SYN;
            damaged[bit / 8] ^= 1 << (bit % 8);
            let _ = SynOptions::from_ip_packet(&damaged);
        }
    }
}
