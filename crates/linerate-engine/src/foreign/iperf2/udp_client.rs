//! A UDP test with `iperf -s -u`: datagrams of iperf 2's layout, the end, and the server's report.
//!
//! Each stream is a test of its own at the server. The report tells what arrived, so rows of
//! intervals show what was sent. Left out: tests in which the server sends.

use std::net::SocketAddr;
use std::sync::LazyLock;
use std::time::Duration;

use linerate_core::record::{
    DatagramTally, DelayVariation, Direction, Event, Failure, Fault, FlowEnd, ReceivedDatagrams,
    SentDatagrams, Side, TcpDirections, UdpPlan,
};
use linerate_core::time::MonoTime;
use linerate_proto::iperf2::{
    Amount, ClientHeader, Mode, REPORT_BYTES, Stamp, UdpReport, UdpSender,
};
use linerate_proto::native::{EndReport, Token, UdpRequest};
use linerate_sys::clock::{monotonic, realtime_offset_ns, sleep};
use linerate_sys::datagram_socket::{DatagramSocket, any_local};
use linerate_sys::poll::readable;

use crate::context::Context;
use crate::datagram::account::Account;
use crate::datagram::endpoint::{Endpoint, Place, open_socket};
use crate::datagram::layout::{Layout, Leaving, Read};
use crate::foreign::test::remote_end;
use crate::path::witness::Witness;
use crate::throughput::client::bind_address;
use crate::throughput::session::LOOK_AT_END;

/// Bytes of a datagram that the numbers and the header's flags take.
const SIZE_MIN: u32 = 28;
/// Numbers and header.
const HEAD_BYTES: usize = 76;
/// The end is said again after this, until the report comes, as iperf 2.1 does it.
const AGAIN: Duration = Duration::from_millis(10);
/// The report has this long to come.
const REPORT_TIMEOUT: Duration = Duration::from_secs(2);
/// After its planned end a sender has this long for its last datagrams.
const GRACE: Duration = Duration::from_secs(10);

/// Datagrams as iperf 2.0.10 and newer lay them out.
const LAYOUT: Layout = Layout {
    write,
    read: |_, _| Read::Stray,
    number_bits: 64,
    stamps_from_start: false,
    own: false,
};

/// The header is the same in every datagram: its amount binds only servers that send.
fn sender() -> UdpSender {
    UdpSender::new(ClientHeader::new(Mode::Forward, Amount::Centiseconds(1000)))
}

fn write(datagram: &mut [u8], leaving: Leaving, _tag: u16) {
    static HEAD: LazyLock<Vec<u8>> = LazyLock::new(|| sender().buffer(HEAD_BYTES));
    let length = HEAD_BYTES.min(datagram.len());
    datagram[..length].copy_from_slice(&HEAD[..length]);
    let number = i64::try_from(leaving.number + 1).unwrap_or(i64::MAX);
    Stamp { number, sent_us: wall_us(leaving.at) }.write(datagram);
}

/// iperf 2 stamps by the wall clock.
fn wall_us(at: MonoTime) -> u64 {
    let ns = at.nanos().cast_signed().saturating_add(realtime_offset_ns());
    ns.cast_unsigned() / 1000
}

/// Measures with a server of iperf 2 over UDP.
pub(crate) fn measure_udp(
    (plan, server, request): (&UdpPlan, SocketAddr, &UdpRequest),
    context: &mut Context<'_>,
    account: &mut Account,
) -> Result<(), Failure> {
    let refuse = |reason: &str, advice: &str| {
        Err(Failure::new(Fault::Usage, "ask iperf2 for", "a UDP test", reason).advise(advice))
    };
    if request.directions != TcpDirections::Up {
        return refuse("only from here to the server", "leave out -R and --bidir");
    }
    if request.size_bytes < SIZE_MIN {
        return refuse("datagrams below 28 bytes have no header", "give -l 28 or more");
    }
    if request.omit_ns > 0 {
        return refuse("its report counts from the start", "leave out -O");
    }
    account.ends.push(crate::environment::local_end(Some(server.ip())));
    account.ends.push(remote_end(None));
    account.witness = Some(Witness::begin(server.ip()));
    account.size_bytes = request.size_bytes;
    account.planned_ns = request.planned_span().map(|span| span.as_nanos() as u64);
    let mut endpoint = Endpoint::with_layout(request.clone(), LAYOUT, plan.cpu);
    open_streams(&mut endpoint, (plan, server, request), context, account)?;
    account.begin = monotonic();
    let started = endpoint.start_senders(account.begin);
    started.map_err(|error| crate::failure::system(&error))?;
    let result = follow(&endpoint, request, context, account);
    let reports = result.is_ok().then(|| reports(&endpoint, request.size_bytes));
    account.local = endpoint.finish();
    result?;
    let reports = reports.unwrap_or_default();
    let silent = reports.iter().any(Option::is_none);
    account.remote = account
        .local
        .iter()
        .zip(reports)
        .filter_map(|(own, told)| Some(remote_report(own, &told?, request.size_bytes)))
        .collect();
    if silent {
        let failure = "no report came; is it `iperf -s -u`?";
        return Err(Failure::new(Fault::Unreachable, "hear from", server.to_string(), failure)
            .advise("what was sent is kept"));
    }
    account.stream_failure().map_or(Ok(()), Err)
}

