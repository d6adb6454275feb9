//! Which pairs run at once: each pair in one round, and no two of a round with anything in common.
//!
//! Without anything shared this is the circle method (round robin; Kirkman 1847): one agent stands
//! still, the others go round, and n agents meet in n - 1 rounds, n where n is odd, which is the
//! least possible. Shared sites and uplinks are further things that a run occupies; then each pair
//! takes the first round in which all of them are free, the most occupied first.

/// Runs that occupy agents and what they share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Rounds {
    /// Source and destination of each run, by round.
    pub rounds: Vec<Vec<(u32, u32)>>,
    /// The least number of rounds that any order could have.
    pub least: usize,
}

/// The rounds of all pairs of some agents, in one or both ways. `occupies` gives what a run of two
/// of them occupies beside both, by numbers below `shared`.
pub(super) fn rounds(
    members: &[u32],
    both_ways: bool,
    shared: usize,
    occupies: &dyn Fn(u32, u32) -> Vec<usize>,
) -> Rounds {
    let laps = if both_ways { 2 } else { 1 };
    let circle = circle(members.len());
    let of = |(a, b): &(usize, usize)| (members[*a], members[*b]);
    let mut order: Vec<Vec<(u32, u32)>> =
        circle.iter().map(|round| round.iter().map(of).collect()).collect();
    if both_ways {
        let back = |round: &Vec<(u32, u32)>| round.iter().map(|(a, b)| (*b, *a)).collect();
        let second: Vec<_> = order.iter().map(back).collect();
        order.extend(second);
    }
    let mut loads = vec![0_usize; shared];
    for (from, to) in order.iter().flatten() {
        occupies(*from, *to).iter().for_each(|it| loads[*it] += 1);
    }
    let least = (laps * circle.len()).max(loads.iter().copied().max().unwrap_or(0));
    if loads.iter().all(|load| *load == 0) {
        return Rounds { rounds: order, least };
    }
    Rounds { rounds: fitted(&order.concat(), (members, shared), &loads, occupies), least }
}

/// Pairs of places by round, each pair once.
fn circle(count: usize) -> Vec<Vec<(usize, usize)>> {
    if count < 2 {
        return Vec::new();
    }
    // An odd count has one who waits in each round.
    let seats = count + count % 2;
    let moving = seats - 1;
    let round = |at: usize| {
        let first = (seats - 1, at);
        let others = (1..seats / 2).map(|i| ((at + i) % moving, (at + moving - i) % moving));
        let pairs = std::iter::once(first).chain(others);
        pairs.filter(|(a, b)| *a < count && *b < count).collect()
    };
    (0..moving).map(round).collect()
}

/// Each pair in the first round where all that it occupies is free.
fn fitted(
    pairs: &[(u32, u32)],
    (members, shared): (&[u32], usize),
    loads: &[usize],
    occupies: &dyn Fn(u32, u32) -> Vec<usize>,
) -> Vec<Vec<(u32, u32)>> {
    let agents = members.iter().copied().max().map_or(0, |most| most as usize + 1);
    let mut taken: Vec<Vec<u64>> = vec![Vec::new(); agents + shared];
    let mut order: Vec<(usize, usize)> = pairs
        .iter()
        .enumerate()
        .map(|(at, (from, to))| {
            let most = occupies(*from, *to).iter().map(|it| loads[*it]).max();
            (most.unwrap_or(0), at)
        })
        .collect();
    order.sort_by_key(|(load, at)| (std::cmp::Reverse(*load), *at));
    let mut rounds: Vec<Vec<(u32, u32)>> = Vec::new();
    for (_, at) in order {
        let (from, to) = pairs[at];
        let mut things = vec![from as usize, to as usize];
        things.extend(occupies(from, to).into_iter().map(|it| agents + it));
        let round = first_free(&things, &taken);
        for thing in things {
            let words = &mut taken[thing];
            if words.len() <= round / 64 {
                words.resize(round / 64 + 1, 0);
            }
            words[round / 64] |= 1 << (round % 64);
        }
        if rounds.len() <= round {
            rounds.resize(round + 1, Vec::new());
        }
        rounds[round].push((from, to));
    }
    rounds
}

fn first_free(things: &[usize], taken: &[Vec<u64>]) -> usize {
    let word = |at: usize| {
        let of = |thing: &usize| taken[*thing].get(at).copied().unwrap_or(0);
        things.iter().map(of).fold(0, |all, it| all | it)
    };
    let mut at = 0;
    while word(at) == u64::MAX {
        at += 1;
    }
    at * 64 + word(at).trailing_ones() as usize
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn check(rounds: &Rounds, count: u32, ways: usize) {
        let mut pairs = BTreeSet::new();
        for round in &rounds.rounds {
            let mut busy = BTreeSet::new();
            for (from, to) in round {
                assert!(busy.insert(*from) && busy.insert(*to), "{from} or {to} is busy twice");
                assert!(pairs.insert((*from, *to)), "{from} to {to} twice");
            }
        }
        let count = count as usize;
        assert_eq!(pairs.len(), count * (count - 1) / 2 * ways);
    }

    #[test]
    fn a_round_robin_has_the_least_number_of_rounds() {
        // n agents: n - 1 rounds, n where n is odd; 999 for 1,000 agents with 499,500 pairs.
        for (count, expected) in [(2, 1), (3, 3), (4, 3), (7, 7), (8, 7), (1000, 999)] {
            let members: Vec<u32> = (0..count).collect();
            let one = rounds(&members, false, 0, &|_, _| Vec::new());
            assert_eq!((one.rounds.len(), one.least), (expected, expected));
            check(&one, count, 1);
            let both = rounds(&members, true, 0, &|_, _| Vec::new());
            assert_eq!((both.rounds.len(), both.least), (2 * expected, 2 * expected));
            check(&both, count, 2);
        }
    }

    #[test]
    fn pairs_that_share_an_uplink_run_one_after_another() {
        // Agents 0, 1, 2 behind one uplink, 3, 4, 5 free: 9 of the 15 pairs use it.
        let members: Vec<u32> = (0..6).collect();
        let behind = |a: u32| a < 3;
        let uses = |a: u32, b: u32| if behind(a) == behind(b) { Vec::new() } else { vec![0] };
        let found = rounds(&members, false, 1, &uses);
        assert_eq!((found.rounds.len(), found.least), (9, 9));
        check(&found, 6, 1);
        for round in &found.rounds {
            assert!(round.iter().filter(|(a, b)| !uses(*a, *b).is_empty()).count() <= 1);
        }
    }
}
