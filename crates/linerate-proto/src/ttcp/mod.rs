//! ttcp on the wire: plain data over TCP; over UDP data between short datagrams that mark begin and
//! end (the 1991 version and its descendants; layout in spec/ttcp.md).
//!
//! There is no handshake, no version and no report. Left out: PCATTCP's multicast.

mod datagrams;
mod transmitter;

pub use datagrams::{
    BEGIN_MARKS, END_MARKS, MARK_BYTES, TimedMarks, TtcpDatagram, TtcpMarks, TtcpUdpReceiver,
};
pub use transmitter::{GRACE, LEAVE_MAX, Transmitter};

/// Payload of ttcp: the printable ASCII characters from space to tilde, repeated.
pub fn pattern(length: usize) -> Vec<u8> {
    (b' '..=b'~').cycle().take(length).collect()
}

#[cfg(test)]
mod tests;
