//! Sources of datagrams that may be clients of iperf 2 or ttcp: until one has gone on as a test
//! does, it has no place among the tests, no thread and no buffer, only a line in a small table.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use linerate_core::time::MonoTime;
use linerate_proto::iperf2::{UdpOpening, UdpTally};

use super::udp_layout::wall_us;

/// Sources at once; a newcomer takes the place of one of those of which least is known.
const CANDIDATES_MAX: usize = 1000;
/// A source that is silent for this long is dropped.
const SILENCE_MAX: Duration = Duration::from_secs(5);

/// The table of sources that may become clients.
#[derive(Debug, Default)]
pub(super) struct Candidates {
    sources: HashMap<SocketAddr, UdpCandidate>,
}

#[derive(Debug)]
struct UdpCandidate {
    /// The opening of its test; none where it runs a test and waits for its place.
    opening: Option<UdpOpening>,
    /// Its datagrams, which count once it is a client.
    tally: UdpTally,
    datagrams: u64,
    /// Since when it waits.
    since: Option<MonoTime>,
}

/// A source that runs a test.
#[derive(Debug)]
pub(super) struct ReadySource {
    /// The datagrams that came from it before its last one.
    pub(super) tally: UdpTally,
    /// Since when that is known.
    pub(super) since: MonoTime,
}

impl Candidates {
    /// Takes a datagram of a source that is no client; what came from it, once that is a test.
    pub(super) fn take_datagram(
        &mut self,
        source: SocketAddr,
        datagram: &[u8],
        now: MonoTime,
    ) -> Option<ReadySource> {
        let Some(candidate) = self.sources.get_mut(&source) else {
            let opening = UdpOpening::from_first_datagram(datagram)?;
            self.make_room();
            let mut tally = UdpTally::from_first_datagram(datagram, now);
            tally.count_datagram(datagram, now, wall_us(now));
            let opening = Some(opening);
            self.sources.insert(source, UdpCandidate { opening, tally, datagrams: 1, since: None });
            return None;
        };
        let is_test =
            candidate.opening.as_mut().is_none_or(|opening| opening.add_datagram(datagram));
        candidate.datagrams = candidate.datagrams.saturating_add(1);
        if is_test {
            // Its last datagram is taken by the client, which answers where that is the end.
            let UdpCandidate { tally, since, .. } = self.sources.remove(&source)?;
            return Some(ReadySource { tally, since: since.unwrap_or(now) });
        }
        candidate.tally.count_datagram(datagram, now, wall_us(now));
        None
    }

    /// Has a source wait for its place: it is asked for again with its next datagram.
    pub(super) fn put_back(&mut self, source: SocketAddr, ready: ReadySource) {
        self.make_room();
        let ReadySource { tally, since } = ready;
        // The newest of all are not those that make room first.
        let candidate =
            UdpCandidate { opening: None, tally, datagrams: u64::MAX, since: Some(since) };
        self.sources.insert(source, candidate);
    }

    /// Forgets who is silent.
    pub(super) fn forget_silent(&mut self, now: MonoTime) {
        self.sources.retain(|_, candidate| now.duration_since(candidate.tally.last) < SILENCE_MAX);
    }

    /// Where the table is full, a tenth of it goes at once: a forged source costs a look at ten
    /// others, not at all of them.
    fn make_room(&mut self) {
        if self.sources.len() < CANDIDATES_MAX {
            return;
        }
        let known = |candidate: &UdpCandidate| (candidate.datagrams, candidate.tally.last);
        let mut all: Vec<_> = self.sources.values().map(known).collect();
        let mut going = CANDIDATES_MAX / 10;
        let least = *all.select_nth_unstable(going).1;
        self.sources.retain(|_, candidate| {
            // Several may be known equally well.
            let goes = going > 0 && known(candidate) <= least;
            going -= usize::from(goes);
            !goes
        });
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use linerate_proto::iperf2::{UdpCounted, UdpReceiver};

    use super::*;

    fn datagram(number: u32) -> Vec<u8> {
        let words = [number, 1_700_000_000, number % 1_000_000, 0];
        words.iter().flat_map(|word| word.to_be_bytes()).collect()
    }

    #[test]
    fn a_million_forged_sources_take_less_than_a_megabyte_and_a_client_is_told_among_them() {
        let mut candidates = Candidates::default();
        let at = |us: u32| MonoTime::from_nanos(1_000_000_000 + u64::from(us) * 1_000);
        let client: SocketAddr = ([192, 0, 2, 1], 5001).into();
        let mut numbers = 1..;
        let mut tests = Vec::new();
        for us in 0..1_000_000 {
            let source = (Ipv4Addr::from(0x0A00_0000 + us), 5001).into();
            assert!(candidates.take_datagram(source, &datagram(1), at(us)).is_none());
            // One with a datagram for each 500 of others.
            if us % 500 == 0 && tests.is_empty() {
                let number = numbers.next().expect("endless");
                tests.extend(candidates.take_datagram(client, &datagram(number), at(us)));
            }
        }
        let Some(UdpCounted::Iperf(counts)) = tests.first().map(|ready| ready.tally.counted())
        else {
            panic!("no test of three datagrams")
        };
        // The third is the client's own.
        assert_eq!((counts.datagrams, counts.lost, numbers.start), (2, 0, 4));
        let entry = size_of::<(SocketAddr, UdpCandidate)>() + 1;
        // A table has room for 8/7 of its capacity (hashbrown); the counts of iperf 2 are beside.
        let table = candidates.sources.capacity() * 8 / 7 * entry;
        let bytes = table + candidates.sources.len() * size_of::<UdpReceiver>();
        assert!(bytes < 1_000_000, "{bytes}");
    }

    #[test]
    fn who_is_silent_for_five_seconds_begins_anew() {
        let mut candidates = Candidates::default();
        let source: SocketAddr = ([192, 0, 2, 1], 5001).into();
        let at = |seconds: u64| MonoTime::from_nanos(seconds * 1_000_000_000);
        assert!(candidates.take_datagram(source, &datagram(1), at(1)).is_none());
        assert!(candidates.take_datagram(source, &datagram(2), at(2)).is_none());
        candidates.forget_silent(at(6));
        candidates.forget_silent(at(7));
        assert!(
            candidates.take_datagram(source, &datagram(3), at(8)).is_none(),
            "the first one again"
        );
    }
}
