//! The client's side of a session: round after round, as whoever wants the trains decides from
//! what was seen.

use std::net::SocketAddr;
use std::time::Duration;

use linerate_core::record::{DatagramTrain, Direction, Failure, Fault, ServerPlan};
use linerate_core::time::MonoTime;
use linerate_proto::dialect::{FlowState, Output, TestFailureReason};
use linerate_proto::native::{
    Accept, Message, NativeClientMachine, NativeClientTest, NativePeerFault, TRAINS_REQUEST, Token,
    TrainPlan, TrainReport, TrainRound, TrainsRequest, stream_tag,
};
use linerate_sys::clock::monotonic;
use linerate_sys::stop::Stop;

use super::prober::TrainProber;
use super::serve::PLACE;
use super::socket::open_train_socket;
use crate::address::resolve_server;
use crate::flow::Words;
use crate::flow::peer::{bind_address, credentials, plain_address};
use crate::flow::tcp::control::{connect_control, rtt_min, silent, token_of};
use crate::flow::udp::keep_alive::SILENCE_MAX;
use crate::flow::udp::opening::{Asking, Caller, unanswered};
use crate::flow::{self, Flows, FlowsAnswer, Socket, TestSession};
use crate::socket_address::{at_port, local_towards};

/// The other end's reports of a round come this long after this end's own at the latest.
const REPORTS_WAIT: Duration = Duration::from_secs(10);

/// The round trip and the header length of the path, before the first train.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathSeen {
    /// The shortest round trip of the control connection.
    pub(crate) rtt: Duration,
    /// IP and UDP headers of the address family.
    pub(crate) header_bytes: u32,
}

/// The trains of the next round, and how long silence has to last until what has not come is lost.
#[derive(Clone, Debug)]
pub(crate) struct RoundPlan {
    pub(crate) trains: Vec<TrainPlan>,
    pub(crate) quiet: Duration,
}

/// One train as both ends saw it.
#[derive(Clone, Debug)]
pub(crate) struct ObservedTrain {
    pub(crate) train: DatagramTrain,
    /// True where the sender could not send all of it: the link's packets are shorter.
    pub(crate) refused: bool,
    /// The largest packet that a router or the sender's host named.
    pub(crate) icmp_mtu_bytes: Option<u32>,
}

/// Whoever wants the trains.
pub(crate) trait Rounds {
    /// The next ones, or nothing when all is seen.
    fn next(&mut self, path: PathSeen) -> Option<RoundPlan>;

    /// Takes the trains of a round, in the order of its plan.
    fn take_round(&mut self, seen: Vec<ObservedTrain>);
}

/// Runs a session with a server of this program's own protocol; times of trains count from
/// `begin`.
pub(crate) fn run(
    plan: &ServerPlan,
    begin: MonoTime,
    planned: Duration,
    rounds: &mut dyn Rounds,
    stop: &Stop,
) -> Result<(), Failure> {
    let server = resolve_server(plan)?;
    let local = bind_address(plan.bind.as_deref())?;
    let timeout = Duration::from_nanos(plan.connect_timeout_ns);
    let control = connect_control(server, local, timeout)?;
    let rtt = rtt_min(&control).unwrap_or_default();
    let header_bytes = if server.ip().to_canonical().is_ipv4() { 28 } else { 48 };
    let mut net = Socket::new(control)?;
    let planned_ns = u64::try_from(planned.as_nanos()).unwrap_or(u64::MAX);
    let test = NativeClientTest {
        request: Message::TrainsRequest(TrainsRequest { planned_ns, login: false }),
        span: Some(planned),
        interval: Duration::from_secs(1),
        last: true,
        credentials: credentials(plan.token.as_ref()),
    };
    let flows = TrainsClient {
        server,
        local: local_towards(server, local),
        path: PathSeen { rtt, header_bytes },
        begin,
        accept: None,
        opening: None,
        prober: None,
        number: 0,
        round: None,
        done: false,
        rounds,
    };
    let mut session = TestSession::new(NativeClientMachine::new(monotonic(), test), flows);
    flow::run(&mut session, &mut net, stop)
}

/// A round under way.
struct RunningRound {
    plan: TrainRound,
    begun: MonoTime,
    own: Option<(Vec<TrainReport>, MonoTime)>,
    remote: Vec<TrainReport>,
}

