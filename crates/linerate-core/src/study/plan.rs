//! The plan of a study, as its TOML file says it, and the cells it expands to.
//!
//! A study is a grid: every topology × every test × every value of the test's parameter ×
//! repetitions. The order of cells is the order in the file, repetitions innermost, so that a
//! resumed run goes on where the last one stopped.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::lab::LabPlan;
use crate::record::{Cell, PingPlan, Plan, TcpPlan};

/// A whole study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StudyPlan {
    /// Short name: `pren`.
    pub name: String,
    /// One line for headings.
    pub title: String,
    /// What the study rebuilds: authors, year, where it was published.
    #[serde(default)]
    pub source: Option<String>,
    /// One or two sentences for the head of the report.
    #[serde(default)]
    pub purpose: Option<String>,
    /// Where to measure, in order.
    #[serde(rename = "topology")]
    pub topologies: Vec<Topology>,
    /// What to measure on each topology, in order.
    #[serde(rename = "test")]
    pub tests: Vec<Test>,
}

/// One topology of a study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Topology {
    /// Identifier within the study: `c.1`.
    pub id: String,
    /// Name in tables and legends: `localhost`.
    pub title: String,
    /// `calibration`, `backbone`, `man`: topologies of one class share a plot.
    pub class: String,
    /// The laboratory to build.
    pub lab: LabPlan,
    /// The host that asks for the tests.
    pub client: String,
    /// The host that answers; the same name is measured over its loopback.
    pub server: String,
    /// Switches on the way.
    #[serde(default)]
    pub l2_hops: u32,
    /// Routers on the way.
    #[serde(default)]
    pub l3_hops: u32,
    /// The published rows to put beside this topology's.
    #[serde(default)]
    pub published: Option<PublishedAs>,
}

/// The published rows that belong to a topology.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PublishedAs {
    /// Identifier in the published tables: `c.1`.
    pub test: String,
    /// Only rows of this MTU, where the published table varies it.
    #[serde(default)]
    pub mtu_bytes: Option<u32>,
}

/// One test of a study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "TestTable")]
pub struct Test {
    /// Identifier within the study: `ping`, `tcp`.
    pub id: String,
    /// What is measured, and the values of its parameter.
    #[serde(flatten)]
    pub kind: TestKind,
    /// How often each value is measured.
    pub repetitions: u32,
}

/// What a test measures.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum TestKind {
    /// Flood ping by payload size.
    Ping {
        /// Payload bytes.
        sizes_bytes: Vec<u32>,
        /// Probes of each size.
        count: u64,
    },
    /// TCP throughput by window.
    Tcp {
        /// Socket buffers to ask for; 0 leaves the kernel's autotuning on.
        windows_bytes: Vec<u64>,
        /// Time of each run.
        seconds: f64,
        /// Congestion control at the sender; null is the host's default.
        congestion_control: Option<String>,
    },
}

/// A test as its table in the file has it. A flattened enum would accept any key beside its own,
/// so the keys are listed once more here, and the kind decides which of them belong.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TestTable {
    id: String,
    kind: KindName,
    repetitions: u32,
    sizes_bytes: Option<Vec<u32>>,
    count: Option<u64>,
    windows_bytes: Option<Vec<u64>>,
    seconds: Option<f64>,
    congestion_control: Option<String>,
}

/// The kinds of test by name.
#[derive(Clone, Copy, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum KindName {
    Ping,
    Tcp,
}

impl TryFrom<TestTable> for Test {
    type Error = String;

    fn try_from(table: TestTable) -> Result<Self, String> {
        let TestTable { id, repetitions, .. } = table;
        let name = format!("test '{id}'");
        let kind = match table.kind {
            KindName::Ping => {
                foreign(&name, "ping", "windows_bytes", table.windows_bytes.is_some())?;
                foreign(&name, "ping", "seconds", table.seconds.is_some())?;
                let named = table.congestion_control.is_some();
                foreign(&name, "ping", "congestion_control", named)?;
                TestKind::Ping {
                    sizes_bytes: needed(&name, "ping", "sizes_bytes", table.sizes_bytes)?,
                    count: needed(&name, "ping", "count", table.count)?,
                }
            }
            KindName::Tcp => {
                foreign(&name, "tcp", "sizes_bytes", table.sizes_bytes.is_some())?;
                foreign(&name, "tcp", "count", table.count.is_some())?;
                TestKind::Tcp {
                    windows_bytes: needed(&name, "tcp", "windows_bytes", table.windows_bytes)?,
                    seconds: needed(&name, "tcp", "seconds", table.seconds)?,
                    congestion_control: table.congestion_control,
                }
            }
        };
        Ok(Self { id, kind, repetitions })
    }
}

