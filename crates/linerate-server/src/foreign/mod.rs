//! The ports where clients of other programs are answered: which, and how a connection goes on.
//!
//! ttcp and iperf 2 share a port and are told apart by their first bytes.

pub(crate) mod iperf3;

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use linerate_core::record::{Failure, Fault, Via};
use linerate_engine::foreign::{Serving, iperf2};
use linerate_sys::stop::Stop;

use crate::admission::Gate;
use crate::listen::listen;

/// What this server answers of other programs' protocols.
const SPOKEN: [Via; 2] = [Via::Iperf2, Via::Iperf3];

/// Nobody watches a client's streams here.
const INTERVAL: Duration = Duration::from_secs(1);

/// Which other programs are answered, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Foreign {
    /// All that are spoken, at their usual ports; one that is taken is left out.
    Usual,
    /// These, each at its port; one that is taken is a failure.
    These(Vec<(Via, u16)>),
}

impl Foreign {
    /// No others.
    pub const fn none() -> Self {
        Self::These(Vec::new())
    }
}

/// A listener for one program.
#[derive(Debug)]
pub(crate) struct Ear {
    pub(crate) via: Via,
    pub(crate) port: u16,
    pub(crate) listener: TcpListener,
}

/// Opens the ports.
pub(crate) fn open(foreign: &Foreign, address: IpAddr) -> Result<Vec<Ear>, Failure> {
    let (asked, must) = match foreign {
        Foreign::Usual => (SPOKEN.map(|via| (via, via.default_port())).to_vec(), false),
        Foreign::These(these) => (these.clone(), true),
    };
    let mut ears = Vec::new();
    for (via, port) in asked {
        match listen(SocketAddr::new(address, port)) {
            Ok(listener) => {
                let port = listener.local_addr().map_or(port, |local| local.port());
                ears.push(Ear { via, port, listener });
            }
            Err((ErrorKind::AddrInUse, _)) if !must => {}
            Err((_, failure)) => {
                let advice = format!("choose its port by --foreign {via}:PORT, or leave it out");
                return Err(failure.advise(advice));
            }
        }
    }
    Ok(ears)
}

/// Serves a connection that came to the port of `via`; the line is for the log.
pub(crate) fn answer(
    via: Via,
    (stream, peer, serial): (TcpStream, SocketAddr, u64),
    clients: &iperf3::Clients,
    gate: &Gate,
    stop: &Stop,
) -> Result<Option<String>, Failure> {
    let mut serving =
        Serving { admission: &gate.by_address(), stop, interval: INTERVAL, watch: &mut |_| {} };
    match via {
        Via::Iperf2 | Via::Ttcp => iperf2::serve(stream, &mut serving).map(Some),
        Via::Iperf3 => clients.answer((stream, peer, serial), gate, stop),
        Via::Nuttcp => {
            let reason = format!("{via} is not spoken yet");
            Err(Failure::new(Fault::System, "answer", peer.to_string(), reason))
        }
    }
}
