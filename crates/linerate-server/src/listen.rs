//! The listener: accepts connections, reads their hellos, and runs each test on a thread of its
//! own. A connection that sends garbage, drips, or says nothing costs one thread for a few seconds
//! and never holds up another.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread::Scope;
use std::time::Duration;

use linerate_core::policy::{Policy, Program};
use linerate_core::record::{Failure, Fault, Via};
use linerate_engine::failure::words_of;
use linerate_engine::flow::tcp::{
    DataRegistry, read_data_hello_rest, read_hello, send_hello, serve_test,
};
use linerate_engine::foreign::iperf2::AddressValidation;
use linerate_engine::foreign::iperf3::Guard;
use linerate_engine::rtt::reflect::StampReflector;
use linerate_engine::rtt::respond::UdpResponder;
use linerate_engine::served::LogText;
use linerate_engine::trace;
#[cfg(feature = "web")]
use linerate_mesh::Hub;
use linerate_proto::native::{Hello, HelloKind, VERSIONS};
use linerate_proto::stamp::{ReflectorOptions, Refusals};
use linerate_sys::poll::any_readable;
use linerate_sys::stop::Stop;
use linerate_sys::tcp;

use crate::admission::{Gate, ServerLimits};
use crate::foreign::{self, Foreign, ForeignConnection, ForeignState, ProtocolPort};
use crate::port::{ACCEPT_WAIT, accept, address_of, cannot_listen, listen};
pub use crate::port::{ClientTestEnd, Log, LogEntry};
use crate::table::{ConnectionSlot, ConnectionTable, Knowing};
#[cfg(feature = "web")]
use crate::web::{
    ExportReceiver, Outer, ServerFacts, Spoken, Tls, Web, WebOptions, detect_protocol,
};

/// A client whose host acknowledges nothing for this long is gone. The control connection carries
/// something once a second, and the kernel looks once a second: its place is free within 5 s.
const VANISHED: Duration = Duration::from_millis(2800);

/// Clients of one port that are accepted before another port has its turn.
const IN_A_ROW: usize = 64;

/// Address, limits and protocols of a server.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// Address and port to listen at.
    pub local: SocketAddr,
    /// Limits on tests and connections.
    pub limits: ServerLimits,
    /// Other programs to answer.
    pub foreign: Foreign,
}

/// A server whose listeners are bound; clients are answered once it runs.
#[derive(Debug)]
pub struct MeasurementServer {
    listener: TcpListener,
    /// The ports of other programs.
    foreign: Vec<ProtocolPort>,
    /// State that connections of other programs share.
    shared: ForeignState,
    gate: Arc<Gate>,
    registry: DataRegistry,
    limits: ServerLimits,
    table: ConnectionTable,
    /// Answers UDP probes at the same address and port; absent where that is taken.
    echo: Option<UdpResponder>,
    /// Answers senders of STAMP, where asked for and possible.
    stamp: Option<StampReflector>,
    /// Answers HTTP on the same port, where asked for.
    #[cfg(feature = "web")]
    web: Option<Web>,
    /// Other programs' speed tests over HTTP are answered there, too.
    #[cfg(feature = "web")]
    has_visitors: bool,
}

impl MeasurementServer {
    /// Binds the listener; nothing is answered until [`MeasurementServer::run`].
    /// # Errors
    /// When the address is taken or not this host's.
    pub fn bind(options: &ServeOptions) -> Result<Self, Failure> {
        let listener = listen(options.local).map_err(|error| {
            let failure = cannot_listen(&error);
            match error.source.kind() {
                ErrorKind::AddrInUse => {
                    failure.advise("another server is running; choose a port with -p")
                }
                ErrorKind::PermissionDenied => {
                    failure.advise("ports below 1024 need root; choose another with -p")
                }
                _ => failure,
            }
        })?;
        Self::from_listener(listener, options)
    }

