//! The server's side of a UDP test, from its parameters to the end.
//!
//! Datagrams that arrive after `test end` still count: receivers take what the client says that it
//! sent, or until nothing more comes.

use std::time::Duration;

use linerate_core::record::{
    Direction, Event, Failure, IntervalRow, Plan, Record, StreamOpened, UdpTest,
};
use linerate_core::time::MonoTime;
use linerate_proto::iperf3::{ErrorCode, Params, ServerEvent, State, frame};
use linerate_proto::native::Token;
use linerate_sys::clock::{monotonic, record_id, sleep, wall};

use super::client::server_side;
use super::datagrams::{
    Told, layout_of, told_sent, udp_plan_of, udp_remote_reports, udp_request_of, udp_results,
    until_last,
};
use super::plan::burst_of;
use super::report::{Place, amounts, places};
use super::sent_rows::SentRows;
use super::session::{GRACE, LOOK, Observer, STEP_TIMEOUT, Session};
use crate::datagram::account::Account;
use crate::datagram::endpoint::{Endpoint, Place as StreamPlace};
use crate::datagram::fold::fold;
use crate::flow::Sample;
use crate::throughput::client::client_side;
use crate::throughput::control::plain;
use crate::throughput::session::LOOK_AT_END;

/// Receivers that know what was sent leave by themselves within this.
const LEAVE_MAX: Duration = Duration::from_secs(3);

/// A test that was let in.
struct Running {
    params: Params,
    request: UdpTest,
    places: Vec<Place>,
    endpoint: Endpoint,
    account: Account,
    sent_rows: SentRows,
    omitted: Vec<Sample>,
}

impl Session<'_> {
    /// Runs a UDP test whose parameters are sound; the line is for the log.
    pub(super) fn run_udp(
        &mut self,
        params: Params,
        observer: &mut dyn Observer,
    ) -> Result<String, Failure> {
        let begin = monotonic();
        let request = udp_request_of(&params, self.house.interval);
        let planned = (params.time_s > 0)
            .then(|| Duration::from_secs(params.time_s + params.omit_s))
            .or_else(|| request.planned_span().filter(|_| params.bytes + params.blocks > 0));
        let permit = match self.admit(&params, request.places().count(), planned)? {
            Ok(permit) => permit,
            Err(line) => return Ok(line),
        };
        // No stream of it comes by TCP.
        let registration = self.register()?;
        registration.complete();
        observer.accepted(&params, self.peer, &self.cookie);
        let plan = udp_plan_of(&params, &request, self.peer);
        observer.event(&Event::Plan(Plan::Udp(plan.clone())));
        let tool = self.house.tool.clone();
        let mut record = Record::begin(record_id(), tool, Plan::Udp(plan.clone()), wall());
        let layout = layout_of(&params);
        let mut running = Running {
            places: places(request.each_direction(), request.streams),
            endpoint: Endpoint::with_layout(request.clone(), layout, None)
                .in_bursts(burst_of(&params)),
            account: Account {
                size_bytes: request.size_bytes,
                row_ns_min: request.interval_ns / 4,
                omit_ns: request.omit_ns,
                ..Account::default()
            },
            sent_rows: SentRows::default(),
            omitted: Vec::new(),
            params,
            request,
        };
        let measured = self.measure_udp(&mut running, &mut record, observer);
        drop(permit);
        record.duration_ns = monotonic().nanos_since(begin);
        if let Err(failure) = &measured {
            running.endpoint.halt();
            record.failure = Some(failure.clone());
        }
        observer.ended(&record);
        measured.map(|()| said(&running))
    }

    fn measure_udp(
        &mut self,
        running: &mut Running,
        record: &mut Record,
        observer: &mut dyn Observer,
    ) -> Result<(), Failure> {
        self.open_udp(running, observer)?;
        self.code = ErrorCode::EXPIRED;
        let stopped = self.follow_udp(running, observer)?;
        self.code = ErrorCode::MESSAGE;
        self.control.send_state(State::ExchangeResults)?;
        let event = self.next_event(STEP_TIMEOUT, "the results")?;
        let ServerEvent::Results(of_client) = event else { return Err(self.left_early()) };
        let size_bytes = running.request.size_bytes;
        running.endpoint.told_sent(&told_sent(&running.places, &of_client, size_bytes));
        let end = monotonic() + LEAVE_MAX;
        while !running.endpoint.is_done() && monotonic() < end {
            sleep(LOOK_AT_END);
        }
        let samples = running.endpoint.sample(monotonic());
        let sent = running.endpoint.sent().unwrap_or_default();
        let told = Told {
            side_of: server_side,
            omitted: &running.omitted,
            sent: &sent,
            omit_ns: running.request.omit_ns,
            end_ns: stopped.nanos_since(running.account.begin),
        };
        let mut own = udp_results(&running.places, &samples, size_bytes, &told);
        sample(running, samples, observer);
        let empty = Endpoint::new(running.request.clone(), None);
        running.account.remote = std::mem::replace(&mut running.endpoint, empty).finish();
        until_last(&mut own, &running.places, &running.account.remote);
        let (places, ours) = (&running.places, &running.account.remote);
        running.account.local =
            udp_remote_reports(places, &of_client, ours, client_side, &running.request);
        fold(record, &running.account);
        if running.params.get_server_output {
            own.server_output = observer.output(record);
        }
        self.control.send(&frame(&own.to_json()))?;
        self.control.send_state(State::DisplayResults)?;
        // The client has its result; whether it says so changes nothing.
        let _ = self.next_event(STEP_TIMEOUT, "iperf done");
        Ok(())
    }

    /// Opens the streams in the order in which they announce themselves, and starts them.
    fn open_udp(
        &mut self,
        running: &mut Running,
        observer: &mut dyn Observer,
    ) -> Result<(), Failure> {
        let Some(door) = self.house.door else {
            let reason = "the UDP port is another program's";
            return Err(self.failed(reason));
        };
        let deadline = monotonic() + STEP_TIMEOUT;
        let turn = loop {
            if let Some(turn) = door.turn_of(self.peer.ip()) {
                break turn;
            }
            if monotonic() >= deadline {
                return Err(self.too_slow("its turn at the UDP port"));
            }
            self.look_at_client()?;
            sleep(LOOK);
        };
        running.account.ends.push(crate::environment::local_end(Some(self.peer.ip())));
        self.control.machine.accepted();
        self.control.send_state(State::CreateStreams)?;
        let own =
            self.control.stream().local_addr().map_or_else(|_| door.local().ip(), |at| at.ip());
        for place in running.places.clone() {
            let (socket, peer) = loop {
                let next = turn.next(&running.request, own);
                if let Some(opened) = next.map_err(|error| crate::failure::system(&error))? {
                    break opened;
                }
                if monotonic() >= deadline {
                    return Err(self.too_slow("the streams"));
                }
                self.look_at_client()?;
                sleep(LOOK_AT_END);
            };
            let (direction, flow) = (place.direction, place.flow);
            let local_addr = socket.local_address().map_or_else(String::new, plain);
            let (sndbuf_bytes, rcvbuf_bytes) = socket.buffers();
            let client_addr = plain(peer);
            running.account.connected(direction, flow, &client_addr, door.local());
            observer.event(&Event::Stream(StreamOpened {
                direction,
                flow,
                local_addr,
                remote_addr: client_addr.clone(),
                mss_bytes: None,
                sndbuf_bytes,
                rcvbuf_bytes,
                session: Some(self.cookie.text()),
            }));
            let side = server_side(direction);
            let place = StreamPlace { direction, flow, side, client_addr };
            running.endpoint.add(socket, place, Token([0; 16]));
        }
        drop(turn);
        let started = running.endpoint.start_receivers();
        started.map_err(|error| crate::failure::system(&error))?;
        self.control.send_state(State::TestStart)?;
        self.control.machine.running();
        running.account.begin = monotonic();
        let started = running.endpoint.start_senders(running.account.begin);
        started.map_err(|error| crate::failure::system(&error))?;
        self.control.send_state(State::TestRunning)
    }

    /// Takes samples until the client ends the test; when that was.
    fn follow_udp(
        &mut self,
        running: &mut Running,
        observer: &mut dyn Observer,
    ) -> Result<MonoTime, Failure> {
        let begin = running.account.begin;
        let end = begin + self.planned_max(&running.params) + GRACE;
        let interval = Duration::from_nanos(running.request.interval_ns);
        let mut tick = begin + interval;
        let omit_ns = running.request.omit_ns;
        let mut omit = (omit_ns > 0).then(|| begin + Duration::from_nanos(omit_ns));
        loop {
            let now = monotonic();
            if now >= tick {
                let samples = running.endpoint.sample(now);
                sample(running, samples, observer);
                tick += interval;
            }
            if omit.is_some_and(|at| now >= at) {
                omit = None;
                running.omitted = running.endpoint.sample(now);
            }
            if now >= end {
                return Err(self.failed("the client did not end the test in time"));
            }
            self.look_at_stop()?;
            let until = tick.min(omit.unwrap_or(tick)).min(now + LOOK).min(end);
            match self.control.next_event(until)? {
                Some(ServerEvent::Ended) => {
                    running.endpoint.stop_sending();
                    return Ok(monotonic());
                }
                Some(_) => return Err(self.left_early()),
                None => {}
            }
        }
    }
}

