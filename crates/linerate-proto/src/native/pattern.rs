//! Payload of a test that verifies it (`--verify`): every byte is a function of the seed, the
//! stream and its offset, so that a changed, lost, duplicated or moved byte is found.
//!
//! ```text
//! key            = mix(seed * 2^32 + direction * 2^16 + stream)     direction 1 up, 2 down
//! word w of 2^13 = mix(key + w * G)                                 the table, 65,536 bytes
//! mask of a block b of 65,536 bytes = mix(key ^ mix(b * G + 1))
//! bytes 8n … 8n+7 of the stream = word (n mod 2^13) ^ mask (n / 2^13), little-endian
//! ```
//!
//! `splitmix64` is the output function of SplitMix64 and G its increment (Steele, Lea, Flood, "Fast
//! splittable pseudorandom number generators", OOPSLA 2014). The table is computed once, so that a
//! byte costs one load and one exclusive or. It is no cipher: an attacker on the path can forge it.

use linerate_core::record::Direction;

/// Bytes of the table, and of a block with one mask.
const BLOCK_BYTES: usize = 1 << 16;
const G: u64 = 0x9e37_79b9_7f4a_7c15;

/// Payload of one stream.
#[derive(Clone)]
pub struct Pattern {
    key: u64,
    table: Vec<u8>,
}

/// Wrong bytes in a piece of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PatternDifference {
    /// Offset of the first wrong byte, from the start of the stream.
    pub first_offset: u64,
    /// Number of wrong bytes.
    pub bytes: u64,
}

impl Pattern {
    /// Payload of stream `stream` of `direction` with `seed`.
    pub fn new(seed: u32, direction: Direction, stream: u16) -> Self {
        let way: u64 = match direction {
            Direction::Up => 1,
            Direction::Down => 2,
        };
        let key = splitmix64(u64::from(seed) << 32 | way << 16 | u64::from(stream));
        let words = (0..BLOCK_BYTES as u64 / 8)
            .map(|word| splitmix64(key.wrapping_add(G.wrapping_mul(word))));
        Self { key, table: words.flat_map(u64::to_le_bytes).collect() }
    }

    /// Writes the stream's bytes from `offset` on.
    pub fn fill_bytes(&self, offset: u64, out: &mut [u8]) {
        self.each_piece(offset, out.len(), |at, table, mask| {
            xor_into(&mut out[at..at + table.len()], table, mask);
        });
    }

    /// Compares `got` with the stream's bytes from `offset` on; `None` where they are equal.
    pub fn compare(&self, offset: u64, got: &[u8]) -> Option<PatternDifference> {
        let mut found: Option<PatternDifference> = None;
        self.each_piece(offset, got.len(), |at, table, mask| {
            let piece = &got[at..at + table.len()];
            if is_same(piece, table, mask) {
                return;
            }
            let wrong = |index: &usize| piece[*index] != table[*index] ^ mask[*index % 8];
            let first = (0..piece.len()).find(wrong).unwrap_or(0);
            let first_offset = offset + (at + first) as u64;
            let bytes = (0..piece.len()).filter(wrong).count() as u64;
            let before = found.unwrap_or(PatternDifference { first_offset, bytes: 0 });
            found = Some(PatternDifference { bytes: before.bytes + bytes, ..before });
        });
        found
    }

    /// Cuts a span of `length` bytes at the borders of blocks and calls `each` with the offset of
    /// each piece in the span, its bytes of the table, and the mask rotated to its start.
    fn each_piece(&self, offset: u64, length: usize, mut each: impl FnMut(usize, &[u8], [u8; 8])) {
        let mut at = 0;
        while at < length {
            let place = offset + at as u64;
            let (block, within) = (place / BLOCK_BYTES as u64, place as usize % BLOCK_BYTES);
            let end = (within + length - at).min(BLOCK_BYTES);
            let mut mask = splitmix64(self.key ^ splitmix64(block.wrapping_mul(G).wrapping_add(1)))
                .to_le_bytes();
            mask.rotate_left(within % 8);
            each(at, &self.table[within..end], mask);
            at += end - within;
        }
    }
}

impl std::fmt::Debug for Pattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pattern({:016x})", self.key)
    }
}

