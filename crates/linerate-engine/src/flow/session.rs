//! Runs one end of a test: what comes goes into its machine, what that wants is done.
//!
//! A turn never waits; between two turns whoever runs the session waits as long as it says.

use std::io;
use std::time::Duration;

use linerate_core::record::Failure;
use linerate_core::time::MonoTime;
use linerate_proto::dialect::{FlowState, Input, Machine, Output, TestFailureReason};
use linerate_sys::stop::Stop;

use super::net::Net;
use super::peer::connection_failure;

/// A peer that does not read its control connection for this long is gone.
const SEND_TIMEOUT: Duration = Duration::from_secs(5);
/// Bytes that are read at once.
const READ_BYTES: usize = 16 * 1024;

/// The answer of the flows to a question of the machine, once it is known.
pub(crate) enum FlowsAnswer<M: Machine> {
    Decided(Result<M::Terms, M::Refusal>),
    Opened,
    Counted(Box<M::Report>),
    /// Messages for the other end.
    Tell(Vec<M::News>),
}

/// The data of a test at one end, and its account.
pub(crate) trait Flows {
    /// The machine of the protocol's side.
    type Machine: Words;

    /// Does what the machine wants, or begins to.
    fn carry_out(
        &mut self,
        now: MonoTime,
        output: Output<Self::Machine>,
    ) -> Result<Option<FlowsAnswer<Self::Machine>>, Failure>;

    /// The answer to what was begun, once it is there; asked at every look. None where an end does
    /// at once what is wanted.
    fn answer(&mut self, _now: MonoTime) -> Result<Option<FlowsAnswer<Self::Machine>>, Failure> {
        Ok(None)
    }

    /// How far the data has come.
    fn flow_state(&mut self, now: MonoTime) -> FlowState;

    /// The other end in words.
    fn peer_name(&self) -> String;

    /// The failure of a test whose machine gives up.
    fn failure(&self, reason: TestFailureReason<<Self::Machine as Machine>::PeerFault>) -> Failure {
        Self::Machine::failure(&self.peer_name(), reason)
    }

    /// The control connection failed.
    fn connection_failure(&self, attempt: &'static str, error: &io::Error) -> Failure {
        connection_failure(&self.peer_name(), attempt, error)
    }
}

/// A protocol machine whose reasons have words for people: the same at each end that runs it.
pub(crate) trait Words: Machine {
    /// The failure of a test with `peer`.
    fn failure(peer: &str, reason: TestFailureReason<Self::PeerFault>) -> Failure;
}

/// One end of a test.
pub(crate) struct TestSession<F: Flows> {
    machine: F::Machine,
    pub(crate) flows: F,
    /// Control bytes that found no room yet, and since when none did.
    unsent: (Vec<u8>, MonoTime),
    /// The failure that broke the control connection; none while it holds.
    broken: Option<Failure>,
    end: Option<Result<(), Failure>>,
}

impl<F: Flows> TestSession<F> {
    pub(crate) const fn new(machine: F::Machine, flows: F) -> Self {
        let unsent = (Vec::new(), MonoTime::from_nanos(0));
        Self { machine, flows, unsent, broken: None, end: None }
    }

    /// Goes on as far as it can now; the time of the next turn, or nothing at the end.
    pub(crate) fn run_turn(&mut self, net: &mut impl Net, stopped: bool) -> Option<MonoTime> {
        self.read(net);
        if stopped {
            self.machine.handle(net.now(), Input::Stop);
        }
        loop {
            let now = net.now();
            match self.flows.answer(now) {
                Ok(None) => {}
                Ok(Some(answer)) => self.tell_machine(now, answer),
                Err(failure) => self.give_up(now, failure),
            }
            let state = self.flows.flow_state(now);
            self.machine.handle(now, Input::Look(state));
            if !self.drain_outputs(net) {
                break;
            }
        }
        self.flush_unsent(net);
        let wants = self.machine.wait_conditions();
        let look = net.now() + wants.look;
        self.end.is_none().then(|| wants.wake_at.map_or(look, |at| at.min(look)))
    }

