//! A verdict as a page of text: what limits, what shows it, what limits next, what to do about it,
//! what is there and is not the cause, and what could not be seen.

use linerate_core::record::{
    Against, At, Cause, Confidence, Direction, Latency, Outcome, Sign, Verdict,
};

use crate::document::{Block, Document, Fact, Section};
use crate::headline::{Headline, Limit, LimitedBy, Quality};
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
        limit: limit(verdict),
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

/// The limit of a verdict as headlines have it.
pub(crate) fn limit(verdict: &Verdict) -> Limit {
    let Some(cause) = verdict.cause else { return Limit::new(LimitedBy::NotKnown, "") };
    let down = verdict.direction == Some(Direction::Down);
    let host = |local: bool| if local { LimitedBy::ThisHost } else { LimitedBy::OtherEnd };
    let by = match cause {
        Cause::ReceiveWindow | Cause::SendBuffer => LimitedBy::Window,
        Cause::SendingApplication => LimitedBy::Pace,
        Cause::SendingHost => host(!down),
        Cause::ReceivingHost | Cause::ReceivingApplication => host(down),
        Cause::Tester => LimitedBy::ThisHost,
        Cause::Link | Cause::LinkFallback => LimitedBy::Link,
        Cause::StartUp => LimitedBy::Time,
        _ => LimitedBy::Path,
    };
    let first = verdict.evidence.first().map_or_else(String::new, |it| format!(", {}", sign(it)));
    let what = match by {
        LimitedBy::Link => "it is full",
        _ => name(cause),
    };
    Limit::new(by, format!("{what}{first}"))
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
    add("limited by", vec![limited_by(verdict)]);
    add("evidence", verdict.evidence.iter().map(sign).collect());
    let expected = verdict.expected_bps.filter(|_| verdict.outcome == Outcome::Limited);
    add("expected", expected.map(number::rate).into_iter().collect());
    let next =
        verdict.next.as_ref().map(|next| format!("{}, at {}", next.name, number::rate(next.bps)));
    add("next limit", next.into_iter().collect());
    let remedy = verdict.remedy.iter().map(|line| format!("{}: {}", at(line.at), line.text));
    add("remedy", remedy.collect());
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

fn limited_by(verdict: &Verdict) -> String {
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

/// A figure with its unit and its threshold.
fn sign(sign: &Sign) -> String {
    let shown = |value: f64| value_of(value, &sign.unit);
    let threshold = sign.threshold.map_or_else(String::new, |threshold| {
        let word = match threshold.against {
            Against::AtLeast => "at least",
            Against::AtMost => "at most",
        };
        format!(" ({word} {})", shown(threshold.value))
    });
    format!("{} {}{threshold}", sign.name, shown(sign.value))
}

fn value_of(value: f64, unit: &str) -> String {
    match unit {
        "bit/s" => number::measured_rate(value),
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a count of bytes"
        )]
        "bytes" => number::buffer(value.max(0.0) as u64),
        "ns" => format!("{} ms", number::ms_of_clock(value, 1)),
        "1" => number::trimmed(&number::significant(value, 3)).to_owned(),
        unit => format!("{} {unit}", number::trimmed(&number::significant(value, 3))),
    }
}

const fn at(at: At) -> &'static str {
    match at {
        At::Sender => "at the sender",
        At::Receiver => "at the receiver",
        At::Path => "on the path",
        At::Test => "this test",
    }
}

/// A cause in words.
pub const fn name(cause: Cause) -> &'static str {
    match cause {
        Cause::ReceiveWindow => "the receive window",
        Cause::SendBuffer => "the send buffer",
        Cause::SendingApplication => "the sending application",
        Cause::SendingHost => "the sending host",
        Cause::ReceivingApplication => "the receiving application",
        Cause::ReceivingHost => "the receiving host",
        Cause::Link => "the bottleneck link",
        Cause::LinkFallback => "a link that fell back to a lower rate",
        Cause::DuplexMismatch => "a duplex mismatch",
        Cause::Shaper => "a shaper",
        Cause::Policer => "a policer",
        Cause::PacketRate => "the packets per second of a device",
        Cause::RandomLoss => "random loss",
        Cause::OtherTraffic => "other traffic",
        Cause::SmallBuffer => "a small buffer",
        Cause::StandingQueue => "a standing queue",
        Cause::StartUp => "the start",
        Cause::Reordering => "reordering",
        Cause::UnequalPaths => "unequal parallel paths",
        Cause::AckPath => "the way back of acknowledgments",
        Cause::MtuBlackHole => "an MTU black hole",
        Cause::TunnelMtu => "the MTU of a tunnel",
        Cause::Offload => "an offload or driver fault",
        Cause::LongDelay => "the round trip itself",
        Cause::Outages => "outages",
        Cause::CongestionControl => "the congestion control",
        Cause::Middlebox => "a middlebox",
        Cause::AddressFamily => "the address family",
        Cause::Tester => "the tester itself",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_core::record::{NextLimit, RemedyLine};

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
