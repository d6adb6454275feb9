//! HTTP on the server's own port: the page, its API, and tests from browsers.
//!
//! The first bytes of a connection say whether it speaks HTTP (`sniff`). Load goes to the
//! engine's threads; everything else to a runtime on one thread of its own, which measures nothing.
//! Each connection there has a place, a time and a size that it cannot exceed. `spec/http.md` has
//! paths, answers and limits.

#[cfg(feature = "acme")]
mod acme;
#[cfg(not(feature = "acme"))]
#[path = "no_acme.rs"]
mod acme;
mod address;
mod api;
mod connection;
mod content_policy;
mod datagrams;
mod delays;
mod dispatch;
mod echo;
mod error;
mod events;
mod export;
mod families;
mod from_here;
mod host;
mod json;
#[cfg(all(test, feature = "acme", feature = "datagrams", feature = "tls"))]
mod left_out_tests;
mod measure;
mod mesh;
mod mesh_metrics;
mod metrics;
#[cfg(all(test, feature = "acme"))]
#[path = "no_acme.rs"]
#[allow(dead_code, unreachable_pub, reason = "its refusals alone are tested")]
pub(crate) mod no_acme;
#[cfg(all(test, feature = "tls"))]
#[path = "no_tls.rs"]
#[allow(dead_code, unreachable_pub, reason = "its refusals alone are tested")]
pub(crate) mod no_tls;
mod open_metrics;
#[cfg(feature = "schema")]
mod openapi;
mod outer;
mod page;
mod pages;
mod places;
mod probe;
mod published;
mod quality;
mod request;
mod results;
mod retention;
#[cfg_attr(not(feature = "datagrams"), allow(dead_code, reason = "no rounds without WebTransport"))]
mod run;
mod run_table;
mod runs;
#[cfg(feature = "tls")]
mod secure;
mod series;
mod server_info;
mod sniff;
mod state;
mod stored;
mod studies;
#[cfg(feature = "tls")]
mod tls;
#[cfg(not(feature = "tls"))]
#[path = "no_tls.rs"]
mod tls;
mod words;

use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use linerate_core::policy::Program;
use linerate_core::record::{Failure, Fault, Tool};
use linerate_engine::http_load::{self, VisitCaps, VisitEnd, VisitServing};
use linerate_engine::served::LogText;
use linerate_mesh::Hub;
use linerate_store::Store;
use linerate_sys::stop::Stop;
use tokio::sync::mpsc;

use crate::admission::{Gate, ServerLimits};
use crate::policy_guard::{ClientAllowance, PolicyClient};
use crate::table::{ConnectionSlot, Knowing};
pub use acme::{Acme, LETS_ENCRYPT};
use address::without_address;
use datagrams::port::QuicPort;
pub use export::ExportReceiver;
#[cfg(feature = "schema")]
pub use openapi::document as openapi;
pub use outer::Outer;
#[cfg(feature = "tls")]
use rustls::ServerConfig;
pub(crate) use sniff::{Spoken, detect_protocol};
use state::State;
#[cfg(not(feature = "tls"))]
use tls::ServerConfig;
pub use tls::Tls;

/// Connections that wait for the runtime to take them.
const WAITING_MAX: usize = 256;
/// Time between two looks whether the server is to end.
const LOOK: Duration = Duration::from_millis(100);

/// How a server answers HTTP.
#[derive(Clone, Debug)]
pub struct WebOptions {
    /// Show the page; the API is there without it, too.
    pub page: bool,
    /// Where results of browsers are kept, and read; none keeps nothing.
    pub store: Option<PathBuf>,
    /// This program, for records.
    pub tool: Tool,
    /// Pages of other sites that may ask for speed tests, by their origins (`https://example.org`),
    /// or `any`.
    pub origins: Vec<String>,
}

/// Facts about the server that the page shows: its other ports and addresses.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServerFacts {
    /// Other programs that are answered, and where.
    pub(crate) others: Vec<(&'static str, u16)>,
    pub(crate) udp_echo: bool,
    pub(crate) stamp_port: Option<u16>,
    /// It listens on all addresses of both families.
    pub(crate) every_address: bool,
}

/// A connection for the runtime; with a configuration where TLS is spoken.
#[derive(Debug)]
struct Caller {
    stream: TcpStream,
    peer: SocketAddr,
    /// Configuration of the TLS handshake; none where plain HTTP is spoken.
    tls: Option<Arc<ServerConfig>>,
}

/// The web part of a server: hands connections to a runtime, which answers HTTP.
#[derive(Debug)]
pub(crate) struct Web {
    state: Arc<State>,
    sender: mpsc::Sender<Caller>,
    receiver: Mutex<Option<mpsc::Receiver<Caller>>>,
    tls: Option<Arc<Tls>>,
}

/// Puts the records of a visit into the store; what there is to say.
fn store_visit(state: &State, end: VisitEnd, peer: SocketAddr) -> LogText {
    let VisitEnd { text, mut records } = end;
    records.iter_mut().for_each(|record| without_address(record, peer.ip()));
    let Some(path) = &state.options.store else { return text };
    let kept = Store::open(path)
        .and_then(|mut store| records.iter().try_for_each(|record| store.put_record(record)));
    if let Err(failure) = kept {
        tracing::warn!(%peer, "not kept: {failure}");
    }
    text
}

impl Web {
    pub(crate) fn new(options: WebOptions, gate: Arc<Gate>, limits: ServerLimits) -> Self {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        let state = Arc::new(State::new(options, gate, limits));
        let receiver = Mutex::new(Some(receiver));
        Self { state, sender, receiver, tls: None }
    }

