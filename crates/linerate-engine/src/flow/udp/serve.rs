//! The UDP streams of a test at the server.
//!
//! Sockets are the test's own, nothing is sent to an address that has not said the test's token and
//! a number back from there, and whatever a client leaves out ends the test within five seconds.

use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use linerate_core::record::{EndReport, Failure, Fault, MeasurementEnd, UdpTest};
use linerate_core::time::MonoTime;
use linerate_proto::dialect::{FlowState, Output};
use linerate_proto::native::{
    Accept, FEATURES, Message, NativeServerMachine, NativeServerTerms, Token, UdpSample,
};
use linerate_sys::clock::random_bytes;

use super::endpoint::{Endpoint, StreamId};
use super::keep_alive;
use super::opening::{Awaiting, Callee};
use super::socket::open_socket;
use crate::flow::account::server_side;
use crate::flow::admission::Admission;
use crate::flow::contradiction::left_out;
use crate::flow::peer::plain_address;
use crate::flow::served::{GRACE, Served};
use crate::flow::tcp::control::rtt_min;
use crate::served::{self, LogText};
use crate::socket_address::{at_port, canonical};

/// A test that was let in.
pub(crate) struct NativeUdpServer {
    request: UdpTest,
    endpoint: Endpoint,
    /// Streams until all are open.
    awaited: Vec<Awaiting>,
    token: Token,
    control: TcpStream,
    own_end: MeasurementEnd,
    started: bool,
    /// The client knows what was sent.
    told: bool,
    /// Why a figure of the client cannot be.
    contradiction: Option<String>,
    peer: String,
}

impl NativeUdpServer {
    /// Opens a socket for each stream at an address; what the client is told of them.
    pub(crate) fn new(
        request: UdpTest,
        local: SocketAddr,
        own_end: MeasurementEnd,
        control: TcpStream,
    ) -> Result<(Self, Accept), Failure> {
        let token = Token(random_bytes());
        let local = at_port(canonical(local), 0);
        let mut awaited = Vec::new();
        for (direction, flow) in request.places() {
            let socket =
                open_socket(&request, local).map_err(|error| crate::failure::system(&error))?;
            awaited.push(Awaiting::new(socket, Callee::new(direction, flow, token)));
        }
        let port = |stream: &Awaiting| stream.socket.local_address().map_or(0, |at| at.port());
        let accept = Accept {
            token: token.to_hex(),
            data_port: 0,
            udp_ports: awaited.iter().map(port).collect(),
            host_id: linerate_sys::host::boot_id(),
            end: own_end.clone(),
            features: FEATURES.map(str::to_owned).to_vec(),
        };
        let endpoint = Endpoint::new(request.clone(), None);
        let peer = control.peer_addr().map_or_else(|_| "a client".to_owned(), plain_address);
        let test = Self {
            request,
            endpoint,
            awaited,
            token,
            control,
            own_end,
            started: false,
            told: false,
            contradiction: None,
            peer,
        };
        Ok((test, accept))
    }

    fn check_streams(&self) -> Result<(), Failure> {
        if !self.endpoint.has_failed() {
            return Ok(());
        }
        let reason = keep_alive::silent();
        Err(Failure::new(Fault::Unreachable, "exchange datagrams with", &self.peer, reason))
    }
}

/// The terms of a test.
pub(crate) fn test_terms(
    request: &UdpTest,
    accept: Accept,
    admission: &dyn Admission,
) -> NativeServerTerms {
    let duration_max = admission.duration_max();
    let span = request.planned_span();
    let planned = span.unwrap_or(duration_max).min(duration_max);
    NativeServerTerms {
        accept: Box::new(accept),
        interval: Duration::from_nanos(request.interval_ns),
        span_max: duration_max,
        stall_after: None,
        end: planned + GRACE,
        overdue: span.is_none().then(|| admission.overdue()),
        // A place is not kept longer for a client that vanished.
        step: keep_alive::SILENCE_MAX,
        streams: "the UDP streams",
    }
}

