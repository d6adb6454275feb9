//! The plan of a study, as its TOML file says it, and the cells it expands to.
//!
//! A study is a grid: every topology × every test × every value of the test's parameter ×
//! repetitions. The order of cells is the order in the file, repetitions innermost, so that a
//! resumed run goes on where the last one stopped.

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
#[serde(deny_unknown_fields)]
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum TestKind {
    /// Flood ping by payload size.
    Ping {
        /// Payload octets.
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
        #[serde(default)]
        congestion_control: Option<String>,
    },
}

/// One measurement of the grid.
#[derive(Clone, Debug, PartialEq)]
pub struct CellPlan {
    /// Its place; `run` is empty until a run gives it one.
    pub cell: Cell,
    /// What to measure; `host` is empty until the laboratory gives addresses.
    pub plan: Plan,
}

impl StudyPlan {
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
