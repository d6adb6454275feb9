//! The transmitter's side of a test whose other end says nothing, over TCP or UDP: its steps and
//! time-outs.
//!
//! There is no control connection: a test begins when its stream is open and ends when all is sent.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use linerate_core::time::MonoTime;

use crate::dialect::{Beat, FlowState, Input, Machine, Output, Reason, Settling, Wants};

/// After its planned end a test has this long for what is on the way.
pub const GRACE: Duration = Duration::from_secs(15);
/// Marks of the end are sent within this time.
pub const LEAVE_MAX: Duration = Duration::from_secs(3);
/// How often the stream and the stop flag are looked at.
const LOOK: Duration = Duration::from_millis(2);

#[derive(Clone, Copy, Debug)]
enum Stage {
    Opening,
    Running {
        until: Option<MonoTime>,
    },
    /// All data is sent; marks of its end may follow.
    Leaving(Settling),
    Over,
}

/// The transmitter's machine. In a [`FlowState`] it looks at `done`: data, and then marks, are
/// sent.
pub struct Transmitter {
    /// How long the test lasts; none where nobody can say.
    span: Option<Duration>,
    interval: Duration,
    stage: Stage,
    out: VecDeque<Output<Self>>,
    beat: Option<Beat>,
    stopped: bool,
}

impl Transmitter {
    /// Of a test that lasts `span`, where that is known, with a sample every `interval`.
    pub fn new(span: Option<Duration>, interval: Duration) -> Self {
        Self {
            span,
            interval,
            stage: Stage::Opening,
            out: VecDeque::from([Output::Open]),
            beat: None,
            stopped: false,
        }
    }

    fn look(&mut self, now: MonoTime, flow: &FlowState) {
        match &mut self.stage {
            Stage::Running { until } => {
                let overdue = until.is_some_and(|until| now >= until);
                if let Some(beat) = &mut self.beat {
                    beat.due(now, &mut self.out);
                }
                if flow.done {
                    self.out.push_back(Output::Ended);
                    self.stage = Stage::Leaving(Settling::new(now, LEAVE_MAX, None));
                } else if overdue {
                    self.fail(Reason::Overdue);
                }
            }
            Stage::Leaving(wait) => {
                if wait.is_over(now, flow) {
                    self.out.push_back(Output::Finished);
                    self.stage = Stage::Over;
                }
            }
            Stage::Opening | Stage::Over => {}
        }
    }

    fn stop(&mut self, now: MonoTime) {
        if std::mem::replace(&mut self.stopped, true) {
            return;
        }
        match self.stage {
            Stage::Opening => self.fail(Reason::Stopped),
            Stage::Running { .. } => {
                self.out.push_back(Output::StopSending);
                self.stage = Stage::Running { until: Some(now + GRACE) };
            }
            Stage::Leaving(_) | Stage::Over => {}
        }
    }

    fn fail(&mut self, reason: Reason<Infallible>) {
        self.out.push_back(Output::Failed(reason));
        self.stage = Stage::Over;
    }
}

impl Machine for Transmitter {
    type Request = Infallible;
    type Terms = Infallible;
    type Refusal = Infallible;
    type Report = Infallible;
    type News = Infallible;
    type PeerFault = Infallible;

    fn handle(&mut self, now: MonoTime, input: Input<'_, Self>) {
        match input {
            Input::Opened => {
                self.out.extend([Output::Begin, Output::Start]);
                self.beat = Some(Beat::new(now, self.interval, Duration::ZERO));
                self.stage = Stage::Running { until: self.span.map(|span| now + span + GRACE) };
            }
            Input::Look(flow) => self.look(now, &flow),
            Input::Stop => self.stop(now),
            Input::GiveUp(_) => self.stage = Stage::Over,
            Input::Bytes(_) | Input::Closed => {}
            Input::Counted(never) => match *never {},
            Input::Decided(Ok(never) | Err(never)) | Input::Tell(never) => match never {},
        }
    }

    fn poll(&mut self) -> Option<Output<Self>> {
        self.out.pop_front()
    }

    fn wants(&self) -> Wants {
        let wake_at = match self.stage {
            Stage::Running { until } => {
                let beat = self.beat.map(|beat| beat.next());
                until.into_iter().chain(beat).min()
            }
            Stage::Leaving(wait) => Some(wait.end()),
            Stage::Opening | Stage::Over => None,
        };
        Wants { wake_at, look: LOOK, reads: false }
    }
}
