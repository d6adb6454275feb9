//! The sections of one record: what was found with frames of one length. Text, Markdown and pages
//! show the same.
//!
//! Percentages of a theoretical rate are only where a medium gives one.

use linerate_core::device::buffer::lacks_room_for_second_frame;
use linerate_core::record::{
    BackToBack, BenchPlan, BenchResult, BenchTrial, Caching, GoalFound, Overload, OverloadKind,
    OverloadRecovery, Repeated, Reset, Soak, Tester,
};
use linerate_core::stats::median;

use super::blocking::blocking;
use super::contract::contract;
use super::loads::loads_section;
use super::{limit, words};
use crate::document::{Block, ReportSection, ReportTable};
use crate::number::{self, or_dash};

/// Most kinds of reasons listed for trials that do not count.
const REASONS_MAX: usize = 12;

/// Lines for the head of a report: the tester, the medium's rate, the filters, each port with its
/// MTU, driver, speed and notes.
pub(crate) fn head_lines(plan: &BenchPlan, result: &BenchResult) -> Vec<String> {
    let mut out = Vec::new();
    match &result.tester {
        Some(tester) => out.extend(tester_lines(tester)),
        None => out.push("tester: not measured alone".to_owned()),
    }
    out.push(match result.theoretical_fps {
        Some(fps) => {
            let known = plan.known.as_ref().map_or_else(String::new, |known| {
                let link = known.link.as_ref().map(|link| format!("{link}, "));
                format!(" ({}as told by {})", link.unwrap_or_default(), known.source)
            });
            format!("medium: {} frames/s in theory{known}", words::frames(fps))
        }
        None => "medium: none (virtual links), so there is no theoretical rate; --link gives one"
            .to_owned(),
    });
    out.extend(plan.filters.map(|filters| format!("filters in the device: {filters}")));
    for port in &result.ports {
        let mut line = format!("port {}: MTU {}", port.interface, port.mtu_bytes);
        let known =
            [port.driver.clone(), port.speed_bps.map(|bps| number::rate_with_unit(bps as f64))];
        known.into_iter().flatten().for_each(|fact| line.push_str(&format!(", {fact}")));
        port.notes.iter().for_each(|note| line.push_str(&format!("; {note}")));
        out.push(line);
    }
    out
}

fn tester_lines(tester: &Tester) -> Vec<String> {
    let over = if tester.over_own_cable { "a cable of its own" } else { "the ports themselves" };
    let mut own = format!("tester alone: {} frames/s", words::frames(tester.frames_per_sec));
    let latency = tester.latency_p50_ns.map(|ns| format!(", median delay {}", words::duration(ns)));
    own.push_str(&format!("{} over {over}", latency.unwrap_or_default()));
    let error = tester.rate_error.map(|error| format!("; rate off by {error:.1e} of it"));
    let late = tester.late_share.map(|late| format!(", {} late", words::loss_ratio(late)));
    own.extend(error.into_iter().chain(late));
    let how = format!(
        "tester: sends by {}, counts by {}",
        words::generator(tester.generator),
        words::counter(tester.counter)
    );
    vec![how, own]
}

/// The sections of every test that was made, in the order of RFC 2544 §26, then those of later
/// RFCs.
pub(crate) fn sections(plan: &BenchPlan, result: &BenchResult) -> Vec<ReportSection> {
    let mut out = Vec::new();
    out.extend(throughput(plan, result));
    out.extend(flood_section(plan, result));
    out.extend(loads_section("Loss by load", &result.loss_curve, plan, result));
    out.extend(latency(result));
    out.extend(result.back_to_back.as_ref().map(back_to_back));
    out.extend(result.recovery.as_ref().map(recovery_section));
    out.extend(result.reset.as_ref().map(reset_section));
    let verdict = result.overloaded.as_ref().map(overload_verdict);
    out.extend(loads_section("Overload", &result.overload, plan, result).map(|mut section| {
        section.blocks.push(Block::Remarks(verdict.into_iter().collect()));
        section
    }));
    out.extend(further(plan, result));
    out.extend(invalid_trials(&result.trials));
    out
}

/// Sections made of remarks alone, without a table by frame length: address table, blocking, soak,
/// contract.
pub(crate) fn further(plan: &BenchPlan, result: &BenchResult) -> Vec<ReportSection> {
    let mut out = Vec::new();
    out.extend(result.caching.as_ref().map(address_table));
    out.extend(result.blocking.as_ref().map(|free| blocking(free, result.congestion.as_ref())));
    out.extend(result.soak.as_ref().map(soak_section));
    out.extend(result.contract.as_ref().map(|found| contract(plan, result, found)));
    out
}

