//! Rules for a study beyond its types: names that meet, numbers that can be measured, and
//! laboratories that can be built.
//!
//! Finds the first problem and where it is; the text of a file turns that into line and column.

use std::collections::BTreeSet;

use super::check_bench::{check_bench, check_ports};
use super::fault::{Checked, fault_at_path, item_fault, key_fault, prefix_place, require};
use super::list::check_lists;
use super::{StudyPlan, Test, TestKind, Topology, question};
use crate::lab::{Problem, Step};

/// Most cells in one study: at a second each more than a day.
const CELLS_MAX: usize = 100_000;

impl StudyPlan {
    /// Refuses a study that no machine could run, even one that allows its laboratories.
    /// # Errors
    /// The first problem, with its place.
    pub fn check_runnable(&self) -> Result<(), Problem> {
        well_named("study", &self.name, &[Step::Key("name")])?;
        if self.topologies.is_empty() {
            return fault_at_path(&[], "the study has no [[topology]]");
        }
        if self.tests.is_empty() {
            return fault_at_path(&[], "the study has no [[test]]");
        }
        let topologies = self.topologies.iter().map(|topology| topology.id.as_str());
        check_ids("topology", topologies)?;
        check_ids("test", self.tests.iter().map(|test| test.id.as_str()))?;
        for (index, topology) in self.topologies.iter().enumerate() {
            prefix_place("topology", index, check_topology(topology))?;
        }
        for (index, test) in self.tests.iter().enumerate() {
            let outcome = check_test(self, test).map_err(|problem| Problem {
                message: format!("test '{}': {}", test.id, problem.message),
                ..problem
            });
            prefix_place("test", index, outcome)?;
        }
        self.check_used()?;
        self.check_size()?;
        question::check_questions(self)
    }

    /// A topology that no test is on would be built for nothing.
    fn check_used(&self) -> Checked {
        let unused = |topology: &Topology| !self.tests.iter().any(|test| test.is_on(&topology.id));
        match self.topologies.iter().position(unused) {
            Some(index) => {
                let path = [Step::Key("topology"), Step::Index(index), Step::Key("id")];
                fault_at_path(
                    &path,
                    format!("no test is on topology '{}'", self.topologies[index].id),
                )
            }
            None => Ok(()),
        }
    }

    fn check_size(&self) -> Checked {
        let topologies_of = |test: &Test| test.on.as_ref().map_or(self.topologies.len(), Vec::len);
        let cells_of = |test: &Test| {
            let cells = test.values().len().saturating_mul(test.repetitions as usize);
            cells.saturating_mul(topologies_of(test))
        };
        let cells = self.tests.iter().map(cells_of).fold(0, usize::saturating_add);
        if cells <= CELLS_MAX {
            return Ok(());
        }
        fault_at_path(&[], format!("the study has {cells} measurements; the most is {CELLS_MAX}"))
    }
}

fn well_named(what: &str, name: &str, path: &[Step]) -> Checked {
    let fits = |c: char| c.is_ascii_alphanumeric() || "./-_".contains(c);
    if !name.is_empty() && name.chars().all(fits) {
        return Ok(());
    }
    let rule = "use letters, digits and . / - _ only, at least one";
    fault_at_path(path, format!("{what} '{name}': {rule}"))
}

fn check_ids<'a>(list: &'static str, ids: impl Iterator<Item = &'a str>) -> Checked {
    let mut seen = BTreeSet::new();
    for (index, id) in ids.enumerate() {
        let path = [Step::Key(list), Step::Index(index), Step::Key("id")];
        well_named(list, id, &path)?;
        if !seen.insert(id) {
            return fault_at_path(&path, format!("{list} '{id}' is there twice"));
        }
    }
    Ok(())
}

fn check_topology(topology: &Topology) -> Checked {
    let id = &topology.id;
    for (role, host) in [("client", &topology.client), ("server", &topology.server)] {
        if !topology.lab.hosts.iter().any(|plan| plan.name == *host) {
            let message =
                format!("topology '{id}': its {role} '{host}' is no host of its laboratory");
            return key_fault(role, message);
        }
    }
    topology.lab.check_buildable().map_err(|problem| {
        let mut path = vec![Step::Key("lab")];
        path.extend(problem.path);
        Problem { path, message: format!("topology '{id}': {}", problem.message) }
    })
}

/// The topologies that a test names are those of the study, each once.
fn check_on(study: &StudyPlan, test: &Test) -> Checked {
    let Some(on) = &test.on else { return Ok(()) };
    require(!on.is_empty(), "on", "on is empty; name topologies, or leave it out for all")?;
    for (index, name) in on.iter().enumerate() {
        if !study.topologies.iter().any(|topology| topology.id == *name) {
            return item_fault("on", index, format!("the study has no topology '{name}'"));
        }
        if on[..index].contains(name) {
            return item_fault("on", index, format!("topology '{name}' is there twice"));
        }
    }
    Ok(())
}

