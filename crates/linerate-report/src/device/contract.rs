//! The policer or shaper of one record: each parameter as ordered and as found, then the steps.

use linerate_core::record::{BenchPlan, BenchResult, Compared, ContractFound, Holds};

use super::loads::load_table;
use super::words;
use crate::document::{Cells, Section, Table};
use crate::number;

/// What was found, beside what was ordered where something was.
pub(super) fn contract(plan: &BenchPlan, result: &BenchResult, found: &ContractFound) -> Section {
    let mut notes = Vec::new();
    let bytes = |bytes: f64| format!("{bytes:.0} bytes");
    let [mut rate, mut burst] = [String::new(), String::new()];
    // The table of parameters has the order where there is one.
    if let Some(ordered) = plan.contract.as_ref().filter(|_| found.compared.is_empty()) {
        rate = format!(", ordered {}", ordered.cir);
        burst = format!(", ordered {}", bytes(ordered.cbs_bytes as f64));
    }
    let (named, of) = match &plan.cell_contract {
        Some(_) => ("sustained", "cells are frames of one length"),
        None => ("committed", ""),
    };
    match &found.cir_bps {
        Some(cir) => {
            notes.push(format!("{named} rate {}{rate}", words::found(cir, number::rate)));
        }
        None if plan.cell_contract.is_some() => notes.push("no sustained rule was found".into()),
        None => notes.push("nothing was ever dropped: no policer was found".to_owned()),
    }
    let cbs = found.cbs_bytes.as_ref();
    notes.extend(cbs.map(|cbs| format!("{named} burst {}{burst}", words::found(cbs, bytes))));
    notes.extend(Some(of).filter(|of| !of.is_empty()).map(str::to_owned));
    notes.extend(found.as_ordered.map(|yes| {
        if yes { "as ordered, within the intervals" } else { "not as ordered" }.to_owned()
    }));
    notes.extend(found.findings.iter().cloned());
    let mut tables = parameters(&found.compared).into_iter().collect::<Vec<_>>();
    tables.extend(load_table(&found.steps, plan, result));
    Section::of("Traffic contract", tables, notes)
}

/// A row a parameter.
fn parameters(compared: &[Compared]) -> Option<Table> {
    compared.first()?;
    let columns: &[Cells<'_, &Compared>] = &[
        ("parameter", &|it| it.parameter.to_uppercase()),
        ("ordered", &|it| shown(it.ordered, &it.unit)),
        ("found", &|it| shown(it.found, &it.unit)),
        ("from", &|it| shown(it.low, &it.unit)),
        ("to", &|it| shown(it.high, &it.unit)),
        ("verdict", &|it| match it.holds {
            Holds::Kept => "as ordered".to_owned(),
            Holds::Less => "less".to_owned(),
            Holds::More => "more".to_owned(),
        }),
    ];
    Some(Table::by(compared, columns))
}

fn shown(value: f64, unit: &str) -> String {
    let digits = |value: f64| number::trimmed(&number::significant(value, 5)).to_owned();
    match unit {
        "bit/s" => number::rate(value),
        "s" => words::time(value * 1e9),
        "cells" => format!("{value:.0} cells"),
        "bytes" => format!("{value:.0} bytes"),
        other => format!("{} {other}", digits(value)),
    }
}
