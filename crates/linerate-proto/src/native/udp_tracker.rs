//! From the numbers of datagrams, in the order in which they arrive, to counts: lost, duplicate,
//! reordered.
//!
//! Memory is bounded: of the last [`WINDOW`] numbers it is known which came. One that is older when
//! it arrives is neither counted as received nor as duplicate; it stays among the lost, and is told
//! apart. Left out: how far a reordered datagram was displaced.
//!
//! Sources: RFC 4737 §3.3 and §4.1 (NextExp; reordered is what is below it), RFC 7680 (loss),
//! RFC 5560 (duplicates).

use linerate_core::record::DatagramTally;

/// Numbers below the highest of which it is known whether they came.
pub const WINDOW: u64 = 1 << 20;

/// A number further ahead than this is not believed: more than a minute at 50 million a second.
const AHEAD_MAX: u64 = 1 << 32;

const WORD: u64 = 64;

/// What a datagram turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The next number, or one ahead of it.
    Ahead,
    /// Below a number that came before: reordered (RFC 4737).
    Behind,
    /// It came before.
    Duplicate,
    /// Too far below to tell.
    TooOld,
    /// Too far ahead to be of this stream; it is not counted.
    Implausible,
}

/// Follows one stream.
#[derive(Clone, Debug)]
pub struct UdpTracker {
    /// One bit a number, by its remainder.
    came: Vec<u64>,
    /// The highest number that came, and 1: NextExp of RFC 4737.
    next: u64,
    omit_ns: u64,
    /// The lowest number that was sent after the omitted span, of those that came; the highest
    /// there can be before any came.
    first_counted: u64,
    /// Sent within the omitted span, and after it.
    tallies: [DatagramTally; 2],
    /// The kernel's count of drops at the last arrival.
    drops: u32,
    /// A number further ahead than this is not believed.
    ahead_max: u64,
}

impl UdpTracker {
    /// Follows a stream of which datagrams sent before `omit_ns` do not count.
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

    /// Takes in a datagram that was sent at `stamp_ns`.
    #[inline]
    pub fn take(&mut self, number: u64, stamp_ns: u64) -> Order {
        if number != self.next {
            return self.take_other(number, stamp_ns);
        }
        self.part(number, stamp_ns).received += 1;
        set(&mut self.came, number);
        self.next += 1;
        Order::Ahead
    }

    /// The tally to which a datagram belongs.
    #[inline]
    fn part(&mut self, number: u64, stamp_ns: u64) -> &mut DatagramTally {
        let counts = stamp_ns >= self.omit_ns;
        if counts {
            self.first_counted = self.first_counted.min(number);
        }
        &mut self.tallies[usize::from(counts)]
    }

    /// How many of `all` datagrams were sent after the omitted span by the stamps of those that
    /// came: for senders whose own account of it begins at another moment than their stamps. None
    /// where none of them came.
    pub const fn sent_after_omitted(&self, all: u64) -> Option<u64> {
        match (self.omit_ns, self.first_counted) {
            (0, _) => Some(all),
            (_, u64::MAX) => None,
            (_, first) => Some(all.saturating_sub(first)),
        }
    }

    /// Takes in `count` datagrams with numbers one after the other from `first` on, all sent at
    /// `stamp_ns`, where the first is the next expected; false, and nothing taken, otherwise. The
    /// same as [`Self::take`] of each.
    #[inline]
    pub fn take_run(&mut self, first: u64, count: u64, stamp_ns: u64) -> bool {
        if first != self.next || first.checked_add(count).is_none_or(|end| end == u64::MAX) {
            return false;
        }
        self.part(first, stamp_ns).received += count;
        let mut at = first;
        while at < first + count {
            let bits = (WORD - at % WORD).min(first + count - at);
            let ones = if bits == WORD { u64::MAX } else { (1 << bits) - 1 };
            self.came[word(at)] |= ones << (at % WORD);
            at += bits;
        }
        self.next = first + count;
        true
    }

    #[cold]
    fn take_other(&mut self, number: u64, stamp_ns: u64) -> Order {
        if let Some(gap) = number.checked_sub(self.next) {
            if !self.is_plausible(number) {
                return Order::Implausible;
            }
            self.forget(number, gap);
            self.part(number, stamp_ns).received += 1;
            set(&mut self.came, number);
            self.next = number + 1;
            return Order::Ahead;
        }
        if self.next - number > WINDOW {
            self.part(number, stamp_ns).too_old += 1;
            return Order::TooOld;
        }
        if is_set(&self.came, number) {
            self.part(number, stamp_ns).duplicates += 1;
            return Order::Duplicate;
        }
        let tally = self.part(number, stamp_ns);
        tally.received += 1;
        tally.reordered += 1;
        set(&mut self.came, number);
        Order::Behind
    }

    /// Whether a number can be of this stream: it is not too far ahead.
    pub const fn is_plausible(&self, number: u64) -> bool {
        number.saturating_sub(self.next) <= self.ahead_max && number != u64::MAX
    }

    /// Numbers from `next` up to `number` have not come, whatever their bits said of older ones.
    fn forget(&mut self, number: u64, gap: u64) {
        if gap >= WINDOW {
            self.came.fill(0);
            return;
        }
        let mut at = self.next;
        while at < number {
            if at.is_multiple_of(WORD) && number - at >= WORD {
                self.came[word(at)] = 0;
                at += WORD;
            } else {
                self.came[word(at)] &= !bit(at);
                at += 1;
            }
        }
    }

    /// Tells the kernel's count of drops as it was when the datagram `number` found its place, just
    /// before that one is taken in: what is missing below it was dropped here, at most
    /// `joined_max` datagrams a drop. The count may wrap.
    pub fn note_drops(&mut self, drops: u32, number: u64, stamp_ns: u64, joined_max: u64) {
        let grown = drops.wrapping_sub(self.drops);
        self.drops = drops;
        let gap = number.saturating_sub(self.next);
        if grown > 0 && gap <= AHEAD_MAX {
            let here = gap.min(u64::from(grown).saturating_mul(joined_max));
            self.tallies[usize::from(stamp_ns >= self.omit_ns)].lost_here += here;
        }
    }

    /// The highest number that came, and 1.
    pub const fn next_expected(&self) -> u64 {
        self.next
    }

    /// Different datagrams that came.
    pub const fn received(&self) -> u64 {
        self.tallies[0].received + self.tallies[1].received
    }

    /// Counts of all datagrams and of those sent after the omitted span. `sent` is what the sender
    /// told of both; what is missing at the very end was dropped here as far as the kernel's last
    /// count of `drops` says so.
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
        let all = close(DatagramTally { sent: sent_all, ..all }, self.next);
        // Without the sender's word it is not known how many of the lost belong to the span.
        let seen = all.lost + measured.received;
        (all, close(measured, seen))
    }
}

/// Fills in what was lost: of the sent ones, or of `seen` where the sender did not tell.
fn close(tally: DatagramTally, seen: u64) -> DatagramTally {
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
const fn word(number: u64) -> usize {
    ((number % WINDOW) / WORD) as usize
}

#[inline]
const fn bit(number: u64) -> u64 {
    1 << (number % WORD)
}

#[inline]
fn set(came: &mut [u64], number: u64) {
    came[word(number)] |= bit(number);
}

fn is_set(came: &[u64], number: u64) -> bool {
    came[word(number)] & bit(number) != 0
}
