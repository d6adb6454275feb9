//! What was planned, what was measured, and the one table that names every metric.
//!
//! Only these types are stored or sent. Fields are added, never renamed in place; an absent value
//! is null, and 0 was measured.

mod access_token;
mod bench;
mod build_part;
mod cause;
mod caveat;
mod ceiling;
mod clocks;
mod datagrams;
mod end_report;
mod environment;
mod event;
mod failure;
mod flow;
mod flow_test;
mod host_deltas;
mod id;
mod interface_drops;
mod intervention;
mod known_path;
mod layer;
mod limited_by;
mod means;
mod metric;
mod metric_row;
mod named;
pub(crate) use named::named;
mod note;
mod option_change;
mod page_datagrams;
mod path;
mod path_plan;
mod plain;
mod plan;
mod probes;
mod remedy;
mod sample;
mod search;
mod sign;
mod simulate_plan;
mod tcp_info;
mod trace;
mod train;
mod transfer;
mod upgrade;
mod verdict;

pub use access_token::AccessToken;
pub use bench::{
    BackToBack, BenchContract, BenchFrames, BenchGoal, BenchLatency, BenchPlan, BenchPort,
    BenchProtocol, BenchResult, BenchTest, BenchTimes, BenchTrial, BenchWay, BurstRun, Caching,
    CellContract, ComparedParameter, Congestion, ContractFound, CounterKind, GeneratorKind,
    GoalFound, Holds, InvalidTrialReason, LatencyKind, LatencyRepeats, LoadPoint, Overload,
    OverloadKind, OverloadRecovery, PortCounts, PortFacts, RateFound, Repeated, Reset, Scattered,
    Soak, Tester, TrialPort, WorstSecond,
};
pub use build_part::BuildPart;
pub use cause::{CAUSES, Cause, CauseCell, CauseRow};
pub use caveat::{Caveat, CaveatCode};
pub use ceiling::{Ceiling, CeilingInput, Expected, LINK, LayerRate, Rung, SHARE_MAX};
pub use clocks::{ChangeCause, ClockAgreement, ClockKeeper, ClockState, DelayChange};
pub use datagrams::{
    DatagramTally, DelayVariation, PaceKept, PacedBy, ReceivedDatagrams, SentDatagrams,
};
pub use end_report::{DatagramCounts, DatagramsSent, EndReport};
pub use environment::{Calibration, MeasurementEnd, RecordedInterface, TcpSettings};
pub use event::{DatagramRow, Event, IntervalRow, PingProgress, PingReply, StreamOpened};
pub use failure::{Failure, FailureCode, Fault};
pub use flow::{Asked, Flow, FlowEnd, SynOptions};
pub use flow_test::{TcpTest, TestError, UdpTest};
pub use host_deltas::{CachedMetrics, HostDeltas};
pub use id::RecordId;
pub use interface_drops::dropped_at_interface;
pub use intervention::{Change, Intervention, InterventionEnd, ShortRun};
pub use known_path::KnownPath;
pub use layer::{Better, HeaderLayer};
pub use limited_by::{LimitedBy, Quality};
pub use means::{
    Contents, Means, MultipathTcp, ReceiveWith, SendWith, Trial, Verified, ZeroCopySends,
};
pub use metric::{METRICS, Metric, MetricId};
pub use note::{
    CriterionKind, DecidingTest, Harmless, Innocent, LossShift, NextBound, NextLimit, Note,
    ScaleLoss, SocketNote, SourceNote, Unmeasured,
};
pub use option_change::{Handshake, OptionChange, TcpOption};
pub use page_datagrams::PageDatagrams;
pub use path::{
    EmulatedPath, PATH_SCHEMA, PathDirection, PathLoss, PathRun, PathStops, QUEUE_POINTS_MAX,
    QueueSeries,
};
pub use path_plan::{
    BucketPlan, BurstLossPlan, CellLossPlan, CrossPlan, Datapath, DelayStep, JitterPlan, Outage,
    PathEnd, PathPlan, QueuePlan, RateStep, ReorderPlan,
};
pub use plain::one_line;
pub use plan::{
    ComparePlan, ComparisonCandidate, EcnCodepoint, GoalPlan, MetWay, NatMeeting, PingMode,
    PingPlan, PingTransport, Plan, ProbeKind, ProbePlan, ServerPlan, StampPlan, TRACE_PORT,
    TcpPlan, TestPlan, TracePlan, TraceProbes, UdpPlan, WaitMode,
};
pub use probes::{ProbePhase, ProbeSpan, Probes};
pub use remedy::{
    At, HostAdvice, PathAdvice, Remedy, RemedyCommand, RemedyLine, SHAPED_SHARE, SocketBuffer,
    Tried,
};
pub use sample::{Direction, Distribution, FlowSide, LostStretch, Series, Stat, Summary};
pub use search::{
    CapacitySearch, SearchDelay, SearchNews, SearchPlan, SearchSpan, SearchStep, SearchTrial,
    SubInterval,
};
pub use sign::{Against, Sign, SignKind, SignUnit, Threshold};
pub use simulate_plan::{ControlName, LossRecovery, SimulatePlan, SimulatedTcp};
pub use tcp_info::TcpInfo;
pub use trace::{
    AddedDelay, ArrivedMarks, Finding, Hop, HopNode, HopSample, MplsLabel, SizeLimit, TracePhase,
    TraceResult,
};
pub use train::{AboveMtu, DatagramTrain, PathMtu};
pub use transfer::{DEFAULT_PORT, Finish, IpFamily, STAMP_PORT, TcpDirections, Via};
pub use verdict::{
    Confidence, Criterion, GoalAnswer, Latency, LimitVerdict, LossKind, LossMechanism, LossState,
    OnModel, Outcome, ProbeLoss, Reached, RemedyOnModel, StateLikelihood, TransferFigures,
};

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::time::WallTime;

