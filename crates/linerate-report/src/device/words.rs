//! Words and digits of benchmarks: frame rates, delays, what frames carry, how they were sent.

use linerate_core::record::{
    BenchLatency, BenchPlan, BenchProtocol, BenchWay, CounterKind, GeneratorKind,
    InvalidTrialReason, LatencyKind, RateFound,
};

use crate::number::{self, NONE};

/// A rate in whole frames per second, as Bradner and the RFCs print it. It is rounded down, so that
/// no printed rate exceeds what the medium carries.
pub(crate) fn frames(fps: f64) -> String {
    // The small term keeps a whole rate that binary fractions miss from losing a frame.
    if fps.is_finite() { format!("{:.0}", (fps + 1e-6).floor()) } else { NONE.to_owned() }
}

/// Delay in microseconds without its unit, to four digits; below 10 µs to the nanosecond.
pub(crate) fn micros(ns: f64) -> String {
    let us = ns / 1e3;
    match us.abs() {
        _ if !us.is_finite() => NONE.to_owned(),
        small if small < 10.0 => number::trimmed(&format!("{us:.3}")).to_owned(),
        _ => number::significant(us, 4),
    }
}

/// Duration in µs, ms or s, by its size.
pub(crate) fn duration(ns: f64) -> String {
    match ns.abs() {
        small if small < 1e6 => format!("{} \u{b5}s", micros(ns)),
        middle if middle < 1e9 => format!("{} ms", number::time_in_ms(ns)),
        _ => number::seconds(ns),
    }
}

/// A loss ratio as a percentage; below 10⁻⁵ in powers of ten, where a percentage would print zeros.
pub(crate) fn loss_ratio(ratio: f64) -> String {
    if ratio > 0.0 && ratio < 1e-5 { format!("{ratio:.1e}") } else { number::percent(ratio) }
}

/// A share of a rate as a percentage. From 99.9 % on it is rounded down to two decimals, so that
/// only a share of 1 prints as 100 %.
pub(crate) fn share_percent(ratio: f64) -> String {
    match ratio {
        near if (0.999..1.0 - 1e-9).contains(&near) => {
            format!("{:.2} %", (near * 1e4 + 1e-6).floor() / 1e2)
        }
        _ => number::percent(ratio),
    }
}

/// An estimated rate with the bounds of its 95 % interval.
pub(crate) fn estimate_text(found: &RateFound, show: fn(f64) -> String) -> String {
    let [value, low, high] = [found.value, found.low, found.high].map(show);
    format!("{value} (95 %: {low} to {high})")
}

/// Protocol of the test frames, as headings name it.
pub(crate) const fn protocol(protocol: BenchProtocol) -> &'static str {
    match protocol {
        BenchProtocol::Udp4 => "IPv4/UDP",
        BenchProtocol::Udp6 => "IPv6/UDP",
        BenchProtocol::Tcp4 => "IPv4/TCP",
        BenchProtocol::Tcp6 => "IPv6/TCP",
        BenchProtocol::Ethernet => "Ethernet",
        BenchProtocol::Decnet => "DECnet IV",
        BenchProtocol::Appletalk => "AppleTalk 2",
        BenchProtocol::Ipx => "IPX",
    }
}

/// Direction of the streams: one port sends, both do, or all do.
pub(crate) const fn direction(way: BenchWay) -> &'static str {
    match way {
        BenchWay::Single => "single stream",
        BenchWay::Dual => "dual stream",
        BenchWay::Mesh => "full mesh",
    }
}

/// Number of ports that send at once, at least 1.
pub(crate) fn senders(plan: &BenchPlan) -> usize {
    plan.way.senders(plan.ports.len()).max(1)
}

/// The facility that sends the test frames.
pub(crate) const fn generator(kind: GeneratorKind) -> &'static str {
    match kind {
        GeneratorKind::Live => "a program in the kernel (XDP live frames)",
        GeneratorKind::Xdp => "an AF_XDP socket",
        GeneratorKind::Packet => "a packet socket",
    }
}

/// The facility that counts the received frames.
pub(crate) const fn counter(kind: CounterKind) -> &'static str {
    match kind {
        CounterKind::Xdp => "a program at the interface (XDP)",
        CounterKind::Packet => "a packet socket",
    }
}

