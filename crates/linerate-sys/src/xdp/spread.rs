//! Histograms of frame times in shared memory: their layout, the eBPF code that fills them, and
//! reading them.
//!
//! Bins are exact up to 63 ns; above, each power of two has 64 of them (no wider than 1/64 of the
//! value). Times above 2^36 - 1 ns (68 s) fall in the last bin; extremes and sum are exact.
//!
//! ```text
//! word 0 sum   1 smallest   2 largest   3 scratch   4 ... 1987 bins
//! ```

use linerate_core::device::TimeHistogram;
use linerate_core::stats::LogHistogram;

use crate::bpf::{Alu, Asm, JumpCondition, MappedArray, Reg, Size};

/// log2 of the number of bins per power of two.
const SUB_BITS: u32 = 6;
const SUB: u64 = 1 << SUB_BITS;
/// Number of bits of a time.
const VALUE_BITS: u32 = 36;
const BINS: usize = ((VALUE_BITS - SUB_BITS + 1) << SUB_BITS) as usize;

const SUM: usize = 0;
const MIN: usize = 1;
const MAX: usize = 2;
const SCRATCH: usize = 3;
const FIRST_BIN: usize = 4;

/// Number of words of a histogram.
pub(super) const WORDS: usize = FIRST_BIN + BINS;

/// Clears the histogram that starts at word `at`.
pub(super) fn clear_histogram(array: &MappedArray, at: usize) {
    for word in at..at + WORDS {
        array.set_word(word, 0);
    }
    array.set_word(at + MIN, u64::MAX);
}

/// Reads the sum of the histograms that start at these words.
pub(super) fn read(array: &MappedArray, starts: impl Iterator<Item = usize>) -> TimeHistogram {
    let mut bins = vec![0; BINS];
    let mut spread = TimeHistogram { min_ns: u64::MAX, ..TimeHistogram::default() };
    for at in starts {
        spread.sum_ns += array.get(at + SUM);
        spread.min_ns = spread.min_ns.min(array.get(at + MIN));
        spread.max_ns = spread.max_ns.max(array.get(at + MAX));
        for (bin, count) in bins.iter_mut().enumerate() {
            *count += array.get(at + FIRST_BIN + bin);
        }
    }
    if bins.iter().all(|count| *count == 0) {
        spread.min_ns = 0;
    }
    spread.bins = merged(&bins, spread.min_ns, spread.max_ns);
    spread
}

fn merged(bins: &[u64], min_ns: u64, max_ns: u64) -> LogHistogram {
    let mut histogram = LogHistogram::default();
    for (bin, count) in bins.iter().enumerate().filter(|(_, count)| **count > 0) {
        let [low, high] = bounds(bin);
        let middle = low + (high - low) / 2;
        // A program may be counting meanwhile: the extremes can lag behind a bin.
        histogram.record_many(middle.max(min_ns).min(max_ns.max(min_ns)), *count);
    }
    histogram
}

/// The smallest and the largest value of a bin.
fn bounds(bin: usize) -> [u64; 2] {
    let bin = bin as u64;
    let octave = bin >> SUB_BITS;
    if octave == 0 {
        return [bin, bin];
    }
    let width = 1 << (octave - 1);
    let low = (SUB + (bin & (SUB - 1))) * width;
    [low, low + width - 1]
}

/// Counts R1 in the histogram at byte `at` from R7. Changes R1 to R5.
///
/// The number of the bin goes through memory: the verifier then forgets which of the many ways
/// through the binary search led to it, instead of following each to the end of the program.
pub(super) fn emit_histogram(asm: &mut Asm, at: i16) {
    emit_extremes(asm, at);
    let [store, done] = [asm.new_label(), asm.new_label()];
    asm.load_imm64(Reg::R2, (1 << VALUE_BITS) - 1);
    let fits = asm.new_label();
    asm.jump_if(JumpCondition::LessOrEqual, Reg::R1, Reg::R2, fits);
    asm.mov(Reg::R1, Reg::R2);
    asm.bind_label(fits);
    asm.mov(Reg::R2, Reg::R1);
    asm.jump_if(JumpCondition::Less, Reg::R1, 64, store);
    // R2 = position of the highest bit.
    asm.mov(Reg::R2, 0);
    asm.mov(Reg::R3, Reg::R1);
    for bits in [32, 16, 8, 4, 2, 1] {
        let below = asm.new_label();
        asm.mov(Reg::R4, Reg::R3);
        asm.rsh(Reg::R4, bits);
        asm.jump_if(JumpCondition::Equal, Reg::R4, 0, below);
        asm.mov(Reg::R3, Reg::R4);
        asm.add(Reg::R2, bits);
        asm.bind_label(below);
    }
    // Bin = (position - 5) * 64 + (the six bits below the highest).
    asm.mov(Reg::R4, Reg::R2);
    asm.sub(Reg::R4, SUB_BITS.cast_signed());
    asm.rsh(Reg::R1, Reg::R4);
    asm.and(Reg::R1, 63);
    asm.sub(Reg::R2, SUB_BITS.cast_signed() - 1);
    asm.lsh(Reg::R2, SUB_BITS.cast_signed());
    asm.add(Reg::R2, Reg::R1);
    asm.bind_label(store);
    asm.store_memory(Size::Double, Reg::R7, at + byte_offset(SCRATCH), Reg::R2);
    asm.load_memory(Size::Double, Reg::R3, Reg::R7, at + byte_offset(SCRATCH));
    let last = i32::try_from(BINS).expect("1984 bins") - 1;
    asm.jump_if(JumpCondition::Greater, Reg::R3, last, done);
    asm.lsh(Reg::R3, 3);
    asm.mov(Reg::R4, Reg::R7);
    asm.add(Reg::R4, Reg::R3);
    increment(asm, Reg::R4, at + byte_offset(FIRST_BIN));
    asm.bind_label(done);
}

