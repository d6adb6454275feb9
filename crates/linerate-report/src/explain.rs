//! A verdict as a page of text: what limits, what shows it, what limits next, what to do about it,
//! what is there and is not the cause, and what could not be seen.

use linerate_core::explain::Decision;
use linerate_core::record::{
    Confidence, Direction, GoalAnswer, Handshake, Latency, LossKind, LossMechanism, OnModel,
    OptionChange, Outcome, ProbeLoss, Reached, Record, SHARE_MAX, Sign, TcpOption, TransferFigures,
    Verdict,
};

use crate::document::{Block, Document, Fact, Section};
use crate::headline::Headline;
use crate::verdict::cause::{self, name, sign};
use crate::verdict::remedy;
use crate::{number, words};

/// Columns of the labels.
const LABEL: usize = 10;

/// The verdicts of a result of another program, with the headline of the one that says most: of
/// connections that which moved most, of documents in one file the last.
pub fn foreign_document(verdicts: &[Verdict], main: usize) -> Document {
    let main = verdicts.get(main).map(std::slice::from_ref);
    let headline = main.map(|main| headline(&main[0], &Decision::from_verdicts(main)));
    Document { headline, sections: sections(verdicts), ..Document::default() }
}

/// The verdicts of a record, under the record's own answer.
pub fn of_record(record: &Record, decision: &Decision) -> Document {
    of_several(record, decision, &decision.verdicts)
}

/// The verdicts of several records, under the answer of the last.
pub fn of_several(record: &Record, decision: &Decision, verdicts: &[Verdict]) -> Document {
    let own = Headline::from_decision(record, decision);
    let unknown = own.share.is_none() && !own.limit.has_rate();
    let known = telling(&decision.verdicts).map(share_of_ceiling).filter(|_| unknown);
    let headline = match known {
        Some((share @ Some(_), ceiling)) => Headline { share, ceiling, ..own },
        _ => own,
    };
    Document { headline: Some(headline), sections: sections(verdicts), ..Document::default() }
}

/// Of both directions that which is limited.
fn telling(verdicts: &[Verdict]) -> Option<&Verdict> {
    let limited = verdicts.iter().find(|verdict| verdict.outcome == Outcome::Limited);
    limited.or_else(|| verdicts.first())
}

fn sections(verdicts: &[Verdict]) -> Vec<Section> {
    let several = verdicts.len() > 1;
    let title = |verdict: &Verdict| {
        let way = way(verdict.direction.filter(|_| several));
        match (&verdict.connection, way) {
            (Some(connection), "") => connection.clone(),
            (Some(connection), way) => format!("{connection}: {}", way.to_lowercase()),
            (None, way) => way.to_owned(),
        }
    };
    let section =
        |verdict: &Verdict| Section::apart(title(verdict), [Block::Facts(facts(verdict))]);
    verdicts.iter().map(section).collect()
}

/// The page of a result with its verdicts before all else.
pub fn before(verdicts: &[Verdict], mut page: Document) -> Document {
    let section = |verdict: &Verdict| {
        let title = match way(verdict.direction) {
            "" => "What limits it".to_owned(),
            way => format!("What limits it: {}", way.to_lowercase()),
        };
        Section::apart(title, [Block::Facts(facts(verdict))])
    };
    page.sections.splice(0..0, verdicts.iter().map(section));
    page
}

const fn way(direction: Option<Direction>) -> &'static str {
    match direction {
        Some(Direction::Up) => "From client to server",
        Some(Direction::Down) => "From server to client",
        None => "",
    }
}

fn headline(verdict: &Verdict, decision: &Decision) -> Headline {
    let way = match verdict.direction {
        Some(Direction::Up) => " up",
        Some(Direction::Down) => " down",
        None => "",
    };
    let rate = verdict.measured_bps.map(number::measured_rate);
    let none = if verdict.connection.is_some() { "rate not known" } else { "nothing arrived" };
    let (share, ceiling) = share_of_ceiling(verdict);
    let answer = Headline::from_verdicts(decision);
    Headline {
        result: rate.map_or_else(|| none.to_owned(), |rate| format!("{rate}{way}")),
        share,
        ceiling: if answer.limit.has_rate() { String::new() } else { ceiling },
        ..answer
    }
}

