//! The kernel's account of a TCP connection (`TCP_INFO`, tcp(7)), read by offset.
//!
//! The structure only grows: the length that getsockopt returns tells which fields exist, and a
//! field beyond it is absent, not zero. Offsets: Linux include/uapi/linux/tcp.h; the kernel that
//! introduced each group is beside it. Byte 7 holds bit fields that C compilers lay out as padding
//! for other languages, so no ready-made structure is used.

use serde::{Deserialize, Serialize};

/// One sample of `TCP_INFO`; every field is as the kernel counts it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TcpInfo {
    /// TCP state number (1 is established).
    pub state: Option<u8>,
    /// Congestion avoidance state (0 open, 1 disorder, 2 CWR, 3 recovery, 4 loss).
    pub ca_state: Option<u8>,
    /// Negotiated options: 1 timestamps, 2 SACK, 4 window scale, 8 ECN; 16: a packet came with ECT.
    pub options: Option<u8>,
    /// Window scale that the peer asked this end to apply to the peer's windows.
    pub snd_wscale: Option<u8>,
    /// Window scale that this end applies to its own windows.
    pub rcv_wscale: Option<u8>,
    /// The last delivery rate sample was limited by the application.
    pub delivery_rate_app_limited: Option<bool>,
    /// Retransmission time-out.
    pub rto_us: Option<u32>,
    /// Segment size of sent segments.
    pub snd_mss_bytes: Option<u32>,
    /// Segment size of received segments, as estimated.
    pub rcv_mss_bytes: Option<u32>,
    /// Segments sent and not acknowledged.
    pub unacked: Option<u32>,
    /// Segments reported lost and not yet retransmitted.
    pub lost: Option<u32>,
    /// Path MTU.
    pub pmtu_bytes: Option<u32>,
    /// Window that this end would advertise were its receive buffer never short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rcv_ssthresh_bytes: Option<u32>,
    /// Smoothed round-trip time.
    pub rtt_us: Option<u32>,
    /// Its mean deviation.
    pub rttvar_us: Option<u32>,
    /// Slow start threshold; 0x7fffffff was never set.
    pub snd_ssthresh: Option<u32>,
    /// Congestion window in segments.
    pub snd_cwnd: Option<u32>,
    /// Advertised MSS.
    pub advmss_bytes: Option<u32>,
    /// Reordering distance that is tolerated.
    pub reordering: Option<u32>,
    /// Round-trip time as the receiver estimates it.
    pub rcv_rtt_us: Option<u32>,
    /// Receive buffer space that autotuning aims at.
    pub rcv_space_bytes: Option<u32>,
    /// Segments retransmitted.
    pub total_retrans: Option<u32>,
    /// Pacing rate in bytes per second (3.15).
    pub pacing_rate_bytes_per_s: Option<u64>,
    /// Bytes acknowledged by the peer (4.1).
    pub bytes_acked: Option<u64>,
    /// Bytes received in order (4.1).
    pub bytes_received: Option<u64>,
    /// Segments sent (4.2).
    pub segs_out: Option<u32>,
    /// Segments received (4.2).
    pub segs_in: Option<u32>,
    /// Bytes written and not yet sent (4.6).
    pub notsent_bytes: Option<u32>,
    /// Smallest round-trip time of the connection (4.6).
    pub min_rtt_us: Option<u32>,
    /// Segments with data received (4.6).
    pub data_segs_in: Option<u32>,
    /// Segments with data sent (4.6).
    pub data_segs_out: Option<u32>,
    /// Latest delivery rate in bytes per second (4.9).
    pub delivery_rate_bytes_per_s: Option<u64>,
    /// Time with data outstanding; includes the next two (4.10).
    pub busy_time_us: Option<u64>,
    /// Time held back by the peer's window (4.10).
    pub rwnd_limited_us: Option<u64>,
    /// Time held back by the send buffer (4.10).
    pub sndbuf_limited_us: Option<u64>,
    /// Segments delivered (4.18).
    pub delivered: Option<u32>,
    /// Segments delivered with a congestion mark (4.18).
    pub delivered_ce: Option<u32>,
    /// Data bytes sent, retransmissions included (4.19).
    pub bytes_sent: Option<u64>,
    /// Data bytes sent again (4.19).
    pub bytes_retrans: Option<u64>,
    /// Duplicate SACKs received: retransmissions that were not needed (4.19).
    pub dsack_dups: Option<u32>,
    /// Number of reordering events (4.19).
    pub reord_seen: Option<u32>,
    /// Segments that arrived out of order (5.4).
    pub rcv_ooopack: Option<u32>,
    /// Window that the peer advertises, after scaling (5.4).
    pub snd_wnd_bytes: Option<u32>,
    /// Window that this end advertises, after scaling (6.2).
    pub rcv_wnd_bytes: Option<u32>,
    /// Times that the flow label or hash was changed (6.2).
    pub rehash: Option<u32>,
    /// Retransmission time-outs (6.7).
    pub total_rto: Option<u16>,
    /// Times that the connection left such a time-out behind (6.7).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_rto_recoveries: Option<u16>,
    /// Time spent in them (6.7).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_rto_time_ms: Option<u32>,
    /// Segments received with a congestion mark (6.18, as are those below).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received_ce: Option<u32>,
    /// Payload bytes that were delivered with ECT(1), by the peer's accurate ECN.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivered_e1_bytes: Option<u32>,
    /// Bytes delivered with ECT(0).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivered_e0_bytes: Option<u32>,
    /// Bytes delivered with a congestion mark.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivered_ce_bytes: Option<u32>,
    /// Payload bytes received with ECT(1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received_e1_bytes: Option<u32>,
    /// Bytes received with ECT(0).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received_e0_bytes: Option<u32>,
    /// Bytes received with a congestion mark.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received_ce_bytes: Option<u32>,
}

