//! `linerate study list`.

use std::path::Path;

use linerate_core::study::StudyPlan;
use linerate_engine::study::SHIPPED;
use linerate_report::Align::{Left, Prose, Right};
use linerate_report::{Document, ReportTable};

use crate::columns::short_id;
use crate::columns::to_the_second;
use crate::exit::Outcome;
use crate::{output, paths};

/// Runs `linerate study list` by its flags.
pub(super) fn run(store: Option<&Path>) -> Outcome {
    let (runs, path) = match paths::stored(store)? {
        Ok(mut store) => {
            // One that may not be written lists them as it has them.
            let _ = store.settle_runs();
            (store.list_study_runs()?, store.path().to_owned())
        }
        Err(path) => (Vec::new(), path),
    };
    let names = [("study", Left), ("measurements", Right), ("what it is", Prose)];
    let mut plans = ReportTable::from_columns(names);
    for shipped in SHIPPED {
        let plan = StudyPlan::from_toml(shipped.toml)?;
        plans.add_measured_row([
            plan.name.clone(),
            plan.cell_plans().len().to_string(),
            plan.title,
        ]);
    }
    output::document(&Document::from_table(plans));
    if runs.is_empty() {
        output::print_line(&format!("\nno runs in {}", path.display()));
        return Ok(0);
    }
    let names =
        [("run", Left), ("study", Left), ("started", Left), ("state", Left), ("stored", Right)];
    let rows = runs.iter().map(|run| {
        [
            short_id(&run.id).to_owned(),
            run.study.clone(),
            to_the_second(&run.started_at),
            run.state.state_name().to_owned(),
            format!("{} of {}", run.stored, run.plan.cell_plans().len()),
        ]
    });
    output::print_line("");
    output::document(&Document::from_table(ReportTable::from_columns(names).with_rows(rows)));
    Ok(0)
}
