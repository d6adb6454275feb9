//! The bounds beside the link that the record of a test knows by itself: windows over the smallest
//! round trip, and the pace that was asked for. Pure.
//!
//! Left out: loss and the hosts' own speed, which need measurements beside the test.

use linerate_core::record::{CeilingInput, Flow, Rung, TcpPlan};

/// Source of the rule for windows.
const WINDOW_SOURCE: &str = "at most one window in each round trip (RFC 6349 §3.3)";
/// Source of the rule for send buffers.
const BUFFER_SOURCE: &str =
    "what is not acknowledged stays in the send buffer (RFC 9293 §3.9.1.2), one in each round trip";

/// Bit of `tcpi_options` for window scaling (Linux tcp.h, TCPI_OPT_WSCALE).
const OPTION_WINDOW_SCALE: u8 = 4;
/// The largest window that the field holds (RFC 9293 §3.1).
const WINDOW_UNSCALED_MAX: u64 = 65_535;

/// Every bound of the streams of one direction together.
pub(super) fn stream_rungs(flows: &[&Flow], plan: &TcpPlan) -> Vec<Rung> {
    let window =
        over_round_trip("receive_window", WINDOW_SOURCE, windows(flows), rtt_min_ns(flows));
    // A buffer that the kernel tunes grows with what is in flight and bounds nothing, up to its own
    // limit (tcp_wmem), where the kernel counts how long the sender waited for room.
    let may_bound =
        plan.test.window_bytes.is_some() || flows.iter().any(|flow| waits_for_room(flow));
    let buffer = may_bound.then(|| {
        let bytes = send_buffers(flows, plan);
        over_round_trip("send_buffer", BUFFER_SOURCE, bytes, rtt_min_ns(flows))
    });
    let pace = plan.test.pace.map(|pace| Rung {
        kind: "application".to_owned(),
        value: Some(pace.bits_per_sec() as f64 * flows.len() as f64),
        inputs: vec![
            CeilingInput::from_value(
                "pace_bps",
                pace.bits_per_sec() as f64,
                "asked by -b, of each stream",
            ),
            CeilingInput::from_value("streams", flows.len() as f64, "of this direction"),
        ],
        unknown: Vec::new(),
        source: "each stream is paced in payload bits".to_owned(),
    });
    [window].into_iter().chain(buffer).chain(pace).collect()
}

/// Bytes over the smallest round trip: rate = 8 × bytes / RTT. One window of 65,536 bytes over
/// 10 ms is 52.43 Mbit/s.
fn over_round_trip(
    kind: &str,
    source: &str,
    bytes: Option<CeilingInput>,
    rtt_min_ns: Option<u64>,
) -> Rung {
    let value = bytes.as_ref().zip(rtt_min_ns).map(|(bytes, ns)| bytes.value * 8e9 / ns as f64);
    let mut unknown = Vec::new();
    if bytes.is_none() {
        unknown.push(format!("the {}", kind.replace('_', " ")));
    }
    if rtt_min_ns.is_none() {
        unknown.push("the smallest round-trip time".to_owned());
    }
    let rtt = rtt_min_ns
        .map(|ns| CeilingInput::from_value("rtt_min_ns", ns as f64, "tcpi_min_rtt of the sender"));
    let inputs = bytes.into_iter().chain(rtt).collect();
    Rung { kind: kind.to_owned(), value, inputs, unknown, source: source.to_owned() }
}

/// The largest windows that were seen, of all streams together: those that reached the sender. What
/// a receiver would grant may not fit the wire, and stands in only where the sender did not tell.
fn windows(flows: &[&Flow]) -> Option<CeilingInput> {
    let largest = |flow: &&Flow| {
        let offered = flow.sender.as_ref().and_then(|end| end.window_offered_bytes_max);
        let advertised = flow.receiver.as_ref().and_then(|end| end.window_advertised_bytes_max);
        let window = offered.or(advertised)?;
        Some(if is_scaled(flow) { window } else { window.min(WINDOW_UNSCALED_MAX) })
    };
    let bytes: u64 = flows.iter().map(largest).sum::<Option<u64>>()?;
    Some(CeilingInput::from_value("window_bytes", bytes as f64, "largest receive window seen"))
}

