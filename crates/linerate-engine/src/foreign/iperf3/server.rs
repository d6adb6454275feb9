//! The server's side of one test, from the cookie to the end.
//!
//! Everything a client does or leaves out costs a bounded amount: each wait has a deadline, streams
//! and time are limited by the admission, a client whose host vanished is noticed by keep-alives,
//! and whatever ends the session takes its data threads along.

use std::time::Duration;

use linerate_core::policy::TestKind;
use linerate_core::record::{Event, Failure, Fault, Plan, Record};
use linerate_core::time::MonoTime;
use linerate_core::units::BitRate;
use linerate_proto::dialect::{FlowState, Output, TestFailureReason};
use linerate_proto::iperf3::{
    Cookie, ErrorCode, Iperf3ServerMachine, Iperf3ServerTerms, Params, Protocol, Refusal,
};
use linerate_proto::native::{Refuse, RefuseCode};
use linerate_sys::clock::{monotonic, record_id, wall_time};
use linerate_sys::tcp;

use super::datagrams::udp_request_of;

use super::plan::request_of;
use super::registry::Iperf3Connection;
use super::shared::{About, Iperf3Context, Observer, Served};
use super::tcp_server::Iperf3TcpServer;
use super::udp_server::Iperf3UdpServer;
use crate::flow::admission::least_span;
use crate::flow::admission::{Admission, Demand, Permit};
use crate::flow::peer::plain_address;
use crate::flow::tcp::session::HANDOVER;
use crate::flow::{self, Flows, FlowsAnswer, Socket, TestSession};
use crate::foreign::test::VANISHED;
use crate::served::LogText;

/// The line of a connection for the log.
#[derive(Clone, Debug, PartialEq)]
pub enum LogLine {
    /// The result of a test that came to its end.
    Tested(LogText),
    /// The reason why a test had no place.
    Refused(String),
}

/// Runs one test over a control connection whose cookie has been read.
/// # Errors
/// Why the test did not end well.
pub fn serve_test(
    arrival: Iperf3Connection,
    cookie: Cookie,
    shared: &Iperf3Context<'_>,
    observer: &mut dyn Observer,
) -> Result<LogLine, Failure> {
    tcp::notice_vanished_peer(&arrival.stream, VANISHED);
    let own = arrival.stream.local_addr().map(|at| at.ip()).ok();
    let mut net = Socket::new(arrival.stream)?;
    let begin = monotonic();
    let client = Iperf3Session {
        about: About {
            shared,
            observer,
            cookie,
            peer: arrival.peer,
            own,
            registration: None,
            record: None,
            contradiction: None,
        },
        waits: None,
        test: None,
        permit: None,
        refused: None,
    };
    let mut session = TestSession::new(Iperf3ServerMachine::new(begin), client);
    let result = flow::run(&mut session, &mut net, shared.stop);
    session.flows.conclude(begin, result)
}

/// The event that a session waits for.
enum Waits {
    /// A place among the running tests.
    Admission { params: Box<Params>, demand: Demand, until: MonoTime },
    /// The turn of this client's streams.
    Turn { until: MonoTime, terms: Iperf3ServerTerms },
    /// The connections of the streams.
    Streams,
}

/// One client and its test.
struct Iperf3Session<'a> {
    about: About<'a>,
    waits: Option<Waits>,
    test: Option<Box<dyn Served + 'a>>,
    /// The permit of the test, given back at the end.
    permit: Option<Permit>,
    /// Why the test was not let in: a line for the log, or a failure.
    refused: Option<Result<LogLine, Failure>>,
}

