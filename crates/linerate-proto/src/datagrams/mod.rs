//! Numbered datagrams between a browser and `linerate serve` over WebTransport, and the request
//! and report on a WebTransport stream: the bytes of `spec/datagrams.md`.
//!
//! Integers are big-endian. Left out: QUIC and HTTP/3 below them, which libraries provide.

mod wire;

pub use wire::{
    AskError, DATAGRAM_BYTES_MIN, Datagram, DatagramArrival, DatagramRoundRequest,
    REPORT_BYTES_MAX, Report, ReportError,
};
