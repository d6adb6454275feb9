//! The questions of a plan with their answers, and what was published beside them.

use std::collections::BTreeSet;

use linerate_core::study::{
    Answer, Evaluated, FigureKind, Missing, Part, Quantity, Question, QuestionVerdict, Template,
    Unit,
};

use super::StudyResults;
use super::facts::GridFacts;
use super::grid::Grid;
use super::spoilt::{LimitedRuns, NOT_FIT, is_spoilt, ratio_marked};
use crate::document::{self, Block, ReportSection, ReportTable, Tile};
use crate::number::{self, NONE};

/// The answers to the plan's questions, in the plan's order.
pub(crate) struct QuestionAnswers<'a> {
    answers: Vec<AnswerRuns<'a>>,
}

/// An answer with the runs that its figures are computed from.
struct AnswerRuns<'a> {
    answer: Answer<'a>,
    /// Figures with a run that this host limited.
    marked: BTreeSet<&'a str>,
    /// Ratios whose base is such a figure, and the figures computed from these ratios.
    unfit: BTreeSet<&'a str>,
    /// The runs behind the figures that the answer names, with the reasons for which this host
    /// limited them.
    runs: LimitedRuns,
}

impl<'a> QuestionAnswers<'a> {
    /// Answers the plan's questions from the figures of a grid.
    pub(crate) fn new(results: &'a StudyResults, grid: &Grid<'_>) -> Self {
        let facts = GridFacts { grid, results };
        let rested = |question: &'a Question| {
            let answer = question.answer(grid.plan, &facts);
            let names = question.figures.keys().map(String::as_str);
            let is_marked = |name: &&str| facts.behind(question, name).into_iter().any(is_spoilt);
            let runs = names_in_question(question)
                .into_iter()
                .flat_map(|name| facts.behind(question, name));
            let marked: BTreeSet<&str> = names.clone().filter(is_marked).collect();
            let unfit = names.filter(|name| is_unfit(question, name, &marked)).collect();
            AnswerRuns { answer, marked, unfit, runs: LimitedRuns::from_runs(runs) }
        };
        Self { answers: results.plan.questions.iter().map(rested).collect() }
    }

    /// The section of questions and answers; `None` if the plan asks none.
    pub(crate) fn section(&self, grid: &Grid<'_>) -> Option<ReportSection> {
        let answers =
            self.answers.iter().map(|answer| answer.document_answer(&grid.past)).collect();
        let section =
            ReportSection::after_blank_line("Questions of the study", [Block::Answers(answers)]);
        (!self.answers.is_empty()).then_some(section)
    }

    /// The first question and its answer as a sentence.
    pub(crate) fn sentence(&self) -> Option<String> {
        let entry = self.answers.first()?.document_answer("");
        Some(format!("{} {}", entry.ask, entry.full_text()))
    }

    /// True if the plan asks no question.
    pub(crate) const fn is_empty(&self) -> bool {
        self.answers.is_empty()
    }

    /// The answers with the numbers of their questions, counted from 1.
    pub(super) fn numbered(&self) -> impl Iterator<Item = (usize, &Answer<'a>)> {
        (1..).zip(self.answers.iter().map(|answered| &answered.answer))
    }

    /// Each published figure that a question names beside today's figure of the same kind. Figures
    /// published for one topology stand in that topology's tables.
    pub(crate) fn published(&self, grid: &Grid<'_>) -> Option<ReportSection> {
        let head =
            ["published".to_owned(), grid.past.clone(), "now".to_owned(), "now is".to_owned()];
        let mut table = ReportTable::new(head.into_iter().chain(["question".to_owned()]));
        let mut any = false;
        for (number, rested) in (1..).zip(&self.answers) {
            let answer = &rested.answer;
            for (name, published) in published_figures(answer) {
                let kind = answer.question.figures.get(name).map(|figure| &figure.kind);
                if !matches!(kind, Some(FigureKind::Published(_))) {
                    continue;
                }
                let today = beside(answer, name, &published.quantity);
                any = true;
                table.add_measured_row([
                    published.title.clone(),
                    quantity_text(&published.quantity),
                    number::or_dash(today, |(name, _)| {
                        number::or_dash(rested.figure_with_unit(name), |text| text)
                    }),
                    number::or_dash(today, |(_, figure)| figure.title.clone()),
                    number.to_string(),
                ]);
            }
        }
        let title = "Published figures".to_owned();
        let notes = vec![
            "now: the figure of the same question that is compared with the published one, or the \
             first in the same unit"
                .to_owned(),
        ];
        any.then(|| ReportSection::from_tables(title, [table], notes))
    }
}

