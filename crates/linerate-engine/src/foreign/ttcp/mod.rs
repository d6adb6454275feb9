//! ttcp from the transmitter's side (spec/ttcp.md): a test of nuttcp, its heir, whose other end
//! says nothing. Its receiver is served with iperf 2's port.

mod udp_client;
mod udp_receiver;

pub(crate) use udp_client::measure_udp;
pub use udp_receiver::UdpListener;

use std::io;
use std::time::Duration;

use linerate_core::record::{Direction, Failure, TcpDirections, TcpPlan};
use linerate_core::time::MonoTime;
use linerate_proto::nuttcp::{Client, ClientTest, Parameters, Summary};
use linerate_proto::ttcp::pattern;
use linerate_sys::clock::{monotonic, sleep};

use super::nuttcp::client::TcpClient;
use crate::context::Context;
use crate::flow::Net;
use crate::flow::account::Account;
use crate::flow::tcp::endpoint::StreamRules;
use crate::foreign::test::{Test, refuse, remote_end};

/// The manner of ttcp: printable characters, and nothing is ever reported.
const RULES: StreamRules =
    StreamRules { content: pattern, one_sided: true, shares: false, round_robin: false };

/// Measures with a receiving ttcp.
pub(crate) fn measure(
    plan: &TcpPlan,
    context: &mut Context<'_>,
    account: &mut Account,
) -> Result<(), Failure> {
    if plan.test.directions != TcpDirections::Up {
        let reason = "a listening ttcp only receives".to_owned();
        return Err(refuse(reason).advise(
            "in that direction use linerate ttcp -r here, ttcp -t \
                                          there",
        ));
    }
    if plan.test.streams != 1 {
        return Err(refuse("ttcp takes one stream".to_owned()).advise("omit -P"));
    }
    let test = Test::of(plan, RULES, account)?;
    account.ends.push(remote_end(None));
    let asked = ClientTest {
        parameters: Parameters::default(),
        span: test.request.planned_span(),
        interval: Duration::from_nanos(plan.test.interval_ns),
    };
    let flows = TcpClient {
        plan,
        direction: Direction::Up,
        port: test.server.port(),
        listens: Duration::ZERO,
        test,
        context,
        account,
        told: None,
        summary: Summary::default(),
    };
    flows.run(Client::alone(asked), &mut Alone).map(|_| ())
}

/// A test without a control connection: the clock alone.
struct Alone;

impl Net for Alone {
    fn now(&self) -> MonoTime {
        monotonic()
    }

    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::ErrorKind::WouldBlock.into())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn wait(&mut self, until: MonoTime, _: bool) {
        sleep(until.since(monotonic()));
    }
}
