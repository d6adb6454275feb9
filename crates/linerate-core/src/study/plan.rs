//! The plan of a study, as its TOML file says it, and the cells it expands to.
//!
//! A study is a grid: every topology × every test × every value of the test's parameter ×
//! repetitions. The order of cells is the order in the file, repetitions innermost, so that a
//! resumed run goes on where the last one stopped.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Question, Test, Topology};
use crate::record::{Plan, StudyCell};

/// A whole study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct StudyPlan {
    /// Short name: `pren`.
    pub name: String,
    /// One line for headings.
    pub title: String,
    /// Origin of the study that is rebuilt: authors, year, where it was published.
    #[serde(default)]
    pub source: Option<String>,
    /// One or two sentences for the head of the report.
    #[serde(default)]
    pub purpose: Option<String>,
    /// Measure the cells of each topology in an order that this number decides; in the order of
    /// the file when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shuffle_seed: Option<u64>,
    /// How often to repeat a run that its own machine disturbed, an emulated path late or short of
    /// packets; 2 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<u8>,
    /// Where to measure, in order.
    #[serde(rename = "topology")]
    pub topologies: Vec<Topology>,
    /// Tests of each topology, in order.
    #[serde(rename = "test")]
    pub tests: Vec<Test>,
    /// Questions of the study, answered by the figures of a run.
    #[serde(rename = "question", default, skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<Question>,
}

/// One measurement of the grid.
#[derive(Clone, Debug, PartialEq)]
pub struct CellPlan {
    /// Its place; `run` is empty until a run gives it one.
    pub cell: StudyCell,
    /// Plan of the measurement; `host` is empty until the laboratory gives addresses.
    pub plan: Plan,
    /// Selective acknowledgements at both ends meanwhile; none leaves them as the topology has
    /// them.
    pub sack: Option<bool>,
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
    pub fn from_cell(cell: &StudyCell) -> Self {
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
    /// Words for the measurement of a cell: `one switch: window 32 KiB, run 5 of 5`.
    pub fn words_of(&self, cell: &StudyCell) -> String {
        let topology = self.topologies.iter().find(|topology| topology.id == cell.topology);
        let test = self.tests.iter().find(|test| test.id == cell.test);
        let Some((topology, test)) = topology.zip(test) else {
            return CellKey::from_cell(cell).to_string();
        };
        let value = test.values().into_iter().find(|value| value.number == cell.parameter);
        let label = value.map_or_else(|| cell.parameter.to_string(), |value| value.label);
        let run = match test.repetitions {
            0 | 1 => String::new(),
            all => format!(", run {} of {all}", cell.repetition),
        };
        format!("{}: {}{run}", topology.title, test.named(&label))
    }

    /// The same study on the topologies named in `only`, in the order of the file; all
    /// of them when `only` is empty. Tests that are on none of them go, and so do
    /// questions about others.
    /// # Errors
    /// The first name that is no topology of this study.
    pub fn only_topologies(mut self, only: &[String]) -> Result<Self, String> {
        if let Some(name) = only.iter().find(|id| !self.topologies.iter().any(|t| t.id == **id)) {
            return Err(name.clone());
        }
        if !only.is_empty() {
            self.topologies.retain(|topology| only.contains(&topology.id));
            for on in self.tests.iter_mut().filter_map(|test| test.on.as_mut()) {
                on.retain(|id| only.contains(id));
            }
            self.tests.retain(|test| test.on.as_ref().is_none_or(|on| !on.is_empty()));
            let is_left = |question: &Question| {
                question.topologies().all(|id| only.iter().any(|left| left == id))
            };
            self.questions.retain(is_left);
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
    pub fn cell_plans(&self) -> Vec<CellPlan> {
        let mut cells = Vec::new();
        for (index, topology) in (0..).zip(&self.topologies) {
            let from = cells.len();
            let tests = self.tests.iter().filter(|test| test.is_on(&topology.id));
            cells.extend(tests.flat_map(|test| self.cells_of(topology, test)));
            if let Some(seed) = self.shuffle_seed {
                let mut seed = seed.wrapping_add(index);
                shuffle(&mut cells[from..], split_mix(&mut seed));
            }
        }
        cells
    }

    /// The topologies that have to be built for `cells`; a model needs none.
    pub fn laboratories<'a>(cells: impl Iterator<Item = &'a CellPlan>) -> usize {
        let live = cells.filter(|cell| cell.plan.is_live());
        live.map(|cell| cell.cell.topology.as_str()).collect::<BTreeSet<_>>().len()
    }

    fn cells_of(&self, topology: &Topology, test: &Test) -> Vec<CellPlan> {
        let name = test.parameter().name;
        let mut cells = Vec::new();
        for step in test.steps(topology) {
            for repetition in 1..=test.repetitions {
                let cell = StudyCell {
                    study: self.name.clone(),
                    run: String::new(),
                    topology: topology.id.clone(),
                    test: test.id.clone(),
                    parameter: step.value.number,
                    label: Some(format!("{name} {}", step.value.label)),
                    repetition,
                };
                let mut plan = step.plan.clone();
                if let Plan::Simulate(plan) = &mut plan {
                    plan.repeat(repetition);
                }
                cells.push(CellPlan { cell, plan, sack: step.sack });
            }
        }
        cells
    }
}

/// Cells in an order that a seed decides (Fisher and Yates 1938, Durstenfeld 1964): what drifts
/// while a study runs then falls on all values alike.
fn shuffle(cells: &mut [CellPlan], mut seed: u64) {
    for last in (1..cells.len()).rev() {
        let span = last as u64 + 1;
        // The bias of the remainder is below 10^-14 for the most cells that a study may have.
        let other = usize::try_from(split_mix(&mut seed) % span).unwrap_or(last);
        cells.swap(last, other);
    }
}

/// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014).
const fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = *state;
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Finish, PingMode, TcpPlan};

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

