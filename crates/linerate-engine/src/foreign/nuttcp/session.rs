//! The client's control connection: greeting, parameters, what the server tells, its summary.

use std::net::TcpStream;
use std::time::Duration;

use linerate_core::record::{Failure, Fault};
use linerate_core::time::MonoTime;
use linerate_proto::nuttcp::{
    ClientEvent, ClientMachine, Interval, Summary, Version, WIRE_VERSION,
};
use linerate_sys::clock::monotonic;

use super::control::{Control, Heard};
use crate::context::Context;

/// The server has this long for each answer. It may keep a client waiting while others measure.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// The server has this long for its summary once the data is over.
const SUMMARY_TIMEOUT: Duration = Duration::from_secs(10);
/// How often the stop flag is looked at.
const LOOK: Duration = Duration::from_millis(50);
/// Intervals that wait for somebody to take them.
const INTERVALS_MAX: usize = 100_000;

/// Told of each interval line of the server: its figures and the line.
pub type ToldInterval<'a> = dyn FnMut(&Interval, &str) + 'a;

/// What nuttcp's own command line can ask for beside a plan.
pub struct Extras<'a> {
    /// Port of the first data stream.
    pub data_port: Option<u16>,
    /// A server that receives tells about each interval of the plan.
    pub intervals: bool,
    /// A server that transmits keeps its pace from write to write (`-Ri`).
    pub instant: bool,
    /// A server that receives tells its jitter: what `-j` shows of it, 0 for nothing.
    pub jitter: u8,
    /// The same of one-way delays (`-o`).
    pub delay: u8,
    /// Told of the intervals.
    pub told: &'a mut ToldInterval<'a>,
}

impl<'a> Extras<'a> {
    /// Nothing beside the plan.
    pub fn none(told: &'a mut ToldInterval<'a>) -> Self {
        Self { data_port: None, intervals: false, instant: false, jitter: 0, delay: 0, told }
    }
}

/// The control connection of a test, and what the server told.
pub(super) struct Session<'a> {
    control: Control,
    machine: ClientMachine,
    /// What the server told of its end.
    pub(super) summary: Summary,
    /// What it told while data flowed and nobody has taken yet.
    intervals: Vec<Interval>,
    over: bool,
    told: &'a mut ToldInterval<'a>,
}

impl<'a> Session<'a> {
    pub(super) fn new(stream: TcpStream, told: &'a mut ToldInterval<'a>) -> Self {
        Self {
            control: Control::new(stream),
            machine: ClientMachine::default(),
            summary: Summary::default(),
            intervals: Vec::new(),
            over: false,
            told,
        }
    }

    pub(super) fn greet(&mut self, context: &Context<'_>) -> Result<Version, Failure> {
        self.control.send(&format!("HELO nuttcp v{}\n", WIRE_VERSION))?;
        match self.next_event("greeting", ANSWER_TIMEOUT, context)? {
            ClientEvent::Hello(version) => Ok(version),
            event => Err(self.refusal(event)),
        }
    }

    pub(super) fn ask(&mut self, line: &str, context: &Context<'_>) -> Result<(), Failure> {
        self.control.send(line)?;
        match self.next_event("answer", ANSWER_TIMEOUT, context)? {
            ClientEvent::Accepted => Ok(()),
            event => Err(self.refusal(event)),
        }
    }

    /// The next event that means something.
    fn next_event(
        &mut self,
        what: &str,
        timeout: Duration,
        context: &Context<'_>,
    ) -> Result<ClientEvent, Failure> {
        let deadline = monotonic() + timeout;
        while monotonic() < deadline && !context.stop.asked() {
            match self.control.hear(deadline.min(monotonic() + LOOK))? {
                Heard::Line(line) => match self.handle(line)? {
                    ClientEvent::Nothing => {}
                    event => return Ok(event),
                },
                Heard::Closed => match self.machine.closed() {
                    Some(reason) => return Ok(ClientEvent::Refused(reason)),
                    None => return Err(self.control.closed()),
                },
                Heard::Nothing => {}
            }
        }
        Err(self.control.silent(what))
    }

    /// Takes the lines that have come by `until`; whether the server has closed.
    pub(super) fn listen(&mut self, until: MonoTime) -> Result<bool, Failure> {
        while !self.over {
            match self.control.hear(until)? {
                Heard::Line(line) => {
                    self.handle(line)?;
                }
                Heard::Closed => self.over = true,
                Heard::Nothing => return Ok(false),
            }
        }
        Ok(true)
    }

    fn handle(&mut self, line: String) -> Result<ClientEvent, Failure> {
        self.summary.read(&line);
        if let Some(interval) = Interval::parse(&line) {
            if self.intervals.len() < INTERVALS_MAX {
                self.intervals.push(interval);
            }
            (self.told)(&interval, &line);
        }
        self.machine.handle(line).map_err(|error| self.control.misbehaved(&error))
    }

    /// Takes the summary; the server closes behind it. One that closes before has not lived to its
    /// end.
    pub(super) fn read_summary(&mut self, context: &Context<'_>) -> Result<(), Failure> {
        let deadline = monotonic() + SUMMARY_TIMEOUT;
        while monotonic() < deadline {
            let over = self.listen(deadline.min(monotonic() + LOOK))?;
            if context.stop.asked() || self.summary.megabytes.is_some() && over {
                return Ok(());
            }
            if over {
                return Err(self.closed());
            }
        }
        Err(self.control.silent("summary"))
    }

    /// The intervals that the server has told since this was last asked.
    pub(super) fn intervals(&mut self) -> Vec<Interval> {
        std::mem::take(&mut self.intervals)
    }

    /// The server closed, where it should not have.
    pub(super) fn closed(&self) -> Failure {
        self.control.closed()
    }

    /// The server did not tell in time what was waited for.
    pub(super) fn silent(&self, what: &str) -> Failure {
        self.control.silent(what)
    }

    fn refusal(&self, event: ClientEvent) -> Failure {
        match event {
            ClientEvent::Refused(reason) => {
                Failure::new(Fault::PeerRefused, "ask for a test with", self.control.peer(), reason)
            }
            _ => {
                let reason = "answers out of order";
                Failure::new(Fault::PeerMisbehaved, "test with", self.control.peer(), reason)
            }
        }
    }
}
