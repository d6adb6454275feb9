//! Broken paths as a page: what iperf3 prints of each, what the diagnosis names, what it promises,
//! and what the path gives without the cause.

use linerate_core::lab::bank::{Case, CaseLabels, Label};
use linerate_core::record::{LimitVerdict, Outcome, Plan, Record};

use crate::document::{Block, Document, MISSED, ReportSection, StudyAnswer, Tile};
use crate::iperf3::{Iperf3Lines, Iperf3Role, Iperf3Unit, Sheet};
use crate::number::{rate_in_mbit, rate_with_unit};
use crate::verdict;

/// A promise is kept where the path then gives this share of it.
const KEPT: f64 = 0.8;

/// A case as the page shows it, without its record.
#[derive(Clone, Debug)]
pub struct BankPageCase {
    name: String,
    planted: Label,
    is_right: bool,
    iperf3: String,
    verdict: Option<LimitVerdict>,
    with_bps: f64,
    without_bps: Option<f64>,
}

impl BankPageCase {
    /// A judged case whose record is still there; none where nothing was measured that counts.
    pub fn from_judged_case(
        case: &Case,
        judged: &CaseLabels,
        verdicts: &[LimitVerdict],
    ) -> Option<Self> {
        let record = case.record.as_deref().filter(|_| case.counts())?;
        Some(Self {
            name: case.recipe.replace('-', " "),
            planted: case.expect,
            is_right: case.is_right(judged.diagnosis_label()),
            iperf3: iperf3_line(record).unwrap_or_default(),
            verdict: Case::verdict(verdicts).cloned(),
            with_bps: case.with.goodput_bps,
            without_bps: case.without.map(|without| without.goodput_bps),
        })
    }

    fn is_innocent(&self) -> bool {
        self.planted == Label::AT_CEILING
    }

    /// Rate in bit/s that the verdict promises once the cause is gone.
    fn promised_bps(&self) -> Option<f64> {
        let verdict =
            self.verdict.as_ref().filter(|verdict| verdict.outcome == Outcome::Limited)?;
        verdict.next.as_ref().map(|next| next.bps).filter(|_| !self.is_innocent())
    }

    /// True if the path without the cause carried the share of the promised rate that keeps a
    /// promise; none without a promise.
    fn is_kept(&self) -> Option<bool> {
        Some(self.without_bps? >= KEPT * self.promised_bps()?)
    }

    fn answer(&self) -> StudyAnswer {
        let named =
            self.verdict.as_ref().map_or_else(|| "nothing".to_owned(), verdict::cause_with_proof);
        let mut text = format!("linerate names {named}");
        if let Some(first) = self.verdict.as_ref().and_then(verdict::outcome::first_sign) {
            text.push_str(&format!(", {first}"));
        }
        text.push('.');
        if let Some(remedy) = self.verdict.as_ref().and_then(|verdict| verdict.remedy.first()) {
            text.push_str(&format!(" Remedy {}.", verdict::remedy::action_with_place(remedy)));
        }
        if let Some(without) = self.without_bps {
            let promised = self.promised_bps();
            let promised = promised.map(|bps| format!("; promised {}", rate_with_unit(bps)));
            let promised = promised.unwrap_or_default();
            text.push_str(&format!(" Without the cause {}{promised}.", rate_with_unit(without)));
        }
        let doubt = match (self.is_right, self.is_kept()) {
            (false, _) => format!("planted was: {}", self.planted),
            (true, Some(false)) => "the promise was not kept".to_owned(),
            _ => String::new(),
        };
        let figure = format!("{} Mbit/s", rate_in_mbit(self.with_bps));
        StudyAnswer {
            ask: format!("{} ({})", self.name, self.planted),
            verdict: if self.is_right { "Right" } else { MISSED },
            text,
            figure: Some(Tile::new(figure, format!("iperf3 prints: {}", self.iperf3), "")),
            doubt,
        }
    }
}

/// The page of all cases that were run: how many causes were named rightly, and each case.
pub fn cases_page(shown: &[BankPageCase]) -> Document {
    let right = shown.iter().filter(|case| case.is_right).count();
    let kept: Vec<bool> = shown.iter().filter_map(BankPageCase::is_kept).collect();
    let promises = match kept.len() {
        0 => String::new(),
        all => {
            let kept = kept.iter().filter(|kept| **kept).count();
            format!(
                " {kept} of {all} promises are kept: the path without the cause gives at least \
                     {:.0} % of the next limit.",
                KEPT * 100.0
            )
        }
    };
    let sentence =
        format!("linerate names {right} of {} planted causes right.{promises}", shown.len());
    let answers = shown.iter().map(BankPageCase::answer).collect();
    Document {
        title: "Broken paths, and what limits them".to_owned(),
        sentence,
        sections: vec![ReportSection::after_blank_line("", [Block::Answers(answers)]).leading()],
        ..Document::default()
    }
}

/// The sender's line of iperf3's summary.
fn iperf3_line(record: &Record) -> Option<String> {
    let is_tcp = |record: &&Record| matches!(record.plan, Plan::Tcp(_)) && !record.flows.is_empty();
    let record = std::iter::once(record).chain(&record.parts).find(is_tcp)?;
    let Plan::Tcp(plan) = &record.plan else { return None };
    let lines = Iperf3Lines::new(
        Sheet::new(Iperf3Role::Client, plan.clone()),
        Iperf3Unit::default(),
        false,
    );
    let summary = lines.summary(record);
    let line = summary.lines().find(|line| line.trim_end().ends_with("sender"))?;
    Some(line.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_core::lab::bank::Reach;
    use linerate_core::record::{Cause, NextBound, NextLimit, RecordId, TcpPlan, Tool};
    use linerate_core::time::WallTime;

    fn sample_case(said: Cause, promised: f64) -> BankPageCase {
        let tool = Tool { name: "linerate".to_owned(), version: "0".to_owned() };
        let plan = Plan::Tcp(TcpPlan::default());
        let record = Record::from_plan(
            RecordId::from_parts(0, [0; 10]),
            tool,
            plan,
            WallTime::from_unix_nanos(0),
        );
        let reach = |mbit: f64| Reach { goodput_bps: mbit * 1e6, ..Reach::default() };
        let case = Case {
            recipe: "receive-buffer".to_owned(),
            expect: Label::Cause(Cause::ReceiveWindow),
            with: reach(10.0),
            without: Some(reach(40.0)),
            record: Some(Box::new(record)),
            ..Case::default()
        };
        let verdicts = [LimitVerdict {
            cause: Some(said),
            next: Some(NextLimit { bound: NextBound::PathLink, bps: promised * 1e6 }),
            ..LimitVerdict::from_outcome(None, Outcome::Limited)
        }];
        BankPageCase::from_judged_case(&case, &case.judged(&verdicts), &verdicts)
            .expect("it counts")
    }

    #[test]
    fn misses_and_broken_promises_are_marked_and_counted() {
        let [right, broken, missed] = [
            sample_case(Cause::ReceiveWindow, 45.0),
            sample_case(Cause::ReceiveWindow, 60.0),
            sample_case(Cause::Policer, 45.0),
        ];
        let page = cases_page(&[right, broken, missed]);
        assert!(page.sentence.starts_with("linerate names 2 of 3 planted causes right. 2 of 3"));
        let (html, text) = (page.html(), page.text(None));
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for (class, part) in [
            ("answer good", "Without the cause 40 Mbit/s; promised 45 Mbit/s."),
            ("answer doubtful", "* the promise was not kept."),
            ("answer bad", "* planted was: receive window."),
        ] {
            assert!(html.contains(class), "{class} is not in\n{html}");
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
    }
}
