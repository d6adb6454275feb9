//! `--assert`: what a result has to keep to, and the exit code of one that does not.

use linerate_core::assertion::Assertion;
use linerate_core::record::Record;
use linerate_core::study::StudyPlan;

/// Exit code of a result that does not keep to an assertion.
const NOT_MET: u8 = 7;

/// The flag of commands that have one result.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct AssertFlags {
    /// Exit with 7 unless this holds: 'goodput >= 0.9 * ceiling and loaded_rtt.p95 < 50 ms';
    /// metrics are those of --json, with or without their unit; repeatable
    #[arg(long = "assert", value_name = "EXPRESSION")]
    assertions: Vec<Assertion>,
}

impl AssertFlags {
    /// Says of each assertion whether it is met, and gives the exit code; a command that failed
    /// keeps its own.
    pub(crate) fn judge_record(&self, record: &Record, code: u8, say: fn(&str)) -> u8 {
        let mut met = true;
        for assertion in &self.assertions {
            let judged = assertion.judge_record(record);
            say(&linerate_report::assertion::judged_line(assertion, &judged));
            met &= judged.met;
        }
        if code == 0 && !met { NOT_MET } else { code }
    }

    /// The same of a study's run: every result that has what an assertion names is judged. Those
    /// that do not meet it are listed, and the rest counted; a ping says nothing of a goodput.
    pub(crate) fn judge_run(&self, plan: &StudyPlan, records: &[Record], say: fn(&str)) -> u8 {
        let mut met = true;
        for assertion in &self.assertions {
            let judged = records.iter().map(|record| (record, assertion.judge_record(record)));
            let judged: Vec<_> = judged.filter(|(_, judged)| judged.missing.is_empty()).collect();
            for (record, judged) in judged.iter().filter(|(_, judged)| !judged.met) {
                let cell = record.cell.as_ref().map(|cell| plan.words_of(cell));
                let line = linerate_report::assertion::judged_line(assertion, judged);
                say(&format!("{}: {line}", cell.unwrap_or_default()));
            }
            let (kept, of) =
                (judged.iter().filter(|(_, assertion)| assertion.met).count(), judged.len());
            let word = if kept == of && of > 0 { "met" } else { "NOT met" };
            let all = records.len();
            let rest = match of {
                0 => format!("; none of the {all} results of the run has what it names"),
                of if of < all => format!("; {} results lack what it names", all - of),
                _ => String::new(),
            };
            say(&format!("assertion {word}: {assertion}: by {kept} of {of} results{rest}"));
            met &= kept == of && of > 0;
        }
        if met { 0 } else { NOT_MET }
    }
}

#[cfg(test)]
mod tests {
    use linerate_core::record::{MetricId, PingPlan, Plan, RecordId, Stat, Summary, Tool};
    use linerate_core::time::WallTime;

    use super::*;

    #[test]
    fn a_run_is_judged_by_the_results_that_have_the_metric() {
        let plan = linerate_engine::study::shipped("pren").expect("a built-in study");
        let plan: StudyPlan = linerate_core::tree::from_toml(plan.toml).expect("it is sound");
        let record = |n: u8, rtt_ns: Option<f64>| {
            let id = RecordId::from_parts(u64::from(n), [n; 10]);
            let at = WallTime::from_unix_nanos(0);
            let tool = Tool { name: String::new(), version: String::new() };
            let mut record = Record::from_plan(id, tool, Plan::Ping(PingPlan::default()), at);
            record
                .summary
                .extend(rtt_ns.map(|ns| Summary::from_value(MetricId::Rtt, Stat::P95, ns)));
            record
        };
        let code = |expression: &str, records: &[Record]| {
            let assertions = vec![expression.parse().expect("an assertion")];
            AssertFlags { assertions }.judge_run(&plan, records, |_| {})
        };
        let (fast, slow, other) = (record(1, Some(1e6)), record(2, Some(9e6)), record(3, None));
        let limit = "rtt.p95 < 5 ms";
        assert_eq!(code(limit, &[fast.clone(), other.clone()]), 0, "the other says nothing");
        assert_eq!(code(limit, &[fast, slow]), NOT_MET);
        assert_eq!(code(limit, &[other]), NOT_MET, "nothing was judged");
        assert_eq!(code(limit, &[]), NOT_MET);
    }
}
