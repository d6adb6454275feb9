//! A simulated test of a study: the emulated link of a topology in virtual time, with a model of
//! TCP at both ends. It has the lists of a TCP test and one of recoveries.
//!
//! Left out: the clock and the driving, which are the engine's. The rules are in
//! `check_simulate`.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::list::{List, varied_list};
use super::parameter::{Parameter, TestStep, Value};
use super::tcp_sweep::{nanos, pick};
use super::{TcpSweep, Topology};
use crate::lab::Layout;
use crate::record::{Finish, LossRecovery, PathPlan, Plan, SimulatePlan, SimulatedTcp};
use crate::simulate::{HEADER_BYTES, Stack, TcpChoice};

/// Virtual time after which a transfer is given up: a day.
const TRANSFER_TIME_MAX_NS: u64 = 86_400_000_000_000;

/// TCP throughput of a model, in virtual time, by one parameter.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SimulateSweep {
    /// Windows of the receiver (0: as the stack has it), flows, transfers, congestion controls,
    /// selective acknowledgements, time.
    #[serde(flatten)]
    pub common: TcpSweep,
    /// Whose TCP.
    #[serde(default)]
    pub tcp: Stack,
    /// How losses are repaired, in place of `sack`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recoveries: Option<Vec<LossRecovery>>,
    /// Segments of the first flight, where it is not the stack's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_window: Option<u32>,
    /// Payload of a full segment, where it is not what the MTU of the way leaves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mss_bytes: Option<u32>,
    /// Slow start ends early; as the stack has it when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hystart: Option<bool>,
    /// Flows begin at random times within this span; a round trip for several when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_spread_seconds: Option<f64>,
}

/// The one emulated link between two hosts, seen from the sender.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct EmulatedLink {
    /// Data go forward on it.
    pub(super) path: PathPlan,
    pub(super) place: String,
    /// Longest packet that every link on the way takes.
    pub(super) mtu_bytes: u32,
}

/// The recoveries as a parameter.
const RECOVERIES: Parameter = Parameter { key: "recoveries", name: "recovery", unit: None };

impl SimulateSweep {
    /// The parameter that it varies.
    pub fn parameter(&self) -> Parameter {
        varied_list(self.lists()).parameter
    }

    /// The values of the parameter, in the order of the plan.
    pub fn values(&self) -> Vec<Value> {
        varied_list(self.lists()).values.unwrap_or_default()
    }

    /// Every list that the plan may have, in the order that decides where nothing is varied.
    pub(super) fn lists(&self) -> Vec<List> {
        let recoveries = self.recoveries.as_ref();
        let recoveries = List::from_names(RECOVERIES, recoveries, |recovery| recovery.name());
        self.common.lists().into_iter().chain([recoveries]).collect()
    }

    /// What to simulate for each value on `topology`; nothing on one that has no way for it.
    pub(super) fn steps(&self, topology: &Topology) -> Vec<TestStep> {
        let plans = self.values().into_iter().enumerate();
        let step = |(at, value)| {
            let plan = Plan::Simulate(self.plan(topology, at).ok()?);
            Some(TestStep { value, plan, sack: None })
        };
        plans.filter_map(step).collect()
    }

    /// What to simulate for the value at a place of the list.
    /// # Errors
    /// Why it cannot be simulated on this topology.
    pub(super) fn plan(&self, topology: &Topology, at: usize) -> Result<SimulatePlan, String> {
        let way = way(topology)?;
        let lists = &self.common;
        let finish = match pick(lists.transfer_bytes.as_ref(), at) {
            Some(bytes) => Finish::Bytes(bytes),
            None => Finish::TimeNs(nanos(lists.seconds.unwrap_or_default())),
        };
        let background = lists.background.as_ref();
        let background = background.map(|flow| flow.rate_on(topology)).transpose()?;
        let tcp = self.choice(at).model(way.mtu_bytes).map_err(|error| {
            let mss = self.mss_bytes.unwrap_or_else(|| way.mtu_bytes.saturating_sub(HEADER_BYTES));
            format!("segments of {mss} bytes: {error}")
        })?;
        let mut plan = SimulatePlan {
            path: Box::new(PathPlan { seed: Some(way.path.seed.unwrap_or(1)), ..way.path }),
            place: Some(way.place),
            tcp: SimulatedTcp::from(&tcp),
            streams: pick(lists.streams.as_ref(), at).unwrap_or(1).into(),
            finish,
            omit_ns: nanos(lists.omit_seconds.unwrap_or_default()),
            start_spread_ns: 0,
            time_max_ns: TRANSFER_TIME_MAX_NS,
            background,
        };
        let facts = plan.facts().map_err(|error| error.to_string())?;
        let rtt = facts[0].delay + facts[1].delay;
        plan.start_spread_ns = match self.start_spread_seconds {
            Some(seconds) => nanos(seconds),
            None if plan.streams > 1 => span_ns(rtt),
            None => 0,
        };
        Ok(plan)
    }

