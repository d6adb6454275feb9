//! A scenario that was measured: its record, the path without the plant, whether it counts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{BASELINES, Half, Label, NoCause};
use crate::record::{
    Cause, Caveat, CaveatCode, Confidence, Direction, EmulatedPath, FlowSide, LimitVerdict,
    MetricId, Record, Series, Stat,
};

/// Least cost of a planted cause: the rate without it over the rate with it; or the delay under
/// load with it over the delay without it, where the difference is `DELAY_ADDED_NS_MIN` too.
const COST_MIN: f64 = 1.5;
const DELAY_ADDED_NS_MIN: f64 = 5e6;

/// Rate and delay that a run reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reach {
    /// Goodput; 0 where nothing arrived.
    pub goodput_bps: f64,
    /// Median delay of the probes under load.
    pub delay_ns: Option<f64>,
    /// Median interval of the one flow after the first quarter: goodput without its start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steady_bps: Option<f64>,
}

impl Reach {
    /// Rate and delay of one flow of the test's first direction, in a whole test; else of all its
    /// flows.
    pub fn from_record(record: &Record) -> Self {
        let way = Some(Direction::Up);
        let part = record.one_flow_part(Direction::Up).unwrap_or(record);
        let goodput = part.summary_value(MetricId::Goodput, Stat::Value, way);
        let delay = part.summary_value(MetricId::DelayLoaded, Stat::P50, way);
        Self { goodput_bps: goodput.unwrap_or(0.0), delay_ns: delay, steady_bps: steady(part) }
    }

    /// The rate that a promise is held against: without the start, where that is known.
    fn lasting_bps(&self) -> f64 {
        self.steady_bps.unwrap_or(self.goodput_bps)
    }
}

fn steady(record: &Record) -> Option<f64> {
    let is_of_one = |series: &&Series| {
        let way =
            series.direction == Some(Direction::Up) && series.side == Some(FlowSide::Receiver);
        series.metric.key() == "goodput_bps" && way
    };
    let mut all = record.series.iter().filter(is_of_one);
    let one = all.next().filter(|_| all.next().is_none())?;
    let late = one.values.iter().skip(one.values.len() / 4).flatten();
    let mut late: Vec<f64> = late.copied().collect();
    late.sort_unstable_by(f64::total_cmp);
    late.get(late.len() / 2).copied()
}

/// Validity of a case: only valid ones are scored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "is", content = "why")]
pub enum Validity {
    /// The case is scored.
    #[default]
    Valid,
    /// The planted cause does not limit the result, or the innocent condition does.
    Void(String),
    /// A disturbance of this machine spoilt the measurement.
    Disturbed(String),
    /// The path could not be built or measured.
    Failed(String),
}

/// A measured scenario. Stored one a line, as JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// Name of the case's recipe.
    pub recipe: String,
    /// Name of the recipe's family.
    pub family: String,
    /// Level of the parameters, from 0.
    pub level: u8,
    /// Congestion control of the sender.
    pub congestion: String,
    /// Seed of the values.
    pub seed: u64,
    /// Number of the run of several, from 1.
    pub run: u32,
    /// Half of the bank that the case belongs to.
    pub half: Half,
    /// The label that a diagnosis should give.
    pub expect: Label,
    /// Labels that are right too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accept: Vec<Label>,
    /// Values that were drawn for the recipe's parameters.
    pub drawn: BTreeMap<String, f64>,
    /// Validity: only a valid case is scored.
    pub validity: Validity,
    /// Result with the plant.
    pub with: Reach,
    /// Result without the plant; null where nothing is planted.
    pub without: Option<Reach>,
    /// The record as the diagnosis gets it: without the emulator's own report.
    pub record: Option<Box<Record>>,
}

impl Default for Case {
    fn default() -> Self {
        Self {
            recipe: String::new(),
            family: String::new(),
            level: 0,
            congestion: String::new(),
            seed: 0,
            run: 1,
            half: Half::Development,
            expect: Label::AT_CEILING,
            accept: Vec::new(),
            drawn: BTreeMap::new(),
            validity: Validity::Valid,
            with: Reach::default(),
            without: None,
            record: None,
        }
    }
}

/// Labels that a diagnosis and the baselines gave a case.
#[derive(Clone, Debug, PartialEq)]
pub struct CaseLabels {
    /// The diagnosis; none where it gave no verdict on the direction.
    pub said: Option<Label>,
    /// Confidence in the cause that it named.
    pub confidence: Option<Confidence>,
    /// Payload rate of the path by the verdict, over the rate without the plant.
    pub ceiling_ratio: Option<f64>,
    /// Rate of the path without the plant, over the next limit that the verdict promised.
    pub next_ratio: Option<f64>,
    /// True when it named a standing queue as the cause of the delay.
    pub names_queue: bool,
    /// The baselines, in their order.
    pub baselines: [Label; BASELINES.len()],
}

impl Case {
    /// Name of the case: recipe, level from 1, congestion control.
    pub fn name(&self) -> String {
        format!("{}/{}/{}", self.recipe, self.level + 1, self.congestion)
    }

