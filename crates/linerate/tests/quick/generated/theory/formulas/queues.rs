//! Buffers, RED, and responsiveness under load.

use linerate_core::theory::buffer::{
    aimd_utilization, burst_limited_bps, full_link_bytes, full_utilization_share, queue_delay_s,
};
use linerate_core::theory::red::{
    RedParameters, WEIGHT, average_reached, spread_chance, tc_burst_packets,
};
use linerate_core::theory::responsiveness::{
    LoadedRoundTrips, round_trips_per_minute, round_trips_per_minute_of_mean,
};

use super::Rule;
use crate::generated::theory::inputs::Inputs;

pub(super) const RULES: &[Rule] = &[
    ("full-link-buffer", |of| full_link_bytes(of.rate("C"), of.time("RTT"), of.whole("n")).ok()),
    ("aimd-utilization", |of| aimd_utilization(of.number("b"), of.number("β")).ok()),
    ("full-utilization-buffer", |of| full_utilization_share(of.number("β")).ok()),
    ("burst-limit", |of| burst_limited_bps(of.size("L"), of.time("RTT")).ok()),
    ("queue-delay", |of| queue_delay_s(of.size("B"), of.rate("C")).ok()),
    ("red-average", |of| average_reached(of.number("w"), of.small("n")).ok()),
    ("red-mark", |of| {
        let red =
            RedParameters::new(of.number("min"), of.number("max"), of.number("p_max"), WEIGHT)
                .ok()?;
        red.mark_chance(of.number("a")).ok()
    }),
    ("red-spread", |of| spread_chance(of.number("p_b"), of.small("k")).ok()),
    ("red-tc-burst", |of| {
        let packets = tc_burst_packets(of.whole("min"), of.whole("max"), of.small("avpkt"));
        Some(packets.ok()? as f64)
    }),
    ("round-trips-per-minute", |of| round_trips_per_minute(&times(of)).ok()),
    ("round-trips-per-minute-first", |of| round_trips_per_minute_of_mean(&times(of)).ok()),
];

/// The same round trip for all that new connections do.
fn times(of: &Inputs) -> LoadedRoundTrips {
    let foreign = of.time("foreign");
    LoadedRoundTrips {
        tcp_foreign: foreign,
        tls_foreign: Some(foreign),
        http_foreign: foreign,
        http_loaded: of.time("loaded"),
    }
}
