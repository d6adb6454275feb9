//! Holds an assertion against a record. A figure that the record lacks makes its comparison not
//! met, and is named.

use super::{AssertedValue, Assertion, Compare, Condition, NONE, Name, dimension};
use crate::record::{Direction, Plan, Record, Stat};

/// Statistics in the order in which one is taken where none is named.
const STATS: [Stat; 6] = [Stat::Value, Stat::Mean, Stat::P50, Stat::Max, Stat::Min, Stat::P99];

/// Result of an assertion, with the values that it compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// True when it holds in every direction of the test.
    pub met: bool,
    /// The direction that is shown: one in which it is not met, else the first.
    pub direction: Option<Direction>,
    /// Both sides of every comparison with the sign between them.
    pub comparisons: Vec<(Side, &'static str, Side)>,
    /// Facts that the record lacks, in words.
    pub missing: Vec<String>,
}

/// One side of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Side {
    /// Text of the side, without superfluous spaces.
    pub text: String,
    /// Value of the side; null where a fact is missing.
    pub value: Option<f64>,
    /// The unit of the value; empty of counts, shares and bare numbers.
    pub unit: &'static str,
}

impl Assertion {
    /// Holds it against a record; of a test in both directions, in each.
    pub fn judge_record(&self, record: &Record) -> Judged {
        let directions = match &record.plan {
            Plan::Tcp(plan) => plan.test.directions.each_direction(),
            Plan::Udp(plan) => plan.test.directions.each_direction(),
            Plan::Test(_) => &[Direction::Up, Direction::Down],
            Plan::Ping(_)
            | Plan::Simulate(_)
            | Plan::Bench(_)
            | Plan::Compare(_)
            | Plan::Trace(_) => &[],
        };
        let mut ways: Vec<Option<Direction>> = directions.iter().copied().map(Some).collect();
        if ways.is_empty() {
            ways.push(None);
        }
        let mut first: Option<Judged> = None;
        for direction in ways {
            let judged = self.judge_one(record, direction);
            if !judged.met {
                return judged;
            }
            first.get_or_insert(judged);
        }
        first.unwrap_or_else(|| self.judge_one(record, None))
    }

    fn judge_one(&self, record: &Record, direction: Option<Direction>) -> Judged {
        let mut evaluation =
            Evaluation { record, direction, comparisons: Vec::new(), missing: Vec::new() };
        let met = evaluation.is_met(&self.root);
        let Evaluation { comparisons, mut missing, .. } = evaluation;
        missing.dedup();
        Judged { met, direction, comparisons, missing }
    }
}

struct Evaluation<'a> {
    record: &'a Record,
    direction: Option<Direction>,
    comparisons: Vec<(Side, &'static str, Side)>,
    missing: Vec<String>,
}

