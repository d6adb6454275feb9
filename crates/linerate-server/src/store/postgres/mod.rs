//! A hub's store in PostgreSQL (15 or newer): results in partitions by day, the newest of each pair
//! beside them, so that the matrix is never read from results.
//!
//! Each connection is used by one caller at a time and goes back to be used again, unless it
//! failed; what a connection knows of the tables (paths, partitions) is forgotten with it, so that
//! a database that was restored is seen as it is. Statements that change something are committed
//! with `synchronous_commit`, whatever the server's default, but for what beats say.

mod batch;
mod bookings;
mod day;
mod schema;
mod tables;
mod watch;

use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use linerate_core::record::{Failure, FailureCode, Fault};
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Config, NoTls};

/// A connection is there within this.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// Connections that are kept for the next caller.
const KEPT_MAX: usize = 8;

/// A database of PostgreSQL: where it is, and connections to it.
#[derive(Clone, Debug)]
pub struct Database(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    config: Config,
    shown: String,
    idle: Mutex<Vec<Link>>,
}

/// A connection, with the runtime that drives it: only while it is used.
#[derive(Debug)]
struct Link {
    runtime: Driver,
    client: Client,
    /// Numbers of paths: mesh, agent, task.
    paths: HashMap<(String, String, String), i32>,
    /// Days that have a partition, or share the one for all others.
    days: BTreeSet<i64>,
}

/// A runtime that may be dropped anywhere, in another runtime too.
#[derive(Debug)]
struct Driver(Option<Runtime>);

impl Driver {
    fn block_on<T>(&self, work: impl Future<Output = T>) -> T {
        self.0.as_ref().expect("there until it is dropped").block_on(work)
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// A connection that goes back to its database when it is dropped.
#[derive(Debug)]
pub struct PostgresStore {
    database: Database,
    link: Option<Link>,
    /// The mesh that it alone watches. The right to that ends with the connection: there is no
    /// other in its place, and nobody has it next.
    watches: Option<String>,
}

impl Database {
    /// Reads `postgresql://USER:PASSWORD@HOST:PORT/DATABASE` (libpq's connection URIs). Without TLS
    /// a password goes to this host alone, unless `sslmode=disable` says that it may.
    /// # Errors
    /// One line where it makes no sense.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut config: Config = text.parse().map_err(|error: tokio_postgres::Error| {
            let cause =
                std::error::Error::source(&error).map_or_else(String::new, |it| format!(": {it}"));
            format!("{error}{cause}; a database is postgresql://USER@HOST/DATABASE")
        })?;
        let far = config.get_hosts().iter().any(|host| match host {
            Host::Unix(_) => false,
            Host::Tcp(name) => {
                name != "localhost" && !name.parse().is_ok_and(|it: IpAddr| it.is_loopback())
            }
        });
        if far && config.get_ssl_mode() != SslMode::Disable {
            return Err(
                "what goes to another host's database can be read on the way: use a socket, \
                        a tunnel, or say sslmode=disable in the address"
                    .to_owned(),
            );
        }
        let hosts: Vec<String> = config
            .get_hosts()
            .iter()
            .map(|host| match host {
                Host::Unix(path) => path.display().to_string(),
                Host::Tcp(name) => name.clone(),
            })
            .collect();
        let name = config.get_dbname().or_else(|| config.get_user()).unwrap_or("");
        let shown = format!("postgresql://{}/{name}", hosts.join(","));
        config.application_name("linerate").connect_timeout(CONNECT_WITHIN);
        Ok(Self(Arc::new(Inner { config, shown, idle: Mutex::default() })))
    }

    /// A connection: one that was used before, or a new one, whose tables are brought to this
    /// version.
    /// # Errors
    /// When the database is not reached, or a newer version has written it.
    pub fn open(&self) -> Result<PostgresStore, Failure> {
        let idle = self.0.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let link = match idle.filter(|link| !link.client.is_closed()) {
            Some(link) => link,
            None => self.connect()?,
        };
        Ok(PostgresStore { database: self.clone(), link: Some(link), watches: None })
    }

    fn connect(&self) -> Result<Link, Failure> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| {
            Failure::new(Fault::System, "open store", self.0.shown.clone(), error.to_string())
        })?;
        let connecting = async {
            let (client, connection) = self.0.config.connect(NoTls).await?;
            // It ends with its client; what was wrong the client's next call tells.
            tokio::spawn(connection);
            client.batch_execute("SET synchronous_commit = on").await?;
            Ok::<Client, tokio_postgres::Error>(client)
        };
        let runtime = Driver(Some(runtime));
        let client = runtime.block_on(connecting);
        let client = client.map_err(|error| fault("open store", &self.0.shown, &error))?;
        let (paths, days) = (HashMap::new(), BTreeSet::new());
        let mut link = Link { runtime, client, paths, days };
        schema::migrate(&mut link, &self.0.shown)?;
        Ok(link)
    }
}