/// Throughput with a row for each goal; `None` if no goal was searched for.
fn throughput(plan: &BenchPlan, result: &BenchResult) -> Option<ReportSection> {
    if result.goals.is_empty() {
        return None;
    }
    let mut head = vec!["goal", "throughput\nframes/s"];
    head.extend(result.theoretical_fps.map(|_| "of\ntheoretical"));
    head.extend(result.tester.as_ref().map(|_| "of tester's\nown"));
    head.extend(["lower\nbound", "upper\nbound", "trials", "time", "loss\nbelow"]);
    let mut table = ReportTable::new(head);
    for goal in &result.goals {
        let fps = goal.throughput_fps();
        let mark = if goal.tester_limited { "*" } else { "" };
        let share = |whole: f64| or_dash(fps, |fps| words::share_percent(fps / whole));
        let mut row = vec![goal.goal.clone(), format!("{}{mark}", or_dash(fps, words::frames))];
        row.extend(result.theoretical_fps.map(share));
        row.extend(result.tester.as_ref().map(|tester| share(tester.frames_per_sec)));
        row.extend([
            or_dash(goal.lower_fps, words::frames),
            or_dash(goal.upper_fps, words::frames),
            goal.trials.to_string(),
            number::seconds(goal.spent_ns as f64),
            or_dash(goal.loss_ratio_below, |ratio| format!("{ratio:.1e}")),
        ]);
        table.add_measured_row(row);
    }
    Some(ReportSection::from_tables("Throughput", vec![table], throughput_notes(plan, result)))
}

fn throughput_notes(plan: &BenchPlan, result: &BenchResult) -> Vec<String> {
    let mut notes = Vec::new();
    if words::senders(plan) > 1 {
        notes.push("rates are those of each sending port, all of them sending".to_owned());
    }
    if result.goals.iter().any(|goal| goal.tester_limited) {
        notes.push(
            "*: tester-limited, within 10 % of what the tester itself can do; the device may do \
             more"
                .to_owned(),
        );
    }
    if result.goals.iter().any(|goal| goal.loss_ratio_below.is_some()) {
        notes.push(
            "loss below: n frames without a loss bound its ratio by 3/n with 95 %".to_owned(),
        );
    }
    notes.extend(stalls_remark(result));
    notes.extend(result.goals.iter().filter_map(buffered_remark));
    notes.extend(result.goals.iter().filter_map(random_loss_remark));
    let has_no_rate = |goal: &&GoalFound| goal.throughput_fps().is_none();
    notes.extend(result.goals.iter().filter(has_no_rate).map(unreached_remark));
    notes
}

/// A remark on the frames that the device buffers before its first loss, which short trials count
/// as forwarded.
fn buffered_remark(goal: &GoalFound) -> Option<String> {
    let frames = goal.held_frames?;
    let (fps, lower) = goal.throughput_fps().zip(goal.lower_fps)?;
    if lacks_room_for_second_frame(frames, lower) {
        return Some(format!(
            "{}: the device has no room for a second frame: above {} frames/s it loses every other \
             one; below, from {} frames/s on, those that the tester's own times bring too near to \
             each other",
            goal.goal,
            words::frames(fps),
            words::frames(lower)
        ));
    }
    Some(format!(
        "{}: the device holds {frames:.0} frames before it loses one; what they make of these \
         trials is taken off",
        goal.goal
    ))
}

/// A remark where lost single frames at every load, not the forwarding rate, ended a goal's search.
fn random_loss_remark(goal: &GoalFound) -> Option<String> {
    let found = goal.scattered?;
    Some(format!(
        "{}: ended by single lost frames, {:.1e} of all (95 %: {:.1e} to {:.1e}) at every load up \
         to {} frames/s, and not by what the device can forward",
        goal.goal,
        found.loss_ratio,
        found.low,
        found.high,
        words::frames(found.up_to_fps)
    ))
}

/// A remark on stalls, short times in which the device forwards nothing: the strict rate as share
/// of the typical one, stalls per second.
fn stalls_remark(result: &BenchResult) -> Option<String> {
    let show = |value: f64| number::trimmed(&number::significant(value, 3)).to_owned();
    let often = result.stalls_per_sec.as_ref().map(|estimate| words::estimate_text(estimate, show));
    match (limit::stalls_part(result), often) {
        (Some((strict, typical)), often) => Some(format!(
            "strict is {} of typical: frames are lost below the typical load{}",
            number::percent(strict / typical),
            often.map_or_else(String::new, |often| format!(" {often} times per second"))
        )),
        (None, Some(often)) => {
            Some(format!("frames are lost below the typical load {often} times per second"))
        }
        (None, None) => None,
    }
}

