//! One TCP connection that carried data: asked and got, at both ends.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Direction, TcpInfo};

/// What was asked for and what the kernel gave.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Asked<T> {
    /// Null when nothing was asked for.
    pub asked: Option<T>,
    /// Null when the kernel does not tell.
    pub got: Option<T>,
}

/// One stream of a throughput test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Flow {
    /// Stream number within its direction, from 0.
    pub flow: u16,
    /// Which way the data went.
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

/// What one end saw of a stream.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlowEnd {
    /// Payload bytes written to or read from the socket, the omitted span included.
    pub bytes: u64,
    /// Payload bytes within the measured span.
    pub bytes_measured: u64,
    /// Length of the measured span: from the end of the omitted span, or the first byte, to the
    /// last byte.
    pub span_ns: u64,
    /// write() or read() calls.
    pub io_calls: u64,
    /// User time of the data thread.
    pub cpu_user_ns: Option<u64>,
    /// System time of the data thread.
    pub cpu_system_ns: Option<u64>,
    /// Time that the data thread was ready to run but had no processor.
    pub run_queue_wait_ns: Option<u64>,
    /// The processor that the data thread ended on.
    pub last_cpu: Option<u32>,
    /// SO_SNDBUF. The kernel doubles what is asked (socket(7)).
    pub sndbuf_bytes: Asked<u64>,
    /// SO_RCVBUF. The kernel doubles what is asked (socket(7)).
    pub rcvbuf_bytes: Asked<u64>,
    /// Largest receive window that this end advertised, after scaling.
    pub window_advertised_bytes_max: Option<u64>,
    /// Largest receive window that this end was offered by its peer, after scaling.
    pub window_offered_bytes_max: Option<u64>,
    /// Congestion control of the socket.
    pub congestion_control: Asked<String>,
    /// Maximum segment size.
    pub mss_bytes: Asked<u32>,
    /// TCP_NODELAY was set.
    pub nodelay: bool,
    /// How data was moved: `write`, `sendfile`, `read`.
    pub technique: String,
    /// The kernel's own account at the end.
    pub tcp_info: Option<TcpInfo>,
}

/// Options of a SYN segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
}
