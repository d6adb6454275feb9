//! The elements against closed forms: each runs a million packets, or what is asked for, in
//! virtual time, and the distance from the expected figure is told in standard errors.
//!
//! Counts are judged by their binomial spread, lengths and delays by Pearson's chi-square, turned
//! into a normal score (Wilson and Hilferty 1931), and queues, whose packets hang together, by the
//! means of fifty batches. A score of [`SCORE_MAX`] is exceeded by chance once in 16,000 checks.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "classes, lengths and times of a check are small and not negative; a cast saturates"
)]

mod loss;
mod queue;
mod score;
mod time;

use super::{Departure, Ecn, Element, Outlet, Packet};
use crate::time::MonoTime;

/// The largest score that is taken for chance.
pub const SCORE_MAX: f64 = 4.0;

/// A figure of an element beside its closed form.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Check {
    /// Name of the measured quantity: `loss ratio at 1 %`.
    pub name: &'static str,
    /// The closed form: `p`.
    pub closed_form: &'static str,
    /// Packets that were sent.
    pub packets: u64,
    /// The figure; of a distribution its mean.
    pub measured: f64,
    /// The figure by the closed form.
    pub expected: f64,
    /// Distance in standard errors; of a distribution the score of its chi-square.
    pub score: f64,
}

impl Check {
    /// True when the distance from the expected value may be chance.
    pub fn is_within_chance(&self) -> bool {
        self.score.is_finite() && self.score.abs() <= SCORE_MAX
    }
}

/// All checks with `packets` packets each (10,000 at the least), by seed.
pub fn checks(packets: u64, seed: u64) -> Vec<Check> {
    let packets = packets.max(10_000);
    let mut all = loss::checks(packets, seed);
    all.extend(time::checks(packets, seed));
    all.extend(queue::checks(packets, seed));
    all
}

/// A packet of `ip_bytes` with a number and a flow.
const fn packet(number: u64, ip_bytes: u32, flow: u32) -> Packet {
    Packet {
        number,
        ip_bytes,
        flow,
        hosts: [0; 2],
        ecn: Ecn::NotCapable,
        dont_fragment: true,
        corrupted: false,
        tag: number,
    }
}

/// Sends packets of one length through an element, one each `gap_ns`.
fn send_packets(element: &mut dyn Element, packets: u64, ip_bytes: u32, gap_ns: u64) -> Outlet {
    let mut out = Outlet::default();
    for number in 0..packets {
        let now = MonoTime::from_nanos(number * gap_ns);
        element.release(now, &mut out);
        element.receive(now, packet(number, ip_bytes, 0), &mut out);
    }
    element.release(MonoTime::from_nanos(u64::MAX), &mut out);
    out
}

/// Delay of a packet that was sent one each `gap_ns`.
const fn delay_ns(departure: &Departure, gap_ns: u64) -> u64 {
    departure.at.as_nanos() - departure.packet.number * gap_ns
}
