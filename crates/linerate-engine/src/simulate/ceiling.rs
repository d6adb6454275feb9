//! What the plan of a simulation allows: what its path leaves for full segments, and its windows
//! over the shortest round trip. As for live tests, in the same words.

use std::time::Duration;

use linerate_core::record::{
    Ceiling, CeilingInput, Direction, HeaderLayer, LayerRate, Rung, SimulatePlan,
};

use super::object;

/// The ceiling of the data's direction, with the share that was reached.
pub(super) fn ceiling(plan: &SimulatePlan, rtt_min: Duration, goodput: Option<f64>) -> Ceiling {
    let mut ceiling = Ceiling::of_goodput(Direction::Up);
    let packet_bytes = plan.tcp.mss_bytes + plan.tcp.header_bytes;
    ceiling.rungs = vec![receive_window(plan, rtt_min)];
    let bound =
        plan.path.packet_rate_bound(false, packet_bytes, plan.streams as usize).ok().flatten();
    let Some(bound) = bound else {
        ceiling.unknown.push("the path's rate".to_owned());
        return ceiling;
    };
    let framing = bound.framing(packet_bytes, plan.tcp.mss_bytes);
    let rate = bound.rate.map_or(framing.wire_bps, |rate| rate.bits_per_sec() as f64);
    let source = format!("emulated link {}, {}", object(plan), bound.what);
    ceiling.inputs = vec![
        CeilingInput::from_value("link_rate_bps", rate, source),
        CeilingInput::from_value("packet_bytes", packet_bytes.into(), "full segments of the model"),
        CeilingInput::from_value(
            "header_bytes",
            plan.tcp.header_bytes.into(),
            "IP and TCP with timestamps",
        ),
    ];
    ceiling.value = Some(framing.payload_bps);
    ceiling.layers = [
        (HeaderLayer::Payload, framing.payload_bps),
        (HeaderLayer::Ip, framing.ip_bps),
        (HeaderLayer::Frame, framing.frame_bps),
        (HeaderLayer::Wire, framing.wire_bps),
    ]
    .map(|(layer, bps)| LayerRate { layer, bps })
    .to_vec();
    ceiling.share = goodput.map(|goodput| goodput / framing.payload_bps);
    ceiling
}

/// Rate = 8 × window / RTT, of all flows together. 65,536 bytes over 10 ms are 52.43 Mbit/s.
fn receive_window(plan: &SimulatePlan, rtt_min: Duration) -> Rung {
    let bytes = plan.tcp.window_bytes as f64 * f64::from(plan.streams);
    let window = CeilingInput::from_value("window_bytes", bytes, "receive windows of the model");
    let rtt_s = rtt_min.as_secs_f64();
    let known = rtt_s > 0.0;
    let rtt = CeilingInput::from_value("rtt_min_ns", rtt_s * 1e9, "the path without queues");
    Rung {
        kind: "receive_window".to_owned(),
        value: known.then(|| bytes * 8.0 / rtt_s),
        inputs: [Some(window), known.then_some(rtt)].into_iter().flatten().collect(),
        unknown: if known { Vec::new() } else { vec!["the smallest round-trip time".to_owned()] },
        source: "at most one window in each round trip (RFC 6349 §3.3)".to_owned(),
    }
}