fn unreached_remark(goal: &GoalFound) -> String {
    if let Some(reason) = &goal.unfinished {
        return format!("{}: no result: {reason}", goal.goal);
    }
    match goal.upper_fps {
        Some(upper) => format!(
            "{}: not reached at any load tried, the least {} frames/s",
            goal.goal,
            words::frames(upper)
        ),
        None => format!("{}: no load was decided", goal.goal),
    }
}

fn flood_section(plan: &BenchPlan, result: &BenchResult) -> Option<ReportSection> {
    let points = std::slice::from_ref(result.flood.as_ref()?);
    loads_section("Flood (all that the tester sends)", points, plan, result)
}

/// Share of the best forwarding rate that is left at the largest load, and whether it holds, sags
/// or collapses.
fn overload_verdict(found: &Overload) -> String {
    let kind = match found.kind {
        OverloadKind::Holds => "it holds",
        OverloadKind::Sags => "it sags",
        OverloadKind::Collapses => "it collapses (receive livelock)",
    };
    format!(
        "at the largest load, {} frames/s, {} of the best rate is left: {kind}",
        words::frames(found.largest_offered_fps),
        words::share_percent(found.kept)
    )
}

/// Latency with a row for each load, and below them a row of the tester alone.
fn latency(result: &BenchResult) -> Option<ReportSection> {
    let first = result.latency.first()?;
    let head = ["load\nframes/s", "min", "p50", "p90", "p99", "p99.9", "max", "PDV"];
    let mut table = ReportTable::new(head).dropping(&[3]);
    result.latency.iter().for_each(|found| table.add_measured_row(words::latency_row(found)));
    let own = result.tester.as_ref().and_then(|tester| tester.latency_p50_ns);
    if let Some(own) = own {
        let dash = || number::NONE.to_owned();
        let mut row = vec!["tester alone".to_owned(), dash(), words::micros(own)];
        row.extend((0..5).map(|_| dash()));
        table.add_measured_row(row);
    }
    let mut notes = vec![
        format!("\u{b5}s, every one of {} frames: {}", first.frames, words::latency(first.kind)),
        "the tester's own delay is in the device's and was not taken off".to_owned(),
    ];
    notes.extend(first.p50_range_ns.map(|(low, high)| {
        let [low, high] = [low, high].map(words::micros);
        format!("medians of the repetitions: {low} to {high} \u{b5}s")
    }));
    notes.extend(first.repeated.map(|each| {
        let median = |figure: Repeated| words::micros(figure.median_ns);
        let (typical, worst, pdv) = (median(each.typical), median(each.worst), median(each.pdv));
        let few =
            if each.is_complete { "" } else { ", of which RFC 8219 asks for 20 of 500 frames" };
        format!(
            "median of {} repetitions{few}: typical {typical}, worst case {worst}, PDV {pdv} \
             \u{b5}s (RFC 8219)",
            each.repeats
        )
    }));
    Some(ReportSection::from_tables("Latency", vec![table], notes))
}

/// Frames of a burst; a mean of several searches, so to one decimal.
pub(crate) fn burst_frames(frames: f64) -> String {
    number::trimmed(&format!("{frames:.1}")).to_owned()
}

fn back_to_back(found: &BackToBack) -> ReportSection {
    let head = ["bursts", "mean", "min", "max", "std dev", "searches"];
    let mut table = ReportTable::new(head);
    table.add_measured_row([
        "frames".to_owned(),
        burst_frames(found.mean_frames),
        found.min_frames.to_string(),
        found.max_frames.to_string(),
        burst_frames(found.stddev_frames),
        found.runs.len().to_string(),
    ]);
    let mut notes = Vec::new();
    if found.unbounded {
        notes.push("no burst that was tried lost a frame: there is no upper bound".to_owned());
    }
    let mut line = format!(
        "sent at {} frames/s: implied buffer time {}",
        words::frames(found.burst_fps),
        words::duration(found.implied_buffer_ns)
    );
    let corrected = found.corrected_buffer_ns.map(words::duration);
    line.extend(corrected.map(|time| format!(", corrected {time}")));
    line.extend(found.buffer_frames.map(|frames| format!(": {} frames", burst_frames(frames))));
    notes.push(format!("{line} (RFC 9004)"));
    ReportSection::from_tables("Back to back", vec![table], notes)
}

/// The median, smallest and largest of repeated times; one time alone is printed as it is.
pub(crate) fn times_text(times_ns: &[u64]) -> String {
    let times: Vec<f64> = times_ns.iter().map(|ns| *ns as f64).collect();
    let ends = times.iter().copied().reduce(f64::min).zip(times.iter().copied().reduce(f64::max));
    match (times.as_slice(), median(&times).zip(ends)) {
        (&[one], _) => words::duration(one),
        (_, Some((middle, (low, high)))) => format!(
            "median {} of {}, {} to {}",
            words::duration(middle),
            times.len(),
            words::duration(low),
            words::duration(high)
        ),
        (_, None) => number::NONE.to_owned(),
    }
}

