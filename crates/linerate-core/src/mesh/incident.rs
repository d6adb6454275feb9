//! What changed, or brings no data, together: the pairs that were hit by the one thing that they
//! have in common.
//!
//! Among agents, sites, uplinks and the mesh as a whole that thing is taken which explains the most
//! hit pairs less the pairs with it that were not hit; then the next for those that are left, as
//! in a greedy cover of sets (Chvátal, Mathematics of Operations Research 4, 1979). A pair that
//! nothing explains stands for itself. Left out: hops of routes.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::plan::MeshPlan;

/// Places of two agents, the smaller first.
pub type Pair = (usize, usize);

/// Pairs that one thing explains at least.
const EXPLAINED_MIN: usize = 2;
/// Pairs that all of a mesh are at least.
const ALL_MIN: usize = 3;

/// Of which kind the thing is that hit pairs have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schemars(rename = "MeshSharedKind"))]
pub enum SharedKind {
    /// An agent is an end of each.
    Agent,
    /// A site has an end of each.
    Site,
    /// An uplink has one end of each.
    Uplink,
    /// The mesh as a whole.
    Mesh,
    /// It is one pair.
    Pair,
}

/// What hit pairs have in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "MeshShared"))]
pub struct SharedElement {
    /// Of which kind it is.
    pub kind: SharedKind,
    /// Its name; of a pair both agents' names, of a mesh its own.
    pub name: String,
}

/// Pairs that were hit, with what they have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// What that is.
    pub shared: SharedElement,
    /// The pairs.
    pub pairs: BTreeSet<Pair>,
    /// Pairs that are measured and have it in common, hit or not.
    pub of: usize,
}

/// A figure of an incident that changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "MeshMoved"))]
pub struct Moved {
    /// The figure's key.
    pub metric: String,
    /// The level before.
    pub before: f64,
    /// The level since.
    pub after: f64,
    /// Time of the first value after the change, seconds since 1970-01-01 UTC.
    pub since_s: f64,
    /// The earliest and the latest that this may be.
    pub between_s: (f64, f64),
    /// When it was back, in the same; null where it is not.
    pub back_s: Option<f64>,
}

/// One direction of a pair, or an agent, of an incident.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "MeshMember"))]
pub struct Member {
    /// The agent that measures, or that is not heard.
    pub from: String,
    /// The one that is measured; null of an agent.
    pub to: Option<String>,
    /// The task; null of an agent.
    pub task: Option<String>,
    /// What changed; nothing where there is no data.
    pub moved: Vec<Moved>,
    /// Why there is no data, where that is known.
    pub reason: Option<String>,
}

/// What an incident is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schemars(rename = "MeshIncidentKind"))]
pub enum IncidentKind {
    /// A lasting change.
    Change,
    /// No data from pairs or agents.
    NoData,
}

/// Something that is in alert from a time on, and until a time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "MeshIncident"))]
pub struct Incident {
    /// Its identifier.
    pub id: String,
    /// What it is about.
    pub kind: IncidentKind,
    /// When it was found, seconds since 1970-01-01 UTC.
    pub opened_s: i64,
    /// Since when it is so, in the same.
    pub since_s: f64,
    /// When it was over; null where it is not.
    pub until_s: Option<i64>,
    /// What those that are hit have in common; null of agents that share nothing.
    pub shared: Option<SharedElement>,
    /// How many pairs, or agents, were hit at first.
    pub hit: usize,
    /// How many have that in common.
    pub of: usize,
    /// What was hit.
    pub members: Vec<Member>,
    /// Whether further runs at once have confirmed it.
    pub confirmed: bool,
    /// The survey that was booked for it.
    #[serde(default)]
    pub survey: Option<Survey>,
    /// In one sentence.
    pub sentence: String,
}

/// One test that the hub has booked of a pair that changed: what limits it now?
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "MeshSurvey"))]
pub struct Survey {
    /// The agent that measures.
    pub agent: String,
    /// The command and the other agent: `survey/b`.
    pub task: String,
    /// Its begin, seconds since 1970-01-01 UTC.
    pub start_s: i64,
    /// Until when it is waited for, in the same.
    pub until_s: i64,
    /// What it says; null while it is waited for.
    pub verdict: Option<String>,
    /// Its record.
    pub record: Option<String>,
}

/// A pair of two places.
pub const fn ordered_pair(a: usize, b: usize) -> Pair {
    if a < b { (a, b) } else { (b, a) }
}

