//! The inverse question: how deep a token bucket must be at each rate for all traffic to conform.
//!
//! b(r) is the largest value over all s <= t of bytes(s..t) - r (t - s): the fullest that a queue
//! served at r ever gets. One queue a rate runs along, so that memory is constant and one pass is
//! enough. A queue also keeps the interval that filled it most; those intervals are corners of the
//! hull of the traffic's arrival curve. Source: Cruz, IEEE Trans. Inf. Theory 37 (1991), §II.
//!
//! Cost, as a sketch: touching 181 queues for each packet would take 250 ns. Queues far above the
//! traffic's rate are empty and share one state; queues that cannot empty within the next 256
//! packets take them at once, by the upper hull of their sums. The rest, those between the mean
//! and the peak rate, are some 20 to 40, two to a vector register: about 30 ns a packet.

/// Lowest rate of the grid, bit/s.
const LOWEST_BPS: f64 = 1e3;
/// Rates in each factor of ten; neighbours are 12 % apart.
const PER_DECADE: u32 = 20;
/// Factors of ten: to 1 Tbit/s.
const DECADES: u32 = 9;

/// A rate with the interval that needs the deepest bucket at it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Vertex {
    /// Rate of the bucket, bit/s.
    pub rate_bps: f64,
    /// Depth of the smallest bucket, bytes.
    pub burst_bytes: f64,
    /// Length of the interval, ns; 0 for packets at one moment.
    pub span_ns: f64,
}

impl Vertex {
    /// Bytes that arrived in the interval.
    pub fn arrived_bytes(&self) -> f64 {
        self.burst_bytes + self.rate_bps / 8e9 * self.span_ns
    }
}

/// Cells of one packet, back to back.
#[derive(Clone, Copy, Debug)]
pub struct Train {
    /// Arrival of the first, ns.
    pub at_ns: f64,
    /// Number of cells, at least 1.
    pub count: u32,
    /// Bytes of each cell.
    pub bytes: f64,
    /// Time from one to the next, ns.
    pub gap_ns: f64,
}

/// The queues of all rates.
#[derive(Clone, Debug)]
pub struct Envelope {
    rates_bps: Vec<f64>,
    /// Bytes per ns, ascending.
    rates: Vec<f64>,
    queue: Vec<f64>,
    /// Time at which the queue was last empty, ns.
    since: Vec<f64>,
    burst: Vec<f64>,
    span: Vec<f64>,
    /// Queues from this one on were empty before the last moment; they hold `fresh` bytes.
    live: usize,
    fresh: f64,
    last_ns: f64,
    /// The most bytes that arrived at one moment.
    largest: f64,
    /// Cells that arrived and are not served yet, at most `batch` packets.
    waiting: Vec<Train>,
    batch: usize,
    hull: Vec<Corner>,
}

/// Arrivals that are served together: they and their hull stay in the first cache (16 KiB).
const BATCH: usize = 256;

/// A corner of the upper hull of a batch: bytes so far by time since the batch before.
#[derive(Clone, Copy, Debug)]
struct Corner {
    after_ns: f64,
    bytes: f64,
}

impl Envelope {
    /// Queues for a grid of rates and for `more` rates in bit/s.
    pub fn new(more: &[f64]) -> Self {
        let grid = (0..=DECADES * PER_DECADE)
            .map(|step| LOWEST_BPS * 10_f64.powf(f64::from(step) / f64::from(PER_DECADE)));
        let mut rates_bps: Vec<f64> = grid.chain(more.iter().copied()).collect();
        rates_bps.sort_by(f64::total_cmp);
        rates_bps.dedup();
        let rates = rates_bps.iter().map(|bps| bps / 8e9).collect();
        let zeros = vec![0.0; rates_bps.len()];
        Self {
            rates_bps,
            rates,
            queue: zeros.clone(),
            since: zeros.clone(),
            burst: zeros.clone(),
            span: zeros,
            live: 0,
            fresh: 0.0,
            last_ns: f64::NEG_INFINITY,
            largest: 0.0,
            waiting: Vec::with_capacity(BATCH),
            batch: BATCH,
            hull: Vec::with_capacity(2 * BATCH),
        }
    }

    /// Takes a packet that arrives; time does not go back.
    #[inline]
    pub fn arrive(&mut self, at_ns: f64, bytes: f64) {
        self.arrive_train(&Train { at_ns, count: 1, bytes, gap_ns: 0.0 });
    }

