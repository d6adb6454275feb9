//! A UDP test with `nuttcp -S`: marks around the data, intervals and summary from the server.
//!
//! A server that transmits does so to a port of this end, as nuttcp has no flip over UDP: a filter
//! or an address translation on the way keeps it back. Left out: several streams, over which nuttcp
//! deals one count; delays, whose stamps come only with later versions.

use std::net::SocketAddr;
use std::time::Duration;

use linerate_core::record::{
    DatagramCounts, DatagramTally, DatagramsSent, Direction, EndReport, Event, Failure, Fault,
    FlowEnd, ReceivedDatagrams, Record, SentDatagrams, Side, TcpDirections, UdpPlan, UdpTest,
};
use linerate_core::time::MonoTime;
use linerate_core::units::BitRate;
use linerate_proto::native::Token;
use linerate_proto::nuttcp::{
    BEGIN_PAUSE_MS, END_PAUSE_MS, END_REPEAT_MS, PORT, Parameters, Summary, UNLIMITED,
    UNTIL_TIMEOUT, UdpMark, Version, is_swapped,
};
use linerate_sys::clock::{monotonic, sleep};
use linerate_sys::datagram_socket::{DatagramSocket, any_local};
use linerate_sys::poll::readable;
use linerate_sys::tcp::{self, TcpOptions};

use super::layout::{NATIVE, NUMBERED_BYTES_MIN, SWAPPED};
use super::session::{Extras, Session};
use crate::context::Context;
use crate::flow::Sample;
use crate::flow::account::Account;
use crate::flow::tcp::client::{bind_address, connect_failure};
use crate::flow::tcp::session::LOOK_AT_END;
use crate::flow::udp::client::{Told, checked_request, run_by};
use crate::flow::udp::endpoint::{Endpoint, Place, open_socket};
use crate::foreign::sending::follow_senders;
use crate::foreign::test::remote_end;
use crate::path::witness::Witness;

/// A server that said OK takes datagrams within this time: it opens its port only then.
const SERVER_OPENS: Duration = Duration::from_millis(10);
/// A server that transmits begins within this time.
const BEGIN_TIMEOUT: Duration = Duration::from_secs(5);
/// After its planned end a test has this long for what is on the way.
const GRACE: Duration = Duration::from_secs(15);
/// Receivers that know what was sent leave by themselves within this.
const LEAVE_MAX: Duration = Duration::from_secs(3);
/// A server that acknowledges nothing for this long has vanished.
const SERVER_VANISHED: Duration = Duration::from_secs(30);
/// How often the stop flag is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// A test of one stream.
struct Test<'a, 'b> {
    plan: &'a UdpPlan,
    server: SocketAddr,
    request: &'a UdpTest,
    session: Session<'b>,
    endpoint: Endpoint,
}

/// Measures with a server of nuttcp over UDP.
pub(crate) fn measure_udp(
    (plan, server, request): (&UdpPlan, SocketAddr, &UdpTest),
    context: &mut Context<'_>,
    account: &mut Account,
) -> Result<(), Failure> {
    let mut told = |_: &_, _: &_| {};
    let extras = Extras { intervals: true, ..Extras::none(&mut told) };
    measure_with((plan, server, request), extras, context, account).map(|_| ())
}

/// Measures with a server of nuttcp over UDP, as `datagram::run` does; also gives what the server
/// told of its end.
pub fn run_udp(
    plan: &UdpPlan,
    extras: Extras<'_>,
    context: &mut Context<'_>,
) -> (Record, Option<Summary>) {
    let mut summary = None;
    let record = run_by(plan, context, |plan, server, (context, account)| {
        let request = checked_request(plan)?;
        summary = Some(measure_with((plan, server, &request), extras, context, account)?);
        Ok(())
    });
    (record, summary)
}

