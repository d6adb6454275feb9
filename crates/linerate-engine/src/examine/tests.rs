//! The plan of a survey within its time, and what it says where parts of it cannot be had.

use linerate_core::record::{CaveatCode, Event, Tool};
use linerate_sys::stop::Stop;

use super::*;

fn examination(within: Option<Duration>) -> Examination {
    Examination {
        server: ServerPlan::new(None, "192.0.2.1", 5210),
        tcp_time: None,
        congestion_control: None,
        ping_count: 1000,
        within,
    }
}

/// A survey that nobody watches.
fn run_of(examination: &Examination, first: FirstRtts) -> ExaminationRun<'_> {
    // A closure without state takes no room, so nothing is left behind.
    let seen: &mut dyn FnMut(&ExaminationEvent<'_>) =
        Box::leak(Box::new(|_: &ExaminationEvent<'_>| {}));
    ExaminationRun { examination, begin: monotonic(), first, other_family: None, seen }
}

/// Measurements and seconds that a round trip of so many ms leads to.
fn planned(ms: u64) -> (usize, f64) {
    let examination = examination(Some(Duration::from_secs(35)));
    let first = FirstRtts { small_ns: ms * 1_000_000, large_ns: ms * 1_000_000 };
    let mut told = None;
    let mut seen = |seen: &ExaminationEvent<'_>| {
        if let ExaminationEvent::Planned(count, span) = seen {
            told = Some((*count, span.as_secs_f64()));
        }
    };
    let begin = monotonic();
    ExaminationRun { examination: &examination, begin, first, other_family: None, seen: &mut seen }
        .tell_plan();
    told.expect("it was told")
}

#[test]
fn an_examination_stays_within_its_time_whatever_the_round_trip() {
    for ms in [0, 1, 10, 40, 80, 150, 300, 600] {
        let (count, seconds) = planned(ms);
        assert!(seconds <= 35.0, "{ms} ms: {seconds} s");
        assert!(count % 2 == 1, "both directions of each");
    }
    // The first test both ways, trains, a longer one, and streams or windows where they fit.
    assert!(planned(0).0 >= 7 && planned(40).0 >= 5, "{:?} {:?}", planned(0), planned(40));
    // Far paths have the first test and trains.
    assert_eq!(planned(300).0, 3, "{:?}", planned(300));
}

#[test]
fn far_paths_have_a_quick_survey_too() {
    for (ms, within) in [(0, 12), (20, 12), (40, 12), (50, 12), (300, 12), (300, 35)] {
        let examination = examination(Some(Duration::from_secs(within)));
        let first = FirstRtts { small_ns: ms * 1_000_000, large_ns: ms * 1_000_000 };
        let run = run_of(&examination, first);
        let spent = first.ping_cost(examination.ping_sizes().len());
        let plan = run.first_test(spent).expect("there is one");
        assert!(run.fits_remaining_time(spent, &plan), "{ms} ms in {within} s");
        let trains = run.trains_that_fit(spent + run.test_duration(&plan), [Some(50e6); 2]);
        // Random loss is seen below the link's rate: these do not leave paced probes out.
        let paced = ms <= 50 || within > 12;
        assert_eq!(trains.flatten().is_some(), paced, "{ms} ms in {within} s");
        // Where a test of TCP alone takes all the time there are none.
        assert_eq!(trains.is_some(), (ms, within) != (300, 12), "{ms} ms in {within} s");
    }
}

#[test]
fn a_time_without_room_for_one_test_is_wrong_use_and_says_how_much_would_do() {
    let first = FirstRtts { small_ns: 1_000_000, large_ns: 1_000_000 };
    let refusal = |within: u64| {
        let examination = examination(Some(Duration::from_secs(within)));
        let run = run_of(&examination, first);
        let tool = Tool { name: "linerate".to_owned(), version: "0".to_owned() };
        let mut watch = |_: &Event| {};
        let context = Context { tool, stop: Stop::default(), watch: &mut watch };
        run.too_short(Duration::ZERO, &context).and_then(|record| record.failure)
    };
    let failure = refusal(0).expect("a test takes time");
    assert_eq!((failure.fault, failure.exit_code()), (Fault::Usage, 2), "{failure}");
    // Both ways of 0.2 s and 67 ms beside, and the reserve: 0.6 s.
    assert!(failure.to_string().contains("allow --within 1s"), "{failure}");
    assert_eq!(refusal(1), None);
}

#[test]
fn what_keeps_trains_from_being_sent_is_a_caveat_and_not_a_failure() {
    // Port 1 (tcpmux) of loopback is nobody's.
    let mut examination = examination(None);
    examination.server = ServerPlan::new(None, "127.0.0.1", 1);
    let first = FirstRtts { small_ns: 1_000_000, large_ns: 1_000_000 };
    let mut run = run_of(&examination, first);
    let tool = Tool { name: "linerate".to_owned(), version: "0".to_owned() };
    let mut watch = |_: &Event| {};
    let context = Context { tool, stop: Stop::default(), watch: &mut watch };
    let mut examined = Examined::default();
    run.trains(false, &context, &mut examined);
    let caveat = examined.caveat.expect("nobody is there");
    assert_eq!(caveat.code, CaveatCode::TrainsMissing);
    assert!(caveat.detail.contains("127.0.0.1:1"), "{caveat}");
    assert_eq!((examined.trains.len(), examined.records.len()), (0, 0));
}

#[test]
fn without_a_limit_every_test_of_the_list_is_made() {
    let examination = examination(None);
    let first = FirstRtts { small_ns: 600_000_000, large_ns: 600_000_000 };
    let plans = examination.tcp_plans(first);
    assert_eq!(plans.len(), WINDOWS_BYTES.len() + STREAMS.len());
    let run = run_of(&examination, first);
    assert!(plans.iter().all(|plan| run.fits_remaining_time(Duration::from_secs(86_400), plan)));
    // The kernel's own window with one stream is the first.
    assert_eq!((plans[0].test.streams, plans[0].test.window_bytes), (1, None));
}
