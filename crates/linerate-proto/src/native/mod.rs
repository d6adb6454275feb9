//! linerate's native protocol, between `linerate tcp`, `linerate udp` and `linerate serve`
//! (layouts in spec/native.md and spec/udp-throughput.md).
//!
//! One TCP control connection per test carries length-prefixed JSON; data connections carry a
//! fixed hello and then only payload. Left out: sockets, clocks, threads.
//!
//! ```text
//! client                                  server
//!   hello(control) ----------------------->
//!   <----------------------- hello(control)
//!   request ------------------------------>
//!   <----- challenge, where the request has `login`
//!   proof -------------------------------->
//!   <--------------- accept(token) | refuse
//!   hello(data, token) on each stream ---->
//!   <-------------------------------- ready
//!   start -------------------------------->      both ends count
//!   <----------------- interval, every tick
//!   stop (only when interrupted) --------->
//!   <------------------------------- result
//!   bye, or the next request ------------->
//! ```

mod client;
mod login;
mod message;
mod pattern;
mod server;
mod trace;
mod trains;
mod udp;
mod udp_status;
mod udp_tracker;
mod wire;

pub use client::{
    ANSWER_TIMEOUT, NativeClientMachine, NativeClientTest, NativePeerFault, REPORT_TIMEOUT,
    REPORT_TIMEOUT_UDP,
};
pub use login::{HexBytes, NONCE_BYTES, NativeCredentials, Nonce, Proof};
pub use message::{
    Accept, FEATURES, Fitting, FlowSample, Message, NativeTcpTestRequest, Refuse, RefuseCode,
    SEARCH, TRAINS_REQUEST, UdpSample,
};
pub use pattern::{Pattern, PatternDifference};
pub use server::{NativeServerMachine, NativeServerTerms, STEP_TIMEOUT, TestRequest};
pub use trace::TraceRequest;
pub use trains::{
    ROUND_PACKETS_MAX, ROUNDS_MAX, TRAIN_HEADER_BYTES, TrainHeader, TrainPlan, TrainReport,
    TrainRound, TrainsRequest,
};
pub use udp::{
    ALIVE, DATAGRAM_HEADER_BYTES, GRANT_BYTES, Grant, NativeDatagramHeader, OPENING_BYTES,
    OpeningDatagram, OpeningStep, STAMP_NS_MAX, stream_tag,
};
pub use udp_status::{Newest, STATUS, STATUS_BYTES, UdpStatus};
pub use udp_tracker::{UdpArrivalOrder, UdpTracker, WINDOW};
pub use wire::{
    CONTROL_HELLO_BYTES, DATA_HELLO_BYTES, DataHello, Decoder, Hello, HelloKind, MAX_MESSAGE_BYTES,
    NativeWireError, Token, Versions, encode,
};

/// Newest version of the protocol that this program speaks.
pub const VERSION: u16 = 1;

/// Range of versions that this program speaks.
pub const VERSIONS: Versions = Versions { oldest: 1, newest: VERSION };

#[cfg(test)]
mod tests;
#[cfg(test)]
mod udp_status_tests;
#[cfg(test)]
mod udp_tests;