/// The schema that [`Record`] is written in. Additions keep it; a rename or removal raises it.
pub const SCHEMA: &str = "linerate.record/2";

/// One measurement: its plan, its results, both ends, and its failures and caveats.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Record {
    /// Always [`SCHEMA`] when written by this version.
    pub schema: String,
    /// UUIDv7, sortable by start.
    pub id: RecordId,
    /// The program that measured.
    pub tool: Tool,
    /// State of the measurement at its end.
    pub status: RecordStatus,
    /// A name given by the user.
    #[serde(default)]
    pub name: Option<String>,
    /// Labels given by the user.
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
    /// The cell of a study that this record fills.
    #[serde(default)]
    pub cell: Option<StudyCell>,
    /// Civil time at the start, by the local clock.
    pub started_at: WallTime,
    /// Duration from start to end, by the local monotonic clock.
    pub duration_ns: u64,
    /// The plan as asked for, every default filled in.
    pub plan: Plan,
    /// The local end first, the remote end second where it reported.
    pub ends: Vec<MeasurementEnd>,
    /// One entry per TCP connection or UDP stream that carried data.
    #[serde(default)]
    pub flows: Vec<Flow>,
    /// Short rounds before the test that chose how data is moved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trials: Vec<Trial>,
    /// The flow against the test's direction while it ran. It is in no other list, and in the
    /// summary by its own metric alone.
    #[serde(default)]
    pub background: Option<Flow>,
    /// Steps and result of a search for the capacity; none in other tests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<CapacitySearch>,
    /// Results of a benchmark of a device; none in other tests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bench: Option<Box<BenchResult>>,
    /// Hops and findings of a trace; none in other tests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Box<TraceResult>>,
    /// The probes that went beside the load; none where none were sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probes: Option<Box<Probes>>,
    /// Probes of other kinds that went at the same times; the summary is of the first kind alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub probes_beside: Vec<Probes>,
    /// Datagrams between a browser's page and this host, each way, at rest and beside the load; the
    /// summary has those beside the load.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub page_datagrams: Vec<PageDatagrams>,
    /// Trains of probe datagrams of a survey, in the order sent, with the fate of every packet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trains: Vec<DatagramTrain>,
    /// The path MTU of each direction, where a survey found it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub path_mtu: Vec<PathMtu>,
    /// Short runs with one setting changed, which a survey made to decide between causes, in the
    /// order tried.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interventions: Vec<Intervention>,
    /// Values over time.
    #[serde(default)]
    pub series: Vec<Series>,
    /// The emulated paths that the packets crossed, with their counters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<EmulatedPath>,
    /// Agreement of the clocks of both ends while STAMP was measured, for each size.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clocks: Vec<ClockAgreement>,
    /// Stretches without answers of a ping, in order; the first 1000 of each size.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outages: Vec<LostStretch>,
    /// Distributions from which the summary can be computed again.
    #[serde(default)]
    pub distributions: Vec<Distribution>,
    /// Summary values of the measurement.
    pub summary: Vec<Summary>,
    /// Rate that theory allows in the test's first direction, and the share that was reached.
    #[serde(default)]
    pub ceiling: Option<Ceiling>,
    /// Rate that theory allows on the way back of a test that goes both ways at once, and the share
    /// that was reached.
    #[serde(default)]
    pub ceiling_reverse: Option<Ceiling>,
    /// Caveats about the measurement.
    #[serde(default)]
    pub caveats: Vec<Caveat>,
    /// The failure that ended the measurement early.
    #[serde(default)]
    pub failure: Option<Failure>,
    /// The measurements of a survey, in the order made: whole records. Summary, ceilings and
    /// caveats of the survey itself are those of its best parts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Self>,
    /// Measurements of a survey for which no time was left.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<TcpPlan>,
}

