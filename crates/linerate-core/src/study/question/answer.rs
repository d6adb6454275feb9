//! From the figures of a run to the answer of a question: yes, no, told, or why not.
//!
//! # Source
//! Ranges are compared by their ends: what a printed range leaves open is not answered.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::condition::{ComparisonTerm, FigureComparison};
use super::figure::{Measured, constant};
use super::quantity::{Quantity, Unit};
use super::{Figure, FigureCondition, FigureKind, Question, Template};
use crate::record::{Better, MetricId};
use crate::study::{PublishedItem, StudyPlan, Test, TestKind, Topology, Value};

/// Longest chain of figures made from figures.
pub(super) const DEPTH_MAX: usize = 64;

/// Runs by which something is said where chance decides: all alike by chance in one of 16 cases
/// where two outcomes are as likely.
pub const CHANCE_RUNS_MIN: u32 = 5;

/// Where a figure is measured.
#[derive(Clone, Debug, PartialEq)]
pub struct FigureSetting<'a> {
    /// The topology.
    pub topology: &'a Topology,
    /// The test.
    pub test: &'a Test,
    /// The value of its parameter.
    pub value: Value,
}

impl<'a> FigureSetting<'a> {
    /// The place that a figure names in its plan.
    /// # Errors
    /// Which of topology, test and value is not there.
    pub fn find_in_plan(study: &'a StudyPlan, of: &Measured) -> Result<Self, String> {
        let topology = study.topologies.iter().find(|topology| topology.id == of.topology);
        let topology = topology.ok_or_else(|| format!("there is no topology '{}'", of.topology))?;
        let test = study.tests.iter().find(|test| test.id == of.test);
        let test = test.ok_or_else(|| format!("there is no test '{}'", of.test))?;
        let mut values = test.values();
        let value = match &of.value {
            Some(name) => name.find_in_test(test),
            None if values.len() == 1 => values.pop(),
            None => return Err(format!("test '{}' has several values; name one", test.id)),
        };
        let value = value.ok_or_else(|| {
            let labels: Vec<String> = test.values().into_iter().map(|value| value.label).collect();
            format!("test '{}' has no such value; it has {}", test.id, labels.join(", "))
        })?;
        Ok(Self { topology, test, value })
    }

    /// Chance that decides there in every run, where it does: nothing can be said of a place by
    /// fewer than [`CHANCE_RUNS_MIN`] runs then.
    pub fn chance(&self) -> Option<&'static str> {
        let plans = self.topology.lab.links.iter().filter_map(|link| link.path.as_ref());
        let each = plans.flat_map(|plan| [plan.direction(false), plan.direction(true)]);
        let has_trunk = { each }.any(|way| way.trunk.len() > 1);
        has_trunk.then_some("the ports of a flow decide which line of a trunk it takes")
    }

    /// As reports name it: `1 Gbit/s, 21 ms: window 8 MiB`.
    pub fn name(&self) -> String {
        format!("{}: {}", self.topology.title, self.test.named(&self.value.label))
    }
}

impl Measured {
    /// The metric: the one named, else what the test is about.
    pub fn metric_of(&self, test: &Test) -> MetricId {
        self.metric.unwrap_or(match test.kind {
            TestKind::Ping { .. } => MetricId::Rtt,
            _ => MetricId::Goodput,
        })
    }
}

