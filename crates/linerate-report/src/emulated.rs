//! Emulated paths for people: what was asked, what they did, how their queues went.
//!
//! Left out: single packets; captures have those.

use linerate_core::record::{Direction, EmulatedPath, PathDirection, PathRun};

use crate::document::{Block, Document, Fact};
use crate::svg::{Axis, ChartSeries, LineChart};
use crate::{number, words};

/// The summary of a run.
pub fn document(run: &PathRun) -> Document {
    let path = &run.path;
    let how = format!(
        "{} datapath{}, MTU {}, seed {}, at most {:.1} MB of memory, ran {}{}",
        path.datapath,
        if run.real_time { " with real-time priority" } else { "" },
        path.mtu_bytes,
        path.seed,
        path.memory_bytes as f64 / 1e6,
        number::seconds(path.span_ns as f64),
        run.cpu_ns.map_or_else(String::new, |cpu| {
            let share = cpu as f64 / path.span_ns.max(1) as f64;
            format!(", {} of a CPU", number::percent(share))
        }),
    );
    let faults = path.faults.iter().map(|fault| format!("not as planned: {fault}"));
    Document {
        title: format!("path {}: {}", path.name, path.plan.outline()),
        head: vec![
            Block::Lines(vec![how]),
            Block::Facts(directions(path).collect()),
            Block::Lines(faults.collect()),
        ],
        ..Document::default()
    }
}

/// Facts of a record about its emulated paths.
pub(crate) fn path_facts(paths: &[EmulatedPath]) -> impl Iterator<Item = Fact> {
    paths.iter().flat_map(|path| {
        let (plan, datapath) = (path.plan.outline(), &path.datapath);
        let text = format!("{}: {plan}; {datapath}, seed {}", path.name, path.seed);
        std::iter::once(Fact::new("path", 6, text)).chain(directions(path))
    })
}

/// The schedule of a path: kept or not, with the time its machine was busy, waited for a CPU or was
/// stolen.
fn schedule(path: &EmulatedPath) -> String {
    let kept = match (path.timing_slips(), path.late) {
        (None, false) => "kept".to_owned(),
        (None, true) => "not kept: what was measured does not count".to_owned(),
        (Some(slips), false) => format!("{slips}: within the tolerance"),
        (Some(slips), true) => {
            format!("{slips}: more than is tolerated, what was measured does not count")
        }
    };
    let waited = path.run_queue_wait_ns.filter(|wait| *wait > 0);
    let waited =
        waited.map(|wait| format!("; waited {} ms for a CPU", number::time_in_ms(wait as f64)));
    let stolen = path.stolen_ratio.filter(|ratio| *ratio > 0.0);
    let stolen = stolen.map(|ratio| format!("; steal time {}", number::percent(ratio)));
    let busy = path.busy_ratio.filter(|ratio| *ratio > 0.5);
    let busy = busy.map(|ratio| format!("; at work {} of the time", number::percent(ratio)));
    kept + &busy.unwrap_or_default() + &waited.unwrap_or_default() + &stolen.unwrap_or_default()
}

/// Packets and delays of each direction, and whether the schedule was kept.
fn directions(path: &EmulatedPath) -> impl Iterator<Item = Fact> {
    let each = path.directions.iter();
    let each = each.map(|direction| (name(direction), direction_summary(direction, path.span_ns)));
    let facts = each.chain([("schedule", schedule(path))]);
    facts.map(|(label, text)| Fact::new(label, 8, text).indented())
}

fn name(direction: &PathDirection) -> &'static str {
    match (direction.direction, direction.backward) {
        (Some(Direction::Up), _) => "up",
        (Some(Direction::Down), _) => "down",
        (None, true) => "backward",
        (None, false) => "forward",
    }
}

/// `1.2 Mbit/s of IP, 1,000 of 1,010 packets, lost 10 (queue_full 10), queue at most 15 kB`.
fn direction_summary(direction: &PathDirection, span_ns: u64) -> String {
    let rate = direction.delivered_bytes as f64 * 8e9 / span_ns.max(1) as f64;
    let mut parts = vec![
        format!("{} of IP", number::rate_with_unit(rate)),
        format!(
            "{} of {} delivered",
            direction.delivered_packets,
            words::counted(direction.taken_packets, "packet")
        ),
    ];
    let causes = direction.lost.iter().map(|loss| format!("{} {}", loss.packets, loss.cause));
    let causes: Vec<String> = causes.collect();
    if !causes.is_empty() {
        let causes = causes.join(", ").replace('_', " ");
        parts.push(format!("lost {} ({causes})", direction.lost_packets()));
    }
    let counted = [
        ("copied", direction.copied_packets),
        ("corrupted", direction.corrupted_packets),
        ("marked", direction.marked_packets),
        ("answered with ICMP packet too big", direction.icmp_messages),
        ("dropped outside of the plan", direction.unplanned_packets),
    ];
    let counted = counted.into_iter().filter(|(_, count)| *count > 0);
    parts.extend(counted.map(|(what, count)| format!("{count} {what}")));
    if let Some(most) = direction.queue.bytes.iter().max() {
        parts.push(format!("queue at most {}", number::amount(*most)));
    }
    if let (Some(p99), Some(most)) = (direction.lateness_p99_ns, direction.lateness_max_ns) {
        let (p99, most) = (number::time_in_ms(p99 as f64), number::time_in_ms(most as f64));
        parts.push(format!("late by p99 {p99} ms, most {most} ms"));
    }
    parts.join(", ")
}