impl Record {
    /// A record with its plan and labels filled in and nothing measured yet.
    pub fn from_plan(id: RecordId, tool: Tool, plan: Plan, started_at: WallTime) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            id,
            tool,
            status: RecordStatus::Ok,
            name: None,
            tags: BTreeMap::new(),
            cell: None,
            started_at,
            duration_ns: 0,
            plan,
            ends: Vec::new(),
            flows: Vec::new(),
            trials: Vec::new(),
            background: None,
            search: None,
            bench: None,
            trace: None,
            probes: None,
            probes_beside: Vec::new(),
            page_datagrams: Vec::new(),
            trains: Vec::new(),
            path_mtu: Vec::new(),
            interventions: Vec::new(),
            series: Vec::new(),
            paths: Vec::new(),
            clocks: Vec::new(),
            outages: Vec::new(),
            distributions: Vec::new(),
            summary: Vec::new(),
            ceiling: None,
            ceiling_reverse: None,
            caveats: Vec::new(),
            failure: None,
            parts: Vec::new(),
            left_out: Vec::new(),
        }
    }

    /// The record without samples: values over time, the fate of each packet. Summary,
    /// distributions, route, caveats and failure stay, of the parts of a survey too.
    #[must_use]
    pub fn without_samples(mut self) -> Self {
        self.series = Vec::new();
        self.probes = None;
        self.probes_beside = Vec::new();
        self.trains = Vec::new();
        self.parts = self.parts.into_iter().map(Self::without_samples).collect();
        self
    }

    /// The first summary row of `metric` and `stat` that is about the whole measurement in
    /// `direction` (`None` matches any direction, ping results have none).
    pub fn summary_value(
        &self,
        metric: MetricId,
        stat: Stat,
        direction: Option<Direction>,
    ) -> Option<f64> {
        self.summary
            .iter()
            .filter(|row| row.metric == metric && row.stat == stat && row.flow.is_none())
            .find(|row| direction.is_none() || row.direction == direction)
            .map(|row| row.value)
    }

    /// The summary row of `metric` and `stat` for one payload size of a ping.
    pub fn value_at(&self, metric: MetricId, stat: Stat, payload_bytes: u32) -> Option<f64> {
        self.summary
            .iter()
            .filter(|row| row.metric == metric && row.stat == stat)
            .find(|row| row.payload_bytes == Some(payload_bytes))
            .map(|row| row.value)
    }

    /// The row that stands for the round trip of a ping wherever one figure does: the median by the
    /// kernel's clock, which leaves out the waits of this host's programs; where there is none that
    /// by the program's clock, else a mean. Of one payload size, or of the first.
    pub fn typical_round_trip(&self, payload_bytes: Option<u32>) -> Option<&Summary> {
        let wanted = [
            (MetricId::RttKernel, Stat::P50),
            (MetricId::Rtt, Stat::P50),
            (MetricId::Rtt, Stat::Mean),
        ];
        let of_size = |row: &&Summary| {
            let sizes = (row.payload_bytes, payload_bytes);
            row.flow.is_none() && !matches!(sizes, (Some(one), Some(other)) if one != other)
        };
        let find = |(metric, stat)| {
            let mut rows = self.summary.iter().filter(of_size);
            rows.find(|row| row.metric == metric && row.stat == stat)
        };
        wanted.into_iter().find_map(find)
    }

    /// The part of a survey with the highest goodput in a direction.
    pub fn best_part(&self, direction: Direction) -> Option<&Self> {
        let goodput =
            |part: &Self| part.summary_value(MetricId::Goodput, Stat::Value, Some(direction));
        let measured = self.parts.iter().filter_map(|part| Some((part, goodput(part)?)));
        measured.max_by(|(_, one), (_, other)| one.total_cmp(other)).map(|(part, _)| part)
    }

    /// The part that shows what one flow gets: one TCP stream with the kernel's own window, for the
    /// longest time; else the best. None where nothing arrived in any.
    pub fn one_flow_part(&self, direction: Direction) -> Option<&Self> {
        let is_one = |part: &&Self| match &part.plan {
            Plan::Tcp(plan) => plan.test.streams == 1 && plan.test.window_bytes.is_none(),
            _ => false,
        };
        let span = |part: &Self| part.summary_value(MetricId::Span, Stat::Value, Some(direction));
        let moved = |part: &&Self| {
            part.summary_value(MetricId::Goodput, Stat::Value, Some(direction))
                .is_some_and(|bps| bps > 0.0)
        };
        let parts = self.parts.iter().filter(is_one).filter(moved);
        let longest = parts
            .max_by(|one, other| span(one).unwrap_or(0.0).total_cmp(&span(other).unwrap_or(0.0)));
        longest.or_else(|| self.best_part(direction))
    }

    /// The ceilings of all directions, the first direction's first.
    pub fn ceilings(&self) -> impl Iterator<Item = &Ceiling> {
        self.ceiling.iter().chain(&self.ceiling_reverse)
    }

    /// The ceiling of one direction. That of a record from before the directions had one each is
    /// its first direction's.
    pub fn ceiling_of(&self, direction: Direction) -> Option<&Ceiling> {
        let first = self.flows.first().map(|flow| flow.direction);
        let of = |ceiling: &&Ceiling| ceiling.direction.or(first).is_none_or(|of| of == direction);
        self.ceilings().find(of)
    }

    /// Caveats of the parts, each kind once, as it was seen first.
    pub fn caveats_of_parts(&self) -> Vec<Caveat> {
        let mut caveats: Vec<Caveat> = Vec::new();
        for caveat in self.parts.iter().flat_map(|part| &part.caveats) {
            if !caveats.iter().any(|known| known.code == caveat.code) {
                caveats.push(caveat.clone());
            }
        }
        caveats
    }

    /// The failure's exit code, or 5 for a partial result, or 0. A survey of which a part was
    /// measured is a partial result, whatever ended it.
    pub fn exit_code(&self) -> u8 {
        match (&self.failure, self.status) {
            (_, RecordStatus::Interrupted) => 130,
            (Some(_), RecordStatus::Partial)
                if matches!(self.plan, Plan::Test(_) | Plan::Compare(_)) =>
            {
                5
            }
            (Some(failure), _) => failure.exit_code(),
            (None, RecordStatus::Partial) => 5,
            (None, RecordStatus::Ok | RecordStatus::Error) => 0,
        }
    }
}

/// The program that made a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Tool {
    /// Always `linerate` when written by this program.
    pub name: String,
    /// Semantic version.
    pub version: String,
}

/// State of a measurement at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RecordStatus {
    /// The whole plan was measured.
    Ok,
    /// Part of it was measured; `failure` says why not all.
    Partial,
    /// Nothing useful was measured; `failure` says why.
    Error,
    /// The user stopped it; what was measured so far is kept.
    Interrupted,
}

/// The place of a record in a study's grid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StudyCell {
    /// Name of the study.
    pub study: String,
    /// The run of that study, shared by all its records.
    pub run: String,
    /// Identifier of the topology within the study.
    pub topology: String,
    /// Identifier of the test within the study.
    pub test: String,
    /// The value of the varied parameter (payload bytes of a ping, window bytes of a TCP test).
    pub parameter: u64,
    /// The parameter and its value in words: `window 16 KiB`, `streams 4`. Written for readers;
    /// it is no part of the place.
    #[serde(default)]
    pub label: Option<String>,
    /// Number of the repetition, from 1.
    pub repetition: u32,
}
