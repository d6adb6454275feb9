//! Rungs against hand sums, and facts that no path has.

use super::super::facts::{AckPath, FullPacketLengths, LinkFact};
use super::super::{Binding, RungKind, Statement, path_needs, transfer_times};
use super::*;
use proptest::prelude::*;

use crate::record::IpFamily;
use crate::theory::framing::{SegmentHeaders, Transport};
use crate::units::{Fraction, PacketRate};

/// OC-12c with AAL5 LLC/SNAP and an MTU of 9180: 599.04 Mbit/s × 48/53 = 542,526,792 bit/s of cell
/// payload, 192 cells of 48 bytes a packet, so 7358.49 packets/s of 9128 bytes of payload.
fn oc12() -> CeilingFacts {
    let segment = SegmentHeaders { family: IpFamily::V4, transport: Transport::TcpWithTimestamps };
    let packets_per_s = 599.04e6 / (192.0 * 424.0);
    let link = LinkFact {
        name: "oc12".to_owned(),
        line_bps: 622.08e6,
        ip_bps: packets_per_s * 9180.0 * 8.0,
        payload_bps: packets_per_s * 9128.0 * 8.0,
        estimate: false,
    };
    CeilingFacts {
        link: Some(link),
        rtt: Some(Known::new(Duration::from_millis(45), "--rtt")),
        ..CeilingFacts::from_packet(FullPacketLengths {
            payload_bytes: 9128,
            ip_bytes: 9180,
            segment,
        })
    }
}

fn known<T>(value: T) -> Option<Known<T>> {
    Some(Known::new(value, "test"))
}

fn share(value: f64) -> Option<Known<Fraction>> {
    known(Fraction::from_value(value).expect("a share"))
}

/// The rung of `kind` is `mbps`, within 1e-4 of it.
fn check(facts: &CeilingFacts, kind: RungKind, mbps: f64) {
    let ladder = ladder_from_facts(facts).expect("possible facts");
    let got = ladder.rung_of_kind(kind).expect("the facts allow it").payload_bps / 1e6;
    assert!((got - mbps).abs() <= mbps * 1e-4, "{kind:?}: {got}, not {mbps}");
}

#[test]
fn the_rungs_of_the_oc_12_path_come_out_by_hand() {
    let facts = CeilingFacts {
        window: known(Bytes::new(2 << 20)),
        send_buffer: known(Bytes::new(4_000_000)),
        loss: share(1e-4),
        capacity: known(BitRate::from_bits_per_sec(500_000_000)),
        sustained: known(BitRate::from_bits_per_sec(100_000_000)),
        packet_rate: PacketRate::from_per_sec(5000.0).and_then(known),
        application: known(BitRate::from_bits_per_sec(80_000_000)),
        sender_host: known(BitRate::from_bits_per_sec(900_000_000)),
        receiver_host: known(BitRate::from_bits_per_sec(800_000_000)),
        acks: known(AckPath { acks_per_s: 1000.0, segments_per_ack: 2.0 }),
        ..oc12()
    };
    use RungKind::{
        Application, LocalLink, Loss, PathCapacity, ReceiveWindow, ReceiverHost, ReversePath,
        SendBuffer, SenderHost, SustainedRate,
    };
    check(&facts, LocalLink, 537.346);
    check(&facts, PathCapacity, 497.168); // 500 × 9128/9180
    check(&facts, SustainedRate, 99.4336); // 100 × 9128/9180
    check(&facts, RungKind::PacketRate, 365.12); // 5000 × 9128 × 8
    check(&facts, ReceiveWindow, 372.827); // 2,097,152 × 8 / 0.045
    check(&facts, SendBuffer, 722.762); // (4,000,000 + 65,536) × 8 / 0.045
    // 9128 × 8 / 0.045 = 1,622,756 bit/s; × 1.224745 / 0.01.
    check(&facts, Loss, 198.746);
    check(&facts, SenderHost, 900.0);
    check(&facts, ReceiverHost, 800.0);
    check(&facts, Application, 80.0);
    check(&facts, ReversePath, 146.048); // 1000 × 2 × 9128 × 8
    let ladder = ladder_from_facts(&facts).expect("possible facts");
    assert_eq!(ladder.binding(), Some(Binding::Two(Application, SustainedRate)));
}

