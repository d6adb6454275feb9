//! Verdicts of stored live records with planted causes (testdata/explain), and the traps of the
//! kernel's counters, each as evidence by hand.

use super::*;
use crate::record::{
    At, Cause, Confidence, HostAdvice, Note, Outcome, Remedy, RemedyCommand, RemedyLine,
    SocketBuffer, SynOptions,
};
use crate::theory::ladder::Response;

fn record(name: &str) -> Record {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/explain/records/");
    let text = std::fs::read_to_string(format!("{root}{name}.json")).expect("it is there");
    crate::tree::from_json(&text).expect("a record")
}

fn verdict(name: &str) -> LimitVerdict {
    let verdicts = diagnose(&record(name));
    assert_eq!(verdicts.len(), 1, "{name}");
    verdicts.into_iter().next().expect("one")
}

fn commands(lines: &[RemedyLine], at: At) -> Vec<&RemedyCommand> {
    let lines = lines.iter().filter(|line| line.at == at);
    let commands = lines.filter_map(|line| match &line.remedy {
        Remedy::Line(command) => Some(command),
        _ => None,
    });
    commands.collect()
}

#[test]
fn the_plan_of_an_emulated_path_changes_no_verdict() {
    let seen = record("base");
    assert!(!seen.paths.is_empty() && seen.ceiling.is_some());
    let mut blind = seen.clone();
    blind.paths.clear();
    (blind.ceiling, blind.ceiling_reverse, blind.cell, blind.name) = (None, None, None, None);
    blind.tags.clear();
    assert_eq!(diagnose(&seen), diagnose(&blind));
}

#[test]
fn a_planted_cause_is_named() {
    for (name, cause) in [
        ("rmem", Cause::ReceiveWindow),
        ("rmembbr", Cause::ReceiveWindow),
        ("noscale", Cause::ReceiveWindow),
        ("ownw", Cause::ReceiveWindow),
        ("strip", Cause::Middlebox),
        ("wmembbr", Cause::SendBuffer),
        ("pace", Cause::SendingApplication),
        ("short", Cause::StartUp),
        ("ackpath", Cause::AckPath),
        ("outages", Cause::Outages),
        ("hole", Cause::MtuBlackHole),
    ] {
        let found = verdict(name);
        assert_eq!((found.outcome, found.cause), (Outcome::Limited, Some(cause)), "{name}");
        assert!(!found.evidence.is_empty() && !found.remedy.is_empty(), "{name}");
    }
}

#[test]
fn a_full_path_is_no_fault_whatever_else_was_seen_on_it() {
    for name in ["base", "basebbr", "reord", "jitter", "loss2bbr", "bloat"] {
        let found = verdict(name);
        let wanted = (Outcome::AtCeiling, Some(Cause::Link));
        assert_eq!((found.outcome, found.cause), wanted, "{name}");
    }
    let innocent = |name, cause| verdict(name).innocent.iter().any(|it| it.cause == cause);
    assert!(innocent("reord", Cause::Reordering));
    assert!(innocent("basebbr", Cause::RandomLoss));
    assert!(innocent("jitter", Cause::OtherTraffic));
}

#[test]
fn losses_that_tcp_alone_cannot_tell_apart_are_undetermined() {
    for (name, planted) in
        [("loss2", Cause::RandomLoss), ("pol", Cause::Policer), ("buf5", Cause::SmallBuffer)]
    {
        let found = verdict(name);
        assert_eq!((found.outcome, found.cause), (Outcome::Undetermined, None), "{name}");
        assert!(found.between.contains(&planted), "{name}");
        assert!(found.deciding_test.is_some(), "{name}");
    }
}

#[test]
fn a_queue_is_the_delay_s_cause_and_not_the_rate_s() {
    let delay = |name| verdict(name).latency.and_then(|latency| latency.cause);
    assert_eq!(delay("bloat"), Some(Cause::StandingQueue));
    assert_eq!(delay("ackpath"), Some(Cause::AckPath));
    assert_eq!(delay("base"), None);
}

