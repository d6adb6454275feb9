//! The client's side of a UDP test: its steps and time-outs.
//!
//! Each stream is a separate test at the server. The machine handles the datagrams other than data:
//! the request to a server to send, with or without a cookie ([`super::proof`]), the end, which is
//! repeated until the server's report arrives, and that report. Two bytes before each such datagram
//! hold the number of its stream; the owner of the sockets adds and removes them.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use linerate_core::time::MonoTime;

use super::{
    ClientHeader, Iperf2Amount, Mode, PROOF_BYTES, Stamp, UdpReport, UdpSender, answered_cookie,
    put_cookie,
};
use crate::dialect::{
    FlowState, Input, Machine, Output, TestFailureReason, TestIntervalTimer, Wants,
};

/// Interval at which the request to send is repeated while no data arrives.
const ASK_AGAIN: Duration = Duration::from_millis(250);
/// Time-out for the server's first datagram.
pub const FIRST_DATA: Duration = Duration::from_secs(3);
/// Silence after the planned end from which the end counts as lost.
const QUIET: Duration = Duration::from_secs(1);
/// Time before the planned end, beside three gaps of its pace, at which a server's last datagram
/// shows that the server stopped early; for an amount, the time that its rest would have taken. The
/// tolerance is for clocks that start at different times and for late hosts.
const EARLY: Duration = Duration::from_millis(500);
/// Silence before the planned end from which the server counts as gone.
const SILENCE_MAX: Duration = Duration::from_secs(5);
/// Time that a test has after its planned end for its last datagrams.
pub const UDP_GRACE: Duration = Duration::from_secs(10);
/// Interval at which the end is repeated until the report arrives, as in iperf 2.1.
pub const END_AGAIN: Duration = Duration::from_millis(10);
/// Time-out for the server's report.
pub const REPORT_TIMEOUT: Duration = Duration::from_secs(2);
/// Interval of checks of the streams and of the stop flag.
const LOOK: Duration = Duration::from_millis(2);

/// Parameters of a UDP test at the client.
#[derive(Clone, Debug)]
pub struct UdpClientTest {
    /// Header in every datagram.
    pub header: ClientHeader,
    /// Amount or time of each stream that the server sends.
    pub amounts: Vec<Iperf2Amount>,
    /// Payload of a datagram, in bytes.
    pub size_bytes: usize,
    /// Time for which senders send; `None` where an amount ends the test.
    pub span: Option<Duration>,
    /// Time between two samples.
    pub interval: Duration,
    /// Time between two datagrams of a stream at its pace.
    pub gap: Duration,
    /// Wall clock minus monotonic clock, in nanoseconds.
    pub wall_offset_ns: i64,
}

/// Failure of the server in a UDP test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UdpPeerFault {
    /// No datagram arrived after a request to send.
    NoData,
    /// The server stopped sending before the end.
    FellSilent,
    /// The report did not arrive.
    NoReport,
}

/// State of the streams that their owner reports to the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UdpNews {
    /// Datagrams of each stream that this end sent, once all are sent.
    Sent(Vec<u64>),
    /// Streams on which no datagram of a sending server has arrived.
    Dry(Vec<u16>),
}

#[derive(Clone, Copy, Debug)]
enum Iperf2UdpClientStage {
    Opening,
    /// The first stream asks a sending server for its cookie.
    Proving {
        until: MonoTime,
        next: MonoTime,
    },
    Running {
        give_up: Option<MonoTime>,
    },
    /// The ends are repeated until every report has arrived.
    Ending {
        until: MonoTime,
        next: MonoTime,
        times: u64,
    },
    Over,
}

/// State machine of the client of a UDP test.
pub struct UdpClient {
    test: UdpClientTest,
    stage: Iperf2UdpClientStage,
    out: VecDeque<Output<Self>>,
    beat: Option<TestIntervalTimer>,
    planned: Option<MonoTime>,
    /// The server's cookie, which proves this end's address; 0 without one.
    cookie: u64,
    asked: MonoTime,
    dry: Vec<u16>,
    /// Bytes received, and the time of the last change.
    received: (u64, MonoTime),
    /// The client no longer waits for data of the server.
    arrived: bool,
    sent: Option<Vec<u64>>,
    reports: Vec<Option<UdpReport>>,
    stopped: bool,
}