fn measure_with(
    (plan, server, request): (&UdpPlan, SocketAddr, &UdpTest),
    extras: Extras<'_>,
    context: &mut Context<'_>,
    account: &mut Account,
) -> Result<Summary, Failure> {
    // Jitter is that of single datagrams, each at its own time.
    let alone = UdpTest { joined: request.joined && extras.jitter == 0, ..request.clone() };
    let request = &alone;
    check(request)?;
    if extras.jitter > 0 || extras.delay > 0 {
        check_times(request)?;
    }
    account.ends.push(crate::environment::local_end(Some(server.ip())));
    account.witness = Some(Witness::begin(server.ip()));
    account.size_bytes = request.size_bytes;
    account.planned_ns = request.planned_span().map(|span| span.as_nanos() as u64);
    let local = bind_address(plan.bind.as_deref())?;
    let local = local.map_or_else(|| any_local(server), |ip| SocketAddr::new(ip, 0));
    let system = |error: linerate_sys::Error| crate::failure::system(&error);
    let socket = open_socket(request, local).map_err(system)?;
    let up = request.directions == TcpDirections::Up;
    let mut parameters = parameters(plan, request);
    parameters.instant = extras.instant || extras.jitter > 0;
    (parameters.jitter, parameters.delay) = (extras.jitter, extras.delay);
    parameters.port = match extras.data_port {
        Some(port) if up => port,
        _ if up => PORT,
        _ => socket.local_address().map_or(PORT, |address| address.port()),
    };
    // A transmitter says how much it has sent only in tests with intervals.
    if extras.intervals || !up {
        parameters.interval_s = plan.test.interval_ns as f64 / 1e9;
    }
    let timeout = Duration::from_nanos(plan.connect_timeout_ns);
    let bound = (!local.ip().is_unspecified()).then(|| local.ip());
    let control = tcp::connect(server, bound, &TcpOptions::default(), timeout);
    let control = control.map_err(|error| connect_failure(&error))?;
    tcp::notice_vanished_peer(&control, SERVER_VANISHED);
    let mut session = Session::new(control, extras.told);
    let version = session.greet(context)?;
    if (extras.jitter > 0 || extras.delay > 0) && version < Version(7, 0, 1) {
        let reason = format!("version {version} has none, 7.0.1 is the first that does");
        let failure = Failure::new(Fault::PeerIncompatible, "ask nuttcp for", "jitter", reason);
        return Err(failure.advise("omit -j and -o"));
    }
    account.ends.push(remote_end(Some(format!("nuttcp {version}"))));
    session.ask(&parameters.to_line(version), context)?;
    let endpoint = Endpoint::with_layout(request.clone(), NATIVE, plan.cpu);
    let mut test = Test { plan, server, request, session, endpoint };
    let result = match up {
        true => test.send(socket, parameters.port, context, account),
        false => test.receive(socket, context, account),
    };
    if result.is_err() {
        test.endpoint.halt();
        account.local = test.endpoint.finish();
    }
    result?;
    account.stream_failure().map_or(Ok(test.session.summary), Err)
}

/// What the protocol has a place for.
fn check(request: &UdpTest) -> Result<(), Failure> {
    let refuse = |reason: &str, advice: &str| {
        Err(Failure::new(Fault::Usage, "ask nuttcp for", "a UDP test", reason).advise(advice))
    };
    if request.directions == TcpDirections::Both {
        return refuse("it measures one way at a time", "omit --bidir");
    }
    if request.streams > 1 {
        return refuse("one count is all it has for all streams", "omit -P");
    }
    if request.omit_ns > 0 {
        return refuse("its summary counts from the start", "leave out -O");
    }
    let down = request.directions == TcpDirections::Down;
    if down && request.size_bytes < NUMBERED_BYTES_MIN {
        return refuse("datagrams below 32 bytes are not counted", "give -l 32 or more");
    }
    Ok(())
}

/// What its measure of jitter and of delays has a place for.
fn check_times(request: &UdpTest) -> Result<(), Failure> {
    let refuse = |reason: &str, advice: &str| {
        let failure = Failure::new(Fault::Usage, "ask nuttcp for", "jitter", reason);
        Err(failure.advise(advice))
    };
    if request.directions != TcpDirections::Up {
        return refuse("only a receiving server reports it", "leave out -r, or -j and -o");
    }
    if request.pace.is_none() {
        return refuse("it is defined for a paced test only", "give a rate by -R");
    }
    Ok(())
}