/// True where windows are scaled; taken to be so where neither end told.
fn is_scaled(flow: &Flow) -> bool {
    let ends = [&flow.sender, &flow.receiver].into_iter().flatten();
    let mut options = ends.filter_map(|end| end.tcp_info?.options);
    options.all(|options| options & OPTION_WINDOW_SCALE != 0)
}

/// A sender that waited for room in its send buffer for this part of its busy time is bound by it.
const WAITED_SHARE_MIN: f64 = 0.1;

fn waits_for_room(flow: &Flow) -> bool {
    let info = flow.sender.as_ref().and_then(|end| end.tcp_info);
    let times = info.and_then(|info| Some((info.sndbuf_limited_us?, info.busy_time_us?)));
    times
        .is_some_and(|(limited, busy)| busy > 0 && limited as f64 >= WAITED_SHARE_MIN * busy as f64)
}

/// The size of the send buffers of all streams together: what they held, for a sender without a
/// pace keeps its buffer full, so the most that was seen is what fits, bookkeeping apart. Else what
/// the kernel set, which counts its bookkeeping in and not the super-packets that go beyond it.
fn send_buffers(flows: &[&Flow], plan: &TcpPlan) -> Option<CeilingInput> {
    let held = |flow: &&Flow| flow.sender.as_ref()?.send_queue_bytes_max;
    let held: Option<u64> = flows.iter().map(held).sum();
    if let Some(bytes) = held.filter(|_| plan.test.pace.is_none()) {
        let source = "most payload seen in the send buffer";
        return Some(CeilingInput::from_value("send_buffer_bytes", bytes as f64, source));
    }
    let set = |flow: &&Flow| flow.sender.as_ref()?.sndbuf_bytes.got;
    let bytes: u64 = flows.iter().map(set).sum::<Option<u64>>()?;
    Some(CeilingInput::from_value("send_buffer_bytes", bytes as f64, "SO_SNDBUF of the sender"))
}

/// A round trip of 0 was not measured: the kernel's smallest is 1 µs.
fn rtt_min_ns(flows: &[&Flow]) -> Option<u64> {
    let infos = flows.iter().filter_map(|flow| flow.sender.as_ref()?.tcp_info);
    let micros = infos.filter_map(|info| info.min_rtt_us).min().filter(|us| *us > 0)?;
    Some(u64::from(micros) * 1000)
}

#[cfg(test)]
mod tests {
    use linerate_core::record::{Asked, Direction, FlowEnd, TcpInfo, TcpTest};
    use linerate_core::units::BitRate;

    use super::*;

    fn flow_with_window(window: Option<u64>, rtt_us: Option<u32>) -> Flow {
        let info = TcpInfo { min_rtt_us: rtt_us, ..TcpInfo::default() };
        let sender = FlowEnd {
            window_offered_bytes_max: window,
            sndbuf_bytes: Asked { asked: Some(65_536), got: Some(131_072) },
            tcp_info: Some(info),
            ..FlowEnd::default()
        };
        Flow {
            flow: 0,
            direction: Direction::Up,
            client_addr: String::new(),
            server_addr: String::new(),
            sender: Some(sender),
            receiver: None,
            syn: None,
        }
    }

    fn rung_value(rungs: &[Rung], kind: &str) -> Option<f64> {
        rungs.iter().find(|rung| rung.kind == kind).and_then(|rung| rung.value)
    }

    #[test]
    fn a_window_over_the_smallest_round_trip_bounds_the_rate() {
        // 65,536 × 8 / 0.010 = 52,428,800; the second stream's round trip is longer.
        let (one, other) = (
            flow_with_window(Some(65_536), Some(10_000)),
            flow_with_window(Some(65_536), Some(12_000)),
        );
        let single = stream_rungs(&[&one], &TcpPlan::default());
        assert_eq!(rung_value(&single, "receive_window"), Some(52_428_800.0));
        let both = stream_rungs(&[&one, &other], &TcpPlan::default());
        assert_eq!(rung_value(&both, "receive_window"), Some(104_857_600.0));
        assert_eq!(single.len(), 1, "neither a buffer nor a pace was asked for");
    }

