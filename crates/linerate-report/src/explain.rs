//! A verdict as a page of text: what limits, what shows it, what limits next, what to do about it,
//! what is there and is not the cause, and what could not be seen.

use linerate_core::record::{
    At, Cause, Confidence, Direction, Latency, OnModel, Outcome, RemedyLine, Verdict,
};

use crate::cause::{name, sign};
use crate::document::{Block, Document, Fact, Section};
use crate::headline::{Headline, Quality, diagnosed};
use crate::{number, words};

/// Columns of the labels.
const LABEL: usize = 10;

/// The verdicts of one result, with the identifier by which it is found again.
pub fn document(verdicts: &[Verdict], id: &str) -> Document {
    let headline = match verdicts {
        [] => None,
        [first, ..] => {
            // Of both directions that which is limited.
            let limited = verdicts.iter().find(|verdict| verdict.outcome == Outcome::Limited);
            Some(headline(limited.unwrap_or(first), id))
        }
    };
    let several = verdicts.len() > 1;
    let sections = verdicts.iter().map(|verdict| {
        let title = match verdict.direction.filter(|_| several) {
            Some(Direction::Up) => "From client to server",
            Some(Direction::Down) => "From server to client",
            None => "",
        };
        Section::apart(title, [Block::Facts(facts(verdict))])
    });
    Document { headline, sections: sections.collect(), ..Document::default() }
}

fn headline(verdict: &Verdict, id: &str) -> Headline {
    let way = match verdict.direction {
        Some(Direction::Up) => " up",
        Some(Direction::Down) => " down",
        None => "",
    };
    let rate = verdict.measured_bps.map(number::measured_rate);
    let share = share_of_ceiling(verdict);
    let ceiling = share.zip(verdict.ceiling_bps).map_or_else(String::new, |(share, bps)| {
        format!("{} of the {} that the path carries", number::share(share), number::rate(bps))
    });
    let sure = verdict.confidence.is_some_and(|it| it >= Confidence::Medium);
    let named = sure && verdict.outcome != Outcome::NoVerdict;
    Headline {
        result: rate.map_or_else(|| "nothing arrived".to_owned(), |rate| format!("{rate}{way}")),
        share,
        ceiling,
        limit: diagnosed::limit(verdict),
        quality: if named { Quality::Good } else { Quality::Doubtful },
        doubt: if named { String::new() } else { doubt(verdict) },
        id: crate::headline::short_id(id).to_owned(),
    }
}

fn doubt(verdict: &Verdict) -> String {
    match verdict.outcome {
        Outcome::NoVerdict => verdict.notes.first().cloned().unwrap_or_default(),
        _ if !verdict.between.is_empty() => format!("between {}", listed(&verdict.between)),
        _ => String::new(),
    }
}

fn share_of_ceiling(verdict: &Verdict) -> Option<f64> {
    let ceiling = verdict.ceiling_bps.filter(|bps| *bps > 0.0)?;
    Some(verdict.measured_bps? / ceiling)
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
    add("remedy", verdict.remedy.iter().map(remedy).collect());
    add("model", verdict.model.iter().flat_map(|it| model(it, verdict.measured_bps)).collect());
    let innocent = verdict.innocent.iter();
    let innocent = innocent.map(|it| format!("{}: {}", name(it.cause), it.why));
    add("not it", innocent.collect());
    add("delay", verdict.latency.iter().map(latency).collect());
    add("decides", verdict.deciding_test.iter().cloned().collect());
    let unseen = (!verdict.unseen.is_empty()).then(|| words::listed(&verdict.unseen));
    add("not seen", unseen.into_iter().collect());
    add("note", verdict.notes.clone());
    facts
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
    let tried = model.remedies.iter().map(|it| {
        let after = number::measured_rate(it.bps);
        format!("tried on a model of the path: {measured} -> {after} ({})", it.text)
    });
    std::iter::once(reached).chain(without).chain(tried).collect()
}

/// What to do, and where.
pub(crate) fn remedy(line: &RemedyLine) -> String {
    format!("{}: {}", at(line.at), line.text)
}

/// The figure that a verdict rests on first.
pub(crate) fn first_sign(verdict: &Verdict) -> Option<String> {
    verdict.evidence.first().map(sign)
}

/// What limits, with how far it is proved.
pub(crate) fn named(verdict: &Verdict) -> String {
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
        (_, None) => format!("undetermined between {}", listed(&verdict.between)),
    }
}

fn listed(causes: &[Cause]) -> String {
    words::listed(&causes.iter().map(|cause| name(*cause).to_owned()).collect::<Vec<_>>())
}

fn latency(latency: &Latency) -> String {
    let [idle, loaded] = [latency.idle_ns, latency.loaded_ns].map(|ns| number::ms_of_clock(ns, 1));
    let cause = latency.cause.map_or_else(String::new, |cause| format!(": {}", name(cause)));
    format!("{idle} ms at rest, {loaded} ms under load{cause}")
}

const fn at(at: At) -> &'static str {
    match at {
        At::Sender => "at the sender",
        At::Receiver => "at the receiver",
        At::Path => "on the path",
        At::Test => "this test",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_core::record::{NextLimit, Sign};

    #[test]
    fn a_verdict_says_limit_figures_next_limit_and_lines_to_type() {
        let verdict = Verdict {
            cause: Some(Cause::ReceiveWindow),
            confidence: Some(Confidence::High),
            measured_bps: Some(15.7e6),
            ceiling_bps: Some(94.1e6),
            evidence: vec![Sign::at_least("in flight over that window", 0.98, 0.85, "1")],
            next: Some(NextLimit { name: "the send buffer".to_owned(), bps: 500e6 }),
            remedy: vec![RemedyLine::command(At::Receiver, "sysctl -w a=1")],
            ..Verdict::of(Some(Direction::Up), Outcome::Limited)
        };
        let text = document(&[verdict], "").text(None);
        for part in [
            "15.70 Mbit/s up",
            "17 % of the 94.1 Mbit/s that the path carries",
            "the receive window (confidence high)",
            "in flight over that window 0.98 (at least 0.85)",
            "the send buffer, at 500 Mbit/s",
            "at the receiver: sysctl -w a=1",
        ] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
    }

    #[test]
    fn no_cause_is_named_where_several_agree() {
        let verdict = Verdict {
            between: vec![Cause::RandomLoss, Cause::Policer],
            ..Verdict::of(None, Outcome::Undetermined)
        };
        let text = document(&[verdict], "").text(None);
        assert!(text.contains("undetermined between random loss and a policer"), "{text}");
    }
}
