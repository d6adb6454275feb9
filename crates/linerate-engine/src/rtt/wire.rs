//! What the driving loop needs of a socket, so that a simulated path can stand in for it.

use linerate_core::record::Failure;
use linerate_core::time::MonoTime;
use linerate_proto::echo::PeerTimes;
use linerate_proto::stamp::Reflected;

/// An answer to one of our probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProbeAnswer {
    /// The probe that it answers.
    pub(crate) sequence: u64,
    /// T4: read right after the answer was taken from the kernel.
    pub(crate) at: MonoTime,
    /// Time to live on arrival, where told.
    pub(crate) ttl: Option<u8>,
    /// The kernel's time of arrival, where told.
    pub(crate) stamp_ns: Option<u64>,
    /// The responder's times, where asked for and told.
    pub(crate) peer: Option<PeerTimes>,
    /// The traffic class of the probe as it came there, and that of the answer as it came here,
    /// where asked for and told.
    pub(crate) classes: [Option<u8>; 2],
    /// The times that a reflector of STAMP told, and T4 by civil time.
    pub(crate) reflected: Option<(Reflected, u64)>,
}

/// A time of the kernel's at which a probe passed, CLOCK_REALTIME in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendStamp {
    /// Given to the queueing discipline of the interface.
    Queued(u64),
    /// Given to the driver.
    Left(u64),
}

impl ProbeAnswer {
    /// An answer that nothing more is known of.
    pub(crate) const fn from_sequence(sequence: u64, at: MonoTime) -> Self {
        let (ttl, stamp_ns, peer, reflected) = (None, None, None, None);
        Self { sequence, at, ttl, stamp_ns, peer, classes: [None; 2], reflected }
    }
}

/// Carries probes out and answers in.
pub(crate) trait Wire {
    /// The time of the monotonic clock now.
    fn now(&self) -> MonoTime;
    /// Sends a probe and returns T1, read just before; `None` when the kernel has no room now.
    fn send_probe(&mut self, sequence: u64) -> Result<Option<MonoTime>, Failure>;
    /// Takes an answer if one is there.
    fn receive(&mut self) -> Result<Option<ProbeAnswer>, Failure>;
    /// Passes time until something may be there, `until` at the latest. May return early.
    fn wait_until(&mut self, now: MonoTime, until: MonoTime);
    /// Hands over the kernel's send stamps that came since, with their probes, in the order in
    /// which the kernel took them: of one probe that before the queueing discipline comes first.
    fn stamps(&mut self, take: &mut dyn FnMut(u64, SendStamp));
}
