//! A TCP test with `ttcp -r`: a connection full of data.

use std::convert::Infallible;
use std::time::Duration;

use linerate_core::record::{Direction, Failure, Fault, FlowSide, TcpDirections, TcpPlan};
use linerate_proto::dialect::TestFailureReason;
use linerate_proto::ttcp::{Transmitter, pattern};

use super::Alone;
use crate::context::Context;
use crate::flow::Words;
use crate::flow::account::Account;
use crate::flow::tcp::endpoint::StreamRules;
use crate::foreign::tcp_client::{Dialect, ForeignTcpClient};
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
    let test = Test::from_plan(plan, RULES, account)?;
    account.ends.push(remote_end(None));
    let interval = Duration::from_nanos(plan.test.interval_ns);
    let machine = Transmitter::new(test.request.planned_span(), interval);
    let end = ForeignTcpClient { test, dialect: Ttcp { plan }, context, account };
    let (end, result) = end.run(machine, &mut Alone);
    end.test.finish_if_started(result, end.context, end.account)
}

/// The transmitter's own part: one stream.
struct Ttcp<'a> {
    plan: &'a TcpPlan,
}

impl Dialect for Ttcp<'_> {
    type Machine = Transmitter;

    fn connect(
        &mut self,
        test: &mut Test,
        context: &mut Context<'_>,
        account: &mut Account,
    ) -> Result<(), Failure> {
        let socket = test.connect(test.server, FlowSide::Sender)?;
        test.add(socket, Direction::Up, 0, account);
        test.connected(self.plan, context);
        Ok(())
    }
}

impl Words for Transmitter {
    fn failure(receiver: &str, reason: TestFailureReason<Infallible>) -> Failure {
        let unreachable = |attempt, why| Failure::new(Fault::Unreachable, attempt, receiver, why);
        match reason {
            TestFailureReason::Stopped => unreachable("test with", "stopped before the test began"),
            _ => unreachable("send to", "the data did not end in time")
                .advise("the results so far are kept"),
        }
    }
}
