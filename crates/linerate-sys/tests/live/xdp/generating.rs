//! The generator, its frames seen by a packet capture.

use std::time::Duration;

use linerate_core::device::{
    FrameLoad, FramePace, FrameTemplate, SendTiming, SendWatch, Signature, WatchRule, WhenLate,
};
use linerate_core::time::MonoTime;
use linerate_sys::bpf::XdpLink;
use linerate_sys::clock;
use linerate_sys::packet_capture::{CaptureOptions, PacketCapture};
use linerate_sys::stop::Stop;
use linerate_sys::xdp::{Generator, GeneratorOptions, GeneratorWindow, hold_napi};

use super::bench::{Cable, FAR, NEAR, inside, wait_for};
use super::frames::{TRIAL, check_frame, ipv4_udp, ipv6_udp, varied};

const MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];

/// A cable with a capture at the far end.
struct Watched {
    cable: Cable,
    capture: PacketCapture,
    _napi: [XdpLink; 2],
}

impl Watched {
    fn new() -> Option<Self> {
        let cable = Cable::new(1500)?;
        let napi = [(&cable.near, NEAR), (&cable.far, FAR)]
            .map(|(netns, index)| inside(netns, || hold_napi(index).expect("a program")));
        let mut options = CaptureOptions::of_interface("far");
        options.promiscuous = true;
        let capture = inside(&cable.far, || PacketCapture::open(&options).expect("a capture"));
        Some(Self { cable, capture, _napi: napi })
    }

    fn generator(&self, templates: Vec<FrameTemplate>) -> Generator {
        let options = GeneratorOptions::new(NEAR, 5, TRIAL, templates);
        inside(&self.cable.near, || Generator::open(options).expect("a generator"))
    }

    /// Sends a round of frames as fast as it goes and looks at each.
    fn check(&mut self, template: &FrameTemplate) {
        const ROUND: usize = 100;
        let mut generator = self.generator(vec![template.clone()]);
        let sent =
            generator.run(&load(ROUND as u64, FramePace::Flood), &Stop::new()).expect("sent");
        assert_eq!((sent.frames, sent.refused), (ROUND as u64, 0));
        assert_eq!(sent.bytes, (ROUND * template.bytes.len()) as u64);
        for (number, frame) in self.take(ROUND).iter().enumerate() {
            let signature = check_frame(frame, template);
            let numbered = (signature.trial, signature.stream, signature.sequence);
            assert_eq!(numbered, (TRIAL, 5, number as u64));
        }
    }

    /// Takes until `count` frames are there.
    fn take(&mut self, count: usize) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        wait_for("captured frames", || {
            let wait = Duration::from_millis(100);
            self.capture
                .take_packets(wait, |packet| frames.push(packet.data.to_vec()))
                .expect("up");
            frames.len() >= count
        });
        frames
    }
}

fn load(frames: u64, pace: FramePace) -> FrameLoad {
    FrameLoad { frames, pace, when_late: WhenLate::KeepSchedule, burst: 1, mix: vec![0] }
}

const fn rate(frames_per_sec: u64) -> FramePace {
    FramePace::Rate { frames_per_sec }
}

#[test]
fn every_frame_is_as_its_template_says() {
    let Some(mut watched) = Watched::new() else { return };
    let mut lengths = vec![60, 61, 64, 127, 128, 143, 144, 145, 146, 510, 1514];
    lengths.extend(66..80);
    for length in lengths {
        watched.check(&ipv4_udp(length, MAC));
        watched.check(&varied(ipv4_udp(length, MAC), 35, false));
        if length >= 80 {
            watched.check(&varied(ipv6_udp(length), 35, true));
        }
    }
    watched.check(&varied(ipv4_udp(60, MAC), 4_000_000_000, true));
}

#[test]
fn numbers_go_on_in_a_trial_and_start_anew_in_the_next() {
    let Some(mut watched) = Watched::new() else { return };
    let mut generator = watched.generator(vec![ipv4_udp(60, MAC)]);
    assert!(generator.is_held());
    let progress = generator.progress();
    for _ in 0..2 {
        generator.run(&load(10, FramePace::Flood), &Stop::new()).expect("sent");
    }
    assert_eq!(progress.frames(), 20);
    generator.begin_trial(TRIAL + 1);
    generator.run(&load(10, FramePace::Flood), &Stop::new()).expect("sent");
    let expected = (0..20).map(|it| (TRIAL, it)).chain((0..10).map(|it| (TRIAL + 1, it)));
    let signatures = watched.take(30).into_iter().map(|it| Signature::at_end_of(&it));
    let seen = signatures.map(|it| it.map(|it| (it.trial, it.sequence)));
    assert!(seen.eq(expected.map(Some)));
}

