//! `linerate study list`.

use std::path::Path;

use linerate_core::study::StudyPlan;
use linerate_engine::study::SHIPPED;
use linerate_report::Align::{Left, Prose, Right};
use linerate_report::{Document, Table};

use crate::columns::short_id;
use crate::columns::to_the_second;
use crate::exit::Outcome;
use crate::{output, paths};

/// Runs the command.
pub(super) fn run(store: Option<&Path>) -> Outcome {
    let (runs, path) = match paths::stored(store)? {
        Ok(mut store) => {
            // One that may not be written lists them as it has them.
            let _ = store.settle_runs();
            (store.runs()?, store.path().to_owned())
        }
        Err(path) => (Vec::new(), path),
    };
    let names = [("study", Left), ("measurements", Right), ("what it is", Prose)];
    let mut plans = Table::of(names);
    for shipped in SHIPPED {
        let plan = StudyPlan::from_toml(shipped.toml)?;
        plans.row([plan.name.clone(), plan.cells().len().to_string(), plan.title]);
    }
    output::document(&Document::list(plans));
    if runs.is_empty() {
        output::line(&format!("\nno runs in {}", path.display()));
        return Ok(0);
    }
    let names =
        [("run", Left), ("study", Left), ("started", Left), ("state", Left), ("stored", Right)];
    let rows = runs.iter().map(|run| {
        [
            short_id(&run.id).to_owned(),
            run.study.clone(),
            to_the_second(&run.started_at),
            run.state.word().to_owned(),
            format!("{} of {}", run.stored, run.plan.cells().len()),
        ]
    });
    output::line("");
    output::document(&Document::list(Table::of(names).rows(rows)));
    Ok(0)
}