impl Served for NativeUdpServer {
    fn open_streams(&mut self) -> Result<bool, Failure> {
        for stream in &mut self.awaited {
            stream.answer_client().map_err(|error| crate::failure::system(&error))?;
        }
        if self.awaited.iter().any(|stream| stream.client.is_none()) {
            return Ok(false);
        }
        for stream in self.awaited.drain(..) {
            let place = StreamId {
                direction: stream.callee.direction,
                flow: stream.callee.flow,
                side: server_side(stream.callee.direction),
                client_addr: stream.client.map_or_else(String::new, plain_address),
            };
            self.endpoint.add(stream.socket, place, self.token);
        }
        self.endpoint.start_receivers().map_err(|error| crate::failure::system(&error))?;
        Ok(true)
    }

    fn carry_out(
        &mut self,
        now: MonoTime,
        output: Output<NativeServerMachine>,
    ) -> Result<(), Failure> {
        match output {
            Output::Start => {
                self.started = true;
                self.endpoint.note_rtt(rtt_min(&self.control), self.own_end.interface.as_ref());
                let started = self.endpoint.start_senders(now);
                started.map_err(|error| crate::failure::system(&error))?;
            }
            Output::News(Message::UdpSent { streams }) => {
                let wrong = self.endpoint.reported_sent(&streams);
                self.contradiction = self.contradiction.take().or(wrong);
            }
            Output::StopSending => self.endpoint.stop_sending(),
            Output::Halt => self.endpoint.halt_streams(),
            _ => {}
        }
        Ok(())
    }

    fn news_for_client(&mut self) -> Result<Vec<Message>, Failure> {
        if !self.started {
            return Ok(Vec::new());
        }
        self.check_streams()?;
        let search = self.endpoint.search_news().map(Message::UdpSearch);
        let sent = self.endpoint.datagrams_sent().filter(|_| !self.told);
        self.told |= sent.is_some();
        let sent = sent.map(|streams| Message::UdpSent { streams });
        Ok(search.into_iter().chain(sent).collect())
    }

    fn sample(&mut self, now: MonoTime) -> Message {
        let samples = self.endpoint.sample(now).into_iter().map(UdpSample::from).collect();
        Message::UdpInterval { samples }
    }

    fn flow_state(&self) -> FlowState {
        FlowState { done: self.started && self.endpoint.is_done(), ..FlowState::default() }
    }

    fn finish(&mut self) -> Result<(Vec<EndReport>, LogText), Failure> {
        self.check_streams()?;
        let none = Endpoint::new(self.request.clone(), None);
        let reports = std::mem::replace(&mut self.endpoint, none).finish();
        let mut line = format!("udp {}", served::log_line(&reports));
        if let Some(reason) = self.contradiction.take() {
            line.push_str(&format!("; {}", left_out(&reason)));
        }
        let line = LogText::from_reports(line, &reports);
        Ok((reports, line))
    }
}

#[cfg(test)]
mod tests {
    use linerate_core::record::{
        DatagramTally, Direction, FlowEnd, ReceivedDatagrams, SentDatagrams,
    };

    use super::*;

    #[test]
    fn a_receiver_tells_what_came_and_a_sender_what_it_sent() {
        let sent = SentDatagrams { count: 7, ..SentDatagrams::default() };
        let all = DatagramTally { received: 5, lost: 2, ..DatagramTally::default() };
        let received = ReceivedDatagrams { all, ..ReceivedDatagrams::default() };
        let up = FlowEnd { received_datagrams: Some(received), ..FlowEnd::default() };
        let down = FlowEnd { sent_datagrams: Some(sent), ..FlowEnd::default() };
        let [up, down] = [(Direction::Up, up), (Direction::Down, down)]
            .map(|(direction, end)| EndReport::from_flow_end(direction, 0, end));
        let counts = |reports: &[EndReport]| {
            let line = served::log_line(reports);
            line.split_once(" B, ").map(|(_, counts)| counts.to_owned()).unwrap_or_default()
        };
        assert_eq!(counts(std::slice::from_ref(&up)), "5 datagrams received, 2 lost");
        assert_eq!(counts(std::slice::from_ref(&down)), "7 datagrams sent");
        let both = served::log_line(&[up, down]);
        assert!(both.contains("5 datagrams received, 2 lost; down: "), "{both}");
        assert!(both.ends_with(", 7 datagrams sent"), "{both}");
    }
}
