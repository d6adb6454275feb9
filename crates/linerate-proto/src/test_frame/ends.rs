//! Both ends of a flow, and the ports that the standards of benchmarking give them.

/// Both ends of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends<A> {
    /// Where it comes from.
    pub source: A,
    /// Where it goes.
    pub destination: A,
}

impl<A> Ends<A> {
    /// The way back.
    #[must_use]
    pub fn reversed(self) -> Self {
        Self { source: self.destination, destination: self.source }
    }
}

/// Ports of RFC 2544 appendix C.2.6.4: from 0xc020 to 7, echo.
pub const PORTS_RFC2544: Ends<u16> = Ends { source: 0xc020, destination: 7 };
/// The first ports of the ranges that RFC 4814 §4.5 takes: sources 1024 to 65535, destinations 1
/// to 49151. Flows that differ in ports start here.
pub const PORTS_RFC4814: Ends<u16> = Ends { source: 1024, destination: 1 };
/// The last ports of these ranges.
pub const PORTS_RFC4814_LAST: Ends<u16> = Ends { source: 65_535, destination: 49_151 };
