//! The client's end of a TCP test with a program whose data streams begin without a hello: ttcp,
//! iperf 2, nuttcp. What such a program does in its own way is its [`Dialect`].

use linerate_core::record::Failure;
use linerate_core::time::MonoTime;
use linerate_proto::dialect::{FlowState, Output};

use super::test::Test;
use crate::context::Context;
use crate::failure::system;
use crate::flow::account::Account;
use crate::flow::peer::plain_address;
use crate::flow::{self, Flows, FlowsAnswer, Net, TestSession, Words};

/// A program's own part in the client's end.
pub(super) trait Dialect {
    /// The machine of the program's protocol.
    type Machine: Words;

    /// True where the machine itself asks for a sample when the streams have ended.
    const SAMPLES_END: bool = false;

    /// Connects the streams, unless they are there.
    fn connect(
        &mut self,
        _test: &mut Test,
        _context: &mut Context<'_>,
        _account: &mut Account,
    ) -> Result<(), Failure> {
        Ok(())
    }

    /// Takes the news and counts of the other end.
    fn take_output(&mut self, _told: Output<Self::Machine>, _account: &mut Account) {}
}

/// The client's end of a test.
pub(super) struct ForeignTcpClient<'a, 'w, D> {
    pub(super) test: Test,
    pub(super) dialect: D,
    pub(super) context: &'a mut Context<'w>,
    pub(super) account: &'a mut Account,
}

impl<D: Dialect> ForeignTcpClient<'_, '_, D> {
    /// Runs the test over `net`; the end with what it measured, and how the test ended.
    pub(super) fn run(
        self,
        machine: D::Machine,
        net: &mut impl Net,
    ) -> (Self, Result<(), Failure>) {
        let stop = self.context.stop.clone();
        let mut session = TestSession::new(machine, self);
        let result = flow::run(&mut session, net, &stop);
        (session.flows, result)
    }
}

impl<D: Dialect> Flows for ForeignTcpClient<'_, '_, D> {
    type Machine = D::Machine;

    fn carry_out(
        &mut self,
        now: MonoTime,
        output: Output<D::Machine>,
    ) -> Result<Option<FlowsAnswer<D::Machine>>, Failure> {
        let Self { test, dialect, context, account } = self;
        match output {
            Output::Open => {
                dialect.connect(test, context, account)?;
                test.endpoint.prepare().map_err(|error| system(&error))?;
                return Ok(Some(FlowsAnswer::Opened));
            }
            Output::Ended if D::SAMPLES_END => {}
            Output::Ended => test.add_last_interval(now, context, account),
            told @ (Output::News(_) | Output::Peer(_)) => dialect.take_output(told, account),
            other => test.carry_out(now, &other, context, account)?,
        }
        Ok(None)
    }

    fn flow_state(&mut self, _: MonoTime) -> FlowState {
        let endpoint = &self.test.endpoint;
        let (received, moved) = (endpoint.received(), endpoint.moved_bytes());
        FlowState { received, moved, done: endpoint.is_done(), ..FlowState::default() }
    }

    fn peer_name(&self) -> String {
        plain_address(self.test.server)
    }
}
