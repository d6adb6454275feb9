//! What limited a result, as a diagnosis says it.
//!
//! A verdict is made anew from a record and never stored; `linerate-report` writes its JSON. Left
//! out: how it is decided (`explain`); words for people.

use serde::{Deserialize, Serialize};

use super::{
    Cause, CriterionKind, DecidingTest, Direction, Innocent, LimitedBy, NextLimit, Note,
    OptionChange, Quality, Remedy, RemedyLine, Sign, Unmeasured,
};

/// What a diagnosis came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// One cause limits the result.
    Limited,
    /// The result is the ceiling of its path.
    AtCeiling,
    /// More than one cause agrees with the evidence, or none does.
    Undetermined,
    /// The tester spoilt the measurement: no verdict.
    NoVerdict,
}

/// What limited one direction of a test.
#[derive(Clone, Debug, PartialEq)]
pub struct LimitVerdict {
    /// Which way the data went; null for the path as a whole.
    pub direction: Option<Direction>,
    /// Addresses of the connection, or the place of the result in its file, where a result of
    /// another program has several.
    pub connection: Option<String>,
    /// What the diagnosis came to.
    pub outcome: Outcome,
    /// The part that limited it, as headlines have it.
    pub limited_by: LimitedBy,
    /// How far the whole result is to be trusted; null where no record stands behind it.
    pub quality: Option<Quality>,
    /// The one cause; null where undetermined or without a verdict.
    pub cause: Option<Cause>,
    /// How far the cause is proved; null where none is named.
    pub confidence: Option<Confidence>,
    /// The receiver's payload rate, bit/s.
    pub measured_bps: Option<f64>,
    /// What the path could carry, payload bit/s.
    pub ceiling_bps: Option<f64>,
    /// What the lowest known bound allows, payload bit/s.
    pub expected_bps: Option<f64>,
    /// What decided.
    pub evidence: Vec<Sign>,
    /// What limits once the cause is gone.
    pub next: Option<NextLimit>,
    /// What to do, in the order in which to do it.
    pub remedy: Vec<RemedyLine>,
    /// What is there and is not the cause.
    pub innocent: Vec<Innocent>,
    /// The causes that agree with the evidence, where it does not decide between them.
    pub between: Vec<Cause>,
    /// The test that would decide; null where none is needed or known.
    pub deciding_test: Option<DecidingTest>,
    /// The delay under load, which is judged apart from the rate.
    pub latency: Option<Latency>,
    /// What loses probes on the path; null without trains of probes.
    pub loss: Option<ProbeLoss>,
    /// Options of the handshake that arrived otherwise than they were sent: something between the
    /// hosts changes them, whether or not that limits the result.
    pub handshake: Vec<OptionChange>,
    /// What could not be seen, so that it is not ruled out.
    pub unseen: Vec<Unmeasured>,
    /// Remarks for the reader beside all this.
    pub notes: Vec<Note>,
    /// What TCP reaches on a model of the path; null where there is none.
    pub model: Option<OnModel>,
    /// The metrics of RFC 6349; null where the inputs of none were measured.
    pub rfc6349: Option<TransferFigures>,
    /// Whether the path carries a goal that was named; null where none was.
    pub goal: Option<GoalAnswer>,
}

/// What became of the trains of probes that had the path for themselves, and what explains their
/// losses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProbeLoss {
    /// Probes sent.
    pub sent: u64,
    /// Those of them that never arrived.
    pub lost: u64,
    /// What loses them when too much is offered; null where nothing of that kind was seen.
    pub overflow: Option<LossMechanism>,
    /// What loses them at any load; null where nothing of that kind was seen.
    pub background: Option<LossMechanism>,
    /// Every hidden state that was replayed, the one that foretells the fates best first; empty
    /// with too few losses to say.
    pub states: Vec<StateLikelihood>,
}

/// A mechanism that loses packets, with the figure that it is known by.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LossMechanism {
    /// Which one.
    pub kind: LossKind,
    /// Its room, rate or share of packets.
    pub size: f64,
    /// `bytes`, `packets`, `bit/s` of IP packets, `packets/s`, `1` for a share.
    pub unit: String,
}

/// Mechanisms that lose packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LossKind {
    /// A queue with room for so many bytes.
    ByteQueue,
    /// A queue with room for so many packets.
    PacketQueue,
    /// Loss above a rate, without a queue.
    Policer,
    /// A device that forwards so many packets each second, however long they are.
    PacketRate,
    /// Each packet alone, at any load.
    Random,
    /// Several in a row, at any load.
    Bursts,
}