/// Refuses a test that cannot be measured on every topology that it is on.
fn check_test(study: &StudyPlan, test: &Test) -> Checked {
    check_on(study, test)?;
    require(test.repetitions > 0, "repetitions", "repetitions is 0; measure at least once")?;
    match &test.kind {
        TestKind::Ping { count, .. } => {
            require(*count > 0, "count", "count is 0; send at least one probe")?;
            check_lists(&test.kind.lists(), "sizes_bytes")?;
        }
        TestKind::Tcp(tcp) => tcp.check_values()?,
        TestKind::Simulate(simulate) => simulate.check_values()?,
        TestKind::Udp(udp) => udp.check_values()?,
        TestKind::Bench(bench) => check_bench(bench)?,
    }
    // What does not fit a topology lies in the choice of topologies, where there is one.
    let place = if test.on.is_some() { vec![Step::Key("on")] } else { Vec::new() };
    for topology in study.topologies.iter().filter(|topology| test.is_on(&topology.id)) {
        match &test.kind {
            TestKind::Ping { .. } | TestKind::Udp(_) => {}
            TestKind::Tcp(tcp) => tcp.check_background(topology)?,
            TestKind::Simulate(simulate) => {
                simulate.common.check_background(topology)?;
                let plan = simulate.plan_for_value(topology, 0).map(drop);
                plan.or_else(|reason| fault_at_path(&place, reason))?;
            }
            TestKind::Bench(bench) => check_ports(topology, bench).or_else(|reason| {
                fault_at_path(&place, format!("topology '{}': {reason}", topology.id))
            })?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::{BackgroundFlow, TcpSweep};

    /// One host that measures itself.
    fn single_host_study() -> StudyPlan {
        let topology = Topology::from_lab("host = [{ name = \"h\" }]", "h", "h");
        StudyPlan {
            name: "s".to_owned(),
            title: "t".to_owned(),
            source: None,
            purpose: None,
            shuffle_seed: None,
            retries: None,
            topologies: vec![Topology { id: "i.1/10".to_owned(), ..topology }],
            tests: vec![Test {
                id: "tcp".to_owned(),
                on: None,
                kind: TestKind::Tcp(two_window_sweep()),
                repetitions: 2,
            }],
            questions: vec![],
        }
    }

    /// Two windows for a second each.
    fn two_window_sweep() -> TcpSweep {
        TcpSweep { windows_bytes: Some(vec![0, 16_384]), seconds: Some(1.0), ..TcpSweep::default() }
    }

    #[track_caller]
    fn refused(spoil: impl Fn(&mut StudyPlan), expected: &str) {
        let mut plan = single_host_study();
        spoil(&mut plan);
        let fault = plan.check_runnable().expect_err("the plan is spoilt").message;
        assert!(fault.contains(expected), "'{expected}' is not in: {fault}");
    }

    #[test]
    fn a_sound_plan_passes() {
        assert_eq!(single_host_study().check_runnable(), Ok(()));
    }

    #[test]
    fn each_fault_names_its_object() {
        refused(|plan| plan.name.clear(), "study ''");
        refused(|plan| plan.topologies.clear(), "no [[topology]]");
        refused(|plan| plan.tests.clear(), "no [[test]]");
        refused(|plan| plan.topologies[0].id = "a b".to_owned(), "topology 'a b'");
        refused(|plan| plan.topologies.push(plan.topologies[0].clone()), "'i.1/10' is there twice");
        refused(|plan| plan.tests.push(plan.tests[0].clone()), "test 'tcp' is there twice");
        refused(|plan| plan.topologies[0].server = "x".to_owned(), "server 'x'");
        refused(|plan| plan.tests[0].repetitions = 0, "repetitions is 0");
        refused(|plan| plan.tests[0].repetitions = 50_001, "100002 measurements");
    }

    #[test]
    fn a_number_that_cannot_be_measured_is_refused() {
        let tcp = |windows_bytes: Vec<u64>, seconds| {
            move |plan: &mut StudyPlan| {
                let windows_bytes = Some(windows_bytes.clone());
                let test =
                    TcpSweep { windows_bytes, seconds: Some(seconds), ..TcpSweep::default() };
                plan.tests[0].kind = TestKind::Tcp(test);
            }
        };
        let ping = |sizes_bytes: Vec<u32>, count| {
            move |plan: &mut StudyPlan| {
                plan.tests[0].kind = TestKind::ping(sizes_bytes.clone(), count);
            }
        };
        refused(tcp(vec![], 1.0), "windows_bytes is empty");
        refused(tcp(vec![1 << 31], 1.0), "the most is 2147483647");
        refused(tcp(vec![1, 1], 1.0), "1 is there twice");
        refused(tcp(vec![1], 0.0), "seconds is 0");
        refused(tcp(vec![1], f64::NAN), "seconds is NaN");
        refused(ping(vec![65_508], 1), "65508 bytes");
        refused(ping(vec![56], 0), "count is 0");
    }

    #[test]
    fn a_test_varies_one_thing_and_has_one_end() {
        let spoilt = |spoil: fn(&mut TcpSweep)| {
            move |plan: &mut StudyPlan| {
                let mut test = two_window_sweep();
                spoil(&mut test);
                plan.tests[0].kind = TestKind::Tcp(test);
            }
        };
        refused(
            spoilt(|test| test.streams = Some(vec![1, 2])),
            "windows_bytes and streams both have several values",
        );
        refused(spoilt(|test| test.windows_bytes = None), "it varies nothing");
        refused(spoilt(|test| test.streams = Some(vec![0])), "0; the least is 1");
        refused(spoilt(|test| test.streams = Some(vec![129])), "129; the most is 128");
        refused(spoilt(|test| test.sack = Some(Vec::new())), "sack is empty");
        refused(spoilt(|test| test.transfer_bytes = Some(vec![1])), "both end a run");
        refused(spoilt(|test| test.seconds = None), "it has no end");
        refused(spoilt(|test| test.omit_seconds = Some(601.0)), "omit_seconds is 601");
        refused(
            spoilt(|test| test.base.congestion_control = Some("C U".to_owned())),
            "no name of a congestion control",
        );
        refused(
            spoilt(|test| {
                test.base.congestion_control = Some("reno".to_owned());
                test.congestion_controls = Some(vec!["cubic".to_owned()]);
            }),
            "give one of them",
        );
        refused(
            spoilt(|test| {
                let background = BackgroundFlow { utilisation: Some(0.7), rate: None };
                test.background = Some(background);
            }),
            "no link of topology 'i.1/10' has a rate",
        );
    }
}
