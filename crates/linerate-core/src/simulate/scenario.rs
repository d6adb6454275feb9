//! From a plan to a simulation: the path built, the flows with their starts, how far apart to look
//! at it. The one way in, for the command and for studies.
//!
//! Left out: the clock, and who stops it; the caller drives.

use std::time::Duration;

use thiserror::Error;

use super::{FlowPlan, PointsPlan, Simulation, TcpModel};
use crate::path::{DirectionFacts, PathProblem, Random};
use crate::record::{CrossPlan, Finish, PathPlan, SimulatePlan};
use crate::time::MonoTime;

/// Samples of a run, for progress and a diagram of goodput.
pub const SAMPLES: u32 = 400;
/// Most flows whose points are kept: more lines in a diagram cannot be distinguished.
pub const FLOWS_WITH_POINTS: usize = 8;
/// Stream of the seed for the flows; those of the path are counted from 1 and 1001.
const FLOW_STREAM: u64 = 1_000_000;
/// Time of a transfer over a path whose rate is not known, for samples.
const TRANSFER_S: f64 = 60.0;

/// A plan that cannot be simulated.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ScenarioError {
    /// The path cannot be built.
    #[error(transparent)]
    Path(#[from] PathProblem),
    /// The clock would never go on.
    #[error(
        "a path without rate and delay: everything takes no time on it; give it a rate or a link, \
         and a delay"
    )]
    Timeless,
    /// A simulation without flows.
    #[error("0 flows send nothing")]
    NoFlows,
    /// More flows than the tags have room for.
    #[error("{0} flows; the most is {max}", max = Simulation::FLOWS_MAX)]
    TooManyFlows(u32),
}

/// The longest packet that the path takes whole.
pub fn mtu_bytes(path: &PathPlan) -> u32 {
    let of_link = path.mtu_bytes_usual();
    path.direction(false).mtu_bytes.map_or(of_link, |limit| of_link.min(limit))
}

impl SimulatePlan {
    /// Rates and delays of the path, if the plan can be simulated.
    /// # Errors
    /// A path that cannot be built or takes no time, no flows or too many.
    pub fn direction_facts(&self) -> Result<[DirectionFacts; 2], ScenarioError> {
        let facts = self.path.direction_facts()?;
        let timed = |index: usize| {
            let fact: &DirectionFacts = &facts[index];
            let direction = self.path.direction(index == 1);
            let line = direction.trace.is_some() || !direction.trunk.is_empty();
            fact.rate.is_some() || !fact.delay.is_zero() || line
        };
        if !timed(0) && !timed(1) {
            return Err(ScenarioError::Timeless);
        }
        match self.streams {
            0 => Err(ScenarioError::NoFlows),
            many if many as usize > Simulation::FLOWS_MAX => Err(ScenarioError::TooManyFlows(many)),
            _ => Ok(facts),
        }
    }

    /// The TCP of the flows.
    pub fn tcp_model(&self) -> TcpModel {
        TcpModel::from(&self.tcp)
    }

    /// The seed of all that is random.
    pub fn random_seed(&self) -> u64 {
        self.path.seed.unwrap_or(1)
    }

    /// The plan with the seed of a repetition, counted from 1: the plan's, and on from there.
    pub fn repeat(&mut self, repetition: u32) {
        let seed = self.random_seed().wrapping_add(u64::from(repetition).saturating_sub(1));
        self.path.seed = Some(seed);
    }

    /// Bytes that each flow sends; without an end when absent.
    pub fn flow_bytes(&self) -> Option<u64> {
        let all = match self.finish {
            Finish::TimeNs(_) => return None,
            Finish::Bytes(bytes) => bytes,
            // The model has no buffers of writes: segments stand for them.
            Finish::Buffers(count) => count.saturating_mul(self.tcp.mss_bytes.into()),
        };
        Some(all.div_ceil(u64::from(self.streams.max(1))))
    }

    /// The virtual time at which it ends at the latest.
    pub fn latest_end(&self) -> MonoTime {
        let ns = match self.finish {
            Finish::TimeNs(ns) => self.omit_ns.saturating_add(ns),
            Finish::Bytes(_) | Finish::Buffers(_) => self.time_max_ns,
        };
        MonoTime::from_nanos(ns)
    }

