//! A UDP throughput test as a plan: at one pace, or as a search for the capacity.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DEFAULT_PORT, Family, Finish, SearchPlan, TcpDirections, Via};
use crate::units::BitRate;

/// A UDP throughput test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UdpPlan {
    /// Whose protocol the server speaks; null is this program's own.
    #[serde(default)]
    pub via: Option<Via>,
    /// Name or address of the server.
    pub host: String,
    /// Its port for the control connection.
    pub port: u16,
    /// Only this address family.
    pub family: Option<Family>,
    /// Local address to send from.
    pub bind: Option<String>,
    /// Which ways data goes.
    pub directions: TcpDirections,
    /// Streams in each direction.
    pub streams: u16,
    /// When it ends. Bytes are rounded up to whole datagrams; a buffer is a datagram.
    pub finish: Finish,
    /// Datagrams sent within this span at the start are left out of the result.
    pub omit_ns: u64,
    /// Length of a reporting interval.
    pub interval_ns: u64,
    /// Payload of a datagram, 16 … 65507; null until the address is known, then the most that a
    /// packet of 1500 bytes carries, or the most that one of the route does where that is less.
    pub size_bytes: Option<u32>,
    /// Pace of each stream in payload bit/s; null is as fast as possible.
    pub pace: Option<BitRate>,
    /// Search for the capacity at the IP layer instead of keeping a pace, which is null then; one
    /// stream, one direction, and `interval_ns` is the length of a sub-interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchPlan>,
    /// Socket buffers to ask for at both ends; null is as much as the host gives, up to 32 MiB, for
    /// a receiver and the kernel's default for a sender.
    pub window_bytes: Option<u64>,
    /// Differentiated services code point, 0 … 63.
    pub dscp: Option<u8>,
    /// Datagrams may be handed to the kernel, and taken from it, several in one buffer
    /// (UDP_SEGMENT, UDP_GRO).
    pub joined: bool,
    /// The receiver takes each by itself all the same: what is handed over joined is cut at the
    /// latest in the receiver's kernel.
    #[serde(default)]
    pub taken_singly: bool,
    /// The processor that this end's first data thread is held to; the others take those after it.
    #[serde(default)]
    pub cpu: Option<u32>,
    /// How long to wait for the server to answer.
    pub connect_timeout_ns: u64,
}

impl Default for UdpPlan {
    fn default() -> Self {
        Self {
            via: None,
            host: "localhost".to_owned(),
            port: DEFAULT_PORT,
            family: None,
            bind: None,
            directions: TcpDirections::Up,
            streams: 1,
            finish: Finish::TimeNs(10_000_000_000),
            omit_ns: 0,
            interval_ns: 1_000_000_000,
            size_bytes: None,
            pace: Some(BitRate::from_bits_per_sec(1_000_000)),
            search: None,
            window_bytes: None,
            dscp: None,
            joined: true,
            taken_singly: false,
            cpu: None,
            connect_timeout_ns: 5_000_000_000,
        }
    }
}