impl UdpClient {
    /// A client that starts at `now`, before its streams are open.
    pub fn new(now: MonoTime, test: UdpClientTest) -> Self {
        Self {
            stage: Iperf2UdpClientStage::Opening,
            out: VecDeque::from([Output::Open]),
            beat: None,
            planned: None,
            cookie: 0,
            asked: now,
            dry: Vec::new(),
            received: (0, now),
            arrived: !receives(test.header.mode),
            sent: None,
            reports: vec![None; test.amounts.len()],
            stopped: false,
            test,
        }
    }

    fn opened(&mut self, now: MonoTime) {
        match self.test.header.mode {
            Mode::Reverse => {
                self.stage = Iperf2UdpClientStage::Proving { until: now + FIRST_DATA, next: now }
            }
            _ => self.run(now, 0),
        }
    }

    /// Starts the test; the streams from `unasked` on have not been requested yet.
    fn run(&mut self, now: MonoTime, unasked: u16) {
        self.out.extend([Output::Begin, Output::Start]);
        self.beat = Some(TestIntervalTimer::new(now, self.test.interval, Duration::ZERO));
        self.planned = self.test.span.map(|span| now + span);
        (self.asked, self.received) = (now, (0, now));
        self.stage =
            Iperf2UdpClientStage::Running { give_up: self.planned.map(|end| end + UDP_GRACE) };
        if self.test.header.mode == Mode::Reverse {
            let streams = self.test.amounts.len() as u16;
            (unasked..streams).for_each(|flow| self.request_data(now, flow));
        }
    }

    /// Sends the datagram that requests the server's data, on a stream without data of this end.
    /// It is repeated while no data arrives, because it can be lost.
    fn request_data(&mut self, now: MonoTime, flow: u16) {
        let amount = self.test.amounts[usize::from(flow)];
        let mut sender = UdpSender::new(ClientHeader { amount, ..self.test.header });
        let mut datagram = sender.buffer(self.test.size_bytes.max(PROOF_BYTES));
        put_cookie(&mut datagram, self.cookie);
        sender.stamp_datagram(&mut datagram, self.wall_us(now));
        self.send_datagram(flow, &datagram);
    }

    fn send_datagram(&mut self, flow: u16, datagram: &[u8]) {
        self.out.push_back(Output::Send([&flow.to_be_bytes(), datagram].concat()));
    }

    const fn wall_us(&self, now: MonoTime) -> u64 {
        now.as_nanos().saturating_add_signed(self.test.wall_offset_ns) / 1000
    }

    fn check_state(&mut self, now: MonoTime, flow: &FlowState) {
        match self.stage {
            Iperf2UdpClientStage::Proving { until, next } => {
                if now >= until {
                    self.fail_with(UdpPeerFault::NoData);
                } else if now >= next {
                    self.request_data(now, 0);
                    self.stage = Iperf2UdpClientStage::Proving { until, next: now + ASK_AGAIN };
                }
            }
            Iperf2UdpClientStage::Running { give_up } => {
                if let Some(beat) = &mut self.beat {
                    beat.push_due_outputs(now, &mut self.out);
                }
                if !self.arrived && !self.check_arrivals(now, flow) {
                    return;
                }
                if flow.done && receives(self.test.header.mode) {
                    self.finish();
                } else if give_up.is_some_and(|end| now >= end) {
                    self.end_by(TestFailureReason::Overdue);
                }
            }
            Iperf2UdpClientStage::Ending { until, next, times } => {
                if now >= until || self.reports.iter().all(Option::is_some) {
                    self.finish();
                } else if now >= next {
                    self.send_ends(now, times);
                    let (next, times) = (now + END_AGAIN, times + 1);
                    self.stage = Iperf2UdpClientStage::Ending { until, next, times };
                }
            }
            Iperf2UdpClientStage::Opening | Iperf2UdpClientStage::Over => {}
        }
    }