    /// Answers on a listener that is there, such as one of the service manager's; the address of
    /// `options` is then its own.
    /// # Errors
    /// When it is not a socket of the Internet, or a port of another program is taken.
    pub fn from_listener(listener: TcpListener, options: &ServeOptions) -> Result<Self, Failure> {
        let local = address_of(&listener)?;
        listener.set_nonblocking(true).map_err(|error| {
            Failure::new(Fault::System, "set up", local.to_string(), words_of(&error))
        })?;
        let foreign = foreign::open_ports(&options.foreign, local.ip())?;
        let table = ConnectionTable::new(options.limits.connections);
        let limits = table.fitted(options.limits);
        Ok(Self {
            listener,
            shared: ForeignState::beside(&foreign),
            foreign,
            echo: UdpResponder::bind(local).ok(),
            stamp: None,
            #[cfg(feature = "web")]
            web: None,
            #[cfg(feature = "web")]
            has_visitors: options.foreign != Foreign::without_ports(),
            gate: Arc::new(Gate::new(limits)),
            limits,
            registry: DataRegistry::default(),
            table,
        })
    }

    /// Reflects STAMP on a UDP port of the same address.
    /// # Errors
    /// When the port is taken, or needs a privilege.
    pub fn reflect_stamp(&mut self, port: u16, options: ReflectorOptions) -> Result<(), Failure> {
        let address = SocketAddr::new(self.local_addr()?.ip(), port);
        self.stamp = Some(StampReflector::bind(address, options)?);
        Ok(())
    }

    /// Lets hosts behind NAT meet on the UDP port of the same number.
    /// # Errors
    /// When another program has that port.
    pub fn let_meet(&mut self) -> Result<(), Failure> {
        let port = self.local_addr()?.port();
        let Some(echo) = &mut self.echo else {
            let reason = "another program has the UDP port";
            return Err(Failure::new(Fault::System, "let meet on", format!("UDP {port}"), reason)
                .advise("choose a port with -p"));
        };
        echo.let_meet();
        Ok(())
    }

    /// Answers HTTP on the server's own port: the page, its API, and tests from browsers.
    #[cfg(feature = "web")]
    pub fn serve_web(&mut self, options: WebOptions) {
        self.web = Some(Web::new(options, Arc::clone(&self.gate), self.limits));
    }

    /// Answers HTTP over TLS, too, on the same port; only what [`MeasurementServer::serve_web`]
    /// answers.
    #[cfg(feature = "web")]
    pub fn serve_tls(&mut self, tls: Arc<Tls>) {
        self.web.iter_mut().for_each(|web| web.secure(Arc::clone(&tls)));
    }

    /// Is the hub of a mesh, too, where [`MeasurementServer::serve_web`] answers.
    #[cfg(feature = "web")]
    pub fn serve_mesh(&mut self, hub: Arc<Hub>) {
        self.web.iter().for_each(|web| web.set_hub(Arc::clone(&hub)));
    }

    /// Names a server outside, to which the page of [`MeasurementServer::serve_web`] measures too.
    #[cfg(feature = "web")]
    pub fn name_outer(&mut self, outer: Outer) {
        self.web.iter().for_each(|web| web.set_outer_server(outer.clone()));
    }

    /// Answers HTTP as these hosts, too, beside addresses and names of its own network; `any`
    /// answers as every host.
    #[cfg(feature = "web")]
    pub fn allow_hosts(&mut self, hosts: &[String]) {
        self.web.iter().for_each(|web| web.allow_hosts(hosts.to_vec()));
    }

    /// Hands the figures of `/metrics` on, where [`MeasurementServer::serve_web`] answers.
    #[cfg(feature = "web")]
    pub fn export_figures(&self, receiver: ExportReceiver) {
        if let Some(web) = &self.web {
            web.export(receiver);
        }
    }

    /// Lets browsers measure loss and jitter by datagrams over QUIC (WebTransport) on this UDP
    /// port, where [`MeasurementServer::serve_web`] answers; the port that it got, where 0 was
    /// asked for.
    /// # Errors
    /// When the port is taken.
    #[cfg(feature = "web")]
    pub fn serve_datagrams(&mut self, port: u16) -> Result<Option<u16>, Failure> {
        let address = SocketAddr::new(self.local_addr()?.ip(), port);
        self.web.as_ref().map(|web| web.datagrams(address)).transpose()
    }

