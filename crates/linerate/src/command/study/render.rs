//! A run from the store to the terminal and to files.

use std::path::Path;

use linerate_core::record::Failure;
use linerate_report::device;
use linerate_report::study::{self, Results};
use linerate_server::store::Store;

use super::plan;
use crate::{output, paths};

/// A run's plan, records and published figures, from the store.
pub(crate) fn results(store: &Store, run: &str) -> Result<Results, Failure> {
    let run = store.run(run)?;
    let published = plan::published(&run.plan)?;
    let records = store.run_records(&run.id)?;
    Ok(Results { plan: run.plan, run: run.id, records, published })
}

/// Prints a run and writes its report into `directory`; ends with the report's path and one
/// sentence.
pub(super) fn run(store: &Store, run: &str, directory: &Path) -> Result<(), Failure> {
    show(&results(store, run)?, Some(directory))
}

/// Prints a run and writes its report into `directory`, where there is one.
pub(crate) fn show(results: &Results, directory: Option<&Path>) -> Result<(), Failure> {
    let text = study::text_within(results, output::width());
    let Some(directory) = directory else {
        output::text(&text);
        return Ok(());
    };
    let (tables, sentence) = apart(&text, &study::summary_sentence(results));
    output::line(tables);
    write(results, directory)?;
    output::line(&format!("\nreport: {}", directory.join("index.html").display()));
    output::line(&sentence);
    Ok(())
}

/// The text without the sentence that it ends with, and that sentence as the text breaks it; here
/// the report's path stands between the two.
fn apart<'a>(text: &'a str, sentence: &str) -> (&'a str, String) {
    let text = text.trim_end();
    let is_sentence = |part: &str| part.split_whitespace().eq(sentence.split_whitespace());
    match text.rsplit_once("\n\n") {
        Some((tables, last)) if is_sentence(last) => (tables, last.to_owned()),
        _ => (text, sentence.to_owned()),
    }
}

/// Writes the report of a run in every form.
pub(crate) fn write(results: &Results, directory: &Path) -> Result<(), Failure> {
    paths::write(&directory.join("index.html"), &study::html(results))?;
    paths::write(&directory.join("report.md"), &study::markdown(results))?;
    paths::write(&directory.join("results.csv"), &study::csv(results))?;
    if results.records.iter().any(device::is_bench) {
        paths::write(&directory.join("trials.csv"), &device::trials_csv(&results.records))?;
    }
    for (name, svg) in study::svgs(results) {
        paths::write(&directory.join(name), &svg)?;
    }
    paths::write(&directory.join("records.jsonl"), &lines(results)?)
}

/// The records of a run as JSON, one a line.
pub(crate) fn lines(results: &Results) -> Result<String, Failure> {
    let mut out = String::new();
    for record in &results.records {
        out.push_str(&paths::json(record)?);
        out.push('\n');
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closing_sentence_is_taken_off_as_the_text_breaks_it() {
        let broken = ("a\n\nb", "One plain\nsentence.".to_owned());
        assert_eq!(apart("a\n\nb\n\nOne plain\nsentence.\n", "One plain sentence."), broken);
        let kept = ("a\n\nb", "Another.".to_owned());
        assert_eq!(apart("a\n\nb\n", "Another."), kept);
    }
}
