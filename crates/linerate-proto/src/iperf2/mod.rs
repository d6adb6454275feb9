//! iperf 2 on the wire: the header that a client puts before its data, the server's answer to it,
//! and UDP datagrams with their report (observed: 2.1.8 and 2.2.1; layout in spec/iperf2.md).
//!
//! There is no control connection. Left out: isochronous traffic, permit keys.
//!
//! ```text
//! client                                    server
//!   header, payload ------------------------>        the header is payload too
//!   <--------------------------------- answer        to headers with an extension
//!   end of stream -------------------------->
//! ```

mod answer;
mod bounce;
mod client;
mod datagram;
mod header;
mod proof;
mod report;
mod server;
mod transit;
mod udp;
mod udp_back;
mod udp_client;
mod udp_opening;
mod udp_server;
mod udp_tally;

pub use answer::{ANSWER_BYTES, Iperf2Answer};
pub use bounce::Bounce;
pub use client::{CLOSE_TIMEOUT, Client, ClientTest, GRACE, PeerFault};
pub use datagram::{Iperf2DatagramLayout, Stamp};
pub use header::{
    ClientHeader, HEADER_BYTES_MAX, HeaderError, Iperf2Amount, Iperf2Version, Mode, Opening,
    WIRE_VERSION, opening,
};
pub use proof::{PROOF_BYTES, answered_cookie, cookie, cookie_answer, put_cookie};
pub use report::{REPORT_BYTES, UdpReport};
pub use server::{BounceResult, FIRST_BYTES, IDLE, LEAVE_MAX, OPENING_MAX, Request, Server, Terms};
pub use transit::Transit;
pub use udp::{FIRST_BYTES_MIN, TIMED_BYTES_MIN, UdpDatagramKind, UdpReceiver, UdpSender};
pub use udp_back::{LISTENING, REFUSAL, UdpBack};
pub use udp_client::{
    END_AGAIN, FIRST_DATA, REPORT_TIMEOUT, UDP_GRACE, UdpClient, UdpClientTest, UdpNews,
    UdpPeerFault, end_datagram,
};
pub use udp_opening::UdpOpening;
pub use udp_server::{UDP_ENDED_MAX, UDP_SILENCE_MAX, UdpServer, UdpServerNews, UdpTerms};
pub use udp_tally::{UdpArrived, UdpCounted, UdpTally};

/// Payload of iperf 2: the decimal digits, repeated.
pub fn pattern(length: usize) -> Vec<u8> {
    b"0123456789".iter().copied().cycle().take(length).collect()
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod udp_tests;

/// The big-endian word at `offset`.
fn read_be_u32(bytes: &[u8], offset: usize) -> Option<u32> {
    let field = bytes.get(offset..)?.first_chunk::<4>()?;
    Some(u32::from_be_bytes(*field))
}
