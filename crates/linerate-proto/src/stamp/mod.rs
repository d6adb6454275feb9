//! STAMP, the Simple Two-Way Active Measurement Protocol: packets of sender and reflector, open and
//! authenticated, with their extensions (TLVs), and the reflector.
//!
//! # Source
//! RFC 8762 (packets), RFC 8972 (session identifier, TLVs 1 to 8), RFC 4656 §4.1.2 (error
//! estimate), RFC 5905 §6 and IEEE 1588 (timestamps). `spec/stamp.md` has our choices. TLVs of
//! later documents are unknown here and marked so in the reply.

mod packet;
mod probe;
mod reflector;
mod sessions;
mod time;
mod tlv;

pub use packet::{
    BYTES_AUTHENTICATED, BYTES_OPEN, BYTES_REPLY_MIN, BYTES_REQUEST_MIN, Reply, StampKey,
    StampRequest,
};
pub use probe::{ProbeOptions, Reflected, StampProbe};
pub use reflector::{Arrived, Prepared, Reflector, ReflectorOptions, Refusals, StampRefusal};
pub use sessions::{SESSIONS_MAX, SessionId};
pub use time::{ErrorEstimate, TimeFormat};
pub use tlv::{Tlv, TlvKind, Tlvs, flags};

#[cfg(test)]
mod tests;
