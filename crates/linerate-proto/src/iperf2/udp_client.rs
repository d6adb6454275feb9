//! The client's side of a UDP test: its steps and time-outs.
//!
//! Each stream is a test of its own at the server. What goes beside data is a datagram, with the
//! number of its stream in two bytes before it, which whoever has the sockets takes off: the one
//! that asks a server to send, with or without a proof of the address ([`super::proof`]), the end,
//! which is said until the server's report comes, and that report.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use linerate_core::time::MonoTime;

use super::{
    Amount, ClientHeader, Mode, PROOF_BYTES, Stamp, UdpReport, UdpSender, answered_cookie,
    put_cookie,
};
use crate::dialect::{Beat, FlowState, Input, Machine, Output, Reason, Wants};

/// While nothing comes a server that is to send is asked again this often.
const ASK_AGAIN: Duration = Duration::from_millis(250);
/// Its first datagram has this long to come.
pub const FIRST_DATA: Duration = Duration::from_secs(3);
/// After the planned end silence of this length means that the end was lost.
const QUIET: Duration = Duration::from_secs(1);
/// A server whose last datagram came this long before the planned end, and three gaps of its pace,
/// was gone by then; so was one that would have taken as long for the rest of an amount. Both ends
/// count the time by themselves, and a host may be late.
const EARLY: Duration = Duration::from_millis(500);
/// Before it, silence of this length means that the server is gone.
const SILENCE_MAX: Duration = Duration::from_secs(5);
/// After its planned end a test has this long for its last datagrams.
pub const UDP_GRACE: Duration = Duration::from_secs(10);
/// The end is said again after this, until the report comes, as iperf 2.1 does it.
pub const END_AGAIN: Duration = Duration::from_millis(10);
/// The report has this long to come.
pub const REPORT_TIMEOUT: Duration = Duration::from_secs(2);
/// How often the streams and the stop flag are looked at.
const LOOK: Duration = Duration::from_millis(2);

/// What the client wants of its test.
#[derive(Clone, Debug)]
pub struct UdpClientTest {
    /// What every datagram begins with.
    pub header: ClientHeader,
    /// What a server that sends is to send on each stream.
    pub amounts: Vec<Amount>,
    /// Payload of a datagram.
    pub size_bytes: usize,
    /// How long senders send; none where an amount ends the test.
    pub span: Option<Duration>,
    /// Time between samples.
    pub interval: Duration,
    /// From datagram to datagram of a stream at its pace.
    pub gap: Duration,
    /// The wall clock less the monotonic one, in nanoseconds.
    pub wall_offset_ns: i64,
}

/// What a server left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UdpPeerFault {
    /// It was asked to send, and nothing came.
    NoData,
    /// It sent, and fell silent before the end.
    FellSilent,
    /// It did not say what it received.
    NoReport,
}

/// What is known of the streams at a look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UdpNews {
    /// Datagrams of each stream that this end sent, once all are sent.
    Sent(Vec<u64>),
    /// Streams on which nothing has come that the server is to send.
    Dry(Vec<u16>),
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    Opening,
    /// A server that is to send is asked for its cookie on the first stream.
    Proving {
        until: MonoTime,
        next: MonoTime,
    },
    Running {
        give_up: Option<MonoTime>,
    },
    /// Ends are said until every report is here.
    Ending {
        until: MonoTime,
        next: MonoTime,
        times: u64,
    },
    Over,
}

/// The client's machine.
pub struct UdpClient {
    test: UdpClientTest,
    stage: Stage,
    out: VecDeque<Output<Self>>,
    beat: Option<Beat>,
    planned: Option<MonoTime>,
    /// What proves the own address to a server that wants that.
    cookie: u64,
    asked: MonoTime,
    dry: Vec<u16>,
    /// What had come, and when the last of it did.
    received: (u64, MonoTime),
    /// Nothing more of what the server sends is waited for.
    arrived: bool,
    sent: Option<Vec<u64>>,
    reports: Vec<Option<UdpReport>>,
    stopped: bool,
}

impl UdpClient {
    /// Begins at `now`; no stream is open yet.
    pub fn new(now: MonoTime, test: UdpClientTest) -> Self {
        Self {
            stage: Stage::Opening,
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
            Mode::Reverse => self.stage = Stage::Proving { until: now + FIRST_DATA, next: now },
            _ => self.run(now, 0),
        }
    }

