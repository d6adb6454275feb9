//! Readers of foreign bytes over a corpus and its mutations, the same ones in every run: by the
//! stable compiler, in the tests of the reader's crate. Each input is held to bounds of memory and
//! time beside what the entry itself asserts.
//!
//! `LINERATE_MUTATIONS=30` multiplies the count of every reader, for a long run by hand.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Longest mutation of a corpus whose inputs are shorter; longer ones grow no further.
const GROWN_BYTES_MAX: usize = 4096;
/// Length of inputs that repeat one piece, that of the longest datagram: a reader whose time grows
/// with the square of its input shows here.
const REPEATED_BYTES: usize = 65_507;
/// Inputs between two looks at the processor time.
const INPUTS_PER_LOOK: u32 = 64;
/// Processor time of so many inputs, nanoseconds: some hundred times that of the slowest reader, so
/// that a busy machine does not matter and one that hangs does.
const LOOK_NS_MAX: u64 = 10_000_000_000;

/// A reader, by its entry, with what it is fed.
pub(crate) struct Reader {
    /// The entry's file in `fuzz/entries`, without its ending.
    pub(crate) entry: &'static str,
    pub(crate) run: fn(&[u8]),
    pub(crate) corpus: Vec<Vec<u8>>,
    /// Words of the format that mutations put in.
    pub(crate) words: &'static [&'static str],
    /// Mutations; fewer than [`MUTATIONS`] where the reader is slow, with the reason.
    pub(crate) mutations: u32,
    pub(crate) memory: MemoryBound,
}

/// Mutations of a reader in a plain run.
pub(crate) const MUTATIONS: u32 = 100_000;

/// Most that an entry may hold at one time: the reader's own, and what the entry makes of it to
/// compare.
#[derive(Clone, Copy)]
pub(crate) struct MemoryBound {
    pub(crate) base_bytes: u64,
    /// For each byte of the input.
    pub(crate) per_byte: u64,
}

impl Reader {
    /// Runs the corpus as it is, repeated pieces of it, and its mutations.
    pub(crate) fn hold(&self) {
        let longest = self.corpus.iter().map(Vec::len).max().expect("a corpus");
        let mut mutator = Mutator { random: SplitMix64(0), reader: self, longest };
        let mut watch = Watch::new();
        let whole = self.corpus.iter().cloned();
        let repeated: Vec<_> = (0..8).map(|_| mutator.repeated()).collect();
        for (number, bytes) in whole.chain(repeated).enumerate() {
            self.feed(&bytes, &format!("input {number}"));
            watch.look(self.entry);
        }
        for number in 0..self.mutations.saturating_mul(times()) {
            mutator.random = SplitMix64(u64::from(number) + 1);
            let bytes = mutator.mutation();
            self.feed(&bytes, "a mutation");
            if number % INPUTS_PER_LOOK == 0 {
                watch.look(self.entry);
            }
        }
    }

    fn feed(&self, bytes: &[u8], which: &str) {
        let mut ended = Ok(());
        let held = allocation_counter::measure(|| {
            ended = catch_unwind(AssertUnwindSafe(|| (self.run)(bytes)));
        });
        let shown = || bytes.escape_ascii().to_string();
        assert!(ended.is_ok(), "{}: {which} fails: b\"{}\"", self.entry, shown());
        let MemoryBound { base_bytes, per_byte } = self.memory;
        let bound = base_bytes + per_byte * bytes.len() as u64;
        let most = held.bytes_max;
        assert!(most <= bound, "{}: {most} bytes of {bound}: b\"{}\"", self.entry, shown());
    }
}

/// How many times the usual count of mutations is wanted.
fn times() -> u32 {
    std::env::var("LINERATE_MUTATIONS").ok().and_then(|it| it.parse().ok()).unwrap_or(1)
}

/// Looks at the processor time of this thread.
struct Watch {
    last_ns: u64,
}

impl Watch {
    fn new() -> Self {
        Self { last_ns: cpu_ns() }
    }

    fn look(&mut self, entry: &str) {
        let now_ns = cpu_ns();
        let spent_ns = now_ns.saturating_sub(self.last_ns);
        assert!(spent_ns < LOOK_NS_MAX, "{entry}: {spent_ns} ns for {INPUTS_PER_LOOK} inputs");
        self.last_ns = now_ns;
    }
}

/// Processor time of this thread (proc(5), schedstat); 0 where the kernel does not say.
fn cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|it| it.parse().ok()).unwrap_or(0)
}