/// The published figures of a question that have a value.
fn published_figures<'a>(answer: &'a Answer<'_>) -> impl Iterator<Item = (&'a str, &'a Evaluated)> {
    let figures = answer.figures.iter();
    figures.filter_map(|(name, figure)| {
        let published = answer.question.figures.get(*name)?.kind.is_published();
        Some((*name, figure.as_ref().ok().filter(|_| published)?))
    })
}

/// Today's figure to print beside a published one.
fn beside<'a>(
    answer: &'a Answer<'_>,
    name: &str,
    published: &Quantity,
) -> Option<(&'a str, &'a Evaluated)> {
    let question = answer.question;
    let value = |name: &str| {
        let (name, figure) = answer.figures.get_key_value(name)?;
        Some((*name, figure.as_ref().ok()?))
    };
    if let FigureKind::PublishedOf(of) = &question.figures.get(name)?.kind {
        return value(of);
    }
    let measured = |name: &&str| {
        let figure = question.figures.get(*name);
        figure.is_some_and(|figure| matches!(figure.kind, FigureKind::Measured(_)))
    };
    let fits =
        |name: &str| value(name).filter(|(_, candidate)| candidate.quantity.unit == published.unit);
    // What a ratio, a share or a difference holds against it, what the answer names, any other.
    let pairs = question.figures.values().map(|figure| figure.kind.sources());
    let pair = pairs.filter(|sources| sources.contains(&name)).flatten().filter(measured);
    let named = names_in_question(question).into_iter().filter(measured);
    let rest = question.figures.keys().map(String::as_str).filter(measured);
    pair.chain(named).chain(rest).find_map(fits)
}

/// True if a figure is a ratio whose base has a run that this host limited, or is computed from
/// such a ratio. The plan's check excludes figures that are computed from themselves.
fn is_unfit(question: &Question, name: &str, marked: &BTreeSet<&str>) -> bool {
    let Some(figure) = question.figures.get(name) else { return false };
    let is_base_marked = match &figure.kind {
        FigureKind::Ratio([_, base]) | FigureKind::Share([_, base]) => marked.contains(&**base),
        _ => false,
    };
    let mut sources = figure.kind.sources().into_iter();
    is_base_marked || sources.any(|of| is_unfit(question, of, marked))
}

/// The figures that a question names, those of its condition first.
fn names_in_question(question: &Question) -> Vec<&str> {
    let condition = question.yes_when.iter().flat_map(|condition| condition.figure_names());
    let texts = [Some(&question.answer), question.yes.as_ref(), question.no.as_ref()];
    let texts = texts.into_iter().flatten().flat_map(Template::figure_names);
    condition.chain(texts).collect()
}