    /// The test begins; streams from `unasked` on have not been asked for yet.
    fn run(&mut self, now: MonoTime, unasked: u16) {
        self.out.extend([Output::Begin, Output::Start]);
        self.beat = Some(Beat::new(now, self.test.interval, Duration::ZERO));
        self.planned = self.test.span.map(|span| now + span);
        (self.asked, self.received) = (now, (0, now));
        self.stage = Stage::Running { give_up: self.planned.map(|end| end + UDP_GRACE) };
        if self.test.header.mode == Mode::Reverse {
            let streams = self.test.amounts.len() as u16;
            (unasked..streams).for_each(|flow| self.ask(now, flow));
        }
    }

    /// Sends the datagram that makes a server send, where a stream sends nothing else. One that is
    /// lost is sent again while nothing comes.
    fn ask(&mut self, now: MonoTime, flow: u16) {
        let amount = self.test.amounts[usize::from(flow)];
        let mut sender = UdpSender::new(ClientHeader { amount, ..self.test.header });
        let mut datagram = sender.buffer(self.test.size_bytes.max(PROOF_BYTES));
        put_cookie(&mut datagram, self.cookie);
        sender.stamp(&mut datagram, self.wall_us(now));
        self.send(flow, &datagram);
    }

    fn send(&mut self, flow: u16, datagram: &[u8]) {
        self.out.push_back(Output::Send([&flow.to_be_bytes(), datagram].concat()));
    }

    const fn wall_us(&self, now: MonoTime) -> u64 {
        now.nanos().saturating_add_signed(self.test.wall_offset_ns) / 1000
    }

    fn look(&mut self, now: MonoTime, flow: &FlowState) {
        match self.stage {
            Stage::Proving { until, next } => {
                if now >= until {
                    self.fail(UdpPeerFault::NoData);
                } else if now >= next {
                    self.ask(now, 0);
                    self.stage = Stage::Proving { until, next: now + ASK_AGAIN };
                }
            }
            Stage::Running { give_up } => {
                if let Some(beat) = &mut self.beat {
                    beat.due(now, &mut self.out);
                }
                if !self.arrived && !self.follow(now, flow) {
                    return;
                }
                if flow.done && receives(self.test.header.mode) {
                    self.finish();
                } else if give_up.is_some_and(|end| now >= end) {
                    self.end_by(Reason::Overdue);
                }
            }
            Stage::Ending { until, next, times } => {
                if now >= until || self.reports.iter().all(Option::is_some) {
                    self.finish();
                } else if now >= next {
                    self.say_end(now, times);
                    let (next, times) = (now + END_AGAIN, times + 1);
                    self.stage = Stage::Ending { until, next, times };
                }
            }
            Stage::Opening | Stage::Over => {}
        }
    }

    /// Follows what a server sends: asks again while nothing comes, and notices an end that was
    /// lost, and a server that is gone: the test does not go on then.
    fn follow(&mut self, now: MonoTime, flow: &FlowState) -> bool {
        if flow.received != self.received.0 {
            self.received = (flow.received, now);
        }
        if flow.done {
            self.arrived = true;
            return true;
        }
        let silent = now.since(self.received.1);
        let planned = self.planned.is_none_or(|end| now >= end);
        let quiet = flow.received > 0 && planned && silent >= QUIET;
        let early = EARLY.saturating_add(self.test.gap.saturating_mul(3));
        if self.stopped || quiet {
            let missing = match self.planned {
                Some(end) => end.since(self.received.1),
                None => self.missing(flow.moved),
            };
            if missing > early && !self.stopped {
                self.fail(UdpPeerFault::FellSilent);
                return false;
            }
            self.arrived = true;
            self.out.push_back(Output::Settle);
        } else if flow.received == 0 && silent >= FIRST_DATA {
            self.fail(UdpPeerFault::NoData);
        } else if silent >= SILENCE_MAX {
            self.fail(UdpPeerFault::FellSilent);
        } else if now.since(self.asked) >= ASK_AGAIN && self.test.header.mode == Mode::Reverse {
            self.asked = now;
            std::mem::take(&mut self.dry).into_iter().for_each(|flow| self.ask(now, flow));
        }
        !matches!(self.stage, Stage::Over)
    }

    /// How long a server takes at its pace for what is left of an amount after the highest numbers
    /// of all streams, which make so many together.
    fn missing(&self, numbers: u64) -> Duration {
        let datagrams = self.test.amounts.iter().map(|amount| match amount {
            Amount::Bytes(bytes) => (*bytes as usize).div_ceil(self.test.size_bytes.max(1)) as u64,
            Amount::Centiseconds(_) => 0,
        });
        let left = datagrams.sum::<u64>().saturating_sub(numbers);
        let each = left / self.test.amounts.len().max(1) as u64;
        self.test.gap.saturating_mul(each.try_into().unwrap_or(u32::MAX))
    }