    /// True where control bytes are of use now.
    pub(crate) fn wants_bytes(&self) -> bool {
        self.machine.wait_conditions().reads && self.broken.is_none() && self.unsent.0.is_empty()
    }

    /// How the test ended, once it has.
    pub(crate) const fn take_outcome(&mut self) -> Option<Result<(), Failure>> {
        self.end.take()
    }

    /// Hands over the control bytes that are there.
    fn read(&mut self, net: &mut impl Net) {
        let mut bytes = [0; READ_BYTES];
        while self.end.is_none() && self.machine.wait_conditions().reads && self.broken.is_none() {
            let now = net.now();
            match net.read(&mut bytes) {
                Ok(0) => self.machine.handle(now, Input::Closed),
                Ok(count) => self.machine.handle(now, Input::Bytes(&bytes[..count])),
                Err(error) if is_pause(&error) => return,
                Err(error) => {
                    self.broken = Some(self.flows.connection_failure("receive from", &error));
                    self.machine.handle(now, Input::Closed);
                }
            }
            self.drain_outputs(net);
        }
    }

    /// Does everything that the machine wants; whether there was anything.
    fn drain_outputs(&mut self, net: &mut impl Net) -> bool {
        let mut any = false;
        while let Some(output) = self.machine.poll() {
            any = true;
            let now = net.now();
            match output {
                Output::Send(bytes) => {
                    if self.unsent.0.is_empty() {
                        self.unsent.1 = now;
                    }
                    self.unsent.0.extend(bytes);
                    self.flush_unsent(net);
                    continue;
                }
                Output::Failed(reason) => {
                    // What broke the connection says more than that it is closed.
                    let broken =
                        self.broken.take().filter(|_| matches!(reason, TestFailureReason::Closed));
                    let failure = broken.unwrap_or_else(|| self.flows.failure(reason));
                    self.give_up(now, failure);
                    continue;
                }
                Output::Finished => {
                    self.end.get_or_insert(Ok(()));
                }
                _ => {}
            }
            match self.flows.carry_out(now, output) {
                Ok(None) => {}
                Ok(Some(answer)) => self.tell_machine(net.now(), answer),
                Err(failure) => self.give_up(net.now(), failure),
            }
        }
        any
    }

    fn tell_machine(&mut self, now: MonoTime, answer: FlowsAnswer<F::Machine>) {
        match answer {
            FlowsAnswer::Decided(decided) => self.machine.handle(now, Input::Decided(decided)),
            FlowsAnswer::Opened => self.machine.handle(now, Input::Opened),
            FlowsAnswer::Counted(report) => self.machine.handle(now, Input::Counted(report)),
            FlowsAnswer::Tell(news) => {
                news.into_iter().for_each(|news| self.machine.handle(now, Input::Tell(news)));
            }
        }
    }

    fn give_up(&mut self, now: MonoTime, failure: Failure) {
        self.machine.handle(now, Input::GiveUp(&failure));
        self.end.get_or_insert(Err(failure));
    }

    /// Sends what there is room for.
    fn flush_unsent(&mut self, net: &mut impl Net) {
        let now = net.now();
        while !self.unsent.0.is_empty() {
            let error = match net.write(&self.unsent.0) {
                Ok(count) => {
                    self.unsent.0.drain(..count);
                    self.unsent.1 = now;
                    continue;
                }
                Err(error) if !is_pause(&error) => error,
                Err(_) if now.duration_since(self.unsent.1) < SEND_TIMEOUT => return,
                Err(error) => error,
            };
            self.unsent.0.clear();
            let failure = self.flows.connection_failure("send to", &error);
            self.give_up(now, failure);
        }
    }
}

/// Runs a session to its end.
pub(crate) fn run<F: Flows>(
    session: &mut TestSession<F>,
    net: &mut impl Net,
    stop: &Stop,
) -> Result<(), Failure> {
    loop {
        let stopped = stop.is_requested();
        if let Some(until) = session.run_turn(net, stopped) {
            net.wait(until, session.wants_bytes());
        } else if let Some(end) = session.take_outcome() {
            return end;
        }
    }
}

fn is_pause(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
