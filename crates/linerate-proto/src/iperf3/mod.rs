//! The protocol of iperf3, for either side (spec/iperf3.md).
//!
//! One TCP control connection carries single signed bytes, the states, and two length-prefixed
//! JSON documents each way; data connections carry the same cookie and then only payload, UDP
//! streams numbered datagrams. Left out: sockets, clocks, threads.
//!
//! Observed on iperf3 3.12 and 3.21 as client and as server; there is no other specification.

mod client;
mod client_order;
mod cookie;
mod credentials;
mod datagram;
mod error_code;
mod json;
mod params;
mod results;
mod server;
mod server_order;
mod state;
mod wire;

pub use client::{
    ANSWER_TIMEOUT, DELIVERY_MAX, Iperf3ClientMachine, Iperf3ClientTest, Iperf3PeerFault,
};
pub use client_order::{ClientEvent, ClientOrder};
pub use cookie::{COOKIE_BYTES, Cookie};
pub use credentials::{Credentials, Users, UsersError, from_base64, to_base64, token_bytes};
pub use datagram::{
    CONNECT_BYTES, CONNECT_REPLY, CONNECT_REQUEST, CONNECT_REQUESTS, CounterWidth, DatagramHeader,
    is_connect_reply,
};
pub use error_code::ErrorCode;
pub use params::{CLIENT_NAME, PARAMS_BYTES_MAX, Params, ParamsError, Protocol};
pub use results::{RESULTS_BYTES_MAX, Results, ServerOutput, StreamResult};
pub use server::{DRAIN_MAX, GRACE, Iperf3ServerMachine, Iperf3ServerTerms, Refusal, STEP_TIMEOUT};
pub use server_order::{ServerEvent, ServerOrder};
pub use state::State;
pub use wire::{WireError, frame_json, server_error};

/// Version of iperf3 that this program announces and imitates, since peers adapt to it. Logins are
/// padded by OAEP unless set otherwise, as in iperf3 since 3.17.
pub const VERSION: &str = "3.21";

/// Default port of an iperf3 server, for control and data.
pub const PORT: u16 = 5201;

/// Most streams in one direction (MAX_STREAMS).
pub const STREAMS_MAX: u16 = 128;

/// The identifier of the stream that was created as number `index` (from 0), at both ends: 1, 3,
/// 4, 5 and so on. Number 2 is left out, as all versions do.
pub const fn stream_id(index: u32) -> u32 {
    if index == 0 { 1 } else { index.saturating_add(2) }
}

#[cfg(test)]
mod tests;
