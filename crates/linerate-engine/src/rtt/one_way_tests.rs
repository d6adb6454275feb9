//! Runs whose times are made up: what was planted comes out.

use super::*;

const MS: u64 = 1_000_000;
const START: u64 = 1_700_000_000_000_000_000;

fn ends() -> OneWayEnds {
    OneWayEnds { first_on_wire: 3, one_clock: true, clock_step_ns: 10, local_error: None }
}

/// An answer to probe `sequence` with the reply's number, sent every 10 ms over a path of `there`
/// and `back` ns, answered within 50 µs.
fn answer(book: &mut TimesBook, sequence: u64, reply_sequence: u32, there: u64, back: u64) {
    let t1 = START + sequence * 10 * MS;
    let (t2, t3) = (t1 + there, t1 + there + 50_000);
    let told = Reflected {
        t1_ns: Some(t1),
        t2_ns: Some(t2),
        t3_ns: Some(t3),
        reply_sequence,
        ..Reflected::default()
    };
    let t4 = t3 + back;
    book.answered(sequence, &told, had(t4, None), t4 - t1);
}

/// The monotonic clock began with this host, at `START`.
fn had(civil_ns: u64, kernel_ns: Option<u64>) -> Had {
    Had { at: MonoTime::from_nanos(civil_ns - START), civil_ns, kernel_ns }
}

fn value(
    figures: &OneWayFigures,
    metric: MetricId,
    stat: Stat,
    direction: Option<Direction>,
) -> f64 {
    let row = figures
        .rows
        .iter()
        .find(|row| row.metric == metric && row.stat == stat && row.direction == direction);
    row.map_or(f64::NAN, |row| row.value)
}

/// The vector of linerate_core::stats: delays in ms {0: 5.0, 1: 5.2, 3: 25.0, 4: 5.1, 5: 4.9,
/// 6: 5.3, 9: 6.0} of probes every 10 ms, the others lost on the way there, no delay back.
#[test]
fn the_vector_of_delay_variation_comes_out_of_four_times() {
    let mut book = TimesBook::new(ends());
    let delays = [(0, 50), (1, 52), (4, 51), (3, 250), (5, 49), (6, 53), (9, 60)];
    for (reply, (sequence, tenths)) in (0..).zip(delays) {
        answer(&mut book, sequence, reply, tenths * MS / 10, 0);
    }
    let figures = book.figures(44).expect("answers");
    assert_eq!(figures.clocks.state, ClockState::Synchronised, "one clock");
    assert_eq!(figures.clocks.error_ns, Some(10), "its step");
    let up = |metric, stat| value(&figures, metric, stat, Some(Direction::Up));
    let near = |found: f64, ms: f64| (found - ms * 1e6).abs() < 1.0;
    assert!(near(up(MetricId::OneWayDelay, Stat::Min), 4.9));
    assert!(near(up(MetricId::OneWayDelay, Stat::Mean), 8.071_428_571));
    assert!(near(up(MetricId::OneWayDelay, Stat::Max), 25.0));
    assert!((up(MetricId::OneWayDelay, Stat::Stddev) - 7_473_445.0).abs() < 1.0);
    assert!(near(up(MetricId::Pdv, Stat::Max), 20.1));
    // |IPDV| of (0,1), (3,4), (4,5), (5,6): 0.2, 19.9, 0.2, 0.4.
    assert!(near(up(MetricId::Ipdv, Stat::Max), 19.9) && near(up(MetricId::Ipdv, Stat::P50), 0.2));
    assert_eq!(
        figures.rows.iter().find(|row| row.metric == MetricId::Ipdv).and_then(|r| r.n),
        Some(4)
    );
    assert!(near(value(&figures, MetricId::RttPath, Stat::Max, None), 25.0));
    assert!(near(value(&figures, MetricId::Residence, Stat::Max, None), 0.05));
    let ms = [(0, 50), (1, 52), (3, 250), (4, 51), (5, 49), (6, 53), (9, 60)]
        .map(|(sequence, tenths)| (sequence, tenths * 100_000));
    assert_eq!(figures.delays[0], (Direction::Up, ms.to_vec()), "each probe has its delay");
    assert_eq!(figures.delays[1].1[2], (3, 0), "and its answer");
    // Probe 4 came before 3.
    assert!((up(MetricId::ReorderedOneWay, Stat::Value) - 1.0).abs() < 1e-9);
}

