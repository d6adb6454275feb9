//! The server's side of a test: a place and ports for it, its streams, the line for the log.
//!
//! A client waits for its answer, so a client that comes while others measure waits for its place,
//! for [`QUEUE`] at most. Left out: a third party, multicast, traceroute.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use linerate_core::record::{Failure, Fault};
use linerate_core::time::MonoTime;
use linerate_proto::dialect::{FlowState, Output};
use linerate_proto::native::RefuseCode;
use linerate_proto::nuttcp::{
    NuttcpServerMachine, NuttcpServerReport, NuttcpServerTerms, Parameters,
};
use linerate_sys::clock::monotonic;
use linerate_sys::tcp;

use super::data_ports::DataPorts;

use super::served::{NuttcpContext, STREAMS, Served};
use super::tcp_server::NuttcpTcpServer;
use super::udp_server::{UdpReceiving, UdpTransmitting};
use crate::flow::admission::{Demand, Permit};
use crate::flow::peer::plain_address;
use crate::flow::{self, Flows, FlowsAnswer, Socket, TestSession};
use crate::foreign::serve::Serving;
use crate::foreign::test::VANISHED;
use crate::served::LogText;

/// A client that comes while others measure waits this long for its place.
const QUEUE: Duration = Duration::from_secs(30);
/// Ports below are not a user's to name.
const PORT_MIN: u16 = 1024;

/// Serves one control connection; returns what the log should say.
/// # Errors
/// Why it did not end well.
pub fn serve_connection(
    stream: TcpStream,
    ports: &DataPorts,
    serving: &mut Serving<'_>,
) -> Result<LogText, Failure> {
    tcp::notice_vanished_peer(&stream, VANISHED);
    let address = |address: io::Result<SocketAddr>| {
        address.map_err(|error| Failure::new(Fault::Unreachable, "address of", "a client", error))
    };
    let (peer, own) = (address(stream.peer_addr())?, address(stream.local_addr())?);
    let mut net = Socket::new(stream)?;
    let stop = serving.stop.clone();
    let about = NuttcpContext {
        peer: plain_address(peer),
        local_ip: own.ip().to_canonical(),
        peer_ip: peer.ip().to_canonical(),
        ports,
        serving,
    };
    let place = SocketAddr::new(about.peer_ip, peer.port());
    let (version, line) = (String::new(), Ok(LogText::default()));
    let client =
        NuttcpSession { about, place, waits: None, test: None, permit: None, version, line };
    let mut session = TestSession::new(NuttcpServerMachine::new(monotonic()), client);
    flow::run(&mut session, &mut net, &stop)?;
    session.flows.line.map(|line| line.with_prefix(&session.flows.version))
}

/// The event that a session waits for.
enum NuttcpWait {
    /// A place among the running tests.
    Admission(Demand, MonoTime),
    /// The ports that the client named.
    Ports(MonoTime),
    Streams,
}

/// One client and its test.
struct NuttcpSession<'a, 's, 'w> {
    about: NuttcpContext<'a, 's, 'w>,
    /// The client as the admission knows it.
    place: SocketAddr,
    waits: Option<NuttcpWait>,
    test: Option<(Parameters, Box<dyn Served<'a> + 'a>)>,
    /// The permit of the test, given back at the end.
    permit: Option<Permit>,
    version: String,
    /// The log line of a test that came to its end, or its failure.
    line: Result<LogText, Failure>,
}

