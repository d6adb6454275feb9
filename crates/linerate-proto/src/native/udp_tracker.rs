//! Counts lost, duplicate and reordered datagrams by their sequence numbers, in the order of
//! arrival.
//!
//! Memory is bounded: arrivals are remembered for the last [`WINDOW`] numbers. An older datagram
//! counts neither as received nor as duplicate; it stays among the lost, with a separate count.
//! Left out: the extent of reordering.
//!
//! Sources: RFC 4737 §3.3 and §4.1 (NextExp; reordered is what is below it), RFC 7680 (loss),
//! RFC 5560 (duplicates).

use linerate_core::record::DatagramTally;

/// Count of the highest numbers whose arrivals are remembered.
pub const WINDOW: u64 = 1 << 20;

/// Largest credible jump of the number: more than a minute at 50 million datagrams a second.
const AHEAD_MAX: u64 = 1 << 32;

const WORD: u64 = 64;

/// Order of a datagram in its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UdpArrivalOrder {
    /// The expected number, or a higher one.
    Ahead,
    /// Reordered: a lower number than one that arrived before (RFC 4737).
    Behind,
    /// A number that has already arrived.
    Duplicate,
    /// A number below the remembered ones.
    TooOld,
    /// A number too far ahead to be of this stream; not counted.
    Implausible,
}

/// Counters of one stream's datagrams.
#[derive(Clone, Debug)]
pub struct UdpTracker {
    /// One bit for each of the last [`WINDOW`] numbers, indexed by the number modulo [`WINDOW`].
    came: Vec<u64>,
    /// Highest number that arrived, plus 1: NextExp of RFC 4737.
    next: u64,
    omit_ns: u64,
    /// Lowest number that arrived of those sent after the omitted span; `u64::MAX` before any.
    first_counted: u64,
    /// Counters of the datagrams sent within the omitted span, and after it.
    tallies: [DatagramTally; 2],
    /// The kernel's count of socket drops at the last arrival.
    drops: u32,
    /// A number further ahead than this is not believed.
    ahead_max: u64,
}

impl UdpTracker {
    /// A tracker of a stream whose datagrams sent before `omit_ns` are omitted.
    pub fn new(omit_ns: u64) -> Self {
        let words = usize::try_from(WINDOW / WORD).expect("16,384 words");
        let tallies = [DatagramTally::default(); 2];
        let (first_counted, ahead_max) = (u64::MAX, AHEAD_MAX);
        Self { came: vec![0; words], next: 0, omit_ns, first_counted, tallies, drops: 0, ahead_max }
    }

    /// Believes numbers from now on that are at most so far ahead: the datagrams that can have been
    /// sent since the last arrival.
    pub fn allow_ahead(&mut self, datagrams: u64) {
        self.ahead_max = datagrams.min(AHEAD_MAX);
    }

    /// Counts a datagram that was sent at `stamp_ns`.
    #[inline]
    pub fn count_datagram(&mut self, number: u64, stamp_ns: u64) -> UdpArrivalOrder {
        if number != self.next {
            return self.count_out_of_order(number, stamp_ns);
        }
        self.tally_of(number, stamp_ns).received += 1;
        mark_received(&mut self.came, number);
        self.next += 1;
        UdpArrivalOrder::Ahead
    }

    /// Counters of the span in which a datagram was sent: omitted or measured.
    #[inline]
    fn tally_of(&mut self, number: u64, stamp_ns: u64) -> &mut DatagramTally {
        let counts = stamp_ns >= self.omit_ns;
        if counts {
            self.first_counted = self.first_counted.min(number);
        }
        &mut self.tallies[usize::from(counts)]
    }

    /// Number of the `all` datagrams sent that were sent after the omitted span, from the
    /// timestamps of those that arrived: for senders whose own count starts at another time than
    /// their timestamps. `None` where none of them arrived.
    pub const fn sent_after_omitted(&self, all: u64) -> Option<u64> {
        match (self.omit_ns, self.first_counted) {
            (0, _) => Some(all),
            (_, u64::MAX) => None,
            (_, first) => Some(all.saturating_sub(first)),
        }
    }

    /// Counts `count` datagrams with consecutive numbers from `first` on, all sent at
    /// `stamp_ns`, if the first is the expected one; otherwise returns false and counts none. The
    /// result is the same as of [`Self::count_datagram`] for each.
    #[inline]
    pub fn count_run(&mut self, first: u64, count: u64, stamp_ns: u64) -> bool {
        if first != self.next || first.checked_add(count).is_none_or(|end| end == u64::MAX) {
            return false;
        }
        self.tally_of(first, stamp_ns).received += count;
        let mut at = first;
        while at < first + count {
            let bits = (WORD - at % WORD).min(first + count - at);
            let ones = if bits == WORD { u64::MAX } else { (1 << bits) - 1 };
            self.came[word_index(at)] |= ones << (at % WORD);
            at += bits;
        }
        self.next = first + count;
        true
    }

