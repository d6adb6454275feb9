//! Options of SYN and SYN-ACK that arrived otherwise than they were sent.
//!
//! Left out: how that is found (`explain`).

use serde::{Deserialize, Serialize};

/// An option of SYN or SYN-ACK that was removed or changed between the hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OptionChange {
    /// Segment that carried it.
    pub segment: Handshake,
    /// The option.
    pub option: TcpOption,
    /// Its value as sent: bytes of a segment size, shift of a window scale; null for an option
    /// without one, and where it is not known.
    pub sent: Option<u32>,
    /// Its value as it arrived; null where the option was removed.
    pub arrived: Option<u32>,
}

/// A segment that opens a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Handshake {
    /// The client's.
    Syn,
    /// The server's answer.
    SynAck,
}

/// Option on which the ends of a connection agree when it opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TcpOption {
    /// Maximum segment size (RFC 9293 §3.7.1).
    Mss,
    /// Window scale (RFC 7323 §2).
    WindowScale,
    /// Selective acknowledgements (RFC 2018).
    Sack,
    /// Timestamps (RFC 7323 §3).
    Timestamps,
    /// Explicit congestion notification, by flags of the segment (RFC 3168 §6.1.1).
    Ecn,
}
