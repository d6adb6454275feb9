//! The whole answer as one document: what was asked, the layers, the ladder, what is needed, and
//! what a measured rate says. It is what `linerate ceiling --json` prints.
//!
//! Left out: words and digits for people, which are the report's.

use serde::{Deserialize, Serialize};

use super::climb::{LadderError, ladder_from_facts};
use super::facts::{CeilingFacts, Response};
use super::need::{Needs, Propagation, TransferTime, path_needs, propagation, transfer_times};
use super::{Ladder, RungKind, Statement};
use crate::record::IpFamily;
use crate::theory::framing::Transport;
use crate::theory::stack::{LayerRates, StackLayer, StackPlan};
use crate::units::{BitRate, Bytes, Distance};

/// The schema that [`PathCeiling`] is written in. Additions keep it; a rename or removal raises it.
pub const SCHEMA: &str = "linerate.ceiling/2";

/// A question about a path.
#[derive(Clone, Debug)]
pub struct PathQuestion<'a> {
    /// Link, carrier, encapsulations and headers.
    pub plan: &'a StackPlan,
    /// Rates at each layer, from [`crate::theory::stack::layer_rates`].
    pub stack: &'a LayerRates,
    /// Further facts of the path, hosts and test.
    pub facts: &'a CeilingFacts,
    /// Transfers whose time is computed.
    pub transfers: &'a [Bytes],
    /// Flows that share the bottleneck, where the queue is to serve many.
    pub queue_flows: Option<u64>,
    /// Length of the path.
    pub distance: Option<Distance>,
    /// Measured payload rate, to be compared.
    pub measured: Option<BitRate>,
}

/// The answer of `linerate ceiling`: layers, rungs and what follows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PathCeiling {
    /// Always [`SCHEMA`] when written by this version.
    pub schema: String,
    /// The parameters as asked for, every default filled in.
    pub asked: CeilingRequest,
    /// Layers from the line's rate down to the payload.
    pub layers: Vec<LayerRow>,
    /// Full packets per second on the link.
    #[serde(rename = "packets_per_sec")]
    pub packets_per_s: f64,
    /// Payload of a full packet.
    pub payload_bytes: u32,
    /// True when a layer is an estimate.
    pub estimate: bool,
    /// Every bound that the inputs allow.
    pub rungs: Ladder,
    /// The lowest bounds among the rungs.
    pub limits: Limits,
    /// Window, buffers and flows that fill the path; null without a round-trip time.
    pub needs: Option<Needs>,
    /// Times of transfers at the steady rate.
    pub transfers: Vec<TransferTime>,
    /// The round trip beside that of light; null without a distance.
    pub propagation: Option<Propagation>,
    /// Shares that a measured rate reached; null when none was given.
    pub measured: Option<MeasuredShare>,
}

/// The parameters as asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CeilingRequest {
    /// Name of the link.
    pub link: String,
    /// The link for people.
    pub link_title: String,
    /// Link-layer protocol that carries packets on it.
    pub carrier: String,
    /// The carrier for people.
    pub carrier_title: String,
    /// Encapsulations of the packets, outermost first.
    pub encapsulations: Vec<String>,
    /// Largest packet of the link.
    pub mtu_bytes: u32,
    /// IP version of the flow.
    pub family: IpFamily,
    /// Transport header after the IP header: tcp, tcp_with_timestamps, udp.
    pub transport: String,
    /// Connections beside each other.
    pub flows: u32,
    /// Congestion control of the senders; null for UDP.
    pub congestion_control: Option<Response>,
}

/// One layer of the link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LayerRow {
    /// Name of the layer.
    pub name: String,
    /// Rate left at the layer, bit/s.
    pub rate_bps: f64,
    /// Rate at the layer over the line's rate, 0 … 1.
    pub line_ratio: f64,
    /// Bytes of the layer that a full packet takes.
    pub bytes_per_packet: f64,
    /// Headers or bits that the layer takes.
    pub rule: String,
    /// Standard or paper of the rule.
    pub source: String,
    /// True for a rule that real links miss by more than a tenth.
    pub estimate: bool,
}