    #[cold]
    fn count_out_of_order(&mut self, number: u64, stamp_ns: u64) -> UdpArrivalOrder {
        if let Some(gap) = number.checked_sub(self.next) {
            if !self.is_plausible(number) {
                return UdpArrivalOrder::Implausible;
            }
            self.clear_gap(number, gap);
            self.tally_of(number, stamp_ns).received += 1;
            mark_received(&mut self.came, number);
            self.next = number + 1;
            return UdpArrivalOrder::Ahead;
        }
        if self.next - number > WINDOW {
            self.tally_of(number, stamp_ns).too_old += 1;
            return UdpArrivalOrder::TooOld;
        }
        if is_set(&self.came, number) {
            self.tally_of(number, stamp_ns).duplicates += 1;
            return UdpArrivalOrder::Duplicate;
        }
        let tally = self.tally_of(number, stamp_ns);
        tally.received += 1;
        tally.reordered += 1;
        mark_received(&mut self.came, number);
        UdpArrivalOrder::Behind
    }

    /// True unless a number is too far ahead to be of this stream.
    pub const fn is_plausible(&self, number: u64) -> bool {
        number.saturating_sub(self.next) <= self.ahead_max && number != u64::MAX
    }

    /// Clears the bits of the numbers from `next` up to `number`, which still hold the arrivals of
    /// older numbers.
    fn clear_gap(&mut self, number: u64, gap: u64) {
        if gap >= WINDOW {
            self.came.fill(0);
            return;
        }
        let mut at = self.next;
        while at < number {
            if at.is_multiple_of(WORD) && number - at >= WORD {
                self.came[word_index(at)] = 0;
                at += WORD;
            } else {
                self.came[word_index(at)] &= !bit_mask(at);
                at += 1;
            }
        }
    }

    /// Notes the kernel's count of socket drops when the datagram `number` was queued, before that
    /// datagram is counted. Missing numbers below it count as dropped at this host, at most
    /// `joined_max` datagrams for each drop (with GRO). The count may wrap.
    pub fn note_drops(&mut self, drops: u32, number: u64, stamp_ns: u64, joined_max: u64) {
        let grown = drops.wrapping_sub(self.drops);
        self.drops = drops;
        let gap = number.saturating_sub(self.next);
        if grown > 0 && gap <= AHEAD_MAX {
            let here = gap.min(u64::from(grown).saturating_mul(joined_max));
            self.tallies[usize::from(stamp_ns >= self.omit_ns)].lost_here += here;
        }
    }

    /// Highest number that arrived, plus 1.
    pub const fn next_expected(&self) -> u64 {
        self.next
    }

    /// Number of datagrams that arrived, without duplicates.
    pub const fn received(&self) -> u64 {
        self.tallies[0].received + self.tallies[1].received
    }

    /// Counters of all datagrams, and of those sent after the omitted span. `sent` is the sender's
    /// count of both. Datagrams missing after the last arrival count as dropped at this host, up to
    /// the kernel's last count of `drops`.
    pub fn tallies(
        &self,
        sent: Option<(u64, u64)>,
        drops: Option<u32>,
        joined_max: u64,
    ) -> (DatagramTally, DatagramTally) {
        let [before, mut measured] = self.tallies;
        let sent_all = sent.map(|(all, _)| all);
        let last = drops.map_or(0, |drops| u64::from(drops.wrapping_sub(self.drops)));
        let tail = sent_all.unwrap_or(0).saturating_sub(self.next);
        measured.lost_here += tail.min(last.saturating_mul(joined_max));
        measured.sent = sent.map(|(_, measured)| measured);
        let all = sum(&before, &measured);
        let all = with_lost(DatagramTally { sent: sent_all, ..all }, self.next);
        // Without the sender's count the lost cannot be divided between the spans.
        let seen = all.lost + measured.received;
        (all, with_lost(measured, seen))
    }
}

/// The same counters with the lost: of the datagrams sent, or of `seen` without a sender's count.
fn with_lost(tally: DatagramTally, seen: u64) -> DatagramTally {
    let lost = tally.sent.unwrap_or(seen).saturating_sub(tally.received);
    DatagramTally { lost, lost_here: tally.lost_here.min(lost), ..tally }
}

fn sum(one: &DatagramTally, other: &DatagramTally) -> DatagramTally {
    DatagramTally {
        sent: None,
        received: one.received + other.received,
        lost: 0,
        lost_here: one.lost_here + other.lost_here,
        duplicates: one.duplicates + other.duplicates,
        reordered: one.reordered + other.reordered,
        too_old: one.too_old + other.too_old,
    }
}

#[inline]
const fn word_index(number: u64) -> usize {
    ((number % WINDOW) / WORD) as usize
}

#[inline]
const fn bit_mask(number: u64) -> u64 {
    1 << (number % WORD)
}

#[inline]
fn mark_received(came: &mut [u64], number: u64) {
    came[word_index(number)] |= bit_mask(number);
}

fn is_set(came: &[u64], number: u64) -> bool {
    came[word_index(number)] & bit_mask(number) != 0
}