#[test]
fn mixes_have_their_order_lengths_and_contents() {
    let Some(mut watched) = Watched::new() else { return };
    let templates = vec![
        varied(ipv4_udp(60, MAC), 35, false),
        varied(ipv6_udp(591), 20, true),
        ipv4_udp(1514, MAC),
    ];
    let mut generator = watched.generator(templates.clone());
    let mut load = load(120, FramePace::Flood);
    // Seven short, four middle and one long frame, in an order that repeats.
    load.mix = vec![0, 1, 0, 1, 0, 2, 0, 1, 0, 1, 0, 0];
    let sent = generator.run(&load, &Stop::new()).expect("sent");
    assert_eq!(sent.bytes, 70 * 60 + 40 * 591 + 10 * 1514);
    for (number, frame) in watched.take(120).iter().enumerate() {
        let template = &templates[usize::from(load.mix[number % 12])];
        assert_eq!(check_frame(frame, template).sequence, number as u64);
    }
}

/// When the frames of a run left, after its start.
fn departures(change: impl FnOnce(&mut FrameLoad)) -> Option<Vec<u64>> {
    let mut watched = Watched::new()?;
    let mut generator = watched.generator(vec![ipv4_udp(60, MAC)]);
    let mut load = load(200, rate(300_007));
    change(&mut load);
    let start = clock::monotonic() + Duration::from_millis(20);
    let window = GeneratorWindow { start: Some(start), deadline: None };
    let sent = generator.run_within(&load, &Stop::new(), window).expect("sent");
    assert_eq!(sent.frames, 200);
    let stamps: Vec<_> = watched.take(200).iter().map(|it| after(it, start)).collect();
    assert_eq!(sent.first_ns - start.as_nanos(), stamps[0]);
    assert_eq!(sent.last_ns - start.as_nanos(), stamps[199]);
    Some(stamps)
}

fn after(frame: &[u8], start: MonoTime) -> u64 {
    let stamp = Signature::at_end_of(frame).expect("signed").stamp;
    u64::from(stamp.wrapping_sub(start.as_nanos() as u32))
}

#[test]
fn no_frame_leaves_before_it_is_due() {
    let Some(stamps) = departures(|_| {}) else { return };
    for (number, after) in (0_u64..).zip(&stamps) {
        // floor(n / 300007 s) in ns.
        let due = number * 1_000_000_000 / 300_007;
        assert!((due..10_000_000_000).contains(after), "{number}: {after} before {due}");
    }
}

#[test]
fn no_burst_leaves_before_it_is_due() {
    let Some(stamps) = departures(|load| load.burst = 16) else { return };
    for (number, after) in (0_u64..).zip(&stamps) {
        let due = number / 16 * 16 * 1_000_000_000 / 300_007;
        assert!(*after >= due, "{number}: {after} before {due}");
    }
}

#[test]
fn kept_gaps_are_never_shorter_than_asked_for() {
    let Some(stamps) = departures(|load| load.when_late = WhenLate::KeepGap) else { return };
    // 3333.25 ns, rounded down where the schedule does.
    assert!(stamps.windows(2).all(|pair| pair[1] - pair[0] >= 3333), "{stamps:?}");
}

#[test]
fn the_program_says_of_its_own_times_what_they_say() {
    let Some((said, expected, stamps)) = said_and_stamped() else { return };
    let last = stamps[199];
    let bits: u32 = said.suspects.iter().map(|word| word.count_ones()).sum();
    assert_eq!(u64::from(bits), said.could_lose);
    // 199 gaps at 300,007/s are 663,317 ns, and the last frame may leave late, too.
    assert!(last >= 663_317, "{last}");
    assert!(said.steady_ns <= last + 1000, "{last}: {said:?}");
    // Its schedule moves after a pause, and the stamps do not tell by how much.
    if said.away_ns == 0 {
        assert_eq!(expected.away_ns, 0);
        assert_eq!(said.steady_gaps, expected.steady_gaps);
        // The stamps begin with the first frame, which may leave late, and the program with when it
        // was due, the start; a µs is for reading the clock.
        let least = expected.steady_ns.saturating_sub(1000);
        assert!(said.steady_ns >= least, "{last}: {said:?} {expected:?}");
        // It also knows which frames took longer than usual on their way.
        assert!(said.could_lose >= expected.could_lose, "{said:?} {expected:?}");
    } else {
        // What a busy machine took of the run is in the stamps: so late was the frame after each
        // pause at least, for the schedule moves back alone.
        let told: u64 = said.pauses.iter().map(|pause| pause.late_ns).sum();
        assert!(!said.pauses.is_empty() && told <= said.away_ns, "{said:?}");
        for pause in &said.pauses {
            let after = stamps[usize::try_from(pause.sequence).expect("of 200")];
            let behind = after.saturating_sub(due_ns(pause.sequence));
            assert!(behind + 1000 >= pause.late_ns, "{behind}: {said:?}");
        }
        assert!(said.steady_gaps <= 199, "{said:?}");
    }
}

