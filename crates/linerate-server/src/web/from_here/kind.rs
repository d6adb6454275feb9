//! What can be measured from here, and what each kind asks of a policy.

use linerate_core::policy::TestKind;
use serde::{Deserialize, Serialize};

/// Windows of a sweep: from what TCP had without window scale's head-room to today's defaults.
pub(super) const WINDOWS_BYTES: [u64; 9] =
    [16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20, 2 << 20, 4 << 20];
/// A stream of datagrams where nobody names a rate, bit/s.
const UDP_BPS: u64 = 1_000_000;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(crate) enum MeasureKind {
    /// ICMP echo, ten a second.
    Ping,
    /// TCP to `linerate serve`.
    Tcp,
    /// UDP to `linerate serve`.
    Udp,
    /// The survey of `linerate test`.
    Test,
    /// The way, hop by hop.
    Trace,
    /// TCP with one window after the other.
    Sweep,
}

impl MeasureKind {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Ping => "ping",
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Test => "test",
            Self::Trace => "trace",
            Self::Sweep => "sweep",
        }
    }

    /// Kind of test by which a policy judges it. A ping is as light as a trace.
    pub(super) const fn policy_test_kind(self) -> TestKind {
        match self {
            Self::Ping | Self::Trace => TestKind::Trace,
            Self::Udp => TestKind::Udp,
            Self::Tcp | Self::Test | Self::Sweep => TestKind::Tcp,
        }
    }

    /// True where `linerate serve` has to run at the target.
    pub(super) const fn needs_server(self) -> bool {
        !matches!(self, Self::Ping | Self::Trace)
    }

    /// Number of tests, each of the given seconds: one for each window of a sweep.
    pub(super) const fn test_count(self) -> u64 {
        if matches!(self, Self::Sweep) { WINDOWS_BYTES.len() as u64 } else { 1 }
    }

    pub(super) const fn seconds_usual(self) -> u64 {
        match self {
            Self::Ping | Self::Tcp | Self::Udp => 5,
            Self::Trace => 10,
            Self::Test => 35,
            Self::Sweep => 1,
        }
    }

    pub(super) const fn seconds_least(self) -> u64 {
        if matches!(self, Self::Test) { 12 } else { 1 }
    }

    /// The rate that it keeps, of those that are asked for and allowed. A survey keeps none, nor do
    /// probes.
    pub(super) fn effective_rate(self, asked: Option<u64>, allowed: Option<u64>) -> Option<u64> {
        match self {
            Self::Ping | Self::Trace | Self::Test => None,
            Self::Tcp | Self::Sweep => asked.or(allowed),
            Self::Udp => asked.or_else(|| Some(allowed.map_or(UDP_BPS, |rate| rate.min(UDP_BPS)))),
        }
    }
}
