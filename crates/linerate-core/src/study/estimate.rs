//! How long a study still takes: what the plan says, corrected by what the cells so far took.
//!
//! An estimate for a progress line; no result depends on it. Own rule: a cell takes its planned
//! time plus the mean excess of the cells of its test that were measured so far.

use std::collections::BTreeMap;
use std::time::Duration;

use super::CellPlan;
use crate::record::{Finish, PingMode, Plan, SimulatePlan};
use crate::units::BitRate;

/// Round trip that a flood is taken to have before any was measured, probe and turnaround: about
/// what a pair of namespaces on one machine shows.
const FLOOD_ROUND_TRIP_NS: u64 = 40_000;

/// Connecting, agreeing and tearing down around each measurement before any was measured.
const OVERHEAD_NS: u64 = 50_000_000;

/// Building and removing a laboratory before one was built.
const PREPARE_NS: u64 = 300_000_000;

/// Rate that a test by volume is taken to reach before any was measured.
const RATE_BPS: u64 = 1_000_000_000;

/// Time that a simulated segment is taken to need, with its acknowledgement: about what one core
/// needs.
const SEGMENT_S: f64 = 600e-9;

/// Segments a second of a simulated path that has no rate.
const SEGMENTS_PER_S: f64 = 10_000.0;

/// Payload of a datagram where the plan leaves it to the address: the most of a packet of 1500.
const UDP_SIZE_BYTES: u32 = 1472;

/// The time that `plan` asks for, without connecting and tearing down; a guess where the path
/// decides.
pub fn expected_ns(plan: &Plan) -> u64 {
    match plan {
        Plan::Tcp(tcp) => {
            let bytes_ns = |bytes: u64| bytes.saturating_mul(8) / (RATE_BPS / 1_000_000_000);
            let measured_ns = match tcp.test.finish {
                Finish::TimeNs(ns) => ns,
                Finish::Bytes(bytes) => bytes_ns(bytes),
                Finish::Buffers(n) => bytes_ns(n.saturating_mul(u64::from(tcp.test.buffer_bytes))),
            };
            tcp.test.omit_ns.saturating_add(measured_ns)
        }
        Plan::Udp(udp) => {
            let rate = udp.test.pace.map_or(RATE_BPS, BitRate::bits_per_sec).max(1);
            let bytes_ns = |bytes: u64| {
                let ns = u128::from(bytes) * 8_000_000_000 / u128::from(rate);
                u64::try_from(ns).unwrap_or(u64::MAX)
            };
            let size = u64::from(udp.test.size_bytes.unwrap_or(UDP_SIZE_BYTES));
            let measured_ns = match udp.test.finish {
                Finish::TimeNs(ns) => ns,
                Finish::Bytes(bytes) => bytes_ns(bytes),
                Finish::Buffers(n) => bytes_ns(n.saturating_mul(size)),
            };
            udp.test.omit_ns.saturating_add(measured_ns)
        }
        Plan::Ping(ping) => {
            let sizes = u64::try_from(ping.sizes_bytes.len()).unwrap_or(u64::MAX);
            let each_ns = match ping.mode {
                PingMode::Paced => ping.interval_ns,
                PingMode::Flood => FLOOD_ROUND_TRIP_NS,
                PingMode::Window(n) => FLOOD_ROUND_TRIP_NS / u64::from(n.max(1)),
            };
            sizes.saturating_mul(ping.count.unwrap_or(1)).saturating_mul(each_ns)
        }
        Plan::Bench(plan) => plan.expected_ns(),
        Plan::Test(plan) => plan.within_ns.unwrap_or(0),
        Plan::Trace(plan) => {
            let load =
                plan.load.as_ref().map_or(0, |load| expected_ns(&Plan::Tcp((**load).clone())));
            u64::from(plan.count).saturating_mul(plan.interval_ns).saturating_add(load)
        }
        Plan::Compare(plan) => {
            let first = plan.candidates.first();
            let round =
                plan.candidates.iter().chain(first).map(|candidate| expected_ns(&candidate.plan));
            u64::from(plan.rounds).saturating_mul(round.fold(0, u64::saturating_add))
        }
        Plan::Simulate(plan) => {
            let segments = match plan.finish {
                Finish::TimeNs(ns) => {
                    plan.omit_ns.saturating_add(ns) as f64 / 1e9 * segments_per_s(plan)
                }
                Finish::Bytes(bytes) => (bytes / u64::from(plan.tcp.mss_bytes.max(1))) as f64,
                Finish::Buffers(n) => n as f64,
            };
            let time = Duration::try_from_secs_f64(segments * SEGMENT_S).unwrap_or(Duration::MAX);
            u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
        }
    }
}

/// Full segments that a simulated path carries in a second.
fn segments_per_s(plan: &SimulatePlan) -> f64 {
    let packet_bytes = plan.tcp.mss_bytes.saturating_add(plan.tcp.header_bytes);
    let bound =
        plan.path.packet_rate_bound(false, packet_bytes, plan.streams as usize).ok().flatten();
    bound.map_or(SEGMENTS_PER_S, |bound| bound.packets_per_s)
}

/// Learns from the cells that were measured what the others will take.
#[derive(Clone, Debug, Default)]
pub struct Estimator {
    by_test: BTreeMap<String, Excess>,
    prepare: Excess,
}

/// Sum of what measurements took beyond their planned time; negative when they were faster.
#[derive(Clone, Copy, Debug, Default)]
struct Excess {
    count: i128,
    sum_ns: i128,
}

impl Excess {
    fn add(&mut self, ns: i128) {
        self.count += 1;
        self.sum_ns += ns;
    }

