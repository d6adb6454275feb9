//! ttcp from the transmitter's side (spec/ttcp.md); its receiver is served with iperf 2's port.

mod udp_client;
mod udp_receiver;

pub(crate) use udp_client::measure_udp;
pub use udp_receiver::UdpListener;

use linerate_core::record::{Direction, Failure, Side, TcpDirections, TcpPlan};
use linerate_proto::ttcp::pattern;

use crate::context::Context;
use crate::flow::account::Account;
use crate::flow::tcp::endpoint::Manner;
use crate::foreign::test::{Test, refuse, remote_end};

/// The manner of ttcp: printable characters, and nothing is ever reported.
const MANNER: Manner = Manner { content: pattern, one_sided: true, shares: false, dealt: false };

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
    let mut test = Test::of(plan, MANNER, account)?;
    account.ends.push(remote_end(None));
    let socket = test.connect(test.server, Side::Sender)?;
    test.add(socket, (Direction::Up, 0), account);
    test.connected(plan, context);
    let result = test.start(account).and_then(|()| test.follow(context, account, &mut |_| Ok(())));
    test.finish(result, account)
}
