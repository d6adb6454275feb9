//! Clients of iperf3: a connection begins with a cookie, which makes it a stream of a test that
//! waits for it or else the control connection of a new one.
//!
//! iperf3's own server turns away every second connection at once; here a client that cannot be
//! let in is told so after its parameters.

use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use linerate_core::record::{Event, Failure, Plan, Record, Tool};
use linerate_engine::foreign::iperf3::{
    Guard, Iperf3Connection, Iperf3Context, Iperf3UdpPort, LogLine, Observer, Registry,
    read_cookie, serve_test,
};
use linerate_engine::served::LogText;
use linerate_proto::iperf3::{STREAMS_MAX, ServerOutput};
use linerate_report::iperf3::{Iperf3Lines, Iperf3Role, Iperf3Unit, Sheet};
use linerate_sys::clock::monotonic;
use linerate_sys::poll::readable;
use linerate_sys::stop::Stop;

use crate::admission::{Gate, ServerLimits};
use crate::port::{
    ACCEPT_WAIT, ClientTestEnd, Log, LogEntry, accept, address_of, cannot_listen, listen,
};
use crate::table::{ConnectionTable, Knowing};

/// Time between the samples of a test.
const INTERVAL: Duration = Duration::from_secs(1);

/// Most of what is kept of the lines for a client that wants them.
const OUTPUT_BYTES_MAX: usize = 1 << 20;

/// Limits of iperf3's own server: a day after its omitted time (MAX_TIME, MAX_OMIT_TIME) and 128
/// streams each way (MAX_STREAMS).
pub fn limits() -> ServerLimits {
    let duration = Duration::from_secs(86_400 + 600);
    ServerLimits { duration, streams: 2 * STREAMS_MAX, ..ServerLimits::default() }
}

/// State that connections of iperf3's clients share.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    registry: Registry,
    serial: AtomicU64,
    udp_port: Option<Iperf3UdpPort>,
    guard: Option<Guard>,
}

impl Clients {
    /// Clients of the iperf3 port of `listener`. UDP streams come to the same port, where that is
    /// free.
    pub(crate) fn from_listener(listener: &TcpListener) -> Self {
        let udp_port = listener.local_addr().ok().and_then(|local| Iperf3UdpPort::open(local).ok());
        Self { udp_port, ..Self::default() }
    }

    /// Asks clients for a user name and password (`--rsa-private-key-path` of iperf3).
    pub(crate) fn set_guard(&mut self, guard: Guard) {
        self.guard = Some(guard);
    }

    /// The place of a connection in the order of arrival; asked before threads can mix it up.
    pub(crate) fn next_serial(&self) -> u64 {
        self.serial.fetch_add(1, Ordering::Relaxed)
    }

    /// Serves a connection; the line is for the log, none for a data stream.
    pub(crate) fn answer(
        &self,
        connection: Iperf3Connection,
        admission: &Knowing<'_>,
        stop: &Stop,
    ) -> Result<Option<LogText>, Failure> {
        let mut output = Iperf3Output::default();
        let served = self.answer_to(connection, admission, stop, INTERVAL, &mut output)?;
        Ok(served.map(|said| match said {
            LogLine::Tested(told) => told,
            LogLine::Refused(line) => line.into(),
        }))
    }

    fn answer_to(
        &self,
        connection: Iperf3Connection,
        admission: &Knowing<'_>,
        stop: &Stop,
        interval: Duration,
        observer: &mut dyn Observer,
    ) -> Result<Option<LogLine>, Failure> {
        let cookie = read_cookie(&connection.stream, connection.peer)?;
        admission.place.mark_identified();
        let Err(connection) = self.registry.deliver(&cookie, connection) else { return Ok(None) };
        let tool =
            Tool { name: "linerate".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() };
        let (registry, udp_port) = (&self.registry, self.udp_port.as_ref());
        let guard = self.guard.as_ref();
        let shared = Iperf3Context { registry, udp_port, admission, guard, stop, tool, interval };
        serve_test(connection, cookie, &shared, observer).map(Some)
    }
}

/// The sheet of a test at the server.
pub fn sheet_of(plan: &Plan) -> Option<Sheet> {
    match plan {
        Plan::Tcp(plan) => Some(Sheet::new(Iperf3Role::Server, plan.clone())),
        Plan::Udp(plan) => Some(Sheet::of_udp(Iperf3Role::Server, plan)),
        _ => None,
    }
}

/// Keeps the lines of a test, for a client that wants to have them.
#[derive(Debug, Default)]
pub struct Iperf3Output {
    lines: Option<Iperf3Lines>,
    said: String,
}