/// Queue length over time, both directions, as an SVG file.
pub fn queue_svg(path: &EmulatedPath) -> String {
    let series = path.directions.iter().enumerate().map(|(style, direction)| {
        let queue = &direction.queue;
        let time = |place: usize| place as f64 * queue.interval_ns as f64 / 1e9;
        let points = queue.bytes.iter().enumerate();
        let points = points.map(|(place, bytes)| (time(place), *bytes as f64)).collect();
        ChartSeries::new(name(direction), style, points).in_steps()
    });
    let title = format!("Queue of path {}", path.name);
    let description = "Bytes of IP packets that waited before the links, over time";
    let axes = ["time, s", "queue, bytes"].map(|label| Axis::linear(label, number::short_count));
    LineChart::new(title, description, axes, series.collect()).svg().file_with_style()
}

#[cfg(test)]
mod tests {
    use linerate_core::record::PathPlan;
    use linerate_core::record::{PathLoss, PathStops, QueueSeries};

    use super::*;

    fn sample_path() -> EmulatedPath {
        let plan = PathPlan { rate: Some("10 Mbit/s".to_owned()), ..PathPlan::default() };
        let mut queue = QueueSeries::new(10_000_000);
        queue.add_backlog(0, 1, 1500);
        queue.add_backlog(25_000_000, 10, 15_000);
        let forward = PathDirection {
            taken_packets: 1010,
            delivered_packets: 1000,
            delivered_bytes: 1_250_000,
            lost: vec![PathLoss { cause: "queue_full".to_owned(), packets: 10 }],
            lateness_p99_ns: Some(20_000),
            lateness_max_ns: Some(300_000),
            queue,
            ..PathDirection::default()
        };
        let backward =
            PathDirection { backward: true, direction: Some(Direction::Up), ..forward.clone() };
        EmulatedPath {
            name: "a eth0 - b eth0".to_owned(),
            datapath: "tun".to_owned(),
            plan,
            seed: 7,
            span_ns: 1_000_000_000,
            directions: vec![forward, backward],
            ..EmulatedPath::default()
        }
    }

    #[test]
    fn a_path_is_a_line_and_one_for_each_direction() {
        let head = vec![Block::Facts(path_facts(&[sample_path()]).collect())];
        let text = Document { title: "record".to_owned(), head, ..Document::default() }.text(None);
        let lines: Vec<&str> = text.lines().skip(1).collect();
        assert_eq!(lines[0], "  path    a eth0 - b eth0: 10 Mbit/s; tun, seed 7");
        // 1,250,000 bytes in a second.
        let forward = "    forward   10 Mbit/s of IP, 1000 of 1010 packets delivered, lost 10 \
                       (10 queue full), queue at most ";
        assert!(lines[1].starts_with(forward), "{text}");
        assert!(lines[1].ends_with("late by p99 0.0200 ms, most 0.300 ms"), "{text}");
        assert!(lines[2].starts_with("    up "), "{text}");
        assert_eq!(lines[3], "    schedule  kept");
    }

    #[test]
    fn a_path_that_left_its_schedule_says_how_and_whether_it_counts() {
        let stops = PathStops {
            count: 1,
            total_ns: 4_000_000,
            longest_ns: 4_000_000,
            share: 0.004,
            conversed_ns: 1_000_000_000,
        };
        let wait = Some(1_500_000);
        let path = EmulatedPath {
            stops,
            run_queue_wait_ns: wait,
            stolen_ratio: Some(0.031),
            ..sample_path()
        };
        let line = "stalled for 4.0 ms (0.40 %) at once: within the tolerance; waited 1.500 ms \
                    for a CPU; steal time 3.10 %";
        assert_eq!(schedule(&path), line);
        let late = EmulatedPath { late: true, ..path };
        assert!(schedule(&late).contains("does not count; waited"), "{}", schedule(&late));
    }

    #[test]
    fn the_queue_is_drawn_for_both_directions() {
        let svg = queue_svg(&sample_path());
        assert!(svg.starts_with("<svg ") && svg.contains(">forward<"), "{svg}");
        assert!(svg.contains("Queue of path a eth0 - b eth0"), "{svg}");
    }
}
