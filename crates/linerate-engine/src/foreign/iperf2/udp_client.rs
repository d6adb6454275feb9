//! A UDP test with `iperf -s -u`: datagrams of iperf 2's layout, the end, and the server's report.
//!
//! Each stream is a test of its own at the server. The report tells what arrived there, so rows of
//! that way show what was sent. A server that sends tells its end by a negative number.

use std::net::SocketAddr;
use std::time::Duration;

use linerate_core::record::{
    DatagramTally, DelayVariation, Direction, EndReport, Event, Failure, Fault, Finish, FlowEnd,
    ReceivedDatagrams, Record, SentDatagrams, StreamOpened, TcpDirections, UdpPlan, UdpTest,
};
use linerate_core::time::MonoTime;
use linerate_core::units::BitRate;
use linerate_proto::iperf2::{
    Amount, ClientHeader, Mode, PROOF_BYTES, TIMED_BYTES_MIN, UdpReport, UdpSender,
    answered_cookie, put_cookie,
};
use linerate_proto::native::Token;
use linerate_sys::clock::{monotonic, sleep};
use linerate_sys::datagram_socket::any_local;
use linerate_sys::poll::readable;
use linerate_sys::stop::Stop;

use super::client::{Return, time};
use super::udp_arrivals::{AGAIN, Arrivals, FIRST, no_data};
use super::udp_end;
use super::udp_layout::{DATAGRAM_BYTES, LAYOUT, UNPACED_BPS, wall_us};
use crate::context::Context;
use crate::flow::account::{Account, client_side};
use crate::flow::tcp::client::bind_address;
use crate::flow::tcp::control::plain;
use crate::flow::tcp::endpoint::share;
use crate::flow::tcp::session::LOOK_AT_END;
use crate::flow::udp::client::{checked_request, run_by};
use crate::flow::udp::endpoint::{Endpoint, Place, open_socket};
use crate::foreign::iperf3::sent_rows::SentRows;
use crate::foreign::test::remote_end;
use crate::path::witness::Witness;

/// Bytes of a datagram that the numbers and the header's flags take.
const SIZE_MIN: u32 = 28;
/// After its planned end a test has this long for its last datagrams.
const GRACE: Duration = Duration::from_secs(10);

/// What a UDP test has beside its plan.
#[derive(Clone, Copy, Debug, Default)]
pub struct UdpExtras {
    /// The server sends on a stream of its own to the caller, who listens (`-d`, `-r`).
    pub back: Option<Return>,
    /// Both ends compare their clocks (`--trip-times`).
    pub trip_times: bool,
}

/// Measures with a server of iperf 2 over UDP.
pub(crate) fn measure_udp(
    (plan, server, request): (&UdpPlan, SocketAddr, &UdpTest),
    context: &mut Context<'_>,
    account: &mut Account,
) -> Result<(), Failure> {
    let extras = UdpExtras::default();
    Test::of((plan, server, request), extras)?.measure(context, account).map(|_| ())
}

/// The same with what only iperf 2 has, and the server's reports as they came.
pub fn run_udp(
    plan: &UdpPlan,
    extras: UdpExtras,
    context: &mut Context<'_>,
) -> (Record, Vec<UdpReport>) {
    let mut reports = Vec::new();
    let record = run_by(plan, context, |plan, server, (context, account)| {
        let request = checked_request(plan)?;
        reports = Test::of((plan, server, &request), extras)?.measure(context, account)?;
        Ok(())
    });
    (record, reports)
}

struct Test<'a> {
    plan: &'a UdpPlan,
    server: SocketAddr,
    request: &'a UdpTest,
    mode: Mode,
    sender: UdpSender,
    endpoint: Endpoint,
    sent_rows: SentRows,
    /// What proves the own address to a server that wants that.
    cookie: Option<u64>,
}

impl<'a> Test<'a> {
    fn of(
        (plan, server, request): (&'a UdpPlan, SocketAddr, &'a UdpTest),
        extras: UdpExtras,
    ) -> Result<Self, Failure> {
        let mode = match (extras.back, request.directions) {
            (Some(back), _) if back.at_once => Mode::Dual,
            (Some(_), _) => Mode::TradeOff,
            (None, TcpDirections::Up) => Mode::Forward,
            (None, TcpDirections::Down) => Mode::Reverse,
            (None, TcpDirections::Both) => Mode::FullDuplex,
        };
        check(request, mode, extras)?;
        let header = ClientHeader {
            threads: request.streams.into(),
            listen_port: extras.back.map_or_else(|| server.port(), |back| back.port),
            buffer_bytes: request.size_bytes.min(DATAGRAM_BYTES),
            rate_bps: request.pace.map_or(UNPACED_BPS, BitRate::bits_per_sec),
            service_type: request.dscp.unwrap_or(0) << 2,
            trip_times: extras.trip_times.then(|| wall_us(monotonic())),
            ..ClientHeader::new(mode, amount(request, 0)?)
        };
        let sender = UdpSender::new(header);
        let mut endpoint = Endpoint::with_layout(request.clone(), LAYOUT, plan.cpu);
        endpoint.begin_with(&sender.head());
        let sent_rows = SentRows::default();
        Ok(Self { plan, server, request, mode, sender, endpoint, sent_rows, cookie: None })
    }

