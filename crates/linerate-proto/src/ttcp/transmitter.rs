//! The transmitter of a ttcp test, over TCP or UDP: its steps and time-outs. The receiver sends
//! nothing back.
//!
//! There is no control connection: a test begins when its stream is open and ends when all is sent.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use linerate_core::time::MonoTime;

use crate::dialect::{Beat, FlowState, Input, Machine, Output, Reason, Settling, Wants};

/// Time that a test has after its planned end for data in flight.
pub const GRACE: Duration = Duration::from_secs(15);
/// Longest time for sending the marks of the end.
pub const LEAVE_MAX: Duration = Duration::from_secs(3);
/// Interval of checks of the stream and of the stop flag.
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

/// State machine of the transmitter. Of a [`FlowState`] it uses `done`: first all data, then all
/// marks have been sent.
pub struct Transmitter {
    /// Duration of the test; `None` where it is limited by an amount.
    span: Option<Duration>,
    interval: Duration,
    stage: Stage,
    out: VecDeque<Output<Self>>,
    beat: Option<Beat>,
    stopped: bool,
}

impl Transmitter {
    /// A transmitter for a test of duration `span`, if it has one, with a sample every `interval`.
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

    fn check_state(&mut self, now: MonoTime, flow: &FlowState) {
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
                    self.fail_with(Reason::Overdue);
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
            Stage::Opening => self.fail_with(Reason::Stopped),
            Stage::Running { .. } => {
                self.out.push_back(Output::StopSending);
                self.stage = Stage::Running { until: Some(now + GRACE) };
            }
            Stage::Leaving(_) | Stage::Over => {}
        }
    }

    fn fail_with(&mut self, reason: Reason<Infallible>) {
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
            Input::Look(flow) => self.check_state(now, &flow),
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