    fn choice(&self, at: usize) -> TcpChoice {
        let lists = &self.common;
        let named = pick(lists.congestion_controls.as_ref(), at);
        let named = named.or_else(|| lists.base.congestion_control.clone());
        let sack = pick(lists.sack.as_ref(), at).map(|on| self.tcp.recovery(on));
        TcpChoice {
            stack: self.tcp,
            congestion_control: named.and_then(|name| name.parse().ok()),
            recovery: pick(self.recoveries.as_ref(), at).or(sack),
            window_bytes: pick(lists.windows_bytes.as_ref(), at).filter(|bytes| *bytes > 0),
            initial_window: self.initial_window,
            mss_bytes: self.mss_bytes,
            without_hystart: self.hystart == Some(false),
        }
    }
}

/// The emulated link that a topology's data cross.
/// # Errors
/// None or several of them, or something else on the way that the model would leave out.
pub(super) fn way(topology: &Topology) -> Result<EmulatedLink, String> {
    let Topology { id, client, server, .. } = topology;
    let named = |reason: String| format!("topology '{id}': {reason}");
    if client == server {
        let reason = format!("'{client}' measures itself, and no link with a path is on the way");
        return Err(named(reason));
    }
    let layout = Layout::of(&topology.lab).map_err(|problem| named(problem.message))?;
    let ends = layout.node(client).zip(layout.address_of(server));
    let crossings = ends.map(|(node, target)| layout.way(node, target)).unwrap_or_default();
    let mut found = None;
    let mut mtu_bytes = u32::MAX;
    for crossing in &crossings {
        let link = &layout.links[crossing.link];
        mtu_bytes = mtu_bytes.min(link.mtu_bytes);
        match &link.path {
            Some(_) if found.is_some() => {
                let reason = format!(
                    "several links with a path are on the way from '{client}' to '{server}'"
                );
                return Err(named(format!("{reason}; the model has one")));
            }
            Some(path) => found = Some((crossing, path)),
            None if link.rate.is_some() => {
                let name = layout.link_name(crossing.link);
                let reason = format!("{name} has a rate, which the model would leave out");
                return Err(named(format!("{reason}; give the rate to the path")));
            }
            None => {}
        }
    }
    let Some((crossing, path)) = found else {
        let reason = format!("no link with a path is on the way from '{client}' to '{server}'");
        return Err(named(reason));
    };
    mtu_bytes = mtu_bytes.min(path.direction(crossing.backward).mtu_bytes.unwrap_or(u32::MAX));
    let place = layout.link_name(crossing.link);
    let turned =
        |place: &str| place.split_once(" - ").map(|(one, other)| format!("{other} - {one}"));
    Ok(match crossing.backward {
        false => EmulatedLink { path: path.clone(), place, mtu_bytes },
        true => EmulatedLink {
            path: PathPlan {
                forward: path.backward.clone(),
                backward: path.forward.clone(),
                ..path.clone()
            },
            place: turned(&place).unwrap_or(place),
            mtu_bytes,
        },
    })
}

