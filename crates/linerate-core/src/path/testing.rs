//! Packets and times for the tests of the elements.

use super::{Departure, Ecn, Element, Outlet, Packet};
use crate::time::MonoTime;

/// A packet of `ip_bytes` of flow 0.
pub(crate) const fn packet(ip_bytes: u32) -> Packet {
    Packet {
        number: 0,
        ip_bytes,
        flow: 0,
        hosts: [0; 2],
        ecn: Ecn::NotCapable,
        dont_fragment: true,
        corrupted: false,
        tag: 0,
    }
}

/// A point in time.
pub(crate) const fn time_at_ns(ns: u64) -> MonoTime {
    MonoTime::from_nanos(ns)
}

/// Sends `count` packets of `ip_bytes` through an element, one each `gap_ns`, numbered, and
/// returns all that left and was lost.
pub(crate) fn send_packets(
    element: &mut dyn Element,
    count: u64,
    ip_bytes: u32,
    gap_ns: u64,
) -> Outlet {
    let mut out = Outlet::default();
    for number in 0..count {
        let now = time_at_ns(number * gap_ns);
        element.release(now, &mut out);
        element.receive(now, Packet { number, tag: number, ..packet(ip_bytes) }, &mut out);
    }
    element.release(time_at_ns(u64::MAX), &mut out);
    out
}

/// The numbers of the packets that left, in that order.
pub(crate) fn numbers(departures: &[Departure]) -> Vec<u64> {
    departures.iter().map(|departure| departure.packet.number).collect()
}
