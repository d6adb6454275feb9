//! Cases on disk: a file per family, a case in each line.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

use linerate_core::lab::bank::Case;
use linerate_core::record::{Failure, Fault};
use linerate_engine::failure::words_of;

const ENDING: &str = "jsonl";

/// Adds a case to the file of its family.
pub(super) fn add(directory: &Path, case: &Case) -> Result<(), Failure> {
    let file = directory.join(&case.family).with_extension(ENDING);
    let failed = |error: std::io::Error| {
        Failure::new(Fault::System, "store case in", file.display().to_string(), words_of(&error))
            .advise("free some space, or name another directory with --save")
    };
    let text = linerate_core::tree::to_json(case)
        .map_err(|error| failed(std::io::Error::other(error)))?
        + "\n";
    let mut open = OpenOptions::new().create(true).append(true).open(&file).map_err(failed)?;
    open.write_all(text.as_bytes()).map_err(failed)
}

/// Every case of a directory, by family, in the order in which they were measured.
pub(super) fn read(directory: &Path) -> Result<Vec<Case>, Failure> {
    let failed = |file: &Path, reason: &dyn std::fmt::Display| {
        Failure::new(Fault::Usage, "read cases of", file.display().to_string(), reason)
            .advise("give a directory that linerate lab bank run --save wrote")
    };
    let entries =
        std::fs::read_dir(directory).map_err(|error| failed(directory, &words_of(&error)))?;
    let mut files: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|file| file.extension().is_some_and(|ending| ending == ENDING));
    files.sort();
    let mut cases = Vec::new();
    for file in files {
        let text =
            std::fs::read_to_string(&file).map_err(|error| failed(&file, &words_of(&error)))?;
        for (at, line) in text.lines().enumerate() {
            let case = linerate_core::tree::from_json(line);
            cases.push(case.map_err(|error| failed(&file, &format!("line {}: {error}", at + 1)))?);
        }
    }
    Ok(cases)
}
