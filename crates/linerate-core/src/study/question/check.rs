//! Rules for questions beyond their types: names that meet, places that are measured, units
//! that can be compared, no figure that is made from itself.
//!
//! Left out: whether an item was published, which the tables know and the plan does not.

use std::collections::BTreeSet;

use super::answer::{DEPTH_MAX, check_units_fit, same_units};
use super::condition::ComparisonTerm;
use super::figure::constant;
use super::quantity::Unit;
use super::template::is_name;
use super::{Figure, FigureKind, FigureSetting, FigureStat, Measured, Question, Template};
use crate::lab::{Problem, Step};
use crate::record::{Better, MetricId};
use crate::study::{StudyPlan, TestKind};

type Checked = Result<(), Problem>;

/// Refuses a question that cannot be asked of a run of the study.
pub(in crate::study) fn check_questions(study: &StudyPlan) -> Checked {
    // The cells are many; they are counted out once, and only for those who ask.
    let mut cells = BTreeSet::new();
    if !study.questions.is_empty() {
        let keys = study.cell_plans().into_iter().map(|cell| cell.cell);
        cells = keys.map(|cell| (cell.topology, cell.test, cell.parameter)).collect();
    }
    for (index, question) in study.questions.iter().enumerate() {
        Checker { study, question, cells: &cells }.check_question().map_err(|problem| {
            let mut path = vec![Step::Key("question"), Step::Index(index)];
            path.extend(problem.path);
            let message = format!("question {}: {}", index + 1, problem.message);
            Problem { path, message }
        })?;
    }
    Ok(())
}

fn problem<T>(path: Vec<Step>, message: impl Into<String>) -> Result<T, Problem> {
    Err(Problem { path, message: message.into() })
}

struct Checker<'a> {
    study: &'a StudyPlan,
    question: &'a Question,
    cells: &'a BTreeSet<(String, String, u64)>,
}