/// How well a hidden state of the path foretells which probes were lost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StateLikelihood {
    /// Which one.
    pub state: LossState,
    /// Cross-validated log-likelihood above that of no state, in nats.
    pub nats: f64,
}

/// A hidden state of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LossState {
    /// Bytes that wait, as the delays show them.
    BytesQueued,
    /// Packets that wait, as the delays show them.
    PacketsQueued,
    /// Bytes above a sustained rate.
    TokenDeficit,
    /// Packets above a sustained rate of packets.
    PacketService,
    /// How long ago the last loss was.
    PreviousLoss,
    /// None: one chance for all.
    Nothing,
}

/// The three metrics of RFC 6349, each null where its inputs were not measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TransferFigures {
    /// Time of the transfer over the time at the path's ceiling (RFC 6349 §4.1).
    pub transfer_time_ratio: Option<f64>,
    /// Share of the bytes sent that were not sent again (RFC 6349 §4.2).
    pub efficiency: Option<f64>,
    /// Mean round trip of the transfer above the base, over the base (RFC 6349 §4.3).
    pub buffer_delay: Option<f64>,
}

/// Whether a path carries a rate over a round trip longer than its own (RFC 8337).
#[derive(Clone, Debug, PartialEq)]
pub struct GoalAnswer {
    /// The rate to hold.
    pub rate_bps: f64,
    /// The round trip to hold it over.
    pub rtt_ns: f64,
    /// The worst of the criteria.
    pub reached: Reached,
    /// Each with the figure that was measured and the one that is needed.
    pub criteria: Vec<Criterion>,
}

/// How a criterion is met, the worst last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Reached {
    /// It is met.
    Pass,
    /// Too little was measured to say.
    Inconclusive,
    /// It is not met.
    Fail,
}

/// One thing that a goal needs of a path.
#[derive(Clone, Debug, PartialEq)]
pub struct Criterion {
    /// Kind of criterion, which has the unit of its figures.
    pub kind: CriterionKind,
    /// The figure that was measured.
    pub measured: Option<f64>,
    /// The least that is needed.
    pub needed: f64,
    /// How it is met.
    pub reached: Reached,
    /// Further packets without a loss after which it would be met; null where it is decided.
    pub to_decide: Option<u64>,
}

/// What TCP reaches in virtual time on a path plan that was fitted to what was probed.
#[derive(Clone, Debug, PartialEq)]
pub struct OnModel {
    /// As measured, payload bit/s.
    pub reached_bps: f64,
    /// That is within 15 % of the measured rate. Where it is not, the model promises nothing.
    pub agrees: bool,
    /// Without the cause, payload bit/s; null without a promise, and for causes that the model does
    /// not have.
    pub without_cause_bps: Option<f64>,
    /// Remedies that the model can take.
    pub remedies: Vec<RemedyOnModel>,
}

/// A remedy that was tried on a model of the path.
#[derive(Clone, Debug, PartialEq)]
pub struct RemedyOnModel {
    /// The remedy, as the verdict has it.
    pub remedy: Remedy,
    /// What TCP reaches with it, payload bit/s.
    pub bps: f64,
}

/// How far a cause is proved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// Its signs are there, without a figure that agrees with the rate.
    Low,
    /// A figure computed from the cause agrees with the rate that was measured.
    Medium,
    /// That, and several independent signs or a test that changed the cause alone.
    High,
}

/// The delay under load of one direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Latency {
    /// What delays, where the delay is worth a name: a standing queue, the way back.
    pub cause: Option<Cause>,
    /// Round trip at rest, ns.
    pub idle_ns: f64,
    /// Round trip under load, ns, median.
    pub loaded_ns: f64,
}

impl LimitVerdict {
    /// A verdict of which only the outcome is known.
    pub const fn from_outcome(direction: Option<Direction>, outcome: Outcome) -> Self {
        Self {
            direction,
            connection: None,
            outcome,
            limited_by: LimitedBy::NotKnown,
            quality: None,
            cause: None,
            confidence: None,
            measured_bps: None,
            ceiling_bps: None,
            expected_bps: None,
            evidence: Vec::new(),
            next: None,
            remedy: Vec::new(),
            innocent: Vec::new(),
            between: Vec::new(),
            deciding_test: None,
            latency: None,
            loss: None,
            handshake: Vec::new(),
            unseen: Vec::new(),
            notes: Vec::new(),
            model: None,
            rfc6349: None,
            goal: None,
        }
    }
}
