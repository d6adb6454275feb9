//! A broker and a database, from their packages, for as long as a test needs them: in a temporary
//! directory, on loopback and on a socket there.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::ports;

/// Nothing here takes as long on a machine that does anything at all.
const TRIES: usize = 2400;
const LOOK: Duration = Duration::from_millis(100);

/// A program that ends with the test.
#[derive(Debug)]
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Program {
    /// Waits until it is ready; fails once it has ended, with its log.
    fn wait_until(&mut self, what: &str, log: &Path, mut holds: impl FnMut() -> bool) {
        for _ in 0..TRIES {
            if holds() {
                return;
            }
            let ended = self.0.try_wait().expect("it is ours");
            assert_eq!(ended, None, "it ended before {what}: {}", text_of(log));
            linerate_sys::clock::sleep(LOOK);
        }
        panic!("not within four minutes: {what}: {}", text_of(log));
    }
}

fn text_of(log: &Path) -> String {
    std::fs::read_to_string(log).unwrap_or_default()
}

/// A database server of this test.
#[derive(Debug)]
pub(crate) struct Postgres {
    program: Option<Program>,
    programs: PathBuf,
    directory: tempfile::TempDir,
    port: u16,
}

impl Postgres {
    /// Starts one that nobody else reaches. Where it does not sync it writes to the disk when it
    /// likes, which is faster; no test here is of a power cut.
    pub(crate) fn start(sync: bool) -> Self {
        let sync = if sync { "fsync=on" } else { "fsync=off" };
        Self::begin(5432, |_| vec!["listen_addresses=".to_owned(), sync.to_owned()])
    }

    /// Starts one that is reached by TLS, as `localhost`, where a user needs a password.
    pub(crate) fn start_secure() -> Self {
        Self::begin(ports::reserve(1), |directory| {
            let tls = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/tls");
            let key = directory.join("key");
            std::fs::copy(tls.join("one.key"), &key).expect("room");
            std::fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).expect("its own");
            let certificate = tls.join("one.pem").canonicalize().expect("testdata");
            let rules = "local all all trust\nhostssl all all all scram-sha-256\n";
            std::fs::write(directory.join("data/pg_hba.conf"), rules).expect("room");
            vec![
                "listen_addresses=127.0.0.1".to_owned(),
                "ssl=on".to_owned(),
                format!("ssl_cert_file={}", certificate.display()),
                format!("ssl_key_file={}", key.display()),
            ]
        })
    }

    fn begin(port: u16, settings: impl FnOnce(&Path) -> Vec<String>) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let programs = programs();
        let data = directory.path().join("data");
        std::fs::create_dir(&data).expect("room");
        // PostgreSQL does not run as root: it is another user to itself, in a namespace of its own.
        let (user, group) = (id(&["-u", "postgres"]), id(&["-g", "postgres"]));
        let is_root = id(&["-u"]) == "0";
        let as_user = |program: &str| {
            let program = programs.join(program);
            let mut command = Command::new(if is_root { Path::new("unshare") } else { &program });
            if is_root {
                command.arg("--user").arg(format!("--map-user={user}"));
                command.arg(format!("--map-group={group}")).arg(&program);
            }
            command.current_dir("/").stdin(Stdio::null()).stdout(Stdio::null());
            command
        };
        let log_path = directory.path().join("log");
        let log = std::fs::File::create(&log_path).expect("room");
        let made = as_user("initdb")
            .args(["--no-sync", "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C", "-D"])
            .arg(&data)
            .stderr(log.try_clone().expect("a file"))
            .status();
        assert!(made.is_ok_and(|it| it.success()), "initdb: {}", text_of(&log_path));
        let child = as_user("postgres")
            .args(["-p", &port.to_string(), "-c", "max_connections=40"])
            .args(settings(directory.path()).iter().flat_map(|it| ["-c", it]))
            .arg("-k")
            .arg(directory.path())
            .arg("-D")
            .arg(&data)
            .stderr(log)
            .spawn()
            .expect("postgres starts");
        let mut started = Self { program: None, programs, directory, port };
        let mut program = Program(child);
        program.wait_until("PostgreSQL takes connections", &log_path, || {
            started.asked("postgres", "SELECT 1").is_ok()
        });
        started.program = Some(program);
        started
    }

    /// Where a database is.
    pub(crate) fn url(&self, database: &str) -> String {
        let socket = self.directory.path().display().to_string().replace('/', "%2F");
        format!("postgresql://postgres@{socket}/{database}")
    }

    /// Where others find it.
    pub(crate) const fn port(&self) -> u16 {
        self.port
    }

    /// Does something in a database.
    pub(crate) fn sql(&self, database: &str, sql: &str) -> String {
        self.asked(database, sql).unwrap_or_else(|said| panic!("{sql}: {said}"))
    }

    fn asked(&self, database: &str, sql: &str) -> Result<String, String> {
        let mut command = Command::new(self.programs.join("psql"));
        command.args(["-U", "postgres", "-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-d"]);
        command.arg(database).arg("-h").arg(self.directory.path());
        command.args(["-p", &self.port.to_string(), "-c", sql]);
        let output = command.stdin(Stdio::null()).output().expect("psql starts");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
    }
}

/// Where the newest of PostgreSQL's programs are.
fn programs() -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").expect("postgresql is installed");
    let versions = versions.filter_map(|it| it.ok()).map(|it| it.path().join("bin"));
    let mut found: Vec<PathBuf> = versions.filter(|it| it.join("initdb").exists()).collect();
    found.sort();
    found.pop().expect("postgresql is installed with its server")
}

fn id(words: &[&str]) -> String {
    let output = Command::new("id").args(words).output().expect("id runs");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// A broker of this test: of `docs/nats/nats-server.conf`, over TLS.
#[derive(Debug)]
pub(crate) struct Nats {
    program: Option<Program>,
    port: u16,
    directory: tempfile::TempDir,
}

impl Nats {
    /// Starts one on a free port.
    pub(crate) fn start() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut started = Self { program: None, port: ports::reserve(1), directory };
        started.again();
        started
    }

    /// Starts it again, with what it has on its disk.
    pub(crate) fn again(&mut self) {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let tls = root.join("testdata/tls");
        let log = self.directory.path().join("log");
        let mut command = Command::new("nats-server");
        command.arg("-c").arg(root.join("docs/nats/nats-server.conf"));
        command.args(["-a", "127.0.0.1", "-p", &self.port.to_string(), "--tls"]);
        command.arg("--tlscert").arg(tls.join("one.pem")).arg("--tlskey").arg(tls.join("one.key"));
        command.arg("-l").arg(&log).env("STREAM_DIRECTORY", self.directory.path().join("stream"));
        command.env("HUB_PASSWORD", "of-the-hub").env("AGENT_PASSWORD", "of-agents");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut program = Program(command.spawn().expect("nats-server is installed"));
        let address = ("127.0.0.1", self.port);
        program.wait_until("the broker listens", &log, || {
            std::net::TcpStream::connect(address).is_ok()
        });
        self.program = Some(program);
    }

    /// Kills it.
    pub(crate) fn kill(&mut self) {
        self.program = None;
    }

    /// Where its user is let in.
    pub(crate) fn url(&self, user: &str) -> String {
        let password = if user == "hub" { "of-the-hub" } else { "of-agents" };
        format!("tls://{user}:{password}@localhost:{}", self.port)
    }

    /// Whose certificate vouches for it.
    pub(crate) fn authority() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/tls/ca.pem")
    }
}