/// When a frame of a load of 300,007/s is due, ns after the start.
const fn due_ns(number: u64) -> u64 {
    number * 1_000_000_000 / 300_007
}

/// What the program says of a run, what the stamps of its frames say, and when each frame left,
/// after the start.
fn said_and_stamped() -> Option<(SendTiming, SendTiming, Vec<u64>)> {
    let mut watched = Watched::new()?;
    let mut generator = watched.generator(vec![ipv4_udp(60, MAC)]);
    let load = load(200, rate(300_007));
    generator.begin_trial(7);
    let start = clock::monotonic() + Duration::from_millis(20);
    let window = GeneratorWindow { start: Some(start), deadline: None };
    let sent = generator.run_within(&load, &Stop::new(), window).expect("sent");
    let mut watch = SendWatch::new(WatchRule::from_load(&load, 1).expect("a rate"));
    let stamps: Vec<u64> = watched.take(200).iter().map(|frame| after(frame, start)).collect();
    for (number, after) in (0_u64..).zip(&stamps) {
        watch.add_departure(number, *after, after.saturating_sub(due_ns(number)));
    }
    Some((sent.timing, watch.finish(), stamps))
}

#[test]
fn slow_runs_end_by_stop_and_by_deadline() {
    let Some(watched) = Watched::new() else { return };
    let mut generator = watched.generator(vec![ipv4_udp(60, MAC)]);
    let forever = load(1_000_000, rate(10));
    let deadline = Some(clock::monotonic() + Duration::from_millis(150));
    let window = GeneratorWindow { start: None, deadline };
    let sent = generator.run_within(&forever, &Stop::new(), window).expect("sent");
    // Ten a second: one at once, one after 100 ms, and the next one is due after the deadline.
    assert!((1..=2).contains(&sent.frames), "{}", sent.frames);
    assert_eq!(sent.frames + sent.refused, generator.progress().frames());
    let stop = Stop::new();
    let progress = generator.progress();
    std::thread::scope(|scope| {
        let run = scope.spawn(|| generator.run(&forever, &stop).expect("sent"));
        let before = progress.frames();
        wait_for("a frame", || progress.frames() > before);
        stop.request_stop();
        assert!(run.join().expect("it ends").frames < 1000);
    });
}

#[test]
fn frames_that_nobody_takes_are_refused() {
    let Some(cable) = Cable::new(1500) else { return };
    // The far end has no NAPI: its driver refuses live frames, silently.
    let options = GeneratorOptions::new(NEAR, 0, TRIAL, vec![ipv4_udp(60, MAC)]);
    let mut generator = inside(&cable.near, || Generator::open(options).expect("a generator"));
    let sent = generator.run(&load(50, FramePace::Flood), &Stop::new()).expect("a run");
    assert_eq!((sent.frames, sent.refused, sent.bytes), (0, 50, 0));
}

#[test]
fn what_cannot_be_sent_is_refused() {
    let Some(watched) = Watched::new() else { return };
    let open = |templates| {
        let options = GeneratorOptions::new(NEAR, 0, TRIAL, templates);
        inside(&watched.cable.near, || Generator::open(options))
    };
    assert!(open(vec![]).is_err());
    let template = ipv4_udp(60, MAC);
    assert!(open(vec![FrameTemplate { bytes: vec![0; 29], ..template.clone() }]).is_err());
    assert!(open(vec![FrameTemplate { bytes: vec![0; 4000], ..template.clone() }]).is_err());
    assert!(open(vec![FrameTemplate { balance_at: Some(43), ..template.clone() }]).is_err());
    let mut generator = open(vec![template]).expect("a generator");
    let stop = Stop::new();
    assert!(generator.run(&load(1, rate(0)), &stop).is_err());
    assert!(generator.run(&FrameLoad { burst: 0, ..load(1, rate(1)) }, &stop).is_err());
    assert!(generator.run(&FrameLoad { mix: vec![1], ..load(1, rate(1)) }, &stop).is_err());
    assert!(generator.run(&FrameLoad { mix: vec![], ..load(1, rate(1)) }, &stop).is_err());
}
