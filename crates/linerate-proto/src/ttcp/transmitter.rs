//! The transmitter of a ttcp test, over TCP or UDP: its steps and time-outs. The receiver sends
//! nothing back.
//!
//! There is no control connection: a test begins when its stream is open and ends when all is sent.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use linerate_core::time::MonoTime;

use crate::dialect::{
    FlowState, Input, Machine, Output, Settling, TestFailureReason, TestIntervalTimer, Wants,
};

/// Time that a test has after its planned end for data in flight.
pub const GRACE: Duration = Duration::from_secs(15);
/// Longest time for sending the marks of the end.
pub const LEAVE_MAX: Duration = Duration::from_secs(3);
/// Interval of checks of the stream and of the stop flag.
const LOOK: Duration = Duration::from_millis(2);

#[derive(Clone, Copy, Debug)]
enum TtcpTransmitterStage {
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
    stage: TtcpTransmitterStage,
    out: VecDeque<Output<Self>>,
    beat: Option<TestIntervalTimer>,
    stopped: bool,
}

impl Transmitter {
    /// A transmitter for a test of duration `span`, if it has one, with a sample every `interval`.
    pub fn new(span: Option<Duration>, interval: Duration) -> Self {
        Self {
            span,
            interval,
            stage: TtcpTransmitterStage::Opening,
            out: VecDeque::from([Output::Open]),
            beat: None,
            stopped: false,
        }
    }

    fn check_state(&mut self, now: MonoTime, flow: &FlowState) {
        match &mut self.stage {
            TtcpTransmitterStage::Running { until } => {
                let overdue = until.is_some_and(|until| now >= until);
                if let Some(beat) = &mut self.beat {
                    beat.push_due_outputs(now, &mut self.out);
                }
                if flow.done {
                    self.out.push_back(Output::Ended);
                    self.stage = TtcpTransmitterStage::Leaving(Settling::new(now, LEAVE_MAX, None));
                } else if overdue {
                    self.fail_with(TestFailureReason::Overdue);
                }
            }
            TtcpTransmitterStage::Leaving(wait) => {
                if wait.is_over(now, flow) {
                    self.out.push_back(Output::Finished);
                    self.stage = TtcpTransmitterStage::Over;
                }
            }
            TtcpTransmitterStage::Opening | TtcpTransmitterStage::Over => {}
        }
    }

    fn stop_test(&mut self, now: MonoTime) {
        if std::mem::replace(&mut self.stopped, true) {
            return;
        }
        match self.stage {
            TtcpTransmitterStage::Opening => self.fail_with(TestFailureReason::Stopped),
            TtcpTransmitterStage::Running { .. } => {
                self.out.push_back(Output::StopSending);
                self.stage = TtcpTransmitterStage::Running { until: Some(now + GRACE) };
            }
            TtcpTransmitterStage::Leaving(_) | TtcpTransmitterStage::Over => {}
        }
    }

    fn fail_with(&mut self, reason: TestFailureReason<Infallible>) {
        self.out.push_back(Output::Failed(reason));
        self.stage = TtcpTransmitterStage::Over;
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
                self.beat = Some(TestIntervalTimer::new(now, self.interval, Duration::ZERO));
                self.stage = TtcpTransmitterStage::Running {
                    until: self.span.map(|span| now + span + GRACE),
                };
            }
            Input::Look(flow) => self.check_state(now, &flow),
            Input::Stop => self.stop_test(now),
            Input::GiveUp(_) => self.stage = TtcpTransmitterStage::Over,
            Input::Bytes(_) | Input::Closed => {}
            Input::Counted(never) => match *never {},
            Input::Decided(Ok(never) | Err(never)) | Input::Tell(never) => match never {},
        }
    }

    fn poll(&mut self) -> Option<Output<Self>> {
        self.out.pop_front()
    }

    fn wait_conditions(&self) -> Wants {
        let wake_at = match self.stage {
            TtcpTransmitterStage::Running { until } => {
                let beat = self.beat.map(|beat| beat.next());
                until.into_iter().chain(beat).min()
            }
            TtcpTransmitterStage::Leaving(wait) => Some(wait.latest_end()),
            TtcpTransmitterStage::Opening | TtcpTransmitterStage::Over => None,
        };
        Wants { wake_at, look: LOOK, reads: false }
    }
}