    /// Answers over TLS, too, from now on.
    pub(crate) fn secure(&mut self, tls: Arc<Tls>) {
        self.tls = Some(tls);
    }

    /// Is the hub of a mesh, too.
    pub(crate) fn set_hub(&self, hub: Arc<Hub>) {
        // There is one for the server's life.
        let _ = self.state.mesh.set(hub);
    }

    /// Names a server outside, to which the page measures too.
    pub(crate) fn set_outer_server(&self, outer: Outer) {
        // There is one for the server's life.
        let _ = self.state.outer.set(outer);
    }

    /// Answers as these hosts, too.
    pub(crate) fn allow_hosts(&self, hosts: Vec<String>) {
        // They are those of the server's start.
        let _ = self.state.hosts.set(hosts);
    }

    /// Hands figures on until the server ends.
    pub(crate) fn export(&self, receiver: ExportReceiver) {
        export::start_export(&self.state, receiver);
    }

    /// Answers WebTransport at this UDP address, too; the port that it got.
    pub(crate) fn datagrams(&self, address: SocketAddr) -> Result<u16, Failure> {
        let port = QuicPort::bind(address)?;
        let number = port.number();
        // There is one for the server's life.
        let _ = self.state.datagrams.set(port);
        Ok(number)
    }

    /// Serves sessions of datagrams until `stop`, where there are any.
    pub(crate) fn run_datagrams(&self, stop: &Stop) {
        if let Some(port) = self.state.datagrams.get() {
            datagrams::run(port, &self.state, stop);
        }
    }

    /// Tells what the server has opened.
    pub(crate) fn set_server_facts(&self, about: ServerFacts) {
        self.state.set_server_facts(about);
    }

    /// Reads the head of a connection of load and hands it to its run.
    pub(crate) fn accept_load(&self, stream: TcpStream, peer: SocketAddr) -> Result<(), Failure> {
        http_load::arrive(stream, peer, &self.state.registry, self.state.limits.hello)
    }

    /// Serves a client of another speed test; what else it asks for goes where it belongs.
    pub(crate) fn serve_visit(
        &self,
        stream: TcpStream,
        peer: SocketAddr,
        place: &ConnectionSlot<'_>,
        stop: &Stop,
    ) -> Result<Option<LogText>, Failure> {
        let State { gate, options, .. } = &*self.state;
        let own = gate.by_address_of(Program::Http, peer.ip());
        let ClientAllowance { rate_bps, bytes, streams, .. } =
            gate.policy_guard().allowance(&PolicyClient::without_token(Program::Http, peer.ip()));
        let serving = VisitServing {
            admission: &Knowing { admission: &own, place },
            caps: VisitCaps { rate_bps, bytes, streams },
            origins: &options.origins,
            visits: &self.state.visits,
            tool: &options.tool,
            stop,
        };
        let visited = http_load::serve_visitor(stream, peer, serving)?;
        if let Some(stream) = visited.other {
            match detect_protocol(&stream, self.state.limits.hello) {
                Spoken::Load => self.accept_load(stream, peer)?,
                _ => self.take_plain(stream, peer)?,
            }
        }
        Ok(visited.end.map(|end| store_visit(&self.state, end, peer)))
    }

    /// Hands a connection to the runtime.
    pub(crate) fn take_plain(&self, stream: TcpStream, peer: SocketAddr) -> Result<(), Failure> {
        self.hand_over(Caller { stream, peer, tls: None })
    }

    /// Hands a connection to the runtime that speaks TLS.
    pub(crate) fn take_secure(&self, stream: TcpStream, peer: SocketAddr) -> Result<(), Failure> {
        let Some(tls) = &self.tls else {
            let reason = "it asks for TLS, and there is no certificate: --tls-cert";
            return Err(Failure::new(Fault::PeerIncompatible, "answer", peer.to_string(), reason));
        };
        self.hand_over(Caller { stream, peer, tls: Some(tls.config()) })
    }

    fn hand_over(&self, caller: Caller) -> Result<(), Failure> {
        let unsent = self.sender.try_send(caller).err();
        unsent.map_or(Ok(()), |unsent| {
            let Caller { stream, peer, tls } = unsent.into_inner();
            if tls.is_none() {
                http_load::refuse(&stream, 503, "busy", "too many connections wait; try again");
            }
            let reason = "too many connections wait for the runtime";
            Err(Failure::new(Fault::System, "answer", peer.ip().to_string(), reason))
        })
    }

    /// Keeps the store to the policy until `stop`.
    pub(crate) fn retain(&self, stop: &Stop) {
        retention::run(&self.state, stop);
    }

    /// Answers what is handed over until `stop`, then waits for running tests.
    pub(crate) fn run(&self, stop: &Stop) {
        let taken = self.receiver.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut receiver) = taken else { return };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = match runtime {
            Ok(runtime) => runtime,
            Err(error) => return tracing::warn!("no HTTP: {error}"),
        };
        let service = connection::HttpService::new(Arc::clone(&self.state));
        runtime.block_on(async {
            let mut look = tokio::time::interval(LOOK);
            loop {
                tokio::select! {
                    Some(caller) = receiver.recv() => dispatch::serve_connection(&service, caller),
                    _ = look.tick() => {}
                }
                if stop.is_requested() {
                    self.state.ends.request_stop();
                    self.state.runs.end_all();
                }
                if stop.is_requested()
                    && self.state.runs.all_over()
                    && self.state.studies.all_over()
                {
                    break;
                }
            }
        });
        runtime.shutdown_timeout(LOOK);
    }
}