    /// Takes the cells of one packet that arrive; time does not go back.
    #[inline]
    pub fn arrive_train(&mut self, train: &Train) {
        self.waiting.push(*train);
        if self.waiting.len() >= self.batch {
            self.settle();
        }
    }

    /// Serves the cells that wait.
    fn settle(&mut self) {
        let waiting = std::mem::take(&mut self.waiting);
        let Some(end_ns) = waiting.last().map(Train::end_ns) else { return };
        let span = end_ns - self.last_ns;
        // A lower rate has a longer queue, so these come first.
        let busy = self.queue[..self.live].iter().zip(&self.rates);
        let busy = busy.take_while(|(queue, rate)| **queue > **rate * span).count();
        if busy > 0 {
            self.serve_at_once(busy, &waiting);
        }
        for train in &waiting {
            self.serve_queues(train, busy);
        }
        self.waiting = waiting;
        self.waiting.clear();
    }

    /// Serves queues that do not empty meanwhile: each grows by the bytes that arrived, less the
    /// bytes served; its maximum is at a corner of the hull of the arrivals.
    fn serve_at_once(&mut self, busy: usize, waiting: &[Train]) {
        let total = self.build_hull(waiting);
        let Some(mut at) = self.hull.len().checked_sub(1) else { return };
        let span = self.hull.last().map_or(0.0, |corner| corner.after_ns);
        for index in 0..busy {
            let rate = self.rates[index];
            let gain = |corner: &Corner| corner.bytes - rate * corner.after_ns;
            // The faster the service, the earlier the most.
            while at > 0 && gain(&self.hull[at - 1]) >= gain(&self.hull[at]) {
                at -= 1;
            }
            let level = self.queue[index] + gain(&self.hull[at]);
            if level > self.burst[index] {
                self.burst[index] = level;
                self.span[index] = self.last_ns + self.hull[at].after_ns - self.since[index];
            }
            self.queue[index] += total - rate * span;
        }
    }

    /// Makes the upper hull of bytes over time and returns all bytes.
    fn build_hull(&mut self, waiting: &[Train]) -> f64 {
        self.hull.clear();
        let mut bytes = 0.0;
        for train in waiting {
            bytes += train.bytes;
            push_corner(&mut self.hull, Corner { after_ns: train.at_ns - self.last_ns, bytes });
            if train.count > 1 {
                bytes += train.bytes * f64::from(train.count - 1);
                push_corner(
                    &mut self.hull,
                    Corner { after_ns: train.end_ns() - self.last_ns, bytes },
                );
            }
        }
        bytes
    }

    /// Serves the queues from `from` on.
    fn serve_queues(&mut self, train: &Train, from: usize) {
        let Train { at_ns, bytes, .. } = *train;
        let step = at_ns - self.last_ns;
        self.serve_range(from..self.live, step, at_ns, bytes);
        if step > 0.0 {
            self.wake_queues(step, at_ns, bytes, from);
            self.fresh = bytes;
            self.last_ns = at_ns;
        } else {
            self.fresh += bytes;
        }
        self.largest = self.largest.max(self.fresh);
        if train.count > 1 {
            self.take_more(train, from);
        }
    }

    /// Serves the queues in `range` for `step` and adds `bytes`.
    fn serve_range(&mut self, range: std::ops::Range<usize>, step: f64, at_ns: f64, bytes: f64) {
        // Slices of one length and loads before stores, so that the loop has no checks and no
        // branches and becomes vector instructions.
        let rates = &self.rates[range.clone()];
        let queues = &mut self.queue[range.clone()][..rates.len()];
        let sinces = &mut self.since[range.clone()][..rates.len()];
        let bursts = &mut self.burst[range.clone()][..rates.len()];
        let spans = &mut self.span[range][..rates.len()];
        for index in 0..rates.len() {
            let (since, burst, span) = (sinces[index], bursts[index], spans[index]);
            let left = queues[index] - rates[index] * step;
            let is_empty = left <= 0.0;
            let since = if is_empty { at_ns } else { since };
            let level = if is_empty { 0.0 } else { left } + bytes;
            let is_most = level > burst;
            let age = at_ns - since;
            queues[index] = level;
            sinces[index] = since;
            bursts[index] = if is_most { level } else { burst };
            spans[index] = if is_most { age } else { span };
        }
    }

