//! Causes and the figures that show them, in words.

use linerate_core::record::{Against, Cause, Sign};

use crate::{number, words};

/// A cause in words.
pub(crate) const fn name(cause: Cause) -> &'static str {
    match cause {
        Cause::ReceiveWindow => "the receive window",
        Cause::SendBuffer => "the send buffer",
        Cause::SendingApplication => "the sending application",
        Cause::SendingHost => "the sending host",
        Cause::ReceivingApplication => "the receiving application",
        Cause::ReceivingHost => "the receiving host",
        Cause::Link => "the bottleneck link",
        Cause::LinkFallback => "a link that fell back to a lower rate",
        Cause::DuplexMismatch => "a duplex mismatch",
        Cause::Shaper => "a shaper",
        Cause::Policer => "a policer",
        Cause::PacketRate => "the packets per second of a device",
        Cause::RandomLoss => "random loss",
        Cause::OtherTraffic => "other traffic",
        Cause::SmallBuffer => "a small buffer",
        Cause::StandingQueue => "a standing queue",
        Cause::StartUp => "the start",
        Cause::Reordering => "reordering",
        Cause::UnequalPaths => "unequal parallel paths",
        Cause::AckPath => "the way back of acknowledgments",
        Cause::MtuBlackHole => "an MTU black hole",
        Cause::TunnelMtu => "the MTU of a tunnel",
        Cause::Offload => "an offload or driver fault",
        Cause::LongDelay => "the round trip itself",
        Cause::Outages => "outages",
        Cause::CongestionControl => "the congestion control",
        Cause::Middlebox => "a middlebox",
        Cause::AddressFamily => "the address family",
        Cause::Tester => "the tester itself",
    }
}

/// Causes as a list in words.
pub(crate) fn listed(causes: &[Cause]) -> String {
    words::listed(&causes.iter().map(|cause| name(*cause).to_owned()).collect::<Vec<_>>())
}

/// A figure with its unit and its threshold.
pub(crate) fn sign(sign: &Sign) -> String {
    let shown = |value: f64| value_of(value, &sign.unit);
    let threshold = sign.threshold.map_or_else(String::new, |threshold| {
        let word = match threshold.against {
            Against::AtLeast => "at least",
            Against::AtMost => "at most",
        };
        format!(" ({word} {})", shown(threshold.value))
    });
    format!("{} {}{threshold}", sign.name, shown(sign.value))
}

fn value_of(value: f64, unit: &str) -> String {
    match unit {
        "bit/s" => number::measured_rate(value),
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a count of bytes"
        )]
        "bytes" => number::buffer(value.max(0.0) as u64),
        "ns" => format!("{} ms", number::ms_of_clock(value, 1)),
        "1" => number::trimmed(&number::significant(value, 3)).to_owned(),
        unit => format!("{} {unit}", number::trimmed(&number::significant(value, 3))),
    }
}
