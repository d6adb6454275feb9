//! What a path asks for, so that its ceiling is reached: windows, buffers, rare losses, time.
//!
//! The rate to fill is the ceiling of the ladder, in payload. Windows and socket buffers are those
//! of one flow. Left out: what a receiver takes from its buffer late, and queues of other traffic.

use serde::{Deserialize, Serialize};

use super::Ladder;
use super::climb::{LadderError, SEND_BUFFER_USABLE, slow_start_of};
use super::facts::{CeilingFacts, Response};
use crate::theory::loss::{self, LossError, Path};
use crate::theory::propagation::{FIBRE_INDEX, fibre_delay_s, fibre_km};
use crate::theory::slow_start;
use crate::theory::window::{WINDOW_MAX_BYTES, window_scale};
use crate::units::{BitRate, Bytes, Distance};

/// Kernel buffer for each byte of window: Linux advertises about half of the receive buffer
/// (tcp_adv_win_scale 1; since 6.6 a share that it measures on each socket).
pub const RECEIVE_BUFFER_PER_WINDOW: u64 = 2;

/// Window, buffers and flows that fill the path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Needs {
    /// Payload that the needs are for: the path's ceiling, bit/s.
    pub payload_bps: f64,
    /// Window of each flow; null for UDP.
    pub window_bytes: Option<u64>,
    /// Shift that can advertise it; null when none can.
    pub window_scale: Option<u8>,
    /// Flows that fill the path with TCP's largest window each; null for UDP.
    pub flows_min: Option<u64>,
    /// Limit of the receive buffer of each flow that leaves such a window; null for UDP.
    pub receive_buffer_bytes: Option<u64>,
    /// Limit of the send buffer of each flow that holds as much in flight; null for UDP.
    pub send_buffer_bytes: Option<u64>,
    /// Queue at the bottleneck that keeps it full behind one flow, or flows that lose together.
    pub queue_bytes: u64,
    /// Flows that share the bottleneck, as given.
    pub queue_flows: Option<u64>,
    /// Queue that keeps it full behind so many flows that do not lose together.
    pub queue_shared_bytes: Option<u64>,
    /// The most loss that leaves the path full, for each congestion control; empty for UDP.
    pub loss_budgets: Vec<LossBudget>,
}

/// The most loss at which a congestion control still fills the path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LossBudget {
    /// Congestion control of the sender.
    pub response: Response,
    /// Loss events per packet.
    pub loss_ratio: f64,
    /// The lower end where theory gives a range; null where it gives one value.
    pub low_ratio: Option<f64>,
    /// Seconds between two losses at that rate, all flows together.
    pub seconds_between: f64,
    /// Always true: responses to loss are models of long flows.
    pub estimate: bool,
}

/// Time of a transfer, with its slow start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TransferTime {
    /// Payload bytes of the transfer.
    pub size_bytes: u64,
    /// Time from the first byte sent to the last acknowledgement.
    pub time_ns: f64,
    /// Size over that time.
    pub mean_bps: f64,
    /// Time that the start adds to the time at the full rate; null without a round-trip time.
    pub start_ns: Option<f64>,
    /// Round trips until the window fills the path or the data end.
    pub rounds: Option<u32>,
}

/// A round trip beside the time of light.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Propagation {
    /// Length of the path, one way.
    pub distance_m: u64,
    /// Round trip of light in a fibre of that length.
    pub fibre_rtt_ns: f64,
    /// The round trip over that.
    pub ratio: f64,
    /// Length of fibre whose round trip it is, one way.
    pub fibre_m: f64,
}

/// Window, buffers and flows that fill the path; `None` when its ceiling or its round trip is not
/// known.
pub fn path_needs(
    facts: &CeilingFacts,
    ladder: &Ladder,
    queue_flows: Option<u64>,
) -> Result<Option<Needs>, LadderError> {
    let (Some(path), Some(rtt)) = (ladder.ceiling(), &facts.rtt) else { return Ok(None) };
    let seconds = rtt.value.as_secs_f64();
    let flight = path.payload_bps * seconds / 8.0;
    let queue = flight / facts.packet.payload_share();
    let window = facts.packet.is_tcp().then(|| next_whole(flight / f64::from(facts.flows)));
    Ok(Some(Needs {
        payload_bps: path.payload_bps,
        window_bytes: window,
        window_scale: window.and_then(|bytes| window_scale(Bytes::new(bytes)).ok()),
        flows_min: window.map(|_| next_whole(flight).div_ceil(WINDOW_MAX_BYTES).max(1)),
        receive_buffer_bytes: window.map(|bytes| bytes.saturating_mul(RECEIVE_BUFFER_PER_WINDOW)),
        send_buffer_bytes: window.map(|bytes| next_whole(bytes as f64 / SEND_BUFFER_USABLE)),
        queue_bytes: next_whole(queue),
        queue_flows,
        queue_shared_bytes: queue_flows
            .filter(|n| *n > 0)
            .map(|n| next_whole(queue / (n as f64).sqrt())),
        loss_budgets: loss_budgets(facts, path.payload_bps)?,
    }))
}

