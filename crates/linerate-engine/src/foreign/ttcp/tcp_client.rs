//! A TCP test with `ttcp -r`: a connection full of data.

use std::convert::Infallible;
use std::time::Duration;

use linerate_core::record::{Direction, Failure, Fault, Side, TcpDirections, TcpPlan};
use linerate_core::time::MonoTime;
use linerate_proto::dialect::{FlowState, Output, Reason};
use linerate_proto::ttcp::{Transmitter, pattern};

use super::Alone;
use crate::context::Context;
use crate::flow::account::Account;
use crate::flow::peer::plain;
use crate::flow::tcp::endpoint::StreamRules;
use crate::flow::{self, Answer, Flows, Session, Words};
use crate::foreign::test::{Test, refuse, remote_end};

/// Printable characters, and nothing is ever reported.
const RULES: StreamRules = StreamRules {
    content: pattern,
    one_sided: true,
    shares: false,
    round_robin: false,
    steady: false,
};

/// Measures with a receiving ttcp.
pub(crate) fn measure(
    plan: &TcpPlan,
    context: &mut Context<'_>,
    account: &mut Account,
) -> Result<(), Failure> {
    if plan.test.directions != TcpDirections::Up {
        let failure = refuse("a listening ttcp only receives".to_owned());
        return Err(failure.advise("in that direction use linerate ttcp -r here, ttcp -t there"));
    }
    if plan.test.streams != 1 {
        return Err(refuse("ttcp takes one stream".to_owned()).advise("omit -P"));
    }
    let test = Test::of(plan, RULES, account)?;
    account.ends.push(remote_end(None));
    let interval = Duration::from_nanos(plan.test.interval_ns);
    let machine = Transmitter::new(test.request.planned_span(), interval);
    let stop = context.stop.clone();
    let mut session = Session::new(machine, TcpClient { plan, test, context, account });
    let result = flow::run(&mut session, &mut Alone, &stop);
    let TcpClient { test, context, account, .. } = session.flows;
    if test.endpoint.has_started() { test.finish(result, context, account) } else { result }
}

/// The transmitter's stream.
struct TcpClient<'a, 'w> {
    plan: &'a TcpPlan,
    test: Test,
    context: &'a mut Context<'w>,
    account: &'a mut Account,
}

impl Flows for TcpClient<'_, '_> {
    type Machine = Transmitter;

    fn carry_out(
        &mut self,
        now: MonoTime,
        output: Output<Transmitter>,
    ) -> Result<Option<Answer<Transmitter>>, Failure> {
        let Self { plan, test, context, account } = self;
        match output {
            Output::Open => {
                let socket = test.connect(test.server, Side::Sender)?;
                test.add(socket, (Direction::Up, 0), account);
                test.connected(plan, context);
                test.endpoint.prepare().map_err(|error| crate::failure::system(&error))?;
                return Ok(Some(Answer::Opened));
            }
            Output::Ended => test.add_last_interval(now, context, account),
            other => test.carry_out((now, &other), context, account)?,
        }
        Ok(None)
    }

    fn state(&mut self, _: MonoTime) -> FlowState {
        FlowState { done: self.test.endpoint.is_done(), ..FlowState::default() }
    }

    fn peer(&self) -> String {
        plain(self.test.server)
    }
}

impl Words for Transmitter {
    fn failure(receiver: &str, reason: Reason<Infallible>) -> Failure {
        let unreachable = |attempt, why| Failure::new(Fault::Unreachable, attempt, receiver, why);
        match reason {
            Reason::Stopped => unreachable("test with", "stopped before the test began"),
            _ => unreachable("send to", "the data did not end in time")
                .advise("the results so far are kept"),
        }
    }
}
