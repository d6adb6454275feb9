//! Findings beside a cause, in words: options that were changed, losses of probes, delay under
//! load, the metrics of RFC 6349, a goal, a model of the path.
//!
//! Left out: how they are found (`core::explain`).

use linerate_core::record::{
    GoalAnswer, Handshake, Innocent, Latency, LossKind, LossMechanism, NextLimit, OnModel,
    OptionChange, ProbeLoss, Reached, SignUnit, TcpOption, TransferFigures,
};

use super::cause::name;
use super::sign::value_in_words;
use super::{note, remedy};
use crate::number;

/// An option that something between the hosts changed.
pub(crate) fn changed_option(change: &OptionChange) -> String {
    let segment = match change.segment {
        Handshake::Syn => "the client's SYN",
        Handshake::SynAck => "the server's SYN-ACK",
    };
    let option = match change.option {
        TcpOption::Mss => "segment size",
        TcpOption::WindowScale => "window scale",
        TcpOption::Sack => "SACK",
        TcpOption::Timestamps => "timestamps",
        TcpOption::Ecn => "ECN",
    };
    let sent = change.sent.map_or_else(String::new, |value| format!(" {value}"));
    match change.arrived {
        Some(value) => format!("{segment} left with {option}{sent} and arrived with {value}"),
        None => format!("{segment} left with {option}{sent} and arrived without it"),
    }
}

/// Probes that were lost, and the mechanism that loses them. How well each hidden state foretells
/// the losses is in the JSON alone.
pub(crate) fn probe_loss(loss: &ProbeLoss) -> String {
    let named = |found: &LossMechanism| {
        let size = value_in_words(found.size, &found.unit);
        format!(", {} of {size}", mechanism(found.kind))
    };
    let found = loss.overflow.iter().chain(&loss.background).map(named).collect::<String>();
    format!("{} of {} lost{found}", loss.lost, loss.sent)
}

const fn mechanism(kind: LossKind) -> &'static str {
    match kind {
        LossKind::ByteQueue => "a queue",
        LossKind::PacketQueue => "a queue counted in packets,",
        LossKind::Policer => "a policer",
        LossKind::PacketRate => "a device",
        LossKind::Random => "random loss",
        LossKind::Bursts => "bursts of loss",
    }
}

/// A cause that is none, and the figure that was seen of it.
pub(crate) fn innocent(innocent: &Innocent) -> String {
    format!("{}: {}", name(innocent.cause), note::harmless(innocent.seen))
}

/// The bound that is met next, and its rate.
pub(crate) fn next_limit(next: NextLimit) -> String {
    format!("{}, at {}", note::next_bound_name(next.bound), number::rate_with_unit(next.bps))
}

/// The delay at rest and under load.
pub(crate) fn latency(latency: &Latency) -> String {
    let [idle, loaded] = [latency.idle_ns, latency.loaded_ns].map(|ns| number::ms_of_clock(ns, 1));
    let cause = latency.cause.map_or_else(String::new, |cause| format!(": {}", name(cause)));
    format!("{idle} ms at rest, {loaded} ms under load{cause}")
}

/// The metrics of RFC 6349 that are known.
pub(crate) fn transfer(figures: &TransferFigures) -> String {
    let ratio = figures.transfer_time_ratio.map(|ratio| format!("transfer time ratio {ratio:.2}"));
    let kept = figures.efficiency.map(|share| format!("TCP efficiency {:.2} %", share * 100.0));
    let delay = figures.buffer_delay.map(|share| format!("buffer delay {:.0} %", share * 100.0));
    [ratio, kept, delay].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Each figure of a goal beside what the goal needs, behind whether the path carries it.
pub fn goal_lines(goal: &GoalAnswer) -> Vec<String> {
    let (rate, rtt) = (number::rate_with_unit(goal.rate_bps), number::ms_of_clock(goal.rtt_ns, 1));
    let all = format!("{rate} over {rtt} ms: {}", reached(goal.reached));
    let each = goal.criteria.iter().map(|criterion| {
        let show = |value: f64| match criterion.kind.figure_unit() {
            SignUnit::BitsPerSecond => number::rate_with_unit(value),
            unit => format!("{value:.0} {}", unit.json_symbol()),
        };
        let measured = criterion.measured.map_or_else(|| "not measured".to_owned(), show);
        let more = criterion.to_decide.map_or_else(String::new, |count| {
            format!("; {count} further packets without a loss would pass it")
        });
        let (met, needed) = (reached(criterion.reached), show(criterion.needed));
        format!("{}: {measured}, needs {needed}: {met}{more}", note::criterion(criterion.kind))
    });
    std::iter::once(all).chain(each).collect()
}

const fn reached(reached: Reached) -> &'static str {
    match reached {
        Reached::Pass => "pass",
        Reached::Fail => "fail",
        Reached::Inconclusive => "inconclusive",
    }
}

/// Promises of a model of the path, or the reason why it makes none.
pub(crate) fn model_promises(model: &OnModel, measured_bps: Option<f64>) -> Vec<String> {
    let [reached, measured] = [Some(model.reached_bps), measured_bps]
        .map(|bps| number::or_dash(bps, number::measured_rate));
    if !model.agrees {
        return vec![format!(
            "the model of this path reaches {reached}, measured {measured}: no promise"
        )];
    }
    let reached = format!("TCP on a model of this path reaches {reached}, measured {measured}");
    let without = model.without_cause_bps.map(|bps| {
        format!("without the cause: {measured} -> {} on the model", number::measured_rate(bps))
    });
    let tried = model.remedies.iter().map(|tried| {
        let (after, remedy) =
            (number::measured_rate(tried.bps), remedy::command_or_advice(&tried.remedy));
        format!("tried on a model of the path: {measured} -> {after} ({remedy})")
    });
    std::iter::once(reached).chain(without).chain(tried).collect()
}