    /// Checks the data of a sending server: repeats the request while none arrives, and detects a
    /// lost end and a server that is gone. False once the test is over.
    fn check_arrivals(&mut self, now: MonoTime, flow: &FlowState) -> bool {
        if flow.received != self.received.0 {
            self.received = (flow.received, now);
        }
        if flow.done {
            self.arrived = true;
            return true;
        }
        let silent = now.duration_since(self.received.1);
        let planned = self.planned.is_none_or(|end| now >= end);
        let quiet = flow.received > 0 && planned && silent >= QUIET;
        let early = EARLY.saturating_add(self.test.gap.saturating_mul(3));
        if self.stopped || quiet {
            let missing = match self.planned {
                Some(end) => end.duration_since(self.received.1),
                None => self.missing(flow.moved),
            };
            if missing > early && !self.stopped {
                self.fail_with(UdpPeerFault::FellSilent);
                return false;
            }
            self.arrived = true;
            self.out.push_back(Output::Settle);
        } else if flow.received == 0 && silent >= FIRST_DATA {
            self.fail_with(UdpPeerFault::NoData);
        } else if silent >= SILENCE_MAX {
            self.fail_with(UdpPeerFault::FellSilent);
        } else if now.duration_since(self.asked) >= ASK_AGAIN
            && self.test.header.mode == Mode::Reverse
        {
            self.asked = now;
            let dry = std::mem::take(&mut self.dry);
            dry.into_iter().for_each(|flow| self.request_data(now, flow));
        }
        !matches!(self.stage, Iperf2UdpClientStage::Over)
    }

    /// Time that a server would take at its pace for the rest of an amount; `numbers` is the sum of
    /// the highest sequence numbers of all streams.
    fn missing(&self, numbers: u64) -> Duration {
        let datagrams = self.test.amounts.iter().map(|amount| match amount {
            Iperf2Amount::Bytes(bytes) => {
                (*bytes as usize).div_ceil(self.test.size_bytes.max(1)) as u64
            }
            Iperf2Amount::Centiseconds(_) => 0,
        });
        let left = datagrams.sum::<u64>().saturating_sub(numbers);
        let each = left / self.test.amounts.len().max(1) as u64;
        self.test.gap.saturating_mul(each.try_into().unwrap_or(u32::MAX))
    }

    /// Starts the end after all data of this end has been sent: the datagrams of each stream.
    fn begin_end(&mut self, now: MonoTime, sent: Vec<u64>) {
        if self.sent.is_some() || !matches!(self.stage, Iperf2UdpClientStage::Running { .. }) {
            return;
        }
        self.sent = Some(sent);
        if self.test.header.mode == Mode::FullDuplex {
            // A server that has read the end takes a repetition for a new client.
            return self.send_ends(now, 0);
        }
        self.stage =
            Iperf2UdpClientStage::Ending { until: now + REPORT_TIMEOUT, next: now, times: 0 };
    }

    /// Sends the end of every stream without a report; each repetition has the next number.
    fn send_ends(&mut self, now: MonoTime, times: u64) {
        let (sent, sent_us) = (self.sent.clone().unwrap_or_default(), self.wall_us(now));
        for ((flow, sent), report) in (0..).zip(sent).zip(self.reports.clone()) {
            if report.is_none() {
                let header = &UdpSender::new(self.test.header).first_bytes();
                let end = end_datagram(header, self.test.size_bytes, sent + times, sent_us);
                self.send_datagram(flow, &end);
            }
        }
    }

    fn read_datagram(&mut self, now: MonoTime, bytes: &[u8]) {
        let Some((flow, datagram)) = bytes.split_first_chunk::<2>() else { return };
        let flow = usize::from(u16::from_be_bytes(*flow));
        match self.stage {
            // A server of iperf 2 ignores the cookie and starts to send.
            Iperf2UdpClientStage::Proving { .. } => {
                let cookie = answered_cookie(datagram);
                self.cookie = cookie.unwrap_or(0);
                self.run(now, u16::from(cookie.is_none()));
            }
            Iperf2UdpClientStage::Ending { .. } => {
                if let Some(report) = self.reports.get_mut(flow) {
                    *report = report.take().or_else(|| UdpReport::parse(datagram));
                }
            }
            _ => {}
        }
    }

