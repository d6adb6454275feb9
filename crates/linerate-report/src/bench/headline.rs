//! What a reader takes away from the benchmarks of a run: large figures, a sentence.

use linerate_core::study::{PublishedRouter, Streams};

use super::bradner::share_1990;
use super::suite::{Group, Size, Suite};
use super::words;

/// Devices in large figures and in the sentence at most.
const DEVICES_MAX: usize = 4;

/// The shortest length of a group and the rate that stands for it: typical, else without loss,
/// else under flood.
fn shortest(group: &Group<'_>) -> Option<(Size, f64)> {
    let rate = |size: &Size| {
        let middle =
            |of: fn(&super::suite::Case<'_>) -> Option<f64>| group.middle(size, group.bare(), of);
        middle(|case| case.goal_fps("typical"))
            .or_else(|| middle(|case| case.max_fps()))
            .or_else(|| middle(|case| case.flood_fps()))
    };
    group.sizes().into_iter().find_map(|size| rate(&size).map(|fps| (size, fps)))
}

/// A figure a device: rate, what of, and the best of the devices of 1990.
pub(crate) fn tiles(suite: &Suite<'_>, published: &[PublishedRouter]) -> Vec<[String; 3]> {
    let tile = |group: &Group<'_>| {
        let (size, fps) = shortest(group)?;
        let label = format!("frames/s of {} bytes, {}", super::suite::shown(&size), group.title());
        Some([words::frames(fps), label, past(group, &size, published)])
    };
    suite.groups.iter().filter_map(tile).take(DEVICES_MAX).collect()
}

/// The best that was printed for the same protocol and length, one stream.
fn past(group: &Group<'_>, size: &Size, published: &[PublishedRouter]) -> String {
    let same = |row: &&PublishedRouter| {
        Some(row.protocol.as_str()) == group.protocol_1990()
            && row.frame_bytes == size.0
            && size.1.is_none()
            && row.streams == Streams::Single
    };
    let best = published.iter().filter(same).max_by_key(|row| row.max_rate_fps);
    let said = best.and_then(|row| {
        let fps = row.max_rate_fps?;
        let share = words::share(share_1990(fps, row.frame_bytes));
        Some(format!("1990: {fps}, {share} of the theoretical rate, {}", row.device))
    });
    said.unwrap_or_default()
}

/// One plain sentence; `None` without a rate.
pub(crate) fn sentence(suite: &Suite<'_>) -> Option<String> {
    let (size, _) = suite.groups.iter().find_map(shortest)?;
    let each: Vec<String> = suite
        .groups
        .iter()
        .filter_map(|group| Some((group, shortest(group).filter(|(own, _)| *own == size)?.1)))
        .take(DEVICES_MAX)
        .enumerate()
        .map(|(index, (group, fps))| {
            let noun = if index == 0 { " frames a second" } else { "" };
            format!("{} passes {}{noun}", group.device, words::frames(fps))
        })
        .collect();
    let length = super::suite::shown(&size);
    Some(format!("With frames of {length} bytes {}.", crate::words::listed(&each)))
}