#[test]
fn windows_losses_and_paces_of_several_flows_add_up() {
    let facts = CeilingFacts {
        flows: 4,
        window: known(Bytes::new(65_535)),
        loss: share(1e-3),
        application: known(BitRate::from_bits_per_sec(10_000_000)),
        ..oc12()
    };
    check(&facts, RungKind::ReceiveWindow, 46.6027); // 4 × 524,280 / 0.045
    check(&facts, RungKind::Loss, 251.396); // 4 × 1.622756 × 1.224745 / sqrt(0.001)
    check(&facts, RungKind::Application, 40.0);
    check(&facts, RungKind::LocalLink, 537.346);
}

#[test]
fn a_send_buffer_has_the_range_of_paced_senders_and_others() {
    // tcp_wmem of 131,072 bytes and 40 ms, measured on Linux 6.18: BBR 15.7 and 16.0 Mbit/s, Reno
    // 37 and 37.7. 0.6 x 131,072 x 8 / 0.04 = 15.73; 196,608 x 8 / 0.04 = 39.32.
    let facts = CeilingFacts {
        send_buffer: known(Bytes::new(131_072)),
        rtt: known(Duration::from_millis(40)),
        ..oc12()
    };
    let ladder = ladder_from_facts(&facts).expect("possible facts");
    let rung = ladder.rung_of_kind(RungKind::SendBuffer).expect("a buffer is given");
    let low = rung.low_bps.expect("a range") / 1e6;
    assert!((low - 15.729).abs() < 0.01 && (rung.payload_bps / 1e6 - 39.322).abs() < 0.01);
    for measured in [15.7, 16.0, 37.0, 37.7] {
        let said = ladder.statement(measured * 1e6).expect("a rate");
        let expected = Statement::SingleFactor { rung: RungKind::SendBuffer };
        assert_eq!(said, expected, "{measured}");
    }
}

#[test]
fn each_congestion_control_has_its_range() {
    let of = |response, p| {
        let facts = CeilingFacts { response, loss: share(p), ..oc12() };
        let ladder = ladder_from_facts(&facts).expect("possible facts");
        let rung = ladder.rung_of_kind(RungKind::Loss).expect("a loss is given").clone();
        assert!(rung.estimate);
        (rung.payload_bps / 1e6, rung.low_bps.map(|low| low / 1e6))
    };
    // 1.622756 × 0.866025 / 0.01 = 140.535 with delayed acknowledgements.
    let (high, low) = of(Response::Reno, 1e-4);
    assert!((high - 198.746).abs() < 0.01 && (low.expect("a range") - 140.535).abs() < 0.01);
    // CUBIC's own window is 1.05383 × 0.045^0.75 / 1e-3 = 102.96 segments, below Reno's 122.47.
    assert_eq!(of(Response::Cubic, 1e-4), (high, low));
    // At 1e-6 its own is 1.05383 × 0.045^0.75 / 10^-4.5 = 3256.0, above 1224.7.
    let (high, low) = of(Response::Cubic, 1e-6);
    assert!((high - 5283.6).abs() < 5283.6 * 1e-3 && low.is_none(), "{high}");
    // Beyond 1 % PFTK: at 0.1 with 9128 bytes 73,024 bits in 45 ms (0.258199 + 0.580948 x 0.132) =
    // 15.070 ms, 4.85 Mbit/s, where the square-root rule says 6.28.
    for response in [Response::Reno, Response::Cubic] {
        let (high, low) = of(response, 0.1);
        assert!((high - 73.024 / 15.0697).abs() < 0.01, "{high}");
        // 45 ms sqrt(0.4/3) + 245 ms x 0.821584 x 0.132 = 43.002 ms.
        assert!((low.expect("a range") - 73.024 / 43.002).abs() < 0.01, "{low:?}");
    }
    // 537.346 × 0.99.
    let (high, low) = of(Response::Bbr, 0.01);
    assert!((high - 531.972).abs() < 0.01 && low.is_none(), "{high}");
}