    fn mean_ns(&self) -> Option<i128> {
        (self.count > 0).then(|| self.sum_ns / self.count)
    }
}

impl Estimator {
    /// Takes note that `cell` took `took_ns`.
    pub fn measured(&mut self, cell: &CellPlan, took_ns: u64) {
        let excess = i128::from(took_ns) - i128::from(expected_ns(&cell.plan));
        self.by_test.entry(cell.cell.test.clone()).or_default().add(excess);
    }

    /// Takes note that building a laboratory took `took_ns`.
    pub fn prepared(&mut self, took_ns: u64) {
        self.prepare.add(i128::from(took_ns));
    }

    /// The time for `cells` and for building `laboratories`.
    pub fn remaining_ns<'a>(
        &self,
        cells: impl Iterator<Item = &'a CellPlan>,
        laboratories: usize,
    ) -> u64 {
        let prepare_ns = self.prepare.mean_ns().unwrap_or_else(|| i128::from(PREPARE_NS));
        let laboratories = i128::try_from(laboratories).unwrap_or(i128::MAX);
        let cells_ns: i128 = cells.map(|cell| self.cell_ns(cell)).sum();
        let total_ns = cells_ns.saturating_add(prepare_ns.saturating_mul(laboratories));
        u64::try_from(total_ns.max(0)).unwrap_or(u64::MAX)
    }

    fn cell_ns(&self, cell: &CellPlan) -> i128 {
        let excess = self.by_test.get(&cell.cell.test).and_then(Excess::mean_ns);
        // A model has nobody to connect to.
        let overhead = if cell.plan.is_live() { i128::from(OVERHEAD_NS) } else { 0 };
        let excess = excess.unwrap_or(overhead);
        (i128::from(expected_ns(&cell.plan)) + excess).max(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{PingPlan, StudyCell, TcpPlan, TcpTest};

    fn cell_plan(test: &str, plan: Plan) -> CellPlan {
        let cell = StudyCell {
            study: "s".to_owned(),
            run: String::new(),
            topology: "a".to_owned(),
            test: test.to_owned(),
            parameter: 0,
            label: None,
            repetition: 1,
        };
        CellPlan { cell, plan, sack: None }
    }

    fn tcp_cell_plan(seconds: u64) -> CellPlan {
        let finish = Finish::TimeNs(seconds * 1_000_000_000);
        cell_plan(
            "tcp",
            Plan::Tcp(TcpPlan {
                test: TcpTest { finish, ..TcpTest::default() },
                ..TcpPlan::default()
            }),
        )
    }

    #[test]
    fn planned_times_follow_from_the_plan() {
        assert_eq!(expected_ns(&tcp_cell_plan(2).plan), 2_000_000_000);
        // 10^9 bit at the assumed 10^9 bit/s: one second.
        let by_volume = TcpPlan {
            test: TcpTest { finish: Finish::Bytes(125_000_000), ..TcpTest::default() },
            ..TcpPlan::default()
        };
        assert_eq!(expected_ns(&Plan::Tcp(by_volume)), 1_000_000_000);
        // 10,000 probes of 40 us each: 0.4 s.
        let flood = PingPlan { mode: PingMode::Flood, count: Some(10_000), ..PingPlan::default() };
        assert_eq!(expected_ns(&Plan::Ping(flood)), 400_000_000);
    }

    #[test]
    fn a_simulated_cell_takes_no_connecting_and_time_by_its_segments() {
        let lab = "lab.host = [{ name = \"a\" }, { name = \"b\" }]\n\
                   lab.link = [{ ends = [\"a\", \"b\"], path = { rate = \"1 Gbit/s\" } }]";
        let text = format!(
            "name = \"s\"\ntitle = \"t\"\n[[topology]]\nid = \"a\"\ntitle = \"A\"\n\
             class = \"c\"\nclient = \"a\"\nserver = \"b\"\n{lab}\n[[test]]\nid = \"v\"\n\
             kind = \"simulate\"\nmss_bytes = 1000\nrepetitions = 1\ntransfer_bytes = [1000000000]"
        );
        let plan = crate::study::StudyPlan::from_toml(&text).expect("a sound plan");
        let cells = plan.cell_plans();
        // 10^6 segments at 600 ns each.
        assert_eq!(Estimator::default().remaining_ns(cells.iter(), 0), 600_000_000);
        // 10 s of 1 Gbit/s in frames of 1000 + 52 + 38 bytes: 10^10 / (8 x 1090) = 1,146,789.
        let text = text.replace("transfer_bytes = [1000000000]", "streams = [1]\nseconds = 10.0");
        let plan = crate::study::StudyPlan::from_toml(&text).expect("a sound plan");
        let cells = plan.cell_plans();
        assert_eq!(Estimator::default().remaining_ns(cells.iter(), 0), 688_073_394);
    }

    #[test]
    fn what_cells_took_corrects_the_rest_by_test() {
        let mut estimator = Estimator::default();
        let rest = [tcp_cell_plan(1), tcp_cell_plan(1)];
        // Before anything was measured: 2 x (1 s + 50 ms) + one laboratory of 300 ms.
        assert_eq!(estimator.remaining_ns(rest.iter(), 1), 2_400_000_000);
        estimator.measured(&tcp_cell_plan(1), 1_100_000_000);
        estimator.measured(&tcp_cell_plan(1), 1_300_000_000);
        estimator.prepared(100_000_000);
        // Mean excess (0.1 + 0.3) / 2 = 0.2 s: 2 x 1.2 s + 0.1 s.
        assert_eq!(estimator.remaining_ns(rest.iter(), 1), 2_500_000_000);
        assert_eq!(estimator.remaining_ns([].iter(), 0), 0);
    }
}
