//! Who measures whom, how often and for how long, as a file says it.
//!
//! A command goes to `{to}`, the other agent, and to nobody else: the words behind it are flags,
//! each with its value attached, so that no further host can be named.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use jiff::Timestamp;
use serde::Deserialize;

use super::adhoc::Adhoc;
use crate::lab::{Problem, Step};
use crate::schedule::{Class, Span, read, usual_time_and_class};
use crate::study::PlanFileError;

/// Agents of one mesh.
pub const AGENTS_MAX: usize = 10_000;
/// Pairs with their way of all tasks: a calendar is computed in seconds.
pub const PAIRS_MAX: usize = 4_000_000;
/// Tasks of one mesh.
const TASKS_MAX: usize = 50;
/// Shortest and longest time between two runs of a pair.
const EVERY_S: (u64, u64) = (10, 7 * 86_400);
/// Shortest and longest slot.
pub(super) const TAKES_S: (u64, u64) = (6, 3600);
/// Clocks that are further apart are no clocks.
const MARGIN_S_MAX: u64 = 60;
/// Characters of a name.
const NAME_MAX: usize = 40;
/// Where the other agent's address goes.
pub(super) const TO: &str = "{to}";

/// A plan of a mesh.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeshPlan {
    /// Name of the mesh.
    pub mesh: String,
    /// Grows by each change; an agent takes no plan that is older than its own.
    pub revision: u64,
    /// From when on it is in force; at once where nothing is said. Periods are counted from
    /// 1970-01-01 UTC whatever this says.
    #[serde(default)]
    pub from: Option<Timestamp>,
    /// How far apart the clocks of two agents may be.
    #[serde(default = "margin")]
    pub margin: Span,
    /// Hosts.
    #[serde(rename = "agent")]
    pub agents: Vec<Agent>,
    /// Agents by one name.
    #[serde(default, rename = "group")]
    pub groups: Vec<Group>,
    /// What they measure.
    #[serde(rename = "task")]
    pub tasks: Vec<MeshTask>,
    /// What may be run beside that; nothing where it is not there.
    #[serde(default)]
    pub adhoc: Option<Adhoc>,
    /// What only those know who have the plan, by which two agents behind NAT meet.
    #[serde(skip)]
    pub secret: String,
}

const fn margin() -> Span {
    Span(std::time::Duration::from_secs(2))
}

/// A host that measures and is measured.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Agent {
    /// Its name.
    pub name: String,
    /// Where others reach it; not behind NAT.
    #[serde(default)]
    pub address: Option<IpAddr>,
    /// The port of its `linerate serve`.
    #[serde(default)]
    pub port: Option<u16>,
    /// It is behind NAT, and meets others that are at this agent.
    #[serde(default)]
    pub nat: Option<String>,
    /// What all its runs share with those of other agents of the same name: a machine, a LAN.
    #[serde(default)]
    pub site: Option<String>,
    /// What its runs to agents of another uplink share with those of other agents of the same.
    #[serde(default)]
    pub uplink: Option<String>,
}

/// Agents by one name.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// Their names.
    pub agents: Vec<String>,
    /// The agents that these meet; each other where nothing is said.
    #[serde(default)]
    pub to: Option<Vec<String>>,
    /// Sources with the destination that each does not measure.
    #[serde(default)]
    pub except: Vec<(String, String)>,
}

/// Who of a task meets whom, by place in the plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Met {
    /// Agents.
    pub from: Vec<usize>,
    /// Those that they meet; each other where nothing is said.
    pub to: Option<Vec<usize>>,
    /// Sources with destinations that they do not measure.
    pub except: Vec<(usize, usize)>,
}

/// Which of two agents measures the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ways {
    /// Each in turn.
    #[default]
    Both,
    /// One of them, for commands that measure both directions.
    One,
}

/// A measurement between each two agents of a group.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeshTask {
    /// Its name.
    pub name: String,
    /// The group; all agents where nothing is said.
    #[serde(default)]
    pub group: Option<String>,
    /// The command without `linerate`: `tcp {to} -t5`.
    pub run: String,
    /// Time between two runs of a pair.
    pub every: Span,
    /// Length of a slot: a run is over when it ends.
    #[serde(default)]
    pub takes: Option<Span>,
    /// What may run beside it.
    #[serde(default)]
    pub class: Option<Class>,
    /// Which of two agents measures.
    #[serde(default)]
    pub ways: Ways,
}