fn needed<T>(test: &str, kind: &str, key: &str, value: Option<T>) -> Result<T, String> {
    value.ok_or_else(|| format!("{test} of kind {kind} lacks the key '{key}'"))
}

fn foreign(test: &str, kind: &str, key: &str, present: bool) -> Result<(), String> {
    if present { Err(format!("{test} of kind {kind} has no key '{key}'")) } else { Ok(()) }
}

/// One measurement of the grid.
#[derive(Clone, Debug, PartialEq)]
pub struct CellPlan {
    /// Its place; `run` is empty until a run gives it one.
    pub cell: Cell,
    /// What to measure; `host` is empty until the laboratory gives addresses.
    pub plan: Plan,
}

/// The place of a measurement within its run: what a resumed run compares.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CellKey {
    /// Identifier of the topology within the study.
    pub topology: String,
    /// Identifier of the test within the study.
    pub test: String,
    /// The value of the varied parameter.
    pub parameter: u64,
    /// Counted from 1.
    pub repetition: u32,
}

impl CellKey {
    /// The place of `cell` within whatever run it belongs to.
    pub fn of(cell: &Cell) -> Self {
        Self {
            topology: cell.topology.clone(),
            test: cell.test.clone(),
            parameter: cell.parameter,
            repetition: cell.repetition,
        }
    }
}

impl fmt::Display for CellKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { topology, test, parameter, repetition } = self;
        write!(f, "{topology} {test} {parameter} #{repetition}")
    }
}

impl StudyPlan {
    /// The same study on the topologies named in `only`, in the order of the file; all of them
    /// when `only` is empty.
    /// # Errors
    /// The first name that is no topology of this study.
    pub fn only(mut self, only: &[String]) -> Result<Self, String> {
        if let Some(name) = only.iter().find(|id| !self.topologies.iter().any(|t| t.id == **id)) {
            return Err(name.clone());
        }
        if !only.is_empty() {
            self.topologies.retain(|topology| only.contains(&topology.id));
        }
        Ok(self)
    }

    /// The same study with every test repeated `repetitions` times.
    #[must_use]
    pub fn repeated(mut self, repetitions: u32) -> Self {
        self.tests.iter_mut().for_each(|test| test.repetitions = repetitions);
        self
    }

    /// Every measurement of the study, in the order in which a run makes them.
    pub fn cells(&self) -> Vec<CellPlan> {
        let mut cells = Vec::new();
        for topology in &self.topologies {
            for test in &self.tests {
                for (parameter, plan) in test.plans() {
                    for repetition in 1..=test.repetitions {
                        let cell = Cell {
                            study: self.name.clone(),
                            run: String::new(),
                            topology: topology.id.clone(),
                            test: test.id.clone(),
                            parameter,
                            repetition,
                        };
                        cells.push(CellPlan { cell, plan: plan.clone() });
                    }
                }
            }
        }
        cells
    }
}

impl Test {
    /// How many values its parameter takes.
    pub const fn values(&self) -> usize {
        match &self.kind {
            TestKind::Ping { sizes_bytes, .. } => sizes_bytes.len(),
            TestKind::Tcp { windows_bytes, .. } => windows_bytes.len(),
        }
    }

    /// The plan for each value of the parameter, without a target.
    fn plans(&self) -> Vec<(u64, Plan)> {
        match &self.kind {
            TestKind::Ping { sizes_bytes, count } => sizes_bytes
                .iter()
                .map(|&size| (u64::from(size), Plan::Ping(flood_plan(size, *count))))
                .collect(),
            TestKind::Tcp { windows_bytes, seconds, congestion_control } => windows_bytes
                .iter()
                .map(|&window| {
                    let plan = tcp_plan(window, *seconds, congestion_control.clone());
                    (window, Plan::Tcp(plan))
                })
                .collect(),
        }
    }
}