impl AnswerRuns<'_> {
    fn document_answer(&self, past: &str) -> document::StudyAnswer {
        let answer = &self.answer;
        let is_decided = self.is_decided();
        let (verdict, text) = match &answer.verdict {
            QuestionVerdict::Yes | QuestionVerdict::No if !is_decided => {
                ("Not answered", self.filled(&answer.question.answer).trim().to_owned())
            }
            QuestionVerdict::Yes => ("Yes", self.answer_text()),
            QuestionVerdict::No => ("No", self.answer_text()),
            QuestionVerdict::Told => ("", self.answer_text()),
            QuestionVerdict::Unanswered(missing) => ("Not answered", reasons(missing)),
        };
        let is_answered = !matches!(answer.verdict, QuestionVerdict::Unanswered(_));
        let doubt = self.runs.counted().filter(|_| is_answered);
        document::StudyAnswer {
            ask: answer.question.ask.trim().to_owned(),
            verdict,
            text,
            figure: self.figure_tile(past).filter(|_| is_answered && is_decided),
            doubt: doubt.map_or_else(String::new, |runs| format!("limited by this host: {runs}")),
        }
    }

    /// True if every figure of the condition is fit to decide the answer.
    fn is_decided(&self) -> bool {
        let condition = self.answer.question.yes_when.iter();
        let mut names = condition.flat_map(|condition| condition.figure_names());
        names.all(|name| !self.unfit.contains(name))
    }

    /// The text of the answer followed by that of its outcome.
    fn answer_text(&self) -> String {
        let question = self.answer.question;
        let texts = [Some(&question.answer), question.outcome_text(&self.answer.verdict)];
        let texts = texts.into_iter().flatten().map(|text| self.filled(text).trim().to_owned());
        texts.filter(|text| !text.is_empty()).collect::<Vec<String>>().join(" ")
    }

    /// A figure with its unit, marked where this host limited one of its runs.
    fn figure_with_unit(&self, name: &str) -> Option<String> {
        let figure = self.answer.figures.get(name)?.as_ref().ok()?;
        let [is_marked, is_unfit] = [&self.marked, &self.unfit].map(|names| names.contains(name));
        Some(ratio_marked(quantity_text(&figure.quantity), is_marked, is_unfit))
    }

    fn filled(&self, text: &Template) -> String {
        let figure = |name: &str| self.answer.figures.get(name)?.as_ref().ok();
        let mut out = String::new();
        let mut parts = text.parts().iter().peekable();
        while let Some(part) = parts.next() {
            match part {
                Part::Words(words) => out.push_str(words),
                Part::Title(name) => {
                    out.push_str(figure(name).map_or(NONE, |source| &source.title))
                }
                Part::Value(name) => {
                    let shown = match self.unfit.contains(&**name) {
                        true => format!("({NOT_FIT})"),
                        false => self.figure_with_unit(name).unwrap_or_else(|| NONE.to_owned()),
                    };
                    // `{gain} times what …` says the word itself.
                    let said_twice = match parts.peek() {
                        Some(Part::Words(words)) => words.starts_with(" times"),
                        _ => false,
                    };
                    let once = if said_twice { shown.replacen(" times", "", 1) } else { shown };
                    out.push_str(&once);
                }
            }
        }
        out
    }

    /// The deciding figure, else the first that the answer names, as a large figure with its label
    /// and the published figure.
    fn figure_tile(&self, past: &str) -> Option<Tile> {
        let question = self.answer.question;
        let todays = |name: &&str| {
            let figure = question.figures.get(*name);
            figure.is_some_and(|figure| {
                !figure.kind.is_published() && !matches!(figure.kind, FigureKind::Number(..))
            })
        };
        let value = |name: &str| self.answer.figures.get(name)?.as_ref().ok();
        let mut names = names_in_question(question).into_iter().filter(todays);
        let (name, figure) = names.find_map(|name| Some((name, value(name)?)))?;
        // A figure of another kind beside it would be read as its past.
        let unit = &figure.quantity.unit;
        let mut published = published_figures(&self.answer);
        let then = published.find(|(_, then)| then.quantity.unit == *unit);
        let then = then.map(|(_, figure)| format!("{past}: {}", quantity_text(&figure.quantity)));
        Some(Tile::new(self.figure_with_unit(name)?, self.meaning(name), then.unwrap_or_default()))
    }

    /// The title of a figure, made from the titles of the figures that it is computed from.
    fn meaning(&self, name: &str) -> String {
        let title = |name: &str| match self.answer.figures.get(name) {
            Some(Ok(figure)) => figure.title.clone(),
            _ => name.replace('_', " "),
        };
        let Some(figure) = self.answer.question.figures.get(name) else { return title(name) };
        let pair = |[one, other]: &[String; 2], word: &str| {
            let (one, other) = (title(one), title(other));
            // A place is named once.
            let same = |place: &str| one.starts_with(&format!("{place}: "));
            let short = other.rsplit_once(": ").filter(|(place, _)| same(place));
            let short = short.map(|(_, value)| value.to_owned());
            format!("{one}, {word} {}", short.unwrap_or(other))
        };
        match &figure.kind {
            _ if figure.title.is_some() => title(name),
            FigureKind::ShareOfCeiling(of) => format!("of the ceiling: {}", title(of)),
            FigureKind::ShareOfBound(of) => format!("of what the window allows: {}", title(of)),
            FigureKind::CeilingOf(of) => format!("the ceiling of {}", title(of)),
            FigureKind::BoundOf(of) => format!("what the window allows: {}", title(of)),
            FigureKind::Ratio(of) | FigureKind::Share(of) => pair(of, "against"),
            FigureKind::Difference(of) => pair(of, "less"),
            _ => title(name),
        }
    }
}