/// Makes inputs out of a reader's corpus.
struct Mutator<'a> {
    random: SplitMix64,
    reader: &'a Reader,
    longest: usize,
}

impl<'a> Mutator<'a> {
    /// An input of the corpus with one to six changes.
    fn mutation(&mut self) -> Vec<u8> {
        let mut bytes = self.input().to_vec();
        for _ in 0..1 + self.random.below(6) {
            self.change(&mut bytes);
        }
        bytes.truncate(self.longest.max(GROWN_BYTES_MAX));
        bytes
    }

    /// A piece of an input again and again, with or without what stands before it.
    fn repeated(&mut self) -> Vec<u8> {
        let input = self.input();
        let (from, until) = self.piece(input);
        let piece = if from == until { b"[" } else { &input[from..until] };
        let mut bytes = if self.random.below(2) == 0 { input[..from].to_vec() } else { Vec::new() };
        while bytes.len() < REPEATED_BYTES {
            bytes.extend_from_slice(piece);
        }
        bytes.truncate(REPEATED_BYTES);
        bytes
    }

    fn change(&mut self, bytes: &mut Vec<u8>) {
        let at = self.random.below(bytes.len() + 1);
        let (from, until) = self.piece(bytes);
        match self.random.below(10) {
            0 if at < bytes.len() => bytes[at] ^= 1 << self.random.below(8),
            1 if at < bytes.len() => bytes[at] = self.random.next() as u8,
            2 => drop(bytes.drain(from..until)),
            3 => {
                let piece = bytes[from..until].to_vec();
                bytes.splice(at..at, piece);
            }
            4 => self.write_number(bytes, at),
            5 => self.write_digits(bytes, at),
            6 => {
                let other = self.input();
                let (from, until) = self.piece(other);
                let end = (at + self.random.below(until - from + 1)).min(bytes.len());
                bytes.splice(at..end, other[from..until].iter().copied());
            }
            7 if at.is_multiple_of(4) => bytes.truncate(at),
            8 if !self.reader.words.is_empty() => {
                let word = self.reader.words[self.random.below(self.reader.words.len())];
                let end =
                    if at.is_multiple_of(2) { at } else { (at + word.len()).min(bytes.len()) };
                bytes.splice(at..end, word.bytes());
            }
            _ => {
                let fresh: Vec<u8> =
                    (0..1 + self.random.below(8)).map(|_| self.random.next() as u8).collect();
                let end = (at + fresh.len()).min(bytes.len());
                bytes.splice(at..end, fresh);
            }
        }
    }

    /// A number at the edge of its range, of one to eight bytes in either order.
    fn write_number(&mut self, bytes: &mut [u8], at: usize) {
        const EDGES: [u64; 8] =
            [0, 1, 0x7f, 0x80, u64::MAX, u64::MAX - 1, i64::MAX as u64, 1 << 63];
        let value = EDGES[self.random.below(EDGES.len())];
        let width = [1, 2, 4, 8][self.random.below(4)];
        let Some(place) = bytes.get_mut(at..at + width) else { return };
        if self.random.below(2) == 0 {
            place.copy_from_slice(&value.to_le_bytes()[..width]);
        } else {
            place.copy_from_slice(&value.to_be_bytes()[8 - width..]);
        }
    }

    /// The next digits of a text become another number.
    fn write_digits(&mut self, bytes: &mut Vec<u8>, at: usize) {
        const NUMBERS: [&str; 14] = [
            "0",
            "-0",
            "-1",
            "1e308",
            "-1e308",
            "1e-320",
            "0.1",
            "65536",
            "4294967296",
            "9223372036854775807",
            "9223372036854775808",
            "18446744073709551615",
            "18446744073709551616",
            "999999999999999999999999999999999999999999",
        ];
        let Some(first) = bytes[at..].iter().position(u8::is_ascii_digit) else { return };
        let first = at + first;
        let digits = bytes[first..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let number = NUMBERS[self.random.below(NUMBERS.len())];
        bytes.splice(first..first + digits, number.bytes());
    }

    fn input(&mut self) -> &'a [u8] {
        let corpus = &self.reader.corpus;
        &corpus[self.random.below(corpus.len())]
    }

    /// A piece of up to 64 bytes, sometimes of any length.
    fn piece(&mut self, bytes: &[u8]) -> (usize, usize) {
        let from = self.random.below(bytes.len() + 1);
        let rest = bytes.len() - from;
        let most = if self.random.below(8) == 0 { rest } else { rest.min(64) };
        (from, from + self.random.below(most + 1))
    }
}

/// Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, count: usize) -> usize {
        (self.next() % count as u64) as usize
    }
}
