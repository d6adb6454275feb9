//! The policer or shaper of one record: each parameter as ordered and as found, then the steps.

use linerate_core::record::{BenchPlan, BenchResult, ComparedParameter, ContractFound, Holds};

use super::loads::load_table;
use super::words;
use crate::document::{Cells, ReportSection, ReportTable};
use crate::number;

/// The measured rate and burst of a policer or shaper beside those ordered, then the loads that
/// were tried.
pub(super) fn contract(
    plan: &BenchPlan,
    result: &BenchResult,
    found: &ContractFound,
) -> ReportSection {
    let mut notes = Vec::new();
    let bytes = |bytes: f64| format!("{bytes:.0} bytes");
    let [mut rate, mut burst] = [String::new(), String::new()];
    // The table of parameters has the order where there is one.
    if let Some(ordered) = plan.contract.as_ref().filter(|_| found.compared.is_empty()) {
        rate = format!(", ordered {}", ordered.cir);
        burst = format!(", ordered {}", bytes(ordered.cbs_bytes as f64));
    }
    let (name, remark) = match &plan.cell_contract {
        Some(_) => ("sustained", "cells are frames of one length"),
        None => ("committed", ""),
    };
    match &found.cir_bps {
        Some(cir) => {
            notes.push(format!(
                "{name} rate {}{rate}",
                words::estimate_text(cir, number::rate_with_unit)
            ));
        }
        None if plan.cell_contract.is_some() => notes.push("no sustained rule was found".into()),
        None => notes.push("nothing was ever dropped: no policer was found".to_owned()),
    }
    let cbs = found.cbs_bytes.as_ref();
    notes
        .extend(cbs.map(|cbs| format!("{name} burst {}{burst}", words::estimate_text(cbs, bytes))));
    notes.extend(Some(remark).filter(|remark| !remark.is_empty()).map(str::to_owned));
    notes.extend(found.as_ordered.map(|is_as_ordered| {
        if is_as_ordered { "as ordered, within the intervals" } else { "not as ordered" }.to_owned()
    }));
    notes.extend(found.findings.iter().cloned());
    let mut tables = parameters(&found.compared).into_iter().collect::<Vec<_>>();
    tables.extend(load_table(&found.steps, plan, result));
    ReportSection::from_tables("Traffic contract", tables, notes)
}

/// A row for each parameter of the contract; `None` where none was ordered.
fn parameters(compared: &[ComparedParameter]) -> Option<ReportTable> {
    compared.first()?;
    let columns: &[Cells<'_, &ComparedParameter>] = &[
        ("parameter", &|row| row.parameter.to_uppercase()),
        ("ordered", &|row| value_with_unit(row.ordered, &row.unit)),
        ("found", &|row| value_with_unit(row.found, &row.unit)),
        ("from", &|row| value_with_unit(row.low, &row.unit)),
        ("to", &|row| value_with_unit(row.high, &row.unit)),
        ("verdict", &|row| match row.holds {
            Holds::Kept => "as ordered".to_owned(),
            Holds::Less => "less".to_owned(),
            Holds::More => "more".to_owned(),
        }),
    ];
    Some(ReportTable::from_rows(compared, columns))
}

fn value_with_unit(value: f64, unit: &str) -> String {
    let digits = |value: f64| number::trimmed(&number::significant(value, 5)).to_owned();
    match unit {
        "bit/s" => number::rate_with_unit(value),
        "s" => words::duration(value * 1e9),
        "cells" => format!("{value:.0} cells"),
        "bytes" => format!("{value:.0} bytes"),
        other => format!("{} {other}", digits(value)),
    }
}