    fn measure(
        mut self,
        context: &mut Context<'_>,
        account: &mut Account,
    ) -> Result<Vec<UdpReport>, Failure> {
        account.ends.push(crate::environment::local_end(Some(self.server.ip())));
        account.ends.push(remote_end(None));
        account.witness = Some(Witness::begin(self.server.ip()));
        account.size_bytes = self.request.size_bytes;
        account.planned_ns = self.request.planned_span().map(|span| span.as_nanos() as u64);
        self.open_streams(context, account)?;
        let asked = self.prove(context.stop.clone())?;
        let started = self.endpoint.start_receivers();
        started.map_err(|error| crate::failure::system(&error))?;
        account.begin = monotonic();
        self.ask(&(asked..self.request.streams).collect::<Vec<_>>());
        let started = self.endpoint.start_senders(account.begin);
        started.map_err(|error| crate::failure::system(&error))?;
        let result = self.follow(context, account);
        account.local = self.endpoint.finish();
        let reports = result?;
        let silent = reports.iter().any(Option::is_none);
        account.remote = remote_reports(&account.local, &reports, self.request.size_bytes);
        if silent {
            let reason = "no report came; is it `iperf -s -u`?";
            let server = self.server.to_string();
            return Err(Failure::new(Fault::Unreachable, "hear from", server, reason)
                .advise("the counts of what was sent are kept"));
        }
        let reports = reports.into_iter().flatten().collect();
        account.stream_failure().map_or(Ok(reports), Err)
    }

    fn open_streams(
        &mut self,
        context: &mut Context<'_>,
        account: &mut Account,
    ) -> Result<(), Failure> {
        let (request, server) = (self.request, self.server);
        let local = bind_address(self.plan.bind.as_deref())?;
        for flow in 0..request.streams {
            let local = local.map_or_else(|| any_local(server), |ip| SocketAddr::new(ip, 0));
            let socket = open_socket(request, local)
                .and_then(|socket| socket.connect(server).map(|()| socket))
                .map_err(|error| crate::failure::system(&error))?;
            let client_addr = socket.local_address().map_or_else(String::new, plain);
            let (sndbuf_bytes, rcvbuf_bytes) = socket.buffers();
            for direction in request.each_direction().iter().copied() {
                let socket = socket.try_clone().map_err(|error| crate::failure::system(&error))?;
                account.route_mtu_bytes = socket.mtu_bytes();
                account.connected(direction, flow, &client_addr, server);
                (context.watch)(&Event::Stream(StreamOpened {
                    direction,
                    flow,
                    local_addr: client_addr.clone(),
                    remote_addr: server.to_string(),
                    mss_bytes: None,
                    sndbuf_bytes,
                    rcvbuf_bytes,
                    session: None,
                }));
                let side = client_side(direction);
                let place = Place { direction, flow, side, client_addr: client_addr.clone() };
                self.endpoint.add(socket, place, Token([0; 16]));
            }
        }
        let noun = if request.streams == 1 { "stream" } else { "streams" };
        let (streams, size) = (request.streams, request.size_bytes);
        let line = format!("{streams} UDP {noun} to {server}, iperf2, datagrams of {size} bytes");
        (context.watch)(&Event::Connected(line));
        Ok(())
    }

    /// Asks a server that is to send for its cookie, on the first stream. A server of iperf begins
    /// to send instead, and what came stays where it is. Returns how many streams are asked.
    fn prove(&mut self, stop: Stop) -> Result<u16, Failure> {
        if self.mode != Mode::Reverse {
            return Ok(0);
        }
        let deadline = monotonic() + FIRST;
        while monotonic() < deadline && !stop.asked() {
            self.ask(&[0]);
            let Some(socket) = self.endpoint.sockets().next() else { break };
            if !readable(socket, AGAIN).unwrap_or(false) {
                continue;
            }
            let mut first = [0; PROOF_BYTES];
            match socket.peek_from(&mut first) {
                Ok(Some((length, _))) => {
                    self.cookie = answered_cookie(&first[..length]);
                    let asked = if self.cookie.is_some() { 0 } else { 1 };
                    return Ok(asked);
                }
                // A refusal is told at once; the server may be there a moment later.
                _ => sleep(AGAIN),
            }
        }
        Err(no_data(self.server))
    }

