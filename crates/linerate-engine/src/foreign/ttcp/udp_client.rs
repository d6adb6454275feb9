//! A UDP test with `ttcp -r -u`: a short datagram, the data, short ones again.
//!
//! The receiver tells nothing, so the record has what was sent. Left out: a receiver that was told
//! to send, which ttcp does not have.

use std::net::SocketAddr;
use std::time::Duration;

use linerate_core::record::{
    Direction, Event, Failure, Fault, Side, TcpDirections, UdpPlan, UdpTest,
};
use linerate_proto::native::Token;
use linerate_proto::ttcp::{MARK_BYTES, marks_end_after, pattern};
use linerate_sys::clock::{monotonic, sleep};
use linerate_sys::datagram_socket::{DatagramSocket, any_local};

use crate::context::Context;
use crate::flow::Sample;
use crate::flow::account::Account;
use crate::flow::tcp::client::bind_address;
use crate::flow::udp::client::Told;
use crate::flow::udp::endpoint::{Endpoint, Place, open_socket};
use crate::flow::udp::layout::{Layout, Leaving, Read};
use crate::foreign::iperf3::sent_rows::SentRows;
use crate::foreign::sending::follow_senders;
use crate::foreign::test::remote_end;
use crate::path::witness::Witness;

/// Pause before each of the last marks: a receiver that the data has drowned takes one of them.
const MARK_PAUSE: Duration = Duration::from_millis(50);

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
    account.ends.push(crate::environment::local_end(Some(server.ip())));
    account.ends.push(remote_end(None));
    account.witness = Some(Witness::begin(server.ip()));
    account.size_bytes = request.size_bytes;
    account.planned_ns = request.planned_span().map(|span| span.as_nanos() as u64);
    let local = bind_address(plan.bind.as_deref())?;
    let local = local.map_or_else(|| any_local(server), |ip| SocketAddr::new(ip, 0));
    let socket = open_socket(request, local)
        .and_then(|socket| socket.connect(server).map(|()| socket))
        .map_err(|error| crate::failure::system(&error))?;
    let client_addr = socket.local_address().map_or_else(String::new, |addr| addr.to_string());
    let (direction, side) = (Direction::Up, Side::Sender);
    account.route_mtu_bytes = socket.mtu_bytes();
    account.connected(direction, 0, &client_addr, server);
    let size = request.size_bytes;
    let line = format!("1 UDP stream to {server}, ttcp, datagrams of {size} bytes");
    (context.watch)(&Event::Connected(line));
    let mut endpoint = Endpoint::with_layout(request.clone(), LAYOUT, plan.cpu);
    endpoint.add(socket, Place { direction, flow: 0, side, client_addr }, Token([0; 16]));
    endpoint.sockets().for_each(mark);
    account.begin = monotonic();
    let started = endpoint.start_senders(account.begin);
    started.map_err(|error| crate::failure::system(&error))?;
    let result = follow(&endpoint, request, context, account);
    for _ in 0..=marks_end_after() {
        endpoint.sockets().for_each(mark);
        sleep(MARK_PAUSE);
    }
    account.local = endpoint.finish();
    result?;
    account.stream_failure().map_or(Ok(()), Err)
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

/// Rows of what was sent until the sender is done.
fn follow(
    endpoint: &Endpoint,
    request: &UdpTest,
    context: &mut Context<'_>,
    account: &mut Account,
) -> Result<(), Failure> {
    let mut rows = SentRows::default();
    let mut each = |samples: Option<Vec<Sample>>, (context, account): Told<'_, '_>| {
        let Some(samples) = samples else { return Ok(()) };
        let about = (request.size_bytes, request.omit_ns);
        let rows = rows.next(&samples, Direction::Up, about);
        rows.into_iter().for_each(|row| (context.watch)(&Event::Interval(row)));
        account.local_interval(samples, context.watch);
        account.remote_interval(Vec::new(), context.watch);
        Ok(())
    };
    follow_senders((endpoint, request), (&mut *context, &mut *account), &mut each)?;
    account.local_interval(endpoint.sample(monotonic()), context.watch);
    Ok(())
}

fn mark(socket: &DatagramSocket) {
    let mark = pattern(MARK_BYTES);
    // An error is that of a datagram before: it is told once, and this one leaves.
    if socket.send_when_room(&mark).is_err() {
        let _ = socket.send_when_room(&mark);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_begins_as_the_pattern_does() {
        let mut datagram = [0xff; 20];
        write(&mut datagram, Leaving { number: 3, since_start_ns: 0, at: monotonic() }, 0);
        assert_eq!(datagram[..6], *b" !\"#\xff\xff");
    }
}
