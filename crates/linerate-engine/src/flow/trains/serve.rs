//! The server's side of a session: what the client asks for within the protocol's bounds, sent to
//! an address that has said the session's token and a number back from there.

use std::net::SocketAddr;

use linerate_core::record::{Direction, EndReport, Failure, Fault, MeasurementEnd};
use linerate_core::time::MonoTime;
use linerate_proto::dialect::{FlowState, Output};
use linerate_proto::native::{
    Accept, FEATURES, Message, NativeServerMachine, NativeServerTerms, ROUNDS_MAX, Token,
    TrainReport, TrainRound, TrainsRequest, stream_tag,
};
use linerate_sys::clock::random_bytes;

use super::prober::TrainProber;
use super::socket::open_train_socket;
use crate::failure::system;
use crate::flow::served::{GRACE, Served};
use crate::flow::udp::keep_alive::SILENCE_MAX;
use crate::flow::udp::opening::{Awaiting, Callee};
use crate::served::LogText;
use crate::socket_address::{at_port, canonical};

/// The only stream of a session, by the direction that it is opened in.
pub(super) const PLACE: (Direction, u16) = (Direction::Up, 0);

/// Time between messages of a session in which nothing happens.
const INTERVAL: std::time::Duration = std::time::Duration::from_secs(1);

/// A session that was let in.
pub(crate) struct TrainsServer {
    token: Token,
    /// Until the client's address is known.
    awaited: Option<Awaiting>,
    prober: Option<TrainProber>,
    rounds: u16,
    running: bool,
    packets: u64,
    done: bool,
}

impl TrainsServer {
    /// Opens a socket at an address; what the client is told of it.
    pub(crate) fn new(local: SocketAddr, end: MeasurementEnd) -> Result<(Self, Accept), Failure> {
        let token = Token(random_bytes());
        let socket = open_train_socket(at_port(canonical(local), 0))?;
        let port = socket.local_address().map_or(0, |at| at.port());
        let awaited = Some(Awaiting::new(socket, Callee::new(PLACE.0, PLACE.1, token)));
        let accept = Accept {
            token: token.to_hex(),
            data_port: 0,
            udp_ports: vec![port],
            host_id: linerate_sys::host::boot_id(),
            end,
            features: FEATURES.map(str::to_owned).to_vec(),
        };
        let (prober, rounds, running, packets, done) = (None, 0, false, 0, false);
        Ok((Self { token, awaited, prober, rounds, running, packets, done }, accept))
    }

    fn begin_round(&mut self, round: TrainRound) -> Result<(), Failure> {
        let refuse = |reason: String| {
            Failure::new(Fault::PeerMisbehaved, "send trains to", "a client", reason)
        };
        round.check_bounds().map_err(|error| refuse(error.to_string()))?;
        if self.running || round.round != self.rounds || self.rounds >= ROUNDS_MAX {
            return Err(refuse(format!("round {} is out of order", round.round)));
        }
        self.rounds += 1;
        self.running = true;
        self.packets += round.trains.iter().map(|plan| u64::from(plan.count)).sum::<u64>();
        if let Some(prober) = &self.prober {
            prober.begin_round(round);
        }
        Ok(())
    }

    /// The reports of the round at this end, once it is over.
    fn reports(&mut self) -> Vec<TrainReport> {
        let reports = self.prober.as_ref().and_then(TrainProber::reports);
        self.running &= reports.is_none();
        reports.unwrap_or_default()
    }
}

/// The terms of a session.
pub(crate) fn session_terms(request: &TrainsRequest, accept: Accept) -> NativeServerTerms {
    NativeServerTerms {
        accept: Box::new(accept),
        interval: INTERVAL,
        span_max: request.planned_span(),
        stall_after: None,
        end: request.planned_span() + GRACE,
        overdue: None,
        step: SILENCE_MAX,
        streams: "the UDP socket",
    }
}

impl Served for TrainsServer {
    fn open_streams(&mut self) -> Result<bool, Failure> {
        let Some(awaited) = &mut self.awaited else { return Ok(true) };
        awaited.answer_client().map_err(|error| system(&error))?;
        if awaited.client.is_none() {
            return Ok(false);
        }
        let Some(Awaiting { socket, .. }) = self.awaited.take() else { return Ok(true) };
        let tag = stream_tag(self.token, PLACE.0, PLACE.1);
        self.prober = Some(TrainProber::start_thread(socket, tag, Direction::Down)?);
        Ok(true)
    }

    fn carry_out(
        &mut self,
        _: MonoTime,
        output: Output<NativeServerMachine>,
    ) -> Result<(), Failure> {
        match output {
            Output::News(Message::TrainRound(round)) => return self.begin_round(round),
            Output::StopSending | Output::Halt => {
                self.prober = None;
                self.done = true;
            }
            _ => {}
        }
        Ok(())
    }

    fn news_for_client(&mut self) -> Result<Vec<Message>, Failure> {
        Ok(self.reports().into_iter().map(Message::TrainReport).collect())
    }

    fn sample(&mut self, _: MonoTime) -> Message {
        Message::Interval { samples: Vec::new() }
    }

    fn flow_state(&self) -> FlowState {
        FlowState { done: self.done, ..FlowState::default() }
    }

    fn finish(&mut self) -> Result<(Vec<EndReport>, LogText), Failure> {
        let line = format!("trains: {} packets in {} rounds", self.packets, self.rounds);
        Ok((Vec::new(), line.into()))
    }
}
