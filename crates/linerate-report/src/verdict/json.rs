//! A verdict as JSON: its values, with names of figures, remedies and notes in words.
//!
//! Left out: how it is decided (`core::explain`). Keys are kept: scripts read them.

use linerate_core::record::{
    At, Cause, Confidence, Criterion, Direction, GoalAnswer, Innocent, Latency, LimitVerdict,
    LimitedBy, NextLimit, OnModel, OptionChange, Outcome, ProbeLoss, Quality, Reached, Remedy,
    RemedyLine, Sign, Threshold, TransferFigures, Tried,
};
use serde::Serialize;

use super::{note, remedy, sign};

/// A verdict as `linerate explain --json` has it.
#[derive(Debug, Serialize)]
pub struct VerdictJson<'a> {
    direction: Option<Direction>,
    #[serde(skip_serializing_if = "Option::is_none")]
    connection: Option<&'a str>,
    outcome: Outcome,
    limited_by: LimitedBy,
    quality: Option<Quality>,
    cause: Option<Cause>,
    confidence: Option<Confidence>,
    measured_bps: Option<f64>,
    ceiling_bps: Option<f64>,
    expected_bps: Option<f64>,
    evidence: Vec<SignJson>,
    next: Option<NextJson>,
    remedy: Vec<RemedyJson>,
    innocent: Vec<InnocentJson>,
    between: &'a [Cause],
    deciding_test: Option<&'static str>,
    latency: Option<&'a Latency>,
    loss: Option<&'a ProbeLoss>,
    handshake: &'a [OptionChange],
    unseen: Vec<&'static str>,
    notes: Vec<String>,
    model: Option<ModelJson>,
    rfc6349: Option<TransferFigures>,
    goal: Option<GoalJson>,
}

#[derive(Debug, Serialize)]
struct SignJson {
    name: String,
    value: f64,
    unit: &'static str,
    threshold: Option<Threshold>,
}

#[derive(Debug, Serialize)]
struct NextJson {
    name: &'static str,
    bps: f64,
}

#[derive(Debug, Serialize)]
struct InnocentJson {
    cause: Cause,
    why: String,
}

#[derive(Debug, Serialize)]
struct RemedyJson {
    at: At,
    text: String,
    is_command: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    tried: Option<Tried>,
}

#[derive(Debug, Serialize)]
struct ModelJson {
    reached_bps: f64,
    agrees: bool,
    without_cause_bps: Option<f64>,
    remedies: Vec<RemedyOnModelJson>,
}

#[derive(Debug, Serialize)]
struct RemedyOnModelJson {
    text: String,
    bps: f64,
}

#[derive(Debug, Serialize)]
struct GoalJson {
    rate_bps: f64,
    rtt_ns: f64,
    reached: Reached,
    criteria: Vec<CriterionJson>,
}

#[derive(Debug, Serialize)]
struct CriterionJson {
    name: &'static str,
    measured: Option<f64>,
    needed: f64,
    unit: &'static str,
    reached: Reached,
    to_decide: Option<u64>,
}

impl<'a> From<&'a LimitVerdict> for VerdictJson<'a> {
    fn from(verdict: &'a LimitVerdict) -> Self {
        Self {
            direction: verdict.direction,
            connection: verdict.connection.as_deref(),
            outcome: verdict.outcome,
            limited_by: verdict.limited_by,
            quality: verdict.quality,
            cause: verdict.cause,
            confidence: verdict.confidence,
            measured_bps: verdict.measured_bps,
            ceiling_bps: verdict.ceiling_bps,
            expected_bps: verdict.expected_bps,
            evidence: verdict.evidence.iter().map(SignJson::from).collect(),
            next: verdict.next.map(NextJson::from),
            remedy: verdict.remedy.iter().map(RemedyJson::from).collect(),
            innocent: verdict.innocent.iter().map(InnocentJson::from).collect(),
            between: &verdict.between,
            deciding_test: verdict.deciding_test.map(note::deciding_test),
            latency: verdict.latency.as_ref(),
            loss: verdict.loss.as_ref(),
            handshake: &verdict.handshake,
            unseen: verdict.unseen.iter().copied().map(note::unmeasured).collect(),
            notes: verdict.notes.iter().map(note::note_sentence).collect(),
            model: verdict.model.as_ref().map(ModelJson::from),
            rfc6349: verdict.rfc6349,
            goal: verdict.goal.as_ref().map(GoalJson::from),
        }
    }
}

