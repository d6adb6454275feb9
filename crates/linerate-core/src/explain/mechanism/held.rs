//! Whether a way holds packets back and lets them go together, as the grants of DOCSIS, radios that
//! sleep and interrupts that wait do.

use super::capacity::quantile;
use super::fates::{Fates, TimedProbe};
use crate::record::{DatagramTrain, Direction};

/// Arrivals of a train that show lumps.
const ARRIVALS_MIN: usize = 20;
/// Share of a train's packets that arrive at least when a device delays the train and drops none of
/// it.
const ARRIVED_MIN: f64 = 0.9;
/// Gaps that the sender left itself are shorter than this share of those at the receiver.
const SENT_EVENLY: f64 = 0.2;

/// Time between two lumps of arrivals that were sent evenly, in seconds: the gap that a moment
/// chosen by chance falls into, the median of all paced trains. None where none was sent evenly.
pub fn held_s(trains: &[DatagramTrain], way: Direction) -> Option<f64> {
    let fates = Fates::from_lone_trains(trains, way)?;
    let paced = fates.runs.iter().filter(|run| run.offered_bps.is_some());
    let mut gaps: Vec<f64> = paced.filter_map(|run| of_train(fates.probes_of(run))).collect();
    gaps.sort_unstable_by(f64::total_cmp);
    Some(quantile(&gaps, 0.5)? / 1e9)
}

fn of_train(probes: &[TimedProbe]) -> Option<f64> {
    let mut arrivals: Vec<f64> =
        probes.iter().filter_map(|probe| Some(probe.at + probe.delay?)).collect();
    arrivals.sort_unstable_by(f64::total_cmp);
    let enough = arrivals.len() >= ARRIVALS_MIN
        && arrivals.len() as f64 >= ARRIVED_MIN * probes.len() as f64;
    let sent: Vec<f64> = probes.iter().map(|probe| probe.at).collect();
    let gap = gap_at_a_moment(&arrivals)?;
    (enough && gap_at_a_moment(&sent)? < SENT_EVENLY * gap).then_some(gap)
}

/// Mean gap, each weighted by its own length.
fn gap_at_a_moment(times: &[f64]) -> Option<f64> {
    let gaps = || times.windows(2).map(|pair| pair[1] - pair[0]);
    let all: f64 = gaps().sum();
    (all > 0.0).then(|| gaps().map(|gap| gap * gap).sum::<f64>() / all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lumps_are_as_far_apart_as_they_are_held() {
        // One packet a millisecond, let go every 40 ms; and the same without.
        let train = |held_ms: u64| DatagramTrain {
            direction: Direction::Down,
            ip_bytes: 1500,
            offered_bps: Some(12e6),
            started_ns: 0,
            sent_ns: (0..800).map(|at| at * 1_000_000).collect(),
            arrived_ns: (0..800_u64)
                .map(|at| i64::try_from((at.div_ceil(held_ms) * held_ms + 5) * 1_000_000).ok())
                .collect(),
            socket_drops: Some(0),
        };
        let held = held_s(&[train(40)], Direction::Down).expect("it is held");
        assert!((held - 0.04).abs() < 1e-9, "{held}");
        assert_eq!(held_s(&[train(1)], Direction::Down), None);
        assert_eq!(held_s(&[train(40)], Direction::Up), None);
    }
}