    /// Finds the queues that hold something since the last moment, and those that do no more.
    fn wake_queues(&mut self, step: f64, at_ns: f64, bytes: f64, from: usize) {
        let sleeping = &self.rates[self.live..];
        let awake = sleeping.iter().take_while(|rate| self.fresh > *rate * step).count();
        let range = self.live..self.live + awake;
        self.queue[range.clone()].fill(self.fresh);
        self.since[range.clone()].fill(self.last_ns);
        self.serve_range(range.clone(), step, at_ns, bytes);
        self.live = range.end;
        // A higher rate empties first.
        let is_fresh = |since: &&f64| **since >= at_ns;
        self.live -= self.since[from..self.live].iter().rev().take_while(is_fresh).count();
    }

    /// Serves the queues from `from` on while the second and further cells of a train arrive.
    fn take_more(&mut self, train: &Train, from: usize) {
        let Train { bytes, gap_ns, .. } = *train;
        let (end_ns, more) = (train.end_ns(), f64::from(train.count - 1));
        let range = self.live..self.rates.len();
        self.queue[range.clone()].fill(self.fresh);
        self.since[range].fill(self.last_ns);
        for index in from..self.rates.len() {
            let gain = bytes - self.rates[index] * gap_ns;
            // Served faster than they come, cells find the queue empty or emptying: its most was
            // at the first one.
            let level = (self.queue[index] + gain * more).max(bytes);
            if gain <= 0.0 && level <= bytes {
                self.since[index] = end_ns;
            }
            if level > self.burst[index].max(self.largest) {
                self.burst[index] = level;
                self.span[index] = end_ns - self.since[index];
            }
            self.queue[index] = level;
        }
        let is_fresh = |since: &&f64| **since >= end_ns;
        let asleep = self.since[from..].iter().rev().take_while(is_fresh).count();
        self.live = self.rates.len() - asleep;
        self.fresh = bytes;
        self.last_ns = end_ns;
    }

    /// Every rate with its smallest bucket, by rising rate.
    pub fn vertices(&mut self) -> Vec<Vertex> {
        self.settle();
        let rows = self.rates_bps.iter().zip(self.burst.iter().zip(&self.span));
        rows.map(|(&rate_bps, (&burst, &span))| {
            let (burst_bytes, span_ns) =
                if burst > self.largest { (burst, span) } else { (self.largest, 0.0) };
            Vertex { rate_bps, burst_bytes, span_ns }
        })
        .collect()
    }

    /// The smallest bucket at one of the rates that [`Self::new`] was given.
    pub fn burst_at(&mut self, rate_bps: f64) -> Option<f64> {
        burst_at(&self.vertices(), rate_bps)
    }
}

/// The smallest bucket at one of the rates.
pub(super) fn burst_at(vertices: &[Vertex], rate_bps: f64) -> Option<f64> {
    let vertex = vertices.iter().find(|vertex| vertex.rate_bps.total_cmp(&rate_bps).is_eq());
    vertex.map(|vertex| vertex.burst_bytes)
}

impl Train {
    /// Arrival of the last cell, ns.
    fn end_ns(&self) -> f64 {
        self.at_ns + self.gap_ns * f64::from(self.count - 1)
    }
}

