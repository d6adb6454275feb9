//! A verdict as a page of text: what limits, what shows it, what limits next, what to do about it,
//! what is there and is not the cause, and what could not be seen.
//!
//! Left out: its sentences (`verdict`).

use linerate_core::explain::Decision;
use linerate_core::record::{Direction, LimitVerdict, Outcome, Record};

use crate::document::{Block, Document, Fact, ReportSection};
use crate::headline::Headline;
use crate::verdict::outcome::{self, share_of_ceiling};
use crate::verdict::{finding, note, remedy};
use crate::{number, words};

/// Columns of the labels.
const LABEL: usize = 10;

/// The verdicts of a result of another program, with the headline of the one that says most: of
/// connections that which moved most, of documents in one file the last.
pub fn foreign_document(verdicts: &[LimitVerdict], main: usize) -> Document {
    let main = verdicts.get(main).map(std::slice::from_ref);
    let headline = main.map(|main| headline(&main[0], &Decision::from_verdicts(main)));
    Document { headline, sections: sections(verdicts), ..Document::default() }
}

/// The verdicts of a record, under the record's own answer.
pub fn of_record(record: &Record, decision: &Decision) -> Document {
    of_several(record, decision, &decision.verdicts)
}

/// The verdicts of several records, under the answer of the last.
pub fn of_several(record: &Record, decision: &Decision, verdicts: &[LimitVerdict]) -> Document {
    let own = Headline::from_decision(record, decision);
    let unknown = own.share.is_none() && !own.limit.has_rate();
    let known = telling(&decision.verdicts).map(share_of_ceiling).filter(|_| unknown);
    let headline = match known {
        Some((share @ Some(_), ceiling)) => Headline { share, ceiling, ..own },
        _ => own,
    };
    Document { headline: Some(headline), sections: sections(verdicts), ..Document::default() }
}

/// The verdict of the direction that is limited; without one, the first.
fn telling(verdicts: &[LimitVerdict]) -> Option<&LimitVerdict> {
    let limited = verdicts.iter().find(|verdict| verdict.outcome == Outcome::Limited);
    limited.or_else(|| verdicts.first())
}

fn sections(verdicts: &[LimitVerdict]) -> Vec<ReportSection> {
    let several = verdicts.len() > 1;
    let title = |verdict: &LimitVerdict| {
        let way = direction_heading(verdict.direction.filter(|_| several));
        match (&verdict.connection, way) {
            (Some(connection), "") => connection.clone(),
            (Some(connection), way) => format!("{connection}: {}", way.to_lowercase()),
            (None, way) => way.to_owned(),
        }
    };
    let section = |verdict: &LimitVerdict| {
        ReportSection::after_blank_line(title(verdict), [Block::Facts(verdict_facts(verdict))])
    };
    verdicts.iter().map(section).collect()
}

/// The page of a result with its verdicts before all else.
pub fn before(verdicts: &[LimitVerdict], mut page: Document) -> Document {
    let section = |verdict: &LimitVerdict| {
        let title = match direction_heading(verdict.direction) {
            "" => "What limits it".to_owned(),
            way => format!("What limits it: {}", way.to_lowercase()),
        };
        ReportSection::after_blank_line(title, [Block::Facts(verdict_facts(verdict))])
    };
    page.sections.splice(0..0, verdicts.iter().map(section));
    page
}

const fn direction_heading(direction: Option<Direction>) -> &'static str {
    match direction {
        Some(Direction::Up) => "From client to server",
        Some(Direction::Down) => "From server to client",
        None => "",
    }
}

