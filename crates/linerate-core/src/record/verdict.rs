//! What limited a result, as a diagnosis says it.
//!
//! Left out: how it is decided; words for people.

use serde::{Deserialize, Serialize};

use super::{Cause, Direction, LimitedBy, Quality};

/// Outcome of a diagnosis.
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

/// Diagnosis of one direction of a test: its limit, the evidence and the remedy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Verdict {
    /// Direction of the data; null for the path as a whole.
    pub direction: Option<Direction>,
    /// Addresses of the connection, or the place of the result in its file, where a result of
    /// another program has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<String>,
    /// Outcome of the diagnosis.
    pub outcome: Outcome,
    /// The part that limited it, as headlines have it.
    #[serde(default)]
    pub limited_by: LimitedBy,
    /// Trustworthiness of the whole result; null where no record stands behind it.
    #[serde(default)]
    pub quality: Option<Quality>,
    /// The one cause; null where undetermined or without a verdict.
    pub cause: Option<Cause>,
    /// Confidence in the cause; null where none is named.
    #[serde(default)]
    pub confidence: Option<Confidence>,
    /// The receiver's payload rate, bit/s.
    #[serde(default)]
    pub measured_bps: Option<f64>,
    /// Rate that the path could carry, payload bit/s.
    #[serde(default)]
    pub ceiling_bps: Option<f64>,
    /// Rate that the lowest known bound allows, payload bit/s.
    #[serde(default)]
    pub expected_bps: Option<f64>,
    /// Signs that decided for the cause.
    #[serde(default)]
    pub evidence: Vec<Sign>,
    /// The next limit, once the cause is gone.
    #[serde(default)]
    pub next: Option<NextLimit>,
    /// Steps to take, in their order.
    #[serde(default)]
    pub remedy: Vec<RemedyLine>,
    /// Conditions that are present and are not the cause.
    #[serde(default)]
    pub innocent: Vec<Innocent>,
    /// The causes that agree with the evidence, where it does not decide between them.
    #[serde(default)]
    pub between: Vec<Cause>,
    /// The test that would decide; null where none is needed or known.
    #[serde(default)]
    pub deciding_test: Option<String>,
    /// The delay under load, which is judged apart from the rate.
    #[serde(default)]
    pub latency: Option<Latency>,
    /// Mechanism that loses probes on the path; null without trains of probes.
    #[serde(default)]
    pub loss: Option<ProbeLoss>,
    /// Options of the handshake that arrived otherwise than they were sent: something between the
    /// hosts changes them, whether or not that limits the result.
    #[serde(default)]
    pub handshake: Vec<OptionChange>,
    /// Causes that could not be observed, so that they are not ruled out.
    #[serde(default)]
    pub unseen: Vec<String>,
    /// Further notes for a reader, in a sentence each.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Rate that TCP reaches on a model of the path; null where there is none.
    #[serde(default)]
    pub model: Option<OnModel>,
    /// The metrics of RFC 6349; null where the inputs of none were measured.
    #[serde(default)]
    pub rfc6349: Option<TransferFigures>,
    /// Answer for a goal that was named; null where none was.
    #[serde(default)]
    pub goal: Option<GoalAnswer>,
}

/// An option of SYN or SYN-ACK that was removed or changed between the hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OptionChange {
    /// Segment of the handshake that was changed.
    pub segment: Handshake,
    /// TCP option that was changed.
    pub option: TcpOption,
    /// Value as sent: bytes of a segment size, shift of a window scale; null for an option without
    /// one, and where it is not known.
    pub sent: Option<u32>,
    /// Value as it arrived; null where the option was removed.
    pub arrived: Option<u32>,
}

/// A segment that opens a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Handshake {
    /// The client's segment that opens the connection.
    Syn,
    /// The server's answer.
    SynAck,
}

/// TCP option on which the ends of a connection agree when it opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TcpOption {
    /// Maximum segment size (RFC 9293 §3.7.1).
    Mss,
    /// Window scale (RFC 7323 §2).
    WindowScale,
    /// Selective acknowledgements (RFC 2018).
    Sack,
    /// Timestamps (RFC 7323 §3).
    Timestamps,
    /// Explicit congestion notification, by flags of the segment (RFC 3168 §6.1.1).
    Ecn,
}

/// Counts of the trains of probes sent without other load, and the mechanisms that explain their
/// losses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProbeLoss {
    /// Number of probes sent.
    pub sent: u64,
    /// Probes that never arrived.
    pub lost: u64,
    /// Mechanism that loses probes when too much is offered; null where none of that kind was seen.
    pub overflow: Option<LossMechanism>,
    /// Mechanism that loses probes at any load; null where none of that kind was seen.
    pub background: Option<LossMechanism>,
    /// Every hidden state that was tested, the one that foretells the fates best first; empty with
    /// too few losses.
    pub states: Vec<StateLikelihood>,
}

/// A mechanism that loses packets, with the figure that it is known by.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LossMechanism {
    /// Kind of the mechanism.
    pub kind: LossKind,
    /// Room, rate or share of packets of the mechanism.
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
    /// Losses of single packets, at any load.
    Random,
    /// Several in a row, at any load.
    Bursts,
}

/// Likelihood of the losses of the probes, given a hidden state of the path.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StateLikelihood {
    /// The hidden state of the path.
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
    /// Time since the last loss.
    PreviousLoss,
    /// No state: one chance for all packets.
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

