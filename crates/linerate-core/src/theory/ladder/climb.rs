//! From facts to rungs: one function for each kind, each on its own.
//!
//! Windows, send buffers, losses and paces are those of one flow; their rungs are the sum over all
//! flows. Rules that are not ours come from `window`, `loss` and `slow_start`.

use std::time::Duration;

use thiserror::Error;

use super::facts::{Amount, CeilingFacts, Known, Response};
use super::{CeilingRung, Ladder, RungKind};
use crate::record::CeilingInput;
use crate::theory::loss::{self, LossError, Path};
use crate::theory::propagation::PropagationError;
use crate::theory::slow_start::{self, SlowStart, SlowStartError};
use crate::theory::window::{self, WINDOW_MAX_BYTES, WindowError};
use crate::units::{BitRate, Bytes, Distance};

/// The least that Linux keeps in flight of the send buffer that it allows: the rest is bookkeeping
/// of the segments. Linux 6.18 took in 0.63 to 0.68 of SO_SNDBUF with segments of 1448 bytes before
/// write() had to wait, and 0.71 to 0.77 with those of loopback (2026-11-22, 64 KiB to 2 MiB).
pub const SEND_BUFFER_USABLE: f64 = 0.6;
/// And by how much it may go beyond it: a write goes on while the buffer is not full, and adds a
/// super-packet of 64 KiB to it (`sk_stream_memory_free`, net.core.gso_max_size). Senders that do
/// not pace have such ones: with tcp_wmem at 131,072 bytes and 40 ms CUBIC and Reno had 208,824
/// bytes in their buffers and 38 to 43 Mbit/s, BBR 127,952 and 16 (Linux 6.18, 2026-11-22).
const SEND_BUFFER_BEYOND: u64 = 65_536;