#[test]
fn a_remedy_is_a_line_for_the_end_that_needs_it() {
    // 1 Gbit/s over 40.1 ms is 5.01 MB; twice that is 9.56 MiB, so 10 MiB.
    let raised = |buffer, default_bytes| RemedyCommand::RaiseBuffer {
        buffer,
        least_bytes: 4096,
        default_bytes,
        bytes: 10_485_760,
    };
    let receive = raised(SocketBuffer::Receive, 131_072);
    assert_eq!(commands(&verdict("rmem").remedy, At::Receiver), [&receive]);
    let send = raised(SocketBuffer::Send, 16_384);
    assert_eq!(commands(&verdict("wmembbr").remedy, At::Sender), [&send]);
    let scaled = [&RemedyCommand::ScaleWindows];
    assert_eq!(commands(&verdict("noscale").remedy, At::Receiver), scaled);
    let first = verdict("ownw").remedy.remove(0).remedy;
    assert!(matches!(first, Remedy::Advice(HostAdvice::LeaveOutWindow { .. })), "{first:?}");
}

#[test]
fn a_measurement_that_the_tester_spoilt_has_no_verdict() {
    use crate::record::{Caveat, CaveatCode};
    let mut spoilt = record("rmem");
    spoilt.caveats.push(Caveat::new(CaveatCode::StolenTime, "9 % of its CPU time", "repeat"));
    let found = diagnose(&spoilt).remove(0);
    assert_eq!((found.outcome, found.cause), (Outcome::NoVerdict, None));
    // An emulator that was late by a few packets says itself that the run is valid.
    assert!(record("base").caveats.iter().any(|it| it.code == CaveatCode::EmulatorLate));
}

/// A flow that fills 94 of 100 Mbit/s over 40 ms, with nothing wrong.
fn healthy() -> Evidence {
    Evidence {
        direction: Some(Direction::Up),
        flows: 1,
        rate: RateEvidence {
            mean_bps: Some(92e6),
            steady_bps: Some(94e6),
            intervals_bps: vec![78e6, 94e6, 94e6, 94e6, 94e6],
            delivery_bps: Some(94e6),
            bytes: Some(92e6),
            interval_s: None,
            span_s: Some(8.0),
        },
        rtt: RoundTrips {
            base_s: Some(0.040),
            base_is_idle: true,
            base_is_loaded: false,
            loaded_s: Some(0.068),
            loaded_p95_s: Some(0.080),
            loaded_p10_s: Some(0.060),
            intervals_s: Vec::new(),
        },
        window: Windows {
            offered_bytes: Some(4e6),
            offered_range: Some((4e6, 4e6)),
            cwnd_bytes: Some(8e5),
            left_slow_start: Some(true),
            send_buffer_bytes: Some(3.2e6),
            ..Windows::default()
        },
        loss: Loss {
            retransmits: Some(36.0),
            ratio: Some(5e-4),
            response: Some(Response::Cubic),
            ..Loss::default()
        },
        mss_bytes: Some(1448),
        packet_bytes: Some(1500),
        ..Evidence::default()
    }
}

/// A receive window of 39 kB over 40 ms: 7.8 Mbit/s.
fn windowed() -> Evidence {
    let base = healthy();
    Evidence {
        rate: RateEvidence {
            mean_bps: Some(7.4e6),
            steady_bps: Some(7.5e6),
            ..RateEvidence::default()
        },
        rtt: RoundTrips { loaded_s: Some(0.0405), ..base.rtt.clone() },
        window: Windows {
            offered_bytes: Some(39e3),
            offered_range: Some((39e3, 39e3)),
            ..base.window.clone()
        },
        loss: Loss { retransmits: Some(0.0), ratio: Some(0.0), ..base.loss.clone() },
        ..base
    }
}

#[test]
fn the_kernel_s_counters_of_waiting_decide_nothing() {
    // One window: 98 % "limited by the receiver" under CUBIC, 43 % under BBR (trap 5); one send
    // buffer: 0 % and 37 % (trap 4).
    for share in [0.98, 0.43, 0.0] {
        let mut evidence = windowed();
        evidence.window.window_limited = Some(share);
        assert_eq!(judge_direction(&evidence).cause, Some(Cause::ReceiveWindow), "{share}");
        let mut full = healthy();
        full.window.window_limited = Some(share);
        full.window.buffer_limited = Some(share);
        assert_eq!(judge_direction(&full).outcome, Outcome::AtCeiling, "{share}");
    }
}

#[test]
fn the_application_limited_flag_alone_accuses_no_application() {
    // It said 71 to 81 % for send buffers and for writes of 16 KiB (trap 3).
    let mut full = healthy();
    full.window.application_limited = Some(0.81);
    assert_eq!(judge_direction(&full).outcome, Outcome::AtCeiling);
    let mut buffer = windowed();
    buffer.window.application_limited = Some(0.78);
    buffer.window.offered_bytes = Some(4e6);
    buffer.window.send_buffer_bytes = Some(64e3);
    buffer.window.send_memory_bytes = Some(64e3);
    buffer.sender.blocked = Some(0.95);
    assert_eq!(judge_direction(&buffer).cause, Some(Cause::SendBuffer));
}

