//! The embedded hub: HTTP in this process, SQLite.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use linerate_core::record::Tool;
use linerate_store::HubPlace;
use linerate_sys::stop::Stop;

use super::super::address::HubAddress;
use super::super::{Authority, Hub, SigningKey};
use super::agent::plan_is;
use super::{World, holds};
use crate::admission::Limits;
use crate::foreign::Foreign;
use crate::listen::{LogEntry, ServeOptions, Server};
use crate::web::WebOptions;

pub(super) struct Embedded {
    directory: tempfile::TempDir,
    pub(super) local: SocketAddr,
    /// A database in the file's place.
    pub(super) database: Option<String>,
    running: Option<(Arc<Hub>, Stop, JoinHandle<()>)>,
}

impl Embedded {
    pub(super) fn new() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let key = SigningKey::make(&directory.path().join("key")).expect("a key");
        plan_is(directory.path(), &key, 1);
        let local = SocketAddr::from(([127, 0, 0, 1], 0));
        Self { directory, local, database: None, running: None }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The store's file with the log of what is not in it yet.
    fn copy(&self, from: &str, to: &str) {
        for more in ["", "-wal", "-shm"] {
            let (from, to) =
                (self.file(&format!("{from}{more}")), self.file(&format!("{to}{more}")));
            let _ = std::fs::remove_file(&to);
            if from.exists() {
                std::fs::copy(from, to).expect("room");
            }
        }
    }
}

impl World for Embedded {
    fn directory(&self) -> &Path {
        self.directory.path()
    }

    fn address(&self) -> HubAddress {
        format!("http://{}", self.local).parse().expect("an address")
    }

    fn authority(&self) -> Option<Authority> {
        None
    }

    fn place(&self) -> HubPlace {
        match &self.database {
            Some(database) => HubPlace::parse(database).expect("an address"),
            None => HubPlace::File(self.file("hub.db")),
        }
    }

    fn start(&mut self) {
        let hub = Hub::open(&self.file("plan.toml"), None, &self.place()).expect("a hub");
        let hub = Arc::new(hub);
        let (local, limits) = (self.local, Limits::default());
        let options = ServeOptions { local, limits, foreign: Foreign::none() };
        let mut server = Server::bind(&options).expect("the port is free");
        self.local = server.local_addr().expect("bound");
        let tool = Tool { name: "linerate".to_owned(), version: "0".to_owned() };
        server.serve_web(WebOptions { page: false, store: None, tool, origins: Vec::new() });
        server.serve_mesh(Arc::clone(&hub));
        let stop = Stop::new();
        let until = stop.clone();
        let run = move || server.run(&until, &|_: &LogEntry<'_>| {});
        self.running = Some((hub, stop, std::thread::spawn(run)));
    }

    fn stop(&mut self) {
        if let Some((_, stop, running)) = self.running.take() {
            stop.ask();
            running.join().expect("the server ends");
        }
    }

    fn hub(&self) -> &Hub {
        &self.running.as_ref().expect("started").0
    }

    fn forgets(&mut self) {
        // Nothing lies between: what was acknowledged is stored.
    }

    fn backs_up(&mut self) {
        self.copy("hub.db", "copy.db");
    }

    fn restores(&mut self) {
        self.copy("copy.db", "hub.db");
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        self.stop();
    }
}

#[test]
fn the_embedded_hub_holds_to_it() {
    let mut world = Embedded::new();
    world.start();
    holds(&mut world);
}