/// The definition by which a latency was measured.
pub(crate) const fn latency(kind: LatencyKind) -> &'static str {
    match kind {
        LatencyKind::StoreAndForward => "last bit in to first bit out (store and forward)",
        LatencyKind::CutThrough => "first bit in to first bit out (bit forwarding)",
    }
}

/// The reason why a trial does not count, by its kind.
pub(crate) const fn invalid_reason(why: &InvalidTrialReason) -> &'static str {
    match why {
        InvalidTrialReason::GeneratorShort { .. } => {
            "the generator sent less than it was asked for"
        }
        InvalidTrialReason::CounterDrops { .. } => "the counter itself dropped frames",
        InvalidTrialReason::LinkDown { .. } => "a link was down",
        InvalidTrialReason::Loop { .. } => "frames came back or came twice",
        InvalidTrialReason::StolenTime { .. } => "the hypervisor took CPU time",
        InvalidTrialReason::CountsDisagree { .. } => "program and interface count differently",
    }
}

/// The key of that reason in JSON.
pub(crate) const fn invalid_key(why: &InvalidTrialReason) -> &'static str {
    match why {
        InvalidTrialReason::GeneratorShort { .. } => "generator_short",
        InvalidTrialReason::CounterDrops { .. } => "counter_drops",
        InvalidTrialReason::LinkDown { .. } => "link_down",
        InvalidTrialReason::Loop { .. } => "loop",
        InvalidTrialReason::StolenTime { .. } => "stolen_time",
        InvalidTrialReason::CountsDisagree { .. } => "counts_disagree",
    }
}

/// The cells of one load of a latency test: the load, then minimum, percentiles, maximum and PDV.
pub(super) fn latency_row(found: &BenchLatency) -> Vec<String> {
    let times = [
        found.min_ns as f64,
        found.p50_ns,
        found.p90_ns,
        found.p99_ns,
        found.p999_ns,
        found.max_ns as f64,
        found.pdv_ns,
    ];
    let rate = std::iter::once(frames(found.offered_fps));
    rate.chain(times.into_iter().map(micros)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_whole_frames_and_delays_microseconds() {
        // 10 Mbit/s over 8 x 84 bits is 14,880.952 frames/s; RFC 2544 appendix B prints 14,880.
        assert_eq!(frames(10e6 / 672.0), "14880");
        assert_eq!(frames(0.1 * 3.0 * 10.0), "3");
        assert_eq!(frames(f64::NAN), NONE);
        assert_eq!([micros(1504.0), micros(118_784.0), micros(0.0)], ["1.504", "118.8", "0"]);
        assert_eq!(duration(1504.0), "1.504 \u{b5}s");
        assert_eq!(duration(3.3e6), "3.300 ms");
        assert_eq!(duration(2e9), "2.00 s");
    }

    #[test]
    fn a_small_loss_is_not_shown_as_zeros() {
        assert_eq!(
            [loss_ratio(0.0), loss_ratio(0.125), loss_ratio(5e-8)],
            ["0 %", "12.5 %", "5.0e-8"]
        );
    }

    #[test]
    fn only_the_whole_is_a_hundred_per_cent() {
        // 14880 of 14,880.952 is 99.9936 %.
        let shares = [
            share_percent(14_880.0 / (10e6 / 672.0)),
            share_percent(1.0),
            share_percent(0.974),
            share_percent(1.01),
        ];
        assert_eq!(shares, ["99.99 %", "100 %", "97.4 %", "101 %"]);
    }

    #[test]
    fn keys_of_reasons_are_those_of_the_record() {
        let detail = String::new;
        for why in [
            InvalidTrialReason::GeneratorShort { detail: detail() },
            InvalidTrialReason::CounterDrops { detail: detail() },
            InvalidTrialReason::LinkDown { detail: detail() },
            InvalidTrialReason::Loop { detail: detail() },
            InvalidTrialReason::StolenTime { detail: detail() },
            InvalidTrialReason::CountsDisagree { detail: detail() },
        ] {
            let json = linerate_core::tree::to_value(&why).expect("a reason serialises");
            assert_eq!(json["reason"], invalid_key(&why));
        }
    }
}
