//! `--goals` of `linerate bench`: what a search goes by (RFC 9971, MLRsearch), by name or by its
//! parameters.

use std::str::FromStr;

use linerate_core::record::BenchGoal;
use linerate_core::units::{Fraction, parse_span};

use super::words::{parse_value, settings};
use crate::command::flags::span_nanos;

/// Names that need no parameters.
fn named_goals() -> [BenchGoal; 3] {
    [BenchGoal::strict(), BenchGoal::typical(), BenchGoal::verified()]
}

const KEYS: [&str; 5] = ["final", "sum", "loss", "exceed", "width"];

/// Goals of one search: `strict,mine:final=1s,sum=21s,exceed=50%`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Goals(pub(super) Vec<BenchGoal>);

impl FromStr for Goals {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut goals: Vec<BenchGoal> = Vec::new();
        for words in split_goals(text) {
            let goal = parse_goal(&words)?;
            if goals.iter().any(|other| other.name == goal.name) {
                return Err(format!("goal '{}' is there twice", goal.name));
            }
            goals.push(goal);
        }
        Ok(Self(goals))
    }
}

/// The goals of a list: parts with '=' belong to the goal before them.
fn split_goals(text: &str) -> Vec<String> {
    let mut goals: Vec<String> = Vec::new();
    for part in text.split(',') {
        match goals.last_mut() {
            Some(last) if part.contains('=') && !part.contains(':') => {
                last.push(',');
                last.push_str(part);
            }
            _ => goals.push(part.to_owned()),
        }
    }
    goals
}

fn parse_goal(text: &str) -> Result<BenchGoal, String> {
    let Some((name, parameters)) = text.split_once(':') else {
        let goal = named_goals().into_iter().find(|goal| goal.name == text);
        return goal.ok_or_else(|| {
            let names = named_goals().map(|goal| goal.name).join(", ");
            format!("'{text}' is none of {names} and no NAME:final=…,sum=…")
        });
    };
    if name.is_empty() || named_goals().iter().any(|taken| taken.name == name) {
        return Err(format!("'{name}' cannot be the name of a goal of your own"));
    }
    let mut goal = BenchGoal { name: name.to_owned(), duration_sum_ns: 0, ..BenchGoal::strict() };
    let mut final_given = false;
    for (key, text) in settings(parameters, &KEYS)? {
        let span = || parse_span(text).map(span_nanos).map_err(|error| format!("{key}: {error}"));
        let share = || parse_value::<Fraction>(key, text).map(Fraction::as_f64);
        match key {
            "final" => (goal.final_trial_ns, final_given) = (span()?, true),
            "sum" => goal.duration_sum_ns = span()?,
            "loss" => goal.loss_ratio = share()?,
            "exceed" => goal.exceed_ratio = share()?,
            _ => goal.width = share()?,
        }
    }
    if !final_given {
        return Err(format!("goal '{name}' lacks final=TIME, the length of a trial that counts"));
    }
    if goal.duration_sum_ns == 0 {
        goal.duration_sum_ns = goal.final_trial_ns;
    }
    check_goal(goal)
}

/// Bounds within which a search ends.
fn check_goal(goal: BenchGoal) -> Result<BenchGoal, String> {
    let name = &goal.name;
    if goal.final_trial_ns < 1_000_000 {
        return Err(format!("goal '{name}': final is below 1 ms"));
    }
    if goal.duration_sum_ns < goal.final_trial_ns {
        return Err(format!("goal '{name}': sum is below final; it adds up trials of that length"));
    }
    if goal.loss_ratio >= 1.0 || goal.exceed_ratio >= 1.0 {
        return Err(format!("goal '{name}': loss and exceed are below 1; every load would do"));
    }
    if goal.width < 1e-6 || goal.width >= 1.0 {
        return Err(format!("goal '{name}': width is from 1e-6 to below 1"));
    }
    Ok(goal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_have_names_or_parameters() {
        let Goals(goals) = "strict,mine:final=1s,sum=21s,loss=0.1%,exceed=1/2,width=1%,typical"
            .parse()
            .expect("three goals");
        let names: Vec<&str> = goals.iter().map(|goal| goal.name.as_str()).collect();
        assert_eq!(names, ["strict", "mine", "typical"]);
        let mine = BenchGoal {
            name: "mine".to_owned(),
            final_trial_ns: 1_000_000_000,
            duration_sum_ns: 21_000_000_000,
            loss_ratio: 0.001,
            exceed_ratio: 0.5,
            width: 0.01,
        };
        assert_eq!(goals[1], mine);
        assert_eq!(goals[2], BenchGoal::typical());
        let Goals(short) = "x:final=2s".parse().expect("a sum of one trial");
        assert_eq!((short[0].duration_sum_ns, short[0].loss_ratio), (2_000_000_000, 0.0));
    }

    #[test]
    fn what_is_no_goal_is_refused_in_one_line() {
        for (wrong, part) in [
            ("", "'' is none of strict, typical, verified"),
            ("quick", "'quick' is none of"),
            ("strict,strict", "is there twice"),
            ("final=1s", "is none of strict"),
            ("strict:final=1s", "of your own"),
            ("a:sum=1s", "lacks final=TIME"),
            ("a:final=1s,speed=2", "is none of final="),
            ("a:final=1x", "final: "),
            ("a:final=1us", "below 1 ms"),
            ("a:final=2s,sum=1s", "sum is below final"),
            ("a:final=1s,loss=1", "below 1"),
            ("a:final=1s,exceed=100%", "below 1"),
            ("a:final=1s,width=0", "width is"),
        ] {
            let error = wrong.parse::<Goals>().expect_err(wrong);
            assert!(error.contains(part) && !error.contains('\n'), "{wrong}: {error}");
        }
    }
}
