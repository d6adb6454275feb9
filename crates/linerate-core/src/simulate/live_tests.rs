//! The model beside the kernel: what Linux 6.18 carried over emulated paths, one flow of eight
//! seconds, 100 Mbit/s and 40 ms of round trip where the path does not say otherwise, a buffer of a
//! bandwidth-delay product. Only paths whose live figures repeat are here: with a few losses in a
//! run they spread by a third.

use std::time::Duration;

use super::tests::{MS, Path, at_s, fast, flow, plain, steady_bps};
use super::{CongestionControl, TcpChoice, TcpModel, mtu_bytes};
use crate::record::ControlName::{self, Bbr, Cubic};
use crate::record::{Finish, LossRecovery, PathPlan, SimulatePlan, SimulatedTcp};
use crate::time::MonoTime;

const BASE: &str = "rate = \"100 Mbit/s\"\ndelay = \"20 ms\"\nbuffer = \"1 BDP\"\n";

/// Name, congestion control, keys of the path, and Mbit/s of the kernel.
const LIVE: [(&str, ControlName, &str, f64); 15] = [
    ("nothing", Cubic, "", 91.9),
    ("nothing, BBR", Bbr, "", 91.1),
    ("jitter", Cubic, "jitter = { most = \"10 ms\" }", 91.2),
    ("reordering", Cubic, "reorder = { share = \"2%\", extra = \"5 ms\" }", 90.3),
    ("ACKs lost", Cubic, "backward = { loss = \"10%\" }", 87.4),
    ("loss, BBR", Bbr, "forward = { loss = \"1%\" }", 89.9),
    ("RED", Cubic, "queue = \"red\"", 83.1),
    ("CoDel", Cubic, "queue = \"codel\"", 85.1),
    ("shaper", Cubic, "forward.shaper = { rate = \"20 Mbit/s\", burst = \"15 kB\" }", 19.1),
    ("packet rate", Cubic, "forward = { packets_per_sec = 2000 }", 22.7),
    ("half duplex", Cubic, "rate = \"10 Mbit/s\"\nhalf_duplex = true", 9.0),
    ("deep buffer", Cubic, "rate = \"20 Mbit/s\"\nbuffer = \"5 MB\"", 18.6),
    ("burst loss", Cubic, "forward.burst_loss = { ratio = \"0.3%\", burst_packets = 5.0 }", 27.3),
    ("trunk", Cubic, "trunk = [\"25 Mbit/s\", \"25 Mbit/s\", \"25 Mbit/s\", \"25 Mbit/s\"]", 23.3),
    ("other traffic", Cubic, "forward.cross = [{ rate = \"70 Mbit/s\", poisson = true }]", 25.6),
];

fn mbps(control: ControlName, keys: &str, seed: u64) -> f64 {
    let mut path: toml::Table = crate::tree::from_toml(BASE).expect("a path");
    path.extend(crate::tree::from_toml::<toml::Table>(keys).expect("keys of a path"));
    if path.contains_key("trunk") {
        path.remove("rate");
    }
    let mut path: PathPlan = path.try_into().expect("a path");
    path.seed = Some(seed);
    let choice = TcpChoice { congestion_control: Some(control), ..TcpChoice::default() };
    let tcp = choice.model_for_mtu(mtu_bytes(&path)).expect("a possible segment");
    let plan = SimulatePlan {
        path: Box::new(path),
        place: None,
        tcp: SimulatedTcp::from(&tcp),
        streams: 1,
        finish: Finish::TimeNs(8_000_000_000),
        omit_ns: 0,
        start_spread_ns: 0,
        time_max_ns: 60_000_000_000,
        background: None,
    };
    let (simulation, _) = plan.start_simulation(false).expect("it can be simulated");
    simulation.run(plan.latest_end()).flows[0].acked_bytes as f64 / 1e6
}

#[test]
fn the_model_carries_what_the_kernel_carried() {
    for (name, control, keys, live) in LIVE {
        let mut runs = [1, 2, 3].map(|seed| mbps(control, keys, seed));
        runs.sort_by(f64::total_cmp);
        let share = runs[1] / live;
        assert!((share - 1.0).abs() <= 0.15, "{name}: {runs:?}, the kernel {live}");
    }
}

/// A transfer of 1000 segments with these packets lost: time-outs, and what the losses cost.
fn repair(recovery: LossRecovery, lose: &[u64]) -> (u64, f64) {
    let tcp = TcpModel { recovery, ..plain(1448) };
    let run = |lose: &[u64]| {
        let path = Path { lose: lose.to_vec(), ..fast(100 * MS) };
        path.run(&[flow(tcp, Some(1_448_000))], 60).flows.remove(0)
    };
    let (with, without) = (run(lose), run(&[]));
    assert_eq!(with.acked_bytes, 1_448_000);
    let time = |flow: &super::FlowResult| flow.finished_after.expect("it ends").as_secs_f64();
    (with.timeouts, time(&with) - time(&without))
}