/// The share of what the path carries, and the same in words.
fn share_of_ceiling(verdict: &Verdict) -> (Option<f64>, String) {
    let bound = verdict.ceiling_bps.filter(|bps| *bps > 0.0);
    let share = bound.zip(verdict.measured_bps).map(|(bound, bps)| bps / bound);
    let ceiling = share.zip(bound).map_or_else(String::new, |(share, bps)| {
        let bound = number::rate(bps);
        match number::share(share) {
            // A rate above its bound is within the error of both.
            _ if (1.0..=SHARE_MAX).contains(&share) => {
                format!("all of the {bound} that the path carries")
            }
            share => format!("{share} of the {bound} that the path carries"),
        }
    });
    (share, ceiling)
}

fn facts(verdict: &Verdict) -> Vec<Fact> {
    let fact = |label: &str, text: String| Fact::new(label, LABEL, text);
    let mut facts = Vec::new();
    let mut add = |label: &str, texts: Vec<String>| {
        let mut label = label;
        for text in texts {
            facts.push(fact(label, text));
            label = "";
        }
    };
    add("limited by", vec![named(verdict)]);
    add("evidence", verdict.evidence.iter().map(sign).collect());
    let expected = verdict.expected_bps.filter(|_| verdict.outcome == Outcome::Limited);
    add("expected", expected.map(number::rate).into_iter().collect());
    let next =
        verdict.next.as_ref().map(|next| format!("{}, at {}", next.name, number::rate(next.bps)));
    add("next limit", next.into_iter().collect());
    add("remedy", verdict.remedy.iter().map(remedy::line).collect());
    add("model", verdict.model.iter().flat_map(|it| model(it, verdict.measured_bps)).collect());
    let innocent = verdict.innocent.iter();
    let innocent = innocent.map(|it| format!("{}: {}", name(it.cause), it.why));
    add("not it", innocent.collect());
    add("delay", verdict.latency.iter().map(latency).collect());
    add("probes", verdict.loss.iter().map(loss).collect());
    add("handshake", verdict.handshake.iter().map(changed).collect());
    add("RFC 6349", verdict.rfc6349.iter().map(transfer).collect());
    add("goal", verdict.goal.iter().flat_map(goal).collect());
    add("decides", verdict.deciding_test.iter().cloned().collect());
    let unseen = (!verdict.unseen.is_empty()).then(|| words::listed(&verdict.unseen));
    add("not seen", unseen.into_iter().collect());
    add("note", verdict.notes.clone());
    facts
}

/// An option that something between the hosts changed.
fn changed(change: &OptionChange) -> String {
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
fn loss(loss: &ProbeLoss) -> String {
    let named = |found: &LossMechanism| {
        let size = sign(&Sign::figure("", found.size, &found.unit));
        format!(", {} of{size}", kind(found.kind))
    };
    let found = loss.overflow.iter().chain(&loss.background).map(named).collect::<String>();
    format!("{} of {} lost{found}", loss.lost, loss.sent)
}

const fn kind(kind: LossKind) -> &'static str {
    match kind {
        LossKind::ByteQueue => "a queue",
        LossKind::PacketQueue => "a queue counted in packets,",
        LossKind::Policer => "a policer",
        LossKind::PacketRate => "a device",
        LossKind::Random => "random loss",
        LossKind::Bursts => "bursts of loss",
    }
}

