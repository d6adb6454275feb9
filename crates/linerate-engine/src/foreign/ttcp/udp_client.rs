//! A UDP test with `ttcp -r -u`: a short datagram, the data, short ones again.
//!
//! The receiver tells nothing, so the record has what was sent. Left out: a receiver that was told
//! to send, which ttcp does not have.

use std::net::SocketAddr;
use std::time::Duration;

use linerate_core::record::{Direction, Failure, Fault, TcpDirections, UdpPlan, UdpTest};
use linerate_core::time::MonoTime;
use linerate_proto::dialect::{FlowState, Output};
use linerate_proto::ttcp::{BEGIN_MARKS, END_MARKS, MARK_BYTES, Transmitter, TtcpMarks};

use super::Alone;
use crate::context::Context;
use crate::flow::account::Account;
use crate::flow::udp::layout::{DatagramLayout, Leaving, ParsedDatagram};
use crate::flow::{self, Flows, FlowsAnswer, TestSession};
use crate::foreign::marked_stream::{MarkedStream, StreamTarget};
use crate::foreign::test::remote_end;

/// Plain data. It begins as ttcp's does, so that a receiver which missed the begin can tell.
const LAYOUT: DatagramLayout = DatagramLayout {
    write,
    read: |_, _| ParsedDatagram::Stray,
    number_bits: 64,
    stamps_from_start: false,
    own: false,
};

fn write(datagram: &mut [u8], _leaving: Leaving, _tag: u16) {
    datagram.iter_mut().zip(b' '..=b'~').take(MARK_BYTES).for_each(|(to, byte)| *to = byte);
}

/// Measures with a receiving ttcp over UDP.
pub(crate) fn measure_udp(
    plan: &UdpPlan,
    server: SocketAddr,
    request: &UdpTest,
    context: &mut Context<'_>,
    account: &mut Account,
) -> Result<(), Failure> {
    check_request(request)?;
    let target = StreamTarget { plan, server, request, name: "ttcp", layout: LAYOUT };
    let stream = MarkedStream::with_open_socket(target, account)?;
    account.ends.push(remote_end(None));
    let interval = Duration::from_nanos(request.interval_ns);
    let machine = Transmitter::new(request.planned_span(), interval);
    let stop = context.stop.clone();
    let flows =
        TtcpUdpClient { stream, opens: false, ended: MonoTime::default(), context, account };
    let mut session = TestSession::new(machine, flows);
    let result = flow::run(&mut session, &mut Alone, &stop);
    let TtcpUdpClient { mut stream, account, .. } = session.flows;
    if stream.endpoint.has_started() {
        account.local = stream.end_threads();
    }
    result?;
    account.stream_failure().map_or(Ok(()), Err)
}

/// The stream of the transmitter.
struct TtcpUdpClient<'a, 'w> {
    stream: MarkedStream<'a>,
    /// The mark of the begin is not sent yet.
    opens: bool,
    /// When the last datagram had left.
    ended: MonoTime,
    context: &'a mut Context<'w>,
    account: &'a mut Account,
}

impl Flows for TtcpUdpClient<'_, '_> {
    type Machine = Transmitter;

    fn carry_out(
        &mut self,
        now: MonoTime,
        output: Output<Transmitter>,
    ) -> Result<Option<FlowsAnswer<Transmitter>>, Failure> {
        let Self { stream, opens, ended, context, account } = self;
        match output {
            Output::Open => {
                (*opens, stream.marks) = (true, Some(TtcpMarks::new(now, BEGIN_MARKS)));
                let peer = stream.target.server;
                stream.opened(Direction::Up, peer, context, account)?;
            }
            Output::Begin => account.begin = now,
            Output::Start => stream.start_threads(account.begin)?,
            Output::Sample => {
                account.local_interval(stream.samples(now), context.watch);
                // The receiver tells nothing, so rows show what was sent.
                account.remote_interval(Vec::new(), context.watch);
            }
            Output::StopSending => stream.endpoint.stop_sending(),
            Output::Ended => {
                (*ended, stream.marks) = (now, Some(TtcpMarks::new(now, END_MARKS)));
            }
            Output::Finished => {
                account.local_interval(stream.endpoint.sample(*ended), context.watch);
                account.local = stream.end_threads();
            }
            _ => {}
        }
        Ok(None)
    }

    fn answer(&mut self, now: MonoTime) -> Result<Option<FlowsAnswer<Transmitter>>, Failure> {
        self.stream.send_due(now);
        let marked = self.stream.marks.is_none_or(|marks| marks.is_over());
        let opened = self.opens && marked;
        self.opens &= !opened;
        Ok(opened.then_some(FlowsAnswer::Opened))
    }

    fn flow_state(&mut self, _: MonoTime) -> FlowState {
        FlowState { done: self.stream.is_done(), ..FlowState::default() }
    }

    fn peer_name(&self) -> String {
        self.stream.server()
    }
}

/// Refuses settings that the protocol has no place for.
fn check_request(request: &UdpTest) -> Result<(), Failure> {
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
        let mut datagram = [0xff; 20];
        write(&mut datagram, Leaving { number: 3, since_start_ns: 0, at: MonoTime::default() }, 0);
        assert_eq!(datagram[..6], *b" !\"#\xff\xff");
    }
}
