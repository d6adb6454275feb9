//! Headline of a run of benchmarks: large figures and one sentence.

use linerate_core::study::{PublishedRouter, Streams};

use super::bradner::share_1990;
use super::suite::{BenchCase, DeviceGroup, FrameSize, Suite};
use super::words;
use crate::document::Tile;

/// Most devices shown as large figures and in the sentence.
const DEVICES_MAX: usize = 4;

/// The measurement that a device's headline rate comes from.
#[derive(Clone, Copy)]
enum HeadlineRate {
    Throughput,
    /// Rate forwarded under flood, where no throughput was found; most frames may have been lost.
    Flood {
        /// True if a throughput was searched for.
        searched: bool,
    },
}

impl HeadlineRate {
    const fn label_suffix(self) -> &'static str {
        match self {
            Self::Throughput => "",
            Self::Flood { searched: true } => " under flood (its rate without loss was not found)",
            Self::Flood { searched: false } => " under flood",
        }
    }
}

/// The shortest frame length of a group with its printed rate, marked where the tester limited the
/// search. The rate is the typical one, else the one without loss, else the one under flood.
fn shortest_length(group: &DeviceGroup<'_>) -> Option<(FrameSize, String, HeadlineRate)> {
    let rate = |size: &FrameSize| {
        let middle = |figure: fn(&BenchCase<'_>) -> Option<f64>| {
            group.median_figure(size, group.fewest_filters(), figure)
        };
        let found =
            middle(|case| case.goal_fps("typical")).or_else(|| middle(|case| case.max_fps()));
        let searched =
            group.matching_cases(size, group.fewest_filters()).any(BenchCase::is_searched);
        let flood = || Some((middle(|case| case.flood_fps())?, HeadlineRate::Flood { searched }));
        found.map(|fps| (fps, HeadlineRate::Throughput)).or_else(flood)
    };
    group.frame_sizes().into_iter().find_map(|size| {
        let (fps, rate) = rate(&size)?;
        let printed = match rate {
            HeadlineRate::Throughput => {
                group.with_tester_mark(&size, group.fewest_filters(), words::frames(fps))
            }
            HeadlineRate::Flood { .. } => words::frames(fps),
        };
        Some((size, printed, rate))
    })
}

/// A large figure for each device: its rate, the frame length, and the best device of 1990.
pub(crate) fn device_tiles(suite: &Suite<'_>, published: &[PublishedRouter]) -> Vec<Tile> {
    let tile = |group: &DeviceGroup<'_>| {
        let (size, fps, rate) = shortest_length(group)?;
        let length = super::suite::size_text(&size);
        let label =
            format!("frames/s of {length} bytes{}, {}", rate.label_suffix(), group.heading_text());
        Some(Tile::new(fps, label, best_1990(group, &size, published)))
    };
    suite.groups.iter().filter_map(tile).take(DEVICES_MAX).collect()
}

/// The best rate that Bradner printed for the same protocol and frame length with a single stream.
fn best_1990(group: &DeviceGroup<'_>, size: &FrameSize, published: &[PublishedRouter]) -> String {
    let same = |row: &&PublishedRouter| {
        Some(row.protocol.as_str()) == group.protocol_1990()
            && row.frame_bytes == size.bytes
            && size.mix.is_none()
            && row.streams == Streams::Single
    };
    let best = published.iter().filter(same).max_by_key(|row| row.max_rate_fps);
    let said = best.and_then(|row| {
        let fps = row.max_rate_fps?;
        let share = words::share_percent(share_1990(fps, row.frame_bytes));
        Some(format!("1990: {fps}, {share} of the theoretical rate, {}", row.device))
    });
    said.unwrap_or_default()
}

/// The device's name; where several groups have the device, with the frames and streams too:
/// `bridge (DECnet IV, single stream)`.
fn device_in_sentence(suite: &Suite<'_>, group: &DeviceGroup<'_>) -> String {
    let title = group.heading_text();
    let several = suite.groups.iter().filter(|other| other.device == group.device).count() > 1;
    match title.split_once(": ") {
        Some((device, what)) if several => format!("{device} ({what})"),
        _ => group.device.clone(),
    }
}

/// One sentence with each device's rate at the shortest frame length; `None` without a rate.
pub(crate) fn sentence(suite: &Suite<'_>) -> Option<String> {
    let (size, ..) = suite.groups.iter().find_map(shortest_length)?;
    let each: Vec<String> = suite
        .groups
        .iter()
        .filter_map(|group| Some((group, shortest_length(group).filter(|(own, ..)| *own == size)?)))
        .take(DEVICES_MAX)
        .enumerate()
        .map(|(index, (group, (_, fps, rate)))| {
            let noun = if index == 0 { " frames/s" } else { "" };
            format!(
                "{} passes {fps}{noun}{}",
                device_in_sentence(suite, group),
                rate.label_suffix()
            )
        })
        .collect();
    let length = super::suite::size_text(&size);
    let said = format!("With frames of {length} bytes {}.", crate::words::listed(&each));
    let why = if said.contains('*') { " *: limited by the tester, it may do more." } else { "" };
    Some(said + why)
}