/// The metrics of RFC 6349 that are known.
fn transfer(figures: &TransferFigures) -> String {
    let ratio = figures.transfer_time_ratio.map(|it| format!("transfer time ratio {it:.2}"));
    let kept = figures.efficiency.map(|it| format!("TCP efficiency {:.2} %", it * 100.0));
    let delay = figures.buffer_delay.map(|it| format!("buffer delay {:.0} %", it * 100.0));
    [ratio, kept, delay].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Whether the path carries a goal, and each figure beside what the goal needs.
pub fn goal(goal: &GoalAnswer) -> Vec<String> {
    let (rate, rtt) = (number::rate(goal.rate_bps), number::ms_of_clock(goal.rtt_ns, 1));
    let all = format!("{rate} over {rtt} ms: {}", reached(goal.reached));
    let each = goal.criteria.iter().map(|it| {
        let show = |value: f64| match it.unit.as_str() {
            "bit/s" => number::rate(value),
            unit => format!("{value:.0} {unit}"),
        };
        let measured = it.measured.map_or_else(|| "not measured".to_owned(), show);
        let more = it.to_decide.map_or_else(String::new, |count| {
            format!("; {count} further packets without a loss would pass it")
        });
        let met = reached(it.reached);
        format!("{}: {measured}, needs {}: {met}{more}", it.name, show(it.needed))
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

/// What a model of the path promises, and why it promises nothing.
fn model(model: &OnModel, measured_bps: Option<f64>) -> Vec<String> {
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
        let (after, remedy) = (number::measured_rate(tried.bps), remedy::text(&tried.remedy));
        format!("tried on a model of the path: {measured} -> {after} ({remedy})")
    });
    std::iter::once(reached).chain(without).chain(tried).collect()
}

/// The figure that a verdict rests on first.
pub(crate) fn first_sign(verdict: &Verdict) -> Option<String> {
    verdict.evidence.first().map(sign)
}

/// The figures that a verdict rests on, in words.
pub fn evidence(verdict: &Verdict) -> Vec<String> {
    verdict.evidence.iter().map(sign).collect()
}

/// What limits, with how far it is proved.
pub fn named(verdict: &Verdict) -> String {
    let confidence = verdict.confidence.map_or_else(String::new, |it| match it {
        Confidence::High => " (confidence high)".to_owned(),
        Confidence::Medium => " (confidence medium)".to_owned(),
        Confidence::Low => " (confidence low)".to_owned(),
    });
    match (verdict.outcome, verdict.cause) {
        (Outcome::NoVerdict, _) => "no verdict: the tester spoilt the measurement".to_owned(),
        (Outcome::AtCeiling, Some(cause)) => {
            format!("{}: the path is full{confidence}", name(cause))
        }
        (_, Some(cause)) => format!("{}{confidence}", name(cause)),
        (_, None) if verdict.between.is_empty() => {
            "undetermined: nothing that was seen explains the rate".to_owned()
        }
        (_, None) => format!("undetermined between {}", cause::listed(&verdict.between)),
    }
}

fn latency(latency: &Latency) -> String {
    let [idle, loaded] = [latency.idle_ns, latency.loaded_ns].map(|ns| number::ms_of_clock(ns, 1));
    let cause = latency.cause.map_or_else(String::new, |cause| format!(": {}", name(cause)));
    format!("{idle} ms at rest, {loaded} ms under load{cause}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_core::record::{
        At, Cause, HostCommand, LossState, NextLimit, RemedyLine, StateLikelihood,
    };

    #[test]
    fn a_verdict_says_limit_figures_next_limit_and_lines_to_type() {
        let verdict = Verdict {
            cause: Some(Cause::ReceiveWindow),
            confidence: Some(Confidence::High),
            measured_bps: Some(15.7e6),
            ceiling_bps: Some(94.1e6),
            evidence: vec![Sign::at_least("in flight over that window", 0.98, 0.85, "1")],
            next: Some(NextLimit { name: "the send buffer".to_owned(), bps: 500e6 }),
            remedy: vec![RemedyLine::command(At::Receiver, HostCommand::ScaleWindows)],
            ..Verdict::of(Some(Direction::Up), Outcome::Limited)
        };
        let text = foreign_document(&[verdict], 0).text(None);
        for part in [
            "15.70 Mbit/s up",
            "17 % of the 94.1 Mbit/s that the path carries",
            "the receive window (confidence high)",
            "in flight over that window 0.98 (at least 0.85)",
            "the send buffer, at 500 Mbit/s",
            "at the receiver: sysctl -w net.ipv4.tcp_window_scaling=1",
        ] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
    }

    #[test]
    fn figures_of_rfc_6349_and_a_goal_stand_beside_what_is_needed() {
        // The examples of RFC 6349: 12 s for 8 (§4.1.2), 100 of 102 (§4.2.1), 7 of 25 ms (§4.3.1).
        let figures = TransferFigures {
            transfer_time_ratio: Some(1.5),
            efficiency: Some(100.0 / 102.0),
            buffer_delay: Some(0.28),
        };
        let run = linerate_core::record::Criterion {
            name: "packets between two losses".to_owned(),
            measured: Some(300.0),
            needed: 363.0,
            unit: "packets".to_owned(),
            reached: Reached::Inconclusive,
            to_decide: Some(54),
        };
        let goal = GoalAnswer {
            rate_bps: 2.5e6,
            rtt_ns: 50e6,
            reached: Reached::Inconclusive,
            criteria: vec![run],
        };
        let verdict = Verdict {
            rfc6349: Some(figures),
            goal: Some(goal),
            ..Verdict::of(None, Outcome::Undetermined)
        };
        let text = foreign_document(&[verdict], 0).text(None);
        for part in [
            "transfer time ratio 1.50, TCP efficiency 98.04 %, buffer delay 28 %",
            "2.5 Mbit/s over 50.0 ms: inconclusive",
            "300 packets, needs 363 packets: inconclusive; 54 further packets without a loss",
        ] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
    }

    #[test]
    fn a_page_has_the_verdict_of_each_way_before_its_figures() {
        let signs = ["first", "second"].map(|name| Sign::at_least(name, 0.98, 0.85, "1"));
        let up = Verdict {
            evidence: signs.to_vec(),
            ..Verdict::of(Some(Direction::Up), Outcome::Undetermined)
        };
        let down = Verdict::of(Some(Direction::Down), Outcome::Undetermined);
        let own = Document { sections: vec![Section::apart("Own", [])], ..Document::default() };
        let html = before(&[up, down], own).html();
        let place = |part: &str| html.find(part).unwrap_or_else(|| panic!("{part} in {html}"));
        let parts = ["from client to server", "<dd class=\"more\">second", "from server to", "Own"];
        assert!(parts.map(place).is_sorted(), "{html}");
    }

    #[test]
    fn losses_of_probes_are_told_with_what_loses_them() {
        let loss = ProbeLoss {
            sent: 6420,
            lost: 43,
            overflow: Some(LossMechanism {
                kind: LossKind::Policer,
                size: 12.3e6,
                unit: "bit/s".to_owned(),
            }),
            background: None,
            states: vec![StateLikelihood { state: LossState::TokenDeficit, nats: 412.3 }],
        };
        let verdict = Verdict { loss: Some(loss), ..Verdict::of(None, Outcome::Undetermined) };
        let text = foreign_document(&[verdict], 0).text(None);
        assert!(text.contains("43 of 6420 lost, a policer of 12.30 Mbit/s\n"), "{text}");
    }

    #[test]
    fn options_that_were_changed_are_told_with_both_values() {
        let change =
            |segment, option, sent, arrived| OptionChange { segment, option, sent, arrived };
        let handshake = vec![
            change(Handshake::Syn, TcpOption::WindowScale, Some(7), None),
            change(Handshake::SynAck, TcpOption::Mss, Some(1460), Some(1200)),
        ];
        let verdict = Verdict { handshake, ..Verdict::of(None, Outcome::AtCeiling) };
        let text = foreign_document(&[verdict], 0).text(None);
        for line in [
            "the client's SYN left with window scale 7 and arrived without it",
            "the server's SYN-ACK left with segment size 1460 and arrived with 1200",
        ] {
            assert!(text.contains(line), "{text}");
        }
    }

    #[test]
    fn no_cause_is_named_where_several_agree() {
        let verdict = Verdict {
            between: vec![Cause::RandomLoss, Cause::Policer],
            ..Verdict::of(None, Outcome::Undetermined)
        };
        let text = foreign_document(&[verdict], 0).text(None);
        assert!(text.contains("undetermined between random loss and a policer"), "{text}");
    }
}
