//! The document of one benchmark of a device.

use linerate_core::record::{BenchPlan, BenchResult, Record};

use crate::device::suite::{Suite, plain_name};
use crate::device::{self, METRICS, single, words};
use crate::document::{Block, Document, ReportSection, Tile};
use crate::number::{self, or_dash};

/// The figures of the benchmark.
pub(super) fn document(record: &Record, plan: &BenchPlan) -> Document {
    let common =
        Document { title: title_line(plan), metrics: METRICS.to_vec(), ..Document::default() };
    let Some(result) = record.bench.as_deref() else { return common };
    let figures = device::figures(&Suite::new([record], plain_name)).into_iter();
    let figures = ReportSection::after_blank_line("", figures.map(Block::Figure)).leading();
    Document {
        head: vec![Block::Remarks(single::head_lines(plan, result))],
        tiles: goal_tiles(result),
        sections: [vec![figures], single::sections(plan, result)].concat(),
        ..common
    }
}

fn goal_tiles(result: &BenchResult) -> Vec<Tile> {
    let mut tiles = Vec::new();
    for goal in &result.goals {
        let fps = goal.throughput_fps();
        let share = fps.zip(result.theoretical_fps).map(|(fps, of)| number::percent(fps / of));
        let beside = match (share, goal.tester_limited) {
            (_, true) => "tester-limited".to_owned(),
            (Some(share), false) => format!("{share} of the theoretical rate"),
            (None, false) => String::new(),
        };
        let label = format!("frames/s, {}", goal.goal);
        tiles.push(Tile::new(or_dash(fps, words::frames), label, beside));
    }
    tiles.extend(result.latency.first().map(|found| {
        let p99 = format!("99 % below {}", words::duration(found.p99_ns));
        Tile::new(words::duration(found.p50_ns), "median latency", p99)
    }));
    tiles.extend(result.back_to_back.as_ref().map(|found| {
        Tile::new(single::burst_frames(found.mean_frames), "frames back to back", "")
    }));
    tiles
}

/// Ports, frames and protocol of a benchmark in a line.
fn title_line(plan: &BenchPlan) -> String {
    let ports: Vec<_> = plan.ports.iter().map(|port| port.interface.as_str()).collect();
    let frames = &plan.frames;
    let size = match &frames.mix {
        Some(mix) => format!("the mix {mix}"),
        None => format!("{} bytes", frames.size_bytes),
    };
    let mut title = format!(
        "bench of {}: {} frames of {size}, {}",
        ports.join(", "),
        words::protocol(frames.protocol),
        words::direction(plan.way)
    );
    if frames.flows > 1 {
        title.push_str(&format!(", {} flows", frames.flows));
    }
    if frames.burst > 1 {
        title.push_str(&format!(", {} back to back", frames.burst));
    }
    title
}