#[test]
fn a_path_beyond_the_largest_window_shows_it() {
    // 100 Gbit/s and 100 ms: 1,073,725,440 × 8 / 0.1 = 85.898 Gbit/s.
    let mut facts = oc12();
    facts.rtt = known(Duration::from_millis(100));
    assert!(
        ladder_from_facts(&facts)
            .expect("possible")
            .rung_of_kind(RungKind::ReceiveWindow)
            .is_none()
    );
    facts.link = facts.link.map(|link| LinkFact { payload_bps: 99e9, ..link });
    check(&facts, RungKind::ReceiveWindow, 85_898.035);
    facts.flows = 2;
    assert!(
        ladder_from_facts(&facts)
            .expect("possible")
            .rung_of_kind(RungKind::ReceiveWindow)
            .is_none()
    );
}

#[test]
fn a_start_from_ten_segments_takes_its_part() {
    // 537.346 Mbit/s and 45 ms are 331.1 segments of 9128 bytes: 6 rounds from 10, in which 630
    // segments leave. 100 MB are 10,956 segments, so 6 × 45 ms + 10,326 × 135.897 us + 45 ms =
    // 1.71828 s, or 465.6 Mbit/s.
    let facts = CeilingFacts { amount: known(Amount::Bytes(Bytes::new(100_000_000))), ..oc12() };
    check(&facts, RungKind::StartUp, 465.583);
    let ladder = ladder_from_facts(&facts).expect("possible facts");
    let times = transfer_times(&facts, &ladder, &[Bytes::new(100_000_000)]).expect("possible");
    assert!((times[0].time_ns / 1e9 - 1.71828).abs() < 1e-3, "{}", times[0].time_ns);
    assert_eq!(times[0].rounds, Some(6));
    // In 10 s: 6 × 45 ms of start with 630 segments, then (10 - 0.27 - 0.045) / 135.897 us =
    // 71,267.2 segments: 71,897 × 9128 × 8 / 10 = 525.0 Mbit/s.
    let facts = CeilingFacts { amount: known(Amount::Time(Duration::from_secs(10))), ..oc12() };
    check(&facts, RungKind::StartUp, 525.021);
}

#[test]
fn filling_the_path_takes_its_product_of_rate_and_round_trip() {
    let facts = oc12();
    let ladder = ladder_from_facts(&facts).expect("possible facts");
    let needs = path_needs(&facts, &ladder, Some(100)).expect("possible").expect("an RTT is known");
    // 537,346,415 × 0.045 / 8 = 3,022,573.6; scale 6 reaches 4,194,240, scale 5 only 2,097,120.
    assert_eq!((needs.window_bytes, needs.window_scale), (Some(3_022_574), Some(6)));
    assert_eq!(needs.receive_buffer_bytes, Some(6_045_148));
    assert_eq!(needs.send_buffer_bytes, Some(5_037_624)); // over 0.6
    // IP packets: × 9180/9128 = 3,039,792.5; over sqrt(100) = 303,979.2.
    assert_eq!((needs.queue_bytes, needs.queue_shared_bytes), (3_039_793, Some(303_980)));
    assert_eq!(needs.flows_min, Some(1));
    // W = 331.13 segments: (1.224745 / 331.13)² = 1.3680e-5 for Reno; CUBIC's own would be
    // 0.045 × 1.07242 / 331.13^(4/3) = 2.107e-5.
    let budget = |response| {
        let mut budgets = needs.loss_budgets.iter();
        budgets.find(|budget| budget.response == response).expect("one each").loss_ratio
    };
    assert!((budget(Response::Reno) / 1.3680e-5 - 1.0).abs() < 1e-3);
    assert!((budget(Response::Cubic) / 2.107e-5 - 1.0).abs() < 1e-3);
}

