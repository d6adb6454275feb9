//! How the bytes of a TCP test were moved, and where its threads ran, in a few lines.

use std::collections::BTreeSet;

use linerate_core::record::{
    Contents, Direction, Flow, FlowEnd, MultipathTcp, Record, TcpPlan, Trial,
};

use super::streams::flows_in_direction;
use crate::{number, words};

/// The lines of one direction, without the indentation.
pub(super) fn direction_lines(
    record: &Record,
    plan: &TcpPlan,
    direction: Direction,
) -> Vec<String> {
    let flows: Vec<&Flow> = flows_in_direction(record, direction).collect();
    let senders: Vec<&FlowEnd> = flows.iter().filter_map(|flow| flow.sender.as_ref()).collect();
    let receivers: Vec<&FlowEnd> = flows.iter().filter_map(|flow| flow.receiver.as_ref()).collect();
    let mut lines = Vec::new();
    let ends: Vec<String> = [("sender", &senders), ("receiver", &receivers)]
        .into_iter()
        .filter_map(|(name, ends)| Some(format!("{name} {}", end_summary(ends)?)))
        .collect();
    if !ends.is_empty() {
        lines.push(format!("calls: {}", ends.join("; ")));
    }
    let first = words::each_direction(plan.test.directions).first() == Some(&direction);
    lines.extend(chosen(record, plan).filter(|_| first && !flows.is_empty()));
    lines.extend(verified(&flows));
    lines.extend(zero_copy(&senders));
    lines.extend(multipath(&senders, &receivers));
    lines
}

/// The calls of an end, what became of the bytes, and its processors.
fn end_summary(ends: &[&FlowEnd]) -> Option<String> {
    let calls: BTreeSet<&str> =
        ends.iter().map(|end| end.technique.as_str()).filter(|call| !call.is_empty()).collect();
    if calls.is_empty() {
        return None;
    }
    let contents: BTreeSet<&str> =
        ends.iter().filter_map(|end| end.contents).map(treatment).collect();
    let mut text = Vec::from_iter(calls).join(" and ");
    if !contents.is_empty() {
        text.push_str(&format!(" ({})", Vec::from_iter(contents).join(", ")));
    }
    let cpus: BTreeSet<u32> = ends.iter().flat_map(|end| end.cpus_seen.iter().copied()).collect();
    if !cpus.is_empty() {
        let pinned = ends.iter().all(|end| end.pinned_cpu.is_some());
        let noun = if cpus.len() == 1 { "CPU" } else { "CPUs" };
        let kept = if pinned { ", pinned" } else { "" };
        let cpus: Vec<String> = cpus.iter().map(u32::to_string).collect();
        text.push_str(&format!(" on {noun} {}{kept}", cpus.join(" ")));
    }
    Some(text)
}

const fn treatment(contents: Contents) -> &'static str {
    match contents {
        Contents::Copied => "copied",
        Contents::Untouched => "not copied",
        Contents::Checked => "every byte checked",
    }
}

/// The means of sending and receiving that the trials chose, and those that they were compared
/// with.
fn chosen(record: &Record, plan: &TcpPlan) -> Option<String> {
    if !plan.fast {
        return None;
    }
    let Some(chosen) = record.trials.iter().find(|trial| trial.chosen) else {
        return Some("chosen without trials: the round trip is too long for them".to_owned());
    };
    let named = |trial: &Trial| {
        let means = &trial.means;
        let rate = trial.goodput_bps.map_or_else(|| "failed".to_owned(), number::rate_with_unit);
        let (send, receive) = (means.send_with, means.receive_with);
        format!("{send} to {receive} on {}, {rate}", means.placement())
    };
    let plain = record.trials.first().filter(|first| !first.chosen);
    let beside = plain.map(|plain| format!("; plain: {}", named(plain)));
    let count = record.trials.len();
    Some(format!("chosen of {count} trials: {}{}", named(chosen), beside.unwrap_or_default()))
}

fn verified(flows: &[&Flow]) -> Option<String> {
    let found = flows
        .iter()
        .filter_map(|flow| Some((flow.flow, flow.receiver.as_ref().and_then(|end| end.verified)?)));
    let found: Vec<_> = found.collect();
    let bytes: u64 = found.iter().map(|(_, found)| found.bytes).sum();
    let wrong: u64 = found.iter().map(|(_, found)| found.wrong_bytes).sum();
    let first = found.iter().find_map(|(flow, found)| Some((flow, found.first_wrong_offset?)));
    let amount = number::amount(bytes);
    match first {
        _ if found.is_empty() => None,
        None => Some(format!("contents: {amount} checked, all bytes correct")),
        Some((flow, offset)) => Some(format!(
            "contents: {wrong} of {amount} WRONG, the first at offset {offset} of stream {flow}"
        )),
    }
}

fn zero_copy(senders: &[&FlowEnd]) -> Option<String> {
    let sends = senders.iter().filter_map(|end| end.zero_copy_sends);
    let sums = sends.map(|sends| (sends.completed, sends.copied));
    let (completed, copied) = sums.reduce(|one, other| (one.0 + other.0, one.1 + other.1))?;
    let sends = words::counted(completed, "send");
    Some(format!(
        "MSG_ZEROCOPY: {sends} completed, {copied} of them copied by the kernel after all"
    ))
}

