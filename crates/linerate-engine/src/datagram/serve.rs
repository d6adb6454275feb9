//! The server's side of one UDP test.
//!
//! Sockets are the test's own, nothing is sent to an address that has not said the test's token and
//! a number back from there, and whatever a client leaves out ends the test within five seconds.

use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use linerate_core::record::{Direction, EndReport, Failure, Fault, Side, UdpTest};
use linerate_core::time::MonoTime;
use linerate_proto::native::{Accept, FEATURES, Message, ServerEvent, Token, UdpSample};
use linerate_sys::clock::{monotonic, random_bytes, sleep};

use super::endpoint::{Endpoint, Place, open_socket};
use super::opening::{Awaiting, TURN};
use super::pulse;
use crate::served;
use crate::throughput::{Admission, Demand, GRACE, LOOK, LOOK_AT_END, Session, plain};

/// A client has this long for the next step of the set-up: a place is not held longer for one
/// that vanished.
const STEP_TIMEOUT: Duration = pulse::SILENCE_MAX;

impl Session {
    /// Runs a UDP test; the line is for the log.
    pub(crate) fn run_udp(
        &mut self,
        request: &UdpTest,
        admission: &dyn Admission,
    ) -> Result<String, Failure> {
        let streams = request.places().count();
        let demand = Demand { streams, planned: request.planned_span() };
        let checked = request.check().map_err(|error| error.to_string());
        let permit = match self.admit(checked, &demand, admission)? {
            Ok(permit) => permit,
            Err(line) => return Ok(line),
        };
        let mut endpoint = self.open_udp(request)?;
        self.measure_udp(request, &mut endpoint, admission.duration_max())?;
        let reports = endpoint.finish();
        let line = log_line(&reports);
        self.control.send(&Message::Result { reports })?;
        self.machine.reported();
        // What is left to do takes nothing of this host.
        drop(permit);
        self.await_bye()?;
        Ok(line)
    }

    /// Accepts the test and waits until each of its streams is open.
    fn open_udp(&mut self, request: &UdpTest) -> Result<Endpoint, Failure> {
        let token = Token(random_bytes());
        let local = self.address(TcpStream::local_addr)?;
        let local = SocketAddr::new(local.ip().to_canonical(), 0);
        let mut streams = Vec::new();
        for place in request.places() {
            let socket =
                open_socket(request, local).map_err(|error| crate::failure::system(&error))?;
            streams.push(Awaiting::new(socket, place, token));
        }
        let port = |stream: &Awaiting| stream.socket.local_address().map_or(0, |at| at.port());
        let accept = Accept {
            token: token.to_hex(),
            data_port: 0,
            udp_ports: streams.iter().map(port).collect(),
            host_id: linerate_sys::host::boot_id(),
            end: self.own_end(),
            features: FEATURES.map(str::to_owned).to_vec(),
        };
        self.control.send(&Message::Accept(Box::new(accept)))?;
        self.machine.accepted();
        self.await_streams(&mut streams)?;
        let mut endpoint = Endpoint::new(request.clone(), None);
        for stream in streams {
            let place = Place {
                direction: stream.direction,
                flow: stream.flow,
                side: match stream.direction {
                    Direction::Up => Side::Receiver,
                    Direction::Down => Side::Sender,
                },
                client_addr: stream.client.map_or_else(String::new, plain),
            };
            endpoint.add(stream.socket, place, token);
        }
        endpoint.start_receivers().map_err(|error| crate::failure::system(&error))?;
        self.control.send(&Message::Ready)?;
        self.machine.streams_ready();
        Ok(endpoint)
    }

    fn await_streams(&mut self, streams: &mut [Awaiting]) -> Result<(), Failure> {
        let deadline = monotonic() + STEP_TIMEOUT;
        while streams.iter().any(|stream| stream.client.is_none()) {
            self.look_at_client("the UDP streams")?;
            if monotonic() >= deadline {
                return Err(self.too_slow("the UDP streams", STEP_TIMEOUT));
            }
            for stream in streams.iter_mut() {
                stream.turn().map_err(|error| crate::failure::system(&error))?;
            }
            sleep(TURN);
        }
        Ok(())
    }

