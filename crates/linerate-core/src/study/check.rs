//! What a study must hold beyond its types: names that meet, numbers that can be measured.
//!
//! Links and rates of a laboratory are the laboratory's own to check, when it is built.

use std::collections::BTreeSet;

use super::{StudyPlan, Test, TestKind, Topology};

/// Most cells in one study: at a second each more than a day.
const CELLS_MAX: usize = 100_000;

/// Largest payload of an IPv4 echo: 65,535 less 20 bytes of IP and 8 of ICMP (RFC 791, RFC 792).
const PING_PAYLOAD_BYTES_MAX: u32 = 65_507;

/// Longest single run: a day.
const SECONDS_MAX: f64 = 86_400.0;

/// Why a plan cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanFault {
    /// A list that must have entries has none.
    #[error("the study has no {0}")]
    Nothing(&'static str),
    /// A name with characters that do not fit a file name or a flag.
    #[error("{what} '{name}': use letters, digits and . / - _ only, at least one")]
    Name {
        /// What bears it.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// Two things of one name.
    #[error("{what} '{name}' is there twice")]
    Twice {
        /// What bears it.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// A client or server that the laboratory does not have.
    #[error("topology '{topology}': its {role} '{host}' is no host of its laboratory")]
    NoHost {
        /// The topology.
        topology: String,
        /// `client` or `server`.
        role: &'static str,
        /// The name that is missing.
        host: String,
    },
    /// A number that cannot be measured with.
    #[error("test '{test}': {reason}")]
    Test {
        /// The test.
        test: String,
        /// What is wrong with it.
        reason: String,
    },
    /// More measurements than a run takes.
    #[error("the study has {0} measurements; the most is {CELLS_MAX}")]
    TooMany(usize),
}

impl StudyPlan {
    /// Checks what the types do not.
    /// # Errors
    /// The first [`PlanFault`] found.
    pub fn check(&self) -> Result<(), PlanFault> {
        well_named("study", &self.name)?;
        if self.topologies.is_empty() {
            return Err(PlanFault::Nothing("topology"));
        }
        if self.tests.is_empty() {
            return Err(PlanFault::Nothing("test"));
        }
        let topologies = || self.topologies.iter().map(|topology| topology.id.as_str());
        let tests = || self.tests.iter().map(|test| test.id.as_str());
        topologies().try_for_each(|id| well_named("topology", id))?;
        tests().try_for_each(|id| well_named("test", id))?;
        unique("topology", topologies())?;
        unique("test", tests())?;
        self.topologies.iter().try_for_each(check_topology)?;
        self.tests.iter().try_for_each(check_test)?;
        self.check_size()
    }

    fn check_size(&self) -> Result<(), PlanFault> {
        let cells_of = |test: &Test| test.values().saturating_mul(test.repetitions as usize);
        let per_topology = self.tests.iter().map(cells_of).fold(0, usize::saturating_add);
        let cells = per_topology.saturating_mul(self.topologies.len());
        if cells > CELLS_MAX { Err(PlanFault::TooMany(cells)) } else { Ok(()) }
    }
}

fn well_named(what: &'static str, name: &str) -> Result<(), PlanFault> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "./-_".contains(c);
    if !name.is_empty() && name.chars().all(fits) {
        return Ok(());
    }
    Err(PlanFault::Name { what, name: name.to_owned() })
}

fn unique<'a>(what: &'static str, names: impl Iterator<Item = &'a str>) -> Result<(), PlanFault> {
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(PlanFault::Twice { what, name: name.to_owned() });
        }
    }
    Ok(())
}

fn check_topology(topology: &Topology) -> Result<(), PlanFault> {
    for (role, host) in [("client", &topology.client), ("server", &topology.server)] {
        if !topology.lab.hosts.iter().any(|plan| plan.name == *host) {
            return Err(PlanFault::NoHost {
                topology: topology.id.clone(),
                role,
                host: host.clone(),
            });
        }
    }
    Ok(())
}

