//! What plans of several kinds share: whose protocol, which way, how much.

use serde::{Deserialize, Serialize};

use super::named::named;

/// Port of `linerate serve`, for TCP control and data and for UDP echo.
pub const DEFAULT_PORT: u16 = 5210;

/// The port of STAMP (RFC 8762 §4.1).
pub const STAMP_PORT: u16 = 862;

/// Internet Protocol version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum IpFamily {
    /// IP version 4.
    V4,
    /// IP version 6.
    V6,
}

/// Time or amount of data that ends a throughput test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// A time (after the omitted span).
    TimeNs(u64),
    /// A number of payload bytes of all streams of a direction together.
    Bytes(u64),
    /// A number of buffers of `buffer_bytes`, all streams of a direction together.
    Buffers(u64),
}

/// Directions of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TcpDirections {
    /// From client to server.
    Up,
    /// From server to client.
    Down,
    /// Both directions at once, on separate connections.
    Both,
}

/// Another program whose protocol is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Via {
    /// iperf 3.
    Iperf3,
    /// iperf 2.
    Iperf2,
    /// nuttcp.
    Nuttcp,
    /// ttcp and its descendants without a protocol of their own.
    Ttcp,
    /// A browser or another client of HTTP, by its server's record.
    Http,
}

named!(Via {
    Iperf3 = "iperf3",
    Iperf2 = "iperf2",
    Nuttcp = "nuttcp",
    Ttcp = "ttcp",
    Http = "http",
});

impl Via {
    /// The default port of its servers (of nuttcp, the control port).
    pub const fn default_port(self) -> u16 {
        match self {
            Self::Iperf3 => 5201,
            Self::Iperf2 | Self::Ttcp => 5001,
            Self::Nuttcp => 5000,
            Self::Http => DEFAULT_PORT,
        }
    }
}
