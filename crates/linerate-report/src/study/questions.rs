//! The questions of a plan with their answers, and what was published beside them.

use linerate_core::study::{
    Answer, Evaluated, FigureKind, Missing, Part, Quantity, Question, Template, Unit, Verdict,
};

use super::Results;
use super::facts::Facts;
use super::grid::Grid;
use crate::document::{self, Block, Section, Table, Tile};
use crate::number::{self, NONE};

/// Figures in large type, at most.
const TILES_MOST: usize = 4;

/// Every question of the plan with its answer, in the plan's order.
pub(crate) struct Answered<'a> {
    answers: Vec<Answer<'a>>,
}

impl<'a> Answered<'a> {
    /// The answers by the figures of a grid.
    pub(crate) fn new(results: &'a Results, grid: &Grid<'_>) -> Self {
        let facts = Facts { grid, results };
        let questions = results.plan.questions.iter();
        Self { answers: questions.map(|question| question.answer(grid.plan, &facts)).collect() }
    }

    /// The published figures beside today's, then the questions; none without questions.
    pub(crate) fn sections(&self, grid: &Grid<'_>) -> Vec<Section> {
        let answers = Block::Answers(self.answers.iter().map(entry).collect());
        let questions = Section::apart("Questions of the study", [answers]);
        let asked = (!self.answers.is_empty()).then_some(questions);
        self.published(grid).into_iter().chain(asked).collect()
    }

    /// The first question with its answer.
    pub(crate) fn sentence(&self) -> Option<String> {
        let entry = entry(self.answers.first()?);
        Some(format!("{} {}", entry.ask, entry.whole()))
    }

    /// A figure for each of the first questions that have an answer: the one that decides.
    pub(crate) fn tiles(&self, past: &str) -> Vec<Tile> {
        self.answers.iter().filter_map(|answer| tile(answer, past)).take(TILES_MOST).collect()
    }

    /// The answers with their numbers, from 1.
    pub(super) fn numbered(&self) -> impl Iterator<Item = (usize, &Answer<'a>)> {
        (1..).zip(&self.answers)
    }