fn open_streams(
    endpoint: &mut Endpoint,
    (plan, server, request): (&UdpPlan, SocketAddr, &UdpRequest),
    context: &mut Context<'_>,
    account: &mut Account,
) -> Result<(), Failure> {
    let local = bind_address(plan.bind.as_deref())?;
    for flow in 0..request.streams {
        let local = local.map_or_else(|| any_local(server), |ip| SocketAddr::new(ip, 0));
        let socket = open_socket(request, local)
            .and_then(|socket| socket.connect(server).map(|()| socket))
            .map_err(|error| crate::failure::system(&error))?;
        let client_addr = socket.local_address().map_or_else(String::new, |addr| addr.to_string());
        let direction = Direction::Up;
        account.connected((direction, flow), &client_addr, server, socket.mtu_bytes());
        let place = Place { direction, flow, side: Side::Sender, client_addr };
        endpoint.add(socket, place, Token([0; 16]));
    }
    let noun = if request.streams == 1 { "stream" } else { "streams" };
    let (streams, size) = (request.streams, request.size_bytes);
    let line = format!("{streams} UDP {noun} to {server}, iperf2, datagrams of {size} bytes");
    (context.watch)(&Event::Connected(line));
    Ok(())
}

/// Takes samples until every sender is done.
fn follow(
    endpoint: &Endpoint,
    request: &UdpRequest,
    context: &mut Context<'_>,
    account: &mut Account,
) -> Result<(), Failure> {
    let begin = account.begin;
    let interval = Duration::from_nanos(request.interval_ns);
    let mut give_up = request.planned_span().map(|span| begin + span + GRACE);
    let (mut tick, mut stopping) = (begin + interval, false);
    while !endpoint.is_done() {
        let now = monotonic();
        if now >= tick {
            account.local_interval(endpoint.sample(now), context.watch);
            account.remote_interval(Vec::new(), context.watch);
            tick += interval;
        }
        if context.stop.asked() && !stopping {
            stopping = true;
            endpoint.stop_sending();
            give_up = Some(now + GRACE);
        }
        if give_up.is_some_and(|end| now >= end) {
            let reason = "the last datagrams did not leave in time";
            return Err(Failure::new(Fault::System, "send", "UDP", reason));
        }
        sleep(LOOK_AT_END.min(tick.since(now)));
    }
    account.local_interval(endpoint.sample(monotonic()), context.watch);
    Ok(())
}

/// The report on each stream, where one came.
fn reports(endpoint: &Endpoint, size_bytes: u32) -> Vec<Option<UdpReport>> {
    let sent = endpoint.sent().unwrap_or_default();
    let sent = sent.iter().map(|sent| sent.datagrams);
    endpoint.sockets().zip(sent).map(|(socket, sent)| report(socket, sent, size_bytes)).collect()
}

/// Says the end until the server's report comes.
fn report(socket: &DatagramSocket, sent: u64, size_bytes: u32) -> Option<UdpReport> {
    let mut datagram = sender().buffer(size_bytes as usize);
    let deadline = monotonic() + REPORT_TIMEOUT;
    let mut number = i64::try_from(sent).unwrap_or(i64::MAX - (1 << 20)) + 1;
    while monotonic() < deadline {
        Stamp { number: -number, sent_us: wall_us(monotonic()) }.write(&mut datagram);
        number += 1;
        // One that is refused or finds no room is said again.
        let _ = socket.send(&datagram);
        if !readable(socket, AGAIN).unwrap_or(false) {
            continue;
        }
        let mut answer = [0; REPORT_BYTES];
        if let Ok(Some((length, _))) = socket.receive_from(&mut answer)
            && let Some(report) = UdpReport::parse(&answer[..length])
        {
            return Some(report);
        }
    }
    None
}

/// What the server counted, without the end, which it counts as a datagram. Its bytes are those
/// that its buffer had room for (1470 unless told otherwise), so datagrams are counted.
fn remote_report(own: &EndReport, told: &UdpReport, size_bytes: u32) -> EndReport {
    let sent = own.end.sent_datagrams.as_ref().map(|sent: &SentDatagrams| sent.measured);
    // Copies are among those out of order, and cannot be told apart.
    let received = told.datagrams.saturating_sub(1).saturating_sub(told.lost);
    let bytes = received * u64::from(size_bytes);
    let lost = sent.map_or(told.lost, |sent| sent.saturating_sub(received));
    let tally = DatagramTally {
        sent,
        received,
        lost,
        reordered: told.out_of_order,
        ..DatagramTally::default()
    };
    let delay = (received > 1).then(|| DelayVariation {
        n: received,
        jitter_ns: Some(told.jitter_us * 1000),
        ..DelayVariation::default()
    });
    let received_datagrams = Some(ReceivedDatagrams {
        size_bytes,
        all: tally,
        measured: tally,
        delay,
        ..ReceivedDatagrams::default()
    });
    let span_ns = own.end.span_ns.min(told.span_us.saturating_mul(1000));
    let end = FlowEnd {
        bytes,
        bytes_measured: bytes,
        span_ns,
        received_datagrams,
        technique: "iperf 2".to_owned(),
        ..FlowEnd::default()
    };
    EndReport { end, syn: None, failure: None, stolen_ratio: None, ..own.clone() }
}

#[cfg(test)]
mod tests {
    use linerate_proto::iperf2::Layout as Wire;

    use super::*;

    #[test]
    fn a_datagram_has_its_number_from_1_and_a_header_of_64_bits() {
        let mut datagram = vec![b'x'; 200];
        write(&mut datagram, Leaving { number: 4, since_start_ns: 0, at: monotonic() }, 0);
        assert_eq!(Wire::of(&datagram), Wire::Wide);
        assert_eq!(Stamp::parse(&datagram, Wire::Wide).map(|stamp| stamp.number), Some(5));
        assert_eq!(datagram[76..], vec![b'x'; 124], "the payload is left alone");
    }
}