impl PostgresStore {
    /// Its connection, or another one.
    fn taken(&mut self) -> Result<Link, Failure> {
        match (self.link.take(), &self.watches) {
            (Some(link), _) => Ok(link),
            (None, None) => self.database.connect(),
            (None, Some(mesh)) => {
                let reason = format!("the connection that watched mesh {mesh} is over");
                Err(Failure::new(Fault::System, "use store", self.database.0.shown.clone(), reason))
            }
        }
    }

    /// Does something with the connection. One that failed is not used again.
    fn with<T>(
        &mut self,
        attempt: &str,
        work: impl AsyncFnOnce(&mut Client) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, Failure> {
        let mut link = self.taken()?;
        let Link { runtime, client, .. } = &mut link;
        match runtime.block_on(work(client)) {
            Ok(done) => {
                self.link = Some(link);
                Ok(done)
            }
            Err(error) => Err(self.failed(attempt, &error)),
        }
    }

    /// A failure as one line. Where the connection is over, others that wait are, too: the database
    /// was stopped, or put in another's place.
    fn failed(&self, attempt: &str, error: &tokio_postgres::Error) -> Failure {
        if error.is_closed() || error.as_db_error().is_none() || error.code().is_some_and(is_over) {
            self.database.0.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
        }
        fault(attempt, &self.database.0.shown, error)
    }
}

/// Class 57 of SQLSTATE: the server ends.
fn is_over(code: &SqlState) -> bool {
    code.code().starts_with("57P")
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        let Some(link) = self.link.take().filter(|_| self.watches.is_none()) else { return };
        let mut idle = self.database.0.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < KEPT_MAX {
            idle.push(link);
        }
    }
}

/// PostgreSQL's errors as one line with a next step (its manual, appendix A).
fn fault(attempt: &str, shown: &str, error: &tokio_postgres::Error) -> Failure {
    let reason = match (error.as_db_error(), std::error::Error::source(error)) {
        (Some(said), _) => format!("{} (SQLSTATE {})", said.message(), said.code().code()),
        (None, Some(cause)) => format!("{error}: {cause}"),
        (None, None) => error.to_string(),
    };
    let reason = reason.split_whitespace().collect::<Vec<_>>().join(" ");
    let of = if error.code().is_some() { Fault::System } else { Fault::Unreachable };
    let failure = Failure::new(of, attempt, shown, reason);
    let Some(code) = error.code() else {
        return failure.advise("see whether PostgreSQL runs there and takes connections");
    };
    let full = *code == SqlState::DISK_FULL;
    let failure = failure.coded(full.then_some(FailureCode::NoRoom));
    match code {
        code if *code == SqlState::DISK_FULL => failure.advise("make room there"),
        code if *code == SqlState::INVALID_CATALOG_NAME => failure.advise("createdb makes it"),
        code if *code == SqlState::INSUFFICIENT_PRIVILEGE => {
            failure.advise("let the user own the database, or its tables")
        }
        _ => failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_is_shown_without_its_password_and_a_far_one_is_asked_for_in_words() {
        let shown = |text: &str| Database::parse(text).map(|it| it.0.shown.clone());
        let of = |text: &str| Ok(text.to_owned());
        assert_eq!(
            shown("postgresql://me:secret@localhost:5433/mesh"),
            of("postgresql://localhost/mesh")
        );
        assert_eq!(shown("postgresql://me@%2Frun%2Fpg/mesh"), of("postgresql:///run/pg/mesh"));
        let far = "postgresql://me:secret@192.0.2.1/mesh";
        assert!(shown(far).is_err_and(|say| say.contains("sslmode=disable")));
        assert_eq!(shown(&format!("{far}?sslmode=disable")), of("postgresql://192.0.2.1/mesh"));
        assert!(shown("postgresql://h/m?color=red").is_err_and(|say| say.contains("color")));
    }
}
