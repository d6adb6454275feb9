//! The embedded hub: HTTP in this process, SQLite. Its HTTP is that of a server above this crate,
//! which gives a function that begins it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use linerate_store::HubPlace;
use linerate_sys::stop::Stop;

use super::super::address::HubAddress;
use super::super::{Authority, Hub, SigningKey};
use super::World;
use super::agent::plan_is;

/// A server that runs.
#[derive(Debug)]
pub struct Serving {
    /// Where agents reach it.
    pub local: SocketAddr,
    /// Ends it.
    pub stop: Stop,
    /// Its thread.
    pub thread: JoinHandle<()>,
}

/// Begins a server of a hub at an address, port 0 being any.
pub type Serve = fn(Arc<Hub>, SocketAddr) -> Serving;

/// A hub in this process, with its plan and its store in a temporary directory.
#[derive(Debug)]
pub struct Embedded {
    directory: tempfile::TempDir,
    serve: Serve,
    /// Where agents reach it.
    pub local: SocketAddr,
    /// A database in the file's place.
    pub database: Option<String>,
    running: Option<(Arc<Hub>, Serving)>,
}

impl Embedded {
    /// A hub that is not started, and the function that starts its server.
    pub fn new(serve: Serve) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let key = SigningKey::create_key_file(&directory.path().join("key")).expect("a key");
        plan_is(directory.path(), &key, 1);
        let local = SocketAddr::from(([127, 0, 0, 1], 0));
        Self { directory, serve, local, database: None, running: None }
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
        let hub = Hub::from_plan_file(&self.file("plan.toml"), None, &self.place()).expect("a hub");
        let hub = Arc::new(hub);
        let serving = (self.serve)(Arc::clone(&hub), self.local);
        self.local = serving.local;
        self.running = Some((hub, serving));
    }

    fn stop(&mut self) {
        if let Some((_, serving)) = self.running.take() {
            serving.stop.request_stop();
            serving.thread.join().expect("the server ends");
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