fn xor_into(out: &mut [u8], table: &[u8], mask: [u8; 8]) {
    let word = u64::from_ne_bytes(mask);
    let (mut out, mut table) = (out.chunks_exact_mut(8), table.chunks_exact(8));
    for (to, from) in (&mut out).zip(&mut table) {
        let from = from.first_chunk().map_or(0, |from| u64::from_ne_bytes(*from));
        to.copy_from_slice(&(from ^ word).to_ne_bytes());
    }
    let rest = out.into_remainder().iter_mut().zip(table.remainder());
    rest.zip(mask).for_each(|((to, from), mask)| *to = from ^ mask);
}

fn is_same(got: &[u8], table: &[u8], mask: [u8; 8]) -> bool {
    let word = u64::from_ne_bytes(mask);
    let (got, table) = (got.chunks_exact(8), table.chunks_exact(8));
    let rest = got.remainder().iter().zip(table.remainder()).zip(mask);
    let same_rest = rest.fold(0, |all, ((got, from), mask)| all | (got ^ from ^ mask)) == 0;
    // Without an early exit, so that the compiler vectorises the loop.
    let read = |bytes: &[u8]| bytes.first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes));
    let differs = got.zip(table).fold(0, |all, (got, from)| all | (read(got) ^ read(from) ^ word));
    same_rest && differs == 0
}

const fn splitmix64(state: u64) -> u64 {
    let z = state.wrapping_add(G);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern() -> Pattern {
        Pattern::new(7, Direction::Up, 3)
    }

    #[test]
    fn the_mixer_is_that_of_splitmix64() {
        // The first outputs of the reference generator from state 0 (Vigna, splitmix64.c).
        let expected = [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4, 0x06c4_5d18_8009_454f];
        for (step, expected) in (0_u64..).zip(expected) {
            assert_eq!(splitmix64(G.wrapping_mul(step)), expected);
        }
    }

    #[test]
    fn a_byte_is_the_same_however_the_stream_is_cut() {
        let pattern = pattern();
        let mut whole = vec![0; 200_000];
        pattern.fill_bytes(0, &mut whole);
        for (from, length) in [(0, 1), (1, 8), (65_530, 20), (65_536, 70_001), (131_071, 3)] {
            let mut piece = vec![0; length];
            pattern.fill_bytes(from as u64, &mut piece);
            assert_eq!(piece, whole[from..from + length], "{length} bytes from {from}");
            assert_eq!(pattern.compare(from as u64, &piece), None);
        }
    }

    #[test]
    fn the_words_are_those_of_the_specification() {
        // Word 1 of block 2, put together by the formula of the head.
        let key = splitmix64(7 << 32 | 1 << 16 | 3);
        let expected = splitmix64(key.wrapping_add(G))
            ^ splitmix64(key ^ splitmix64(G.wrapping_mul(2).wrapping_add(1)));
        let mut bytes = [0; 8];
        pattern().fill_bytes(2 * 65_536 + 8, &mut bytes);
        assert_eq!(u64::from_le_bytes(bytes), expected);
    }

    #[test]
    fn every_kind_of_damage_is_found_where_it_is() {
        let pattern = pattern();
        let mut sent = vec![0; 150_000];
        pattern.fill_bytes(1000, &mut sent);
        let check = |damage: fn(&mut Vec<u8>), first, bytes_min| {
            let mut got = sent.clone();
            damage(&mut got);
            let found = pattern.compare(1000, &got).expect("damaged");
            assert_eq!(found.first_offset, first);
            assert!(found.bytes >= bytes_min, "{found:?}");
        };
        check(|got| got[77] ^= 1, 1077, 1);
        check(|got| got[149_999] ^= 0x80, 150_999, 1);
        check(|got| (got[64_000], got[99_999]) = (got[64_000] ^ 1, got[99_999] ^ 1), 65_000, 2);
        // A byte less, and two blocks exchanged: nearly all of what follows is wrong.
        check(|got| got.copy_within(5001.., 5000), 6000, 140_000);
        check(|got| got.copy_within(65_536..131_072, 0), 1000, 60_000);
    }

    #[test]
    fn streams_directions_and_seeds_differ() {
        let first = |seed, direction, stream| {
            let mut bytes = [0; 16];
            Pattern::new(seed, direction, stream).fill_bytes(0, &mut bytes);
            bytes
        };
        let all = [
            first(1, Direction::Up, 0),
            first(2, Direction::Up, 0),
            first(1, Direction::Down, 0),
            first(1, Direction::Up, 1),
        ];
        for (at, one) in all.iter().enumerate() {
            assert!(!all[..at].contains(one));
        }
    }
}