/// True if the runs of the pair occupy the shared element.
pub fn crosses(plan: &MeshPlan, shared: &SharedElement, pair: Pair) -> bool {
    let (one, other) = (plan.agents.get(pair.0), plan.agents.get(pair.1));
    let (Some(one), Some(other)) = (one, other) else { return false };
    let of = |name: &Option<String>| name.as_deref() == Some(&shared.name);
    match shared.kind {
        SharedKind::Agent => one.name == shared.name || other.name == shared.name,
        SharedKind::Site => of(&one.site) || of(&other.site),
        // What stays within an uplink's side does not go over it.
        SharedKind::Uplink => one.uplink != other.uplink && (of(&one.uplink) || of(&other.uplink)),
        SharedKind::Mesh => true,
        SharedKind::Pair => shared.name == joined_names(&one.name, &other.name),
    }
}

fn joined_names(one: &str, other: &str) -> String {
    format!("{one} and {other}")
}

/// Every thing that pairs may have in common, the narrowest kind first.
fn things(plan: &MeshPlan) -> BTreeSet<SharedElement> {
    let thing = |kind, name: &str| SharedElement { kind, name: name.to_owned() };
    let mut things = BTreeSet::from([thing(SharedKind::Mesh, &plan.mesh)]);
    for agent in &plan.agents {
        things.insert(thing(SharedKind::Agent, &agent.name));
        things.extend(agent.site.as_deref().map(|name| thing(SharedKind::Site, name)));
        things.extend(agent.uplink.as_deref().map(|name| thing(SharedKind::Uplink, name)));
    }
    things
}

/// Parts hit pairs by what they have in common, among the pairs that are measured.
pub fn grouped(plan: &MeshPlan, hit: &BTreeSet<Pair>, measured: &BTreeSet<Pair>) -> Vec<Hit> {
    let things = things(plan);
    let (mut left, mut whole) = (hit.clone(), measured.union(hit).copied().collect());
    let mut groups = Vec::new();
    while let Some((shared, pairs, of)) = best_explanation(plan, &things, &left, &whole) {
        left.retain(|pair| !pairs.contains(pair));
        whole.retain(|pair| !pairs.contains(pair));
        groups.push(Hit { shared, pairs, of });
    }
    groups.extend(left.into_iter().map(|(a, b)| {
        let name = joined_names(&plan.agents[a].name, &plan.agents[b].name);
        let shared = SharedElement { kind: SharedKind::Pair, name };
        Hit { shared, pairs: BTreeSet::from([(a, b)]), of: 1 }
    }));
    groups
}

