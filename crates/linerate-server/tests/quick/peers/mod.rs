//! What the tests with other programs share: a server on free ports, its log, the programs.
#![allow(dead_code, reason = "each test program uses a part")]

pub(crate) mod ports;

use std::io::{BufRead, BufReader, Read};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use linerate_core::record::{
    Direction, Event, Finish, MetricId, Record, ServerPlan, Stat, TcpPlan, TcpTest, Tool, Via,
};
use linerate_engine::context::Context;
use linerate_engine::foreign::iperf2::AddressValidation;
use linerate_engine::throughput;
use linerate_server::admission::ServerLimits;
use linerate_server::foreign::Foreign;
use linerate_server::listen::{LogEntry, MeasurementServer, ServeOptions};
use linerate_sys::clock::{monotonic, sleep};
use linerate_sys::stop::Stop;

pub(crate) const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A running server as a test sees it.
pub(crate) struct Running<'a> {
    pub(crate) native: SocketAddr,
    ports: Vec<(Via, u16)>,
    log: &'a Mutex<Vec<String>>,
}

impl Running<'_> {
    pub(crate) fn port(&self, via: Via) -> u16 {
        let found = self.ports.iter().find(|(spoken, _)| *spoken == via);
        found.expect("it is answered").1
    }

    pub(crate) fn at(&self, via: Via) -> SocketAddr {
        SocketAddr::new(HERE, self.port(via))
    }

    /// Waits until the log has `count` lines, and takes them; fewer when that takes too long.
    pub(crate) fn log(&self, count: usize) -> Vec<String> {
        let deadline = monotonic() + Duration::from_secs(30);
        loop {
            let mut log = self.log.lock().expect("no test panics with it");
            if log.len() >= count || monotonic() >= deadline {
                return std::mem::take(&mut *log);
            }
            drop(log);
            sleep(Duration::from_millis(5));
        }
    }
}

/// Runs `test` against a server that answers iperf3, iperf 2 and nuttcp on free ports.
pub(crate) fn with_server(limits: ServerLimits, test: impl FnOnce(&Running<'_>)) {
    with_server_trusting(AddressValidation::default(), limits, test);
}

/// The same of one that sends data over UDP to whom `trust` says.
pub(crate) fn with_server_trusting(
    trust: AddressValidation,
    limits: ServerLimits,
    test: impl FnOnce(&Running<'_>),
) {
    let foreign = Foreign::These(vec![(Via::Iperf2, 0), (Via::Nuttcp, 0), (Via::Iperf3, 0)]);
    let options = ServeOptions { local: SocketAddr::new(HERE, 0), limits, foreign };
    let mut server = MeasurementServer::bind(&options).expect("free ports");
    server.trust_udp(trust);
    let log = Mutex::default();
    let native = server.local_addr().expect("bound");
    let running = Running { native, ports: server.foreign().collect(), log: &log };
    let stop = Stop::new();
    let note = |entry: &LogEntry<'_>| {
        let ways = serde_json::to_string(entry.ways).expect("figures");
        log.lock().expect("no test panics with it").push(format!("{} | {ways}", entry.line));
    };
    std::thread::scope(|scope| {
        let serving = scope.spawn(|| server.run(&stop, &note));
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| test(&running)));
        stop.request_stop();
        serving.join().expect("the server ends");
        if let Err(panic) = result {
            std::panic::resume_unwind(panic);
        }
    });
}

/// Says why the tests of a program are skipped, if it is not here.
#[allow(clippy::print_stdout, reason = "the test runner shows it")]
pub(crate) fn lacks(program: &str) -> bool {
    let there = Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
    let there = there.is_ok_and(|output| output.status.success());
    if !there {
        println!("skipped: {program} is not installed");
    }
    !there
}

/// Runs a program to its end; it must end well.
pub(crate) fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().expect("the program starts");
    let said = text(&output);
    assert!(output.status.success(), "{program} {arguments:?}: {said}");
    said
}

pub(crate) fn text(output: &Output) -> String {
    let both = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
    String::from_utf8_lossy(&both).into_owned()
}

/// A port that no other test gets; the three after it are free, too, for the streams of nuttcp.
pub(crate) fn free_port() -> u16 {
    ports::reserve(4)
}

/// Keeps what comes out of a pipe.
fn collect(pipe: Box<dyn Read + Send>, printed: &Arc<Mutex<String>>) -> JoinHandle<()> {
    let printed = Arc::clone(printed);
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).split(b'\n').map_while(Result::ok) {
            let mut printed = printed.lock().expect("nobody panics with it");
            printed.push_str(&String::from_utf8_lossy(&line));
            printed.push('\n');
        }
    })
}

/// Another program's server, ended when dropped.
pub(crate) struct Peer {
    child: Option<Child>,
    pub(crate) port: u16,
    printed: Arc<Mutex<String>>,
    readers: Vec<JoinHandle<()>>,
}

impl Peer {
    /// Starts it with the port as the last argument and waits until it listens.
    pub(crate) fn start(program: &str, arguments: &[&str]) -> Self {
        Self::start_in(["tcp", "tcp6"], " 0A ", program, arguments)
    }