#[test]
fn a_sender_that_sleeps_is_busy_to_the_kernel_and_still_its_own_limit() {
    // 20 of 50 Mbit/s: busy_time said 100 % (trap 2); the thread's own clock tells.
    let mut evidence = windowed();
    evidence.window.offered_bytes = Some(4e6);
    evidence.sender.blocked = Some(0.02);
    evidence.sender.asleep = Some(0.9);
    (evidence.sender.cpu, evidence.sender.waited) = (Some(0.05), Some(0.01));
    assert_eq!(judge_direction(&evidence).cause, Some(Cause::SendingApplication));
}

#[test]
fn a_window_above_what_its_header_holds_is_not_believed() {
    // Without a scale tcpi_rcv_wnd was 388,064, and 65,535 bytes moved each round trip.
    let mut evidence = windowed();
    evidence.window.offered_bytes = Some(388_064.0);
    evidence.rate.steady_bps = Some(12.8e6);
    evidence.syn.sender_agreed = Some(Agreed { timestamps: true, sack: true, window_scale: false });
    assert_eq!(evidence.offered_bytes(), Some(65_535.0));
    assert_eq!(judge_direction(&evidence).cause, Some(Cause::ReceiveWindow));
}

#[test]
fn a_full_window_behind_a_queue_is_the_link_s() {
    // W / RTT is the rate of every flow whose window is full; with a queue the link sets the RTT.
    let mut evidence = healthy();
    evidence.window.offered_bytes = Some(800e3);
    assert_eq!(judge_direction(&evidence).cause, Some(Cause::Link));
}

#[test]
fn retransmissions_that_were_not_needed_are_order_and_not_loss() {
    let mut evidence = windowed();
    evidence.window.offered_bytes = Some(4e6);
    evidence.window.cwnd_bytes = Some(40e3);
    evidence.loss = Loss {
        retransmits: Some(500.0),
        ratio: Some(0.01),
        needless: Some(300.0),
        ..evidence.loss
    };
    assert_eq!(judge_direction(&evidence).cause, Some(Cause::Reordering));
}

#[test]
fn a_host_without_a_cpu_to_run_on_is_named_before_the_path() {
    // A quota of 20 % shows as CPU of 20 % of the time; the wait for a CPU tells (C1, C2).
    for side in [Cause::SendingHost, Cause::ReceivingHost] {
        let mut evidence = healthy();
        let host = match side {
            Cause::SendingHost => &mut evidence.sender,
            _ => &mut evidence.receiver,
        };
        (host.cpu, host.waited) = (Some(0.2), Some(0.75));
        let found = judge_direction(&evidence);
        assert_eq!((found.cause, found.confidence), (Some(side), Some(Confidence::Medium)));
    }
}

#[test]
fn nothing_seen_is_nothing_said() {
    let found = judge_direction(&Evidence::default());
    assert_eq!((found.outcome, found.cause), (Outcome::Undetermined, None));
}

#[test]
fn probes_that_are_refused_while_data_flows_are_no_outage() {
    let mut evidence = healthy();
    let span = evidence.rate.span_s.expect("it ran");
    evidence.probes.gaps = Some((5, 0.1 * span));
    evidence.loss.timeouts = Some(2.0);
    assert_eq!(judge_direction(&evidence).cause, Some(Cause::Outages));
    // Live: UDP policed to 30 packets a second, TCP at 27.98 of 27.94 Mbit/s.
    evidence.loss.timeouts = Some(0.0);
    evidence.rate.delivery_bps = evidence.rate.steady_bps;
    assert_ne!(judge_direction(&evidence).cause, Some(Cause::Outages));
}

#[test]
fn a_pace_of_reading_that_was_asked_for_and_kept_is_the_limit() {
    let mut evidence = healthy();
    evidence.asked.read_pace_bps = evidence.steady_bps().map(|bps| bps * 1.01);
    assert_eq!(judge_direction(&evidence).cause, Some(Cause::ReceivingApplication));
    evidence.asked.read_pace_bps = evidence.steady_bps().map(|bps| bps * 2.0);
    assert_ne!(judge_direction(&evidence).cause, Some(Cause::ReceivingApplication));
}