/// The thing that explains the most, with the pairs that it explains and how many have it.
fn best_explanation(
    plan: &MeshPlan,
    things: &BTreeSet<SharedElement>,
    left: &BTreeSet<Pair>,
    whole: &BTreeSet<Pair>,
) -> Option<(SharedElement, BTreeSet<Pair>, usize)> {
    let mut best: Option<(usize, SharedElement, BTreeSet<Pair>, usize)> = None;
    for thing in things {
        let explained: BTreeSet<Pair> =
            left.iter().copied().filter(|pair| crosses(plan, thing, *pair)).collect();
        let of = whole.iter().filter(|pair| crosses(plan, thing, **pair)).count();
        let least = if thing.kind == SharedKind::Mesh { ALL_MIN } else { EXPLAINED_MIN };
        // Explained less those that have it and were not hit.
        let gain = (2 * explained.len()).saturating_sub(of);
        let enough = explained.len() >= least && gain > 0;
        if enough && best.as_ref().is_none_or(|(most, ..)| gain > *most) {
            best = Some((gain, thing.clone(), explained, of));
        }
    }
    best.map(|(_, thing, explained, of)| (thing, explained, of))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `a` to `f`; `a` and `b` behind one uplink, `e` and `f` in one site.
    fn six_agent_plan() -> MeshPlan {
        let agent = |name: &str, more: &str| {
            let last = name.as_bytes()[0] - b'a' + 1;
            format!("[[agent]]\nname = \"{name}\"\naddress = \"192.0.2.{last}\"\n{more}")
        };
        let text = format!(
            "mesh = \"m\"\nrevision = 1\n{}{}{}{}{}{}[[task]]\nname = \"t\"\nrun = \"ping {{to}}\"\n\
             every = \"1m\"\n",
            agent("a", "uplink = \"isp\"\n"),
            agent("b", "uplink = \"isp\"\n"),
            agent("c", ""),
            agent("d", ""),
            agent("e", "site = \"rack\"\n"),
            agent("f", "site = \"rack\"\n"),
        );
        MeshPlan::from_toml(&text).expect("a plan")
    }

    fn all_pairs() -> BTreeSet<Pair> {
        (0..6).flat_map(|a| (a + 1..6).map(move |b| (a, b))).collect()
    }

    fn named_incidents(
        hit: &[&str],
        measured: &BTreeSet<Pair>,
    ) -> Vec<(SharedKind, String, usize, usize)> {
        let place = |byte: u8| usize::from(byte - b'a');
        let pairs =
            hit.iter().map(|two| ordered_pair(place(two.as_bytes()[0]), place(two.as_bytes()[1])));
        let found = grouped(&six_agent_plan(), &pairs.collect(), measured);
        found
            .into_iter()
            .map(|hit| (hit.shared.kind, hit.shared.name, hit.pairs.len(), hit.of))
            .collect()
    }

    #[test]
    fn what_pairs_have_in_common_is_named_and_what_nothing_explains_stands_alone() {
        use SharedKind::{Agent, Mesh, Pair, Site, Uplink};
        let is = |kind, name: &str, hit, of| (kind, name.to_owned(), hit, of);
        let all = all_pairs();
        // Each of c's five pairs.
        let of_c = ["ac", "bc", "cd", "ce", "cf"];
        assert_eq!(named_incidents(&of_c, &all), [is(Agent, "c", 5, 5)]);
        // Four of five are c, too: 4 - 1 = 3, which no other has.
        assert_eq!(named_incidents(&of_c[1..], &all), [is(Agent, "c", 4, 5)]);
        // What goes over the uplink of a and b: eight, without the pair between them.
        let uplink = ["ac", "ad", "ae", "af", "bc", "bd", "be", "bf"];
        assert_eq!(named_incidents(&uplink, &all), [is(Uplink, "isp", 8, 8)]);
        // With the pair between them it is no uplink alone: that pair stands for itself.
        let more = [&uplink[..], &["ab"]].concat();
        let wanted = [is(Uplink, "isp", 8, 8), is(Pair, "a and b", 1, 1)];
        assert_eq!(named_incidents(&more, &all), wanted);
        // Both of a site, and the pair between them: nine.
        let site = ["ae", "be", "ce", "de", "af", "bf", "cf", "df", "ef"];
        assert_eq!(named_incidents(&site, &all), [is(Site, "rack", 9, 9)]);
        // Two pairs without anything in common, and one.
        let wanted = [is(Pair, "a and c", 1, 1), is(Pair, "b and d", 1, 1)];
        assert_eq!(named_incidents(&["ac", "bd"], &all), wanted);
        assert_eq!(named_incidents(&["ca"], &all), [is(Pair, "a and c", 1, 1)]);
        assert_eq!(named_incidents(&[], &all), []);
        // Two of c's five are not c's fault: 2 - 3.
        let wanted = [is(Pair, "a and c", 1, 1), is(Pair, "b and c", 1, 1)];
        assert_eq!(named_incidents(&["ac", "bc"], &all), wanted);
        // But they are where no more of it is measured.
        let two = BTreeSet::from([(0, 2), (1, 2), (3, 4)]);
        assert_eq!(named_incidents(&["ac", "bc"], &two), [is(Agent, "c", 2, 2)]);
        // Every pair: no agent, site or uplink has all fifteen.
        let letters = ["a", "b", "c", "d", "e", "f"];
        let every: Vec<String> = letters
            .iter()
            .flat_map(|a| letters.iter().filter(move |b| a < *b).map(move |b| format!("{a}{b}")))
            .collect();
        let every: Vec<&str> = every.iter().map(String::as_str).collect();
        assert_eq!(named_incidents(&every, &all), [is(Mesh, "m", 15, 15)]);
        // c, and apart from it the pair of d and e.
        let wanted = [is(Agent, "c", 5, 5), is(Pair, "d and e", 1, 1)];
        assert_eq!(named_incidents(&["ac", "bc", "cd", "ce", "cf", "de"], &all), wanted);
    }

    #[test]
    fn an_uplink_is_crossed_by_what_leaves_it_and_a_site_by_all_that_touches_it() {
        let plan = six_agent_plan();
        let of = |kind, name: &str| SharedElement { kind, name: name.to_owned() };
        let uplink = of(SharedKind::Uplink, "isp");
        assert!(crosses(&plan, &uplink, (0, 2)) && !crosses(&plan, &uplink, (0, 1)));
        assert!(!crosses(&plan, &uplink, (2, 3)));
        let site = of(SharedKind::Site, "rack");
        assert!(crosses(&plan, &site, (4, 5)) && crosses(&plan, &site, (0, 5)));
        assert!(!crosses(&plan, &site, (0, 1)));
        assert!(crosses(&plan, &of(SharedKind::Pair, "a and c"), (0, 2)));
        assert!(!crosses(&plan, &of(SharedKind::Agent, "a"), (0, 99)), "no such agent");
    }
}
