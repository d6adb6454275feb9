//! The plain sentence at the end of a study: what each kind of path carries of localhost's TCP, now
//! and as published. Every figure and every name comes from the data and the plan.

use linerate_core::study::TestKind;

use super::StudyResults;
use super::compare::{Roles, TopologyComparison, filter_rules, limited_rate};
use super::grid::{Grid, TopologyRow};
use super::questions::QuestionAnswers;
use super::spoilt::marked;
use crate::device::headline;
use crate::{number, words};

/// The result of a study in one plain sentence.
pub fn summary_sentence(results: &StudyResults) -> String {
    let grid = Grid::new(results);
    grid_sentence(&grid, &QuestionAnswers::new(results, &grid))
}

/// The sentence for a grid: the share of localhost's TCP throughput that each path keeps; without
/// localhost, the answer of the first question, else the fastest and the slowest topology.
pub(crate) fn grid_sentence(grid: &Grid<'_>, answered: &QuestionAnswers<'_>) -> String {
    let compared = TopologyComparison::new(grid);
    let roles = compared.roles;
    let Some((reference, whole)) =
        roles.localhost.and_then(|index| Some((index, compared.now[index].bps?)))
    else {
        let has_localhost = roles.localhost.is_some();
        let answer = answered.sentence().filter(|_| !has_localhost);
        return answer.unwrap_or_else(|| without_localhost(grid));
    };
    let mut text = format!(
        "At {} localhost carries {}",
        compared.setting_in_words(),
        marked(number::rate_with_unit(whole), compared.now[reference].bps_spoilt)
    );
    if let Some(past) = compared.past[reference].bps {
        text.push_str(&format!(" ({} in {})", number::rate_published(past), grid.past));
    }
    if compared.is_spoilt(Some(reference)) {
        return format!("{text}, limited by this host: no share of it is fit to report.");
    }
    let kept: Vec<(String, String, Option<f64>)> = representatives(grid, &roles)
        .into_iter()
        .filter_map(|(index, name)| {
            let now = 1.0 - compared.loss_of_localhost(&compared.now, index)?;
            let past = compared.loss_of_localhost(&compared.past, index).map(|loss| 1.0 - loss);
            let spoilt = compared.is_share_spoilt(index, roles.localhost);
            Some((name, marked(number::whole_percent(now), spoilt), past))
        })
        .collect();
    if kept.is_empty() {
        return format!("{text}; no other topology has a result.");
    }
    let mut year = format!(" in {}", grid.past);
    let kept: Vec<String> = kept
        .into_iter()
        .enumerate()
        .map(|(index, (name, now, past))| {
            let verb = if index == 0 { " carries" } else { "" };
            let of_that = if index == 0 { " of that" } else { "" };
            let past = past.map_or_else(String::new, |past| {
                // The year is named once, at the first figure of the past.
                format!(" ({}{})", number::whole_percent(past), std::mem::take(&mut year))
            });
            format!("{name}{verb} {now}{of_that}{past}")
        })
        .collect();
    format!("{text}; {}.", words::listed(&kept))
}

/// One topology of each kind, with its name in the sentence.
pub(crate) fn representatives(grid: &Grid<'_>, roles: &Roles) -> Vec<(usize, String)> {
    let topology = |index: usize| &grid.plan.topologies[index];
    let mut out = Vec::new();
    out.extend(roles.bare.map(|index| (index, "a bare cable".to_owned())));
    out.extend(roles.switched.map(|index| {
        let name = match topology(index).l2_hops {
            1 => "one switch".to_owned(),
            hops => format!("a chain of {hops} switches"),
        };
        (index, name)
    }));
    out.extend(roles.routed.map(|index| (index, routed_name(topology(index).l3_hops))));
    out.extend(roles.filtered.map(|index| {
        (index, format!("the same with {} filter rules", filter_rules(topology(index))))
    }));
    out.extend(roles.limited.map(|index| {
        let rate = limited_rate(topology(index)).unwrap_or_else(|| "slow".to_owned());
        (index, format!("a {rate} link"))
    }));
    out
}

fn routed_name(hops: u32) -> String {
    match hops {
        1 => "a path with a router".to_owned(),
        _ => format!("a path with {hops} routers"),
    }
}

/// The sentence of a study without figures; for a benchmark it does not speak of TCP.
fn nothing_yet(grid: &Grid<'_>) -> String {
    let tests = &grid.plan.tests;
    let benchmarks = tests.iter().all(|test| matches!(test.kind, TestKind::Bench(_)));
    let what = if benchmarks && !tests.is_empty() { "benchmark" } else { "TCP measurement" };
    format!("No {what} of this study has ended well yet.")
}

/// The fastest and the slowest topology, for a study without localhost's figure.
fn without_localhost(grid: &Grid<'_>) -> String {
    let best = |row: &TopologyRow<'_>| {
        let figures = row.flows.iter().flat_map(|test| test.figures.iter());
        let best = figures.filter_map(|figure| Some((figure.best_bps()?, figure.best_spoilt)));
        best.max_by(|one, other| one.0.total_cmp(&other.0))
    };
    let mut rates: Vec<(f64, bool, &str)> = grid
        .topologies
        .iter()
        .filter_map(|row| best(row).map(|(bps, spoilt)| (bps, spoilt, &*row.topology.title)))
        .collect();
    let rate = |bps: &f64, spoilt: &bool| marked(number::rate_with_unit(*bps), *spoilt);
    rates.sort_by(|a, b| a.0.total_cmp(&b.0));
    match rates.as_slice() {
        [] => headline::sentence(&grid.bench_suite()).unwrap_or_else(|| nothing_yet(grid)),
        [(bps, spoilt, title)] => {
            format!("The best run over '{title}' carried {}.", rate(bps, spoilt))
        }
        [(slow, is_slow_spoilt, slowest), .., (fast, is_fast_spoilt, fastest)] => format!(
            "The best run over '{slowest}' carried {}, that over '{fastest}' {}.",
            rate(slow, is_slow_spoilt),
            rate(fast, is_fast_spoilt)
        ),
    }
}
