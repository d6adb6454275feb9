//! The interface of the protocol state machines that run a test with another end: their inputs and
//! their outputs.
//!
//! A machine knows the order of the steps and every time-out of its protocol. It has no socket, no
//! clock and no thread: its caller passes in each event with its time, carries out the outputs,
//! and calls again at the time that [`Wants`] names at the latest.

use std::collections::VecDeque;
use std::time::Duration;

use linerate_core::record::Failure;
use linerate_core::time::MonoTime;

/// Interval at which the caller checks the stop flag and the counters of the streams.
pub const LOOK: Duration = Duration::from_millis(50);
/// The shorter interval of those checks while the streams open or end.
pub const LOOK_AT_END: Duration = Duration::from_millis(2);

/// One end of a test, client or server, in some protocol.
pub trait Machine {
    /// The test that a client asks a server for.
    type Request;
    /// Conditions under which the server accepts the test, such as a port or a limit.
    type Terms;
    /// Reason with which the server refuses the test.
    type Refusal;
    /// Counters of the streams at one end, exchanged after the test.
    type Report;
    /// Messages about the streams that one end sends the other during the test.
    type News;
    /// Violation of the protocol by the other end, or the error that it reported.
    type PeerFault;

    /// Processes one event that happened at `now`; its outputs are read with [`Machine::poll`].
    fn handle(&mut self, now: MonoTime, input: Input<'_, Self>);

    /// The next output, in order; `None` forever after [`Output::Finished`] or
    /// [`Output::Failed`].
    fn poll(&mut self) -> Option<Output<Self>>;

    /// The machine's next time-out, how often to call it, and whether it reads control bytes.
    fn wait_conditions(&self) -> Wants;
}

/// An event that the caller passes to a machine.
pub enum Input<'a, M: Machine + ?Sized> {
    /// Bytes received on the control connection; only while [`Wants::reads`].
    Bytes(&'a [u8]),
    /// The other end closed the control connection.
    Closed,
    /// The answer to [`Output::Decide`].
    Decided(Result<M::Terms, M::Refusal>),
    /// The answer to [`Output::Open`]: every data stream is established.
    Opened,
    /// The answer to [`Output::Count`].
    Counted(Box<M::Report>),
    /// State of the data streams, passed in at every check.
    Look(FlowState),
    /// The user, or the program that runs this end, stops the test.
    Stop,
    /// A message of this end's streams for the other end.
    Tell(M::News),
    /// This end ends the test with this failure: the last chance to send the reason to the other
    /// end. Also passed in after [`Output::Failed`].
    GiveUp(&'a Failure),
}

/// An action that a machine asks its caller to carry out.
pub enum Output<M: Machine + ?Sized> {
    /// Send these bytes on the control connection.
    Send(Vec<u8>),
    /// Accept or refuse this test.
    Decide(Box<M::Request>),
    /// Connect the data streams, or accept them.
    Open,
    /// The time of the test begins.
    Begin,
    /// Start the senders.
    Start,
    /// Close the current reporting interval.
    Sample,
    /// End the omitted span (`--omit`): the measured time begins here.
    OmitOver,
    /// Stop the senders.
    StopSending,
    /// The test ends at this moment.
    Ended,
    /// Receive the data that is still in flight.
    Settle,
    /// Stop the receivers once they have read the data that has arrived.
    StopReceiving,
    /// Return the counters of this end's streams with [`Input::Counted`].
    Count,
    /// A message of the other end's streams.
    News(M::News),
    /// Stop every thread at once.
    Halt,
    /// Counters of the other end's streams.
    Peer(Box<M::Report>),
    /// The test has succeeded: end the remaining threads.
    Finished,
    /// The test has failed for this reason.
    Failed(TestFailureReason<M::PeerFault>),
}

/// Reason for which a test failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TestFailureReason<P> {
    /// The other end violated the protocol or reported an error.
    Peer(P),
    /// An expected message did not arrive in time.
    Silent {
        /// The expected message.
        awaited: &'static str,
        /// The time-out that it missed.
        within: Duration,
    },
    /// The other end closed the control connection.
    Closed,
    /// No data arrived for this time.
    NoData(Duration),
    /// The other end aborted the test.
    Left,
    /// The other end did not end the test in time.
    Overdue,
    /// This end was stopped before there was a result.
    Stopped,
}

/// State of this end's data streams, as a machine needs it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowState {
    /// Bytes or datagrams received on all streams of this end.
    pub received: u64,
    /// Bytes or datagrams sent and received on all streams.
    pub moved: u64,
    /// The amount that ends the test has been sent and received here.
    pub complete: bool,
    /// All that this end sent has been acknowledged, as far as this end can tell.
    pub delivered: bool,
    /// This end has received the amount that the other end says it sent, and has sent all of its
    /// own.
    pub settled: bool,
    /// Every stream has ended.
    pub done: bool,
}

/// A machine's next time-out, the interval of checks, and whether it reads control bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wants {
    /// The machine must be called at this time even without an event.
    pub wake_at: Option<MonoTime>,
    /// Longest time between two checks of the streams and of the stop flag.
    pub look: Duration,
    /// True while the machine reads bytes of the control connection.
    pub reads: bool,
}

/// Intervals and the omitted span of a running test. At the end of that span the intervals begin
/// anew, so that none of them lies in both.
#[derive(Clone, Copy, Debug)]
pub struct TestIntervalTimer {
    interval: Duration,
    tick: MonoTime,
    omit: Option<MonoTime>,
}

impl TestIntervalTimer {
    /// Intervals of a test that began at `begin` and omits its first `omit`.
    pub fn new(begin: MonoTime, interval: Duration, omit: Duration) -> Self {
        let omit = (!omit.is_zero()).then(|| begin + omit);
        Self { interval, tick: begin + interval, omit }
    }

    /// Adds the outputs that are due at `now`: the end of an interval or of the omitted span.
    pub fn push_due_outputs<M: Machine + ?Sized>(
        &mut self,
        now: MonoTime,
        out: &mut VecDeque<Output<M>>,
    ) {
        if let Some(at) = self.omit.filter(|at| now >= *at) {
            self.omit = None;
            self.tick = at + self.interval;
            out.extend([Output::Sample, Output::OmitOver]);
        } else if now >= self.tick {
            self.tick += self.interval;
            out.push_back(Output::Sample);
        }
    }

    /// Time of the next output.
    pub fn next(&self) -> MonoTime {
        self.omit.map_or(self.tick, |at| at.min(self.tick))
    }
}

/// A bounded wait for data in flight after the senders have stopped.
#[derive(Clone, Copy, Debug)]
pub struct Settling {
    end: MonoTime,
    quiet: Option<Duration>,
    moved: Option<(u64, MonoTime)>,
}

impl Settling {
    /// From `now` on for at most `max`, or until nothing has moved for `quiet`.
    pub fn new(now: MonoTime, max: Duration, quiet: Option<Duration>) -> Self {
        Self { end: now + max, quiet, moved: None }
    }

    /// True once the streams are done or settled, nothing has moved for `quiet`, or time is up.
    pub fn is_over(&mut self, now: MonoTime, flow: &FlowState) -> bool {
        let last =
            self.moved.filter(|(moved, _)| *moved == flow.moved).unwrap_or((flow.moved, now));
        self.moved = Some(last);
        let quiet = self.quiet.is_some_and(|quiet| now.duration_since(last.1) >= quiet);
        flow.done || flow.settled || quiet || now >= self.end
    }

    /// Time at which the wait ends at the latest.
    pub const fn latest_end(&self) -> MonoTime {
        self.end
    }
}
