//! The ports where clients of other programs are answered: which, and how a connection goes on.
//!
//! ttcp and iperf 2 share a port and are told apart by their first bytes.

pub mod iperf3;

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use linerate_core::policy::Program;
use linerate_core::record::{Direction, Failure, Via};
use linerate_engine::flow::admission::Admission;
use linerate_engine::foreign::iperf2::{AddressValidation, UdpPort, UdpSeen, UdpServing};
use linerate_engine::foreign::iperf3::Iperf3Connection;
use linerate_engine::foreign::nuttcp::DataPorts;
use linerate_engine::foreign::{ServedEvent, Serving, iperf2, nuttcp};
use linerate_engine::served::LogText;
use linerate_sys::stop::Stop;

use crate::admission::Gate;
use crate::port::{ClientTestEnd, Log, LogEntry, cannot_listen, listen};
use crate::table::{ConnectionSlot, Knowing};

/// Other programs whose protocols this server answers.
const SPOKEN: [Via; 3] = [Via::Iperf3, Via::Iperf2, Via::Nuttcp];

/// Nobody watches a client's streams here.
const INTERVAL: Duration = Duration::from_secs(1);

/// Other programs that are answered, and their ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Foreign {
    /// All that are spoken, at their usual ports; one that is taken is left out.
    Usual,
    /// These, each at its port; one that is taken is a failure.
    These(Vec<(Via, u16)>),
}

impl Foreign {
    /// Answers no other program: no port is opened.
    pub const fn without_ports() -> Self {
        Self::These(Vec::new())
    }
}

/// A listener for one program.
#[derive(Debug)]
pub(crate) struct ProtocolPort {
    pub(crate) via: Via,
    pub(crate) port: u16,
    pub(crate) listener: TcpListener,
    /// The UDP side of iperf 2 and ttcp; absent where another program has that port.
    udp: Option<UdpPort>,
}

impl ProtocolPort {
    /// Serves what comes over UDP until `stop`.
    pub(crate) fn serve_datagrams(
        &self,
        shared: &ForeignState,
        gate: &Gate,
        stop: &Stop,
        log: Log<'_>,
    ) {
        let Some(udp) = &self.udp else { return };
        let watch = |peer: SocketAddr, seen: &UdpSeen<'_>| {
            let (line, ways, ending) = match seen {
                UdpSeen::Begin(..) | UdpSeen::Interval(_) => return,
                UdpSeen::Done(moved) => {
                    // What is sent back is a stream of the engine, which counts itself.
                    let ways = moved.direction_totals();
                    let up = ways.iter().filter(|way| way.direction == Direction::Up);
                    gate.policy_guard().charge_unproven(peer.ip(), up.map(|way| way.bytes).sum());
                    (moved.to_string(), ways, ClientTestEnd::Tested)
                }
                UdpSeen::Failed(failure) => {
                    (failure.to_string(), Vec::new(), ClientTestEnd::Failed(failure))
                }
            };
            log(&LogEntry { peer, line: &line, ways: &ways, ending });
        };
        // nuttcp's clients may name this port for their data.
        let aside = |peer: SocketAddr, datagram: &[u8]| {
            shared.data_ports.deliver_mark(self.port, peer, datagram)
        };
        let admission = &gate.by_address();
        let (interval, sends_anywhere) = (None, false);
        udp.run(&UdpServing {
            admission,
            stop,
            watch: &watch,
            aside: &aside,
            interval,
            trust: &shared.udp_trust,
            sends_anywhere,
        });
    }
}

/// Opens the ports of the other programs at an address.
pub(crate) fn open_ports(foreign: &Foreign, address: IpAddr) -> Result<Vec<ProtocolPort>, Failure> {
    let (asked, must) = match foreign {
        Foreign::Usual => (SPOKEN.map(|via| (via, via.default_port())).to_vec(), false),
        Foreign::These(these) => (these.clone(), true),
    };
    let mut ports = Vec::new();
    for (via, port) in asked {
        match listen(SocketAddr::new(address, port)) {
            Ok(listener) => {
                let port = listener.local_addr().map_or(port, |local| local.port());
                let udp = (via == Via::Iperf2)
                    .then(|| UdpPort::bind(SocketAddr::new(address, port), None).ok())
                    .flatten();
                ports.push(ProtocolPort { via, port, listener, udp });
            }
            Err(error) if !must && error.source.kind() == ErrorKind::AddrInUse => {}
            Err(error) => {
                let failure = cannot_listen(&error);
                let advice = format!("choose another port with --foreign {via}:PORT, or omit it");
                return Err(failure.advise(advice));
            }
        }
    }
    Ok(ports)
}

/// A connection that came to the port of another program.
pub(crate) struct ForeignConnection {
    pub(crate) via: Via,
    pub(crate) port: u16,
    pub(crate) stream: TcpStream,
    pub(crate) peer: SocketAddr,
    /// Its number among those of this server.
    pub(crate) serial: u64,
}

/// State that connections of other programs share.
#[derive(Debug, Default)]
pub(crate) struct ForeignState {
    pub(crate) iperf3: iperf3::Clients,
    /// Ports of data streams that a client chooses by number.
    data_ports: DataPorts,
    /// Addresses that proved to receive, and so may be sent data over UDP.
    pub(crate) udp_trust: AddressValidation,
}

impl ForeignState {
    /// State for a server that listens at these ports.
    pub(crate) fn beside(ports: &[ProtocolPort]) -> Self {
        let heard = ports.iter().filter(|at| at.udp.is_some()).map(|at| at.port);
        let data_ports =
            DataPorts::beside(ports.iter().map(|at| at.port).collect()).hearing(heard.collect());
        let at = ports.iter().find(|at| at.via == Via::Iperf3);
        let iperf3 = at.map(|at| iperf3::Clients::from_listener(&at.listener)).unwrap_or_default();
        Self { iperf3, data_ports, udp_trust: AddressValidation::default() }
    }
}

/// Serves a connection of another program; the line is for the log.
pub(crate) fn answer(
    arrival: ForeignConnection,
    shared: &ForeignState,
    gate: &Gate,
    place: &ConnectionSlot<'_>,
    stop: &Stop,
) -> Result<Option<LogText>, Failure> {
    let ForeignConnection { via, port, stream, peer, serial } = arrival;
    let Err(stream) = shared.data_ports.deliver(port, peer.ip(), stream) else { return Ok(None) };
    let by_address = !matches!(via, Via::Nuttcp | Via::Iperf3);
    let program = if via == Via::Iperf3 { Program::Iperf3 } else { Program::Nuttcp };
    let (shared_place, own) = (gate.by_address(), gate.for_client(program, peer.ip()));
    let admission: &dyn Admission = if by_address { &shared_place } else { &own };
    let knowing = Knowing { admission, place };
    let watch = &mut |_: &ServedEvent<'_>| {};
    let mut serving = Serving { admission: &knowing, stop, interval: INTERVAL, watch };
    match via {
        Via::Iperf2 | Via::Ttcp => iperf2::serve_connection(stream, &mut serving).map(Some),
        Via::Iperf3 => {
            let connection = Iperf3Connection { stream, peer, serial };
            shared.iperf3.answer(connection, &knowing, stop)
        }
        Via::Nuttcp => nuttcp::serve_connection(stream, &shared.data_ports, &mut serving).map(Some),
        // Opened by none: HTTP is on the server's own port.
        Via::Http => Ok(None),
    }
}
