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
mod sketches;
mod tables;
mod tls;
mod watch;

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use linerate_core::record::{Failure, FailureCode, Fault};
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Config, NoTls};

use tls::{PostgresTls, TlsUriOptions};

/// A connection is there within this.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// Connections that are kept for the next caller.
const KEPT_MAX: usize = 8;

/// A database of PostgreSQL: where it is, and connections to it.
#[derive(Clone, Debug)]
pub struct Database(Arc<DatabaseInner>);

#[derive(Debug)]
struct DatabaseInner {
    config: Config,
    /// None where nobody else can read what is said, or the address says that they may.
    tls: Option<PostgresTls>,
    shown: String,
    idle: Mutex<Vec<PooledConnection>>,
}

/// A connection, with the runtime that drives it: only while it is used.
#[derive(Debug)]
struct PooledConnection {
    runtime: DetachedRuntime,
    client: Client,
    /// Numbers of paths: mesh, agent, task.
    paths: HashMap<(String, String, String), i32>,
    /// Days that have a partition, or share the one for all others.
    days: BTreeSet<i64>,
}

/// A runtime that may be dropped anywhere, in another runtime too.
#[derive(Debug)]
struct DetachedRuntime(Option<Runtime>);

impl DetachedRuntime {
    fn block_on<T>(&self, work: impl Future<Output = T>) -> T {
        self.0.as_ref().expect("there until it is dropped").block_on(work)
    }
}

impl Drop for DetachedRuntime {
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
    link: Option<PooledConnection>,
    /// The mesh that it alone watches. The right to that ends with the connection: there is no
    /// other in its place, and nobody has it next.
    watches: Option<String>,
}

impl Database {
    /// Reads `postgresql://USER:PASSWORD@HOST:PORT/DATABASE` (libpq's connection URIs). Another
    /// host is reached by TLS, whose certificate is checked, unless `sslmode=disable` says not to.
    /// # Errors
    /// One line where it makes no sense, or there are no authorities to check a certificate by.
    pub fn parse(text: &str) -> Result<Self, String> {
        let asked = TlsUriOptions::from_uri(text);
        let mut config: Config = asked.rest.parse().map_err(|error: tokio_postgres::Error| {
            let cause = std::error::Error::source(&error)
                .map_or_else(String::new, |source| format!(": {source}"));
            format!("{error}{cause}; a database is postgresql://USER@HOST/DATABASE")
        })?;
        let secure = is_secure(&asked, &config)?;
        config.ssl_mode(if secure { SslMode::Require } else { SslMode::Disable });
        let tls = secure.then(|| PostgresTls::read(asked.authority.as_deref())).transpose()?;
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
        Ok(Self(Arc::new(DatabaseInner { config, tls, shown, idle: Mutex::default() })))
    }

    /// A connection: one that was used before, or a new one, whose tables are brought to this
    /// version.
    /// # Errors
    /// When the database is not reached, or a newer version has written it.
    pub fn open_store(&self) -> Result<PostgresStore, Failure> {
        let idle = self.0.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let link = match idle.filter(|link| !link.client.is_closed()) {
            Some(link) => link,
            None => self.connect()?,
        };
        Ok(PostgresStore { database: self.clone(), link: Some(link), watches: None })
    }

    fn connect(&self) -> Result<PooledConnection, Failure> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| {
            Failure::new(Fault::System, "open store", self.0.shown.clone(), error.to_string())
        })?;
        let connecting = async {
            // A connection ends with its client; what was wrong the client's next call tells.
            let client = if let Some(tls) = &self.0.tls {
                let (client, connection) = self.0.config.connect(tls.clone()).await?;
                tokio::spawn(connection);
                client
            } else {
                let (client, connection) = self.0.config.connect(NoTls).await?;
                tokio::spawn(connection);
                client
            };
            client.batch_execute("SET synchronous_commit = on").await?;
            Ok::<Client, tokio_postgres::Error>(client)
        };
        let runtime = DetachedRuntime(Some(runtime));
        let client = runtime.block_on(connecting);
        let client =
            client.map_err(|error| database_failure("open store", &self.0.shown, &error))?;
        let (paths, days) = (HashMap::new(), BTreeSet::new());
        let mut link = PooledConnection { runtime, client, paths, days };
        schema::migrate(&mut link, &self.0.shown)?;
        Ok(link)
    }
}

/// True where TLS is used: to each host but this one, and where the address asks for it. A Unix
/// socket has no TLS (PostgreSQL's manual 34.19).
fn is_secure(asked: &TlsUriOptions, config: &Config) -> Result<bool, String> {
    let is_near = |host: &Host| match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => {
            name == "localhost" || name.parse().is_ok_and(|address: IpAddr| address.is_loopback())
        }
    };
    let (hosts, addresses) = (config.get_hosts(), config.get_hostaddrs());
    // Where there are addresses, hosts are names alone.
    let near = match addresses {
        [] => hosts.iter().all(is_near),
        addresses => addresses.iter().all(IpAddr::is_loopback),
    };
    let sockets = addresses.is_empty() && hosts.iter().all(|host| matches!(host, Host::Unix(_)));
    match asked.mode.as_deref() {
        Some("disable") => Ok(false),
        Some("require" | "verify-full") => Ok(!sockets),
        None => Ok(!sockets && (!near || asked.authority.is_some())),
        Some(mode @ ("allow" | "prefer" | "verify-ca")) => Err(format!(
            "sslmode={mode} takes a connection that others may read, or that another host may \
             answer: say verify-full (which other hosts have without a word), or disable"
        )),
        Some(mode) => Err(format!("sslmode={mode}: there is verify-full, and disable")),
    }
}