impl MeshTask {
    /// Seconds of a slot.
    pub fn takes_s(&self) -> u64 {
        takes_or(self.takes, &self.run)
    }

    /// What may run beside it.
    pub fn effective_class(&self) -> Class {
        let said = || usual_time_and_class(&self.run).map_or(Class::Exclusive, |(_, class)| class);
        self.class.unwrap_or_else(said)
    }

    fn check_values(&self) -> Result<(), (&'static str, String)> {
        check_command(&self.run).map_err(|reason| ("run", reason))?;
        let (every, takes) = (self.every.seconds(), self.takes_s());
        if !(EVERY_S.0..=EVERY_S.1).contains(&every) {
            return Err(("every", "the time between two runs is 10s to 7d".to_owned()));
        }
        if !(TAKES_S.0..=TAKES_S.1).contains(&takes) {
            return Err(("takes", "a slot is 6s to 1h long".to_owned()));
        }
        if takes >= every {
            return Err(("every", format!("a slot of {takes} s repeats in {every} s")));
        }
        Ok(())
    }
}

/// Seconds of a slot: as a plan says, or as its command usually takes.
pub(super) fn takes_or(said: Option<Span>, run: &str) -> u64 {
    said.map_or_else(|| usual_time_and_class(run).map_or(60, |(takes, _)| takes), Span::seconds)
}

/// Whether a command goes to `{to}` and to nobody else.
pub(super) fn check_command(run: &str) -> Result<(), String> {
    let words: Vec<&str> = run.split_whitespace().collect();
    if usual_time_and_class(run).is_none() || words.get(1) != Some(&TO) {
        let reason = "a command is tcp, udp, test, rrul, ping, stamp or trace, then {to}";
        return Err(format!("{run:?}: {reason}"));
    }
    for word in &words[2..] {
        let flag = word.len() > 1 && word.starts_with('-') && *word != "--";
        if !flag || word.contains(['/', '\'', '"', '{']) {
            let reason = "behind {to} stand flags with their values attached, as -t5 or \
                          --time=5, and no file";
            return Err(format!("{word:?}: {reason}"));
        }
    }
    Ok(())
}

impl Agent {
    /// Its address as a command takes it, with the port where the command asks its server.
    pub(super) fn target(&self, run: &str) -> String {
        let Some(address) = self.address else { return self.name.clone() };
        let asks_server =
            matches!(run.split_whitespace().next(), Some("tcp" | "udp" | "test" | "rrul"));
        match self.port.filter(|_| asks_server) {
            Some(port) => SocketAddr::new(address, port).to_string(),
            None => address.to_string(),
        }
    }
}

impl MeshPlan {
    /// Reads and checks a plan.
    /// # Errors
    /// Text that is no TOML, an unknown or missing key, or what makes no sense, with its line and
    /// column.
    pub fn from_toml(text: &str) -> Result<Self, PlanFileError> {
        read(text, Self::check_contents)
    }

    /// When it comes into force, seconds since 1970-01-01 UTC.
    pub fn from_s(&self) -> i64 {
        self.from.map_or(i64::MIN, Timestamp::as_second)
    }

    /// The place of an agent of a name.
    pub fn agent_index(&self, name: &str) -> Option<usize> {
        self.agents.iter().position(|agent| agent.name == name)
    }

    /// Who meets whom in a task, in the order of its group.
    pub(super) fn task_members(&self, task: &MeshTask) -> Met {
        let Some(name) = &task.group else {
            return Met { from: (0..self.agents.len()).collect(), ..Met::default() };
        };
        let places: BTreeMap<&str, usize> =
            self.agents.iter().enumerate().map(|(at, agent)| (agent.name.as_str(), at)).collect();
        let place = |name: &String| places.get(name.as_str()).copied();
        let of = |names: &Vec<String>| -> Vec<usize> { names.iter().filter_map(place).collect() };
        let Some(group) = self.groups.iter().find(|group| group.name == *name) else {
            return Met::default();
        };
        let except = group.except.iter();
        Met {
            from: of(&group.agents),
            to: group.to.as_ref().map(of),
            except: except.filter_map(|(a, b)| Some((place(a)?, place(b)?))).collect(),
        }
    }