fn sample(running: &mut Running, samples: Vec<Sample>, observer: &mut dyn Observer) {
    let about = (running.request.size_bytes, running.request.omit_ns);
    let rows = running.sent_rows.next(&samples, Direction::Down, about);
    let mut watch = |event: &Event| observer.event(event);
    running.account.remote_interval(samples, &mut watch);
    running.account.local_interval(Vec::new(), &mut watch);
    let least = running.account.row_ns_min;
    let whole = |row: &IntervalRow| row.start_ns == 0 || row.end_ns - row.start_ns >= least;
    let rows = rows.into_iter().filter(whole);
    rows.for_each(|row| observer.event(&Event::Interval(row)));
}

/// `iperf3: 2 UDP streams, 100000 bytes up in 1.000 s, 800 kbit/s, 100 datagrams received, 3 lost`.
fn said(running: &Running) -> String {
    let noun = if running.request.streams == 1 { "stream" } else { "streams" };
    let amounts = amounts(&running.account.remote);
    let mut line = format!("iperf3: {} UDP {noun}{amounts}", running.request.streams);
    let ends = || running.account.remote.iter().map(|report| &report.end);
    let received = ends().filter_map(|end| end.received_datagrams.as_ref());
    if let Some(all) = received
        .map(|it| (it.all.received, it.all.lost))
        .reduce(|one, other| (one.0 + other.0, one.1 + other.1))
    {
        line.push_str(&format!(", {} datagrams received, {} lost", all.0, all.1));
    }
    let sent = ends().filter_map(|end| end.sent_datagrams.as_ref());
    if let Some(count) = sent.map(|it| it.count).reduce(|one, other| one + other) {
        line.push_str(&format!(", {count} datagrams sent"));
    }
    line
}
