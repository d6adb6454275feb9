//! A simulated test of a study: the emulated link of a topology in virtual time, with a model of
//! TCP at both ends. It has the lists of a TCP test and one of recoveries.
//!
//! Left out: the clock and the driving, which are the engine's.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::fault::{Checked, check_number, fault_at_path, item_fault, key_fault, require};
use super::list::{List, check_lists, pick_value};
use super::parameter::Parameter;
use super::tcp_sweep::{TcpLimits, seconds_to_nanos};
use super::{TcpSweep, Topology, embedded};
use crate::lab::{Layout, Step};
use crate::record::{ControlName, Finish, LossRecovery, PathPlan, SimulatePlan, SimulatedTcp};
use crate::simulate::{HEADER_BYTES, INITIAL_WINDOW_MAX, Stack, TcpChoice};
use crate::theory::window::WINDOW_MAX_BYTES;

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

/// The most of a model in a study: 1000 flows have been run in seconds, and the largest transfer
/// takes most of a day at 100 Gbit/s.
const LIMITS: TcpLimits =
    TcpLimits { windows_bytes: WINDOW_MAX_BYTES, streams: 1000, transfer_bytes: 1 << 50 };
/// Longest span of starts.
const SPREAD_SECONDS_MAX: f64 = 3600.0;

impl SimulateSweep {
    /// Every list that the plan may have, in the order that decides where nothing is varied.
    pub(super) fn value_lists(&self) -> Vec<List> {
        let mut lists = self.common.lists_within(&LIMITS);
        let recoveries = self.recoveries.as_ref();
        lists.push(List::from_names(RECOVERIES, recoveries, |recovery| recovery.name()));
        lists
    }

    /// Refuses values and settings that the model does not have.
    pub(super) fn check_values(&self) -> Checked {
        let common = &self.common;
        let live = embedded::differing(&common.base).into_iter().map(|(key, _)| key);
        let mut live = live.chain(common.read_bytes.as_ref().map(|_| "read_bytes".to_owned()));
        if let Some(key) = live.find(|key| key != "congestion_control") {
            let message = format!("simulate has no key '{key}'");
            return fault_at_path(&[Step::Named(key)], message);
        }
        check_lists(&self.value_lists(), "windows_bytes or another list")?;
        let one = common.base.congestion_control.as_ref();
        let controls = || common.congestion_controls.iter().flatten();
        if let Some(index) = controls().position(|name| Some(name) == one) {
            let name = one.map(String::as_str).unwrap_or_default();
            return item_fault("congestion_controls", index, format!("{name} is there twice"));
        }
        common.check_controls(|name| {
            let unlike = format!("`{name}`: the model has `reno`, `cubic` and `bbr`");
            name.parse::<ControlName>().is_err().then_some(unlike)
        })?;
        common.check_end()?;
        self.check_settings()
    }

    fn check_settings(&self) -> Checked {
        let common = &self.common;
        let both = "sack and recoveries both say how losses are repaired; give one of them";
        require(common.sack.is_none() || self.recoveries.is_none(), "sack", both)?;
        let whole = "a transfer is timed whole; leave omit_seconds out, or give it seconds";
        let omitted = common.omit_seconds.is_some() && common.transfer_bytes.is_some();
        require(!omitted, "omit_seconds", whole)?;
        if let Some(segments) =
            self.initial_window.filter(|window| !(1..=INITIAL_WINDOW_MAX).contains(window))
        {
            let message = format!("initial_window of {segments}; 1 to {INITIAL_WINDOW_MAX}");
            return key_fault("initial_window", message);
        }
        check_number("start_spread_seconds", self.start_spread_seconds, 0.0..=SPREAD_SECONDS_MAX)
    }

