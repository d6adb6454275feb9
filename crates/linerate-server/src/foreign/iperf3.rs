//! Clients of iperf3: a connection begins with a cookie, which makes it a stream of a test that
//! waits for it or else the control connection of a new one.
//!
//! iperf3's own server turns away every second connection at once; here a client that cannot be
//! let in is told so after its parameters.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use linerate_core::record::{Event, Failure, Fault, Plan, Record, Tool};
use linerate_engine::failure::words_of;
use linerate_engine::foreign::iperf3::{
    Arrival, Door, House, Observer, Registry, read_cookie, serve,
};
use linerate_engine::throughput::Admission;
use linerate_proto::iperf3::{Cookie, Params, ServerOutput};
use linerate_report::iperf3::{Lines, Role, Sheet, Unit};
use linerate_sys::poll::readable;
use linerate_sys::stop::Stop;

use crate::admission::{Gate, Limits};
use crate::listen::{Log, LogEntry, accept, listen};

/// Time between the samples of a test.
const INTERVAL: Duration = Duration::from_secs(1);

/// How often an idle listener looks at its stop flag.
const ACCEPT_WAIT: Duration = Duration::from_millis(100);

/// Most of what is kept of the lines for a client that wants them.
const OUTPUT_BYTES_MAX: usize = 1 << 20;

/// What the connections of iperf3's clients share.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    registry: Registry,
    serial: AtomicU64,
    door: Option<Door>,
}

impl Clients {
    /// Those that come to a listener; their UDP streams come to the same port, where that is free.
    pub(crate) fn of(listener: &TcpListener) -> Self {
        let door = listener.local_addr().ok().and_then(|local| Door::open(local).ok());
        Self { door, ..Self::default() }
    }

    /// The place of a connection in the order of arrival; asked before threads can mix it up.
    pub(crate) fn next_serial(&self) -> u64 {
        self.serial.fetch_add(1, Ordering::Relaxed)
    }

    /// Serves a connection; the line is for the log, none for a data stream.
    pub(crate) fn answer(
        &self,
        connection: (TcpStream, SocketAddr, u64),
        admission: &dyn Admission,
        stop: &Stop,
    ) -> Result<Option<String>, Failure> {
        self.answer_to(connection, (admission, stop, INTERVAL), &mut Printed::default())
    }

    fn answer_to(
        &self,
        (stream, peer, serial): (TcpStream, SocketAddr, u64),
        (admission, stop, interval): (&dyn Admission, &Stop, Duration),
        observer: &mut dyn Observer,
    ) -> Result<Option<String>, Failure> {
        let cookie = read_cookie(&stream, peer)?;
        let arrival = Arrival { stream, peer, serial };
        let Err(arrival) = self.registry.deliver(&cookie, arrival) else { return Ok(None) };
        let tool =
            Tool { name: "linerate".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() };
        let (registry, door) = (&self.registry, self.door.as_ref());
        let house = House { registry, door, admission, stop, tool, interval };
        serve(arrival, cookie, &house, observer).map(Some)
    }
}

/// The sheet of a test at the server.
pub fn sheet_of(plan: &Plan) -> Option<Sheet> {
    match plan {
        Plan::Tcp(plan) => Some(Sheet::new(Role::Server, plan.clone())),
        Plan::Udp(plan) => Some(Sheet::of_udp(Role::Server, plan)),
        _ => None,
    }
}

/// Keeps the lines of a test, for a client that wants to have them.
#[derive(Debug, Default)]
pub struct Printed {
    lines: Option<Lines>,
    said: String,
}

impl Printed {
    fn keep(&mut self, lines: &str) {
        if self.said.len() + lines.len() <= OUTPUT_BYTES_MAX {
            self.said.push_str(lines);
        }
    }
}

impl Observer for Printed {
    fn event(&mut self, event: &Event) {
        match (event, &mut self.lines) {
            (Event::Plan(plan), _) => {
                let Some(sheet) = sheet_of(plan) else { return };
                let lines = Lines::new(sheet, Unit::default(), false);
                let accepted = lines.accepted();
                self.lines = Some(lines);
                self.keep(&accepted);
            }
            (Event::Stream(stream), Some(lines)) => {
                let lines = lines.stream(stream);
                self.keep(&lines);
            }
            (Event::Interval(row), Some(lines)) => {
                let lines = lines.row(row);
                self.keep(&lines);
            }
            _ => {}
        }
    }

    fn accepted(&mut self, _: &Params, _: SocketAddr, _: &Cookie) {}

    fn output(&mut self, record: &Record) -> Option<ServerOutput> {
        let summary = self.lines.as_ref()?.summary(record);
        self.keep(&summary);
        Some(ServerOutput::Text(std::mem::take(&mut self.said)))
    }

    fn ended(&mut self, _: &Record) {}
}

/// A server that answers iperf3's clients alone, as `iperf3 -s` does.
#[derive(Debug)]
pub struct Iperf3Server {
    listener: TcpListener,
    clients: Clients,
    gate: Gate,
    limits: Limits,
    connections: AtomicUsize,
}

/// Makes an observer for each connection.
pub type Observers<'a> = &'a (dyn Fn() -> Box<dyn Observer> + Sync);

impl Iperf3Server {
    /// Binds the listener; nothing is answered until [`Iperf3Server::run`].
    /// # Errors
    /// When the address is taken or not this host's.
    pub fn bind(local: SocketAddr, limits: Limits) -> Result<Self, Failure> {
        let listener = listen(local).map_err(|(_, failure)| failure)?;
        Ok(Self {
            clients: Clients::of(&listener),
            listener,
            gate: Gate::new(limits),
            limits,
            connections: AtomicUsize::new(0),
        })
    }

    /// The address that was bound; its port when 0 was asked.
    /// # Errors
    /// When the kernel does not tell.
    pub fn local_addr(&self) -> Result<SocketAddr, Failure> {
        self.listener.local_addr().map_err(|error| {
            Failure::new(Fault::System, "address of", "the listener", words_of(&error))
        })
    }

    /// Answers clients until `stop` is asked, then lets running tests end.
    pub fn run(&self, stop: &Stop, interval: Duration, observers: Observers<'_>, log: Log<'_>) {
        std::thread::scope(|scope| {
            while !stop.asked() {
                if !readable(&self.listener, ACCEPT_WAIT).unwrap_or(false) {
                    continue;
                }
                let Some((stream, peer)) = accept(&self.listener, log) else { continue };
                // A second copy of the limit in `listen`, without its log of refused connections.
                if self.connections.load(Ordering::Acquire) >= self.limits.connections {
                    continue;
                }
                self.connections.fetch_add(1, Ordering::AcqRel);
                let connection = (stream, peer, self.clients.next_serial());
                let handle = move || {
                    let mut observer = observers();
                    let shared: (&dyn Admission, _, _) = (&self.gate, stop, interval);
                    let result = self.clients.answer_to(connection, shared, &mut *observer);
                    self.connections.fetch_sub(1, Ordering::AcqRel);
                    let (line, tested) = match result {
                        Ok(Some(line)) => (line, true),
                        Ok(None) => return,
                        Err(failure) => (failure.to_string(), false),
                    };
                    log(&LogEntry { peer: Some(peer), line: &line, tested });
                };
                let name = "linerate-client".to_owned();
                if std::thread::Builder::new().name(name).spawn_scoped(scope, handle).is_err() {
                    self.connections.fetch_sub(1, Ordering::AcqRel);
                }
            }
        });
    }
}