impl Flows for Iperf3Session<'_> {
    type Machine = Iperf3ServerMachine;

    fn carry_out(
        &mut self,
        now: MonoTime,
        output: Output<Iperf3ServerMachine>,
    ) -> Result<Option<FlowsAnswer<Iperf3ServerMachine>>, Failure> {
        match output {
            Output::Decide(params) => {
                if let Err((code, reason)) = self.check_params(&params) {
                    return Ok(Some(self.refuse(Refusal::For(code), Err(self.failed(&reason)))));
                }
                let demand = demand(&params, self.about.shared.interval);
                let patience = self.about.shared.admission.patience().max(HANDOVER);
                self.waits = Some(Waits::Admission { params, demand, until: now + patience });
                self.answer(now)
            }
            Output::Open => {
                self.waits = Some(Waits::Streams);
                self.answer(now)
            }
            output => {
                let Some(test) = &mut self.test else { return Ok(None) };
                let counted = test.carry_out(now, output, &mut self.about)?;
                Ok(counted.map(|results| FlowsAnswer::Counted(Box::new(results))))
            }
        }
    }

    fn answer(
        &mut self,
        now: MonoTime,
    ) -> Result<Option<FlowsAnswer<Iperf3ServerMachine>>, Failure> {
        match self.waits.take() {
            Some(Waits::Admission { params, demand, until }) => {
                self.ask_admission(now, params, demand, until)
            }
            Some(Waits::Turn { until, terms }) => self.await_turn(now, until, terms),
            Some(Waits::Streams) => {
                let Some(test) = &mut self.test else { return Ok(None) };
                if !test.open_streams(&mut self.about)? {
                    self.waits = Some(Waits::Streams);
                    return Ok(None);
                }
                self.about.expect_no_streams();
                Ok(Some(FlowsAnswer::Opened))
            }
            None => Ok(None),
        }
    }

    fn flow_state(&mut self, now: MonoTime) -> FlowState {
        self.test.as_mut().map(|test| test.flow_state(now)).unwrap_or_default()
    }

    fn peer_name(&self) -> String {
        plain_address(self.about.peer)
    }
}

impl<'a> Iperf3Session<'a> {
    /// Refuses parameters that this end does not support, that nobody does, and logins that are
    /// wrong.
    fn check_params(&self, params: &Params) -> Result<(), (ErrorCode, String)> {
        if let Some(guard) = self.about.shared.guard {
            let admitted = guard.admit_token(params.auth_token.as_deref());
            admitted.map_err(|reason| (ErrorCode::AUTHENTICATION, reason))?;
        }
        if params.protocol == Protocol::Sctp {
            let reason = format!("it asks for {:?}", params.protocol);
            return Err((ErrorCode::UNIMPLEMENTED, reason));
        }
        params.check_bounds().map_err(|error| (error.code, error.to_string()))
    }

    /// Asks for a place. The client's clock ends the test; bytes and blocks take as long as they
    /// take.
    fn ask_admission(
        &mut self,
        now: MonoTime,
        params: Box<Params>,
        demand: Demand,
        until: MonoTime,
    ) -> Result<Option<FlowsAnswer<Iperf3ServerMachine>>, Failure> {
        let (admission, peer) = (self.about.shared.admission, self.about.peer);
        let answer = match admission.patience() {
            Duration::ZERO => admission.admit_test(&demand, peer),
            _ => admission.admit_in_turn(&demand, peer),
        };
        let permit = match answer {
            Ok(permit) => permit,
            Err(refuse) if refuse.code == RefuseCode::Busy && now < until => {
                self.waits = Some(Waits::Admission { params, demand, until });
                return Ok(None);
            }
            Err(refuse) => {
                let refusal = refusal(&refuse, &params, &demand, admission);
                let line = format!("iperf3: refused: {}", refuse.reason);
                return Ok(Some(self.refuse(refusal, Ok(LogLine::Refused(line)))));
            }
        };
        let Some(registration) = self.about.shared.registry.register(self.about.cookie) else {
            let failure = self.failed("its cookie is that of a running test");
            return Ok(Some(self.refuse(Refusal::For(ErrorCode::CREATE_STREAM), Err(failure))));
        };
        self.permit = Some(permit);
        self.about.registration = Some(registration);
        let span_max = match params.time_s {
            0 => admission.duration_max(),
            time_s => Duration::from_secs(time_s + params.omit_s).min(admission.duration_max()),
        };
        self.accept_test(*params);
        let terms = Iperf3ServerTerms { span_max, interval: self.about.shared.interval };
        self.await_turn(now, now + linerate_proto::iperf3::STEP_TIMEOUT, terms)
    }

    /// Lets the test in.
    fn accept_test(&mut self, params: Params) {
        let about = &mut self.about;
        about.observer.accepted(&params, about.peer, &about.cookie);
        let (plan, test): (Plan, Box<dyn Served + 'a>) = match params.protocol {
            Protocol::Udp => {
                let (plan, test) = Iperf3UdpServer::new(params, about);
                (Plan::Udp(plan), Box::new(test))
            }
            _ => {
                let (plan, test) = Iperf3TcpServer::new(params, about);
                (Plan::Tcp(plan), Box::new(test))
            }
        };
        about.observer.event_seen(&Event::Plan(plan.clone()));
        about.record =
            Some(Record::from_plan(record_id(), about.shared.tool.clone(), plan, wall_time()));
        self.test = Some(test);
    }