struct TrainsClient<'a> {
    server: SocketAddr,
    local: SocketAddr,
    path: PathSeen,
    begin: MonoTime,
    accept: Option<Box<Accept>>,
    /// The socket until the server says that it is open, and when it should be.
    opening: Option<(Asking, MonoTime)>,
    prober: Option<TrainProber>,
    number: u16,
    round: Option<RunningRound>,
    done: bool,
    rounds: &'a mut dyn Rounds,
}

impl Flows for TrainsClient<'_> {
    type Machine = NativeClientMachine;

    fn carry_out(
        &mut self,
        now: MonoTime,
        output: Output<NativeClientMachine>,
    ) -> Result<Option<FlowsAnswer<NativeClientMachine>>, Failure> {
        match output {
            Output::Decide(accept) => {
                self.accept = Some(accept);
                return Ok(Some(FlowsAnswer::Decided(Ok(()))));
            }
            Output::Open => {
                self.begin_opening(now)?;
                return Ok(Some(FlowsAnswer::Opened));
            }
            Output::Start => self.start_prober()?,
            Output::News(Message::TrainReport(report)) => self.take_report(report)?,
            Output::StopSending => self.done = true,
            _ => {}
        }
        Ok(None)
    }

    fn answer(
        &mut self,
        now: MonoTime,
    ) -> Result<Option<FlowsAnswer<NativeClientMachine>>, Failure> {
        if let Some((asking, deadline)) = &mut self.opening {
            if now >= *deadline {
                return Err(unanswered(std::slice::from_ref(asking)));
            }
            asking.ask_server(now);
        }
        let Some(prober) = self.prober.as_ref().filter(|_| !self.done) else { return Ok(None) };
        if let Some(round) = &mut self.round {
            round.own = round.own.take().or_else(|| prober.reports().map(|seen| (seen, now)));
            let Some((_, over)) = &round.own else { return Ok(None) };
            if round.remote.len() < round.plan.trains.len() {
                let late = now.duration_since(*over) >= REPORTS_WAIT;
                return if late { Err(self.silent()) } else { Ok(None) };
            }
            let seen =
                self.round.take().map(|round| self.observed_trains(&round)).unwrap_or_default();
            self.rounds.take_round(seen);
        }
        Ok(Some(FlowsAnswer::Tell(vec![self.next(now)])))
    }

    fn flow_state(&mut self, _: MonoTime) -> FlowState {
        FlowState { done: self.done, ..FlowState::default() }
    }

    fn peer_name(&self) -> String {
        plain_address(self.server)
    }

    fn failure(&self, reason: TestFailureReason<NativePeerFault>) -> Failure {
        session_failure(&self.peer_name(), reason)
    }
}

/// The failure of a session with the server `peer`.
fn session_failure(peer: &str, reason: TestFailureReason<NativePeerFault>) -> Failure {
    if let TestFailureReason::Peer(NativePeerFault::Aborted(said)) = &reason
        && said.contains(TRAINS_REQUEST)
    {
        let reason = "the server does not know them";
        return Failure::new(Fault::PeerIncompatible, "ask for probe trains with", peer, reason)
            .advise("install the same version at both ends");
    }
    NativeClientMachine::failure(peer, reason)
}