    fn stop_test(&mut self, now: MonoTime) {
        if std::mem::replace(&mut self.stopped, true) {
            return;
        }
        match self.stage {
            Iperf2UdpClientStage::Opening | Iperf2UdpClientStage::Proving { .. } => {
                self.end_by(TestFailureReason::Stopped)
            }
            Iperf2UdpClientStage::Running { .. } => {
                self.out.push_back(Output::StopSending);
                self.stage = Iperf2UdpClientStage::Running { give_up: Some(now + UDP_GRACE) };
            }
            Iperf2UdpClientStage::Ending { .. } | Iperf2UdpClientStage::Over => {}
        }
    }

    fn finish(&mut self) {
        let asked = matches!(self.stage, Iperf2UdpClientStage::Ending { .. });
        self.out.push_back(Output::Sample);
        let reports = if asked { std::mem::take(&mut self.reports) } else { Vec::new() };
        let silent = reports.iter().any(Option::is_none);
        self.out.push_back(Output::Peer(Box::new(reports)));
        if silent {
            return self.fail_with(UdpPeerFault::NoReport);
        }
        self.out.push_back(Output::Finished);
        self.stage = Iperf2UdpClientStage::Over;
    }

    fn fail_with(&mut self, fault: UdpPeerFault) {
        self.end_by(TestFailureReason::Peer(fault));
    }

    fn end_by(&mut self, reason: TestFailureReason<UdpPeerFault>) {
        self.out.push_back(Output::Failed(reason));
        self.stage = Iperf2UdpClientStage::Over;
    }
}

/// True if the server sends on the client's streams.
const fn receives(mode: Mode) -> bool {
    matches!(mode, Mode::Reverse | Mode::FullDuplex)
}

/// Builds the datagram that ends a stream after `sent` datagrams that begin with `head`: its
/// number is the next one, negated.
pub fn end_datagram(head: &[u8], size_bytes: usize, sent: u64, sent_us: u64) -> Vec<u8> {
    let mut datagram =
        super::pattern(size_bytes.max(super::Iperf2DatagramLayout::Wide.header_offset()));
    let length = head.len().min(datagram.len());
    datagram[..length].copy_from_slice(&head[..length]);
    let number = i64::try_from(sent).unwrap_or(i64::MAX - 1) + 1;
    Stamp { number: -number, sent_us }.write(&mut datagram);
    datagram
}

impl Machine for UdpClient {
    type Request = Infallible;
    type Terms = Infallible;
    type Refusal = Infallible;
    type Report = Vec<Option<UdpReport>>;
    type News = UdpNews;
    type PeerFault = UdpPeerFault;

    fn handle(&mut self, now: MonoTime, input: Input<'_, Self>) {
        match input {
            Input::Bytes(bytes) => self.read_datagram(now, bytes),
            Input::Opened => self.opened(now),
            Input::Look(flow) => self.check_state(now, &flow),
            Input::Tell(UdpNews::Sent(sent)) => self.begin_end(now, sent),
            Input::Tell(UdpNews::Dry(dry)) => self.dry = dry,
            Input::Stop => self.stop_test(now),
            Input::GiveUp(_) => self.stage = Iperf2UdpClientStage::Over,
            Input::Closed | Input::Counted(_) => {}
            Input::Decided(Ok(never) | Err(never)) => match never {},
        }
    }

    fn poll(&mut self) -> Option<Output<Self>> {
        self.out.pop_front()
    }

    fn wait_conditions(&self) -> Wants {
        let wake_at = match self.stage {
            Iperf2UdpClientStage::Proving { until, next } => Some(until.min(next)),
            Iperf2UdpClientStage::Running { .. } => self.beat.map(|beat| beat.next()),
            Iperf2UdpClientStage::Ending { until, next, .. } => Some(until.min(next)),
            Iperf2UdpClientStage::Opening | Iperf2UdpClientStage::Over => None,
        };
        let reads = matches!(
            self.stage,
            Iperf2UdpClientStage::Proving { .. } | Iperf2UdpClientStage::Ending { .. }
        );
        Wants { wake_at, look: LOOK, reads }
    }
}
