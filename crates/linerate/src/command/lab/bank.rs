//! `linerate lab bank`: paths with planted causes are built and measured, and what a diagnosis
//! says of their records is scored.

mod run;
mod stored;

use std::path::PathBuf;
use std::time::Duration;

use linerate_core::explain::diagnose;
use linerate_core::lab::bank::{Case, CaseLabels, Family, Half, Scenario};
use linerate_core::record::{Failure, Fault, LimitVerdict};
use linerate_core::units::parse_span;
use linerate_report::{Align, Document, ReportTable, bank};

use crate::exit::Outcome;
use crate::output;

/// The families of recipes.
const FAMILIES: [(&str, &str); 9] = [
    ("innocent", include_str!("../../../../../studies/bank/innocent.toml")),
    ("window", include_str!("../../../../../studies/bank/window.toml")),
    ("sender", include_str!("../../../../../studies/bank/sender.toml")),
    ("host", include_str!("../../../../../studies/bank/host.toml")),
    ("capacity", include_str!("../../../../../studies/bank/capacity.toml")),
    ("loss", include_str!("../../../../../studies/bank/loss.toml")),
    ("order", include_str!("../../../../../studies/bank/order.toml")),
    ("packets", include_str!("../../../../../studies/bank/packets.toml")),
    ("competition", include_str!("../../../../../studies/bank/competition.toml")),
];

/// Flags of `linerate lab bank`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    action: BankCommand,
}

#[derive(Debug, clap::Subcommand)]
enum BankCommand {
    /// List the scenarios
    List(ScenarioChoice),
    /// Build and measure scenarios, and score what the diagnosis says
    Run(BankRunArgs),
    /// Score the diagnosis on stored cases, without measuring
    Replay(ReplayArgs),
}

