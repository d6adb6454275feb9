//! A store on a medium that nobody may write is read: lists, reports, exports; and refuses in words
//! what would change it.

use std::path::Path;
use std::process::{Command, Output};

use linerate_core::record::{MetricId, PingPlan, Plan, Record, RecordId, Stat, Summary, Tool};
use linerate_core::time::WallTime;
use linerate_store::Store;

use crate::support::{stderr, stdout};

/// Runs the program where a directory is mounted read-only, which binds root, too.
fn read_only(directory: &Path, words: &[&str]) -> Output {
    let script = "mount --bind \"$0\" \"$0\" && mount -o remount,bind,ro \"$0\" && exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "--map-root-user", "sh", "-c", script]).arg(directory);
    command.arg(env!("CARGO_BIN_EXE_linerate")).args(words);
    command.output().expect("unshare is there")
}

#[test]
fn a_store_that_nobody_may_write_is_read() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("results.db");
    let millis = 1_700_000_000_000;
    let tool = Tool { name: "linerate".to_owned(), version: "0".to_owned() };
    let at = WallTime::from_unix_nanos(u128::from(millis) * 1_000_000);
    let plan = Plan::Ping(PingPlan::default());
    let mut record = Record::from_plan(RecordId::from_parts(millis, [7; 10]), tool, plan, at);
    record.name = Some("kept".to_owned());
    record.summary = vec![Summary::from_value(MetricId::Rtt, Stat::P50, 2e6)];
    Store::open(&path).expect("a store").put_record(&record).expect("room");
    let store = path.display().to_string();
    let said = read_only(directory.path(), &["history", "--json", "--store", &store]);
    if stderr(&said).contains("unshare") || stderr(&said).contains("mount:") {
        println!("skipped: {}", stderr(&said).trim_end());
        return;
    }
    assert!(said.status.success(), "{}", stderr(&said));
    assert!(stdout(&said).contains("\"kept\""), "{}", stdout(&said));
    for words in [&["report", "@-1"][..], &["export", "--format", "csv"]] {
        let said = read_only(directory.path(), &[words, &["--store", &store]].concat());
        assert!(said.status.success(), "{words:?}: {}", stderr(&said));
    }
    let id = record.id.to_string();
    let keep = read_only(directory.path(), &["history", "--keep", &id, "--store", &store]);
    assert!(!keep.status.success() && stderr(&keep).contains("readonly"), "{}", stderr(&keep));
}