impl TcpInfo {
    /// Reads what the kernel returned; `bytes` is exactly as long as getsockopt said, in the
    /// machine's byte order.
    pub fn from_ne_bytes(bytes: &[u8]) -> Self {
        let at = Reader(bytes);
        Self {
            state: at.read_u8(0),
            ca_state: at.read_u8(1),
            options: at.read_u8(5),
            snd_wscale: at.read_u8(6).map(|byte| byte & 0x0f),
            rcv_wscale: at.read_u8(6).map(|byte| byte >> 4),
            // Kernels before 4.9 leave the byte zero; the field came with the delivery rate.
            delivery_rate_app_limited: at
                .read_u64(160)
                .and_then(|_| at.read_u8(7))
                .map(|byte| byte & 1 == 1),
            rto_us: at.read_u32(8),
            snd_mss_bytes: at.read_u32(16),
            rcv_mss_bytes: at.read_u32(20),
            unacked: at.read_u32(24),
            lost: at.read_u32(32),
            pmtu_bytes: at.read_u32(60),
            rcv_ssthresh_bytes: at.read_u32(64),
            rtt_us: at.read_u32(68),
            rttvar_us: at.read_u32(72),
            snd_ssthresh: at.read_u32(76),
            snd_cwnd: at.read_u32(80),
            advmss_bytes: at.read_u32(84),
            reordering: at.read_u32(88),
            rcv_rtt_us: at.read_u32(92),
            rcv_space_bytes: at.read_u32(96),
            total_retrans: at.read_u32(100),
            pacing_rate_bytes_per_s: at.read_u64(104),
            bytes_acked: at.read_u64(120),
            bytes_received: at.read_u64(128),
            segs_out: at.read_u32(136),
            segs_in: at.read_u32(140),
            notsent_bytes: at.read_u32(144),
            // The kernel starts the minimum at all ones: not yet measured.
            min_rtt_us: at.read_u32(148).filter(|&us| us != u32::MAX),
            data_segs_in: at.read_u32(152),
            data_segs_out: at.read_u32(156),
            delivery_rate_bytes_per_s: at.read_u64(160),
            busy_time_us: at.read_u64(168),
            rwnd_limited_us: at.read_u64(176),
            sndbuf_limited_us: at.read_u64(184),
            delivered: at.read_u32(192),
            delivered_ce: at.read_u32(196),
            bytes_sent: at.read_u64(200),
            bytes_retrans: at.read_u64(208),
            dsack_dups: at.read_u32(216),
            reord_seen: at.read_u32(220),
            rcv_ooopack: at.read_u32(224),
            snd_wnd_bytes: at.read_u32(228),
            rcv_wnd_bytes: at.read_u32(232),
            rehash: at.read_u32(236),
            total_rto: at.read_u16(240),
            total_rto_recoveries: at.read_u16(242),
            total_rto_time_ms: at.read_u32(244),
            received_ce: at.read_u32(248),
            delivered_e1_bytes: at.read_u32(252),
            delivered_e0_bytes: at.read_u32(256),
            delivered_ce_bytes: at.read_u32(260),
            received_e1_bytes: at.read_u32(264),
            received_e0_bytes: at.read_u32(268),
            received_ce_bytes: at.read_u32(272),
        }
    }

    /// Payload sent and not acknowledged, the last segment taken for a full one.
    pub fn unacked_bytes(&self) -> Option<u64> {
        Some(u64::from(self.unacked?) * u64::from(self.snd_mss_bytes?))
    }

    /// Payload in the send buffer: sent and not acknowledged, and not sent yet.
    pub fn send_queue_bytes(&self) -> Option<u64> {
        Some(self.unacked_bytes()? + u64::from(self.notsent_bytes?))
    }