#[test]
fn a_connection_that_stalls_over_a_rewritten_window_is_no_black_hole() {
    let mut evidence = healthy();
    evidence.rate.bytes = Some(2_000.0);
    evidence.probes.lost = Some(0.0);
    assert_eq!(judge_direction(&evidence).cause, Some(Cause::MtuBlackHole));
    for host in [&mut evidence.sender, &mut evidence.receiver] {
        host.window_scaling = Some(true);
    }
    // Taken from the SYN-ACK alone: the sender does not scale, the receiver does.
    let agreed = |window_scale| Some(Agreed { timestamps: true, sack: true, window_scale });
    (evidence.syn.sender_agreed, evidence.syn.receiver_agreed) = (agreed(false), agreed(true));
    let verdict = judge_direction(&evidence);
    assert_eq!(verdict.cause, Some(Cause::Middlebox), "{verdict:?}");
}

#[test]
fn time_outs_that_end_with_smaller_segments_are_a_black_hole() {
    let mut probed = healthy();
    let syn = SynOptions { mss_bytes: Some(1460), ..SynOptions::default() };
    (probed.syn.arrived, probed.sender.mtu_probing) = (Some(syn), Some(1));
    (probed.mss_bytes, probed.loss.timeouts) = (Some(512), Some(2.0));
    let is_hole =
        |evidence: &Evidence| judge_direction(evidence).cause == Some(Cause::MtuBlackHole);
    assert!(is_hole(&probed));
    // 95 % of the 1460 bytes that were agreed are 1387: timestamps alone take 12.
    assert!(!is_hole(&Evidence { mss_bytes: Some(1388), ..probed.clone() }));
    let asked = TestOptions { mss_bytes: Some(512), ..TestOptions::default() };
    assert!(!is_hole(&Evidence { asked, ..probed.clone() }), "the user's own");
    probed.loss.timeouts = Some(1.0);
    assert!(!is_hole(&probed), "one time-out is none of size");
}

/// A flow of so many Mbit/s without a queue, of whose path nothing was measured.
fn plain(mbps: f64) -> Evidence {
    let mut evidence = healthy();
    evidence.rate = RateEvidence { mean_bps: Some(mbps * 1e6), ..RateEvidence::default() };
    evidence.rtt.loaded_s = Some(0.041);
    evidence
}

#[test]
fn a_rate_that_a_known_link_or_shaper_bounds_is_its() {
    // An E3 of 34.368 Mbit/s: 33.9 of IP packets, times 1448 / 1500, are 32.7248 of payload.
    let mut stated = plain(32.5);
    assert_eq!(judge_direction(&stated).cause, None);
    (stated.stated_bps, stated.sender.speed_bps) = (Some(33.9e6), Some(1e9));
    let verdict = judge_direction(&stated);
    assert_eq!((verdict.outcome, verdict.cause), (Outcome::AtCeiling, Some(Cause::Link)));
    let allowed = verdict.ceiling_bps.expect("its payload");
    assert!((allowed - 32_724_800.0).abs() < 1.0, "{allowed}");
    // Ethernet of 100 Mbit/s: 1448 of 1538 bytes are payload (IEEE 802.3), 94.148 Mbit/s.
    let mut port = plain(90.0);
    port.receiver.speed_bps = Some(100e6);
    let allowed = judge_direction(&port).ceiling_bps.expect("its payload");
    assert!((allowed - 94_148_244.0).abs() < 1.0, "{allowed}");
    let mut shaped = plain(18.0);
    shaped.sender.shaper_bps = Some(20e6);
    assert_eq!(judge_direction(&shaped).cause, Some(Cause::Shaper));
    let below = plain(10.0);
    assert_eq!(judge_direction(&Evidence { stated_bps: Some(33.9e6), ..below }).cause, None);
}

#[test]
fn hosts_that_both_have_sack_on_a_connection_without_it_met_a_middlebox() {
    let mut stripped = plain(7.5);
    (stripped.loss.retransmits, stripped.loss.ratio) = (Some(500.0), Some(0.01));
    (stripped.sender.sack, stripped.receiver.sack) = (Some(true), Some(true));
    let agreed = |sack| Some(Agreed { timestamps: true, sack, window_scale: true });
    for (sack, receiver, cause) in [
        (false, true, Some(Cause::Middlebox)),
        // Agreed, or not offered by one end: losses as any others.
        (true, true, None),
        (false, false, None),
    ] {
        stripped.syn.sender_agreed = agreed(sack);
        stripped.receiver.sack = Some(receiver);
        assert_eq!(judge_direction(&stripped).cause, cause, "{sack} {receiver}");
    }
}