fn emit_extremes(asm: &mut Asm, at: i16) {
    asm.load_memory(Size::Double, Reg::R2, Reg::R7, at + byte_offset(SUM));
    asm.add(Reg::R2, Reg::R1);
    asm.store_memory(Size::Double, Reg::R7, at + byte_offset(SUM), Reg::R2);
    for (word, beaten) in [(MIN, JumpCondition::Less), (MAX, JumpCondition::Greater)] {
        let [better, next] = [asm.new_label(), asm.new_label()];
        asm.load_memory(Size::Double, Reg::R2, Reg::R7, at + byte_offset(word));
        asm.jump_if(beaten, Reg::R1, Reg::R2, better);
        asm.jump_to(next);
        asm.bind_label(better);
        asm.store_memory(Size::Double, Reg::R7, at + byte_offset(word), Reg::R1);
        asm.bind_label(next);
    }
}

/// Adds 1 to the word at byte `at` from `base`. Changes R5.
pub(super) fn increment(asm: &mut Asm, base: Reg, at: i16) {
    asm.load_memory(Size::Double, Reg::R5, base, at);
    asm.alu_op(Alu::Add, Reg::R5, 1);
    asm.store_memory(Size::Double, base, at, Reg::R5);
}

/// Byte offset of a word.
pub(super) fn byte_offset(word: usize) -> i16 {
    i16::try_from(word * 8).expect("blocks are shorter than 32 KiB")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bpf::{ProgramOptions, XdpProgram, available};

    #[test]
    fn bins_lie_side_by_side_and_are_no_wider_than_a_64th() {
        let mut next = 0;
        for bin in 0..BINS {
            let [low, high] = bounds(bin);
            assert_eq!(low, next);
            assert!(high - low <= low / 64, "{low}..={high}");
            next = high + 1;
        }
        assert_eq!(next, 1 << VALUE_BITS);
    }

    /// A program that counts the 8 bytes at the start of each frame.
    fn counter(array: &MappedArray) -> XdpProgram {
        let mut asm = Asm::new();
        let short = asm.new_label();
        asm.load_memory(Size::Word, Reg::R2, Reg::R1, 0);
        asm.load_memory(Size::Word, Reg::R3, Reg::R1, 4);
        asm.mov(Reg::R4, Reg::R2);
        asm.add(Reg::R4, 8);
        asm.jump_if(JumpCondition::Greater, Reg::R4, Reg::R3, short);
        asm.load_memory(Size::Double, Reg::R1, Reg::R2, 0);
        asm.map_value(Reg::R7, array.bpf_map(), 0);
        emit_histogram(&mut asm, 0);
        asm.bind_label(short);
        asm.mov(Reg::R0, 1);
        asm.exit();
        XdpProgram::load("spread", &asm, &ProgramOptions::default()).expect("accepted")
    }

    #[test]
    fn each_value_falls_in_the_bin_that_holds_it() {
        if let Err(reason) = available() {
            crate::bpf::tests::skipped(&reason);
            return;
        }
        let array = MappedArray::new("spread", WORDS).expect("an array");
        let program = counter(&array);
        let large = (1_u64 << VALUE_BITS) - 1;
        let edges = (6..VALUE_BITS).flat_map(|bit| [(1 << bit) - 1, 1 << bit, (1 << bit) + 1]);
        let values = (0..300).chain(edges).chain([1_000_000_007, 3_999_999_999, large]);
        for value in values {
            clear_histogram(&array, 0);
            let mut frame = [0; 14];
            frame[..8].copy_from_slice(&value.to_ne_bytes());
            program.test_run(&frame).expect("a run");
            let filled: Vec<_> = (0..BINS).filter(|bin| array.get(FIRST_BIN + bin) > 0).collect();
            let [low, high] = bounds(filled[0]);
            assert!(filled.len() == 1 && (low..=high).contains(&value), "{value}: {low}..={high}");
            let spread = read(&array, [0].into_iter());
            assert_eq!((spread.min_ns, spread.max_ns, spread.sum_ns), (value, value, value));
            assert_eq!(spread.bins.quantile(0.5), Some(value));
        }
    }

    #[test]
    fn what_is_longer_than_the_last_bin_is_counted_in_it() {
        if let Err(reason) = available() {
            crate::bpf::tests::skipped(&reason);
            return;
        }
        let array = MappedArray::new("spread", WORDS).expect("an array");
        let program = counter(&array);
        clear_histogram(&array, 0);
        let mut frame = [0; 14];
        frame[..8].copy_from_slice(&(1_u64 << 40).to_ne_bytes());
        program.test_run(&frame).expect("a run");
        assert_eq!(array.get(FIRST_BIN + BINS - 1), 1);
        assert_eq!(read(&array, [0].into_iter()).max_ns, 1 << 40);
    }
}
