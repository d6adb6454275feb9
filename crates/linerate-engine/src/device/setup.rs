//! The test setup (RFC 2544 §6) as the tests of a device see it: a tester connected to a device
//! under test, which runs a trial to its outcome. The real one has interfaces; a simulated device
//! stands in for it in tests.

use linerate_core::device::{ReceiveCounts, SendCounts};
use linerate_core::record::{
    BenchTest, BenchTrial, Failure, Fault, InvalidTrialReason, LoadPoint, TrialPort,
};

/// The settings of one trial (RFC 2544 §23).
#[derive(Clone, Debug)]
pub(super) struct TrialSpec {
    /// The test that the trial belongs to.
    pub test: BenchTest,
    /// Frames per second of each sending port; none is all that it can.
    pub fps: Option<u64>,
    /// The time or the number of frames that ends the trial.
    pub length: Length,
    /// Which ports send; none is those of the plan's way.
    pub senders: Option<Vec<usize>>,
    /// Time of arrival of each frame is wanted.
    pub arrivals: bool,
    /// A rate that the load drops to after the first part of the frames, and that part in ns.
    pub drop_to: Option<(u64, u64)>,
    /// Frames other than the plan's.
    pub pattern: Option<FramePattern>,
    /// Ports where the frames are to come out; none is every other.
    pub outputs: Option<Vec<usize>>,
    /// A restart of the device or a link while frames run; none without one.
    pub restart: Option<Restart>,
    /// Rest before the first frame, at least, ns.
    pub idle_ns: u64,
    /// Frames may be late or not sent at all: the device may hold the senders back, or losses are
    /// what the trial is for.
    pub may_fall_short: bool,
    /// Why, in the words of a search.
    pub why: Option<String>,
}

impl TrialSpec {
    /// A trial of a length at a load.
    pub(super) fn new(test: BenchTest, fps: Option<u64>, ns: u64) -> Self {
        Self {
            test,
            fps,
            length: Length::Time(ns),
            senders: None,
            arrivals: false,
            drop_to: None,
            pattern: None,
            outputs: None,
            restart: None,
            idle_ns: 0,
            may_fall_short: false,
            why: None,
        }
    }

    /// A trial of a number of frames, with their times of arrival.
    pub(super) fn frame_train(test: BenchTest, fps: Option<u64>, frames: u64) -> Self {
        Self { length: Length::Frames(frames), arrivals: true, ..Self::new(test, fps, 0) }
    }

    /// True where this fault is what the trial is about, and does not spoil it.
    pub(super) fn excuses(&self, invalid: &InvalidTrialReason) -> bool {
        match invalid {
            InvalidTrialReason::LinkDown { .. }
            | InvalidTrialReason::CounterDrops { .. }
            | InvalidTrialReason::CountsDisagree { .. } => self.restart.is_some(),
            InvalidTrialReason::GeneratorShort { .. } => self.may_fall_short,
            InvalidTrialReason::Loop { .. } | InvalidTrialReason::StolenTime { .. } => false,
        }
    }

    /// The same for this reason.
    #[must_use]
    pub(super) fn because(mut self, why: impl Into<String>) -> Self {
        self.why = Some(why.into());
        self
    }
}

/// Frames of one trial that are not the plan's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FramePattern {
    /// From each of these hardware addresses once to the station of a port.
    Learning(AddressSeries, usize),
    /// To each of these hardware addresses once.
    Learnt(AddressSeries),
    /// Frames of each sending port, the first to last, to the stations of these ports in turn.
    Towards(Vec<Vec<usize>>),
}

/// Hardware addresses in a row, which a switch is to learn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AddressSeries {
    /// Number of addresses in the row.
    pub count: u32,
    /// Number of the series, 0 to 255: addresses of different series differ.
    pub series: u8,
}

/// A restart in the middle of a trial, and its moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Restart {
    /// After the first frame, ns.
    pub after_ns: u64,
    /// The device or link that is restarted.
    pub target: RestartTarget,
}

/// A device or link that can be restarted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RestartTarget {
    /// The link of one of the tester's ports: it is down for so many ns.
    Link(usize, u64),
    /// Whatever the user's command restarts.
    Command(String),
}

/// When a trial ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    /// After this many ns.
    Time(u64),
    /// After this many frames of each port.
    Frames(u64),
}

/// The counts of a trial.
#[derive(Clone, Debug)]
pub(super) struct TrialCounts {
    /// The trial as the record keeps it.
    pub trial: BenchTrial,
    /// Each sending port, in the order of the trial's ports.
    pub results: Vec<SenderResult>,
}

/// The frames of one sending port: sent, received and their times.
#[derive(Clone, Debug, Default)]
pub(super) struct SenderResult {
    /// Frames sent, with the times of sending.
    pub sent: SendCounts,
    /// Frames received of this sender, by the receiving port.
    pub received: Vec<(usize, ReceiveCounts)>,
    /// The number of the first frame after the load's drop.
    pub drop_at: Option<u64>,
    /// Time of arrival by number at the receiving port, where that was asked for.
    pub arrivals: Vec<Option<u64>>,
}

impl SenderResult {
    /// Checks that the counter stamped each arrival.
    /// # Errors
    /// Frames came, and it did not.
    pub(super) fn has_arrivals(&self) -> Result<(), Failure> {
        let came = self.received.iter().map(|(_, it)| it.frames).sum::<u64>();
        if came == 0 || !self.arrivals.is_empty() {
            return Ok(());
        }
        let reason = "the counter keeps no time of arrival; XDP does";
        Err(Failure::new(Fault::System, "see single frames of", "a trial", reason))
    }
}

impl TrialCounts {
    /// Frames sent and received by all ports together.
    pub(super) fn totals(&self) -> (u64, u64) {
        let ports = self.trial.ports.iter();
        ports.fold((0, 0), |(sent, came), port| (sent + port.sent, came + port.received))
    }

    /// The load of one port that was really offered: the smallest of the ports.
    pub(super) fn offered_fps(&self) -> f64 {
        self.trial.ports.iter().map(|port| port.offered_fps).reduce(f64::min).unwrap_or(0.0)
    }

    /// Load and loss of all ports together.
    pub(super) fn load_point(&self) -> LoadPoint {
        let (sent, received) = self.totals();
        let offered: f64 = self.trial.ports.iter().map(|port| port.offered_fps).sum();
        let lost: u64 = self.trial.ports.iter().map(TrialPort::lost_frames).sum();
        let loss_ratio = if sent > 0 { lost as f64 / sent as f64 } else { 0.0 };
        LoadPoint {
            intended_fps: self.trial.intended_fps.map(|fps| fps * self.trial.ports.len() as f64),
            offered_fps: offered,
            forwarded_fps: offered * (1.0 - loss_ratio),
            loss_ratio,
            sent,
            received,
        }
    }
}

/// Why no outcome comes.
#[derive(Clone, Debug)]
pub(super) enum TrialAbort {
    /// The user wants no more.
    Stopped,
    /// A step of the trial failed.
    Failed(Failure),
}

impl From<Failure> for TrialAbort {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// A tester connected to a device under test.
pub(super) trait TestSetup {
    /// Runs one trial; an invalid one is run again ([`super::retry`]).
    fn run_trial(&mut self, spec: &TrialSpec) -> Result<TrialCounts, TrialAbort>;

    /// Shows the user which test comes next.
    fn announce(&mut self, text: &str);

    /// Restarts something between trials, and waits until all links are up.
    fn restart(&mut self, target: &RestartTarget) -> Result<(), TrialAbort>;

    /// The tester's ports: their names.
    fn port_names(&self) -> Vec<String>;
}
