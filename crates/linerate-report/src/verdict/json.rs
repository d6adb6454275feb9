//! A verdict as JSON: its values, with names of figures, remedies and notes in words.
//!
//! Left out: how it is decided (`core::explain`). Keys are kept: scripts read them.

use linerate_core::record::{
    At, Cause, Confidence, Direction, GoalAnswer, Innocent, Latency, LimitedBy, NextLimit, OnModel,
    OptionChange, Outcome, ProbeLoss, Quality, Remedy, RemedyLine, Sign, TransferFigures, Tried,
    Verdict,
};
use serde::Serialize;

use super::remedy;

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
    evidence: &'a [Sign],
    next: Option<&'a NextLimit>,
    remedy: Vec<RemedyJson>,
    innocent: &'a [Innocent],
    between: &'a [Cause],
    deciding_test: Option<&'a str>,
    latency: Option<&'a Latency>,
    loss: Option<&'a ProbeLoss>,
    handshake: &'a [OptionChange],
    unseen: &'a [String],
    notes: &'a [String],
    model: Option<ModelJson>,
    rfc6349: Option<TransferFigures>,
    goal: Option<&'a GoalAnswer>,
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

impl<'a> From<&'a Verdict> for VerdictJson<'a> {
    fn from(verdict: &'a Verdict) -> Self {
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
            evidence: &verdict.evidence,
            next: verdict.next.as_ref(),
            remedy: verdict.remedy.iter().map(RemedyJson::from).collect(),
            innocent: &verdict.innocent,
            between: &verdict.between,
            deciding_test: verdict.deciding_test.as_deref(),
            latency: verdict.latency.as_ref(),
            loss: verdict.loss.as_ref(),
            handshake: &verdict.handshake,
            unseen: &verdict.unseen,
            notes: &verdict.notes,
            model: verdict.model.as_ref().map(ModelJson::from),
            rfc6349: verdict.rfc6349,
            goal: verdict.goal.as_ref(),
        }
    }
}

impl From<&RemedyLine> for RemedyJson {
    fn from(line: &RemedyLine) -> Self {
        Self {
            at: line.at,
            text: remedy::text(&line.remedy),
            is_command: matches!(line.remedy, Remedy::Line(_)),
            tried: line.tried,
        }
    }
}

impl From<&OnModel> for ModelJson {
    fn from(model: &OnModel) -> Self {
        let tried = model
            .remedies
            .iter()
            .map(|tried| RemedyOnModelJson { text: remedy::text(&tried.remedy), bps: tried.bps });
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
    use linerate_core::record::{HostCommand, RemedyOnModel};

    use super::*;

    #[test]
    fn a_remedy_stands_in_words_and_says_whether_it_is_a_line_to_type() {
        let command = HostCommand::ScaleWindows;
        let on_model = RemedyOnModel { remedy: Remedy::Line(command.clone()), bps: 9e7 };
        let verdict = Verdict {
            remedy: vec![RemedyLine::command(At::Receiver, command)],
            model: Some(OnModel {
                reached_bps: 1e7,
                agrees: true,
                without_cause_bps: None,
                remedies: vec![on_model],
            }),
            ..Verdict::of(Some(Direction::Up), Outcome::Limited)
        };
        let json = serde_json::to_value(VerdictJson::from(&verdict)).expect("plain values");
        let typed = "sysctl -w net.ipv4.tcp_window_scaling=1";
        let line = serde_json::json!({ "at": "receiver", "text": typed, "is_command": true });
        assert_eq!(json["remedy"], serde_json::json!([line]));
        assert_eq!(json["model"]["remedies"][0]["text"], typed);
        assert!(json.get("connection").is_none() && json["goal"].is_null());
    }
}
