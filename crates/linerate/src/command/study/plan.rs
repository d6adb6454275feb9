//! From what the user typed to a study's plan and the figures published beside it.

use std::path::Path;

use linerate_core::record::{Failure, Fault};
use linerate_core::study::{PublishedFigures, StudyPlan};
use linerate_engine::study::{SHIPPED, ShippedTable, TABLES, shipped};

use super::published;
use crate::paths;

/// A study that was found.
pub(crate) struct StudyFile {
    /// The plan of the study.
    pub(crate) plan: StudyPlan,
    /// The text of its file.
    pub(crate) text: String,
}

/// The plan called `study`: a shipped one by its name, anything else is a file.
pub(crate) fn find_study(study: &str) -> Result<StudyFile, Failure> {
    if let Some(shipped) = shipped(study) {
        return parse(shipped.toml, study);
    }
    let path = Path::new(study);
    let looks_like_a_file = study.contains(['/', '.']) || path.exists();
    if !looks_like_a_file {
        let names: Vec<&str> = SHIPPED.iter().map(|shipped| shipped.name).collect();
        let reason = format!("no such file, and the plans that ship are: {}", names.join(", "));
        return Err(Failure::new(Fault::Usage, "find study", study, reason)
            .advise("name one of them, or a TOML file"));
    }
    parse(&paths::read(path)?, study)
}

/// Reads a plan's file; a fault in it is shown as `file:line:column: reason`.
pub(super) fn parse(text: &str, file: &str) -> Result<StudyFile, Failure> {
    let plan = StudyPlan::from_toml(text).map_err(|error| {
        let object = match error.place {
            Some((line, column)) => format!("{file}:{line}:{column}"),
            None => file.to_owned(),
        };
        Failure::new(Fault::Usage, "read study", object, error.reason)
            .advise("linerate help study-plan describes the file")
    })?;
    Ok(StudyFile { plan, text: text.to_owned() })
}

/// The figures that belong beside a plan: those of the tables of its name. A plan of another name
/// that points to published rows means those of the first shipped study.
pub(crate) fn published(plan: &StudyPlan) -> Result<PublishedFigures, Failure> {
    let points = plan.topologies.iter().any(|topology| topology.published.is_some());
    let of_study = |name: &str| -> Vec<&ShippedTable> {
        TABLES.iter().filter(|table| table.about.study == name).collect()
    };
    let mut tables = of_study(&plan.name);
    if tables.is_empty() && points {
        tables = SHIPPED.first().map(|shipped| of_study(shipped.name)).unwrap_or_default();
    }
    Ok(PublishedFigures::from_tables(published::read(tables.into_iter())?))
}
