//! A UDP test with `ttcp -r -u`: a short datagram, the data, short ones again.
//!
//! The receiver tells nothing, so the record has what was sent. Left out: a receiver that was told
//! to send, which ttcp does not have.

use std::net::SocketAddr;
use std::time::Duration;

use linerate_core::record::{Failure, Fault, TcpDirections, UdpPlan, UdpTest};
use linerate_proto::nuttcp::{Client, Parameters};
use linerate_proto::ttcp::{BEGIN_MARKS, END_MARKS, MARK_BYTES};

use super::Alone;
use crate::context::Context;
use crate::flow::account::Account;
use crate::flow::udp::layout::{Layout, Leaving, Read};
use crate::foreign::nuttcp::udp_client::{DatagramFormat, Target, UdpClient};
use crate::foreign::test::remote_end;

const TTCP: DatagramFormat = DatagramFormat {
    name: "ttcp",
    layout: LAYOUT,
    begin: BEGIN_MARKS,
    end: END_MARKS,
    opens: Duration::ZERO,
    shows_sent: true,
};

/// Plain data. It begins as ttcp's does, so that a receiver which missed the begin can tell.
const LAYOUT: Layout = Layout {
    write,
    read: |_, _| Read::Stray,
    number_bits: 64,
    stamps_from_start: false,
    own: false,
};

fn write(datagram: &mut [u8], _leaving: Leaving, _tag: u16) {
    datagram.iter_mut().zip(b' '..=b'~').take(MARK_BYTES).for_each(|(to, byte)| *to = byte);
}

/// Measures with a receiving ttcp over UDP.
pub(crate) fn measure_udp(
    (plan, server, request): (&UdpPlan, SocketAddr, &UdpTest),
    context: &mut Context<'_>,
    account: &mut Account,
) -> Result<(), Failure> {
    check(request)?;
    let flows = UdpClient::begin(Target { plan, server, request, format: TTCP }, context, account)?;
    flows.account.ends.push(remote_end(None));
    let parameters = Parameters { udp: true, ..Parameters::default() };
    let test = flows.test(parameters);
    flows.run(Client::alone(test), &mut Alone).map(|_| ())
}

/// What the protocol has a place for.
fn check(request: &UdpTest) -> Result<(), Failure> {
    let refuse = |reason: &str, advice: &str| {
        Err(Failure::new(Fault::Usage, "ask ttcp for", "a UDP test", reason).advise(advice))
    };
    if request.directions != TcpDirections::Up {
        return refuse("a listening ttcp only receives", "leave out -R and --bidir");
    }
    if request.streams > 1 {
        return refuse("it takes one stream", "omit -P");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_begins_as_the_pattern_does() {
        use linerate_core::time::MonoTime;

        let mut datagram = [0xff; 20];
        write(&mut datagram, Leaving { number: 3, since_start_ns: 0, at: MonoTime::default() }, 0);
        assert_eq!(datagram[..6], *b" !\"#\xff\xff");
    }
}
