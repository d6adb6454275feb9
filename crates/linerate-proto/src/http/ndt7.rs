//! ndt7's messages: sizes of the load messages, and the measurements sent during a test.
//!
//! Source: `ndt7-protocol.md` 0.11 of m-lab/ndt-server.

use linerate_core::record::{Direction, TcpInfo};
use serde::Serialize;

/// Bytes of the first load message, and of the longest; messages grow from one to the other.
pub const NDT7_MESSAGE_BYTES: (u64, u64) = (1 << 13, 1 << 20);
/// Bytes of the longest message that is accepted.
pub const NDT7_MESSAGE_BYTES_MAX: u64 = 1 << 24;

/// Bytes of the next load message, after one of `bytes` and `sent` bytes in all: doubled once it
/// is at most a sixteenth of the bytes sent.
pub const fn next_message_bytes(bytes: u64, sent: u64) -> u64 {
    if bytes <= sent / 16 && bytes < NDT7_MESSAGE_BYTES.1 { bytes * 2 } else { bytes }
}

/// A measurement message of the server. Times in microseconds since the handshake.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Measurement<'a> {
    /// Payload that this program sent or received.
    pub app_info: AppInfo,
    /// Addresses of client and server.
    pub connection_info: ConnectionInfo<'a>,
    origin: &'static str,
    test: &'static str,
    #[serde(rename = "TCPInfo", skip_serializing_if = "Option::is_none")]
    tcp_info: Option<KernelInfo>,
}

/// Payload counted by the program.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct AppInfo {
    /// Time since the handshake, µs.
    pub elapsed_time: u64,
    /// Payload bytes since the handshake.
    pub num_bytes: u64,
}

/// Addresses of the two ends, and the name of the test.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct ConnectionInfo<'a> {
    /// Address and port of the client.
    pub client: &'a str,
    /// Address and port of the server.
    pub server: &'a str,
    /// Unique name of the test.
    #[serde(rename = "UUID")]
    pub uuid: &'a str,
}

/// The server's TCP_INFO (tcp(7)); times in µs.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct KernelInfo {
    elapsed_time: u64,
    busy_time: Option<u64>,
    #[serde(rename = "RWndLimited")]
    rwnd_limited: Option<u64>,
    #[serde(rename = "SndBufLimited")]
    sndbuf_limited: Option<u64>,
    #[serde(rename = "RTT")]
    rtt: Option<u32>,
    #[serde(rename = "RTTVar")]
    rtt_var: Option<u32>,
    #[serde(rename = "MinRTT")]
    min_rtt: Option<u32>,
    bytes_acked: Option<u64>,
    bytes_received: Option<u64>,
    bytes_sent: Option<u64>,
    bytes_retrans: Option<u64>,
}

impl KernelInfo {
    pub(super) const fn from_tcp_info(info: &TcpInfo, elapsed_time: u64) -> Self {
        Self {
            elapsed_time,
            busy_time: info.busy_time_us,
            rwnd_limited: info.rwnd_limited_us,
            sndbuf_limited: info.sndbuf_limited_us,
            rtt: info.rtt_us,
            rtt_var: info.rttvar_us,
            min_rtt: info.min_rtt_us,
            bytes_acked: info.bytes_acked,
            bytes_received: info.bytes_received,
            bytes_sent: info.bytes_sent,
            bytes_retrans: info.bytes_retrans,
        }
    }
}

impl<'a> Measurement<'a> {
    /// Measurement of a test in `direction`, with the counters read now.
    pub fn new(
        direction: Direction,
        app_info: AppInfo,
        connection_info: ConnectionInfo<'a>,
        info: Option<&TcpInfo>,
    ) -> Self {
        let elapsed_time = app_info.elapsed_time;
        let tcp_info = info.map(|info| KernelInfo::from_tcp_info(info, elapsed_time));
        let test = if direction == Direction::Down { "download" } else { "upload" };
        Self { app_info, connection_info, origin: "server", test, tcp_info }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_double_once_they_are_a_sixteenth_of_what_was_sent() {
        assert_eq!(next_message_bytes(8192, 16 * 8192 - 1), 8192);
        assert_eq!(next_message_bytes(8192, 16 * 8192), 16_384);
        assert_eq!(next_message_bytes(1 << 20, u64::MAX), 1 << 20, "the largest stays");
    }

    #[test]
    fn names_are_those_of_the_specification() {
        let info = TcpInfo { rtt_us: Some(7), bytes_acked: Some(9), ..TcpInfo::default() };
        let ends = ConnectionInfo { client: "192.0.2.1:9", server: "192.0.2.2:80", uuid: "u" };
        let app = AppInfo { elapsed_time: 5, num_bytes: 3 };
        let told = Measurement::new(Direction::Down, app, ends, Some(&info));
        let told = linerate_core::tree::to_value(told).expect("JSON");
        assert_eq!(told["AppInfo"]["ElapsedTime"], 5);
        assert_eq!(told["AppInfo"]["NumBytes"], 3);
        assert_eq!(told["ConnectionInfo"]["UUID"], "u");
        assert_eq!(told["TCPInfo"]["RTT"], 7);
        assert_eq!(told["TCPInfo"]["BytesAcked"], 9);
        assert_eq!((&told["Test"], &told["Origin"]), (&"download".into(), &"server".into()));
    }
}