fn check_test(test: &Test) -> Result<(), PlanFault> {
    let fault = |reason: String| Err(PlanFault::Test { test: test.id.clone(), reason });
    if test.repetitions == 0 {
        return fault("repetitions is 0; measure at least once".to_owned());
    }
    if test.values() == 0 {
        return fault("its list of values is empty".to_owned());
    }
    match &test.kind {
        TestKind::Ping { sizes_bytes, count } => {
            if let Some(size) = sizes_bytes.iter().find(|&&size| size > PING_PAYLOAD_BYTES_MAX) {
                return fault(format!(
                    "payload of {size} bytes; the most is {PING_PAYLOAD_BYTES_MAX}"
                ));
            }
            if *count == 0 {
                return fault("count is 0; send at least one probe".to_owned());
            }
            distinct(test, sizes_bytes)
        }
        TestKind::Tcp { windows_bytes, seconds, .. } => {
            if !(*seconds > 0.0 && *seconds <= SECONDS_MAX) {
                return fault(format!("seconds is {seconds}; use more than 0, at most a day"));
            }
            distinct(test, windows_bytes)
        }
    }
}

/// A value that is listed twice would fill the same cell twice.
fn distinct<T: Copy + Ord + std::fmt::Display>(test: &Test, values: &[T]) -> Result<(), PlanFault> {
    let mut seen = BTreeSet::new();
    match values.iter().find(|&&value| !seen.insert(value)) {
        None => Ok(()),
        Some(value) => Err(PlanFault::Test {
            test: test.id.clone(),
            reason: format!("value {value} is there twice"),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::{HostPlan, LabPlan};

    fn plan() -> StudyPlan {
        let host = HostPlan { name: "h".to_owned(), loopback_mtu_bytes: None };
        StudyPlan {
            name: "s".to_owned(),
            title: "t".to_owned(),
            source: None,
            purpose: None,
            topologies: vec![Topology {
                id: "i.1/10".to_owned(),
                title: "one".to_owned(),
                class: "c".to_owned(),
                lab: LabPlan { hosts: vec![host], ..LabPlan::default() },
                client: "h".to_owned(),
                server: "h".to_owned(),
                l2_hops: 0,
                l3_hops: 0,
                published: None,
            }],
            tests: vec![Test {
                id: "tcp".to_owned(),
                kind: TestKind::Tcp {
                    windows_bytes: vec![0, 16_384],
                    seconds: 1.0,
                    congestion_control: None,
                },
                repetitions: 2,
            }],
        }
    }

    #[track_caller]
    fn refused(spoil: impl Fn(&mut StudyPlan), expected: &str) {
        let mut plan = plan();
        spoil(&mut plan);
        let fault = plan.check().expect_err("the plan is spoilt").to_string();
        assert!(fault.contains(expected), "'{expected}' is not in: {fault}");
    }

    #[test]
    fn a_sound_plan_passes() {
        assert_eq!(plan().check(), Ok(()));
    }

    #[test]
    fn each_fault_names_its_object() {
        refused(|plan| plan.name.clear(), "study ''");
        refused(|plan| plan.topologies.clear(), "no topology");
        refused(|plan| plan.tests.clear(), "no test");
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
                let windows_bytes = windows_bytes.clone();
                plan.tests[0].kind =
                    TestKind::Tcp { windows_bytes, seconds, congestion_control: None };
            }
        };
        let ping = |sizes_bytes: Vec<u32>, count| {
            move |plan: &mut StudyPlan| {
                plan.tests[0].kind = TestKind::Ping { sizes_bytes: sizes_bytes.clone(), count };
            }
        };
        refused(tcp(vec![], 1.0), "list of values is empty");
        refused(tcp(vec![1, 1], 1.0), "value 1 is there twice");
        refused(tcp(vec![1], 0.0), "seconds is 0");
        refused(tcp(vec![1], f64::NAN), "seconds is NaN");
        refused(ping(vec![65_508], 1), "payload of 65508");
        refused(ping(vec![56], 0), "count is 0");
    }
}