impl Checker<'_> {
    fn check_question(&self) -> Checked {
        let question = self.question;
        if question.ask.trim().is_empty() {
            return problem(vec![Step::Key("ask")], "it asks nothing");
        }
        for (name, figure) in &question.figures {
            let place = vec![Step::Key("figure"), Step::Named(name.clone())];
            self.figure(name, figure).map_err(|message| Problem {
                path: place,
                message: format!("figure '{name}': {message}"),
            })?;
        }
        for (key, text) in [("answer", Some(&question.answer)), ("yes", question.yes.as_ref())]
            .into_iter()
            .chain([("no", question.no.as_ref())])
        {
            self.template(key, text)?;
        }
        self.condition()
    }

    fn figure(&self, name: &str, figure: &Figure) -> Result<(), String> {
        if !is_name(name) {
            return Err("its name begins with a small letter; small letters, digits and _ follow"
                .to_owned());
        }
        for source in figure.kind.sources() {
            self.figure_by_name(source)?;
        }
        self.check_no_cycle(name, &mut vec![name], &mut BTreeSet::new())?;
        match &figure.kind {
            FigureKind::Measured(of) => self.measured(of),
            FigureKind::PublishedOf(of) => self.measured_figure(of).map(|_| ()),
            FigureKind::CeilingOf(of)
            | FigureKind::ShareOfCeiling(of)
            | FigureKind::BoundOf(of)
            | FigureKind::ShareOfBound(of) => self.goodput(of),
            FigureKind::Ratio(pair) | FigureKind::Share(pair) => {
                self.divisor(&pair[1])?;
                self.check_same_units(name, pair)
            }
            FigureKind::Difference(names) => self.check_same_units(name, names),
            FigureKind::Largest(names) | FigureKind::Smallest(names) => {
                self.check_same_units(name, names)
            }
            FigureKind::Published(_) | FigureKind::Number(..) => Ok(()),
        }
    }

    fn figure_by_name(&self, name: &str) -> Result<&Figure, String> {
        self.question.figures.get(name).ok_or_else(|| {
            let names: Vec<&str> = self.question.figures.keys().map(String::as_str).collect();
            match names.as_slice() {
                [] => format!("there is no figure '{name}', nor any other"),
                _ => format!("there is no figure '{name}'; there are {}", names.join(", ")),
            }
        })
    }

    /// Refuses figures that are made from each other without an end.
    fn check_no_cycle<'q>(
        &'q self,
        name: &'q str,
        way: &mut Vec<&'q str>,
        done: &mut BTreeSet<&'q str>,
    ) -> Result<(), String> {
        for source in self.figure_by_name(name)?.kind.sources() {
            if done.contains(source) {
                continue;
            }
            if way.contains(&source) {
                way.push(source);
                return Err(format!("it is made from itself: {}", way.join(" from ")));
            }
            if way.len() >= DEPTH_MAX {
                return Err(format!("it is made from figures in {DEPTH_MAX} steps and more"));
            }
            way.push(source);
            self.check_no_cycle(source, way, done)?;
            way.pop();
            done.insert(source);
        }
        Ok(())
    }

    fn measured(&self, of: &Measured) -> Result<(), String> {
        let place = FigureSetting::find_in_plan(self.study, of)?;
        let key = (of.topology.clone(), of.test.clone(), place.value.number);
        if !self.cells.contains(&key) {
            return Err(format!("test '{}' is not made on topology '{}'", of.test, of.topology));
        }
        let metric = of.metric_of(place.test);
        let judged = matches!(of.stat, FigureStat::Best | FigureStat::Worst);
        if judged && metric.table_row().better == Better::Neither {
            return Err(format!("{metric} has no best and no worst; use max or min"));
        }
        let repetitions = place.test.repetitions;
        if of.stat == FigureStat::Std && repetitions < 2 {
            return Err("a deviation needs two repetitions; the test has one".to_owned());
        }
        Ok(())
    }

    fn measured_figure(&self, name: &str) -> Result<&Measured, String> {
        match &self.figure_by_name(name)?.kind {
            FigureKind::Measured(of) => Ok(of),
            _ => Err(format!("figure '{name}' is not measured")),
        }
    }

    fn goodput(&self, name: &str) -> Result<(), String> {
        let of = self.measured_figure(name)?;
        let place = FigureSetting::find_in_plan(self.study, of)?;
        let ping = matches!(place.test.kind, TestKind::Ping { .. });
        match of.metric_of(place.test) {
            MetricId::Goodput if !ping && of.stat != FigureStat::Std => Ok(()),
            _ => Err(format!("figure '{name}' is no goodput, and has no ceiling")),
        }
    }

    fn divisor(&self, name: &str) -> Result<(), String> {
        match self.figure_by_name(name)?.kind {
            FigureKind::Number(0.0, _) => Err(format!("it divides by '{name}', which is 0")),
            _ => Ok(()),
        }
    }

    /// True for figures that count the same, as far as the plan tells.
    fn check_same_units(&self, name: &str, names: &[String]) -> Result<(), String> {
        let units: Vec<Unit> = names.iter().filter_map(|of| self.unit_of_figure(of)).collect();
        let Some((first, rest)) = units.split_first() else { return Ok(()) };
        let unlike = rest.iter().map(|unit| check_units_fit(name, first, unit));
        unlike.collect::<Result<(), _>>().map_err(|missing| missing.to_string())
    }

    /// The unit of a figure; not known of one that was published, nor of one made from itself.
    fn unit_of_figure(&self, name: &str) -> Option<Unit> {
        let kind = &self.question.figures.get(name)?.kind;
        self.check_no_cycle(name, &mut vec![name], &mut BTreeSet::new()).ok()?;
        match kind {
            FigureKind::Published(_) => None,
            FigureKind::Measured(of) => self.unit_of(of),
            FigureKind::PublishedOf(of) => self.unit_of(self.measured_figure(of).ok()?),
            FigureKind::CeilingOf(_) | FigureKind::BoundOf(_) => Some(Unit::Rate),
            FigureKind::ShareOfCeiling(_) | FigureKind::ShareOfBound(_) => Some(Unit::Share),
            FigureKind::Share(_) => Some(Unit::Share),
            FigureKind::Ratio(_) => Some(Unit::Times),
            FigureKind::Number(number, unit) => Some(constant(*number, unit.as_deref()).unit),
            FigureKind::Difference(names) => names.iter().find_map(|of| self.unit_of_figure(of)),
            FigureKind::Largest(names) | FigureKind::Smallest(names) => {
                names.iter().find_map(|of| self.unit_of_figure(of))
            }
        }
    }

    fn unit_of(&self, of: &Measured) -> Option<Unit> {
        let place = FigureSetting::find_in_plan(self.study, of).ok()?;
        Some(Unit::of_metric(of.metric_of(place.test).table_row().unit))
    }

    fn template(&self, key: &'static str, text: Option<&Template>) -> Checked {
        let Some(text) = text else { return Ok(()) };
        if key != "answer" && self.question.yes_when.is_none() {
            return problem(vec![Step::Key(key)], format!("`{key}` is said only with `yes_when`"));
        }
        for name in text.figure_names() {
            self.figure_by_name(name)
                .map_err(|message| Problem { path: vec![Step::Key(key)], message })?;
        }
        Ok(())
    }

    fn condition(&self) -> Checked {
        let path = || vec![Step::Key("yes_when")];
        let Some(condition) = &self.question.yes_when else { return Ok(()) };
        for comparison in condition.comparisons() {
            let mut units = Vec::new();
            for term in [&comparison.left, &comparison.right] {
                match term {
                    ComparisonTerm::Constant(_, quantity) => units.push(quantity.unit.clone()),
                    ComparisonTerm::Figure(name) => {
                        let known = self.figure_by_name(name);
                        known.map_err(|message| Problem { path: path(), message })?;
                        units.extend(self.unit_of_figure(name));
                    }
                }
            }
            if let [left, right] = units.as_slice() {
                same_units(comparison, left, right)
                    .map_err(|missing| Problem { path: path(), message: missing.to_string() })?;
            }
        }
        Ok(())
    }
}
