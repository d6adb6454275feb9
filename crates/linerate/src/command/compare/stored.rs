//! `linerate compare @-2 @-1`: results that were measured earlier.

use linerate_core::record::{ComparePlan, ComparisonCandidate, Failure, Fault, Plan, Record};
use linerate_engine::compare::of_stored;

use super::Args;
use crate::command::measure::{self, OutputFlags, this_tool};
use crate::exit::Outcome;
use crate::paths;

/// Compares and prints. The comparison can be made again while the results are there, so it is not
/// kept.
pub(super) fn run(args: &Args) -> Outcome {
    for (flag, given) in [("--lab", args.lab), ("--tcp", args.tcp), ("--udp", args.udp)] {
        if given {
            return Err(usage_failure(flag, "stored results are what they are")
                .advise("omit it; the results are compared by what they measured")
                .into());
        }
    }
    args.access.unused("stored results ask nobody")?;
    let store = args.output.store.as_deref();
    let mut records = Vec::new();
    for text in &args.candidates {
        let name = text.strip_prefix('@').ok_or_else(|| {
            usage_failure(text, "it is no stored result, and others are")
                .advise("@ID, @NAME and @-1 are; or measure all of them")
        })?;
        let name = if name.starts_with('-') { text } else { name };
        records.push(paths::find_result("compare", name, store, |store| store.get(name))?);
    }
    let plan = plan_comparison(&args.candidates, &records)?;
    let record = of_stored(this_tool(), plan, &records)?;
    let output = OutputFlags { no_save: true, ..args.output.clone() };
    Ok(measure::run(&output, |_| record, &mut |_| {})?.exit_code())
}

fn plan_comparison(names: &[String], records: &[Record]) -> Result<ComparePlan, Failure> {
    let is_ping = |record: &Record| match &record.plan {
        Plan::Ping(_) => Some(true),
        Plan::Tcp(_) | Plan::Udp(_) => Some(false),
        _ => None,
    };
    let first = records.first().and_then(is_ping);
    for (name, record) in names.iter().zip(records) {
        if is_ping(record).is_none() || is_ping(record) != first {
            let kinds = (record.plan.kind_name(), records[0].plan.kind_name());
            let reason = format!("a {} beside a {}", kinds.0, kinds.1);
            return Err(usage_failure(name, &reason)
                .advise("compare results of ping and stamp, or those of tcp and udp"));
        }
    }
    let candidates = names.iter().zip(records).map(|(name, record)| ComparisonCandidate {
        result: Some(record.id),
        ..ComparisonCandidate::new(name, record.plan.clone())
    });
    Ok(ComparePlan { candidates: candidates.collect(), rounds: 0, seed: 0 })
}

fn usage_failure(object: &str, reason: &str) -> Failure {
    Failure::new(Fault::Usage, "compare", object, reason)
}
