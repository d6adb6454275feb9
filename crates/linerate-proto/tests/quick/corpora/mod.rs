//! The fuzz entries over their corpora: as recorded, damaged, and hostile on purpose.

mod damage;
mod entries;
mod icmp_error;
mod iperf2;
mod iperf3;
mod listed;
#[path = "../../../../../fuzz/mutations.rs"]
mod mutations;
mod nuttcp;
mod ptp4l;
mod readers;
mod seeds;
mod stamp;
mod test_frame;

use std::path::{Path, PathBuf};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name)
}

/// The recordings of one protocol, which are `least` at least.
fn recorded(name: &str, least: usize) -> Vec<Vec<u8>> {
    let entries = std::fs::read_dir(folder(name)).expect("the corpus is there");
    let paths = entries.map(|entry| entry.expect("readable").path());
    let files = paths.filter(|path| path.extension().is_some_and(|end| end == "bin"));
    let corpus: Vec<Vec<u8>> = files.map(|path| std::fs::read(path).expect("readable")).collect();
    assert!(corpus.len() >= least, "{} files", corpus.len());
    corpus
}