    #[test]
    fn a_buffer_that_was_asked_for_bounds_by_what_the_kernel_set() {
        let plan = TcpPlan {
            test: TcpTest { window_bytes: Some(65_536), ..TcpTest::default() },
            ..TcpPlan::default()
        };
        let rungs = stream_rungs(&[&flow_with_window(Some(1), Some(10_000))], &plan);
        // 131,072 × 8 / 0.010.
        assert_eq!(rung_value(&rungs, "send_buffer"), Some(104_857_600.0));
    }

    #[test]
    fn what_the_send_buffer_held_counts_before_what_was_set() {
        // Linux 6.18, tcp_wmem at most 131,072 bytes, 40 ms, CUBIC: 208,824 bytes of payload in the
        // buffer, 43.4 Mbit/s measured; 131,072 would allow 26.2. The kernel counted no wait for
        // room; with BBR it waited for 2.196 of 4.184 s.
        let of = |limited_us: u64, pace: Option<BitRate>, asked: Option<u64>| {
            let mut flow = flow_with_window(None, Some(40_000));
            let sender = flow.sender.as_mut().expect("a sender");
            sender.send_queue_bytes_max = Some(208_824);
            let info = sender.tcp_info.as_mut().expect("its account");
            (info.sndbuf_limited_us, info.busy_time_us) = (Some(limited_us), Some(4_184_000));
            let plan = TcpPlan {
                test: TcpTest { pace, window_bytes: asked, ..TcpTest::default() },
                ..TcpPlan::default()
            };
            rung_value(&stream_rungs(&[&flow], &plan), "send_buffer")
        };
        // 208,824 x 8 / 0.04.
        assert_eq!(of(2_196_000, None, None), Some(41_764_800.0));
        assert_eq!(of(0, None, Some(65_536)), Some(41_764_800.0));
        assert_eq!(of(0, None, None), None, "a buffer that nobody waited for bounds nothing");
        // A paced sender leaves its buffer empty: 131,072 x 8 / 0.04.
        let pace = Some(BitRate::from_bits_per_sec(1_000_000));
        assert_eq!(of(0, pace, Some(65_536)), Some(26_214_400.0));
    }

    #[test]
    fn a_window_that_does_not_fit_the_wire_bounds_by_what_does() {
        // tcpi_rcv_wnd of 388,064 without window scaling (as seen on Linux with the option stripped
        // on the way) and a round trip of 40 ms: 65,535 x 8 / 0.04 = 13.107 Mbit/s at the most;
        // measured were 12.8.
        let of = |options: u8, offered: Option<u64>| {
            let mut flow = flow_with_window(offered, Some(40_000));
            let sender = flow.sender.as_mut().expect("a sender");
            sender.tcp_info.as_mut().expect("its account").options = Some(options);
            let advertised = Some(388_064);
            flow.receiver =
                Some(FlowEnd { window_advertised_bytes_max: advertised, ..FlowEnd::default() });
            rung_value(&stream_rungs(&[&flow], &TcpPlan::default()), "receive_window")
        };
        // Timestamps and SACK, no scaling.
        assert_eq!(of(3, None), Some(13_107_000.0));
        assert_eq!(of(3, Some(65_535)), Some(13_107_000.0));
        // Scaled: what the sender was offered, else what the receiver advertised.
        assert_eq!(of(7, Some(200_000)), Some(40_000_000.0));
        assert_eq!(of(7, None), Some(77_612_800.0));
    }

    #[test]
    fn a_pace_is_that_of_all_streams() {
        let pace = Some(BitRate::from_bits_per_sec(10_000_000));
        let plan = TcpPlan { test: TcpTest { pace, ..TcpTest::default() }, ..TcpPlan::default() };
        let flow = flow_with_window(None, None);
        assert_eq!(rung_value(&stream_rungs(&[&flow, &flow], &plan), "application"), Some(20e6));
    }

    #[test]
    fn what_is_not_known_is_named_and_bounds_nothing() {
        for (flow, unknown) in [
            (flow_with_window(None, Some(5)), "the receive window"),
            (flow_with_window(Some(5), None), "the smallest round-trip time"),
            (flow_with_window(Some(5), Some(0)), "the smallest round-trip time"),
        ] {
            let rungs = stream_rungs(&[&flow], &TcpPlan::default());
            assert_eq!(
                (rungs[0].value, rungs[0].unknown.as_slice()),
                (None, &[unknown.into()][..])
            );
        }
    }
}