/// Arrivals in the order 0, 1, 4, 5, 3, 6, 9: 3.010 after each step of RFC 3550, 2.326353 ms.
#[test]
fn jitter_goes_by_the_order_of_arrival() {
    let mut book = TimesBook::new(ends());
    for (reply, (sequence, tenths)) in
        (0..).zip([(0, 50), (1, 52), (4, 51), (5, 49), (3, 250), (6, 53), (9, 60)])
    {
        answer(&mut book, sequence, reply, tenths * MS / 10, 0);
    }
    let figures = book.figures(44).expect("answers");
    let jitter = value(&figures, MetricId::JitterRfc3550, Stat::Value, Some(Direction::Up));
    assert!((jitter - 2_326_353.0).abs() < 1.0, "{jitter}");
}

#[test]
fn losses_of_both_directions_are_told_apart_by_the_reflectors_count() {
    let losses = |answers: &[(u64, u32)]| {
        let mut book = TimesBook::new(ends());
        answers.iter().for_each(|(probe, reply)| answer(&mut book, *probe, *reply, MS, MS));
        book.losses()
    };
    // Probes 2 and 3 lost there, the reply to 5 lost back.
    let of = |sent, there, back| Some(Losses { parts: 1, sent, there, back, ..Losses::default() });
    assert_eq!(losses(&[(0, 10), (1, 11), (4, 12), (6, 14)]), of(7, 2, 1));
    let late = |there, back| {
        of(4, 0, 0).map(|it| Losses { reordered_there: there, reordered_back: back, ..it })
    };
    let order = |numbers: [(u64, u32); 4]| losses(&numbers);
    assert_eq!(order([(0, 10), (2, 11), (1, 12), (3, 13)]), late(1, 0), "reordered there");
    assert_eq!(order([(3, 13), (0, 10), (1, 11), (2, 12)]), late(0, 3), "reordered back");
    assert_eq!(order([(0, 10), (1, 12), (2, 11), (3, 13)]), late(1, 1), "and back again");
    assert_eq!(order([(0, u32::MAX), (2, 0), (1, 1), (3, 2)]), late(1, 0), "the count wraps");
    assert_eq!(losses(&[(0, u32::MAX), (1, 0), (3, 1)]), of(4, 1, 0), "the count wraps");
    let anew = of(4, 0, 0).map(|losses| Losses { parts: 2, ..losses });
    assert_eq!(losses(&[(0, 900), (1, 901), (3, 0), (4, 1)]), anew, "begun anew");
    assert_eq!(losses(&[(0, 40), (1, 41), (3, 1), (4, 2)]), anew, "begun anew soon");
    assert_eq!(losses(&[(0, 3), (1, 4), (4, 7)]), None, "our numbers come back");
    assert_eq!(losses(&[(0, 10), (1, 12)]).map(|l| l.sent), None, "doubled on the way there");
}

#[test]
fn kernel_times_and_follow_ups_are_used_where_most_probes_have_them() {
    let mut book = TimesBook::new(ends());
    for sequence in 0..20u64 {
        let t1 = START + sequence * MS;
        // The program reads its clock 10 µs before the packet leaves and 30 µs after it came.
        book.departed(sequence, t1 + 10_000);
        let told = Reflected {
            t1_ns: Some(t1),
            t2_ns: Some(t1 + 10_300),
            t3_ns: Some(t1 + 20_000),
            reply_sequence: sequence as u32,
            follow_up: (sequence > 0).then(|| (sequence as u32 - 1, t1 - MS + 29_000)),
            ..Reflected::default()
        };
        let t4_kernel = t1 + 29_200;
        book.answered(sequence, &told, had(t4_kernel + 30_000, Some(t4_kernel)), 59_200);
    }
    let figures = book.figures(44).expect("answers");
    assert!(figures.clocks.kernel_stamps && figures.clocks.follow_up);
    assert_eq!(figures.clocks.samples, 19, "the last reply has no next one");
    let path = |stat| value(&figures, MetricId::RttPath, stat, None);
    assert!((path(Stat::Min) - 500.0).abs() < 0.5 && (path(Stat::Max) - 500.0).abs() < 0.5);
    let down = value(&figures, MetricId::OneWayDelay, Stat::P50, Some(Direction::Down));
    assert!((down - 200.0).abs() < 0.5, "{down}");
}