/// Adds a corner at the end of a hull and takes off those below it.
fn push_corner(hull: &mut Vec<Corner>, corner: Corner) {
    while let [.., before, last] = hull[..] {
        let rise = (last.bytes - before.bytes) * (corner.after_ns - before.after_ns);
        if rise > (corner.bytes - before.bytes) * (last.after_ns - before.after_ns) {
            break;
        }
        hull.pop();
    }
    if hull.last().is_some_and(|last| last.after_ns >= corner.after_ns) {
        hull.pop();
    }
    hull.push(corner);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::theory::token_bucket::TokenBucket;
    use crate::units::{BitRate, Bytes};

    /// b(r) by its definition.
    fn by_definition(packets: &[(u64, u32)], bps: f64) -> f64 {
        let mut most = 0.0_f64;
        for first in 0..packets.len() {
            let mut bytes = 0.0;
            for (at, size) in &packets[first..] {
                bytes += f64::from(*size);
                most = most.max(bytes - bps / 8e9 * (at - packets[first].0) as f64);
            }
        }
        most
    }

    /// Batches of 7, so that queues are served in both ways.
    fn envelope(packets: &[(u64, u32)], more: &[f64]) -> Envelope {
        let mut envelope = Envelope { batch: 7, ..Envelope::new(more) };
        for (at, bytes) in packets {
            envelope.arrive(*at as f64, f64::from(*bytes));
        }
        envelope
    }

    #[test]
    fn two_packets_a_second_apart_need_what_the_rate_does_not_serve() {
        // At 8 kbit/s 1000 of 1500 bytes are served in between: 500 + 1500; at 12k and above 1500.
        let mut envelope = envelope(&[(0, 1500), (1_000_000_000, 1500)], &[8e3, 12e3]);
        assert_eq!(envelope.burst_at(8e3), Some(2000.0));
        assert_eq!(envelope.burst_at(12e3), Some(1500.0));
        let vertices = envelope.vertices();
        let at_8k = vertices.iter().find(|vertex| vertex.rate_bps == 8e3).expect("it was asked");
        assert_eq!((at_8k.span_ns, at_8k.arrived_bytes()), (1e9, 3000.0));
        let fastest = vertices.last().expect("a grid");
        assert!((fastest.rate_bps - 1e12).abs() < 1.0);
        assert_eq!((fastest.burst_bytes, fastest.span_ns), (1500.0, 0.0));
    }

    #[test]
    fn packets_at_one_moment_add_up() {
        let mut envelope = envelope(&[(0, 1000), (0, 1000), (0, 1000)], &[]);
        assert!(envelope.vertices().iter().all(|vertex| vertex.burst_bytes == 3000.0));
    }

    proptest! {
        #[test]
        fn every_rate_needs_what_the_definition_says(
            gaps in prop::collection::vec((prop::sample::select(&[0, 1, 800, 12_000, 900_000,
                70_000_000][..]), 1_u32..2000), 1..80),
        ) {
            let mut at = 0;
            let packets: Vec<(u64, u32)> =
                gaps.iter().map(|(gap, bytes)| { at += gap; (at, *bytes) }).collect();
            for vertex in envelope(&packets, &[]).vertices() {
                let want = by_definition(&packets, vertex.rate_bps);
                prop_assert!((vertex.burst_bytes - want).abs() < 1e-6 * want, "{vertex:?} {want}");
            }
        }

        #[test]
        fn trains_need_what_their_cells_need(
            trains in prop::collection::vec((0_u64..400_000, 1_u32..40), 1..40),
        ) {
            let (gap, mut free) = (2_831, 0);
            let mut whole = Envelope { batch: 5, ..Envelope::new(&[]) };
            let mut cells = Vec::new();
            for (wait, count) in trains {
                let start = free + wait;
                let (at_ns, gap_ns) = (start as f64, gap as f64);
                whole.arrive_train(&Train { at_ns, count, bytes: 53.0, gap_ns });
                cells.extend((0..u64::from(count)).map(|cell| (start + cell * gap, 53)));
                free = start + u64::from(count) * gap;
            }
            let mut single = envelope(&cells, &[]);
            for (one, other) in whole.vertices().iter().zip(single.vertices()) {
                let (bytes, ns) =
                    (one.burst_bytes - other.burst_bytes, one.span_ns - other.span_ns);
                prop_assert!(bytes.abs() < 1e-6 && ns.abs() < 1e-3, "{one:?} {other:?}");
            }
        }

        #[test]
        fn the_smallest_bucket_conforms_and_one_byte_less_does_not(
            gaps in prop::collection::vec((0_u64..3_000_000, 100_u32..2000), 2..80),
        ) {
            let rate = BitRate::from_bits_per_sec(4_000_000);
            let mut at = 0;
            let packets: Vec<(u64, u32)> =
                gaps.iter().map(|(gap, bytes)| { at += gap; (at, *bytes) }).collect();
            let burst = envelope(&packets, &[4e6]).burst_at(4e6).expect("it was asked");
            let conforms = |burst: u64| {
                let mut bucket = TokenBucket::new(rate, Bytes::new(burst)).expect("a bucket");
                packets.iter().all(|(at, bytes)| bucket.arrive(*at, *bytes).is_none())
            };
            let whole = |bytes: f64| {
                BitRate::from_nearest(bytes.ceil()).expect("a small number").bits_per_sec()
            };
            prop_assert!(conforms(whole(burst + 1e-6)));
            prop_assert!(!conforms(whole(burst - 1e-6) - 1));
        }
    }
}