    fn check_contents(&self) -> Result<(), Problem> {
        let refuse = |path: Vec<Step>, message: String| Err(Problem { path, message });
        if !is_name(&self.mesh) {
            return refuse(vec![Step::Key("mesh")], no_name(&self.mesh));
        }
        if self.margin.seconds() > MARGIN_S_MAX {
            return refuse(vec![Step::Key("margin")], "clocks are 60s apart at most".to_owned());
        }
        if !(2..=AGENTS_MAX).contains(&self.agents.len()) {
            let count = self.agents.len();
            return refuse(Vec::new(), format!("{count} agents; a mesh has 2 to {AGENTS_MAX}"));
        }
        if !(1..=TASKS_MAX).contains(&self.tasks.len()) {
            let count = self.tasks.len();
            return refuse(Vec::new(), format!("{count} tasks; a mesh has 1 to {TASKS_MAX}"));
        }
        self.check_agents()?;
        self.check_groups()?;
        let mut names = BTreeSet::new();
        let mut pairs = 0;
        for (index, task) in self.tasks.iter().enumerate() {
            let at = |key| vec![Step::Key("task"), Step::Index(index), Step::Key(key)];
            if !is_name(&task.name) || !names.insert(&task.name) {
                return refuse(at("name"), no_name(&task.name));
            }
            task.check_values().or_else(|(key, message)| refuse(at(key), message))?;
            if let Some(name) = &task.group
                && self.groups.iter().all(|group| group.name != *name)
            {
                return refuse(at("group"), format!("there is no group {name:?}"));
            }
            let met = self.task_members(task);
            pairs += match met.to {
                Some(to) => 2 * met.from.len() * to.len(),
                None => met.from.len() * (met.from.len() - 1),
            };
        }
        if pairs > PAIRS_MAX {
            let message = format!("{pairs} pairs; a plan has {PAIRS_MAX} at most: smaller groups");
            return refuse(Vec::new(), message);
        }
        self.check_adhoc()
    }

    fn check_agents(&self) -> Result<(), Problem> {
        let (mut names, mut addresses) = (BTreeSet::new(), BTreeSet::new());
        for (index, agent) in self.agents.iter().enumerate() {
            let refuse = |key, message: String| {
                let path = vec![Step::Key("agent"), Step::Index(index), Step::Key(key)];
                Err(Problem { path, message })
            };
            if !is_name(&agent.name) || !names.insert(&agent.name) {
                return refuse("name", no_name(&agent.name));
            }
            if let Err((key, message)) = self.check_nat(agent) {
                return refuse(key, message);
            }
            if let Some(address) = agent.address
                && !addresses.insert((address, agent.port))
            {
                return refuse("address", format!("{address}: another agent has it"));
            }
            for (key, name) in [("site", &agent.site), ("uplink", &agent.uplink)] {
                if let Some(name) = name.as_ref().filter(|name| !is_name(name)) {
                    return refuse(key, no_name(name));
                }
            }
        }
        Ok(())
    }

    fn check_groups(&self) -> Result<(), Problem> {
        let known: BTreeSet<&str> = self.agents.iter().map(|agent| agent.name.as_str()).collect();
        let mut names = BTreeSet::new();
        for (index, group) in self.groups.iter().enumerate() {
            let refuse = |key, message: String| {
                let path = vec![Step::Key("group"), Step::Index(index), Step::Key(key)];
                Err(Problem { path, message })
            };
            if !is_name(&group.name) || !names.insert(&group.name) {
                return refuse("name", no_name(&group.name));
            }
            let one_or_two = if group.to.is_some() { 1 } else { 2 };
            let lists = [("agents", Some(&group.agents)), ("to", group.to.as_ref())];
            for (key, names) in lists.into_iter().filter_map(|(key, it)| Some((key, it?))) {
                let distinct: BTreeSet<&String> = names.iter().collect();
                if distinct.len() != names.len() || distinct.len() < one_or_two {
                    let least = if one_or_two == 1 { "one agent" } else { "two agents" };
                    return refuse(key, format!("a group has {least} or more, each once"));
                }
                if let Some(name) = names.iter().find(|name| !known.contains(name.as_str())) {
                    return refuse(key, format!("there is no agent {name:?}"));
                }
            }
            let names = group.except.iter().flat_map(|(from, to)| [from, to]);
            if let Some(name) = names.into_iter().find(|name| !known.contains(name.as_str())) {
                return refuse("except", format!("there is no agent {name:?}"));
            }
        }
        Ok(())
    }
}

