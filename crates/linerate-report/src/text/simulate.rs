//! The final text of a simulated TCP test. It says first that it is a model's, in virtual time.

use linerate_core::record::{Direction, MetricId, Record, SimulatePlan, Stat, Status};

use super::{facts, own_limits, tail};
use crate::{ceiling, escape, number, simulate, words};

/// Header, what was simulated and what came of it, ceiling, caveats, failure, one plain sentence.
pub(super) fn summary(record: &Record, plan: &SimulatePlan, width: Option<usize>) -> String {
    let mut out = escape::line(&title(plan));
    out.push('\n');
    out.push_str(&facts(record));
    out.push_str(&own_limits(record));
    let text = simulate::text(&simulate::report(record, plan));
    for line in text.lines().filter(|line| !line.is_empty()) {
        out.push_str(&format!("  {line}\n"));
    }
    let measured = ceiling::measured(record, Direction::Up);
    for line in record.ceiling.iter().flat_map(|found| ceiling::lines(found, measured)) {
        out.push_str(&words::remark(&escape::line(&line), width));
    }
    out.push_str(&tail(record));
    out
}

/// The one line that says what was asked.
pub(crate) fn title(plan: &SimulatePlan) -> String {
    format!(
        "TCP simulated in virtual time over {}: {}, {}, {} with {}, seed {}",
        plan.place.as_deref().unwrap_or("a path"),
        words::counted(plan.streams.into(), "stream"),
        words::finish(plan.finish),
        plan.model().congestion_control.name(),
        plan.tcp.recovery.name(),
        plan.seed(),
    )
}

/// What the simulation says, in one plain sentence.
pub(super) fn sentence(record: &Record, plan: &SimulatePlan) -> String {
    let goodput = record.value(MetricId::Goodput, Stat::Value, Some(Direction::Up));
    let Some(goodput) = goodput else { return "Nothing was simulated.".to_owned() };
    let mut text = format!("The model carries {}", number::rate(goodput));
    let share = record.ceiling_of(Direction::Up).and_then(|ceiling| ceiling.share);
    if let Some(share) = share {
        text.push_str(&format!(": {} of what the path's framing allows", number::percent(share)));
    }
    let transfer = record.value(MetricId::Transfer, Stat::Value, Some(Direction::Up));
    if let Some(ns) = transfer {
        let bytes = plan.flow_bytes().unwrap_or(0).saturating_mul(plan.streams.into());
        let (amount, time) = (number::amount(bytes), number::seconds(ns));
        text.push_str(&format!("; {amount} take {time} of virtual time"));
    }
    if record.status != Status::Ok {
        text.push_str(", until it was cut short");
    }
    text.push('.');
    text
}