impl TrainsClient<'_> {
    fn session_token(&self) -> Result<Token, Failure> {
        let accept = self.accept.as_ref().ok_or_else(|| self.silent())?;
        token_of(accept, self.server)
    }

    fn begin_opening(&mut self, now: MonoTime) -> Result<(), Failure> {
        let token = self.session_token()?;
        let port = self.accept.as_ref().and_then(|accept| accept.udp_ports.first());
        let Some(&port) = port else {
            return Err(self.misbehaved("it named no UDP port"));
        };
        let server = at_port(self.server, port);
        let socket = open_train_socket(self.local)?;
        socket.connect(server).map_err(|error| crate::failure::system(&error))?;
        let asking = Asking::new(socket, server, Caller::new(PLACE.0, PLACE.1, token, now));
        self.opening = Some((asking, now + SILENCE_MAX));
        Ok(())
    }

    fn start_prober(&mut self) -> Result<(), Failure> {
        let tag = stream_tag(self.session_token()?, PLACE.0, PLACE.1);
        if let Some((asking, _)) = self.opening.take() {
            self.prober = Some(TrainProber::start_thread(asking.socket, tag, Direction::Up)?);
        }
        Ok(())
    }

    /// The message that begins the next round, or ends the session.
    fn next(&mut self, now: MonoTime) -> Message {
        let next = self.rounds.next(self.path);
        let Some((RoundPlan { trains, quiet }, prober)) = next.zip(self.prober.as_ref()) else {
            self.prober = None;
            self.done = true;
            return Message::Stop;
        };
        let quiet_ns = u64::try_from(quiet.as_nanos()).unwrap_or(u64::MAX);
        let plan = TrainRound { round: self.number, quiet_ns, trains };
        self.number += 1;
        prober.begin_round(plan.clone());
        let round = RunningRound { plan: plan.clone(), begun: now, own: None, remote: Vec::new() };
        self.round = Some(round);
        Message::TrainRound(plan)
    }

    /// Takes the server's report of a train: one report each, in their order.
    fn take_report(&mut self, report: TrainReport) -> Result<(), Failure> {
        let wrong = "a report of a train that was not asked for";
        let Some(round) = &mut self.round else { return Err(self.misbehaved(wrong)) };
        let place = round.remote.len();
        let plan = round.plan.trains.get(place);
        let fits = |plan: &TrainPlan| {
            let whole = report.after_ns.len() == plan.count as usize;
            whole
                || (plan.direction == Direction::Down
                    && report.after_ns.len() < plan.count as usize)
        };
        let right = (round.plan.round, place) == (report.round, report.train.into());
        if !right || !plan.is_some_and(fits) {
            return Err(self.misbehaved(wrong));
        }
        round.remote.push(report);
        Ok(())
    }

    /// The trains of a round from both ends' reports.
    fn observed_trains(&self, round: &RunningRound) -> Vec<ObservedTrain> {
        let own = round.own.iter().flat_map(|(reports, _)| reports);
        let pairs = round.plan.trains.iter().zip(own.zip(&round.remote));
        pairs.map(|(plan, (own, remote))| self.observed_train(round, plan, own, remote)).collect()
    }

    fn observed_train(
        &self,
        round: &RunningRound,
        plan: &TrainPlan,
        own: &TrainReport,
        remote: &TrainReport,
    ) -> ObservedTrain {
        let (sent, came, way) = match plan.direction {
            Direction::Up => (own, remote, Duration::ZERO),
            // The server begins when the message has come.
            Direction::Down => (remote, own, self.path.rtt / 2),
        };
        let left: Vec<u64> = sent.stamps().into_iter().flatten().collect();
        let first = left.first().copied().unwrap_or(0);
        let since = |stamp: u64| stamp.wrapping_sub(first).cast_signed();
        let mut arrived_ns: Vec<Option<i64>> =
            came.stamps().into_iter().map(|stamp| stamp.map(since)).collect();
        arrived_ns.truncate(left.len());
        let ip_bytes = plan.size_bytes + self.path.header_bytes;
        let bits = f64::from(ip_bytes) * 8.0;
        let begun = round.begun + way + Duration::from_nanos(plan.at_ns);
        ObservedTrain {
            refused: left.len() < plan.count as usize,
            icmp_mtu_bytes: sent.icmp_mtu_bytes,
            train: DatagramTrain {
                direction: plan.direction,
                ip_bytes,
                offered_bps: (plan.gap_ns > 0).then(|| bits * 1e9 / plan.gap_ns as f64),
                started_ns: begun.nanos_since(self.begin),
                sent_ns: left.iter().map(|stamp| stamp.saturating_sub(first)).collect(),
                arrived_ns,
                socket_drops: came.socket_drops,
            },
        }
    }

    fn silent(&self) -> Failure {
        silent(&plain_address(self.server))
    }

    fn misbehaved(&self, reason: &str) -> Failure {
        Failure::new(Fault::PeerMisbehaved, "send trains to", plain_address(self.server), reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_does_not_know_trains_is_said_to_be_older() {
        // What version 1 of the protocol answers to a message that it does not know (0.1.0).
        let said = "talk to 192.0.2.1:49152: malformed message: unknown variant `trains_request`, \
                    expected one of `request`, `accept`, `refuse`";
        let aborted =
            |said: &str| TestFailureReason::Peer(NativePeerFault::Aborted(said.to_owned()));
        let failure = session_failure("192.0.2.2:5210", aborted(said));
        assert_eq!(failure.fault, Fault::PeerIncompatible);
        let line = "ask for probe trains with 192.0.2.2:5210: the server does not know them; \
                    install the same version at both ends";
        assert_eq!(failure.to_string(), line);
        let other = session_failure("192.0.2.2:5210", aborted("no space left on device"));
        assert_eq!(other.fault, Fault::PeerRefused);
    }
}
