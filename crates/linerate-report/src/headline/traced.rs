//! The answer of a trace: what is wrong with the path and where, else how long it is.

use linerate_core::record::{Finding, MetricId, Plan, Record, Stat, TraceResult};
use linerate_core::time::decimals_of_ms;

use crate::number;
use crate::record::trace::{is_trouble, sentence};
use crate::words::counted;

/// The troubles and the length of the path.
pub(super) fn result(record: &Record) -> String {
    let Some(trace) = record.trace.as_ref().filter(|trace| !trace.hops.is_empty()) else {
        return "nothing was found of the path".to_owned();
    };
    let troubles = trace.findings.iter().filter(|finding| is_trouble(finding));
    let mut parts: Vec<String> = troubles.map(sentence).collect();
    let back = trace.back.iter().flat_map(|back| &back.findings);
    let back = back.filter(|finding| is_trouble(finding));
    parts.extend(back.map(|finding| format!("on the way back {}", sentence(finding))));
    parts.push(length(record));
    parts.extend(length_back(trace));
    let lossy = |it: &Finding| matches!(it, Finding::Loss { .. } | Finding::FlowLoss { .. });
    let clean = !trace.findings.iter().any(lossy);
    let loaded = matches!(&record.plan, Plan::Trace(plan) if plan.load.is_some());
    let queued = trace.findings.iter().any(|finding| matches!(finding, Finding::Queue { .. }));
    if clean && trace.reached {
        parts.extend(lost_at_end(record));
    }
    if loaded && !queued && record.failure.is_none() {
        parts.push("no queue under load".to_owned());
    }
    parts.join(", ")
}

/// Hops and the round trip to the end, or how far the answers go.
fn length(record: &Record) -> String {
    let (Some(trace), Plan::Trace(plan)) = (&record.trace, &record.plan) else {
        return String::new();
    };
    let hops = counted(trace.hops.len() as u64, "hop");
    if !trace.reached {
        let last = trace.hops.last().and_then(|hop| Some((hop.ttl, hop.nodes.first()?)));
        return last.map_or(hops, |(ttl, node)| {
            format!(
                "{} not reached, the last answer is from hop {ttl} ({})",
                plan.host, node.address
            )
        });
    }
    let step = record.ends.first().and_then(|end| end.clock_tick_ns).unwrap_or(1.0);
    let rtt = record.summary_value(MetricId::Rtt, Stat::P50, None);
    let rtt = rtt.map(|ns| format!(", RTT {} ms", number::ms_of_clock(ns, decimals_of_ms(step))));
    format!("{hops} to {}{}", plan.host, rtt.unwrap_or_default())
}

/// Hops of the way back, where it was traced to this host.
fn length_back(trace: &TraceResult) -> Option<String> {
    let back = trace.back.as_ref().filter(|back| back.reached)?;
    Some(format!("{} back", counted(back.hops.len() as u64, "hop")))
}

fn lost_at_end(record: &Record) -> Option<String> {
    let sent = record.summary_value(MetricId::Sent, Stat::Value, None)?;
    let received = record.summary_value(MetricId::Received, Stat::Value, None)?;
    let limited = received < sent;
    (!limited).then(|| "no loss".to_owned())
}