    /// Adds the run with the plant: its record loses the laboratory's own data.
    pub fn add_planted_run(&mut self, mut record: Record) {
        self.with = Reach::from_record(&record);
        if let Some(late) = record.paths.iter().find(|path| path.late) {
            self.validity = Validity::Disturbed(emulator_fault(late));
        } else if let Some(caveat) = record.caveats.iter().find(|caveat| is_of_the_machine(caveat))
        {
            self.validity = Validity::Disturbed(caveat.detail.clone());
        }
        remove_emulator(&mut record);
        self.record = Some(Box::new(record));
    }

    /// Compares with the result of the path without the plant, and decides whether the case is
    /// scored.
    pub fn compare(&mut self, without: Reach) {
        self.without = Some(without);
        if self.validity != Validity::Valid {
            return;
        }
        let cost = without.goodput_bps / self.with.goodput_bps.max(1.0);
        let delays = self.with.delay_ns.zip(without.delay_ns);
        let slower = delays.is_some_and(|(with, without)| {
            with >= COST_MIN * without && with >= without + DELAY_ADDED_NS_MIN
        });
        let void = match self.expect {
            Label::AT_CEILING => {
                (cost >= COST_MIN).then(|| format!("{cost:.1} times the rate without it"))
            }
            Label::None(_) => None,
            Label::Cause(_) => (cost < COST_MIN && !slower)
                .then(|| format!("only {cost:.2} times the rate without the plant")),
        };
        if let Some(why) = void {
            self.validity = Validity::Void(why);
        }
    }

    /// True when a label is right for the case.
    pub fn is_right(&self, label: Label) -> bool {
        label == self.expect || self.accept.contains(&label)
    }

    /// Label of a verdict on the quantity that the plant harms. A standing queue costs delay and no
    /// rate, and is named beside the full link that it is before.
    fn label_of(&self, verdict: &LimitVerdict) -> Label {
        match Label::from_verdict(verdict) {
            Label::AT_CEILING if self.is_of_delay() && names_queue(verdict) => self.expect,
            label => label,
        }
    }

    /// True when the plant costs delay and no rate: no judge of the rate is scored on it, and none
    /// that names a queue on every full path can gain by it.
    pub fn is_of_delay(&self) -> bool {
        self.expect == Label::Cause(Cause::StandingQueue)
    }

    /// True when a label names a cause on a path without one.
    pub fn is_false_accusation(&self, label: Label) -> bool {
        self.is_innocent() && matches!(label, Label::Cause(_)) && !self.is_right(label)
    }

    /// True when nothing but its own rate limits this path.
    pub fn is_innocent(&self) -> bool {
        self.expect == Label::AT_CEILING
    }

    /// True when the case is scored.
    pub fn counts(&self) -> bool {
        self.validity == Validity::Valid
    }

    /// The verdict that is judged: on the direction of the plant.
    pub fn verdict(verdicts: &[LimitVerdict]) -> Option<&LimitVerdict> {
        let way = |verdict: &&LimitVerdict| verdict.direction == Some(Direction::Up);
        verdicts.iter().find(way).or_else(|| verdicts.first())
    }

    /// Judges by these verdicts of the case's record.
    pub fn judged(&self, verdicts: &[LimitVerdict]) -> CaseLabels {
        let first = Self::verdict(verdicts);
        let sender = self.record.as_deref().and_then(|record| {
            let part = record.one_flow_part(Direction::Up).unwrap_or(record);
            let flow = part.flows.iter().find(|flow| flow.direction == Direction::Up)?;
            flow.sender.as_ref()
        });
        // A promise is about the path once what was named is gone.
        let freed = match (self.is_innocent(), self.without) {
            (true, _) => Some(self.with),
            (false, without) => without,
        };
        let freed = freed.map(|reach| reach.lasting_bps()).filter(|bps| *bps > 0.0);
        let right = first.filter(|verdict| self.is_right(self.label_of(verdict)));
        let ceiling = right.and_then(|verdict| verdict.ceiling_bps);
        let next = right.and_then(|verdict| Some(verdict.next.as_ref()?.bps));
        CaseLabels {
            said: first.map(|verdict| self.label_of(verdict)),
            confidence: first.and_then(|verdict| verdict.confidence),
            ceiling_ratio: ceiling.zip(freed).map(|(ceiling, freed)| ceiling / freed),
            next_ratio: freed.zip(next).map(|(freed, next)| freed / next),
            names_queue: first.is_some_and(names_queue),
            baselines: BASELINES.map(|rule| (rule.says)(sender)),
        }
    }

    /// The case with less to store: values of series with four digits.
    #[must_use]
    pub fn thinned(mut self) -> Self {
        if let Some(record) = &mut self.record {
            record.series.iter_mut().for_each(round_values);
        }
        self
    }
}

impl CaseLabels {
    /// Label of the diagnosis; without a verdict it counts as undetermined.
    pub fn diagnosis_label(&self) -> Label {
        self.said.unwrap_or(Label::None(NoCause::Undetermined))
    }
}

fn names_queue(verdict: &LimitVerdict) -> bool {
    verdict.latency.as_ref().is_some_and(|latency| latency.cause == Some(Cause::StandingQueue))
}