    /// Time from sample to sample: a part of the run, or of a transfer at the path's rate.
    pub fn sample_interval(&self, facts: &[DirectionFacts; 2]) -> Duration {
        let end = self.latest_end().duration_since(MonoTime::default());
        let model = self.tcp_model();
        let window_bps = |rtt_s: f64| {
            let bits = self.tcp.window_bytes as f64 * 8.0 * f64::from(self.streams);
            if rtt_s > 0.0 { bits / rtt_s } else { f64::INFINITY }
        };
        let rtt_s = (facts[0].delay + facts[1].delay).as_secs_f64();
        let whole_s = match self.flow_bytes() {
            Some(bytes) => {
                let bits = bytes as f64 * 8.0 * f64::from(self.streams);
                let link_bps = super::ceiling_bps(&facts[0], &model).unwrap_or(f64::INFINITY);
                let bps = link_bps.min(window_bps(rtt_s));
                if bps.is_finite() { bits / bps } else { TRANSFER_S }
            }
            None => end.as_secs_f64(),
        };
        let step_s = (whole_s + rtt_s * 8.0) / f64::from(SAMPLES);
        Duration::from_secs_f64(step_s.clamp(1e-6, 3600.0)).min(end)
    }

    /// The simulation at its begin, and its flows. The first [`FLOWS_WITH_POINTS`] of them keep
    /// their points when that is asked for.
    /// # Errors
    /// As [`SimulatePlan::direction_facts`].
    pub fn start_simulation(
        &self,
        with_points: bool,
    ) -> Result<(Simulation, Vec<FlowPlan>), ScenarioError> {
        let facts = self.direction_facts()?;
        let rtt = facts[0].delay + facts[1].delay;
        let points = PointsPlan::bounded(self.sample_interval(&facts) / 2, rtt);
        let flows = self.flow_plans(with_points.then_some(points));
        let [forward, backward] =
            self.path_with_background().build_pipelines(MonoTime::default())?;
        Ok((Simulation::new(&flows, forward, backward), flows))
    }

    fn flow_plans(&self, points: Option<PointsPlan>) -> Vec<FlowPlan> {
        let mut random = Random::new(self.random_seed(), FLOW_STREAM);
        let spread = Duration::from_nanos(self.start_spread_ns);
        let (tcp, bytes) = (self.tcp_model(), self.flow_bytes());
        let flow = |index: u32| FlowPlan {
            tcp,
            start: MonoTime::default() + spread.mul_f64(random.next_uniform()),
            bytes,
            hash: hash(random.next_uniform()),
            points: points.filter(|_| (index as usize) < FLOWS_WITH_POINTS),
        };
        (0..self.streams).map(flow).collect()
    }