    fn two_by_two_plan() -> StudyPlan {
        StudyPlan::from_toml(TWO_BY_TWO).expect("a sound plan")
    }

    #[test]
    fn the_grid_is_in_the_order_of_the_file_with_repetitions_innermost() {
        // By hand: 2 topologies x (2 sizes x 1 + 2 windows x 3) = 16.
        let cells = two_by_two_plan().cell_plans();
        let keys: Vec<String> =
            cells.iter().map(|cell| CellKey::from_cell(&cell.cell).to_string()).collect();
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
        let distinct: BTreeSet<_> = keys.iter().collect();
        assert_eq!(distinct.len(), 16);
    }

    #[test]
    fn a_cell_carries_what_its_test_asks_for() {
        let cells = two_by_two_plan().cell_plans();
        let Plan::Ping(ping) = &cells[1].plan else { panic!("the second cell is a ping") };
        assert_eq!((ping.mode, ping.count), (PingMode::Flood, Some(10)));
        assert_eq!(ping.sizes_bytes, [1500]);
        let Plan::Tcp(free) = &cells[2].plan else { panic!("the third cell is TCP") };
        assert_eq!(free.test.window_bytes, None, "0 leaves autotuning on");
        let Plan::Tcp(tcp) = &cells[5].plan else { panic!("the sixth cell is TCP") };
        assert_eq!(tcp.test.window_bytes, Some(16_384));
        assert_eq!(tcp.test.finish, Finish::TimeNs(500_000_000));
        assert_eq!(tcp.test.congestion_control.as_deref(), Some("cubic"));
    }

    #[test]
    fn a_part_of_a_study_keeps_the_order_of_the_file_and_refuses_strangers() {
        let one =
            two_by_two_plan().only_topologies(&["b".to_owned()]).expect("b is there").repeated(2);
        // 1 topology x (2 sizes + 2 windows) x 2.
        assert_eq!(one.cell_plans().len(), 8);
        assert!(one.cell_plans().iter().all(|cell| cell.cell.topology == "b"));
        assert_eq!(two_by_two_plan().only_topologies(&[]).expect("all").cell_plans().len(), 16);
        assert_eq!(
            two_by_two_plan().only_topologies(&["b".to_owned(), "z".to_owned()]),
            Err("z".to_owned())
        );
    }

    /// The same with a link that a model can stand for on `b`, and a simulated test on it.
    fn with_virtual() -> StudyPlan {
        let link =
            "ends = [\"h\", \"g\"]\npath = { rate = \"1 Gbit/s\", delay = \"5 ms\", seed = 40 }";
        let text = TWO_BY_TWO.replace("ends = [\"h\", \"g\"]", link);
        let test = "[[test]]\nid = \"virtual\"\nkind = \"simulate\"\non = [\"b\"]\n\
                    windows_bytes = [65536]\nseconds = 1.0\nrepetitions = 3\n";
        StudyPlan::from_toml(&format!("{text}{test}")).expect("a sound plan")
    }

    #[test]
    fn a_test_of_some_topologies_has_cells_there_alone() {
        let cells = with_virtual().cell_plans();
        // 16 as before, and 3 repetitions on one of the two.
        assert_eq!(cells.len(), 19);
        let mut simulated = cells.iter().filter(|cell| !cell.plan.is_live());
        assert!(simulated.all(|cell| cell.cell.topology == "b" && cell.cell.test == "virtual"));
        assert_eq!(StudyPlan::laboratories(cells.iter()), 2);
        let models = cells.iter().filter(|cell| !cell.plan.is_live());
        assert_eq!(StudyPlan::laboratories(models), 0, "a model needs none");
    }

    #[test]
    fn a_part_of_a_study_keeps_no_test_that_is_elsewhere() {
        let one = with_virtual().only_topologies(&["a".to_owned()]).expect("a is there");
        assert_eq!(one.tests.len(), 2);
        assert_eq!(one.check_runnable(), Ok(()));
        let other = with_virtual().only_topologies(&["b".to_owned()]).expect("b is there");
        assert_eq!((other.tests.len(), other.check_runnable()), (3, Ok(())));
    }

