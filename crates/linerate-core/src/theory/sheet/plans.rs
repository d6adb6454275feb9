//! Short ways to write the examples and plots of links.
//!
//! Left out: anything that is not about a stack. A plan that is not possible gives NaN, which no
//! example accepts.

pub(super) use super::parts::symbol;
use super::{Curve, Example, PlotAxis};
use crate::record::Family;
use crate::theory::framing::{Segment, Transport};
use crate::theory::stack::{Stack, StackPlan, stack};

/// TCP over IPv4 without options: 40 bytes of headers.
pub(super) const TCP: Segment = Segment { family: Family::V4, transport: Transport::Tcp };
/// TCP over IPv4 with timestamps: 52.
pub(super) const TCP_TIMESTAMPS: Segment =
    Segment { family: Family::V4, transport: Transport::TcpWithTimestamps };
/// TCP over IPv6 with timestamps: 72.
pub(super) const TCP6_TIMESTAMPS: Segment =
    Segment { family: Family::V6, transport: Transport::TcpWithTimestamps };
/// UDP over IPv4: 28.
pub(super) const UDP: Segment = Segment { family: Family::V4, transport: Transport::Udp };

/// An example that agrees to a ten thousandth.
pub(super) const fn example(
    given: &'static str,
    computed: fn() -> f64,
    expected: f64,
    unit: &'static str,
    origin: &'static str,
) -> Example {
    Example { given, computed, expected, tolerance: 1e-4, unit, origin }
}

/// An example whose expected value was rounded when it was printed, by at most `half_digit`.
pub(super) const fn printed(
    half_digit: f64,
    given: &'static str,
    computed: fn() -> f64,
    expected: f64,
    unit: &'static str,
    origin: &'static str,
) -> Example {
    // A little more, for a value that lies on the very edge.
    Example { given, computed, expected, tolerance: half_digit / expected * 1.0001, unit, origin }
}

/// A linear axis.
pub(super) const fn linear(label: &'static str) -> PlotAxis {
    PlotAxis { label, log: false }
}

/// A logarithmic axis.
pub(super) const fn logarithmic(label: &'static str) -> PlotAxis {
    PlotAxis { label, log: true }
}

/// The stack of `link carrier encapsulation…`; `-` is the link's own carrier.
pub(super) fn stacked(text: &str, mtu_bytes: u32, segment: Segment) -> Option<Stack> {
    let mut words = text.split_whitespace();
    let link: crate::theory::link::Link = words.next()?.parse().ok()?;
    let carrier = match words.next() {
        None | Some("-") => link.default_carrier(),
        Some(carrier) => carrier.parse().ok()?,
    };
    let encapsulations = words.map(|word| word.parse().ok()).collect::<Option<_>>()?;
    stack(&StackPlan { link, carrier, encapsulations, mtu_bytes, segment }).ok()
}

/// Rate of the flow's payload, Mbit/s.
pub(super) fn payload_mbps(text: &str, mtu_bytes: u32, segment: Segment) -> f64 {
    stacked(text, mtu_bytes, segment).map_or(f64::NAN, |stack| stack.payload_bps / 1e6)
}

/// Rate of the flow's IP packets, Mbit/s.
pub(super) fn ip_mbps(text: &str, mtu_bytes: u32) -> f64 {
    stacked(text, mtu_bytes, TCP).map_or(f64::NAN, |stack| stack.ip_bps / 1e6)
}

/// Full packets a second.
pub(super) fn packets_per_s(text: &str, mtu_bytes: u32) -> f64 {
    stacked(text, mtu_bytes, TCP).map_or(f64::NAN, |stack| stack.packets_per_s)
}

/// Rate of the layer of that name, Mbit/s.
pub(super) fn layer_mbps(text: &str, mtu_bytes: u32, name: &str) -> f64 {
    let stack = stacked(text, mtu_bytes, TCP);
    let layers = stack.map(|stack| stack.layers).unwrap_or_default();
    layers.iter().find(|layer| layer.name == name).map_or(f64::NAN, |layer| layer.bps / 1e6)
}

/// Share of the line's rate that TCP with timestamps gets, by MTU; MTUs that are not possible are
/// left out.
pub(super) fn share_by_mtu(label: &str, text: &str, mtus: &[u32]) -> Curve {
    let share = |mtu: u32| {
        let stack = stacked(text, mtu, TCP_TIMESTAMPS)?;
        let line = stack.layers.first()?.bps;
        Some((f64::from(mtu), 100.0 * stack.payload_bps / line))
    };
    let points = mtus.iter().filter_map(|mtu| share(*mtu)).collect();
    Curve { label: label.to_owned(), points, steps: false }
}

/// A curve through points.
pub(super) fn curve(label: &str, points: Vec<(f64, f64)>) -> Curve {
    Curve { label: label.to_owned(), points, steps: false }
}

/// MTUs from 100 to 9216 in steps that a plot can show.
pub(super) fn mtus() -> Vec<u32> {
    (100..1500).step_by(20).chain((1500..9216).step_by(60)).chain([9216]).collect()
}
