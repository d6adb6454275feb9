//! A mesh on NATS and PostgreSQL as its users run it: hub, agent and both servers from their
//! packages, on loopback. What holds whatever happens to them is the suite of linerate-server's.
#![cfg(feature = "scale")]

use std::path::Path;
use std::process::Command;

use crate::started::{Nats, Postgres};
use crate::support::mesh::{PROGRAM, Running, eventually, good, linerate};
use crate::support::{self, interrupt, stderr, stdout};
use serde_json::Value;

const PLAN: &str = "mesh = \"m\"\nrevision = 1\n\n[[agent]]\nname = \"a\"\n\
    address = \"127.0.0.1\"\n\n[[agent]]\nname = \"b.c\"\naddress = \"127.0.0.2\"\n\n\
    [[task]]\nname = \"delay\"\nrun = \"ping {to} -c2\"\nevery = \"10s\"\ntakes = \"9s\"\n";

/// The program with files of its own.
fn command(directory: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(words).current_dir(directory);
    command.env_remove("LINERATE_STORE").env("XDG_DATA_HOME", directory);
    command
}

#[test]
fn an_agent_s_results_go_over_the_broker_into_the_database_and_leave_its_spool() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path();
    let postgres = Postgres::start(false);
    postgres.sql("postgres", "CREATE DATABASE mesh");
    let (nats, database) = (Nats::start(), postgres.url("mesh"));
    std::fs::write(path.join("plan.toml"), PLAN).expect("room");
    good(path, &["mesh", "key", "mesh.key"]);
    good(path, &["mesh", "sign", "plan.toml", "--key", "mesh.key"]);
    let token = good(path, &["mesh", "token", "b.c", "--plan", "plan.toml", "--store", &database]);
    let ca = Nats::authority().display().to_string();
    let words = ["serve", "--port", "0", "--bind", "127.0.0.1", "--foreign", "none"];
    let mesh = ["--stamp-port", "none", "--mesh", "plan.toml", "--mesh-ca", &ca];
    let (bus, store) = (nats.url("hub"), ["--mesh-store", &database, "--mesh-bus"]);
    let words = [&words[..], &mesh, &store, &[&bus]].concat();
    let hub = Running::start(&mut command(path, &words), &path.join("hub.log"));
    let hears = || hub.said().contains("agents join by way of tls://");
    eventually("the hub hears the broker", &[&hub], hears);
    assert!(!hub.said().contains("of-the-hub"), "no password is shown: {}", hub.said());
    let url = nats.url("agent");
    let words = ["agent", "--join", &url, "--ca", &ca, "--store", "agent.db", "--token", &token];
    let mut agent = Running::start(&mut command(path, &words), &path.join("agent.log"));
    eventually("something was measured", &[&hub, &agent], || {
        let status = linerate(path, &["mesh", "status", "--json", "--store", &database]);
        let status: Value = serde_json::from_str(&stdout(&status)).expect("JSON");
        let cells = status["cells"].as_array().expect("cells");
        // A host that lets nobody ping has a reason instead.
        cells.iter().any(|cell| cell["age_s"].is_i64()) || agent.said().contains("no result")
    });
    interrupt(&agent.child);
    assert_eq!(support::end_of(&mut agent.child).and_then(|end| end.code()), Some(0));
    assert!(agent.said().contains("0 are kept for the hub"), "{}", agent.said());
    let paths = "SELECT count(*) FROM mesh_result JOIN mesh_path USING (path)
                 WHERE agent = 'b.c' AND task = 'delay/a'";
    assert_ne!(postgres.sql("mesh", paths), "0");
    assert!(hub.said().contains("agent b.c has joined"), "{}", hub.said());
}

#[test]
fn what_cannot_be_reached_or_makes_no_sense_is_one_line() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path();
    std::fs::write(path.join("plan.toml"), PLAN).expect("room");
    good(path, &["mesh", "key", "mesh.key"]);
    good(path, &["mesh", "sign", "plan.toml", "--key", "mesh.key"]);
    let fails = |words: &[&str], code: i32, part: &str| {
        let output = linerate(path, words);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains(part) && !said.contains("secret"), "{said}");
    };
    let far = |options: &str| format!("postgresql://me:secret@192.0.2.1/m?{options}");
    fails(&["mesh", "status", "--store", &far("sslmode=prefer")], 2, "say verify-full");
    fails(&["mesh", "status", "--store", &far("sslrootcert=no.pem")], 2, "read authorities no.pem");
    let nobody =
        format!("postgresql://me:secret@{}/m", path.display().to_string().replace('/', "%2F"));
    fails(&["mesh", "status", "--store", &nobody], 3, "see whether PostgreSQL runs there");
    let serve = ["serve", "--port", "0", "--bind", "127.0.0.1", "--foreign", "none"];
    let mesh = ["--stamp-port", "none", "--mesh", "plan.toml", "--store", "hub.db"];
    let hub = |more: &[&'static str]| [&serve[..], &mesh, more].concat();
    fails(&hub(&["--mesh-bus", "http://h"]), 2, "a broker is tls://");
    fails(&hub(&["--mesh-store", "hub.db"]), 2, "a database is postgresql://");
    let away = hub(&["--mesh-bus", "nats://me:secret@127.0.0.1:1"]);
    fails(&away, 3, "connect to broker nats://127.0.0.1:1");
}