    /// From now on this decides whom every protocol lets in; it may change while the server runs.
    pub fn set_policy(&self, policy: Policy) {
        self.gate.set_policy(policy);
    }

    /// The port on which STAMP is reflected.
    pub fn stamp_port(&self) -> Option<u16> {
        Some(self.stamp.as_ref()?.local_address()?.port())
    }

    /// Asks clients of iperf3 who they are.
    pub fn guard_iperf3(&mut self, guard: Guard) {
        self.shared.iperf3.set_guard(guard);
    }

    /// Sends data over UDP, for clients of iperf 2 that ask for it, to whom this says.
    pub fn trust_udp(&mut self, trust: AddressValidation) {
        self.shared.udp_trust = trust;
    }

    /// The limits, lowered to what the process's file descriptors allow.
    pub const fn limits(&self) -> ServerLimits {
        self.limits
    }

    /// The address that was bound; its port when 0 was asked.
    /// # Errors
    /// When the kernel does not tell.
    pub fn local_addr(&self) -> Result<SocketAddr, Failure> {
        address_of(&self.listener)
    }

    /// The other programs that are answered, each with its port.
    pub fn foreign(&self) -> impl Iterator<Item = (Via, u16)> + '_ {
        self.foreign.iter().map(|at| (at.via, at.port))
    }

    /// True where UDP probes are answered; they are not when another program has the port.
    pub const fn echoes(&self) -> bool {
        self.echo.is_some()
    }

    /// Answers clients until `stop` is asked, then lets running tests end.
    pub fn run(&self, stop: &Stop, log: Log<'_>) {
        std::thread::scope(|scope| {
            if let Some(echo) = &self.echo {
                scope.spawn(|| {
                    echo.run_for(stop, &|client| self.gate.policy_guard().has_rule_for(client))
                });
            }
            if let Some(stamp) = &self.stamp {
                let admits = |client: IpAddr| self.gate.policy_guard().has_rule_for(client);
                scope.spawn(move || note_refusals(stamp.run_for(stop, &admits)));
            }
            #[cfg(feature = "web")]
            if let Some(web) = &self.web {
                web.set_server_facts(ServerFacts {
                    others: self.foreign().map(|(via, port)| (via.name(), port)).collect(),
                    udp_echo: self.echoes(),
                    stamp_port: self.stamp_port(),
                    every_address: self
                        .local_addr()
                        .is_ok_and(|address| address.is_ipv6() && address.ip().is_unspecified()),
                });
                scope.spawn(|| web.run(stop));
                scope.spawn(|| web.retain(stop));
                scope.spawn(|| web.run_datagrams(stop));
            }
            for at in &self.foreign {
                scope.spawn(|| at.serve_datagrams(&self.shared, &self.gate, stop, log));
            }
            while !stop.is_requested() {
                self.wait_for_clients();
                let ports = [None].into_iter().chain(self.foreign.iter().map(Some));
                for at in ports {
                    let listener = at.map_or(&self.listener, |at| &at.listener);
                    let come = std::iter::from_fn(|| accept(listener));
                    let come = come.take(IN_A_ROW);
                    come.for_each(|(stream, peer)| {
                        self.spawn_connection(scope, at, stream, peer, stop, log);
                    });
                }
            }
        });
    }

    /// Waits until somebody connects, but no longer than [`ACCEPT_WAIT`].
    fn wait_for_clients(&self) {
        let others = self.foreign.iter().map(|at| at.listener.as_fd());
        let listeners: Vec<_> = [self.listener.as_fd()].into_iter().chain(others).collect();
        if let Err(error) = any_readable(&listeners, ACCEPT_WAIT) {
            tracing::warn!("wait: {error}");
            linerate_sys::clock::sleep(ACCEPT_WAIT);
        }
    }

    /// Gives a connection a thread of its own, within the limit of connections.
    fn spawn_connection<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        at: Option<&ProtocolPort>,
        stream: TcpStream,
        peer: SocketAddr,
        stop: &'scope Stop,
        log: Log<'scope>,
    ) {
        let Some(place) = self.table.take_slot(&stream) else {
            tracing::warn!(%peer, "closed, {} connections are open", self.table.connection_limit());
            return;
        };
        let at = at.map(|at| (at.via, at.port));
        match at {
            None => tracing::debug!(%peer, "connected"),
            Some((via, port)) => tracing::debug!(%peer, "connected to port {port}, of {via}"),
        }
        let serial = self.shared.iperf3.next_serial();
        let handle = move || {
            let line = match at {
                None => self.answer(stream, peer, &place, stop),
                Some((via, port)) => {
                    let arrival = ForeignConnection { via, port, stream, peer, serial };
                    foreign::answer(arrival, &self.shared, &self.gate, &place, stop)
                }
            };
            drop(place);
            match line {
                Ok(Some(LogText { line, ways })) => {
                    log(&LogEntry {
                        peer,
                        line: &line,
                        ways: &ways,
                        ending: ClientTestEnd::Tested,
                    });
                }
                Ok(None) => tracing::debug!(%peer, "is a stream of a test, or sent not a byte"),
                Err(failure) => {
                    let said = at.map_or_else(String::new, |(via, _)| format!("{via}: "));
                    let line = format!("{said}{failure}");
                    let ending = ClientTestEnd::Failed(&failure);
                    log(&LogEntry { peer, line: &line, ways: &[], ending });
                }
            }
        };
        let spawned = std::thread::Builder::new()
            .name("linerate-client".to_owned())
            .spawn_scoped(scope, handle);
        if let Err(error) = spawned {
            tracing::warn!(%peer, "closed, no thread for it: {error}");
        }
    }

    /// Reads the hello and does what it asks; the line is for the log.
    fn answer(
        &self,
        stream: TcpStream,
        peer: SocketAddr,
        place: &ConnectionSlot<'_>,
        stop: &Stop,
    ) -> Result<Option<LogText>, Failure> {
        // Not a byte: a handshake that was timed, or a look whether the port is open.
        let _ = stream.set_read_timeout(Some(self.limits.hello));
        if matches!(stream.peek(&mut [0]), Ok(0)) {
            return Ok(None);
        }
        #[cfg(feature = "web")]
        if let Some(web) = &self.web {
            match detect_protocol(&stream, self.limits.hello) {
                Spoken::Other => {}
                Spoken::Tls => return web.take_secure(stream, peer).map(|()| None),
                Spoken::Load => return web.accept_load(stream, peer).map(|()| None),
                Spoken::Visitor if self.has_visitors => {
                    return web.serve_visit(stream, peer, place, stop);
                }
                Spoken::Http | Spoken::Visitor => {
                    return web.take_plain(stream, peer).map(|()| None);
                }
            }
        }
        let hello = read_hello(&stream, self.limits.hello)?;
        tracing::trace!(%peer, "{hello:?}");
        let gate = self.gate.for_client(Program::Linerate, peer.ip());
        match hello.kind {
            HelloKind::Control => {
                let agreed = VERSIONS.with_client(hello.version);
                // The answer goes out first: a client that is too old can then name both versions.
                let version = *agreed.as_ref().unwrap_or(&VERSIONS.newest);
                let _ = send_hello(&stream, Hello { version, kind: HelloKind::Control });
                agreed.map_err(|error| {
                    Failure::new(Fault::PeerIncompatible, "serve", "a client", error)
                })?;
                tcp::notice_vanished_peer(&stream, VANISHED);
                let admission = Knowing { admission: &gate, place };
                serve_test(stream, &self.registry, &admission, stop).map(Some)
            }
            HelloKind::Trace => {
                let admission = Knowing { admission: &gate, place };
                trace::serve_back_trace(&stream, &admission, stop).map(Some)
            }
            HelloKind::Data => {
                let hello = read_data_hello_rest(&stream, hello, self.limits.hello)?;
                // One of a test that is over is closed.
                let _ = self.registry.deliver(&hello.token, (hello, stream));
                Ok(None)
            }
        }
    }
}

fn note_refusals(refusals: Refusals) {
    let Refusals { short, tag, rate, port } = refusals;
    if refusals != Refusals::default() {
        tracing::warn!(
            "STAMP requests without an answer: {short} too short, {tag} with a wrong tag, {rate} \
             beyond the rate of their source, {port} of reflectors or of ports below 1024"
        );
    }
}