fn multipath(senders: &[&FlowEnd], receivers: &[&FlowEnd]) -> Option<String> {
    let ends: Vec<&MultipathTcp> =
        senders.iter().chain(receivers).filter_map(|end| end.mptcp.as_ref()).collect();
    let plain = ends.iter().find(|mptcp| !mptcp.used);
    let more = ends.iter().filter_map(|mptcp| mptcp.subflows_more).max();
    match (ends.is_empty(), plain) {
        (true, _) => None,
        (false, Some(plain)) => {
            let reason = plain.reason.as_deref().unwrap_or("the kernel gives no reason");
            Some(format!("Multipath TCP: not in use, {reason}"))
        }
        (false, None) => {
            let subflows = more.map_or(1, |more| u64::from(more) + 1);
            let subflows = words::counted(subflows, "subflow");
            Some(format!("Multipath TCP: in use, {subflows} a stream at most"))
        }
    }
}

#[cfg(test)]
mod tests {
    use linerate_core::record::{
        Means, Plan, ReceiveWith, RecordId, SendWith, Tool, Verified, ZeroCopySends,
    };
    use linerate_core::time::WallTime;

    use super::*;

    fn record(sender: FlowEnd, receiver: FlowEnd) -> Record {
        let tool = Tool { name: "linerate".to_owned(), version: "test".to_owned() };
        let plan = Plan::Tcp(TcpPlan::default());
        let id = RecordId::from_parts(0, [0; 10]);
        let mut record = Record::from_plan(id, tool, plan, WallTime::from_unix_nanos(0));
        record.flows = vec![Flow {
            flow: 0,
            direction: Direction::Up,
            client_addr: String::new(),
            server_addr: String::new(),
            sender: Some(sender),
            receiver: Some(receiver),
            syn: None,
        }];
        record
    }

    fn end_of(technique: &str, contents: Contents, cpus: &[u32]) -> FlowEnd {
        FlowEnd {
            technique: technique.to_owned(),
            contents: Some(contents),
            cpus_seen: cpus.to_vec(),
            ..FlowEnd::default()
        }
    }

    #[test]
    fn calls_copies_and_cpus_are_one_line() {
        let sender = end_of("write", Contents::Copied, &[1, 0]);
        let receiver = end_of("read, low-water mark", Contents::Copied, &[1]);
        let lines = direction_lines(&record(sender, receiver), &TcpPlan::default(), Direction::Up);
        let line = "calls: sender write (copied) on CPUs 0 1; receiver read, low-water mark \
                    (copied) on CPU 1";
        assert_eq!(lines, [line]);
    }

    #[test]
    fn trials_are_printed_with_their_baseline() {
        let pinned = |technique| FlowEnd {
            pinned_cpu: Some(0),
            ..end_of(technique, Contents::Untouched, &[0])
        };
        let mut record = record(pinned("vmsplice"), pinned("trunc"));
        let trial = |means, rate: Option<f64>, chosen| Trial {
            means,
            span_ns: 100_000_000,
            goodput_bps: rate,
            cpu_s_per_gb: None,
            chosen,
            failure: None,
        };
        let best = Means {
            send_with: SendWith::Vmsplice,
            receive_with: ReceiveWith::Trunc,
            client_cpus: vec![0],
            server_cpus: vec![0],
            ..Means::default()
        };
        record.trials =
            vec![trial(Means::default(), Some(40e9), false), trial(best, Some(90e9), true)];
        let plan = TcpPlan { fast: true, ..TcpPlan::default() };
        let lines = direction_lines(&record, &plan, Direction::Up);
        let expected = [
            "calls: sender vmsplice (not copied) on CPU 0, pinned; receiver trunc (not copied) \
             on CPU 0, pinned",
            "chosen of 2 trials: vmsplice to trunc on one core, 90 Gbit/s; plain: write to read on \
             any core, 40 Gbit/s",
        ];
        assert_eq!(lines, expected);
        record.trials.clear();
        let lines = direction_lines(&record, &plan, Direction::Up);
        assert!(lines[1].contains("without trials"), "{lines:?}");
    }

    #[test]
    fn what_was_asked_beside_has_a_line_each() {
        let sends = Some(ZeroCopySends { completed: 12, copied: 12 });
        let mptcp = Some(MultipathTcp { used: true, subflows_more: Some(1), reason: None });
        let sender = FlowEnd {
            zero_copy_sends: sends,
            mptcp: mptcp.clone(),
            ..end_of("zerocopy", Contents::Copied, &[])
        };
        let verified = Verified { bytes: 5000, wrong_bytes: 2, first_wrong_offset: Some(7) };
        let receiver =
            FlowEnd { verified: Some(verified), mptcp, ..end_of("read", Contents::Checked, &[]) };
        let lines =
            direction_lines(&record(sender, receiver.clone()), &TcpPlan::default(), Direction::Up);
        assert_eq!(lines[1], "contents: 2 of 5.000 kB WRONG, the first at offset 7 of stream 0");
        assert!(lines[2].starts_with("MSG_ZEROCOPY: 12 sends completed, 12 of them copied"));
        assert_eq!(lines[3], "Multipath TCP: in use, 2 subflows a stream at most");
        let verified = Some(Verified { wrong_bytes: 0, first_wrong_offset: None, ..verified });
        let reason = Some("it is off".to_owned());
        let mptcp = Some(MultipathTcp { reason, ..MultipathTcp::default() });
        let receiver = FlowEnd { verified, mptcp, ..receiver };
        let lines = direction_lines(
            &record(FlowEnd::default(), receiver),
            &TcpPlan::default(),
            Direction::Up,
        );
        assert_eq!(lines[1], "contents: 5.000 kB checked, all bytes correct");
        assert_eq!(lines[2], "Multipath TCP: not in use, it is off");
    }
}