    /// The same of a server that listens on UDP.
    pub(crate) fn start_udp(program: &str, arguments: &[&str]) -> Self {
        Self::start_in(["udp", "udp6"], " 07 ", program, arguments)
    }

    fn start_in(tables: [&str; 2], state: &str, program: &str, arguments: &[&str]) -> Self {
        let port = free_port();
        let mut child = Command::new(program)
            .args(arguments)
            .arg(port.to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let printed = Arc::default();
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let readers = [
            stdout.map(|pipe| collect(Box::new(pipe), &printed)),
            stderr.map(|pipe| collect(Box::new(pipe), &printed)),
        ];
        let readers = readers.into_iter().flatten().collect();
        let mut peer = Self { child: Some(child), port, printed, readers };
        // A look at the listening sockets, because a connection would count as a test.
        let shown = format!(":{port:04X} ");
        for _ in 0..24_000 {
            let read = |name| std::fs::read_to_string(format!("/proc/net/{name}"));
            let listening = |table: &str| {
                table.lines().any(|line| line.contains(&shown) && line.contains(state))
            };
            if tables.map(read).into_iter().flatten().any(|table| listening(&table)) {
                return peer;
            }
            if let Some(Ok(Some(end))) = peer.child.as_mut().map(Child::try_wait) {
                panic!("{program} on port {port} ended with {end}: {}", peer.end());
            }
            sleep(Duration::from_millis(10));
        }
        panic!("{program} does not listen on {port}: {}", peer.end());
    }

    /// Waits until what it printed is enough; goes on after two minutes without.
    pub(crate) fn wait_for(&self, enough: impl Fn(&str) -> bool) {
        let deadline = monotonic() + Duration::from_secs(120);
        while !enough(&self.printed.lock().expect("no reader panics")) && monotonic() < deadline {
            sleep(Duration::from_millis(10));
        }
    }

    /// Ends it and gives what it printed.
    pub(crate) fn end(mut self) -> String {
        let mut child = self.child.take().expect("ended once");
        let sent = Command::new("sh").args(["-c", &format!("kill -TERM {}", child.id())]).status();
        assert!(sent.is_ok());
        // iperf's server wants to be asked twice while a thread of it waits.
        for _ in 0..100 {
            if child.try_wait().expect("ours").is_some() {
                break;
            }
            sleep(Duration::from_millis(10));
        }
        let _ = child.kill();
        let _ = child.wait();
        self.readers.drain(..).for_each(|reader| reader.join().expect("no reader panics"));
        std::mem::take(&mut *self.printed.lock().expect("no reader panics"))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

pub(crate) fn plan(via: Via, port: u16) -> TcpPlan {
    TcpPlan {
        server: ServerPlan::new(Some(via), HERE.to_string(), port),
        test: TcpTest {
            finish: Finish::TimeNs(400_000_000),
            interval_ns: 100_000_000,
            ..TcpTest::default()
        },
        ..TcpPlan::default()
    }
}

pub(crate) fn measure(plan: &TcpPlan) -> (Record, Vec<Event>) {
    let mut events = Vec::new();
    let mut watch = |event: &Event| events.push(event.clone());
    let tool = Tool { name: "linerate".to_owned(), version: "test".to_owned() };
    let mut context = Context { tool, stop: Stop::new(), watch: &mut watch };
    let record = throughput::run_tcp(plan, &mut context);
    (record, events)
}

/// The record of a test that ends well.
pub(crate) fn good(plan: &TcpPlan) -> Record {
    let mut record = measure(plan).0;
    // nuttcp's data streams all go to port 5101: another test may be there now.
    for _ in 0..100 {
        let said = record.failure.as_ref().map(|failure| failure.to_string().to_lowercase());
        if !said.is_some_and(|said| said.contains("address already in use")) {
            break;
        }
        sleep(Duration::from_millis(200));
        record = measure(plan).0;
    }
    assert_eq!(record.failure, None, "{plan:?}");
    record
}

/// Bytes of a direction in the summary.
pub(crate) fn bytes(record: &Record, direction: Direction) -> u64 {
    let value = record.summary_value(MetricId::Bytes, Stat::Value, Some(direction));
    value.unwrap_or_else(|| panic!("no bytes {direction:?} in {record:#?}")) as u64
}

/// A line of the server's log as people and as programs read it.
pub(crate) fn logged(line: &str) -> (&str, serde_json::Value) {
    let (said, ways) = line.rsplit_once(" | ").expect("the figures follow the line");
    (said, serde_json::from_str(ways).expect("they are JSON"))
}

/// The bytes that a line of the server's log tells, of both ways.
pub(crate) fn logged_bytes(line: &str) -> u64 {
    let (_, ways) = logged(line);
    let bytes = ways.as_array().into_iter().flatten().filter_map(|way| way["bytes"].as_u64());
    bytes.reduce(|one, other| one + other).unwrap_or_else(|| panic!("no bytes: {line}"))
}
