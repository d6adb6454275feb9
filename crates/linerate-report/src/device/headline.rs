//! What a reader takes away from the benchmarks of a run: large figures, a sentence.

use linerate_core::study::{PublishedRouter, Streams};

use super::bradner::share_1990;
use super::suite::{Case, Group, Size, Suite};
use super::words;
use crate::document::Tile;

/// Devices in large figures and in the sentence at most.
const DEVICES_MAX: usize = 4;

/// What a rate stands for.
#[derive(Clone, Copy)]
enum Of {
    Throughput,
    /// What came out of a flood, where no throughput was found: most of it may have been lost.
    Flood {
        /// Whether one was looked for.
        searched: bool,
    },
}

impl Of {
    const fn words(self) -> &'static str {
        match self {
            Self::Throughput => "",
            Self::Flood { searched: true } => " under flood (its rate without loss was not found)",
            Self::Flood { searched: false } => " under flood",
        }
    }
}

/// The shortest length of a group and the rate that stands for it, marked where the tester limited
/// it: typical, else without loss, else under flood.
fn shortest(group: &Group<'_>) -> Option<(Size, String, Of)> {
    let rate = |size: &Size| {
        let middle = |of: fn(&Case<'_>) -> Option<f64>| group.middle(size, group.bare(), of);
        let found =
            middle(|case| case.goal_fps("typical")).or_else(|| middle(|case| case.max_fps()));
        let searched = group.at(size, group.bare()).any(Case::is_searched);
        let flood = || Some((middle(|case| case.flood_fps())?, Of::Flood { searched }));
        found.map(|fps| (fps, Of::Throughput)).or_else(flood)
    };
    let shown = |size: &Size, (fps, of): (f64, Of)| match of {
        Of::Throughput => group.marked(size, group.bare(), words::frames(fps)),
        Of::Flood { .. } => words::frames(fps),
    };
    group.sizes().into_iter().find_map(|size| {
        let (fps, of) = rate(&size)?;
        let shown = shown(&size, (fps, of));
        Some((size, shown, of))
    })
}

/// A figure a device: rate, what of, and the best of the devices of 1990.
pub(crate) fn tiles(suite: &Suite<'_>, published: &[PublishedRouter]) -> Vec<Tile> {
    let tile = |group: &Group<'_>| {
        let (size, fps, of) = shortest(group)?;
        let length = super::suite::shown(&size);
        let label = format!("frames/s of {length} bytes{}, {}", of.words(), group.title());
        Some(Tile::new(fps, label, past(group, &size, published)))
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

/// The device; where several groups have it, also by what differs: `bridge (DECnet IV, single
/// stream)`.
fn named(suite: &Suite<'_>, group: &Group<'_>) -> String {
    let title = group.title();
    let several = suite.groups.iter().filter(|other| other.device == group.device).count() > 1;
    match title.split_once(": ") {
        Some((device, what)) if several => format!("{device} ({what})"),
        _ => group.device.clone(),
    }
}

/// One plain sentence; `None` without a rate.
pub(crate) fn sentence(suite: &Suite<'_>) -> Option<String> {
    let (size, ..) = suite.groups.iter().find_map(shortest)?;
    let each: Vec<String> = suite
        .groups
        .iter()
        .filter_map(|group| Some((group, shortest(group).filter(|(own, ..)| *own == size)?)))
        .take(DEVICES_MAX)
        .enumerate()
        .map(|(index, (group, (_, fps, of)))| {
            let noun = if index == 0 { " frames/s" } else { "" };
            format!("{} passes {fps}{noun}{}", named(suite, group), of.words())
        })
        .collect();
    let length = super::suite::shown(&size);
    let said = format!("With frames of {length} bytes {}.", crate::words::listed(&each));
    let why = if said.contains('*') { " *: limited by the tester, it may do more." } else { "" };
    Some(said + why)
}