impl Evaluation<'_> {
    /// Evaluates a condition; both sides of all its comparisons are noted.
    fn is_met(&mut self, node: &Condition) -> bool {
        match node {
            Condition::All(nodes) => !self.each_is_met(nodes).contains(&false),
            Condition::Any(nodes) => self.each_is_met(nodes).contains(&true),
            Condition::Compared(left, compare, right) => self.compared(left, *compare, right),
            // The parser lets no quantity stand for a truth.
            Condition::Number(_)
            | Condition::Name(_)
            | Condition::Negated(_)
            | Condition::Sum(..) => false,
        }
    }

    /// Evaluates all conditions: a reader wants the values of each.
    fn each_is_met(&mut self, nodes: &[Condition]) -> Vec<bool> {
        nodes.iter().map(|node| self.is_met(node)).collect()
    }

    fn compared(&mut self, left: &Condition, compare: Compare, right: &Condition) -> bool {
        let (one, other) = (self.evaluate_node(left), self.evaluate_node(right));
        let unit = quantity_unit(left).or_else(|| quantity_unit(right)).unwrap_or(NONE);
        let side = |node: &Condition, value| Side { text: written(node), value, unit };
        self.comparisons.push((side(left, one), compare.comparison_sign(), side(right, other)));
        one.zip(other).is_some_and(|(one, other)| compare.is_satisfied(one, other))
    }

    fn evaluate_node(&mut self, node: &Condition) -> Option<f64> {
        Some(match node {
            Condition::Number(value) => *value,
            Condition::Name(name) => {
                let found = self.figure_of(name);
                if found.is_none() {
                    let missing = self.missing_reason(name);
                    self.missing.push(missing);
                }
                found?
            }
            Condition::Negated(node) => -self.evaluate_node(node)?,
            Condition::Sum(left, sign, right) => {
                // Both are looked at, so that all that is missing is named.
                let (left, right) = (self.evaluate_node(left), self.evaluate_node(right));
                let (left, right) = (left?, right?);
                match sign {
                    '+' => left + right,
                    '-' => left - right,
                    '*' => left * right,
                    _ => left / right,
                }
            }
            Condition::Compared(..) | Condition::All(_) | Condition::Any(_) => return None,
        })
    }

    fn figure_of(&self, name: &Name) -> Option<f64> {
        let direction = name.direction.or(self.direction);
        let AssertedValue::Metric(metrics) = &name.what else {
            return match direction {
                Some(direction) => self.record.ceiling_of(direction)?.value,
                None => self.record.ceiling.as_ref()?.value,
            };
        };
        let stats = name.stat.as_ref().map_or(&STATS[..], std::slice::from_ref);
        let rows = || self.record.summary.iter().filter(|row| row.flow.is_none());
        metrics.iter().find_map(|metric| {
            stats.iter().find_map(|stat| {
                let mut of_it = rows().filter(|row| row.metric == *metric && row.stat == *stat);
                let fits = |way: Option<Direction>| way.is_none() || way == direction;
                // A ping of several sizes: the first.
                of_it.find(|row| direction.is_none() || fits(row.direction)).map(|row| row.value)
            })
        })
    }

    /// The reason why a figure is missing from the record, as a sentence for the user.
    fn missing_reason(&self, name: &Name) -> String {
        let text = &name.text;
        if name.what != AssertedValue::Ceiling {
            let failure = self.record.failure.as_ref();
            let why = failure.map_or_else(String::new, |failure| format!(": {}", failure.reason));
            return format!("the result has no {text}{why}");
        }
        let direction = name.direction.or(self.direction);
        let ceiling = direction.and_then(|direction| self.record.ceiling_of(direction));
        let why = ceiling.map_or_else(String::new, |ceiling| match &ceiling.no_link {
            Some(why) => format!(": {why}"),
            None if ceiling.unknown.is_empty() => String::new(),
            None => format!(" for want of {}", ceiling.unknown.join("; ")),
        });
        format!("the {text} is not known{why}; --link 1g or --capacity RATE tells it")
    }
}

/// The unit of a quantity that has one.
fn quantity_unit(node: &Condition) -> Option<&'static str> {
    match node {
        Condition::Name(name) => match &name.what {
            AssertedValue::Ceiling => Some("bit/s"),
            AssertedValue::Metric(metrics) => {
                let unit = metrics.first()?.table_row().unit;
                let is_share = unit == "1";
                (is_share || dimension(unit) != NONE).then_some(unit)
            }
        },
        Condition::Negated(node) => quantity_unit(node),
        Condition::Sum(left, '/', right) => {
            // Of two quantities a share comes out.
            let pair = quantity_unit(left).zip(quantity_unit(right));
            if pair.is_some() { None } else { quantity_unit(left) }
        }
        Condition::Sum(left, _, right) => quantity_unit(left).or_else(|| quantity_unit(right)),
        Condition::Number(_) | Condition::Compared(..) | Condition::All(_) | Condition::Any(_) => {
            None
        }
    }
}

fn written(node: &Condition) -> String {
    match node {
        Condition::Number(value) => value.to_string(),
        Condition::Name(name) => name.text.clone(),
        Condition::Negated(node) => format!("-{}", written(node)),
        Condition::Sum(left, sign, right) => format!("{} {sign} {}", written(left), written(right)),
        Condition::Compared(..) | Condition::All(_) | Condition::Any(_) => String::new(),
    }
}