impl Flows for NuttcpSession<'_, '_, '_> {
    type Machine = NuttcpServerMachine;

    fn carry_out(
        &mut self,
        now: MonoTime,
        output: Output<NuttcpServerMachine>,
    ) -> Result<Option<FlowsAnswer<NuttcpServerMachine>>, Failure> {
        if let Output::Decide(parameters) = output {
            self.version = format!("nuttcp {}: ", parameters.version);
            let (demand, test) = self.test_of(&parameters)?;
            self.test = Some((*parameters, test));
            self.waits = Some(NuttcpWait::Admission(demand, now + QUEUE));
            return self.answer(now);
        }
        let Some((_, test)) = &mut self.test else { return Ok(None) };
        match output {
            Output::Open => {
                self.waits = Some(NuttcpWait::Streams);
                self.answer(now)
            }
            Output::Count => {
                let (report, line) = test.end_streams(&mut self.about);
                let failure = line.as_ref().err().map(|failure| failure.reason.clone());
                self.line = line;
                Ok(Some(FlowsAnswer::Counted(Box::new(NuttcpServerReport { failure, ..report }))))
            }
            output => {
                let line = test.carry_out(now, output, &mut self.about)?;
                Ok(line.map(|line| FlowsAnswer::Tell(vec![line])))
            }
        }
    }

    fn answer(
        &mut self,
        now: MonoTime,
    ) -> Result<Option<FlowsAnswer<NuttcpServerMachine>>, Failure> {
        let Some((parameters, test)) = &mut self.test else { return Ok(None) };
        let (waits, answer) = match self.waits.take() {
            Some(NuttcpWait::Admission(demand, until)) => {
                let admission = self.about.serving.admission;
                match admission.admit_in_turn(&demand, self.place) {
                    Ok(permit) => {
                        self.permit = Some(permit);
                        self.waits = Some(NuttcpWait::Ports(now + STREAMS));
                        return self.answer(now);
                    }
                    Err(refuse) if refuse.code == RefuseCode::Busy && now < until => {
                        (Some(NuttcpWait::Admission(demand, until)), None)
                    }
                    Err(refuse) => return Err(self.about.refuse(refuse.reason)),
                }
            }
            Some(NuttcpWait::Ports(until)) => match test.is_ready(&self.about)? {
                true => {
                    let Serving { admission, interval, .. } = &self.about.serving;
                    let terms = NuttcpServerTerms {
                        open_max: STREAMS,
                        span_max: admission.duration_max(),
                        interval: parameters.interval().unwrap_or(*interval),
                    };
                    (None, Some(FlowsAnswer::Decided(Ok(terms))))
                }
                false if now < until => (Some(NuttcpWait::Ports(until)), None),
                false => {
                    let reason = format!("data port {} is another test's", parameters.port);
                    return Err(self.about.refuse(reason));
                }
            },
            Some(NuttcpWait::Streams) => match test.open_streams(now, &mut self.about)? {
                true => (None, Some(FlowsAnswer::Opened)),
                false => (Some(NuttcpWait::Streams), None),
            },
            None => (None, None),
        };
        self.waits = waits;
        Ok(answer)
    }

    fn flow_state(&mut self, now: MonoTime) -> FlowState {
        self.test.as_mut().map(|(_, test)| test.flow_state(now)).unwrap_or_default()
    }

    fn peer_name(&self) -> String {
        self.about.peer.clone()
    }
}

impl<'a> NuttcpSession<'a, '_, '_> {
    /// The streams of a test, unless it asks for what is not served.
    fn test_of(
        &self,
        parameters: &Parameters,
    ) -> Result<(Demand, Box<dyn Served<'a> + 'a>), Failure> {
        if let Some(name) = parameters.beyond {
            return Err(self.about.refuse(format!("{name} is not served")));
        }
        if parameters.port < PORT_MIN {
            let reason = format!("data port {} is below {PORT_MIN}", parameters.port);
            return Err(self.about.refuse(reason));
        }
        match (parameters.udp, parameters.client_sends) {
            (false, _) => {
                let (demand, test) = NuttcpTcpServer::new(parameters, &self.about)?;
                Ok((demand, Box::new(test)))
            }
            (true, true) => {
                let (demand, test) = UdpReceiving::new(parameters, &self.about)?;
                Ok((demand, Box::new(test)))
            }
            (true, false) => {
                let (demand, test) = UdpTransmitting::new(parameters, &self.about)?;
                Ok((demand, Box::new(test)))
            }
        }
    }
}