/// The figures of a run and those published beside them.
pub trait Figures {
    /// A metric of each repetition that ended well.
    fn run_values(&self, place: &FigureSetting<'_>, metric: MetricId) -> Vec<f64>;
    /// The ceiling of goodput, in bit/s.
    fn ceiling_bps(&self, place: &FigureSetting<'_>) -> Option<f64>;
    /// The least of the ceiling and the window over the round trip, in bit/s.
    fn bound_bps(&self, place: &FigureSetting<'_>) -> Option<f64>;
    /// A single figure that the study published.
    fn published(&self, item: &str) -> Option<&PublishedItem>;
    /// Figure that the study published in a place, in the metric's unit.
    fn published_at(&self, place: &FigureSetting<'_>, metric: MetricId) -> Option<f64>;
}

/// Why a figure has no value, or a condition no outcome.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Missing {
    /// Nothing was measured there.
    #[error("no result of {0}")]
    Result(String),
    /// The metric was not measured there.
    #[error("no {1} of {0}")]
    Metric(String, &'static str),
    /// Chance decides there, and too few runs were made.
    #[error("{0} has {1} of the {CHANCE_RUNS_MIN} runs that it takes: {2}")]
    Chance(String, usize, &'static str),
    /// No bound is known there.
    #[error("no ceiling is known of {0}")]
    Ceiling(String),
    /// No such item was published.
    #[error("nothing is published as '{0}'")]
    Published(String),
    /// Nothing was published beside a place.
    #[error("nothing is published beside {0}")]
    PublishedAt(String),
    /// A figure divides by one that is 0.
    #[error("'{0}' divides by '{1}', which is 0")]
    Zero(String, String),
    /// Two figures count different things.
    #[error("'{0}' holds {1} against {2}")]
    Units(String, String, String),
    /// A printed range leaves it open.
    #[error("'{0}' is left open by what was printed")]
    Open(String),
    /// The plan does not fit itself.
    #[error("{0}")]
    Plan(String),
}

/// A figure with its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluated {
    /// Its value.
    pub quantity: Quantity,
    /// Its title; that of the one taken, for the largest and smallest of several.
    pub title: String,
}

/// How a question ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuestionVerdict {
    /// The condition holds.
    Yes,
    /// It does not.
    No,
    /// There is no condition: the text is the answer.
    Told,
    /// Figures are missing, each reason once.
    Unanswered(Vec<Missing>),
}

/// The answer to a question.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer<'a> {
    /// The question.
    pub question: &'a Question,
    /// How it ended.
    pub verdict: QuestionVerdict,
    /// Every figure of the question by name, or why it has no value.
    pub figures: BTreeMap<&'a str, Result<Evaluated, Missing>>,
}

impl Question {
    /// The answer by the figures of a run of `study`.
    pub fn answer(&self, study: &StudyPlan, figures: &dyn Figures) -> Answer<'_> {
        let sums = Sums { question: self, study, figures, done: RefCell::default() };
        let names = self.figures.keys();
        let values: BTreeMap<&str, Result<Evaluated, Missing>> =
            names.map(|name| (name.as_str(), sums.figure(name, 0))).collect();
        let verdict = match self.outcome(&values) {
            Ok(verdict) => verdict,
            Err(missing) => QuestionVerdict::Unanswered(missing),
        };
        Answer { question: self, verdict, figures: values }
    }

    fn outcome(
        &self,
        values: &BTreeMap<&str, Result<Evaluated, Missing>>,
    ) -> Result<QuestionVerdict, Vec<Missing>> {
        let names = self.yes_when.iter().flat_map(FigureCondition::figure_names);
        all_there(names.chain(self.answer.figure_names()), values)?;
        let holds = |condition: &FigureCondition| condition_holds(condition, values);
        let verdict = match self.yes_when.as_ref().map(holds).transpose() {
            Ok(Some(true)) => QuestionVerdict::Yes,
            Ok(Some(false)) => QuestionVerdict::No,
            Ok(None) => QuestionVerdict::Told,
            Err(missing) => return Err(vec![missing]),
        };
        all_there(
            self.outcome_text(&verdict).into_iter().flat_map(Template::figure_names),
            values,
        )?;
        Ok(verdict)
    }

    /// The text that a verdict adds.
    pub const fn outcome_text(&self, verdict: &QuestionVerdict) -> Option<&Template> {
        match verdict {
            QuestionVerdict::Yes => self.yes.as_ref(),
            QuestionVerdict::No => self.no.as_ref(),
            QuestionVerdict::Told | QuestionVerdict::Unanswered(_) => None,
        }
    }
}

/// The reasons for which figures are missing, each once.
fn all_there<'n>(
    names: impl Iterator<Item = &'n str>,
    values: &BTreeMap<&str, Result<Evaluated, Missing>>,
) -> Result<(), Vec<Missing>> {
    let mut missing = Vec::new();
    for name in names {
        let reason = match values.get(name) {
            Some(Ok(_)) => continue,
            Some(Err(reason)) => reason.clone(),
            None => Missing::Plan(format!("there is no figure '{name}'")),
        };
        if !missing.contains(&reason) {
            missing.push(reason);
        }
    }
    if missing.is_empty() { Ok(()) } else { Err(missing) }
}