    #[test]
    fn each_repetition_of_a_simulation_has_a_seed_of_its_own() {
        let seeds: Vec<u64> = with_virtual()
            .cell_plans()
            .iter()
            .filter_map(|cell| match &cell.plan {
                Plan::Simulate(plan) => Some(plan.random_seed()),
                _ => None,
            })
            .collect();
        assert_eq!(seeds, [40, 41, 42]);
    }

    /// The same study with another TCP test.
    fn with_tcp(keys: &str) -> StudyPlan {
        let old = "windows_bytes = [0, 16384]\nseconds = 0.5\ncongestion_control = \"cubic\"";
        assert!(TWO_BY_TWO.contains(old));
        StudyPlan::from_toml(&TWO_BY_TWO.replace(old, keys)).expect("a sound plan")
    }

    /// The TCP cells of the first topology.
    fn tcp_cells(plan: &StudyPlan) -> Vec<(CellPlan, TcpPlan)> {
        let mine = plan.cell_plans().into_iter().filter(|cell| cell.cell.topology == "a");
        let tcp = mine.filter_map(|cell| match &cell.plan {
            Plan::Tcp(tcp) => Some((cell.clone(), tcp.clone())),
            _ => None,
        });
        tcp.filter(|(cell, _)| cell.cell.repetition == 1).collect()
    }

    #[test]
    fn each_list_can_be_varied_while_the_others_hold() {
        let fixed = "windows_bytes = [2097152]\nread_bytes = [1024]\nomit_seconds = 0.25\n";
        let plan = with_tcp(&format!("{fixed}streams = [1, 4]\nseconds = 2.0"));
        let cells = tcp_cells(&plan);
        let numbers: Vec<u64> = cells.iter().map(|(cell, _)| cell.cell.parameter).collect();
        assert_eq!(numbers, [1, 4]);
        let (cell, tcp) = &cells[1];
        assert_eq!(cell.cell.label.as_deref(), Some("streams 4"));
        assert_eq!(
            (tcp.test.streams, tcp.test.window_bytes, tcp.test.read_bytes),
            (4, Some(2_097_152), Some(1024))
        );
        assert_eq!(
            (tcp.test.omit_ns, tcp.test.finish),
            (250_000_000, Finish::TimeNs(2_000_000_000))
        );
        let plan = with_tcp("transfer_bytes = [1000000, 5000000]");
        let cells = tcp_cells(&plan);
        assert_eq!(cells[1].1.test.finish, Finish::Bytes(5_000_000));
        assert_eq!(cells[1].0.cell.label.as_deref(), Some("transfer 5 MB"));
        assert_eq!((cells[1].1.test.streams, cells[1].1.test.window_bytes), (1, None));
        let plan = with_tcp("congestion_controls = [\"reno\", \"cubic\"]\nseconds = 1.0");
        let cells = tcp_cells(&plan);
        assert_eq!(cells[1].1.test.congestion_control.as_deref(), Some("cubic"));
        assert_eq!(cells[1].0.cell.parameter, 2);
    }

    #[test]
    fn what_belongs_to_the_hosts_is_beside_the_plan() {
        let plan = with_tcp("sack = [true, false]\nseconds = 1.0");
        let sack: Vec<Option<bool>> = tcp_cells(&plan).iter().map(|(cell, _)| cell.sack).collect();
        assert_eq!(sack, [Some(true), Some(false)]);
        assert!(
            with_tcp("streams = [1]\nseconds = 1.0").cell_plans().iter().all(|c| c.sack.is_none())
        );
    }

    #[test]
    fn a_flow_in_the_background_is_in_every_run() {
        let plan = with_tcp("streams = [1]\nseconds = 1.0\nbackground = { rate = \"31 Mbit/s\" }");
        let rates: Vec<_> = tcp_cells(&plan).iter().map(|(_, tcp)| tcp.test.background).collect();
        assert_eq!(rates, [Some(crate::units::BitRate::from_bits_per_sec(31_000_000))]);
    }

    #[test]
    fn a_seed_decides_the_order_within_each_topology_and_loses_no_cell() {
        let keys = |seed| -> Vec<CellKey> {
            let plan = StudyPlan { shuffle_seed: seed, ..two_by_two_plan() };
            plan.cell_plans().iter().map(|cell| CellKey::from_cell(&cell.cell)).collect()
        };
        let straight = keys(None);
        let shuffled = keys(Some(7));
        assert_ne!(straight, shuffled);
        assert_eq!(shuffled, keys(Some(7)));
        assert_ne!(shuffled, keys(Some(8)));
        let sorted = |mut keys: Vec<CellKey>| {
            keys.sort();
            keys
        };
        assert_eq!(sorted(straight), sorted(shuffled.clone()));
        // A topology is built once: its 8 cells stay together.
        assert!(shuffled[..8].iter().all(|key| key.topology == "a"));
    }

    #[test]
    fn the_seed_gives_the_numbers_that_the_generator_is_published_with() {
        // The first outputs of SplitMix64 from the seed 1234567, as printed with Vigna's
        // splitmix64.c at Rosetta Code.
        let mut state = 1_234_567;
        let numbers = [split_mix(&mut state), split_mix(&mut state)];
        assert_eq!(numbers, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]);
    }
}