    /// Sends the datagram that makes a server send, where a stream sends nothing else.
    fn ask(&self, flows: &[u16]) {
        if self.mode != Mode::Reverse {
            return;
        }
        let size = (self.request.size_bytes as usize).max(PROOF_BYTES);
        let streams = self.endpoint.sockets().zip(0..);
        for (socket, flow) in streams.filter(|(_, flow)| flows.contains(flow)) {
            let header = self.sender.header();
            let amount = amount(self.request, flow).unwrap_or(header.amount);
            let mut sender = UdpSender::new(ClientHeader { amount, ..header });
            let mut datagram = sender.buffer(size);
            put_cookie(&mut datagram, self.cookie.unwrap_or(0));
            sender.stamp(&mut datagram, wall_us(monotonic()));
            // One that is lost is sent again while nothing comes.
            let _ = socket.send(&datagram);
        }
    }

    /// Takes samples until everybody is done; the reports of those that make one.
    fn follow(
        &mut self,
        context: &mut Context<'_>,
        account: &mut Account,
    ) -> Result<Vec<Option<UdpReport>>, Failure> {
        let begin = account.begin;
        let interval = Duration::from_nanos(self.request.interval_ns);
        let planned = self.request.planned_span().map(|span| begin + span);
        let mut give_up = planned.map(|end| end + GRACE);
        let (mut tick, mut stopping) = (begin + interval, false);
        let mut arrivals = Arrivals::new(begin, planned, self.server, gap(self.request));
        let mut ended = (self.mode == Mode::Reverse).then(Vec::new);
        loop {
            let now = monotonic();
            if now >= tick {
                self.sample(now, context, account);
                tick += interval;
            }
            if context.stop.asked() && !stopping {
                stopping = true;
                self.endpoint.stop_sending();
                arrivals.stop();
                give_up = Some(now + GRACE);
            }
            if ended.is_none() && self.endpoint.sent().is_some() {
                ended = Some(self.end());
            }
            self.ask(&arrivals.look(&self.endpoint, now)?);
            if let Some(reports) = ended.take_if(|_| self.endpoint.is_done()) {
                self.sample(monotonic(), context, account);
                return Ok(reports);
            }
            if give_up.is_some_and(|end| now >= end) {
                let reason = "the last datagrams did not leave or come in time";
                return Err(Failure::new(Fault::System, "exchange", "UDP", reason));
            }
            sleep(LOOK_AT_END.min(tick.since(now)));
        }
    }

    fn sample(&mut self, now: MonoTime, context: &mut Context<'_>, account: &mut Account) {
        let samples = self.endpoint.sample(now);
        let rows = self.sent_rows.next(&samples, Direction::Up, (self.request.size_bytes, 0));
        let planned_ns = account.planned_ns.unwrap_or(u64::MAX);
        let whole = rows.into_iter().filter(|row| {
            row.start_ns < planned_ns && row.end_ns - row.start_ns >= account.row_ns_min
        });
        whole.for_each(|row| (context.watch)(&Event::Interval(row)));
        account.local_interval(samples, context.watch);
        account.remote_interval(Vec::new(), context.watch);
    }

    /// Ends every sending stream; the reports where there are any.
    fn end(&self) -> Vec<Option<UdpReport>> {
        let head = self.sender.head();
        let about = (head.as_slice(), self.request.size_bytes as usize);
        let sent = self.endpoint.sent().unwrap_or_default();
        let ways = self.request.each_direction().len();
        let ends = self.endpoint.sockets().step_by(ways).zip(sent.iter().map(|it| it.datagrams));
        if self.mode == Mode::FullDuplex {
            // A server that has read it once would take another for a new client.
            ends.for_each(|(socket, sent)| udp_end::tell(socket, sent, about, 1));
            return Vec::new();
        }
        udp_end::ask_reports(&ends.collect::<Vec<_>>(), about, u64::MAX)
    }
}

/// What iperf 2 has no room for.
fn check(request: &UdpTest, mode: Mode, extras: UdpExtras) -> Result<(), Failure> {
    let refuse = |reason: &str, advice: &str| {
        Err(Failure::new(Fault::Usage, "ask iperf2 for", "a UDP test", reason).advise(advice))
    };
    if request.size_bytes < SIZE_MIN {
        return refuse("datagrams below 28 bytes have no header", "give -l 28 or more");
    }
    if extras.trip_times && (request.size_bytes as usize) < TIMED_BYTES_MIN {
        return refuse("trip times do not fit below 120 bytes", "give -l 120 or more");
    }
    if mode != Mode::Forward && request.size_bytes > DATAGRAM_BYTES {
        return refuse(
            "a server that is to send more than 1470 bytes dies",
            "give -l 1470 or less",
        );
    }
    if request.omit_ns > 0 {
        return refuse("its report counts from the start", "leave out -O");
    }
    Ok(())
}