fn condition_holds(
    condition: &FigureCondition,
    values: &BTreeMap<&str, Result<Evaluated, Missing>>,
) -> Result<bool, Missing> {
    let term = |term: &ComparisonTerm| match term {
        ComparisonTerm::Constant(_, quantity) => Some(quantity.clone()),
        ComparisonTerm::Figure(name) => {
            Some(values.get(name.as_str())?.as_ref().ok()?.quantity.clone())
        }
    };
    let mut open = None;
    for comparison in condition.comparisons() {
        let (Some(left), Some(right)) = (term(&comparison.left), term(&comparison.right)) else {
            return Err(Missing::Plan(format!("'{comparison}' names no figure")));
        };
        same_units(comparison, &left.unit, &right.unit)?;
        match comparison.holds_for(&left, &right) {
            Some(true) => {}
            // One that fails decides, whatever another leaves open.
            Some(false) => return Ok(false),
            None => open = Some(Missing::Open(comparison.to_string())),
        }
    }
    open.map_or(Ok(true), Err)
}

pub(super) fn same_units(
    comparison: &FigureComparison,
    left: &Unit,
    right: &Unit,
) -> Result<(), Missing> {
    check_units_fit(&comparison.to_string(), left, right)
}

pub(super) fn check_units_fit(what: &str, left: &Unit, right: &Unit) -> Result<(), Missing> {
    if left.is_comparable_to(right) {
        return Ok(());
    }
    let (left, right) = (left.in_words().to_owned(), right.in_words().to_owned());
    Err(Missing::Units(what.to_owned(), left, right))
}

/// The sums behind the figures of one question.
struct Sums<'a> {
    question: &'a Question,
    study: &'a StudyPlan,
    figures: &'a dyn Figures,
    /// Figures whose value is known: each is worked out once, however many are made from it.
    done: RefCell<BTreeMap<String, Result<Evaluated, Missing>>>,
}