fn span_ns(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::LabPlan;

    fn topology(lab: &str, client: &str, server: &str) -> Topology {
        Topology {
            id: "t".to_owned(),
            title: "t".to_owned(),
            class: "c".to_owned(),
            lab: LabPlan::from_toml(lab, "t.toml").expect("a sound laboratory"),
            client: client.to_owned(),
            server: server.to_owned(),
            l2_hops: 0,
            l3_hops: 0,
            published: None,
        }
    }

    /// A router before an OC-12 with its own loss on the way to b.
    const ROUTED: &str = r#"
host = [{ name = "a" }, { name = "b" }]
router = [{ name = "r" }]
[[link]]
ends = ["a", "r"]
mtu_bytes = 9000
[[link]]
ends = ["r", "b"]
path = { link = "oc12-atm", delay = "22.5 ms", forward = { loss = "1%" } }
"#;

    #[test]
    fn the_emulated_link_is_found_behind_a_router_with_the_smallest_mtu() {
        let way = way(&topology(ROUTED, "a", "b")).expect("a way");
        assert_eq!((way.place.as_str(), way.mtu_bytes), ("r eth1 - b eth0", 9000));
        assert_eq!(way.path.direction(false).loss.as_deref(), Some("1%"));
    }

    #[test]
    fn a_link_that_is_crossed_from_its_second_end_is_turned_round() {
        let way = way(&topology(ROUTED, "b", "a")).expect("a way");
        assert_eq!(way.place, "b eth0 - r eth1");
        assert_eq!(way.path.direction(false).loss, None);
        assert_eq!(way.path.direction(true).loss.as_deref(), Some("1%"));
    }

    #[track_caller]
    fn refused(lab: &str, client: &str, server: &str, words: &str) {
        let error = way(&topology(lab, client, server)).expect_err("no way for a model");
        assert!(error.contains(words) && error.contains("topology 't'"), "{error}");
    }

    #[test]
    fn what_the_model_cannot_stand_for_is_refused() {
        refused(&ROUTED.replace("path = {", "# "), "a", "b", "no link with a path");
        let two = ROUTED.replace("mtu_bytes = 9000", "path = { rate = \"1 Gbit/s\" }");
        refused(&two, "a", "b", "several links with a path");
        let shaped = ROUTED.replace("mtu_bytes = 9000", "rate = \"1 Gbit/s\"");
        refused(&shaped, "a", "b", "a eth0 - r eth0 has a rate");
        refused(ROUTED, "a", "a", "measures itself");
    }

    #[test]
    fn each_value_of_the_varied_list_is_a_plan_of_its_own() {
        let test = SimulateSweep {
            common: TcpSweep { seconds: Some(2.0), streams: Some(vec![4]), ..TcpSweep::default() },
            tcp: Stack::Of1999,
            recoveries: Some(vec![LossRecovery::Reno, LossRecovery::Sack]),
            ..SimulateSweep::default()
        };
        assert_eq!(test.parameter().title(), "recovery");
        let labels: Vec<(u64, String)> =
            test.values().into_iter().map(|value| (value.number, value.label)).collect();
        assert_eq!(labels, [(1, "reno".to_owned()), (2, "sack".to_owned())]);
        let plan = test.plan(&topology(ROUTED, "a", "b"), 1).expect("it can be simulated");
        assert_eq!((plan.tcp.recovery, plan.streams), (LossRecovery::Sack, 4));
        // MTU 9000 less 52; several flows begin within the round trip of 45 ms.
        assert_eq!((plan.tcp.mss_bytes, plan.start_spread_ns), (8948, 45_000_000));
        assert_eq!((plan.finish, plan.seed()), (Finish::TimeNs(2_000_000_000), 1));
    }

    #[test]
    fn without_selective_acknowledgements_each_stack_recovers_in_its_own_way() {
        for (tcp, with, without) in [
            (Stack::Today, LossRecovery::Rack, LossRecovery::NewReno),
            (Stack::Of1999, LossRecovery::Sack, LossRecovery::Reno),
        ] {
            let sack = Some(vec![true, false]);
            let common = TcpSweep { seconds: Some(1.0), sack, ..TcpSweep::default() };
            let test = SimulateSweep { common, tcp, ..SimulateSweep::default() };
            let recovery = |at| {
                let plan = test.plan(&topology(ROUTED, "a", "b"), at).expect("a plan");
                plan.tcp.recovery
            };
            assert_eq!([recovery(0), recovery(1)], [with, without]);
        }
    }
}