/// Answer whether a path carries a rate over a round trip longer than its own (RFC 8337).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GoalAnswer {
    /// The rate to hold.
    pub rate_bps: f64,
    /// The round trip to hold it over.
    pub rtt_ns: f64,
    /// The worst of the criteria.
    pub reached: Reached,
    /// Criteria, each with the figure that was measured and the one that is needed.
    pub criteria: Vec<Criterion>,
}

/// Result of a criterion, the worst last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Reached {
    /// The criterion is met.
    Pass,
    /// Too few packets were measured for a result.
    Inconclusive,
    /// The criterion is not met.
    Fail,
}

/// A condition of a goal on the path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Criterion {
    /// Name of the criterion, in words.
    pub name: String,
    /// The measured value.
    pub measured: Option<f64>,
    /// The least value that is needed.
    pub needed: f64,
    /// Unit of the values: `bit/s`, `bytes`, `packets`.
    pub unit: String,
    /// Result of the criterion.
    pub reached: Reached,
    /// Further packets without a loss after which it would be met; null where it is decided.
    pub to_decide: Option<u64>,
}

/// Rate that TCP reaches in virtual time on a path plan that was fitted to the probes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OnModel {
    /// Rate on the model as measured, payload bit/s.
    pub reached_bps: f64,
    /// True when the model is within 15 % of the measured rate. Where it is not, the model promises
    /// nothing.
    pub agrees: bool,
    /// Rate without the cause, payload bit/s; null without a promise, and for causes that the model
    /// does not have.
    pub without_cause_bps: Option<f64>,
    /// Remedies that the model can take.
    pub remedies: Vec<RemedyOnModel>,
}

/// A remedy that was tried on a model of the path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RemedyOnModel {
    /// The line of `remedy`.
    pub text: String,
    /// Rate that TCP reaches with the remedy, payload bit/s.
    pub bps: f64,
}

/// Strength of the proof of a cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// The signs of the cause are there, without a figure that agrees with the rate.
    Low,
    /// A figure computed from the cause agrees with the rate that was measured.
    Medium,
    /// Such a figure agrees, and several independent signs or a test that changed the cause alone.
    High,
}

/// Side of its threshold on which a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Against {
    /// At least the threshold.
    AtLeast,
    /// At most the threshold.
    AtMost,
}

/// A figure that a verdict rests on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sign {
    /// Name of the figure, in words: `window the receiver offered`.
    pub name: String,
    /// Value of the figure.
    pub value: f64,
    /// Unit: `bit/s`, `bytes`, `ns`, `1` for a share, or the things counted.
    pub unit: String,
    /// Threshold with which it was compared; null for a figure without one.
    pub threshold: Option<Threshold>,
}

/// The limit that a figure was held against.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Threshold {
    /// Side of the threshold on which the figure is.
    pub against: Against,
    /// Value in the figure's unit.
    pub value: f64,
}

/// The bound that is met once the cause is gone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NextLimit {
    /// Name of the limit, in words: `send buffer of the sender`.
    pub name: String,
    /// The rate that it allows, payload bit/s.
    pub bps: f64,
}

/// Place where a remedy is to be applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum At {
    /// The host that sends the data.
    Sender,
    /// The host that receives the data.
    Receiver,
    /// A device on the path.
    Path,
    /// The command that was run.
    Test,
}

/// One step of a remedy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RemedyLine {
    /// Place where it is to be applied.
    pub at: At,
    /// A line to type, or a sentence where there is none.
    pub text: String,
    /// True when `text` is a command line to type.
    pub is_command: bool,
    /// Rates without and with it, where it was tried on this path; absent where it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tried: Option<Tried>,
}

/// A remedy that was tried.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Tried {
    /// The rate without it, payload bit/s.
    pub before_bps: f64,
    /// The rate with it.
    pub after_bps: f64,
}

/// A condition that is present and costs no throughput.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Innocent {
    /// The cause that the condition would be if it cost throughput.
    pub cause: Cause,
    /// The observation and the reason why it is not the cause, in words.
    pub why: String,
}

/// The delay under load of one direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Latency {
    /// Cause of the delay, where the delay is worth a name: a standing queue, the way back.
    pub cause: Option<Cause>,
    /// Round trip at rest, ns.
    pub idle_ns: f64,
    /// Round trip under load, ns, median.
    pub loaded_ns: f64,
}

impl Verdict {
    /// A verdict of which only the outcome is known.
    pub const fn of(direction: Option<Direction>, outcome: Outcome) -> Self {
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

impl Sign {
    /// A figure without a threshold.
    pub fn figure(name: impl Into<String>, value: f64, unit: &str) -> Self {
        Self { name: name.into(), value, unit: unit.to_owned(), threshold: None }
    }

    /// A figure that is at least `limit`.
    pub fn at_least(name: impl Into<String>, value: f64, limit: f64, unit: &str) -> Self {
        let threshold = Some(Threshold { against: Against::AtLeast, value: limit });
        Self { threshold, ..Self::figure(name, value, unit) }
    }

    /// A figure that is at most `limit`.
    pub fn at_most(name: impl Into<String>, value: f64, limit: f64, unit: &str) -> Self {
        let threshold = Some(Threshold { against: Against::AtMost, value: limit });
        Self { threshold, ..Self::figure(name, value, unit) }
    }
}

impl RemedyLine {
    /// A line to type.
    pub fn command(at: At, text: impl Into<String>) -> Self {
        Self { at, text: text.into(), is_command: true, tried: None }
    }

    /// A remedy in words, without a command.
    pub fn advice(at: At, text: impl Into<String>) -> Self {
        Self { at, text: text.into(), is_command: false, tried: None }
    }
}