    /// Plan of the simulation for the value at a place of the varied list.
    /// # Errors
    /// Why it cannot be simulated on this topology.
    pub(super) fn plan_for_value(
        &self,
        topology: &Topology,
        at: usize,
    ) -> Result<SimulatePlan, String> {
        let way = single_emulated_link(topology)?;
        let lists = &self.common;
        let finish = match pick_value(lists.transfer_bytes.as_ref(), at) {
            Some(bytes) => Finish::Bytes(bytes),
            None => Finish::TimeNs(seconds_to_nanos(lists.seconds.unwrap_or_default())),
        };
        let background = lists.background.as_ref();
        let background = background.map(|flow| flow.rate_on(topology)).transpose()?;
        let tcp = self.choice(at).model_for_mtu(way.mtu_bytes).map_err(|error| {
            let mss = self.mss_bytes.unwrap_or_else(|| way.mtu_bytes.saturating_sub(HEADER_BYTES));
            format!("segments of {mss} bytes: {error}")
        })?;
        let mut plan = SimulatePlan {
            path: Box::new(PathPlan { seed: Some(way.path.seed.unwrap_or(1)), ..way.path }),
            place: Some(way.place),
            tcp: SimulatedTcp::from(&tcp),
            streams: pick_value(lists.streams.as_ref(), at).unwrap_or(1).into(),
            finish,
            omit_ns: seconds_to_nanos(lists.omit_seconds.unwrap_or_default()),
            start_spread_ns: 0,
            time_max_ns: TRANSFER_TIME_MAX_NS,
            background,
        };
        let facts = plan.direction_facts().map_err(|error| error.to_string())?;
        let rtt = facts[0].delay + facts[1].delay;
        plan.start_spread_ns = match self.start_spread_seconds {
            Some(seconds) => seconds_to_nanos(seconds),
            None if plan.streams > 1 => span_ns(rtt),
            None => 0,
        };
        Ok(plan)
    }

    fn choice(&self, at: usize) -> TcpChoice {
        let lists = &self.common;
        let sack = pick_value(lists.sack.as_ref(), at).map(|on| self.tcp.recovery(on));
        TcpChoice {
            stack: self.tcp,
            congestion_control: lists.control(at).and_then(|name| name.parse().ok()),
            recovery: pick_value(self.recoveries.as_ref(), at).or(sack),
            window_bytes: pick_value(lists.windows_bytes.as_ref(), at).filter(|bytes| *bytes > 0),
            initial_window: self.initial_window,
            mss_bytes: self.mss_bytes,
            without_hystart: self.hystart == Some(false),
        }
    }
}

/// The emulated link that a topology's data cross.
/// # Errors
/// None or several of them, or something else on the way that the model would leave out.
pub(super) fn single_emulated_link(topology: &Topology) -> Result<EmulatedLink, String> {
    let Topology { id, client, server, .. } = topology;
    let named = |reason: String| format!("topology '{id}': {reason}");
    if client == server {
        let reason = format!("'{client}' measures itself, and no link with a path is on the way");
        return Err(named(reason));
    }
    let layout = Layout::from_plan(&topology.lab).map_err(|problem| named(problem.message))?;
    let ends = layout.node_index(client).zip(layout.address_of(server));
    let crossings =
        ends.map(|(node, target)| layout.route_crossings(node, target)).unwrap_or_default();
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
    use crate::study::list::varied_list;

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
        let way = single_emulated_link(&Topology::from_lab(ROUTED, "a", "b")).expect("a way");
        assert_eq!((way.place.as_str(), way.mtu_bytes), ("r eth1 - b eth0", 9000));
        assert_eq!(way.path.direction(false).loss.as_deref(), Some("1%"));
    }

    #[test]
    fn a_link_that_is_crossed_from_its_second_end_is_turned_round() {
        let way = single_emulated_link(&Topology::from_lab(ROUTED, "b", "a")).expect("a way");
        assert_eq!(way.place, "b eth0 - r eth1");
        assert_eq!(way.path.direction(false).loss, None);
        assert_eq!(way.path.direction(true).loss.as_deref(), Some("1%"));
    }

    #[track_caller]
    fn refused(lab: &str, client: &str, server: &str, words: &str) {
        let error = single_emulated_link(&Topology::from_lab(lab, client, server))
            .expect_err("no way for a model");
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
        let list = varied_list(test.value_lists());
        assert_eq!(list.parameter.axis_title(), "recovery");
        let values = list.values().into_iter();
        let labels: Vec<_> = values.map(|value| (value.number, value.label)).collect();
        assert_eq!(labels, [(1, "reno".to_owned()), (2, "sack".to_owned())]);
        let plan = test
            .plan_for_value(&Topology::from_lab(ROUTED, "a", "b"), 1)
            .expect("it can be simulated");
        assert_eq!((plan.tcp.recovery, plan.streams), (LossRecovery::Sack, 4));
        // MTU 9000 less 52; several flows begin within the round trip of 45 ms.
        assert_eq!((plan.tcp.mss_bytes, plan.start_spread_ns), (8948, 45_000_000));
        assert_eq!((plan.finish, plan.random_seed()), (Finish::TimeNs(2_000_000_000), 1));
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
                let plan =
                    test.plan_for_value(&Topology::from_lab(ROUTED, "a", "b"), at).expect("a plan");
                plan.tcp.recovery
            };
            assert_eq!([recovery(0), recovery(1)], [with, without]);
        }
    }
}