impl From<&Sign> for SignJson {
    fn from(sign: &Sign) -> Self {
        Self {
            name: sign::name(&sign.kind),
            value: sign.value,
            unit: sign.kind.unit().json_symbol(),
            threshold: sign.threshold,
        }
    }
}

impl From<NextLimit> for NextJson {
    fn from(next: NextLimit) -> Self {
        Self { name: note::next_bound_name(next.bound), bps: next.bps }
    }
}

impl From<&Innocent> for InnocentJson {
    fn from(innocent: &Innocent) -> Self {
        Self { cause: innocent.cause, why: note::harmless(innocent.seen) }
    }
}

impl From<&GoalAnswer> for GoalJson {
    fn from(goal: &GoalAnswer) -> Self {
        Self {
            rate_bps: goal.rate_bps,
            rtt_ns: goal.rtt_ns,
            reached: goal.reached,
            criteria: goal.criteria.iter().map(CriterionJson::from).collect(),
        }
    }
}

impl From<&Criterion> for CriterionJson {
    fn from(criterion: &Criterion) -> Self {
        Self {
            name: note::criterion(criterion.kind),
            measured: criterion.measured,
            needed: criterion.needed,
            unit: criterion.kind.figure_unit().json_symbol(),
            reached: criterion.reached,
            to_decide: criterion.to_decide,
        }
    }
}

impl From<&RemedyLine> for RemedyJson {
    fn from(line: &RemedyLine) -> Self {
        Self {
            at: line.at,
            text: remedy::command_or_advice(&line.remedy),
            is_command: matches!(line.remedy, Remedy::Line(_)),
            tried: line.tried,
        }
    }
}

impl From<&OnModel> for ModelJson {
    fn from(model: &OnModel) -> Self {
        let tried = model.remedies.iter().map(|tried| RemedyOnModelJson {
            text: remedy::command_or_advice(&tried.remedy),
            bps: tried.bps,
        });
        Self {
            reached_bps: model.reached_bps,
            agrees: model.agrees,
            without_cause_bps: model.without_cause_bps,
            remedies: tried.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use linerate_core::record::{
        FlowSide, Note, RemedyCommand, RemedyOnModel, SignKind, Unmeasured,
    };

    use super::*;

    #[test]
    fn a_remedy_stands_in_words_and_says_whether_it_is_a_line_to_type() {
        let command = RemedyCommand::ScaleWindows;
        let on_model = RemedyOnModel { remedy: Remedy::Line(command.clone()), bps: 9e7 };
        let verdict = LimitVerdict {
            remedy: vec![RemedyLine::command(At::Receiver, command)],
            model: Some(OnModel {
                reached_bps: 1e7,
                agrees: true,
                without_cause_bps: None,
                remedies: vec![on_model],
            }),
            ..LimitVerdict::from_outcome(Some(Direction::Up), Outcome::Limited)
        };
        let json = serde_json::to_value(VerdictJson::from(&verdict)).expect("plain values");
        let typed = "sysctl -w net.ipv4.tcp_window_scaling=1";
        let line = serde_json::json!({ "at": "receiver", "text": typed, "is_command": true });
        assert_eq!(json["remedy"], serde_json::json!([line]));
        assert_eq!(json["model"]["remedies"][0]["text"], typed);
        assert!(json.get("connection").is_none() && json["goal"].is_null());
    }

    #[test]
    fn a_figure_has_name_value_unit_and_threshold() {
        let verdict = LimitVerdict {
            evidence: vec![Sign::at_most(SignKind::DelayAddedForward, 2e6, 1e7)],
            notes: vec![Note::PathNotMeasured],
            unseen: vec![Unmeasured::Cpu(FlowSide::Sender)],
            ..LimitVerdict::from_outcome(None, Outcome::Undetermined)
        };
        let json = serde_json::to_value(VerdictJson::from(&verdict)).expect("plain values");
        let figure = serde_json::json!({
            "name": "delay added on the way of the data",
            "value": 2e6,
            "unit": "ns",
            "threshold": { "against": "at_most", "value": 1e7 },
        });
        assert_eq!(json["evidence"], serde_json::json!([figure]));
        assert_eq!(json["notes"][0], "what the path itself carries was not measured");
        assert_eq!(json["unseen"][0], "CPU of the sender");
    }
}
