//! The protocol between `linerate tcp` and `linerate serve` (own; layout in spec/native.md).
//!
//! One TCP control connection per test carries length-prefixed JSON; data connections carry a
//! fixed hello and then only payload. What a machine here leaves out: sockets, clocks, threads.
//!
//! ```text
//! client                                  server
//!   hello(control) ----------------------->
//!   <----------------------- hello(control)
//!   request ------------------------------>
//!   <--------------- accept(token) | refuse
//!   hello(data, token) on each stream ---->
//!   <-------------------------------- ready
//!   start -------------------------------->      both ends count
//!   <----------------- interval, every tick
//!   stop (only when interrupted) --------->
//!   <------------------------------- result
//!   bye ---------------------------------->
//! ```

mod client;
mod message;
mod server;
mod wire;

pub use client::{ClientEvent, ClientMachine};
pub use message::{
    Accept, EndReport, FEATURES, FlowSample, Message, Refuse, RefuseCode, Request, RequestError,
};
pub use server::{ServerEvent, ServerMachine};
pub use wire::{
    CONTROL_HELLO_BYTES, DATA_HELLO_BYTES, DataHello, Decoder, Hello, HelloKind, MAX_MESSAGE_BYTES,
    Token, WireError, encode,
};

/// Version of this protocol. Peers of another version are refused by name.
pub const VERSION: u16 = 1;

#[cfg(test)]
mod tests;
