//! The common face of the machines that run a test with another end: what can happen to one, and
//! what it wants done.
//!
//! A machine knows the order of the steps and every time-out of its protocol. It has no socket, no
//! clock and no thread: whoever runs it hands in what happened and when, takes out what is to be
//! done, and comes back at the time that [`Wants`] names at the latest.

use std::collections::VecDeque;
use std::time::Duration;

use linerate_core::record::Failure;
use linerate_core::time::MonoTime;

/// How often the stop flag is looked at.
pub const LOOK: Duration = Duration::from_millis(50);
/// How often the streams are looked at when they are about to open or to end.
pub const LOOK_AT_END: Duration = Duration::from_millis(2);

/// One end of a test, client or server, in some protocol.
pub trait Machine {
    /// What a server is asked for, before it decides.
    type Request;
    /// On which terms it runs that.
    type Terms;
    /// How it says no.
    type Refusal;
    /// What an end counted of its streams.
    type Report;
    /// What the streams of an end have to tell the other one as they run.
    type News;
    /// What the other end did against the protocol, or said instead of going on.
    type PeerFault;

    /// Takes what happened at `now`.
    fn handle(&mut self, now: MonoTime, input: Input<'_, Self>);

    /// The next thing to do, in order; after [`Output::Finished`] or [`Output::Failed`] nothing.
    fn poll(&mut self) -> Option<Output<Self>>;

    /// What has to be looked at, and when.
    fn wants(&self) -> Wants;
}

/// What happens to a machine.
pub enum Input<'a, M: Machine + ?Sized> {
    /// Bytes of the control connection; only while [`Wants::reads`].
    Bytes(&'a [u8]),
    /// The other end closed the control connection.
    Closed,
    /// The answer to [`Output::Decide`].
    Decided(Result<M::Terms, M::Refusal>),
    /// The answer to [`Output::Open`]: every stream is there and ready.
    Opened,
    /// The answer to [`Output::Count`].
    Counted(Box<M::Report>),
    /// How far the data has come now; given at every look.
    Look(FlowState),
    /// The user, or whoever runs this end, wants no more.
    Stop,
    /// Something to tell the other end.
    Tell(M::News),
    /// The test ends here by this failure: the last moment for a word to the other end. It comes
    /// after [`Output::Failed`], too.
    GiveUp(&'a Failure),
}

/// What a machine wants done.
pub enum Output<M: Machine + ?Sized> {
    /// Send these bytes on the control connection.
    Send(Vec<u8>),
    /// Say whether this test may run here.
    Decide(Box<M::Request>),
    /// Connect the data streams, or take them in.
    Open,
    /// The time of the test begins.
    Begin,
    /// Senders begin.
    Start,
    /// An interval is over.
    Sample,
    /// The omitted span is over: what counts begins here.
    OmitOver,
    /// Senders end.
    StopSending,
    /// The test ends at this moment.
    Ended,
    /// Take what is on the way.
    Settle,
    /// Receivers end after what has arrived.
    StopReceiving,
    /// Tell what was counted.
    Count,
    /// What the other end's streams tell.
    News(M::News),
    /// Every thread leaves at once.
    Halt,
    /// What the other end counted.
    Peer(Box<M::Report>),
    /// The test is done: end every thread that is left.
    Finished,
    /// It did not come to its end.
    Failed(Reason<M::PeerFault>),
}

/// Why a test did not come to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason<P> {
    /// What the other end did or said.
    Peer(P),
    /// What was awaited did not come in time.
    Silent {
        /// What would have been next.
        awaited: &'static str,
        /// The time there was for it.
        within: Duration,
    },
    /// The other end closed the control connection.
    Closed,
    /// No data came for so long.
    NoData(Duration),
    /// The other end gave the test up.
    Left,
    /// The other end did not end the test in time.
    Overdue,
    /// This end was stopped before there was a result.
    Stopped,
}

/// What a machine has to know of the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowState {
    /// Bytes or datagrams that all receivers of this end have taken.
    pub received: u64,
    /// The same of all streams, sent or received.
    pub moved: u64,
    /// The amount that ends the test has been sent and received here.
    pub complete: bool,
    /// What was sent here has arrived, and was read as far as this end can tell.
    pub delivered: bool,
    /// What the other end says that it sent is here, and what this end sends is sent.
    pub settled: bool,
    /// Every stream has ended.
    pub done: bool,
}

/// What a machine has to look at, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wants {
    /// It goes on by then whatever happens.
    pub wake_at: Option<MonoTime>,
    /// The longest pause between two looks at the data and at the stop flag.
    pub look: Duration,
    /// Whether bytes of the control connection are of use now.
    pub reads: bool,
}

/// Intervals and the omitted span of a running test. At the end of that span the intervals begin
/// anew, so that none of them lies in both.
#[derive(Clone, Copy, Debug)]
pub struct Beat {
    interval: Duration,
    tick: MonoTime,
    omit: Option<MonoTime>,
}

impl Beat {
    /// Of a test that began at `begin`.
    pub fn new(begin: MonoTime, interval: Duration, omit: Duration) -> Self {
        let omit = (!omit.is_zero()).then(|| begin + omit);
        Self { interval, tick: begin + interval, omit }
    }

    /// Asks for what is due at `now`.
    pub fn due<M: Machine + ?Sized>(&mut self, now: MonoTime, out: &mut VecDeque<Output<M>>) {
        if let Some(at) = self.omit.filter(|at| now >= *at) {
            self.omit = None;
            self.tick = at + self.interval;
            out.extend([Output::Sample, Output::OmitOver]);
        } else if now >= self.tick {
            self.tick += self.interval;
            out.push_back(Output::Sample);
        }
    }

    /// When something is due again.
    pub fn next(&self) -> MonoTime {
        self.omit.map_or(self.tick, |at| at.min(self.tick))
    }
}

/// A bounded wait for what is on the way.
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

    /// Whether it is over.
    pub fn is_over(&mut self, now: MonoTime, flow: &FlowState) -> bool {
        let last =
            self.moved.filter(|(moved, _)| *moved == flow.moved).unwrap_or((flow.moved, now));
        self.moved = Some(last);
        let quiet = self.quiet.is_some_and(|quiet| now.since(last.1) >= quiet);
        flow.done || flow.settled || quiet || now >= self.end
    }

    /// When it is over at the latest.
    pub const fn end(&self) -> MonoTime {
        self.end
    }
}