fn headline(verdict: &LimitVerdict, decision: &Decision) -> Headline {
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

fn verdict_facts(verdict: &LimitVerdict) -> Vec<Fact> {
    let fact = |label: &str, text: String| Fact::new(label, LABEL, text);
    let mut facts = Vec::new();
    let mut add = |label: &str, texts: Vec<String>| {
        let mut label = label;
        for text in texts {
            facts.push(fact(label, text));
            label = "";
        }
    };
    add("limited by", vec![outcome::cause_with_proof(verdict)]);
    add("evidence", outcome::evidence(verdict));
    let expected = verdict.expected_bps.filter(|_| verdict.outcome == Outcome::Limited);
    add("expected", expected.map(number::rate_with_unit).into_iter().collect());
    add("next limit", verdict.next.map(finding::next_limit).into_iter().collect());
    add("remedy", verdict.remedy.iter().map(remedy::action_with_place).collect());
    let model = verdict.model.iter();
    add(
        "model",
        model.flat_map(|model| finding::model_promises(model, verdict.measured_bps)).collect(),
    );
    add("not it", verdict.innocent.iter().map(finding::innocent).collect());
    add("delay", verdict.latency.iter().map(finding::latency).collect());
    add("probes", verdict.loss.iter().map(finding::probe_loss).collect());
    add("handshake", verdict.handshake.iter().map(finding::changed_option).collect());
    add("RFC 6349", verdict.rfc6349.iter().map(finding::transfer).collect());
    add("goal", verdict.goal.iter().flat_map(finding::goal_lines).collect());
    let test = verdict.deciding_test.map(|test| note::deciding_test(test).to_owned());
    add("decides", test.into_iter().collect());
    let unseen: Vec<String> =
        verdict.unseen.iter().map(|quantity| note::unmeasured(*quantity).to_owned()).collect();
    let unseen = (!unseen.is_empty()).then(|| words::listed(&unseen));
    add("not seen", unseen.into_iter().collect());
    add("note", verdict.notes.iter().map(note::note_sentence).collect());
    facts
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_core::record::{
        At, Cause, Confidence, Criterion, CriterionKind, GoalAnswer, Handshake, LossKind,
        LossMechanism, LossState, NextBound, NextLimit, OptionChange, ProbeLoss, Reached,
        RemedyCommand, RemedyLine, Sign, SignKind, StateLikelihood, TcpOption, TransferFigures,
    };

    #[test]
    fn a_verdict_says_limit_figures_next_limit_and_lines_to_type() {
        let verdict = LimitVerdict {
            cause: Some(Cause::ReceiveWindow),
            confidence: Some(Confidence::High),
            measured_bps: Some(15.7e6),
            ceiling_bps: Some(94.1e6),
            evidence: vec![Sign::at_least(SignKind::FlightOverThatWindow, 0.98, 0.85)],
            next: Some(NextLimit { bound: NextBound::SendBuffer, bps: 500e6 }),
            remedy: vec![RemedyLine::command(At::Receiver, RemedyCommand::ScaleWindows)],
            ..LimitVerdict::from_outcome(Some(Direction::Up), Outcome::Limited)
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
        let run = Criterion {
            kind: CriterionKind::PacketsBetweenLosses,
            measured: Some(300.0),
            needed: 363.0,
            reached: Reached::Inconclusive,
            to_decide: Some(54),
        };
        let goal = GoalAnswer {
            rate_bps: 2.5e6,
            rtt_ns: 50e6,
            reached: Reached::Inconclusive,
            criteria: vec![run],
        };
        let verdict = LimitVerdict {
            rfc6349: Some(figures),
            goal: Some(goal),
            ..LimitVerdict::from_outcome(None, Outcome::Undetermined)
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
        let kinds = [SignKind::FlightOverThatWindow, SignKind::WindowVaries];
        let signs = kinds.map(|kind| Sign::at_least(kind, 0.98, 0.85));
        let up = LimitVerdict {
            evidence: signs.to_vec(),
            ..LimitVerdict::from_outcome(Some(Direction::Up), Outcome::Undetermined)
        };
        let down = LimitVerdict::from_outcome(Some(Direction::Down), Outcome::Undetermined);
        let own = Document {
            sections: vec![ReportSection::after_blank_line("Own", [])],
            ..Document::default()
        };
        let html = before(&[up, down], own).html();
        let place = |part: &str| html.find(part).unwrap_or_else(|| panic!("{part} in {html}"));
        let parts = [
            "from client to server",
            "<dd class=\"more\">largest over smallest window",
            "from server to",
            "Own",
        ];
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
        let verdict = LimitVerdict {
            loss: Some(loss),
            ..LimitVerdict::from_outcome(None, Outcome::Undetermined)
        };
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
        let verdict =
            LimitVerdict { handshake, ..LimitVerdict::from_outcome(None, Outcome::AtCeiling) };
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
        let verdict = LimitVerdict {
            between: vec![Cause::RandomLoss, Cause::Policer],
            ..LimitVerdict::from_outcome(None, Outcome::Undetermined)
        };
        let text = foreign_document(&[verdict], 0).text(None);
        assert!(text.contains("undetermined between random loss and a policer"), "{text}");
    }
}