/// Names stand in labels, keys and paths.
pub(super) fn is_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=NAME_MAX).contains(&name.len()) && name.bytes().all(plain)
}

pub(super) fn no_name(name: &str) -> String {
    format!("{name:?}: names differ, and have 1 to {NAME_MAX} letters, digits, - _ and .")
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "mesh = \"m\"\nrevision = 1\nfrom = \"2026-11-24T00:00:00Z\"\n\n\
        [[agent]]\nname = \"a\"\naddress = \"192.0.2.1\"\nport = 6000\n\n\
        [[agent]]\nname = \"b\"\naddress = \"2001:db8::2\"\nport = 6000\nsite = \"s\"\n\n\
        [[group]]\nname = \"g\"\nagents = [\"a\", \"b\"]\n\n\
        [[task]]\nname = \"rate\"\ngroup = \"g\"\nrun = \"tcp {to} -t5 -R\"\nevery = \"10m\"\n\
        takes = \"14s\"\n\n[[task]]\nname = \"delay\"\nrun = \"ping {to}\"\nevery = \"1m\"\n";

    #[test]
    fn a_plan_says_who_measures_whom_and_a_command_goes_to_the_other_alone() {
        let plan = MeshPlan::from_toml(GOOD).expect("a good plan");
        // 2026-11-24 00:00 UTC.
        assert_eq!(plan.from_s(), 1_795_478_400);
        let [rate, delay] = plan.tasks.as_slice() else { panic!("two tasks") };
        let words = |task: &MeshTask, from, to| plan.command_words(&task.name, &task.run, from, to);
        assert_eq!(words(rate, 0, 1), ["tcp", "[2001:db8::2]:6000", "-t5", "-R"]);
        assert_eq!(words(delay, 1, 0), ["ping", "192.0.2.1"]);
        assert_eq!(
            (rate.effective_class(), delay.effective_class()),
            (Class::Exclusive, Class::Background)
        );
        assert_eq!(plan.task_members(rate), Met { from: vec![0, 1], ..Met::default() });
        let star = "agents = [\"a\"]\nto = [\"b\"]\nexcept = [[\"b\", \"a\"]]";
        let plan = MeshPlan::from_toml(&GOOD.replacen("agents = [\"a\", \"b\"]", star, 1));
        let plan = plan.expect("a star");
        let met = Met { from: vec![0], to: Some(vec![1]), except: vec![(1, 0)] };
        assert_eq!(plan.task_members(&plan.tasks[0]), met);
    }

    #[test]
    fn a_mistake_is_one_line_with_its_place() {
        for (from, to, said) in [
            ("mesh = \"m\"", "mesh = \"m/n\"", "1:8: \"m/n\": names differ"),
            ("{to} -t5", "192.0.2.7 -t5", "23:7: \"tcp 192.0.2.7 -t5 -R\": a command is tcp"),
            ("-t5 -R", "-t 5", "23:7: \"5\": behind {to} stand flags"),
            ("-t5 -R", "-R -- 192.0.2.7", "23:7: \"--\": behind {to} stand flags"),
            ("-t5 -R", "--save=/etc/x", "23:7: \"--save=/etc/x\": behind {to} stand flags"),
            ("tcp {to}", "serve {to}", "23:7: \"serve {to} -t5 -R\": a command is tcp"),
            ("takes = \"14s\"", "takes = \"5s\"", "25:9: a slot is 6s to 1h long"),
            ("every = \"10m\"", "every = \"14s\"", "24:9: a slot of 14 s repeats in 14 s"),
            ("group = \"g\"", "group = \"h\"", "22:9: there is no group \"h\""),
            ("[\"a\", \"b\"]", "[\"a\", \"c\"]", "18:10: there is no agent \"c\""),
            ("agents = [", "to = [\"c\"]\nagents = [", "18:6: there is no agent \"c\""),
            ("agents = [", "to = []\nagents = [", "18:6: a group has one agent or more"),
            ("agents = [", "except = [[\"a\", \"c\"]]\nagents = [", "18:10: there is no agent"),
            ("2001:db8::2", "192.0.2.1", "12:11: 192.0.2.1: another agent has it"),
            ("revision = 1", "revision = 1\nepoch = 5", "3:1: unknown field"),
        ] {
            let error = MeshPlan::from_toml(&GOOD.replacen(from, to, 1)).expect_err(to).to_string();
            assert!(error.starts_with(said) && !error.contains('\n'), "{to}: {error}");
        }
    }
}