    /// The slow-start threshold in bytes; absent before it was set first.
    pub fn ssthresh_bytes(&self) -> Option<u64> {
        // TCP_INFINITE_SSTHRESH of Linux net/tcp.h.
        let segments = self.snd_ssthresh.filter(|segments| *segments < 0x7fff_ffff)?;
        Some(u64::from(segments) * u64::from(self.snd_mss_bytes?))
    }

    /// The congestion window in bytes.
    pub fn cwnd_bytes(&self) -> Option<u64> {
        Some(u64::from(self.snd_cwnd?) * u64::from(self.snd_mss_bytes?))
    }
}

/// Fields by offset; beyond the end they are absent.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn read_array<const N: usize>(&self, offset: usize) -> Option<[u8; N]> {
        self.0.get(offset..offset + N)?.try_into().ok()
    }

    fn read_u8(&self, offset: usize) -> Option<u8> {
        self.0.get(offset).copied()
    }

    fn read_u16(&self, offset: usize) -> Option<u16> {
        self.read_array(offset).map(u16::from_ne_bytes)
    }

    fn read_u32(&self, offset: usize) -> Option<u32> {
        self.read_array(offset).map(u32::from_ne_bytes)
    }

    fn read_u64(&self, offset: usize) -> Option<u64> {
        self.read_array(offset).map(u64::from_ne_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each byte is its own offset, so a wrong offset shows as a wrong value.
    fn offset_bytes(len: usize) -> Vec<u8> {
        (0..len).map(|index| u8::try_from(index % 256).expect("below 256")).collect()
    }

    #[test]
    fn a_field_beyond_what_the_kernel_returned_is_absent() {
        // Lengths and the kernel that first returned them: tcp.h history.
        type Case = (usize, fn(&TcpInfo) -> bool);
        let cases: &[Case] = &[
            (104, |info| info.total_retrans.is_some() && info.pacing_rate_bytes_per_s.is_none()),
            (136, |info| info.bytes_received.is_some() && info.segs_out.is_none()),
            (160, |info| info.data_segs_out.is_some() && info.delivery_rate_app_limited.is_none()),
            (168, |info| info.delivery_rate_app_limited.is_some() && info.busy_time_us.is_none()),
            (192, |info| info.sndbuf_limited_us.is_some() && info.delivered.is_none()),
            (232, |info| info.snd_wnd_bytes.is_some() && info.rcv_wnd_bytes.is_none()),
            (240, |info| info.rehash.is_some() && info.total_rto.is_none()),
            (248, |info| info.total_rto.is_some() && info.received_ce.is_none()),
        ];
        for (len, holds) in cases {
            assert!(holds(&TcpInfo::from_ne_bytes(&offset_bytes(*len))), "length {len}");
        }
        assert_eq!(TcpInfo::from_ne_bytes(&[]), TcpInfo::default());
    }

    #[test]
    fn offsets_are_those_of_the_kernel_header() {
        let info = TcpInfo::from_ne_bytes(&offset_bytes(248));
        assert_eq!(info.rtt_us, Some(u32::from_ne_bytes([68, 69, 70, 71])));
        assert_eq!(info.snd_cwnd, Some(u32::from_ne_bytes([80, 81, 82, 83])));
        assert_eq!(info.snd_wnd_bytes, Some(u32::from_ne_bytes([228, 229, 230, 231])));
        assert_eq!(info.rcv_wnd_bytes, Some(u32::from_ne_bytes([232, 233, 234, 235])));
        assert_eq!((info.snd_wscale, info.rcv_wscale), (Some(6), Some(0)));
        assert_eq!(info.rcv_ssthresh_bytes, Some(u32::from_ne_bytes([64, 65, 66, 67])));
        assert_eq!(info.total_rto_recoveries, Some(u16::from_ne_bytes([242, 243])));
        assert_eq!(info.total_rto_time_ms, Some(u32::from_ne_bytes([244, 245, 246, 247])));
        let info = TcpInfo::from_ne_bytes(&offset_bytes(280));
        assert_eq!(info.received_ce, Some(u32::from_ne_bytes([248, 249, 250, 251])));
        assert_eq!(info.delivered_e1_bytes, Some(u32::from_ne_bytes([252, 253, 254, 255])));
        assert_eq!(info.received_ce_bytes, Some(u32::from_ne_bytes([16, 17, 18, 19])));
    }

    #[test]
    fn a_minimum_not_yet_measured_is_absent() {
        let mut bytes = offset_bytes(160);
        bytes[148..152].fill(0xff);
        assert_eq!(TcpInfo::from_ne_bytes(&bytes).min_rtt_us, None);
    }
}
