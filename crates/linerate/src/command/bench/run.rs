//! Runs the plans, one after another.

use linerate_core::record::{BenchPlan, Event, Record};
use linerate_engine::bench::{self, Here};

use super::flags::Args;
use super::{here, suite};
use crate::columns::spoken;
use crate::command::measure;
use crate::exit::Outcome;
use crate::live::BenchLines;
use crate::output;

/// Runs the command.
pub(super) fn run(args: &Args) -> Outcome {
    let suite = suite::of(args)?;
    here::check(&suite.plans, args.tester.force_interface)?;
    output::note(&opening(&suite.plans));
    if args.dry_run {
        return Ok(0);
    }
    let mut code = 0;
    for plan in &suite.plans {
        let record = measure(args, plan)?;
        code = code.max(record.exit_code());
        if record.exit_code() == 130 {
            return Ok(130);
        }
    }
    Ok(code)
}

fn measure(args: &Args, plan: &BenchPlan) -> Result<Record, anyhow::Error> {
    let mut lines = BenchLines::new(&args.output);
    measure::run(&args.output, |context| bench::run(plan, &Here, context), &mut |event: &Event| {
        lines.event(event)
    })
}

/// What is about to be measured, and how long it takes.
fn opening(plans: &[BenchPlan]) -> String {
    let Some(first) = plans.first() else { return String::new() };
    let ports: Vec<&str> = first.ports.iter().map(|port| port.interface.as_str()).collect();
    let tests: Vec<&str> = first.tests.iter().map(|test| test.name()).collect();
    let sizes: Vec<String> = plans.iter().map(|plan| plan.frames.size_bytes.to_string()).collect();
    let expected = plans.iter().map(BenchPlan::expected_ns).fold(0, u64::saturating_add);
    format!(
        "bench of {}: {} with {} frames of {} bytes, about {}",
        ports.join(", "),
        tests.join(", "),
        first.frames.protocol,
        sizes.join(", "),
        spoken(expected)
    )
}