    fn await_turn(
        &mut self,
        now: MonoTime,
        until: MonoTime,
        terms: Iperf3ServerTerms,
    ) -> Result<Option<FlowsAnswer<Iperf3ServerMachine>>, Failure> {
        let Some(test) = &mut self.test else { return Ok(None) };
        let failure = match test.is_ready(&self.about) {
            Ok(true) => return Ok(Some(FlowsAnswer::Decided(Ok(terms)))),
            Ok(false) if now < until => {
                self.waits = Some(Waits::Turn { until, terms });
                return Ok(None);
            }
            Ok(false) => {
                let awaited = "its turn at the UDP port";
                let within = linerate_proto::iperf3::STEP_TIMEOUT;
                self.failure(TestFailureReason::Silent { awaited, within })
            }
            Err(failure) => failure,
        };
        Ok(Some(self.refuse(Refusal::For(ErrorCode::CREATE_STREAM), Err(failure))))
    }

    fn refuse(
        &mut self,
        refusal: Refusal,
        said: Result<LogLine, Failure>,
    ) -> FlowsAnswer<Iperf3ServerMachine> {
        self.refused = Some(said);
        FlowsAnswer::Decided(Err(refusal))
    }

    /// The client asks for what it cannot have.
    fn failed(&self, reason: &str) -> Failure {
        Failure::new(Fault::PeerMisbehaved, "serve", plain_address(self.about.peer), reason)
    }

    /// Tells the observer of the end; what there is to say for the log.
    fn conclude(
        mut self,
        begin: MonoTime,
        result: Result<(), Failure>,
    ) -> Result<LogLine, Failure> {
        let result = match self.refused.take() {
            Some(refused) => refused.map(Some),
            None => result.and_then(|()| self.about.contradiction.take().map_or(Ok(None), Err)),
        };
        let line = self.test.as_mut().map(|test| test.end_streams()).unwrap_or_default();
        if let Some(mut record) = self.about.record.take() {
            record.duration_ns = monotonic().nanos_since(begin);
            record.failure = result.as_ref().err().cloned();
            self.about.observer.test_ended(&record);
        }
        result.map(|refused| refused.unwrap_or(LogLine::Tested(line)))
    }
}

/// The demand of a test on the server.
fn demand(params: &Params, interval: Duration) -> Demand {
    let request = request_of(params, interval);
    let streams = usize::from(request.streams) * request.each_direction().len();
    let planned = match params.protocol {
        _ if params.time_s > 0 => Some(Duration::from_secs(params.time_s + params.omit_s)),
        Protocol::Udp if params.bytes + params.blocks > 0 => {
            udp_request_of(params, interval).planned_span()
        }
        Protocol::Tcp => least_span(&request),
        _ => None,
    };
    let kind = match params.protocol {
        Protocol::Udp => TestKind::Udp,
        _ => TestKind::Tcp,
    };
    let each = request.pace.map(BitRate::bits_per_sec).filter(|bps| *bps > 0);
    let rate_bps = each.map(|bps| bps.saturating_mul(request.streams.into()));
    let ways = if request.each_direction().len() > 1 { 2 } else { 1 };
    Demand { planned, rate_bps, ways, ..Demand::new(kind, streams) }
}

/// The admission's no in iperf3's words. A policy's has no number of its own; the nearest one tells
/// which limit it is, and where it is none of them that the client may not test at all.
fn refusal(
    refuse: &Refuse,
    params: &Params,
    demand: &Demand,
    admission: &dyn Admission,
) -> Refusal {
    let allowed = admission.allowed();
    let too_long = demand.planned.is_some_and(|planned| planned > admission.duration_max());
    let too_many = allowed.streams.is_none_or(|most| demand.streams > usize::from(most));
    let too_fast =
        allowed.rate_bps.is_some_and(|most| demand.rate_bps.is_none_or(|asked| asked > most));
    match refuse.code {
        RefuseCode::Busy => Refusal::Busy,
        _ if too_long => Refusal::For(params.too_long()),
        RefuseCode::Policy if too_fast => Refusal::For(ErrorCode::TOTAL_RATE),
        RefuseCode::Policy if allowed.streams.is_none() || !too_many => {
            Refusal::For(ErrorCode::AUTHENTICATION)
        }
        _ => Refusal::For(ErrorCode::STREAMS),
    }
}