#[test]
fn udp_has_no_windows_and_no_start() {
    let mut facts = CeilingFacts {
        window: known(Bytes::new(1)),
        loss: share(0.5),
        amount: known(Amount::Time(Duration::from_secs(1))),
        ..oc12()
    };
    facts.packet.segment.transport = Transport::Udp;
    let ladder = ladder_from_facts(&facts).expect("possible facts");
    assert_eq!(ladder.rungs.len(), 1);
    let needs = path_needs(&facts, &ladder, None).expect("possible").expect("an RTT is known");
    assert_eq!((needs.window_bytes, needs.loss_budgets.len()), (None, 0));
}

#[test]
fn what_is_impossible_is_one_line() {
    let refused = |change: fn(&mut CeilingFacts)| {
        let mut facts = oc12();
        change(&mut facts);
        ladder_from_facts(&facts).expect_err("impossible").to_string()
    };
    let cases = [
        (refused(|facts| facts.flows = 0), "0 flows"),
        (refused(|facts| facts.rtt = known(Duration::ZERO)), "round trip of 0"),
        (refused(|facts| facts.window = known(Bytes::new(0))), "a window of 0"),
        (refused(|facts| facts.window = known(Bytes::new(1_073_725_441))), "1,073,725,440"),
        (refused(|facts| facts.send_buffer = known(Bytes::new(0))), "send buffer of 0"),
        (refused(|facts| facts.loss = share(0.0)), "a loss of 0"),
        (refused(|facts| facts.loss = share(1.0)), "a loss of 1"),
        (refused(|facts| facts.capacity = known(BitRate::from_bits_per_sec(0))), "capacity of 0"),
        (refused(|facts| facts.application = known(BitRate::from_bits_per_sec(0))), "pace of 0"),
        (refused(|facts| facts.amount = known(Amount::Bytes(Bytes::new(0)))), "0 bytes"),
        (refused(|facts| facts.amount = known(Amount::Time(Duration::ZERO))), "0 s"),
        (
            refused(|facts| {
                facts.growth = 1.0;
                facts.amount = known(Amount::Bytes(Bytes::new(1)));
            }),
            "growth of 1",
        ),
    ];
    for (said, part) in cases {
        assert!(said.contains(part) && !said.contains('\n'), "{said}, without {part}");
    }
}

proptest! {
    #[test]
    fn no_facts_panic_and_no_rung_is_nonsense(
        (flows, window, sndbuf) in (0_u32..5, any::<u64>(), any::<u64>()),
        (rtt_ns, loss, pps) in (any::<u64>(), 0.0..=1.0_f64, 0.0..1e12_f64),
        (rate, size, initial_window, growth) in
            (any::<u64>(), any::<u64>(), any::<u32>(), 0.0..4.0_f64),
    ) {
        let rate = known(BitRate::from_bits_per_sec(rate));
        let facts = CeilingFacts {
            flows,
            rtt: known(Duration::from_nanos(rtt_ns)),
            window: known(Bytes::new(window.min(WINDOW_MAX_BYTES))),
            send_buffer: known(Bytes::new(sndbuf)),
            loss: share(loss),
            packet_rate: PacketRate::from_per_sec(pps).and_then(known),
            capacity: rate.clone(),
            application: rate,
            amount: known(Amount::Bytes(Bytes::new(size))),
            initial_window,
            growth,
            ..oc12()
        };
        if let Ok(ladder) = ladder_from_facts(&facts) {
            for rung in &ladder.rungs {
                prop_assert!(rung.payload_bps.is_finite() && rung.payload_bps >= 0.0, "{:?}", rung);
            }
            let sizes = [Bytes::new(size)];
            let _ = (path_needs(&facts, &ladder, Some(1)), transfer_times(&facts, &ladder, &sizes));
        }
    }
}