/// The lowest bounds among the rungs, and the next one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Limits {
    /// Payload rate that the path could carry, bit/s; null when nothing of it is known.
    pub ceiling_bps: Option<f64>,
    /// The rung of the path that sets it.
    pub ceiling_rung: Option<RungKind>,
    /// Expected rate: the least of all rungs, bit/s.
    pub expected_bps: Option<f64>,
    /// The lowest rungs, lowest first: one, or two within a quarter of each other.
    pub binding: Vec<RungKind>,
    /// Rate without the lowest rung: the next rung, bit/s.
    pub without_lowest_bps: Option<f64>,
    /// Kind of that next rung.
    pub without_lowest_rung: Option<RungKind>,
    /// Kinds for which no fact was given.
    pub missing: Vec<RungKind>,
    /// True when the lowest rung is an estimate.
    pub estimate: bool,
}

/// A measured rate beside the ladder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MeasuredShare {
    /// Measured payload rate, bit/s.
    pub goodput_bps: f64,
    /// Measured rate over the ceiling of the path.
    pub ceiling_ratio: Option<f64>,
    /// Measured rate over the expected one.
    pub expected_ratio: Option<f64>,
    /// Comparison with the rungs.
    pub statement: Option<Statement>,
}

/// Answers a question.
/// # Errors
/// What [`ladder_from_facts`], [`path_needs`], [`transfer_times`] and [`propagation`] refuse.
pub fn answer(question: &PathQuestion<'_>) -> Result<PathCeiling, LadderError> {
    let facts = question.facts;
    let ladder = ladder_from_facts(facts)?;
    let measured = question.measured.map(|rate| measured_share(&ladder, rate));
    Ok(PathCeiling {
        schema: SCHEMA.to_owned(),
        asked: ceiling_request(question.plan, facts),
        layers: layer_rows(question.stack),
        packets_per_s: question.stack.packets_per_s,
        payload_bytes: question.stack.payload_bytes,
        estimate: question.stack.estimate,
        limits: limits(&ladder),
        needs: path_needs(facts, &ladder, question.queue_flows)?,
        transfers: transfer_times(facts, &ladder, question.transfers)?,
        propagation: propagation(facts, question.distance)?,
        measured,
        rungs: ladder,
    })
}

fn ceiling_request(plan: &StackPlan, facts: &CeilingFacts) -> CeilingRequest {
    let transport = match plan.segment.transport {
        Transport::Tcp => "tcp",
        Transport::TcpWithTimestamps => "tcp_with_timestamps",
        Transport::Udp => "udp",
    };
    CeilingRequest {
        link: plan.link.to_string(),
        link_title: plan.link.display_title(),
        carrier: plan.carrier.to_string(),
        carrier_title: plan.carrier.display_title().to_owned(),
        encapsulations: plan.encapsulations.iter().map(ToString::to_string).collect(),
        mtu_bytes: plan.mtu_bytes,
        family: plan.segment.family,
        transport: transport.to_owned(),
        flows: facts.flows,
        congestion_control: facts.packet.is_tcp().then_some(facts.response),
    }
}

fn layer_rows(stack: &LayerRates) -> Vec<LayerRow> {
    let line_bps = stack.layers.first().map_or(f64::NAN, |line| line.bps);
    let row = |layer: &StackLayer| LayerRow {
        name: layer.name.clone(),
        rate_bps: layer.bps,
        line_ratio: layer.bps / line_bps,
        bytes_per_packet: layer.bytes_per_packet,
        rule: layer.rule.clone(),
        source: layer.source.to_owned(),
        estimate: layer.estimate,
    };
    stack.layers.iter().map(row).collect()
}

fn limits(ladder: &Ladder) -> Limits {
    let ceiling = ladder.ceiling();
    let next = ladder.without_lowest();
    let lowest = ladder.by_height().first().copied();
    Limits {
        ceiling_bps: ceiling.map(|rung| rung.payload_bps),
        ceiling_rung: ceiling.map(|rung| rung.kind),
        expected_bps: ladder.expected_bps(),
        binding: ladder.binding().map_or_else(Vec::new, |binding| {
            std::iter::once(binding.lowest_kind()).chain(binding.second()).collect()
        }),
        without_lowest_bps: next.map(|rung| rung.payload_bps),
        without_lowest_rung: next.map(|rung| rung.kind),
        missing: ladder.missing(),
        estimate: lowest.is_some_and(|rung| rung.estimate),
    }
}

fn measured_share(ladder: &Ladder, rate: BitRate) -> MeasuredShare {
    let goodput_bps = rate.bits_per_sec() as f64;
    MeasuredShare {
        goodput_bps,
        ceiling_ratio: ladder.ceiling().map(|rung| goodput_bps / rung.payload_bps),
        expected_ratio: ladder.expected_bps().map(|bps| goodput_bps / bps),
        statement: ladder.statement(goodput_bps),
    }
}
