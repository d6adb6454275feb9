//! `linerate study list`.

use std::path::Path;

use linerate_core::study::StudyPlan;
use linerate_engine::study::SHIPPED;

use crate::columns::{Stand, lay_out, short_id};
use crate::command::history::to_the_second;
use crate::exit::Outcome;
use crate::{output, paths};

/// Runs the command.
pub(super) fn run(store: Option<&Path>) -> Outcome {
    let (runs, path) = match paths::stored(store)? {
        Ok(store) => (store.runs()?, store.path().to_owned()),
        Err(path) => (Vec::new(), path),
    };
    output::text(&plans()?);
    if runs.is_empty() {
        output::line(&format!("\nno runs in {}", path.display()));
        return Ok(0);
    }
    let rows: Vec<Vec<String>> = runs
        .iter()
        .map(|run| {
            vec![
                short_id(&run.id).to_owned(),
                run.study.clone(),
                to_the_second(&run.started_at),
                run.state.word().to_owned(),
                format!("{} of {}", run.stored, run.plan.cells().len()),
            ]
        })
        .collect();
    let head = [
        ("run", Stand::Left),
        ("study", Stand::Left),
        ("started", Stand::Left),
        ("state", Stand::Left),
        ("stored", Stand::Right),
    ];
    output::line("");
    output::text(&lay_out(&head, &rows));
    Ok(0)
}

fn plans() -> anyhow::Result<String> {
    let mut rows = Vec::new();
    for shipped in SHIPPED {
        let plan = StudyPlan::from_toml(shipped.toml)?;
        rows.push(vec![plan.name.clone(), plan.cells().len().to_string(), plan.title]);
    }
    let head =
        [("study", Stand::Left), ("measurements", Stand::Right), ("what it is", Stand::Left)];
    Ok(lay_out(&head, &rows))
}
