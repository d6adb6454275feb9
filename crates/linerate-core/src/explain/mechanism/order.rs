//! Which packets came late, and which was the first that a train lost.

use super::fates::{Fates, TimedProbe};
use super::{FirstLost, Reordering};

/// The first loss of trains sent back to back, by size, the largest first.
pub(super) fn first_lost(fates: &Fates) -> Vec<FirstLost> {
    let of_size = |ip_bytes: u32| {
        let (mut trains, mut places) = (0, Vec::new());
        for run in fates.back_to_back(ip_bytes) {
            trains += 1;
            let lost = fates.probes_of(run).iter().position(|probe| probe.delay.is_none());
            places.extend(lost.map(|place| place as u64));
        }
        places.sort_unstable();
        let index = places.get(places.len() / 2).copied();
        FirstLost { ip_bytes, trains, with_loss: places.len() as u64, index }
    };
    fates.packet_sizes().into_iter().map(of_size).filter(|found| found.trains > 0).collect()
}

/// Packets that arrived after one that was sent later, with their extent (RFC 4737 §4.2.1).
pub(super) fn reordering(fates: &Fates) -> Reordering {
    let mut all = Reordering::default();
    for run in &fates.runs {
        add(&mut all, fates.probes_of(run));
    }
    all
}

fn add(all: &mut Reordering, probes: &[TimedProbe]) {
    let arrival = |probe: &TimedProbe| Some(probe.at + probe.delay?);
    let arrived =
        probes.iter().enumerate().filter_map(|(place, probe)| Some((arrival(probe)?, place)));
    let mut arrivals: Vec<(f64, usize)> = arrived.collect();
    // Packets with the same stamp keep their order: they are not known to be late.
    arrivals.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut highest: Vec<usize> = Vec::with_capacity(arrivals.len());
    for (position, &(at, place)) in arrivals.iter().enumerate() {
        let before = highest.last().copied().unwrap_or(0);
        if place < before {
            let overtaker = highest.partition_point(|&seen| seen <= place);
            all.reordered += 1;
            all.extent_packets = all.extent_packets.max((position - overtaker) as u64);
            all.extent_ns = all.extent_ns.max(at - arrivals[overtaker].0);
        }
        highest.push(before.max(place));
    }
    all.arrived += arrivals.len() as u64;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_standard_comes_out() {
        // RFC 4737 §4.2.4: 1 2 3 7 8 9 10 4 5 6 11 in order of arrival; 4, 5 and 6 are reordered,
        // with extents of 4, 5 and 6.
        let order = [1, 2, 3, 7, 8, 9, 10, 4, 5, 6, 11];
        let arrives = |number: usize| order.iter().position(|&sent| sent == number).expect("all");
        let probe = |number: usize| TimedProbe {
            at: 0.0,
            ip_bytes: 100.0,
            delay: Some(arrives(number) as f64),
            run: 0,
        };
        let probes: Vec<TimedProbe> = (1..=11).map(probe).collect();
        let mut found = Reordering::default();
        add(&mut found, &probes);
        assert_eq!((found.arrived, found.reordered, found.extent_packets), (11, 3, 6));
        assert!((found.extent_ns - 6.0).abs() < 1e-9);
    }
}