    /// Every stream that this end sends is sent.
    fn sent(&mut self, now: MonoTime, sent: Vec<u64>) {
        if self.sent.is_some() || !matches!(self.stage, Stage::Running { .. }) {
            return;
        }
        self.sent = Some(sent);
        if self.test.header.mode == Mode::FullDuplex {
            // A server that has read it once would take another for a new client.
            return self.say_end(now, 0);
        }
        self.stage = Stage::Ending { until: now + REPORT_TIMEOUT, next: now, times: 0 };
    }

    /// Says the end of every stream that has no report; each time has the next number.
    fn say_end(&mut self, now: MonoTime, times: u64) {
        let (sent, sent_us) = (self.sent.clone().unwrap_or_default(), self.wall_us(now));
        for ((flow, sent), report) in (0..).zip(sent).zip(self.reports.clone()) {
            if report.is_none() {
                let header = &UdpSender::new(self.test.header).head();
                self.send(flow, &end(header, self.test.size_bytes, sent + times, sent_us));
            }
        }
    }

    fn take(&mut self, now: MonoTime, bytes: &[u8]) {
        let Some((flow, datagram)) = bytes.split_first_chunk::<2>() else { return };
        let flow = usize::from(u16::from_be_bytes(*flow));
        match self.stage {
            // A server of iperf begins to send instead.
            Stage::Proving { .. } => {
                let cookie = answered_cookie(datagram);
                self.cookie = cookie.unwrap_or(0);
                self.run(now, u16::from(cookie.is_none()));
            }
            Stage::Ending { .. } => {
                if let Some(report) = self.reports.get_mut(flow) {
                    *report = report.take().or_else(|| UdpReport::parse(datagram));
                }
            }
            _ => {}
        }
    }

    fn stop(&mut self, now: MonoTime) {
        if std::mem::replace(&mut self.stopped, true) {
            return;
        }
        match self.stage {
            Stage::Opening | Stage::Proving { .. } => self.end_by(Reason::Stopped),
            Stage::Running { .. } => {
                self.out.push_back(Output::StopSending);
                self.stage = Stage::Running { give_up: Some(now + UDP_GRACE) };
            }
            Stage::Ending { .. } | Stage::Over => {}
        }
    }

    fn finish(&mut self) {
        let asked = matches!(self.stage, Stage::Ending { .. });
        self.out.push_back(Output::Sample);
        let reports = if asked { std::mem::take(&mut self.reports) } else { Vec::new() };
        let silent = reports.iter().any(Option::is_none);
        self.out.push_back(Output::Peer(Box::new(reports)));
        if silent {
            return self.fail(UdpPeerFault::NoReport);
        }
        self.out.push_back(Output::Finished);
        self.stage = Stage::Over;
    }

    fn fail(&mut self, fault: UdpPeerFault) {
        self.end_by(Reason::Peer(fault));
    }

    fn end_by(&mut self, reason: Reason<UdpPeerFault>) {
        self.out.push_back(Output::Failed(reason));
        self.stage = Stage::Over;
    }
}

/// Whether the server sends on the client's streams.
const fn receives(mode: Mode) -> bool {
    matches!(mode, Mode::Reverse | Mode::FullDuplex)
}

/// The datagram that ends a stream after `sent` others, which begin with `head`: it has the next
/// number, negated.
pub fn end(head: &[u8], size_bytes: usize, sent: u64, sent_us: u64) -> Vec<u8> {
    let mut datagram = super::pattern(size_bytes.max(super::Layout::Wide.bytes()));
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
            Input::Bytes(bytes) => self.take(now, bytes),
            Input::Opened => self.opened(now),
            Input::Look(flow) => self.look(now, &flow),
            Input::Tell(UdpNews::Sent(sent)) => self.sent(now, sent),
            Input::Tell(UdpNews::Dry(dry)) => self.dry = dry,
            Input::Stop => self.stop(now),
            Input::GiveUp(_) => self.stage = Stage::Over,
            Input::Closed | Input::Counted(_) => {}
            Input::Decided(Ok(never) | Err(never)) => match never {},
        }
    }

    fn poll(&mut self) -> Option<Output<Self>> {
        self.out.pop_front()
    }

    fn wants(&self) -> Wants {
        let wake_at = match self.stage {
            Stage::Proving { until, next } => Some(until.min(next)),
            Stage::Running { .. } => self.beat.map(|beat| beat.next()),
            Stage::Ending { until, next, .. } => Some(until.min(next)),
            Stage::Opening | Stage::Over => None,
        };
        let reads = matches!(self.stage, Stage::Proving { .. } | Stage::Ending { .. });
        Wants { wake_at, look: LOOK, reads }
    }
}