/// Reason why a ladder cannot be computed.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum LadderError {
    /// A test of no flows.
    #[error("0 flows carry nothing")]
    ZeroFlows,
    /// A rate of 0, at which nothing is carried.
    #[error("a {what} of 0 carries nothing")]
    ZeroRate {
        /// Name of the rate.
        what: &'static str,
    },
    /// Every window divides by it.
    #[error("a round trip of 0 sets no bound; give the time that a packet and its answer take")]
    ZeroRtt,
    /// No header field holds it.
    #[error(
        "a window of {bytes} bytes is above 1,073,725,440, the largest of TCP (65535 x 2^14, \
         RFC 7323)"
    )]
    WindowTooLarge {
        /// Bytes of the window.
        bytes: u64,
    },
    /// A size of 0 bytes.
    #[error("a {what} of 0 bytes carries nothing")]
    ZeroBytes {
        /// Name of the size.
        what: &'static str,
    },
    /// A test of no length.
    #[error("a test of 0 s carries nothing")]
    ZeroTime,
    /// A distance of 0 km.
    #[error("a distance of 0 needs no time")]
    ZeroDistance,
    /// A round trip shorter than that of light.
    #[error(
        "{distance} there and back take light {least_ms:.3} ms in a vacuum; the round trip is \
         shorter"
    )]
    FasterThanLight {
        /// Length of the path.
        distance: Distance,
        /// Least time that light needs, ms.
        least_ms: f64,
    },
    /// The arithmetic of distances refuses.
    #[error(transparent)]
    Distance(#[from] PropagationError),
    /// The arithmetic of windows refuses.
    #[error(transparent)]
    Window(#[from] WindowError),
    /// The loss formulas refuse.
    #[error(transparent)]
    Loss(#[from] LossError),
    /// The arithmetic of slow start refuses.
    #[error(transparent)]
    Start(#[from] SlowStartError),
}

/// Every rung that the facts allow.
/// # Errors
/// A rate, round trip, window, buffer or time of 0, a window above TCP's largest, a loss of 0 or 1,
/// a growth not above 1.
pub fn ladder_from_facts(facts: &CeilingFacts) -> Result<Ladder, LadderError> {
    if facts.flows == 0 {
        return Err(LadderError::ZeroFlows);
    }
    if facts.rtt.as_ref().is_some_and(|rtt| rtt.value.is_zero()) {
        return Err(LadderError::ZeroRtt);
    }
    let path = [
        local_link(facts),
        of_ip(RungKind::PathCapacity, "capacity", facts.capacity.as_ref(), facts)?,
        of_ip(RungKind::SustainedRate, "sustained rate", facts.sustained.as_ref(), facts)?,
        packet_rate(facts)?,
    ];
    let mut ladder = Ladder { rungs: path.into_iter().flatten().collect() };
    let path_bps = ladder.ceiling().map(|rung| rung.payload_bps);
    let ends = [
        receive_window(facts, path_bps)?,
        send_buffer(facts)?,
        under_loss(facts, path_bps)?,
        given_rate_rung(RungKind::SenderHost, "sending host", facts.sender_host.as_ref(), 1)?,
        given_rate_rung(RungKind::ReceiverHost, "receiving host", facts.receiver_host.as_ref(), 1)?,
        start_up(facts, path_bps)?,
        given_rate_rung(RungKind::Application, "pace", facts.application.as_ref(), facts.flows)?,
        reverse_path(facts)?,
    ];
    ladder.rungs.extend(ends.into_iter().flatten());
    Ok(ladder)
}

pub(super) fn ceiling_input(name: &str, value: f64, source: &str) -> CeilingInput {
    CeilingInput { name: name.to_owned(), value, source: source.to_owned() }
}

/// A rung with one value that is no estimate.
fn exact_rung(
    kind: RungKind,
    payload_bps: f64,
    formula: &str,
    inputs: Vec<CeilingInput>,
    source: &str,
) -> CeilingRung {
    CeilingRung {
        kind,
        payload_bps,
        low_bps: None,
        formula: formula.to_owned(),
        inputs,
        estimate: false,
        source: source.to_owned(),
    }
}

fn payload_input(facts: &CeilingFacts) -> CeilingInput {
    ceiling_input("payload_bytes", f64::from(facts.packet.payload_bytes), "a full packet")
}

/// The number of flows as an input, where it matters.
fn flows_input(flows: u32) -> Option<CeilingInput> {
    (flows > 1).then(|| ceiling_input("flows", f64::from(flows), "beside each other"))
}

fn local_link(facts: &CeilingFacts) -> Option<CeilingRung> {
    let link = facts.link.as_ref()?;
    let inputs =
        vec![ceiling_input("line_rate_bps", link.line_bps, &link.name), payload_input(facts)];
    let formula = "line rate x payload / bytes on the line";
    let rung =
        exact_rung(RungKind::LocalLink, link.payload_bps, formula, inputs, "the layers above");
    Some(CeilingRung { estimate: link.estimate, ..rung })
}

/// A rate of IP packets, less the headers.
fn of_ip(
    kind: RungKind,
    what: &'static str,
    rate: Option<&Known<BitRate>>,
    facts: &CeilingFacts,
) -> Result<Option<CeilingRung>, LadderError> {
    let Some(rate) = rate else { return Ok(None) };
    let bps = positive(rate.value, what)?;
    let ip = ceiling_input("ip_bytes", f64::from(facts.packet.ip_bytes), "a full packet");
    let inputs = vec![ceiling_input("ip_rate_bps", bps, &rate.source), payload_input(facts), ip];
    let formula = "rate of IP packets x payload / IP packet";
    let payload_bps = bps * facts.packet.payload_share();
    Ok(Some(exact_rung(kind, payload_bps, formula, inputs, "RFC 5136 §2.3")))
}

fn packet_rate(facts: &CeilingFacts) -> Result<Option<CeilingRung>, LadderError> {
    let Some(rate) = &facts.packet_rate else { return Ok(None) };
    let per_s = rate.value.per_sec();
    if per_s <= 0.0 {
        return Err(LadderError::ZeroRate { what: "packet rate" });
    }
    let payload_bps = per_s * f64::from(facts.packet.payload_bytes) * 8.0;
    let inputs = vec![ceiling_input("packets_per_s", per_s, &rate.source), payload_input(facts)];
    let formula = "packets/s x 8 payload";
    Ok(Some(exact_rung(RungKind::PacketRate, payload_bps, formula, inputs, "RFC 2544 §26.1")))
}

/// The known window; else the largest of TCP, where the path needs more.
fn receive_window(
    facts: &CeilingFacts,
    path_bps: Option<f64>,
) -> Result<Option<CeilingRung>, LadderError> {
    let Some(rtt) = tcp_rtt(facts) else { return Ok(None) };
    let flows = f64::from(facts.flows);
    let largest_bps = window::single_flow_rate_max(rtt.value)? * flows;
    let largest = || {
        let known = Known::new(Bytes::new(WINDOW_MAX_BYTES), "the largest of TCP");
        path_bps.is_some_and(|path_bps| largest_bps < path_bps).then_some(known)
    };
    let Some(window) = facts.window.clone().or_else(largest) else { return Ok(None) };
    let bytes = window.value.count();
    if bytes > WINDOW_MAX_BYTES {
        return Err(LadderError::WindowTooLarge { bytes });
    }
    let mut inputs =
        vec![ceiling_input("window_bytes", bytes as f64, &window.source), rtt_input(rtt)];
    inputs.extend(flows_input(facts.flows));
    let payload_bps = window::window_rate(window.value, rtt.value)? * flows;
    let formula = "8 window / RTT";
    Ok(Some(exact_rung(RungKind::ReceiveWindow, payload_bps, formula, inputs, "RFC 6349 §3.3.1")))
}

fn send_buffer(facts: &CeilingFacts) -> Result<Option<CeilingRung>, LadderError> {
    let (Some(buffer), Some(rtt)) = (&facts.send_buffer, tcp_rtt(facts)) else { return Ok(None) };
    let bytes = buffer.value.count() as f64;
    if bytes == 0.0 {
        return Err(LadderError::ZeroBytes { what: "send buffer" });
    }
    let mut inputs =
        vec![ceiling_input("send_buffer_bytes", bytes, &buffer.source), rtt_input(rtt)];
    inputs.extend(flows_input(facts.flows));
    let flows = f64::from(facts.flows);
    let low_bps = window::window_rate(buffer.value, rtt.value)? * SEND_BUFFER_USABLE * flows;
    let most = Bytes::new(buffer.value.count().saturating_add(SEND_BUFFER_BEYOND));
    let payload_bps = window::window_rate(most, rtt.value)? * flows;
    let source = "socket(7), SO_SNDBUF";
    let formula = "0.6 x 8 send buffer / RTT to 8 (send buffer + 65,536) / RTT";
    let rung = exact_rung(RungKind::SendBuffer, payload_bps, formula, inputs, source);
    Ok(Some(CeilingRung { low_bps: Some(low_bps), estimate: true, ..rung }))
}

/// Reno's rate where the square-root rule does not hold any more.
const PFTK: &str = "8 MSS / (RTT sqrt(2bp/3) + T0 min(1, 3 sqrt(3bp/8)) p (1 + 32p^2)), b 2 and T0 \
                    RTT + 200 ms to b 1 and T0 RTT";
const PFTK_SOURCE: &str = "Padhye et al., SIGCOMM 1998, for a loss above 0.01";

fn under_loss(
    facts: &CeilingFacts,
    path_bps: Option<f64>,
) -> Result<Option<CeilingRung>, LadderError> {
    let (Some(loss), Some(rtt)) = (&facts.loss, tcp_rtt(facts)) else { return Ok(None) };
    let p = loss.value.as_f64();
    let path = Path { mss_bytes: facts.packet.payload_bytes, rtt: rtt.value };
    // The formulas refuse what is no loss, also where BBR's answer below does not use them.
    let reno = loss::reno_range(&path, p)?;
    let flows = f64::from(facts.flows);
    let range = |formula, source| (reno.high * flows, Some(reno.low * flows), formula, source);
    let beyond_mathis = p > loss::MATHIS_LOSS_MAX;
    let reno_friendly = loss::cubic_window(rtt.value, p)?.reno_friendly;
    let (high_bps, low_bps, formula, source) = match facts.response {
        Response::Reno if beyond_mathis => range(PFTK, PFTK_SOURCE),
        Response::Cubic if beyond_mathis && reno_friendly => range(PFTK, PFTK_SOURCE),
        Response::Reno => {
            range("C 8 MSS / (RTT sqrt(p)), C 0.8660 to 1.2247", "Mathis et al., CCR 27(3), 1997")
        }
        Response::Cubic if reno_friendly => range(
            "C 8 MSS / (RTT sqrt(p)), C 0.8660 to 1.2247: CUBIC's Reno-friendly region",
            "RFC 9438 §5",
        ),
        Response::Cubic => {
            let formula = "1.0538 x 8 MSS / (RTT^0.25 p^0.75), RTT in s";
            (loss::cubic_rate(&path, p)? * flows, None, formula, "RFC 9438 §5")
        }
        Response::Bbr => {
            let Some(path_bps) = path_bps.and_then(BitRate::from_nearest) else {
                return Ok(None);
            };
            let source = "Cardwell et al., ACM Queue 14(5), 2016";
            (loss::bbr1_rate(path_bps, p)?, None, "path rate x (1 - p)", source)
        }
    };
    let mut inputs = vec![ceiling_input("loss_ratio", p, &loss.source), rtt_input(rtt)];
    inputs.push(ceiling_input("mss_bytes", f64::from(path.mss_bytes), "a full packet"));
    inputs.extend(flows_input(facts.flows));
    let rung = exact_rung(RungKind::Loss, high_bps, formula, inputs, source);
    Ok(Some(CeilingRung { low_bps, estimate: true, ..rung }))
}

/// A rate of payload as it is known, for each of `flows`.
fn given_rate_rung(
    kind: RungKind,
    what: &'static str,
    rate: Option<&Known<BitRate>>,
    flows: u32,
) -> Result<Option<CeilingRung>, LadderError> {
    let Some(rate) = rate else { return Ok(None) };
    let bps = positive(rate.value, what)?;
    let mut inputs = vec![ceiling_input("payload_rate_bps", bps, &rate.source)];
    inputs.extend(flows_input(flows));
    let formula = format!("rate of the {what}");
    Ok(Some(exact_rung(kind, bps * f64::from(flows), &formula, inputs, "as given")))
}

fn start_up(
    facts: &CeilingFacts,
    path_bps: Option<f64>,
) -> Result<Option<CeilingRung>, LadderError> {
    let (Some(amount), Some(rtt)) = (&facts.amount, tcp_rtt(facts)) else { return Ok(None) };
    let Some(rate) = path_bps.and_then(BitRate::from_nearest) else { return Ok(None) };
    let (bps, wanted) = match amount.value {
        Amount::Bytes(size) => {
            let transfer = slow_start::transfer(&slow_start_of(facts, rtt.value, rate, size))?;
            (
                transfer.mean_bps,
                ceiling_input("transfer_bytes", size.count() as f64, &amount.source),
            )
        }
        Amount::Time(time) => {
            if time.is_zero() {
                return Err(LadderError::ZeroTime);
            }
            let start = slow_start_of(facts, rtt.value, rate, Bytes::new(1));
            let bytes = slow_start::bytes_within(&start, time)?;
            let time_s = time.as_secs_f64();
            (bytes * 8.0 / time_s, ceiling_input("time_ns", time_s * 1e9, &amount.source))
        }
    };
    let mut inputs = vec![wanted, rtt_input(rtt)];
    inputs.push(ceiling_input("initial_window_segments", f64::from(facts.initial_window), ""));
    inputs.push(ceiling_input("growth", facts.growth, "each round trip"));
    inputs.extend(flows_input(facts.flows));
    let formula = "8 S / T(S) from slow start to the end";
    Ok(Some(exact_rung(RungKind::StartUp, bps, formula, inputs, "RFC 5681 §3.1, RFC 6928")))
}

/// The start of all flows together: their first windows add up.
pub(super) fn slow_start_of(
    facts: &CeilingFacts,
    rtt: Duration,
    rate: BitRate,
    size: Bytes,
) -> SlowStart {
    SlowStart {
        size,
        rate,
        rtt,
        mss_bytes: facts.packet.payload_bytes,
        initial_window: facts.initial_window.saturating_mul(facts.flows),
        growth: facts.growth,
    }
}

fn reverse_path(facts: &CeilingFacts) -> Result<Option<CeilingRung>, LadderError> {
    let Some(acks) = facts.acks.as_ref().filter(|_| facts.packet.is_tcp()) else {
        return Ok(None);
    };
    let way = acks.value;
    if way.acks_per_s <= 0.0 || way.segments_per_ack <= 0.0 {
        return Err(LadderError::ZeroRate { what: "rate of acknowledgements" });
    }
    let payload_bits = f64::from(facts.packet.payload_bytes) * 8.0;
    let inputs = vec![
        ceiling_input("acks_per_s", way.acks_per_s, &acks.source),
        ceiling_input("segments_per_ack", way.segments_per_ack, ""),
        payload_input(facts),
    ];
    let payload_bps = way.acks_per_s * way.segments_per_ack * payload_bits;
    let formula = "ACKs/s of the way back x segments per ACK x 8 payload";
    Ok(Some(exact_rung(RungKind::ReversePath, payload_bps, formula, inputs, "RFC 3449 §3.1")))
}

fn tcp_rtt(facts: &CeilingFacts) -> Option<&Known<Duration>> {
    facts.rtt.as_ref().filter(|_| facts.packet.is_tcp())
}

fn rtt_input(rtt: &Known<Duration>) -> CeilingInput {
    ceiling_input("rtt_ns", rtt.value.as_secs_f64() * 1e9, &rtt.source)
}

fn positive(rate: BitRate, what: &'static str) -> Result<f64, LadderError> {
    match rate.bits_per_sec() {
        0 => Err(LadderError::ZeroRate { what }),
        bps => Ok(bps as f64),
    }
}

#[cfg(test)]
mod tests;