/// True when a caveat concerns this machine, and nothing of the path or of the diagnosis: the
/// hypervisor took its CPUs, or somebody set its clock.
const fn is_of_the_machine(caveat: &Caveat) -> bool {
    matches!(caveat.code, CaveatCode::StolenTime | CaveatCode::ClockStepped)
}

fn emulator_fault(path: &EmulatedPath) -> String {
    match path.faults.as_slice() {
        [] => "the emulator was late".to_owned(),
        faults => faults.join("; "),
    }
}

/// Removes the emulator's own report from a record: a diagnosis does not have it either.
fn remove_emulator(record: &mut Record) {
    record.paths.clear();
    record.parts.iter_mut().for_each(remove_emulator);
    for ceiling in record.ceiling.iter_mut().chain(&mut record.ceiling_reverse) {
        (ceiling.value, ceiling.share) = (None, None);
        ceiling.layers.clear();
        ceiling.inputs.clear();
        ceiling.unknown.clear();
    }
}

fn round_values(series: &mut Series) {
    for value in series.values.iter_mut().flatten() {
        *value = format!("{value:.3e}").parse().unwrap_or(*value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Latency, Outcome, Plan, RecordId, TcpPlan, Tool};
    use crate::time::WallTime;

    fn compared(expect: Label, with: (f64, f64), without: (f64, f64)) -> Validity {
        let reach = |(mbit, ms): (f64, f64)| Reach {
            goodput_bps: mbit * 1e6,
            delay_ns: Some(ms * 1e6),
            steady_bps: None,
        };
        let mut case = Case { expect, with: reach(with), ..Case::default() };
        case.compare(reach(without));
        case.validity
    }

    #[test]
    fn a_plant_that_costs_neither_rate_nor_delay_is_void() {
        let window = Label::Cause(Cause::ReceiveWindow);
        assert_eq!(compared(window, (20.0, 41.0), (30.0, 60.0)), Validity::Valid);
        assert!(matches!(compared(window, (21.0, 60.0), (30.0, 60.0)), Validity::Void(_)));
        let queue = Label::Cause(Cause::StandingQueue);
        assert_eq!(compared(queue, (30.0, 250.0), (30.0, 60.0)), Validity::Valid);
        // Half as much again of a short delay is chance.
        assert!(matches!(compared(queue, (30.0, 3.0), (30.0, 1.0)), Validity::Void(_)));
        assert_eq!(compared(window, (0.0, 41.0), (30.0, 60.0)), Validity::Valid);
    }

    #[test]
    fn a_case_that_the_hypervisor_disturbed_is_left_out_whatever_was_said() {
        let plan = Plan::Tcp(TcpPlan::default());
        let tool = Tool { name: "linerate".to_owned(), version: "0".to_owned() };
        let mut record = Record::from_plan(
            RecordId::from_parts(0, [0; 10]),
            tool,
            plan,
            WallTime::from_unix_nanos(0),
        );
        let mut case = Case::default();
        case.add_planted_run(record.clone());
        assert_eq!(case.validity, Validity::Valid);
        record.caveats.push(Caveat::new(CaveatCode::StolenTime, "4.9 % of the CPU time", "repeat"));
        case.add_planted_run(record);
        assert_eq!(case.validity, Validity::Disturbed("4.9 % of the CPU time".to_owned()));
    }

    #[test]
    fn what_is_innocent_may_cost_nothing() {
        assert_eq!(compared(Label::AT_CEILING, (28.0, 90.0), (30.0, 41.0)), Validity::Valid);
        assert!(matches!(
            compared(Label::AT_CEILING, (15.0, 41.0), (30.0, 41.0)),
            Validity::Void(_)
        ));
    }

    #[test]
    fn a_queue_is_named_on_the_axis_of_the_delay() {
        let queue = Label::Cause(Cause::StandingQueue);
        let latency = Latency { cause: Some(Cause::StandingQueue), idle_ns: 2e7, loaded_ns: 3e8 };
        let full = LimitVerdict {
            latency: Some(latency),
            ..LimitVerdict::from_outcome(Some(Direction::Up), Outcome::AtCeiling)
        };
        let says = |expect, verdict: &LimitVerdict| {
            Case { expect, ..Case::default() }.judged(std::slice::from_ref(verdict)).said
        };
        assert_eq!(says(queue, &full), Some(queue));
        assert_eq!(says(Label::AT_CEILING, &full), Some(Label::AT_CEILING));
        let short = LimitVerdict { latency: None, ..full };
        assert_eq!(says(queue, &short), Some(Label::AT_CEILING));
    }

    #[test]
    fn stored_values_keep_four_digits() {
        let mut series = Series {
            metric: MetricId::Goodput,
            direction: None,
            flow: None,
            side: None,
            payload_bytes: None,
            t_ns: vec![0; 3],
            values: vec![Some(12_345_678.0), Some(0.0), Some(0.001_234_56)],
        };
        round_values(&mut series);
        assert_eq!(series.values, [Some(12_350_000.0), Some(0.0), Some(0.001_235)]);
    }
}
