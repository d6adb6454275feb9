//! Words and digits of benchmarks: frame rates, delays, what frames carry, how they were sent.

use linerate_core::record::{
    BenchLatency, BenchPlan, BenchProtocol, BenchWay, CounterKind, GeneratorKind, Invalid,
    LatencyKind, RateFound,
};

use crate::number::{self, NONE};

/// A rate in whole frames per second, as Bradner and the RFCs print it. It is cut and not rounded,
/// so that no rate reads as more than the medium carries.
pub(crate) fn frames(fps: f64) -> String {
    // The small term keeps a whole rate that binary fractions miss from losing a frame.
    if fps.is_finite() { format!("{:.0}", (fps + 1e-6).floor()) } else { NONE.to_owned() }
}

/// Delay in microseconds, without its unit, to three digits or the nanosecond.
pub(crate) fn micros(ns: f64) -> String {
    let us = ns / 1e3;
    match us.abs() {
        _ if !us.is_finite() => NONE.to_owned(),
        small if small < 10.0 => number::trimmed(&format!("{us:.3}")).to_owned(),
        _ => number::significant(us, 4),
    }
}

/// A time with the unit that suits it.
pub(crate) fn time(ns: f64) -> String {
    match ns.abs() {
        small if small < 1e6 => format!("{} \u{b5}s", micros(ns)),
        middle if middle < 1e9 => format!("{} ms", number::ms(ns)),
        _ => number::seconds(ns),
    }
}

/// A loss: as a percentage, or in powers of ten where a percentage would be zeros.
pub(crate) fn loss(ratio: f64) -> String {
    if ratio > 0.0 && ratio < 1e-5 { format!("{ratio:.1e}") } else { number::percent(ratio) }
}

/// A share of a rate. From 99.9 % on it is cut to two decimals: only the whole reads as 100 %.
pub(crate) fn share(ratio: f64) -> String {
    match ratio {
        near if (0.999..1.0 - 1e-9).contains(&near) => {
            format!("{:.2} %", (near * 1e4 + 1e-6).floor() / 1e2)
        }
        _ => number::percent(ratio),
    }
}

/// An estimate with its interval.
pub(crate) fn found(found: &RateFound, show: fn(f64) -> String) -> String {
    let [value, low, high] = [found.value, found.low, found.high].map(show);
    format!("{value} (95 %: {low} to {high})")
}

/// What frames carry, in headings.
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

/// Which ports send at once.
pub(crate) const fn way(way: BenchWay) -> &'static str {
    match way {
        BenchWay::Single => "single stream",
        BenchWay::Dual => "dual stream",
        BenchWay::Mesh => "full mesh",
    }
}

/// Ports that send at once.
pub(crate) fn senders(plan: &BenchPlan) -> usize {
    plan.way.senders(plan.ports.len()).max(1)
}

/// How frames were sent.
pub(crate) const fn generator(kind: GeneratorKind) -> &'static str {
    match kind {
        GeneratorKind::Live => "a program in the kernel (XDP live frames)",
        GeneratorKind::Xdp => "an AF_XDP socket",
        GeneratorKind::Packet => "a packet socket",
    }
}

/// How frames were counted.
pub(crate) const fn counter(kind: CounterKind) -> &'static str {
    match kind {
        CounterKind::Xdp => "a program at the interface (XDP)",
        CounterKind::Packet => "a packet socket",
    }
}

/// The definition of a latency.
pub(crate) const fn latency(kind: LatencyKind) -> &'static str {
    match kind {
        LatencyKind::StoreAndForward => "last bit in to first bit out (store and forward)",
        LatencyKind::CutThrough => "first bit in to first bit out (bit forwarding)",
    }
}

/// Why a trial does not count, by its kind.
pub(crate) const fn invalid(why: &Invalid) -> &'static str {
    match why {
        Invalid::GeneratorShort { .. } => "the generator sent less than it was asked for",
        Invalid::CounterDrops { .. } => "the counter itself dropped frames",
        Invalid::LinkDown { .. } => "a link was down",
        Invalid::Loop { .. } => "frames came back or came twice",
        Invalid::StolenTime { .. } => "the hypervisor took CPU time",
        Invalid::CountsDisagree { .. } => "program and interface count differently",
    }
}

/// The key of that kind, as in JSON.
pub(crate) const fn invalid_key(why: &Invalid) -> &'static str {
    match why {
        Invalid::GeneratorShort { .. } => "generator_short",
        Invalid::CounterDrops { .. } => "counter_drops",
        Invalid::LinkDown { .. } => "link_down",
        Invalid::Loop { .. } => "loop",
        Invalid::StolenTime { .. } => "stolen_time",
        Invalid::CountsDisagree { .. } => "counts_disagree",
    }
}

/// The cells of one load of a latency test: the load, then smallest, percentiles, largest, PDV.
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
        assert_eq!(time(1504.0), "1.504 \u{b5}s");
        assert_eq!(time(3.3e6), "3.300 ms");
        assert_eq!(time(2e9), "2.00 s");
    }

    #[test]
    fn a_small_loss_is_not_shown_as_zeros() {
        assert_eq!([loss(0.0), loss(0.125), loss(5e-8)], ["0 %", "12.5 %", "5.0e-8"]);
    }

    #[test]
    fn only_the_whole_is_a_hundred_per_cent() {
        // 14880 of 14,880.952 is 99.9936 %.
        let shares = [share(14_880.0 / (10e6 / 672.0)), share(1.0), share(0.974), share(1.01)];
        assert_eq!(shares, ["99.99 %", "100 %", "97.4 %", "101 %"]);
    }

    #[test]
    fn keys_of_reasons_are_those_of_the_record() {
        let detail = String::new;
        for why in [
            Invalid::GeneratorShort { detail: detail() },
            Invalid::CounterDrops { detail: detail() },
            Invalid::LinkDown { detail: detail() },
            Invalid::Loop { detail: detail() },
            Invalid::StolenTime { detail: detail() },
            Invalid::CountsDisagree { detail: detail() },
        ] {
            let json = linerate_core::tree::to_value(&why).expect("a reason serialises");
            assert_eq!(json["reason"], invalid_key(&why));
        }
    }
}