fn loss_budgets(facts: &CeilingFacts, payload_bps: f64) -> Result<Vec<LossBudget>, LadderError> {
    let (true, Some(rtt)) = (facts.packet.is_tcp(), &facts.rtt) else { return Ok(Vec::new()) };
    let path = Path { mss_bytes: facts.packet.payload_bytes, rtt: rtt.value };
    let Some(rate) = BitRate::from_nearest(payload_bps / f64::from(facts.flows)) else {
        return Ok(Vec::new());
    };
    let packets_per_s = payload_bps / 8.0 / f64::from(facts.packet.payload_bytes);
    let reno = within_formula(loss::reno_budget(&path, rate))?;
    let mut budgets = Vec::new();
    for response in Response::ALL {
        let (high, low) = match response {
            Response::Reno => (reno.map(|reno| reno.high), reno.map(|reno| reno.low)),
            Response::Cubic => match within_formula(loss::cubic_budget(&path, rate))? {
                Some(p) if p <= loss::MATHIS_LOSS_MAX => (Some(p), None),
                _ => (reno.map(|reno| reno.high), None),
            },
            // Version 3 yields above it, version 1 keeps on to 20 %.
            Response::Bbr => (Some(loss::BBR3_LOSS_MAX), None),
        };
        let budget = high.map(|loss_ratio| LossBudget {
            response,
            loss_ratio,
            low_ratio: low,
            seconds_between: 1.0 / (loss_ratio * packets_per_s),
            estimate: true,
        });
        budgets.extend(budget);
    }
    Ok(budgets)
}

/// A loss budget; none where a segment in each round trip is more than the rate, so that the
/// formulas do not hold.
fn within_formula<T>(budget: Result<T, LossError>) -> Result<Option<T>, LadderError> {
    match budget {
        Ok(p) => Ok(Some(p)),
        Err(LossError::RateTooLow { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The times of transfers of `sizes` at the steady rate of the ladder, with the start where the
/// round trip is known; empty when no rate is known.
/// # Errors
/// A size, initial window or rate of 0, a growth not above 1.
pub fn transfer_times(
    facts: &CeilingFacts,
    ladder: &Ladder,
    sizes: &[Bytes],
) -> Result<Vec<TransferTime>, LadderError> {
    let Some(rate) = ladder.steady_bps().and_then(BitRate::from_nearest) else {
        return Ok(Vec::new());
    };
    sizes.iter().map(|size| transfer_time(facts, rate, *size)).collect()
}

fn transfer_time(
    facts: &CeilingFacts,
    rate: BitRate,
    size: Bytes,
) -> Result<TransferTime, LadderError> {
    let size_bytes = size.count();
    match facts.rtt.as_ref().filter(|_| facts.packet.is_tcp()) {
        Some(rtt) => {
            let took = slow_start::transfer(&slow_start_of(facts, rtt.value, rate, size))?;
            Ok(TransferTime {
                size_bytes,
                time_ns: took.time_s * 1e9,
                mean_bps: took.mean_bps,
                start_ns: Some(took.waste_s * 1e9),
                rounds: Some(took.rounds),
            })
        }
        None if size_bytes == 0 => Err(LadderError::ZeroBytes { what: "transfer" }),
        None if rate.bits_per_sec() == 0 => Err(LadderError::ZeroRate { what: "rate" }),
        None => Ok(TransferTime {
            size_bytes,
            time_ns: size_bytes as f64 * 8e9 / rate.bits_per_sec() as f64,
            mean_bps: rate.bits_per_sec() as f64,
            start_ns: None,
            rounds: None,
        }),
    }
}

/// The round trip of the facts beside that of light; `None` without one or without a distance.
/// # Errors
/// A round trip that light in a vacuum does not make.
pub fn propagation(
    facts: &CeilingFacts,
    distance: Option<Distance>,
) -> Result<Option<Propagation>, LadderError> {
    let (Some(distance), Some(rtt)) = (distance, &facts.rtt) else { return Ok(None) };
    let km = distance.metres() as f64 / 1e3;
    if km == 0.0 {
        return Err(LadderError::ZeroDistance);
    }
    let fibre_s = 2.0 * fibre_delay_s(km)?;
    let rtt_s = rtt.value.as_secs_f64();
    let vacuum_s = fibre_s / FIBRE_INDEX;
    if rtt_s < vacuum_s {
        return Err(LadderError::FasterThanLight { distance, least_ms: vacuum_s * 1e3 });
    }
    Ok(Some(Propagation {
        distance_m: distance.metres(),
        fibre_rtt_ns: fibre_s * 1e9,
        ratio: rtt_s / fibre_s,
        fibre_m: fibre_km(rtt.value) * 1e3,
    }))
}

/// The next whole number; 0 for a negative one.
fn next_whole(bytes: f64) -> u64 {
    // A product such as 541.1e6 x 0.045 / 8 may miss a whole number by a rounding error.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a cast from f64 stays in the range"
    )]
    let up = (bytes - 1e-6).ceil().max(0.0) as u64;
    up
}
