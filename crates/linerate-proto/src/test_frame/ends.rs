//! Source and destination of a flow, and the ports of the benchmarking standards.

/// Source and destination of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends<A> {
    /// Source address or port.
    pub source: A,
    /// Destination address or port.
    pub destination: A,
}

impl<A> Ends<A> {
    /// Source and destination exchanged.
    #[must_use]
    pub fn reversed(self) -> Self {
        Self { source: self.destination, destination: self.source }
    }
}

/// Ports of RFC 2544 appendix C.2.6.4: source 0xc020, destination 7 (echo).
pub const PORTS_RFC2544: Ends<u16> = Ends { source: 0xc020, destination: 7 };
/// First ports of the ranges of RFC 4814 §4.5: sources 1024 to 65535, destinations 1 to 49151. The
/// ports of flows start here where they vary.
pub const PORTS_RFC4814: Ends<u16> = Ends { source: 1024, destination: 1 };
/// Last ports of the ranges of RFC 4814 §4.5.
pub const PORTS_RFC4814_LAST: Ends<u16> = Ends { source: 65_535, destination: 49_151 };