fn flood_plan(size: u32, count: u64) -> PingPlan {
    PingPlan {
        host: String::new(),
        sizes_bytes: vec![size],
        count: Some(count),
        mode: crate::record::PingMode::Flood,
        ..PingPlan::default()
    }
}

fn tcp_plan(window: u64, seconds: f64, congestion_control: Option<String>) -> TcpPlan {
    let span = std::time::Duration::try_from_secs_f64(seconds).unwrap_or_default();
    let span_ns = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
    TcpPlan {
        host: String::new(),
        finish: crate::record::Finish::TimeNs(span_ns),
        interval_ns: (span_ns / 10).max(100_000_000),
        window_bytes: (window > 0).then_some(window),
        congestion_control,
        ..TcpPlan::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Finish, PingMode};

    const TWO_BY_TWO: &str = r#"
name = "s"
title = "t"
[[topology]]
id = "a"
title = "A"
class = "c"
client = "h"
server = "h"
[[topology.lab.host]]
name = "h"
[[topology]]
id = "b"
title = "B"
class = "c"
client = "h"
server = "g"
[[topology.lab.host]]
name = "h"
[[topology.lab.host]]
name = "g"
[[topology.lab.link]]
ends = ["h", "g"]
[[test]]
id = "ping"
kind = "ping"
sizes_bytes = [56, 1500]
count = 10
repetitions = 1
[[test]]
id = "tcp"
kind = "tcp"
windows_bytes = [0, 16384]
seconds = 0.5
congestion_control = "cubic"
repetitions = 3
"#;

    fn plan() -> StudyPlan {
        StudyPlan::from_toml(TWO_BY_TWO).expect("a sound plan")
    }

    #[test]
    fn the_grid_is_in_the_order_of_the_file_with_repetitions_innermost() {
        // By hand: 2 topologies x (2 sizes x 1 + 2 windows x 3) = 16.
        let cells = plan().cells();
        let keys: Vec<String> =
            cells.iter().map(|cell| CellKey::of(&cell.cell).to_string()).collect();
        assert_eq!(keys.len(), 16);
        let first_topology = [
            "a ping 56 #1",
            "a ping 1500 #1",
            "a tcp 0 #1",
            "a tcp 0 #2",
            "a tcp 0 #3",
            "a tcp 16384 #1",
            "a tcp 16384 #2",
            "a tcp 16384 #3",
        ];
        assert_eq!(keys[..8], first_topology);
        assert_eq!(keys[8], "b ping 56 #1");
        let distinct: std::collections::BTreeSet<_> = keys.iter().collect();
        assert_eq!(distinct.len(), 16);
    }

    #[test]
    fn a_cell_carries_what_its_test_asks_for() {
        let cells = plan().cells();
        let Plan::Ping(ping) = &cells[1].plan else { panic!("the second cell is a ping") };
        assert_eq!((ping.mode, ping.count), (PingMode::Flood, Some(10)));
        assert_eq!(ping.sizes_bytes, [1500]);
        let Plan::Tcp(free) = &cells[2].plan else { panic!("the third cell is TCP") };
        assert_eq!(free.window_bytes, None, "0 leaves autotuning on");
        let Plan::Tcp(tcp) = &cells[5].plan else { panic!("the sixth cell is TCP") };
        assert_eq!(tcp.window_bytes, Some(16_384));
        assert_eq!(tcp.finish, Finish::TimeNs(500_000_000));
        assert_eq!(tcp.congestion_control.as_deref(), Some("cubic"));
    }

    #[test]
    fn a_part_of_a_study_keeps_the_order_of_the_file_and_refuses_strangers() {
        let one = plan().only(&["b".to_owned()]).expect("b is there").repeated(2);
        // 1 topology x (2 sizes + 2 windows) x 2.
        assert_eq!(one.cells().len(), 8);
        assert!(one.cells().iter().all(|cell| cell.cell.topology == "b"));
        assert_eq!(plan().only(&[]).expect("all").cells().len(), 16);
        assert_eq!(plan().only(&["b".to_owned(), "z".to_owned()]), Err("z".to_owned()));
    }
}
