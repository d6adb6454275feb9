//! One runner for a plan and a store: a lock of a file (flock(2)), which the kernel takes back from
//! a program that was killed.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use linerate_core::record::{Failure, Fault};
use linerate_engine::failure::words_of;

/// The file of a plan's lock, beside the store.
pub(super) fn lock_file_path(store: &Path, plan: &str) -> PathBuf {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let plan: String = plan.chars().map(plain).collect();
    let mut name = store.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{plan}.lock"));
    store.with_file_name(name)
}

/// Takes the lock; it is held until the file is closed.
/// # Errors
/// When another program has it, with its process, or when the file cannot be made.
pub(crate) fn acquire_lock(store: &Path, plan: &str) -> Result<File, Failure> {
    let path = lock_file_path(store, plan);
    let failed = |error: &std::io::Error| {
        Failure::new(Fault::System, "lock", path.display().to_string(), words_of(error))
    };
    let mut file = File::options();
    let file = file.read(true).write(true).create(true).truncate(false);
    let mut file = file.open(&path).map_err(|error| failed(&error))?;
    if file.try_lock().is_err() {
        let mut holder = String::new();
        let _ = file.read_to_string(&mut holder);
        let reason = format!("process {} runs it on this store", holder.trim());
        return Err(Failure::new(Fault::Usage, "run schedule", plan, reason)
            .advise("stop that one first, or name another store with --store"));
    }
    let write = |file: &mut File| {
        file.set_len(0)?;
        file.seek(SeekFrom::Start(0))?;
        writeln!(file, "{}", std::process::id())
    };
    write(&mut file).map_err(|error| failed(&error))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_run_once_on_a_store_and_again_when_it_ended() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let store = directory.path().join("results.db");
        let held = acquire_lock(&store, "home line").expect("nobody has it");
        let error = acquire_lock(&store, "home line").expect_err("it is held").to_string();
        assert!(error.contains(&std::process::id().to_string()), "{error}");
        acquire_lock(&store, "other").expect("another plan");
        drop(held);
        acquire_lock(&store, "home line").expect("it ended");
    }
}