/// The parameters of a plan.
fn parameters(plan: &UdpPlan, request: &UdpTest) -> Parameters {
    let count = request.datagram_budget();
    // A pace of kbit/s, never above what was asked for but by its last kbit/s.
    let bps = request.pace.map(BitRate::bits_per_sec);
    let rate = bps.map_or(UNLIMITED, |bps| bps.div_ceil(1000).min(UNLIMITED - 1));
    let timeout_s = match request.planned_span() {
        Some(span) if count.is_none() => span.as_secs_f64(),
        _ => 0.0,
    };
    Parameters {
        buflen: request.size_bytes,
        nbuf: count.unwrap_or(UNTIL_TIMEOUT),
        window: plan.test.window_bytes.unwrap_or(0),
        rate,
        client_sends: request.directions == TcpDirections::Up,
        timeout_s,
        udp: true,
        tos: plan.test.dscp.unwrap_or(0) << 2,
        ..Parameters::default()
    }
}

impl Test<'_, '_> {
    /// From here to the server.
    fn send(
        &mut self,
        socket: DatagramSocket,
        port: u16,
        context: &mut Context<'_>,
        account: &mut Account,
    ) -> Result<(), Failure> {
        let peer = SocketAddr::new(self.server.ip(), port);
        socket.connect(peer).map_err(|error| crate::failure::system(&error))?;
        self.opened(socket, (Direction::Up, peer), (&mut *context, &mut *account));
        sleep(SERVER_OPENS);
        self.mark(UdpMark::Ready);
        sleep(Duration::from_millis(BEGIN_PAUSE_MS));
        self.mark(UdpMark::Begin);
        account.begin = monotonic();
        let started = self.endpoint.start_senders(account.begin);
        started.map_err(|error| crate::failure::system(&error))?;
        let mut received = DatagramCounts::default();
        self.follow_sending(&mut received, context, account)?;
        let end = monotonic();
        self.end(context)?;
        self.session.read_summary(context)?;
        let told = (&mut self.session, self.request.interval_ns);
        note_intervals(told, &mut received, (&mut *context, &mut *account));
        let sent = self.endpoint.sent().unwrap_or_default();
        let sent = sent.first().map_or(0, |sent| sent.datagrams);
        let size = u64::from(self.request.size_bytes);
        let arrived = self.session.summary.bytes(sent * size).map(|bytes| bytes.div_ceil(size));
        // What has no line of its own is one row: both ends' samples are of the same moments.
        let known = account.remote_samples.len();
        account.local_samples.truncate(known);
        account.remote_samples.truncate(account.local_samples.len());
        account.local_interval(self.endpoint.sample(end), context.watch);
        if let Some(arrived) = arrived {
            let counts = DatagramCounts { datagrams: arrived, next: sent, ..received };
            let sample = sample(end.nanos_since(account.begin), counts, account);
            account.remote_interval(vec![sample], context.watch);
        }
        account.local = self.finish();
        let about = (&self.session.summary, self.request.size_bytes);
        let told = account.local.iter().zip(arrived);
        account.remote = told.map(|(own, arrived)| receiver(own, arrived, about)).collect();
        Ok(())
    }

    /// Takes samples until the sender is done, and what the server tells meanwhile.
    fn follow_sending(
        &mut self,
        received: &mut DatagramCounts,
        context: &mut Context<'_>,
        account: &mut Account,
    ) -> Result<(), Failure> {
        let (session, interval_ns) = (&mut self.session, self.request.interval_ns);
        let mut each = |samples: Option<Vec<Sample>>, (context, account): Told<'_, '_>| {
            if let Some(samples) = samples {
                account.local_interval(samples, context.watch);
            }
            if session.listen(monotonic())? {
                return Err(session.closed());
            }
            note_intervals((session, interval_ns), received, (context, account));
            Ok(())
        };
        follow_senders((&self.endpoint, self.request), (context, account), &mut each)
    }

