//! Measures scenarios one after the other, each beside the path without its plant.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use linerate_core::lab::bank::{Case, CaseLabels, Reach, Scenario, Setting, TestKeys, Validity};
use linerate_core::record::{Failure, Plan, Record, RecordStatus};
use linerate_engine::lab::{Bank, enter_user_namespace_if_needed};
use linerate_report::bank::{self, BankPageCase};
use linerate_sys::stop::Stop;

use super::{BankRunArgs, diagnose_case, stored};
use crate::command::{measure, study};
use crate::exit::Outcome;
use crate::{output, paths};

/// Exit codes: the user stopped it; nothing could be measured.
const INTERRUPTED: u8 = 130;
const NOTHING_MEASURED: u8 = 3;
/// Longest span of `linerate test`, and of a quick one.
const WITHIN_NS: u64 = 35_000_000_000;
const QUICK_NS: u64 = 12_000_000_000;

/// Runs `linerate lab bank run` by its flags.
pub(super) fn run(args: &BankRunArgs) -> Outcome {
    let scenarios = args.choice.scenarios()?;
    args.save.as_deref().map_or(Ok(()), paths::make_folder)?;
    args.report.as_deref().map_or(Ok(()), paths::check_writable)?;
    // Before anything that could start a thread.
    enter_user_namespace_if_needed()?;
    let stop = Stop::on_signals()?;
    let mut session = BankSession {
        args,
        bank: Bank::new(measure::this_tool(), stop.clone(), Arc::new(study::serve_until_stop)),
        stop,
        without: HashMap::new(),
    };
    let runs = (1..=args.repetitions.max(1))
        .flat_map(|run| scenarios.iter().map(move |scenario| (scenario, run)));
    let runs: Vec<_> = runs.collect();
    let bar = progress_bar(runs.len());
    let mut judged: Vec<(Case, CaseLabels)> = Vec::new();
    let mut shown = Vec::new();
    for (scenario, run) in runs {
        bar.set_message(scenario.name());
        let Some(case) = session.measure_case(scenario, run) else { break };
        if let Some(directory) = args.save.as_deref().filter(|_| case.record.is_some()) {
            stored::add(directory, &case.clone().thinned())?;
        }
        let (case, said, verdicts) = diagnose_case(case);
        shown.extend(BankPageCase::from_judged_case(&case, &said, &verdicts));
        bar.suspend(|| output::print_line(&bank::case_line(&case, &said)));
        bar.inc(1);
        // The table needs the figures alone.
        judged.push((Case { record: None, ..case }, said));
    }
    bar.finish_and_clear();
    if !judged.is_empty() {
        output::document(&bank::document(&judged));
    }
    if let Some(file) = args.report.as_deref().filter(|_| !shown.is_empty()) {
        paths::write(file, &bank::cases_page(&shown).html())?;
    }
    let measured = |case: &Case| !matches!(case.validity, Validity::Failed(_));
    Ok(match (session.stop.is_requested(), judged.iter().any(|(case, _)| measured(case))) {
        (true, _) => INTERRUPTED,
        (_, false) => NOTHING_MEASURED,
        _ => 0,
    })
}

fn progress_bar(count: usize) -> ProgressBar {
    let length = u64::try_from(count).unwrap_or(u64::MAX);
    let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr());
    if let Ok(style) =
        ProgressStyle::with_template("[{bar:16}] {pos}/{len}  {eta} left; {wide_msg}")
    {
        bar.set_style(style.progress_chars("=> "));
    }
    bar
}

struct BankSession<'a> {
    args: &'a BankRunArgs,
    bank: Bank,
    stop: Stop,
    /// Results of paths without a plant, by their setting: many scenarios share one.
    without: HashMap<String, Reach>,
}

impl BankSession<'_> {
    /// A scenario, measured again once where this machine disturbed it; none when it was stopped.
    fn measure_case(&mut self, scenario: &Scenario, run: u32) -> Option<Case> {
        let mut case = self.measured(scenario, run)?;
        if matches!(case.validity, Validity::Disturbed(_)) {
            case = self.measured(scenario, run)?;
        }
        if scenario.has_counterfactual && case.record.is_some() {
            match self.reach_without(scenario)? {
                Ok(reach) => case.compare(reach),
                Err(failure) => {
                    case.validity = Validity::Failed(format!("without the plant: {failure}"));
                }
            }
        }
        Some(case)
    }

    fn measured(&self, scenario: &Scenario, run: u32) -> Option<Case> {
        let mut case = scenario.unmeasured_case(run);
        match self.measure(&scenario.planted, &scenario.congestion, self.args.whole_test)? {
            Ok(record) => case.add_planted_run(record),
            Err(failure) => case.validity = Validity::Failed(failure.to_string()),
        }
        Some(case)
    }

    /// Rate and delay of the path without the plant.
    fn reach_without(&mut self, scenario: &Scenario) -> Option<Result<Reach, Failure>> {
        let text = linerate_core::tree::to_json(&scenario.without).unwrap_or_default();
        let key = format!("{} {text}", scenario.congestion);
        if let Some(reach) = self.without.get(&key) {
            return Some(Ok(*reach));
        }
        let mut measured = self.measure(&scenario.without, &scenario.congestion, false)?;
        let late = |record: &Record| record.paths.iter().any(|path| path.late);
        if measured.as_ref().is_ok_and(late) {
            measured = self.measure(&scenario.without, &scenario.congestion, false)?;
        }
        Some(measured.map(|record| {
            let reach = Reach::from_record(&record);
            // One that failed is measured again for the next.
            if record.status == RecordStatus::Ok && !late(&record) {
                self.without.insert(key, reach);
            }
            reach
        }))
    }

    /// One measurement; none when it was stopped.
    fn measure(
        &self,
        setting: &Setting,
        congestion: &str,
        whole_test: bool,
    ) -> Option<Result<Record, Failure>> {
        let time_ns = span_nanos(self.args.time);
        let within_ns = if self.args.quick { QUICK_NS } else { WITHIN_NS };
        // A whole test chooses its own streams, windows and times: what asks for others is one test
        // of TCP, as it is for a user.
        let chosen = setting.test == TestKeys::default();
        let measured = self.bank.measure(setting, |host| {
            if whole_test && chosen {
                Plan::Test(setting.test_plan(host, congestion, within_ns))
            } else {
                Plan::Tcp(setting.tcp_plan(host, congestion, time_ns))
            }
        });
        (!self.stop.is_requested()).then_some(measured)
    }
}

fn span_nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}
