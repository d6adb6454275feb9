//! `linerate report`: a stored result or a study's run again, on the terminal or in files.

use std::path::{Path, PathBuf};

use linerate_core::record::{Failure, Fault, Record};
use linerate_report::Document;
use linerate_report::study::{self, StudyResults};

use super::assert::AssertFlags;
use super::measure::DetailFlags;
use super::study::results;
use crate::exit::Outcome;
use crate::{output, paths};

/// Flags of `linerate report`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Result or run to show: @-1 (the newest line of the history; also last), @-2, ..., a name, or
    /// a unique prefix of its ID [default: @-1]
    #[arg(value_name = "ID", conflicts_with = "run")]
    id: Option<String>,
    /// Study run to show: a unique prefix of its ID, or last
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
    /// Write an HTML page with plots
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write Markdown
    #[arg(long, value_name = "FILE")]
    md: Option<PathBuf>,
    /// Write the values as CSV
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Write a result for flent: FILE.flent.gz
    #[arg(long, value_name = "FILE", conflicts_with = "run")]
    flent: Option<PathBuf>,
    /// Write each plot as a file to this directory
    #[arg(long, value_name = "DIR")]
    svg: Option<PathBuf>,
    /// Write the report of a run in all formats to this directory
    #[arg(long, value_name = "DIR")]
    all: Option<PathBuf>,
    /// Print the record as JSON; for a run, one record per line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    amount: DetailFlags,
    #[command(flatten)]
    assert: AssertFlags,
    /// Read this store instead of the default one
    #[arg(long, value_name = "FILE")]
    store: Option<PathBuf>,
}

/// Subject of a report.
enum ReportSubject {
    Single(Box<Record>),
    Run(Box<StudyResults>),
}

/// Runs `linerate report` by its flags.
pub(crate) fn run(args: Args) -> Outcome {
    let subject = subject(&args)?;
    let wrote = match &subject {
        ReportSubject::Single(record) => single(&args, record)?,
        ReportSubject::Run(results) => whole_run(&args, results)?,
    };
    for path in wrote {
        output::print_note(&format!("wrote {}", path.display()));
    }
    let say: fn(&str) = if args.json { output::print_note } else { output::print_line };
    Ok(match &subject {
        ReportSubject::Single(record) => args.assert.judge_record(record, 0, say),
        ReportSubject::Run(results) => args.assert.judge_run(&results.plan, &results.records, say),
    })
}

fn subject(args: &Args) -> Result<ReportSubject, Failure> {
    let store = args.store.as_deref();
    if let Some(run) = &args.run {
        return Ok(ReportSubject::Run(Box::new(results(&paths::filled(store)?, run)?)));
    }
    let name = args.id.as_deref().unwrap_or("@-1");
    paths::find_result("report", name, store, |store| {
        let found = store.find_by_name(name)?;
        Ok(match found.is_run {
            true => ReportSubject::Run(Box::new(results(store, &found.id)?)),
            false => ReportSubject::Single(Box::new(store.record(&found.id)?)),
        })
    })
}

/// Prints or writes one record; gives the files written.
fn single(args: &Args, record: &Record) -> Result<Vec<PathBuf>, Failure> {
    if args.all.is_some() {
        let reason = "a single result is one page";
        return Err(Failure::new(Fault::Usage, "use", "--all", reason)
            .advise("use --html and --svg, or name a study run with --run"));
    }
    if args.json {
        output::print_line(&paths::record_json(record)?);
    }
    let mut document = linerate_report::record::document(record);
    // A page is read without the program at hand: it has the diagnosis too.
    if args.html.is_some() || args.md.is_some() {
        let verdicts = super::explain::of_record(record, None).verdicts;
        document = linerate_report::explain::before(&verdicts, document);
    }
    let mut wrote = Vec::new();
    let mut put = |path: &Option<PathBuf>, text: &dyn Fn() -> String| match path {
        Some(path) => write(path, &text(), &mut wrote),
        None => Ok(()),
    };
    put(&args.html, &|| document.html())?;
    put(&args.md, &|| document.markdown())?;
    put(&args.csv, &|| linerate_report::csv::record(record))?;
    write_plots(args, &document, &mut wrote)?;
    if let Some(path) = &args.flent {
        super::export::write_flent(path, record)?;
    } else if wrote.is_empty() && !args.json {
        output::result(&document, args.amount.detail());
    }
    Ok(wrote)
}

/// Prints or writes a run; gives the files and directories written.
fn whole_run(args: &Args, results: &StudyResults) -> Result<Vec<PathBuf>, Failure> {
    if args.json {
        output::print_text(&super::study::record_lines(results)?);
    }
    let mut wrote = Vec::new();
    let mut put = |path: &Option<PathBuf>, text: &dyn Fn() -> String| match path {
        Some(path) => write(path, &text(), &mut wrote),
        None => Ok(()),
    };
    let document = study::document(results);
    put(&args.html, &|| document.html())?;
    put(&args.md, &|| document.markdown())?;
    put(&args.csv, &|| study::csv(results))?;
    write_plots(args, &document, &mut wrote)?;
    if let Some(directory) = &args.all {
        super::study::write(results, directory)?;
        wrote.push(directory.join("index.html"));
    }
    if wrote.is_empty() && !args.json {
        output::document(&document);
    }
    Ok(wrote)
}

/// Each plot as a file in the directory of `--svg`.
fn write_plots(args: &Args, document: &Document, wrote: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let Some(directory) = &args.svg else { return Ok(()) };
    let plots = document.svg_files();
    if plots.is_empty() {
        let reason = "the result has no samples that a plot could show";
        return Err(Failure::new(Fault::Usage, "plot", "--svg", reason)
            .advise("measure with --samples, or use --html"));
    }
    paths::make_folder(directory)?;
    for (name, svg) in plots {
        write(&directory.join(name), &svg, wrote)?;
    }
    Ok(())
}

fn write(path: &Path, text: &str, wrote: &mut Vec<PathBuf>) -> Result<(), Failure> {
    paths::write(path, text)?;
    wrote.push(path.to_owned());
    Ok(())
}