impl Iperf3Output {
    fn keep_lines(&mut self, lines: &str) {
        if self.said.len() + lines.len() <= OUTPUT_BYTES_MAX {
            self.said.push_str(lines);
        }
    }
}

impl Observer for Iperf3Output {
    fn event_seen(&mut self, event: &Event) {
        let said = match (event, &mut self.lines) {
            (Event::Plan(plan), _) => {
                let Some(sheet) = sheet_of(plan) else { return };
                self.lines.insert(Iperf3Lines::new(sheet, Iperf3Unit::default(), false)).accepted()
            }
            (Event::Stream(stream), Some(lines)) => lines.stream(stream),
            (Event::Interval(row), Some(lines)) => lines.interval_lines(row),
            _ => return,
        };
        self.keep_lines(&said);
    }

    fn output(&mut self, record: &Record) -> Option<ServerOutput> {
        let summary = self.lines.as_ref()?.summary(record);
        self.keep_lines(&summary);
        Some(ServerOutput::Text(std::mem::take(&mut self.said)))
    }
}

/// A server that answers iperf3's clients alone, as `iperf3 -s` does.
#[derive(Debug)]
pub struct Iperf3Server {
    listener: TcpListener,
    clients: Clients,
    gate: Gate,
    table: ConnectionTable,
    idle_end: Option<Duration>,
}

/// Makes an observer for each connection.
pub type Observers<'a> = &'a (dyn Fn() -> Box<dyn Observer> + Sync);

impl Iperf3Server {
    /// Binds the listener; nothing is answered until [`Iperf3Server::run`].
    /// # Errors
    /// When the address is taken or not this host's.
    pub fn bind(local: SocketAddr, limits: ServerLimits) -> Result<Self, Failure> {
        let listener = listen(local).map_err(|error| cannot_listen(&error))?;
        let table = ConnectionTable::new(limits.connections);
        Ok(Self {
            clients: Clients::from_listener(&listener),
            listener,
            gate: Gate::new(table.fitted(limits)),
            table,
            idle_end: None,
        })
    }

    /// Asks clients who they are.
    #[must_use]
    pub fn guarded(mut self, guard: Option<Guard>) -> Self {
        self.clients.guard = guard;
        self
    }

    /// Ends by itself when nobody has come for so long.
    #[must_use]
    pub const fn ending_idle(mut self, after: Option<Duration>) -> Self {
        self.idle_end = after;
        self
    }

    /// The address that was bound; its port when 0 was asked.
    /// # Errors
    /// When the kernel does not tell.
    pub fn local_addr(&self) -> Result<SocketAddr, Failure> {
        address_of(&self.listener)
    }

    /// Answers clients until `stop` is asked, then lets running tests end.
    pub fn run(&self, stop: &Stop, interval: Duration, observers: Observers<'_>, log: Log<'_>) {
        std::thread::scope(|scope| {
            let mut busy = monotonic();
            while !stop.is_requested() {
                if !self.table.is_empty() {
                    busy = monotonic();
                }
                if self.idle_end.is_some_and(|after| monotonic().duration_since(busy) >= after) {
                    return;
                }
                if !readable(&self.listener, ACCEPT_WAIT).unwrap_or(false) {
                    continue;
                }
                let Some((stream, peer)) = accept(&self.listener) else { continue };
                // Those that find no place are closed, and no log tells of it.
                let Some(place) = self.table.take_slot(&stream) else { continue };
                let serial = self.clients.next_serial();
                let connection = Iperf3Connection { stream, peer, serial };
                let handle = move || {
                    let mut observer = observers();
                    let knowing = Knowing { admission: &self.gate, place: &place };
                    let observer = &mut *observer;
                    let result =
                        self.clients.answer_to(connection, &knowing, stop, interval, observer);
                    drop(place);
                    let (told, ending) = match &result {
                        Ok(Some(LogLine::Tested(told))) => (told.clone(), ClientTestEnd::Tested),
                        Ok(Some(LogLine::Refused(line))) => {
                            (line.clone().into(), ClientTestEnd::Refused)
                        }
                        Ok(None) => return,
                        Err(failure) => {
                            (failure.to_string().into(), ClientTestEnd::Failed(failure))
                        }
                    };
                    let LogText { line, ways } = &told;
                    log(&LogEntry { peer, line, ways, ending });
                };
                let name = "linerate-client".to_owned();
                // Without a thread for it the connection is closed.
                let _ = std::thread::Builder::new().name(name).spawn_scoped(scope, handle);
            }
        });
    }
}