fn recovery_section(found: &OverloadRecovery) -> ReportSection {
    let loads = format!(
        "from {} to {} frames/s",
        words::frames(found.overload_fps),
        words::frames(found.after_fps)
    );
    let mut notes = Vec::new();
    if !found.times_ns.is_empty() {
        notes.push(format!("{loads}: last loss after {}", times_text(&found.times_ns)));
    }
    if !found.not_recovered_ns.is_empty() {
        let least = times_text(&found.not_recovered_ns);
        notes.push(format!("{loads}: frames were lost to the end of the trial, after {least}"));
    }
    if found.without_overload > 0 {
        let count = found.without_overload;
        notes.push(format!("{loads}: nothing was lost in {count} trials, so no overload"));
    }
    ReportSection::from_tables("System recovery", vec![], notes)
}

fn reset_section(found: &Reset) -> ReportSection {
    let mut notes = vec![format!("restarted: {}", found.what)];
    for (how, each) in [("by frames lost", &found.by_loss_ns), ("by stamps", &found.by_stamps_ns)] {
        if !each.is_empty() {
            notes.push(format!("{how}: {}", times_text(each)));
        }
    }
    if let Some(most) = found.outages.iter().max().filter(|most| **most > 1) {
        notes.push(format!("up to {most} outages in a trial: it came back and went away again"));
    }
    if found.partial > 0 {
        let count = found.partial;
        notes.push(format!("part of the frames was forwarded meanwhile in {count} trials"));
    }
    ReportSection::from_tables("Reset", vec![], notes)
}

fn address_table(found: &Caching) -> ReportSection {
    let bound = if found.unbounded { " or more (the most that was tried)" } else { "" };
    let mut notes = vec![format!("{} addresses remembered at once{bound}", found.addresses)];
    let rate = found.learning_fps.map(words::frames);
    notes.extend(rate.map(|rate| format!("learned at up to {rate} new addresses/s")));
    ReportSection::from_tables("Address table", vec![], notes)
}

fn soak_section(found: &Soak) -> ReportSection {
    let note = format!(
        "{} at {} frames/s: loss {}, {} of {} frames in {} runs, the longest {}; {} errored \
         seconds",
        number::seconds(found.duration_ns as f64),
        words::frames(found.point.offered_fps),
        words::loss_ratio(found.point.loss_ratio),
        found.point.sent.saturating_sub(found.point.received),
        found.point.sent,
        found.loss_runs,
        found.longest_loss_run,
        found.errored_seconds
    );
    let mut notes = vec![note];
    notes.extend(
        found
            .loss_ratio_high
            .map(|high| format!("the loss ratio is below {} with 95 %", words::loss_ratio(high))),
    );
    notes.extend(found.worst.map(|worst| {
        format!(
            "the worst second, number {}, lost {}",
            worst.number,
            words::loss_ratio(worst.loss_ratio)
        )
    }));
    let disturbed = [("fell short in", found.short_seconds), ("disturbed", found.invalid_seconds)];
    for (what, count) in disturbed.into_iter().filter(|(_, count)| *count > 0) {
        notes.push(format!("the tester {what} {count} seconds"));
    }
    ReportSection::from_tables("Soak", vec![], notes)
}

/// The trials that do not count, one remark for each kind of reason with its count.
pub(crate) fn invalid_trials<'a>(
    trials: impl IntoIterator<Item = &'a BenchTrial>,
) -> Option<ReportSection> {
    let mut kinds: Vec<(&str, &str, u64)> = Vec::new();
    let mut all = 0_u64;
    for trial in trials {
        all += 1;
        let Some(why) = &trial.invalid else { continue };
        let kind = words::invalid_reason(why);
        match kinds.iter_mut().find(|(known, ..)| *known == kind) {
            Some((_, _, count)) => *count += 1,
            None => kinds.push((kind, why.detail(), 1)),
        }
    }
    let bad: u64 = kinds.iter().map(|(_, _, count)| count).sum();
    let notes: Vec<String> = kinds
        .iter()
        .take(REASONS_MAX)
        .map(|(kind, detail, count)| match count {
            1 => format!("1: {kind} ({detail})"),
            _ => format!("{count}: {kind} (the first: {detail})"),
        })
        .collect();
    let title = format!("{bad} of {all} trials do not count");
    (!notes.is_empty()).then(|| ReportSection::from_tables(title, vec![], notes))
}