/// Scenarios to run.
#[derive(Debug, clap::Args)]
struct ScenarioChoice {
    /// Only scenarios whose name, family or cause contains this text, or the one with this whole
    /// name; repeatable
    #[arg(long, value_name = "PATTERN")]
    only: Vec<String>,
    /// Only this half of the bank: development or other; a hash of name and parameters decides
    #[arg(long, value_name = "HALF")]
    half: Option<Half>,
    /// Seed of the parameters
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

#[derive(Debug, clap::Args)]
struct BankRunArgs {
    #[command(flatten)]
    choice: ScenarioChoice,
    /// Time of each TCP test
    #[arg(short = 't', long, value_name = "TIME", default_value = "6s", value_parser = parse_span)]
    time: Duration,
    /// Measure as linerate test does, in up to 35 s, instead of one TCP test
    #[arg(long)]
    whole_test: bool,
    /// With --whole-test: as linerate test --quick does, in up to 12 s
    #[arg(long, requires = "whole_test")]
    quick: bool,
    /// Measure each scenario this often, to see whether the verdicts agree
    #[arg(long, value_name = "N", default_value_t = 1)]
    repetitions: u32,
    /// Write a page: iperf3's line of each path, the named cause, the rate without it
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Store the cases in this directory, one file per family, for replay
    #[arg(long, value_name = "DIR")]
    save: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
struct ReplayArgs {
    /// Directory that --save wrote
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    #[command(flatten)]
    choice: ReplayChoice,
    /// Print the scores as Markdown, without a line for each case
    #[arg(long)]
    markdown: bool,
}

/// Stored cases to judge again.
#[derive(Debug, clap::Args)]
struct ReplayChoice {
    /// Only cases whose name, family or cause contains this text; repeatable
    #[arg(long, value_name = "PATTERN")]
    only: Vec<String>,
    /// Only this half of the bank: development or other
    #[arg(long, value_name = "HALF")]
    half: Option<Half>,
}

/// Runs `linerate lab bank` by its flags.
pub(super) fn run(args: Args) -> Outcome {
    match args.action {
        BankCommand::List(choice) => list_scenarios(&choice),
        BankCommand::Run(args) => run::run(&args),
        BankCommand::Replay(args) => replay(&args),
    }
}

fn list_scenarios(choice: &ScenarioChoice) -> Outcome {
    let scenarios = choice.scenarios()?;
    let columns =
        ["scenario", "family", "planted", "half", "drawn"].map(|name| (name, Align::Left));
    let rows = scenarios.iter().map(|scenario| {
        let half = match scenario.half {
            Half::Development => "development",
            Half::Other => "other",
        };
        let drawn = scenario.drawn.iter().map(|(word, value)| format!("{word} {value}"));
        let drawn = drawn.collect::<Vec<_>>().join(", ");
        let planted = scenario.expect.to_string();
        [scenario.name(), scenario.family.clone(), planted, half.to_owned(), drawn]
    });
    output::document(&Document::from_table(ReportTable::from_columns(columns).with_rows(rows)));
    Ok(0)
}

fn replay(args: &ReplayArgs) -> Outcome {
    let mut cases = stored::read(&args.directory)?;
    choose(&mut cases, &args.choice.only, args.choice.half, |case| {
        (case.half, [case.name(), case.family.clone(), case.expect.to_string()])
    });
    if cases.is_empty() {
        return Err(nothing("replay", "no stored case fits"));
    }
    let judged = cases.into_iter().map(diagnose_case).map(|(case, judged, _)| (case, judged));
    let judged: Vec<(Case, CaseLabels)> = judged.collect();
    let scores = bank::document(&judged);
    if args.markdown {
        output::print_text(&scores.markdown());
        return Ok(0);
    }
    judged.iter().for_each(|(case, judged)| output::print_line(&bank::case_line(case, judged)));
    output::document(&scores);
    Ok(0)
}

/// A case with the diagnosis of its record.
fn diagnose_case(case: Case) -> (Case, CaseLabels, Vec<LimitVerdict>) {
    let verdicts = case.record.as_deref().map(diagnose).unwrap_or_default();
    let judged = case.judged(&verdicts);
    (case, judged, verdicts)
}

impl ScenarioChoice {
    /// The scenarios that are asked for.
    fn scenarios(&self) -> Result<Vec<Scenario>, anyhow::Error> {
        let mut scenarios = Vec::new();
        for (name, text) in FAMILIES {
            let family = Family::from_toml(text)
                .map_err(|why| Failure::new(Fault::System, "read family", name, why))?;
            scenarios.extend(family.scenarios(name, self.seed));
        }
        choose(&mut scenarios, &self.only, self.half, |scenario| {
            let words = [scenario.name(), scenario.family.clone(), scenario.expect.to_string()];
            (scenario.half, words)
        });
        if scenarios.is_empty() {
            return Err(nothing("choose", "no scenario fits"));
        }
        Ok(scenarios)
    }
}

/// Keeps the chosen items, by half, name, family and cause. A pattern that is the whole name of one
/// is no part of another's.
fn choose<T>(
    all: &mut Vec<T>,
    only: &[String],
    wanted: Option<Half>,
    of: impl Fn(&T) -> (Half, [String; 3]),
) {
    let known: Vec<(Half, [String; 3])> = all.iter().map(of).collect();
    let is_name = |pattern: &String| known.iter().any(|(_, words)| words[0] == *pattern);
    let fits = |pattern: &String, words: &[String; 3]| match is_name(pattern) {
        true => words[0] == *pattern,
        false => words.iter().any(|word| word.contains(pattern.as_str())),
    };
    let mut chosen = known.iter().map(|(half, words)| {
        wanted.is_none_or(|wanted| wanted == *half)
            && (only.is_empty() || only.iter().any(|pattern| fits(pattern, words)))
    });
    all.retain(|_| chosen.next() == Some(true));
}

fn nothing(attempt: &str, reason: &str) -> anyhow::Error {
    let failure = Failure::new(Fault::Usage, attempt, "scenarios of the bank", reason);
    failure.advise("see linerate lab bank list").into()
}
