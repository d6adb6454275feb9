//! nuttcp's control connection: lines of text with the parameters and the results of a test
//! (observed: 6.1.2 and 8.2.2; layout in spec/nuttcp.md).
//!
//! ```text
//! client                                server
//!   HELO nuttcp v7.0.1 ------------------->
//!   <------------------- HELO nuttcp v7.0.1
//!   buflen = 65536, nbuf = ... ----------->
//!   <----------- OK v7.0.1 | KO, reason, KO
//!   ........ data, on other ports .........
//!   <---------- lines of text, interval lines, DONE (with intervals), the summary
//! ```
//!
//! Left out: third parties, multicast, traceroute.

mod client;
mod interval;
mod lines;
mod parameters;
mod server;
mod spread;
mod summary;
mod udp;

pub use client::{
    ANSWER_TIMEOUT, ClientNews, GRACE, LEAVE_MAX, NuttcpClientMachine, NuttcpClientTest,
    NuttcpPeerFault, SUMMARY_TIMEOUT,
};
pub use interval::NuttcpInterval;
pub use lines::{LINE_BYTES_MAX, Lines};
pub use parameters::{FORMAT_PARSE, PORT, Parameters, ParametersError, UNLIMITED, UNTIL_TIMEOUT};
pub use server::{ASK_TIMEOUT, END_MAX, IDLE, NuttcpServerMachine, NuttcpServerTerms};
pub use spread::{IN_ORDER, MOST, NuttcpArrivals, NuttcpTimeSpread, Timed};
use summary::{NuttcpRole, report_lines};
pub use summary::{NuttcpServerReport, NuttcpSummary};
pub use udp::{
    BEGIN_MARKS, END_MARKS, NuttcpUdpReceiver, UdpMark, announced, is_swapped, sent_us,
    stamp_datagram,
};

/// A version of nuttcp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NuttcpVersion(
    /// Major version number.
    pub u16,
    /// Minor version number.
    pub u16,
    /// Patch version number.
    pub u16,
);

/// Version of nuttcp that this module speaks: the first with jitter and one-way delay. Newer peers
/// omit the fields that it does not know.
pub const WIRE_VERSION: NuttcpVersion = NuttcpVersion(7, 0, 1);

impl NuttcpVersion {
    /// Parses `v6.1.2` or `6.1.2`, also with a suffix such as `-beta`.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim().trim_start_matches('v');
        let mut parts = text.splitn(3, '.').map(|part| {
            let digits = part.bytes().take_while(u8::is_ascii_digit).count();
            part[..digits].parse().ok()
        });
        Some(Self(parts.next()??, parts.next()??, parts.next()??))
    }
}

impl std::fmt::Display for NuttcpVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

/// Violation of the protocol by a peer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// A line without a newline.
    #[error("a line of more than {LINE_BYTES_MAX} bytes")]
    TooLong,
    /// A line out of order.
    #[error("\"{}\" came while waiting for {expected}", got.escape_debug())]
    State {
        /// Start of the received line.
        got: String,
        /// The line that the current step expects.
        expected: &'static str,
    },
    /// More lines than any test has.
    #[error("more than {0} lines")]
    TooMany(usize),
    /// Invalid parameters of a test.
    #[error("parameters: {0}")]
    Parameters(ParametersError),
}

/// Start of a line for an error message.
fn shortened(line: &str) -> String {
    line.chars().take(60).collect()
}

#[cfg(test)]
mod tests;