    /// Runs the streams from start until all are done, with an interval message every tick.
    fn measure_udp(
        &mut self,
        request: &UdpTest,
        endpoint: &mut Endpoint,
        duration_max: Duration,
    ) -> Result<(), Failure> {
        match self.next_event(monotonic() + STEP_TIMEOUT)? {
            Some(ServerEvent::Started) => {}
            Some(_) => return Err(self.left_early()),
            None => return Err(self.too_slow("start", STEP_TIMEOUT)),
        }
        let begin = monotonic();
        endpoint.note_rtt(self.control.rtt_min(), self.own_end().interface.as_ref());
        endpoint.start_senders(begin).map_err(|error| crate::failure::system(&error))?;
        let planned = request.planned_span().unwrap_or(duration_max).min(duration_max);
        let interval = Duration::from_nanos(request.interval_ns);
        let (end, mut tick) = (begin + planned + GRACE, begin + interval);
        let mut told = false;
        while !endpoint.is_done() {
            let now = monotonic();
            if now >= tick {
                self.control.send(&Message::UdpInterval { samples: samples(endpoint, now) })?;
                tick += interval;
            }
            self.tell_search(endpoint)?;
            if now >= begin + duration_max || self.stop.asked() {
                endpoint.stop_sending();
            }
            if now >= end {
                endpoint.halt();
            }
            if let Some(streams) = endpoint.sent().filter(|_| !told) {
                told = true;
                self.control.send(&Message::UdpSent { streams })?;
            }
            if endpoint.has_failed() {
                return Err(self.vanished());
            }
            self.take_event(endpoint, tick.min(now + look(now, begin + planned)))?;
        }
        if endpoint.has_failed() {
            return Err(self.vanished());
        }
        if let Some(streams) = endpoint.sent().filter(|_| !told) {
            self.control.send(&Message::UdpSent { streams })?;
        }
        self.tell_search(endpoint)?;
        self.control.send(&Message::UdpInterval { samples: samples(endpoint, monotonic()) })
    }

    /// What there is to tell of a search.
    fn tell_search(&mut self, endpoint: &Endpoint) -> Result<(), Failure> {
        match endpoint.search_news() {
            Some(news) => self.control.send(&Message::UdpSearch(news)),
            None => Ok(()),
        }
    }

    fn take_event(&mut self, endpoint: &Endpoint, until: MonoTime) -> Result<(), Failure> {
        match self.next_event(until)? {
            Some(ServerEvent::UdpSent(sent)) => endpoint.told_sent(&sent),
            Some(ServerEvent::Stopped) => endpoint.stop_sending(),
            Some(_) => return Err(self.left_early()),
            None => {}
        }
        Ok(())
    }

    fn vanished(&self) -> Failure {
        let reason = pulse::silent();
        Failure::new(Fault::Unreachable, "exchange datagrams with", self.control.peer(), reason)
    }
}

/// One sample of every stream, as clients are told.
fn samples(endpoint: &Endpoint, now: MonoTime) -> Vec<UdpSample> {
    endpoint.sample(now).into_iter().map(UdpSample::from).collect()
}

/// How long to look away: not for long once the end is due.
fn look(now: MonoTime, end: MonoTime) -> Duration {
    if now >= end { LOOK_AT_END } else { LOOK }
}

fn log_line(reports: &[EndReport]) -> String {
    let received = reports.iter().filter_map(|report| report.end.received_datagrams.as_ref());
    let (received, lost) = received
        .fold((0, 0), |(received, lost), it| (received + it.all.received, lost + it.all.lost));
    let sent: u64 =
        reports.iter().filter_map(|it| it.end.sent_datagrams.as_ref()).map(|it| it.count).sum();
    let ways = served::line(reports);
    format!("udp {ways}; {sent} datagrams sent, {received} received, {lost} lost")
}