    /// Each published item that a question names, beside today's figure of the same kind. What was
    /// published beside a topology stands in that topology's tables.
    fn published(&self, grid: &Grid<'_>) -> Option<Section> {
        let head =
            ["published".to_owned(), grid.past.clone(), "now".to_owned(), "now is".to_owned()];
        let mut table = Table::new(head.into_iter().chain(["question".to_owned()]));
        let mut any = false;
        for (number, answer) in self.numbered() {
            for (name, published) in published_figures(answer) {
                let kind = answer.question.figures.get(name).map(|figure| &figure.kind);
                if !matches!(kind, Some(FigureKind::Published(_))) {
                    continue;
                }
                let today = beside(answer, name, &published.quantity);
                any = true;
                table.row([
                    published.title.clone(),
                    show(&published.quantity),
                    today.map_or_else(|| NONE.to_owned(), |figure| show(&figure.quantity)),
                    today.map_or_else(|| NONE.to_owned(), |figure| figure.title.clone()),
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
        any.then(|| Section::of(title, [table], notes))
    }
}

/// The figures of a question that were published and have a value.
fn published_figures<'a>(answer: &'a Answer<'_>) -> impl Iterator<Item = (&'a str, &'a Evaluated)> {
    let figures = answer.figures.iter();
    figures.filter_map(|(name, figure)| {
        let published = answer.question.figures.get(*name)?.kind.is_published();
        Some((*name, figure.as_ref().ok().filter(|_| published)?))
    })
}

/// Today's figure that stands beside a published one.
fn beside<'a>(answer: &'a Answer<'_>, name: &str, published: &Quantity) -> Option<&'a Evaluated> {
    let question = answer.question;
    let value = |name: &str| answer.figures.get(name)?.as_ref().ok();
    if let FigureKind::PublishedOf(of) = &question.figures.get(name)?.kind {
        return value(of);
    }
    let measured = |name: &&str| {
        let figure = question.figures.get(*name);
        figure.is_some_and(|figure| matches!(figure.kind, FigureKind::Measured(_)))
    };
    let fits = |name: &str| value(name).filter(|it| it.quantity.unit == published.unit);
    // What a ratio, a share or a difference holds against it, what the answer names, any other.
    let pairs = question.figures.values().map(|figure| figure.kind.sources());
    let pair = pairs.filter(|sources| sources.contains(&name)).flatten().filter(measured);
    let named = named(question).into_iter().filter(measured);
    let rest = question.figures.keys().map(String::as_str).filter(measured);
    pair.chain(named).chain(rest).find_map(fits)
}

/// The figures that a question names, those of its condition first.
fn named(question: &Question) -> Vec<&str> {
    let condition = question.yes_when.iter().flat_map(|condition| condition.names());
    let texts = [Some(&question.answer), question.yes.as_ref(), question.no.as_ref()];
    let texts = texts.into_iter().flatten().flat_map(Template::names);
    condition.chain(texts).collect()
}

fn entry(answer: &Answer<'_>) -> document::Answer {
    let question = answer.question;
    let (verdict, text) = match &answer.verdict {
        Verdict::Yes => ("Yes", told(answer)),
        Verdict::No => ("No", told(answer)),
        Verdict::Told => ("", told(answer)),
        Verdict::Unanswered(missing) => ("Not answered", reasons(missing)),
    };
    document::Answer { ask: question.ask.trim().to_owned(), verdict, text }
}

fn reasons(missing: &[Missing]) -> String {
    let reasons: Vec<String> = missing.iter().map(ToString::to_string).collect();
    format!("{}.", reasons.join("; "))
}

/// The text of the answer, and that of its outcome.
fn told(answer: &Answer<'_>) -> String {
    let question = answer.question;
    let texts = [Some(&question.answer), question.outcome_text(&answer.verdict)];
    let texts: Vec<String> =
        texts.into_iter().flatten().map(|text| filled(text, answer).trim().to_owned()).collect();
    texts.into_iter().filter(|text| !text.is_empty()).collect::<Vec<String>>().join(" ")
}

fn filled(text: &Template, answer: &Answer<'_>) -> String {
    let figure = |name: &str| answer.figures.get(name)?.as_ref().ok();
    let mut out = String::new();
    let mut parts = text.parts().iter().peekable();
    while let Some(part) = parts.next() {
        match part {
            Part::Words(words) => out.push_str(words),
            Part::Title(name) => out.push_str(figure(name).map_or(NONE, |it| &it.title)),
            Part::Value(name) => {
                let shown = number::or_dash(figure(name), |it| show(&it.quantity));
                // `{gain} times what …` says the word itself.
                let said_twice = match parts.peek() {
                    Some(Part::Words(words)) => words.starts_with(" times"),
                    _ => false,
                };
                let bare = shown.strip_suffix(" times").filter(|_| said_twice);
                out.push_str(bare.unwrap_or(&shown));
            }
        }
    }
    out
}

/// The figure that decides, or the first that the answer names, under its question.
fn tile(answer: &Answer<'_>, past: &str) -> Option<Tile> {
    let value = |name: &str| answer.figures.get(name)?.as_ref().ok();
    let todays = |name: &&str| {
        let figure = answer.question.figures.get(*name);
        figure.is_some_and(|figure| {
            !figure.kind.is_published() && !matches!(figure.kind, FigureKind::Number(..))
        })
    };
    let figure = named(answer.question).into_iter().filter(todays).find_map(value)?;
    // A figure of another kind beside it would be read as its past.
    let same_unit = |(_, then): &(&str, &Evaluated)| then.quantity.unit == figure.quantity.unit;
    let then = published_figures(answer).find(same_unit);
    let then = then.map(|(_, figure)| format!("{past}: {}", show(&figure.quantity)));
    let below = match answer.verdict {
        Verdict::Yes => "yes".to_owned(),
        Verdict::No => "no".to_owned(),
        Verdict::Told => figure.title.clone(),
        Verdict::Unanswered(_) => return None,
    };
    let below = [Some(below), then].into_iter().flatten().collect::<Vec<String>>().join("; ");
    Some(Tile::new(show(&figure.quantity), answer.question.ask.trim(), below))
}

/// A figure with its unit; both ends of a range, or the one that was printed.
pub(super) fn show(quantity: &Quantity) -> String {
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
        Unit::Rate => signed(number::rate(size)),
        Unit::Time => signed(time(size)),
        Unit::Bytes => signed(bytes(size)),
        Unit::Share => signed(percent(size)),
        Unit::Times => signed(format!("{} times", number::significant(size, 3))),
        Unit::Number => signed(plain(size)),
        Unit::Count(unit) if size == 1.0 => {
            let one = unit.strip_suffix('s').filter(|_| !unit.contains('/'));
            signed(format!("1 {}", one.unwrap_or(unit)))
        }
        Unit::Count(unit) => signed(format!("{} {unit}", plain(size))),
    }
}

/// Three digits; below a percent none that say nothing, as studies print a loss.
fn percent(ratio: f64) -> String {
    let text = number::percent(ratio);
    match text.strip_suffix(" %").filter(|_| ratio < 0.01) {
        Some(digits) => format!("{} %", number::trimmed(digits)),
        None => text,
    }
}

/// Milliseconds; seconds from one on.
fn time(ns: f64) -> String {
    if ns >= 1e9 {
        return format!("{} s", number::trimmed(&number::significant(ns / 1e9, 4)));
    }
    format!("{} ms", number::trimmed(&number::ms(ns)))
}

fn bytes(bytes: f64) -> String {
    if bytes.fract() == 0.0 && bytes < 1e15 {
        return number::memory(bytes as u64);
    }
    number::amount(bytes as u64)
}

/// A count whole, anything else with four digits.
fn plain(value: f64) -> String {
    if value.fract() == 0.0 && value < 1e15 {
        return format!("{value:.0}");
    }
    number::trimmed(&number::significant(value, 4)).to_owned()
}