/// From datagram to datagram of a stream at its pace.
fn gap(request: &UdpTest) -> Duration {
    let bits = f64::from(request.size_bytes) * 8.0;
    let gap = request.pace.map_or(0.0, |pace| bits / pace.bits_per_sec().max(1) as f64);
    Duration::from_secs_f64(gap.min(3600.0))
}

/// What a server that sends is to send on one stream: whole datagrams.
fn amount(request: &UdpTest, flow: u16) -> Result<Amount, Failure> {
    let datagrams = match request.finish {
        Finish::TimeNs(ns) => return time(ns),
        Finish::Bytes(_) | Finish::Buffers(_) => request.datagram_budget().unwrap_or(0),
    };
    let own = share(datagrams, flow, request.streams).saturating_mul(request.size_bytes.into());
    // A server that sends nothing of it does no harm; one that only takes does not look at it.
    let fits = u32::try_from(own).unwrap_or(u32::MAX).min(i32::MAX as u32);
    Ok(Amount::Bytes(fits))
}

/// What the server's end of each stream told.
fn remote_reports(
    local: &[EndReport],
    reports: &[Option<UdpReport>],
    size_bytes: u32,
) -> Vec<EndReport> {
    let ups = local.iter().filter(|own| own.direction == Direction::Up);
    let received = ups.zip(reports);
    let received =
        received.filter_map(|(own, told)| Some(received_there(own, told.as_ref()?, size_bytes)));
    let downs = local.iter().filter(|own| own.direction == Direction::Down);
    received.chain(downs.filter_map(|own| sent_there(own, size_bytes))).collect()
}

/// What the server sent, by the number of its last datagram.
fn sent_there(own: &EndReport, size_bytes: u32) -> Option<EndReport> {
    let count = own.end.received_datagrams.as_ref()?.all.sent?;
    let sent = SentDatagrams { size_bytes, count, measured: count, ..SentDatagrams::default() };
    let bytes = count * u64::from(size_bytes);
    let end = FlowEnd {
        bytes,
        bytes_measured: bytes,
        span_ns: own.end.span_ns,
        sent_datagrams: Some(sent),
        technique: "iperf 2".to_owned(),
        ..FlowEnd::default()
    };
    Some(EndReport { end, syn: None, failure: None, stolen_ratio: None, ..own.clone() })
}

/// What the server counted, without the end, which it counts as a datagram. Its bytes are those
/// that its buffer had room for (1470 unless told otherwise), so datagrams are counted.
fn received_there(own: &EndReport, told: &UdpReport, size_bytes: u32) -> EndReport {
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
    // The server's: what a queue held came later than it was sent.
    let told_ns = Some(told.span_us.saturating_mul(1000)).filter(|ns| *ns > 0);
    let span_ns = told_ns.unwrap_or(own.end.span_ns);
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
    use super::*;

    fn request(directions: TcpDirections) -> UdpTest {
        let plan = UdpPlan {
            test: UdpTest { size_bytes: Some(1000), directions, streams: 3, ..UdpTest::default() },
            ..UdpPlan::default()
        };
        UdpTest { finish: Finish::Buffers(100), ..checked_request(&plan).expect("sound") }
    }

    #[test]
    fn streams_share_whole_datagrams() {
        let request = request(TcpDirections::Down);
        let of = |flow| amount(&request, flow).expect("room");
        assert_eq!([of(0), of(1), of(2)], [34_000, 33_000, 33_000].map(Amount::Bytes));
    }

    #[test]
    fn what_a_server_cannot_do_is_said_before_it_is_asked() {
        let why = |size_bytes, mode, trip_times| {
            let request = UdpTest { size_bytes, ..request(TcpDirections::Up) };
            let extras = UdpExtras { trip_times, back: None };
            check(&request, mode, extras).err().map(|failure| failure.to_string())
        };
        assert_eq!(why(1470, Mode::Reverse, false), None);
        assert_eq!(why(8000, Mode::Forward, false), None);
        let dies = why(1471, Mode::FullDuplex, false);
        assert!(dies.is_some_and(|why| why.contains("1470")));
        assert!(why(27, Mode::Forward, false).is_some());
        assert!(why(119, Mode::Forward, true).is_some());
    }
}