/// Two hosts that claim 0.1 ms each, over 2 ms there and 1 ms back, the reflector's clock ahead by
/// `ahead`, this host's set forward by `set` at probe 60 of 120, the way back longer by 3.1 ms from
/// probe 90: what is said of the clocks, and of the delays there and back.
fn two_hosts(ahead: i64, set: u64) -> (ClockAgreement, f64, f64) {
    let local_error = Some((100_000, ClockKeeper::Ptp4l));
    let mut book = TimesBook::new(OneWayEnds { one_clock: false, local_error, ..ends() });
    for sequence in 0..120u64 {
        let set = if sequence < 60 { 0 } else { set };
        let back = if sequence < 90 { MS } else { MS + 3_100_000 };
        let t1 = START + sequence * 100 * MS;
        let t2 = (t1 + 2 * MS).saturating_add_signed(ahead);
        let told = Reflected {
            t1_ns: Some(t1 + set),
            t2_ns: Some(t2),
            t3_ns: Some(t2 + 50_000),
            reply_sequence: sequence as u32,
            error_ns: Some(100_000),
            synchronised: true,
            ..Reflected::default()
        };
        let t4 = t1 + 2 * MS + 50_000 + back;
        let had = Had { civil_ns: t4 + set, ..had(t4, None) };
        book.answered(sequence, &told, had, t4 - t1);
    }
    let figures = book.figures(44).expect("answers");
    let least = |direction| value(&figures, MetricId::OneWayDelay, Stat::Min, Some(direction));
    let (there, back) = (least(Direction::Up), least(Direction::Down));
    (figures.clocks, there, back)
}

#[test]
fn claims_that_the_packets_contradict_are_void_and_changes_are_named_with_their_cause() {
    let (clocks, there, back) = two_hosts(150_000, 0);
    assert_eq!((clocks.state, clocks.error_ns), (ClockState::Synchronised, Some(200_000)));
    assert_eq!(clocks.claimed_by, Some(ClockKeeper::Ptp4l));
    assert!((there - 2.15e6).abs() < 1.0 && (back - 0.85e6).abs() < 1.0, "{there} {back}");
    let longer = |probe, at_ns| DelayChange {
        probe,
        at_unix_ns: START + at_ns,
        cause: ChangeCause::Path,
        there_ns: 0,
        back_ns: 3_100_000,
    };
    assert_eq!(clocks.changes, [longer(90, 9_000 * MS)]);
    // -2.3 ms make the delay there negative by more than was claimed, 40 ms the one back.
    for ahead in [-2_300_000, 40_000_000] {
        let (clocks, there, back) = two_hosts(ahead, 0);
        assert!(clocks.claim_refuted, "{clocks:?}");
        // What the packets of the longer way back leave possible: 4.1 ms + 0.5 ms.
        assert_eq!((clocks.state, clocks.error_ns), (ClockState::OffsetEstimated, Some(4_600_000)));
        assert!((there - 1.5e6).abs() < 1.0 && (back - 1.5e6).abs() < 1.0, "{there} {back}");
    }
    // Set by 1 ms: not within 0.2 ms both before and after, though no delay is negative.
    let (clocks, there, back) = two_hosts(0, MS);
    assert!(clocks.claim_refuted, "{clocks:?}");
    assert!((there - 1.5e6).abs() < 1.0 && (back - 1.5e6).abs() < 1.0, "{there} {back}");
    let set = DelayChange {
        probe: 60,
        at_unix_ns: START + 6_001 * MS,
        cause: ChangeCause::LocalClock,
        there_ns: -1_000_000,
        back_ns: 1_000_000,
    };
    assert_eq!(clocks.changes, [set, longer(90, 9_001 * MS)]);
}