    /// The marks of the end, until the server has its summary ready.
    fn end(&mut self, context: &Context<'_>) -> Result<(), Failure> {
        for count in 0..5 {
            self.mark(UdpMark::End(count));
            let pause = if count == 0 { END_PAUSE_MS } else { END_REPEAT_MS };
            let until = monotonic() + Duration::from_millis(pause);
            while monotonic() < until && !context.stop.asked() {
                if self.session.listen(until.min(monotonic() + LOOK))? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn mark(&self, mark: UdpMark) {
        let Some(socket) = self.endpoint.sockets().next() else { return };
        // An error is that of a mark before: it is told once, and this one leaves.
        if socket.send_when_room(&mark.to_bytes()).is_err() {
            let _ = socket.send_when_room(&mark.to_bytes());
        }
    }

    /// From the server to here.
    fn receive(
        &mut self,
        socket: DatagramSocket,
        context: &mut Context<'_>,
        account: &mut Account,
    ) -> Result<(), Failure> {
        let (peer, swapped) = self.await_begin(&socket, context)?;
        if swapped {
            let request = self.request.clone();
            self.endpoint = Endpoint::with_layout(request, SWAPPED, self.plan.cpu);
        }
        socket.connect(peer).map_err(|error| crate::failure::system(&error))?;
        self.opened(socket, (Direction::Down, peer), (&mut *context, &mut *account));
        account.begin = monotonic();
        self.endpoint
            .start_receivers()
            .and_then(|()| self.endpoint.start_senders(account.begin))
            .map_err(|error| crate::failure::system(&error))?;
        self.follow_receiving(context, account)?;
        let size = u64::from(self.request.size_bytes);
        let counts = self
            .samples(monotonic())
            .first()
            .map_or_else(DatagramCounts::default, |it| it.counts());
        let sent = self.session.summary.bytes(counts.next * size).map(|bytes| bytes.div_ceil(size));
        let datagrams = sent.unwrap_or(counts.next).max(counts.next);
        let span_ns = self.session.summary.span_ns(datagrams * size).unwrap_or(0);
        let (direction, flow) = (Direction::Down, 0);
        let told = DatagramsSent { direction, flow, datagrams, measured: datagrams, span_ns };
        self.endpoint.told_sent(&[told]);
        let end = monotonic() + LEAVE_MAX;
        while !self.endpoint.is_done() && monotonic() < end {
            sleep(LOOK_AT_END);
        }
        let samples = self.samples(monotonic());
        account.local_interval(samples, context.watch);
        account.remote_interval(Vec::new(), context.watch);
        account.local = self.finish();
        if sent.is_some() {
            let summary = &self.session.summary;
            account.remote =
                account.local.iter().map(|own| transmitter(own, &told, summary)).collect();
        }
        Ok(())
    }

    /// Waits for the marks of the begin and the first data, which stays; its sender, and whether
    /// that has the other byte order.
    fn await_begin(
        &mut self,
        socket: &DatagramSocket,
        context: &Context<'_>,
    ) -> Result<(SocketAddr, bool), Failure> {
        let mut deadline = monotonic() + BEGIN_TIMEOUT;
        let mut bytes = [0; 64];
        while monotonic() < deadline && !context.stop.asked() {
            let ready = readable(socket, LOOK).unwrap_or(false);
            if self.session.listen(monotonic())? {
                return Err(self.session.closed());
            }
            let Some((length, peer)) =
                socket.peek_from(&mut bytes).unwrap_or(None).filter(|_| ready)
            else {
                continue;
            };
            let ours = peer.ip().to_canonical() == self.server.ip().to_canonical();
            match UdpMark::parse(&bytes[..length]) {
                None if ours => return Ok((peer, is_swapped(&bytes[..length], length))),
                // At a slow pace the first data comes well after its mark.
                Some(_) if ours => deadline = monotonic() + GRACE,
                _ => {}
            }
            let _ = socket.receive_from(&mut bytes);
        }
        let failure = self.session.silent("datagram");
        Err(failure.advise("a firewall may block UDP: the server sends to this host"))
    }

    /// Takes samples until the server has told what it sent.
    fn follow_receiving(
        &mut self,
        context: &mut Context<'_>,
        account: &mut Account,
    ) -> Result<(), Failure> {
        let begin = account.begin;
        let interval = Duration::from_nanos(self.request.interval_ns);
        let give_up = self.request.planned_span().map(|span| begin + span + GRACE);
        let mut tick = begin + interval;
        loop {
            let now = monotonic();
            if now >= tick {
                let samples = self.samples(now);
                account.local_interval(samples, context.watch);
                account.remote_interval(Vec::new(), context.watch);
                tick += interval;
            }
            if self.endpoint.has_failed() || give_up.is_some_and(|end| now >= end) {
                return Err(self.session.silent("end of the data"));
            }
            // Closing the control connection is how a client tells the server to stop.
            if context.stop.asked() || self.session.listen(tick.min(now + LOOK))? {
                return self.session.read_summary(context);
            }
        }
    }

    /// Samples without a jitter, for the datagrams carry no time.
    fn samples(&self, now: MonoTime) -> Vec<Sample> {
        let mut samples = self.endpoint.sample(now);
        let counts = samples.iter_mut().filter_map(|sample| sample.datagrams.as_mut());
        counts.for_each(|counts| counts.jitter_ns = None);
        samples
    }

    /// Gives the socket to the endpoint and tells that the stream is there.
    fn opened(
        &mut self,
        socket: DatagramSocket,
        (direction, peer): (Direction, SocketAddr),
        (context, account): (&mut Context<'_>, &mut Account),
    ) {
        let client_addr = socket.local_address().map_or_else(String::new, |addr| addr.to_string());
        account.route_mtu_bytes = socket.mtu_bytes();
        account.connected(direction, 0, &client_addr, peer);
        let side = if direction == Direction::Up { Side::Sender } else { Side::Receiver };
        self.endpoint.add(socket, Place { direction, flow: 0, side, client_addr }, Token([0; 16]));
        let size = self.request.size_bytes;
        let line = format!("1 UDP stream to {}, nuttcp, datagrams of {size} bytes", self.server);
        (context.watch)(&Event::Connected(line));
    }

    /// Ends the threads; their reports, without delays.
    fn finish(&mut self) -> Vec<EndReport> {
        let empty = Endpoint::with_layout(self.request.clone(), NATIVE, None);
        let mut reports = std::mem::replace(&mut self.endpoint, empty).finish();
        for report in &mut reports {
            if let Some(received) = &mut report.end.received_datagrams {
                received.delay = None;
            }
        }
        reports
    }
}

/// The server's intervals, as samples of its end.
fn note_intervals(
    (session, interval_ns): (&mut Session<'_>, u64),
    received: &mut DatagramCounts,
    (context, account): Told<'_, '_>,
) {
    for interval in session.intervals() {
        let Some((lost, all)) = interval.datagrams else { continue };
        // One that is late was counted as lost in an interval before, and makes this count less.
        let came = u64::try_from(all.saturating_sub(lost)).unwrap_or(0);
        received.datagrams = received.datagrams.saturating_add(came);
        received.next = received.next.saturating_add_signed(all);
        let t_ns = interval_ns * (account.remote_samples.len() as u64 + 1);
        let sample = sample(t_ns, *received, account);
        account.remote_interval(vec![sample], context.watch);
    }
}

fn sample(t_ns: u64, counts: DatagramCounts, account: &Account) -> Sample {
    Sample::of(Direction::Up, 0, t_ns).with_datagrams(counts, account.size_bytes)
}

/// What the server's summary tells of its receiver.
fn receiver(own: &EndReport, received: u64, (summary, size_bytes): (&Summary, u32)) -> EndReport {
    let sent = own.end.sent_datagrams.as_ref().map(|sent| sent.measured);
    let received = received.min(sent.unwrap_or(received));
    let lost = sent.unwrap_or(received).saturating_sub(received);
    let tally = DatagramTally { sent, received, lost, ..DatagramTally::default() };
    let bytes = received * u64::from(size_bytes);
    let received_datagrams = Some(ReceivedDatagrams {
        size_bytes,
        all: tally,
        measured: tally,
        ..ReceivedDatagrams::default()
    });
    let end = FlowEnd {
        bytes,
        bytes_measured: bytes,
        span_ns: own.end.span_ns.max(summary.span_ns(bytes).unwrap_or(0)),
        io_calls: summary.calls.unwrap_or(0),
        technique: "nuttcp".to_owned(),
        received_datagrams,
        ..FlowEnd::default()
    };
    EndReport { end, syn: None, failure: None, stolen_ratio: None, ..own.clone() }
}

/// What the server's summary tells of its transmitter.
fn transmitter(own: &EndReport, told: &DatagramsSent, summary: &Summary) -> EndReport {
    let size_bytes = own.end.received_datagrams.as_ref().map_or(0, |it| it.size_bytes);
    let bytes = told.datagrams * u64::from(size_bytes);
    let (count, measured) = (told.datagrams, told.measured);
    let sent_datagrams =
        Some(SentDatagrams { size_bytes, count, measured, ..SentDatagrams::default() });
    let end = FlowEnd {
        bytes,
        bytes_measured: bytes,
        span_ns: told.span_ns,
        io_calls: summary.calls.unwrap_or(0),
        technique: "nuttcp".to_owned(),
        sent_datagrams,
        ..FlowEnd::default()
    };
    EndReport { end, syn: None, failure: None, stolen_ratio: None, ..own.clone() }
}
