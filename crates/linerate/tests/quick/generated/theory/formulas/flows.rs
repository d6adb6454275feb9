//! Windows, loss, start-up, what binds a transfer, and the metrics of RFC 6349 and RFC 8337.

use linerate_core::record::IpFamily;
use linerate_core::theory::framing::{SegmentHeaders, Transport};
use linerate_core::theory::ladder::{
    AckPath, CeilingFacts, FullPacketLengths, Known, RungKind, by_loss, ladder_from_facts,
};
use linerate_core::theory::loss::{
    Acks, Path, Pftk, bbr1_rate, chance_error, cubic_budget, cubic_rate, cubic_window,
    mathis_budget, mathis_rate, pftk_rate, tfrc_rate,
};
use linerate_core::theory::rfc6349::{
    buffer_delay, efficiency, ideal_transfer_s, transfer_time_ratio,
};
use linerate_core::theory::sequential::{
    Risk, Sprt, Target, pathdiag_run_packets, target_run_packets, target_window_packets,
};
use linerate_core::theory::slow_start::{
    SlowStart, bytes_within, flat_rate_bps, flat_time_s, hystart_rise, round_trips_to_grow,
    transfer,
};
use linerate_core::theory::speed_record::{
    distance_for_score_km, rate_for_score_bps, score_tbm_per_s, transfer_s,
};
use linerate_core::theory::window::{
    bdp_bytes, single_flow_rate_max, window_for, window_rate, window_scale,
};
use linerate_core::units::{Fraction, PacketRate};

use super::{Rule, Trace};
use crate::generated::theory::inputs::Inputs;

pub(super) const RULES: &[Rule] = &[
    ("window-rate", |of| window_rate(of.size("W"), of.time("RTT")).ok()),
    ("bandwidth-delay-product", |of| {
        Some(bdp_bytes(of.rate("C"), of.time("RTT")).ok()?.count() as f64)
    }),
    ("window-for", |of| Some(window_for(of.rate("C"), of.time("RTT")).ok()?.count() as f64)),
    ("window-scale", |of| Some(f64::from(window_scale(of.size("W")).ok()?))),
    ("single-flow-limit", |of| single_flow_rate_max(of.time("RTT")).ok()),
    ("mathis-rate", |of| mathis_rate(&path(of), acks(of), of.number("p")).ok()),
    ("mathis-budget", |of| mathis_budget(&path(of), acks(of), of.rate("R")).ok()),
    ("pftk-rate", |of| {
        let model = Pftk { acks: acks(of), rto: of.time("T0"), window: None };
        pftk_rate(&path(of), &model, of.number("p")).ok()
    }),
    ("tfrc-rate", |of| tfrc_rate(&path(of), acks(of), of.time("T0"), of.number("p")).ok()),
    ("cubic-window", |of| Some(cubic_window(of.time("RTT"), of.number("p")).ok()?.segments)),
    ("cubic-rate", |of| cubic_rate(&path(of), of.number("p")).ok()),
    ("cubic-rate-on-link", |of| {
        Some(cubic_rate(&path(of), of.number("p")).ok()?.min(of.number("C")))
    }),
    ("cubic-budget", |of| cubic_budget(&path(of), of.rate("R")).ok()),
    ("bbr1-rate", |of| bbr1_rate(of.rate("C"), of.number("p")).ok()),
    ("loss-chance", |of| chance_error(of.whole("k"))),
    ("slow-start-rounds", |of| {
        round_trips_to_grow(of.number("W") / of.number("IW"), of.number("g")).ok()
    }),
    ("whole-rounds", |of| {
        let rounds = round_trips_to_grow(of.number("W") / of.number("IW"), of.number("g"));
        Some(rounds.ok()?.floor())
    }),
    ("transfer-rounds", |of| Some(f64::from(transfer(&start(of)).ok()?.rounds))),
    ("hystart-rise", |of| Some(hystart_rise(of.time("RTT")).as_secs_f64())),
    ("transfer-time", |of| Some(transfer(&start(of)).ok()?.time_s)),
    ("transfer-mean-share", |of| Some(transfer(&start(of)).ok()?.mean_bps / of.number("C"))),
    ("transfer-waste-share", |of| {
        let transfer = transfer(&start(of)).ok()?;
        Some(transfer.waste_s / transfer.time_s)
    }),
    ("bytes-within", |of| bytes_within(&start(&of.with("S", 1.0)), of.time("T")).ok()),
    ("flat-start-cost", flat_s),
    ("flat-start-share", |of| Some(of.number("n") * of.number("RTT") / flat_s(of)?)),
    ("flat-start-share-cut", |of| {
        let share = of.number("n") * of.number("RTT") / flat_s(of)?;
        Some((share * 1e3).floor() / 1e3)
    }),
    ("flat-start-rate", |of| {
        flat_rate_bps(of.size("S"), of.time("T"), of.time("RTT"), of.small("n")).ok()
    }),
    ("ideal-transfer-time", |of| ideal_transfer_s(of.size("S"), of.number("R")).ok()),
    ("transfer-time-ratio", |of| transfer_time_ratio(of.time("T_actual"), of.time("T_ideal")).ok()),
    ("transfer-time-ratio-at", |of| {
        let bits = of.number("S") * 8.0;
        let ideal_s = ideal_transfer_s(of.size("S"), of.number("C")).ok()?;
        let times = of.with("actual", bits / of.number("R")).with("ideal", ideal_s);
        transfer_time_ratio(times.time("actual"), times.time("ideal")).ok()
    }),
    ("tcp-efficiency", |of| efficiency(of.size("sent"), of.size("again")).ok()),
    ("buffer-delay", |of| buffer_delay(of.time("RTT_mean"), of.time("RTT_base")).ok()),
    ("target-window", |of| target_window_packets(&target(of)).ok()),
    ("target-run", |of| target_run_packets(&target(of)).ok()),
    ("pathdiag-run", |of| pathdiag_run_packets(&target(of)).ok()),
    ("sprt-slope", |of| Some(sprt(of)?.loss_slope())),
    ("sprt-pass-below", |of| Some(sprt(of)?.pass_below())),
    ("sprt-pass-at-most", |of| Some(sprt(of)?.pass_at_most(of.whole("n"))? as f64)),
    ("sprt-fail-at-least", |of| Some(sprt(of)?.fail_at_least(of.whole("n")) as f64)),
    ("sprt-fail-line", |of| {
        let sprt = sprt(of)?;
        Some(sprt.loss_slope() * of.number("n") + sprt.fail_above())
    }),
    ("sprt-pass-line", |of| {
        let sprt = sprt(of)?;
        Some(sprt.loss_slope() * of.number("n") - sprt.pass_below()).filter(|lost| *lost >= 0.0)
    }),
    ("packets-to-pass", |of| Some(sprt(of)?.packets_to_pass(of.whole("x")) as f64)),
    ("speed-record-score", |of| {
        Some(score_tbm_per_s(of.rate("R"), of.number("d") / 1e3).ok()? * 1e12)
    }),
    ("speed-record-distance", |of| {
        Some(distance_for_score_km(of.number("P") / 1e12, of.rate("R")).ok()? * 1e3)
    }),
    ("speed-record-rate", |of| {
        rate_for_score_bps(of.number("P") / 1e12, of.number("d") / 1e3).ok()
    }),
    ("speed-record-time", |of| transfer_s(of.size("S"), of.rate("R")).ok()),
    ("least-bound", |of| ladder_from_facts(&oc12(of)).ok()?.expected_bps()),
    ("packet-rate-bound", |of| {
        let packet_rate = known(PacketRate::from_per_sec(of.number("P"))?);
        bound(RungKind::PacketRate, &CeilingFacts { packet_rate, ..packets(of, 52) })
    }),
    ("send-buffer-bound", |of| {
        let (send_buffer, rtt) = (known(of.size("B")), known(of.time("RTT")));
        let of = of.with("L", 1448.0);
        bound(RungKind::SendBuffer, &CeilingFacts { send_buffer, rtt, ..packets(&of, 52) })
    }),
    ("reverse-path-bound", |of| {
        let acks_per_s = of.number("A") / of.number("a");
        let acks = known(AckPath { acks_per_s, segments_per_ack: of.number("b") });
        let rtt = known(std::time::Duration::from_millis(100));
        bound(RungKind::ReversePath, &CeilingFacts { acks, rtt, ..packets(of, 52) })
    }),
];

