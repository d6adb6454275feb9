//! Numbered datagrams between a browser and `linerate serve` over WebTransport, and what both say
//! of them on a stream beside: the bytes of `spec/datagrams.md`.
//!
//! Integers are big-endian. Left out: QUIC and HTTP/3 around them, which are libraries'.

mod wire;

pub use wire::{
    Ask, AskError, DATAGRAM_BYTES_MIN, Datagram, REPORT_BYTES_MAX, Report, ReportError, Seen,
};