#[test]
fn bbr_that_keeps_to_the_rate_it_found_fills_its_link() {
    let mut found = plain(60.0);
    (found.rate.delivery_bps, found.loss.ratio) = (Some(61e6), Some(0.03));
    assert_eq!(judge_direction(&found).cause, None, "CUBIC keeps a queue at a full link");
    found.loss.response = Some(Response::Bbr);
    let verdict = judge_direction(&found);
    assert_eq!((verdict.outcome, verdict.ceiling_bps), (Outcome::AtCeiling, Some(61e6)));
    // 60 Mbit/s over 41 ms are 307,500 bytes in flight: 96 % of a window of 320 kB.
    found.window.cwnd_bytes = Some(320e3);
    assert_eq!(judge_direction(&found).cause, None, "its window holds it");
    (found.window.cwnd_bytes, found.loss.ratio) = (Some(8e5), Some(0.05));
    assert_eq!(judge_direction(&found).cause, None, "it loses more than a link without fault");
}

#[test]
fn a_steady_rate_of_ethernet_is_a_full_link_where_no_round_trip_is_known() {
    let blind = |mbps| {
        let rtt = RoundTrips::default();
        Evidence { rtt, ..plain(mbps) }
    };
    // 1448 of 1538 bytes of 10 Mbit/s, 100 Mbit/s and 2.5 Gbit/s.
    for mbps in [9.415, 94.15, 2353.7] {
        let verdict = judge_direction(&blind(mbps));
        assert_eq!((verdict.outcome, verdict.cause), (Outcome::AtCeiling, Some(Cause::Link)));
    }
    assert_eq!(judge_direction(&blind(80.0)).cause, None);
    let mut known = blind(94.15);
    known.rtt.base_is_idle = true;
    assert_eq!(judge_direction(&known).cause, None, "its queue would show");
}

#[test]
fn the_next_limit_is_told_where_a_link_or_trains_tell_what_the_path_carries() {
    let unmeasured = |evidence: &Evidence| {
        let verdict = judge_direction(evidence);
        let said = verdict.notes.contains(&Note::PathNotMeasured);
        assert_eq!(said, verdict.next.is_none(), "{verdict:?}");
        said
    };
    let mut window = windowed();
    assert!(unmeasured(&window));
    window.sender.speed_bps = Some(100e6);
    assert!(!unmeasured(&window), "the sender's interface");
    window.sender.speed_bps = None;
    window.capacity_bps = Some(97e6);
    assert!(!unmeasured(&window), "trains of probes");
}

#[test]
fn a_full_segment_s_packet_is_the_path_s_unless_segments_are_small() {
    let packet = |mss_bytes, packet_bytes| {
        path::packet_bytes(&Evidence { mss_bytes, packet_bytes, ..Evidence::default() })
    };
    assert_eq!(packet(Some(1448), Some(1500)), 1500);
    // 524 bytes, 20 of IPv4, 20 of TCP and 12 of timestamps are the 576 of RFC 1122 §3.3.3.
    assert_eq!(packet(Some(524), Some(1500)), 576);
    // What is not known is Ethernet's.
    for (mss, bytes) in [(None, None), (Some(0), Some(1500)), (None, Some(67))] {
        assert_eq!(packet(mss, bytes), 1500);
    }
}

#[test]
fn a_queue_at_less_than_the_path_s_rate_or_behind_a_full_window_is_no_full_link() {
    let mut evidence = healthy();
    (evidence.rate.steady_bps, evidence.rate.delivery_bps) = (Some(60e6), Some(60e6));
    assert_eq!(judge_direction(&evidence).outcome, Outcome::AtCeiling);
    // Trains left the bottleneck at 97 Mbit/s: the queue is not before that.
    let below = Evidence { capacity_bps: Some(97e6), ..evidence.clone() };
    assert_ne!(judge_direction(&below).outcome, Outcome::AtCeiling);
    // 60 Mbit/s over 68 ms are 510,000 bytes: a full window, and no round trip at rest is known.
    evidence.rtt.base_is_idle = false;
    assert_eq!(judge_direction(&evidence).outcome, Outcome::AtCeiling);
    evidence.window.offered_bytes = Some(520e3);
    assert_ne!(judge_direction(&evidence).outcome, Outcome::AtCeiling);
}