pub(super) const TRACES: &[Trace] = &[
    // The curve of one congestion control, whose name is the label.
    ("least-bound-by-loss", |label, of| {
        let sweep = by_loss(&oc12(of)).expect("facts that agree").expect("a TCP path");
        let curve = sweep.curves.into_iter().find(|curve| curve.label == label);
        let points = curve.expect("a congestion control").points.into_iter();
        points.map(|(loss, bps)| (loss, bps / 1e6)).collect()
    }),
];

fn path(of: &Inputs) -> Path {
    Path { mss_bytes: of.small("MSS"), rtt: of.time("RTT") }
}

fn acks(of: &Inputs) -> Acks {
    if of.small("b") == 1 { Acks::Every } else { Acks::EverySecond }
}

fn start(of: &Inputs) -> SlowStart {
    SlowStart {
        size: of.size("S"),
        rate: of.rate("C"),
        rtt: of.time("RTT"),
        mss_bytes: of.small("MSS"),
        initial_window: of.small("IW"),
        growth: of.number("g"),
    }
}

fn flat_s(of: &Inputs) -> Option<f64> {
    flat_time_s(of.size("S"), of.rate("R"), of.time("RTT"), of.small("n")).ok()
}

fn target(of: &Inputs) -> Target {
    Target {
        rate: of.rate("R"),
        rtt: of.time("RTT"),
        mtu_bytes: of.small("MTU"),
        header_bytes: of.small("H"),
    }
}

fn sprt(of: &Inputs) -> Option<Sprt> {
    Sprt::new(of.number("L"), Risk::FIVE_PERCENT).ok()
}

fn known<T>(value: T) -> Option<Known<T>> {
    Some(Known::new(value, ""))
}

/// Packets with `L` bytes of payload behind `headers` bytes of TCP and IPv4.
fn packets(of: &Inputs, headers: u32) -> CeilingFacts {
    let segment = SegmentHeaders { family: IpFamily::V4, transport: Transport::TcpWithTimestamps };
    let payload_bytes = of.small("L");
    CeilingFacts::from_packet(FullPacketLengths {
        payload_bytes,
        ip_bytes: payload_bytes + headers,
        segment,
    })
}

/// A path by its capacity of IP packets, round trip, window and loss.
fn oc12(of: &Inputs) -> CeilingFacts {
    let loss = if of.has("p") { Fraction::from_value(of.number("p")) } else { None };
    CeilingFacts {
        capacity: known(of.rate("C")),
        rtt: known(of.time("RTT")),
        window: known(of.size("W")),
        loss: loss.and_then(known),
        ..packets(of, of.small("IP") - of.small("L"))
    }
}

/// The rate of one bound.
fn bound(kind: RungKind, facts: &CeilingFacts) -> Option<f64> {
    ladder_from_facts(facts).ok()?.rung_of_kind(kind).map(|rung| rung.payload_bps)
}