impl PostgresStore {
    /// Its connection, or another one.
    fn take_connection(&mut self) -> Result<PooledConnection, Failure> {
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
    fn with_client<T>(
        &mut self,
        attempt: &str,
        work: impl AsyncFnOnce(&mut Client) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, Failure> {
        let mut link = self.take_connection()?;
        let PooledConnection { runtime, client, .. } = &mut link;
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
        database_failure(attempt, &self.database.0.shown, error)
    }
}

/// Class 57P of SQLSTATE: the server ends, or has not started yet.
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
fn database_failure(attempt: &str, shown: &str, error: &tokio_postgres::Error) -> Failure {
    let reason = match (error.as_db_error(), std::error::Error::source(error)) {
        (Some(said), _) => format!("{} (SQLSTATE {})", said.message(), said.code().code()),
        (None, Some(cause)) => format!("{error}: {cause}"),
        (None, None) => error.to_string(),
    };
    let reason = reason.split_whitespace().collect::<Vec<_>>().join(" ");
    let away = error.code().is_none_or(is_over);
    let of = if away { Fault::Unreachable } else { Fault::System };
    let failure = Failure::new(of, attempt, shown, reason);
    let Some(code) = error.code() else {
        return failure.advise(not_reached(error));
    };
    let full = *code == SqlState::DISK_FULL;
    let failure = failure.with_code(full.then_some(FailureCode::NoRoom));
    match code {
        code if *code == SqlState::DISK_FULL => failure.advise("make room there"),
        code if is_over(code) => failure.advise("see that it has started, and try again"),
        code if *code == SqlState::INVALID_CATALOG_NAME => failure.advise("createdb makes it"),
        code if *code == SqlState::INSUFFICIENT_PRIVILEGE => {
            failure.advise("let the user own the database, or its tables")
        }
        _ => failure,
    }
}

/// Advice for a failed connection, by its cause.
fn not_reached(error: &tokio_postgres::Error) -> &'static str {
    let below =
        std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<io::Error>());
    let of_tls = below.and_then(io::Error::get_ref).and_then(|inner| inner.downcast_ref());
    match of_tls {
        Some(rustls::Error::InvalidCertificate(_)) => {
            "name the host as its certificate does, and whose certificate vouches for it: \
             sslrootcert=FILE"
        }
        Some(_) => "let PostgreSQL take TLS 1.3",
        None => {
            "see whether PostgreSQL runs there and takes connections, by TLS where the address \
             has another host (ssl = on, or sslmode=disable)"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_is_shown_without_its_password() {
        let shown = |text: &str| Database::parse(text).map(|database| database.0.shown.clone());
        let of = |text: &str| Ok(text.to_owned());
        assert_eq!(
            shown("postgresql://me:secret@localhost:5433/mesh"),
            of("postgresql://localhost/mesh")
        );
        assert_eq!(shown("postgresql://me@%2Frun%2Fpg/mesh"), of("postgresql:///run/pg/mesh"));
        assert!(shown("postgresql://h/m?color=red").is_err_and(|say| say.contains("color")));
    }

    #[test]
    fn other_hosts_are_reached_by_tls_unless_the_address_says_not_to() {
        let ca = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/tls/ca.pem");
        let is_secure = |text: &str| Database::parse(text).map(|database| database.0.tls.is_some());
        let root = format!("sslrootcert={}", ca.replace('/', "%2F"));
        let (yes, no) = (Ok(true), Ok(false));
        assert_eq!(is_secure(&format!("postgresql://me@192.0.2.1/mesh?{root}")), yes);
        assert_eq!(is_secure("postgresql://me@192.0.2.1/mesh?sslmode=disable"), no);
        assert_eq!(is_secure("postgresql://me@localhost,127.0.0.1,[::1]/mesh"), no);
        assert_eq!(is_secure(&format!("postgresql://me@localhost/mesh?{root}")), yes);
        let asked = format!("postgresql://me@localhost/mesh?sslmode=verify-full&{root}");
        assert_eq!(is_secure(&asked), yes);
        // A socket has none.
        assert_eq!(is_secure("postgresql://me@%2Frun%2Fpg/mesh?sslmode=verify-full"), no);
        // A name is no address where there is one.
        let elsewhere = format!("postgresql://me@localhost/mesh?hostaddr=192.0.2.1&{root}");
        assert_eq!(is_secure(&elsewhere), yes);
        let weak = is_secure("postgresql://me@192.0.2.1/mesh?sslmode=prefer");
        assert!(weak.is_err_and(|say| say.contains("verify-full")));
        let unknown = is_secure("postgresql://me@192.0.2.1/mesh?sslmode=REQUIRE");
        assert!(unknown.is_err_and(|say| say.contains("there is verify-full")));
        let nobody = is_secure("postgresql://me@192.0.2.1/mesh?sslrootcert=nothing.pem");
        let advised = |say: &str| say.contains("nothing.pem") && say.contains("sslrootcert=FILE");
        assert!(nobody.is_err_and(|say| advised(&say)));
        // As of libpq: nothing is what is usual.
        assert_eq!(TlsUriOptions::from_uri("postgresql://h/m?sslrootcert=").authority, None);
    }
}