#[test]
fn a_retransmission_that_is_lost_waits_for_the_timer_without_rack() {
    // Segment 300, and one more packet: where that is the retransmission RFC 6675 does not see it.
    let lost_twice: Vec<u64> =
        (560..700).filter(|&again| repair(LossRecovery::Sack, &[300, again]).0 > 0).collect();
    assert!(!lost_twice.is_empty(), "one of them is the retransmission");
    for again in lost_twice {
        let (_, with_timer) = repair(LossRecovery::Sack, &[300, again]);
        let (timeouts, cost) = repair(LossRecovery::Rack, &[300, again]);
        // A round trip and a bit more for each, instead of 300 ms.
        assert!(timeouts == 0 && cost < with_timer, "{again}: {cost} s, by the timer {with_timer}");
    }
}

#[test]
fn a_lost_tail_is_repaired_by_a_probe_and_not_by_the_timer() {
    // The last two of 1000 segments. RFC 8985 §7.2: a probe leaves two round trips (and 8 ms) after
    // the last acknowledgement, so 208 ms late; its own comes at 308, that of the other at 408. The
    // timer of RFC 6298 runs out at 300 ms, and then the two are repaired one after the other.
    let (timeouts, cost) = repair(LossRecovery::Rack, &[998, 999]);
    assert_eq!(timeouts, 0);
    assert!((0.405..0.415).contains(&cost), "{cost}");
    let (timeouts, cost) = repair(LossRecovery::Sack, &[998, 999]);
    assert_eq!(timeouts, 1);
    assert!((0.49..0.52).contains(&cost), "{cost}");
}

#[test]
fn reordering_within_a_quarter_of_a_round_trip_costs_nothing() {
    let tcp = |recovery| SimulatedTcp::from(&TcpModel { recovery, ..TcpModel::TODAY });
    let keys =
        "rate = \"100 Mbit/s\"\ndelay = \"20 ms\"\nreorder = { share = \"2%\", extra = \"5 ms\" }";
    let path: PathPlan = crate::tree::from_toml(keys).expect("a path");
    let [rack, sack] = [LossRecovery::Rack, LossRecovery::Sack].map(|recovery| {
        let plan = SimulatePlan {
            path: Box::new(path.clone()),
            place: None,
            tcp: tcp(recovery),
            streams: 1,
            finish: Finish::TimeNs(8_000_000_000),
            omit_ns: 0,
            start_spread_ns: 0,
            time_max_ns: 60_000_000_000,
            background: None,
        };
        let (simulation, _) = plan.start_simulation(false).expect("it can be simulated");
        simulation.run(plan.latest_end()).flows[0].acked_bytes as f64 / 1e6
    });
    // Three arrivals above a late one are a loss for RFC 6675.
    assert!(rack > 88.0 && sack < 20.0, "{rack}, {sack}");
}

fn bbr(offload: bool) -> TcpModel {
    let congestion_control = CongestionControl::Bbr;
    TcpModel { congestion_control, recovery: LossRecovery::Rack, offload, ..plain(1448) }
}

#[test]
fn bbr_fills_a_path_whose_loss_stops_the_others() {
    // Measured on Linux, 50 Mbit/s and 40 ms: 45.2 of 48.3 with 1 % of loss, 43.5 with five packets
    // of buffer; CUBIC 2.6 and 5.2.
    let path = Path { rate_bps: 50_000_000, buffer_packets: 173, ..fast(40 * MS) };
    let lossy = Path { loss: 0.01, ..path.clone() };
    let shallow = Path { buffer_packets: 5, ..path.clone() };
    for (path, live) in [(&lossy, 45.2 / 48.3), (&shallow, 43.5 / 48.3)] {
        let share = steady_bps(path, bbr(true), 2, 12) / 50e6;
        assert!((share - live).abs() < 0.08, "{share}, the kernel {live}");
    }
    // At the start 2.885 of the bandwidth-delay product of 173 packets are under way: 325 more.
    let deep = Path { buffer_packets: 400, ..path };
    let result = deep.run(&[flow(bbr(true), None)], 8);
    assert_eq!(result.flows[0].retransmitted, 0, "{:?}", result.flows[0]);
}

#[test]
fn bbr_drains_the_queue_every_ten_seconds_and_keeps_the_rate() {
    // 200 ms at four segments in 10.2 s: 2 % at the most, and the pace at 0.99.
    let path = Path { rate_bps: 50_000_000, buffer_packets: 1000, ..fast(40 * MS) };
    let share = steady_bps(&path, bbr(false), 3, 43) / 50e6;
    assert!((0.94..0.995).contains(&share), "{share}");
    let mut simulation = path.simulate(&[flow(bbr(false), None)]);
    let mut least = u64::MAX;
    // Acknowledged in each 20 ms of the second round of ten seconds: nearly nothing once.
    let mut before = 0;
    for step in 1..=1100_u64 {
        simulation.advance(MonoTime::default() + Duration::from_millis(20 * step));
        let acked = simulation.acked_bytes();
        if step > 100 {
            least = least.min(acked - before);
        }
        before = acked;
    }
    // 20 ms at 50 Mbit/s are 86 segments; four in a round trip of 40 ms are two.
    assert!(least <= 4 * 1448, "{least}");
    let all = simulation.run(at_s(23)).flows[0].acked_bytes;
    assert!(all > 100_000_000, "{all}");
}