fn reasons(missing: &[Missing]) -> String {
    let reasons: Vec<String> = missing.iter().map(ToString::to_string).collect();
    format!("{}.", reasons.join("; "))
}

/// A figure with its unit; a range with both ends.
pub(super) fn quantity_text(quantity: &Quantity) -> String {
    let one = |value: f64| show_one(value, &quantity.unit);
    match (quantity.low.is_finite(), quantity.high.is_finite()) {
        (true, true) if quantity.low == quantity.high => one(quantity.low),
        (true, true) => {
            let (low, high) = (one(quantity.low), one(quantity.high));
            match (low.split_once(' '), high.split_once(' ')) {
                (Some((number, unit)), Some((_, same))) if unit == same => {
                    format!("{number}\u{2013}{high}")
                }
                _ => format!("{low} to {high}"),
            }
        }
        (false, true) => format!("below {}", one(quantity.high)),
        (true, false) => format!("above {}", one(quantity.low)),
        (false, false) => NONE.to_owned(),
    }
}

fn show_one(value: f64, unit: &Unit) -> String {
    let signed = |text: String| if value < 0.0 { format!("\u{2212}{text}") } else { text };
    let size = value.abs();
    match unit {
        Unit::Rate => signed(number::rate_with_unit(size)),
        Unit::Time => signed(duration_text(size)),
        Unit::Bytes => signed(bytes_text(size)),
        Unit::Share => signed(percent(size)),
        Unit::Times => signed(format!("{} times", number::significant(size, 3))),
        Unit::Number => signed(number_text(size)),
        Unit::Count(unit) if size == 1.0 => {
            let one = unit.strip_suffix('s').filter(|_| !unit.contains('/'));
            signed(format!("1 {}", one.unwrap_or(unit)))
        }
        Unit::Count(unit) => signed(format!("{} {unit}", number_text(size))),
    }
}

/// A ratio as a percentage in three digits; below 1 % without trailing zeros.
fn percent(ratio: f64) -> String {
    let text = number::percent(ratio);
    match text.strip_suffix(" %").filter(|_| ratio < 0.01) {
        Some(digits) => format!("{} %", number::trimmed(digits)),
        None => text,
    }
}

/// A duration in milliseconds; in seconds from 1 s on.
fn duration_text(ns: f64) -> String {
    if ns >= 1e9 {
        return format!("{} s", number::trimmed(&number::significant(ns / 1e9, 4)));
    }
    format!("{} ms", number::trimmed(&number::time_in_ms(ns)))
}

fn bytes_text(bytes: f64) -> String {
    if bytes.fract() == 0.0 && bytes < 1e15 {
        return number::memory(bytes as u64);
    }
    number::amount(bytes as u64)
}

/// A whole number without decimals; any other value in four digits.
fn number_text(value: f64) -> String {
    if value.fract() == 0.0 && value < 1e15 {
        return format!("{value:.0}");
    }
    number::trimmed(&number::significant(value, 4)).to_owned()
}