    /// The path with the background on the way of the acknowledgements: full packets at a constant
    /// rate, beside the plan's own elements.
    fn path_with_background(&self) -> PathPlan {
        let path = self.path.as_ref().clone();
        let Some(background) = self.background else { return path };
        let packet_bytes = self.tcp.mss_bytes + self.tcp.header_bytes;
        let share = f64::from(packet_bytes) / f64::from(self.tcp.mss_bytes.max(1));
        let mut cross = self.path.direction(true).cross;
        cross.push(CrossPlan {
            rate: format!("{:.0} bit/s", background.bits_per_sec() as f64 * share),
            packet_bytes: Some(packet_bytes),
            poisson: false,
            on: None,
            off: None,
            flow: 0,
        });
        let backward = path.backward.as_deref().cloned().unwrap_or_default();
        let backward = Some(Box::new(PathPlan { cross, ..backward }));
        PathPlan { backward, ..path }
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 2^32 - 1")]
fn hash(unit: f64) -> u32 {
    (unit * f64::from(u32::MAX)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::SimulatedTcp;
    use crate::simulate::{Stack, TcpChoice};
    use crate::units::BitRate;

    fn plan_on_path(path: &str, finish: Finish) -> SimulatePlan {
        let path: PathPlan = crate::tree::from_toml(path).expect("a path");
        let tcp = TcpChoice { stack: Stack::Of1999, ..TcpChoice::default() };
        let tcp = tcp.model_for_mtu(mtu_bytes(&path)).expect("a possible segment");
        SimulatePlan {
            path: Box::new(path),
            place: None,
            tcp: SimulatedTcp::from(&tcp),
            streams: 1,
            finish,
            omit_ns: 0,
            start_spread_ns: 0,
            time_max_ns: 3_600_000_000_000,
            background: None,
        }
    }

    const OC12: &str = "link = \"oc12-atm\"\ndelay = \"22.5 ms\"";

    #[test]
    fn each_repetition_has_the_next_seed() {
        let mut plan = plan_on_path("rate = \"1 Gbit/s\"\nseed = 7", Finish::TimeNs(1));
        plan.repeat(1);
        assert_eq!(plan.random_seed(), 7);
        plan.repeat(3);
        assert_eq!(plan.random_seed(), 9);
    }

    #[test]
    fn flows_share_a_transfer() {
        let mut plan = plan_on_path(OC12, Finish::Bytes(10_000_001));
        plan.streams = 4;
        assert_eq!(plan.flow_bytes(), Some(2_500_001));
        let (_, flows) = plan.start_simulation(true).expect("it can be simulated");
        assert!(flows.iter().all(|flow| flow.bytes == Some(2_500_001) && flow.points.is_some()));
    }

    #[test]
    fn what_cannot_be_simulated_is_refused() {
        let refused = |path: &str, streams| {
            SimulatePlan { streams, ..plan_on_path(path, Finish::TimeNs(1)) }
                .start_simulation(false)
                .err()
        };
        assert_eq!(refused("loss = \"1%\"", 1), Some(ScenarioError::Timeless));
        assert_eq!(refused(OC12, 0), Some(ScenarioError::NoFlows));
        assert!(matches!(refused(OC12, u32::MAX), Some(ScenarioError::TooManyFlows(_))));
        assert!(matches!(refused("rate = \"0\"", 1), Some(ScenarioError::Path(_))));
        assert_eq!(refused(OC12, 2), None);
    }

    #[test]
    fn a_background_delays_the_acknowledgements_that_it_meets() {
        // 599.04 Mbit/s of cells, 9180 bytes take 10,176: 540.4 Mbit/s of IP. A background beyond
        // that fills the queue on the way back; one of 75 % leaves the data their rate.
        let goodput = |background: Option<u64>| {
            let background = background.map(BitRate::from_bits_per_sec);
            let path = format!("{OC12}\nbuffer = \"20 packets\"");
            let plan =
                SimulatePlan { background, ..plan_on_path(&path, Finish::TimeNs(2_000_000_000)) };
            let (simulation, _) = plan.start_simulation(false).expect("it can be simulated");
            let acked = simulation.run(plan.latest_end()).flows[0].acked_bytes;
            acked as f64 * 4.0
        };
        let (alone, beside, crowded) =
            (goodput(None), goodput(Some(400_000_000)), goodput(Some(700_000_000)));
        assert!((beside / alone - 1.0).abs() < 0.02, "{beside} beside, {alone} alone");
        assert!(crowded < 0.9 * alone, "{crowded} in a crowd, {alone} alone");
    }

    #[test]
    fn the_slow_start_of_1999_over_an_oc12_takes_what_its_rounds_take() {
        // From 2 segments by a half each round to the window of 219: ln(109.5) / ln(1.5) = 11.6
        // rounds; the study counts 12. A transfer of 100 MB then goes at a window each round trip:
        // 219 x 9128 x 8 / 45.3 ms = 353 Mbit/s. Below: 2.27 s at that rate; above: 12 rounds more.
        let plan = plan_on_path(OC12, Finish::Bytes(100_000_000));
        let (simulation, _) = plan.start_simulation(true).expect("it can be simulated");
        let result = simulation.run(plan.latest_end());
        let took_s = result.flows[0].finished_after.expect("it ends").as_secs_f64();
        let rate = 219.0 * 9128.0 * 8.0 / (0.045 + 0.000_136);
        let bare_s = 800e6 / rate;
        assert!(took_s > bare_s && took_s < bare_s + 12.0 * 0.0453, "{took_s}, bare {bare_s}");
        let points = &result.flows[0].points;
        // The window is full when it has grown to 219 segments; 12 rounds of 45 ms are 0.54 s.
        let full = points.iter().find(|point| point.cwnd_bytes >= 219 * 9128).expect("it fills");
        let full_s = full.at.as_nanos() as f64 / 1e9;
        assert!((0.45..0.60).contains(&full_s), "{full_s} s");
        assert!(points.len() <= 2000, "{}", points.len());
    }
}