impl Sums<'_> {
    fn figure(&self, name: &str, depth: usize) -> Result<Evaluated, Missing> {
        if let Some(done) = self.done.borrow().get(name) {
            return done.clone();
        }
        let value = self.work_out(name, depth);
        self.done.borrow_mut().insert(name.to_owned(), value.clone());
        value
    }

    fn work_out(&self, name: &str, depth: usize) -> Result<Evaluated, Missing> {
        let Some(figure) = self.question.figures.get(name).filter(|_| depth < DEPTH_MAX) else {
            return Err(Missing::Plan(format!("figure '{name}' comes to no end")));
        };
        let title = self.figure_title(name, figure);
        let with = |quantity| Evaluated { quantity, title: title.clone() };
        if let FigureKind::Largest(names) | FigureKind::Smallest(names) = &figure.kind {
            let largest = matches!(figure.kind, FigureKind::Largest(_));
            return self.extreme(name, names, largest, depth + 1);
        }
        self.quantity(name, &figure.kind, depth + 1).map(with)
    }

    fn figure_title(&self, name: &str, figure: &Figure) -> String {
        let place = |of: &Measured| Some(FigureSetting::find_in_plan(self.study, of).ok()?.name());
        let own = figure.title.clone().or_else(|| match &figure.kind {
            FigureKind::Measured(of) => place(of),
            FigureKind::Published(item) => Some(item.replace('_', " ")),
            FigureKind::PublishedOf(of) => match &self.question.figures.get(of)?.kind {
                FigureKind::Measured(of) => place(of),
                _ => None,
            },
            _ => None,
        });
        own.unwrap_or_else(|| name.replace('_', " "))
    }

    fn quantity(&self, name: &str, kind: &FigureKind, depth: usize) -> Result<Quantity, Missing> {
        let value = |of: &str| self.figure(of, depth).map(|figure| figure.quantity);
        let both = |pair: &[String; 2]| -> Result<(Quantity, Quantity), Missing> {
            let (one, other) = (value(&pair[0])?, value(&pair[1])?);
            check_units_fit(name, &one.unit, &other.unit)?;
            Ok((one, other))
        };
        let over = |one: &Quantity, other: &Quantity, of: &str, unit| {
            let zero = || Missing::Zero(name.to_owned(), of.to_owned());
            one.divided_by(other, unit).ok_or_else(zero)
        };
        match kind {
            FigureKind::Measured(of) => self.measured(of),
            FigureKind::Published(item) => self.published(item),
            FigureKind::PublishedOf(of) => self.published_beside(of),
            // What was not measured has no bound either, and is the reason to tell.
            FigureKind::CeilingOf(of) => value(of).and_then(|_| self.ceiling(of)),
            FigureKind::BoundOf(of) => value(of).and_then(|_| self.bound_rate(of)),
            FigureKind::ShareOfCeiling(of) => {
                over(&value(of)?, &self.ceiling(of)?, of, Unit::Share)
            }
            FigureKind::ShareOfBound(of) => {
                over(&value(of)?, &self.bound_rate(of)?, of, Unit::Share)
            }
            FigureKind::Ratio(pair) => {
                let (one, other) = both(pair)?;
                over(&one, &other, &pair[1], Unit::Times)
            }
            FigureKind::Share(pair) => {
                let (one, other) = both(pair)?;
                over(&one, &other, &pair[1], Unit::Share)
            }
            FigureKind::Difference(pair) => both(pair).map(|(one, other)| one.subtract(&other)),
            FigureKind::Number(number, unit) => Ok(constant(*number, unit.as_deref())),
            FigureKind::Largest(_) | FigureKind::Smallest(_) => {
                Ok(self.figure(name, depth)?.quantity)
            }
        }
    }

    /// The largest or smallest of several, with the title of the one it is.
    fn extreme(
        &self,
        name: &str,
        names: &[String],
        largest: bool,
        depth: usize,
    ) -> Result<Evaluated, Missing> {
        let mut taken: Option<Evaluated> = None;
        for of in names {
            let next = self.figure(of, depth)?;
            let better = match &taken {
                None => true,
                Some(held) => {
                    check_units_fit(name, &held.quantity.unit, &next.quantity.unit)?;
                    let (held, next) = (held.quantity.middle(), next.quantity.middle());
                    if largest { next > held } else { next < held }
                }
            };
            if better {
                taken = Some(next);
            }
        }
        taken.ok_or_else(|| Missing::Plan(format!("figure '{name}' is of none")))
    }

    fn measured(&self, of: &Measured) -> Result<Quantity, Missing> {
        let place = FigureSetting::find_in_plan(self.study, of).map_err(Missing::Plan)?;
        let metric = of.metric_of(place.test);
        let runs = self.figures.run_values(&place, metric);
        if let Some(why) = place.chance()
            && (1..CHANCE_RUNS_MIN as usize).contains(&runs.len())
        {
            return Err(Missing::Chance(place.name(), runs.len(), why));
        }
        let row = metric.table_row();
        let value = of.stat.evaluate(&runs, row.better == Better::Higher);
        let value = value.filter(|value| value.is_finite());
        let usual = Measured { metric: None, ..of.clone() }.metric_of(place.test);
        let missing = || match self.figures.run_values(&place, usual).is_empty() {
            true => Missing::Result(place.name()),
            false => Missing::Metric(place.name(), row.title),
        };
        Ok(Quantity::from_value(value.ok_or_else(missing)?, Unit::of_metric(row.unit)))
    }

    fn published(&self, item: &str) -> Result<Quantity, Missing> {
        let row = self.figures.published(item);
        let printed = row.and_then(|row| Some((row.value.as_ref()?, row.unit.as_str())));
        let (value, unit) = printed.ok_or_else(|| Missing::Published(item.to_owned()))?;
        Ok(Quantity::printed(value, unit))
    }

    /// The place of a figure that is measured.
    fn measured_place(&self, name: &str) -> Result<(FigureSetting<'_>, &Measured), Missing> {
        match self.question.figures.get(name).map(|figure| &figure.kind) {
            Some(FigureKind::Measured(of)) => {
                Ok((FigureSetting::find_in_plan(self.study, of).map_err(Missing::Plan)?, of))
            }
            _ => Err(Missing::Plan(format!("figure '{name}' is not measured"))),
        }
    }

    fn published_beside(&self, name: &str) -> Result<Quantity, Missing> {
        let (place, of) = self.measured_place(name)?;
        let metric = of.metric_of(place.test);
        let value = self.figures.published_at(&place, metric);
        let value = value.ok_or_else(|| Missing::PublishedAt(place.name()))?;
        Ok(Quantity::from_value(value, Unit::of_metric(metric.table_row().unit)))
    }

    fn ceiling(&self, name: &str) -> Result<Quantity, Missing> {
        let (place, _) = self.measured_place(name)?;
        let bps = self.figures.ceiling_bps(&place);
        let bps = bps.ok_or_else(|| Missing::Ceiling(place.name()))?;
        Ok(Quantity::from_value(bps, Unit::Rate))
    }

    fn bound_rate(&self, name: &str) -> Result<Quantity, Missing> {
        let (place, _) = self.measured_place(name)?;
        let bps = self.figures.bound_bps(&place);
        let bps = bps.ok_or_else(|| Missing::Ceiling(place.name()))?;
        Ok(Quantity::from_value(bps, Unit::Rate))
    }
}
