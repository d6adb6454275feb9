//! The block format of Snappy, as much of it as a sender needs: literals, and copies from at most
//! 64 KiB before.
//!
//! # Source
//! google/snappy, format_description.txt (2011-10-05). Left out: copies with an offset of one or
//! four bytes, which only make a block smaller.

/// Bits of a hash of four bytes.
const HASH_BITS: u32 = 14;
/// The shortest copy, and the longest of one element (§2.2.2).
const COPY: std::ops::RangeInclusive<usize> = 4..=64;
/// The furthest that an offset of two bytes reaches.
const OFFSET_MAX: usize = 65_535;

/// The block of some bytes.
pub(super) fn compressed(bytes: &[u8]) -> Vec<u8> {
    let mut block = Vec::with_capacity(bytes.len() / 4 + 32);
    super::remote_write::varint(&mut block, bytes.len() as u64);
    let mut seen = vec![usize::MAX; 1 << HASH_BITS];
    let (mut at, mut literal) = (0, 0);
    while let Some(four) = bytes.get(at..at + COPY.start()) {
        let place = hash(four);
        let before = std::mem::replace(&mut seen[place], at);
        let near = before < at && at - before <= OFFSET_MAX;
        if !near || bytes[before..before + COPY.start()] != *four {
            at += 1;
            continue;
        }
        let same = bytes[at..].iter().zip(&bytes[before..]).take_while(|(a, b)| a == b).count();
        put_literal(&mut block, &bytes[literal..at]);
        put_copies(&mut block, at - before, same);
        at += same;
        literal = at;
    }
    put_literal(&mut block, &bytes[literal..]);
    block
}

/// Knuth's multiplicative hash of four bytes.
fn hash(four: &[u8]) -> usize {
    let number = u32::from_le_bytes([four[0], four[1], four[2], four[3]]);
    (number.wrapping_mul(0x9e37_79b1) >> (32 - HASH_BITS)) as usize
}

fn put_literal(block: &mut Vec<u8>, bytes: &[u8]) {
    let Some(length) = bytes.len().checked_sub(1) else { return };
    let number = length.to_le_bytes();
    // Up to 60 bytes the tag has the length; 60 … 63 there say that 1 … 4 bytes behind it have it.
    let behind = match length {
        0..60 => 0,
        60..0x100 => 1,
        0x100..0x1_0000 => 2,
        0x1_0000..0x100_0000 => 3,
        _ => 4,
    };
    let tag = if behind == 0 { number[0] << 2 } else { (59 + behind as u8) << 2 };
    block.push(tag);
    block.extend(&number[..behind]);
    block.extend(bytes);
}

fn put_copies(block: &mut Vec<u8>, offset: usize, mut length: usize) {
    while length > 0 {
        let part = length.min(*COPY.end());
        let tag = ((part - 1) << 2 | 0b10).to_le_bytes()[0];
        block.push(tag);
        block.extend(&offset.to_le_bytes()[..2]);
        length -= part;
    }
}

/// The bytes of a block, by the format's description alone; panics of what is none.
#[cfg(test)]
pub(super) fn decode_block(block: &[u8]) -> Vec<u8> {
    let end = block.iter().position(|byte| *byte < 0x80).expect("a length") + 1;
    let size = block[..end].iter().rev().fold(0, |sum, byte| sum << 7 | usize::from(byte & 0x7f));
    let (mut bytes, mut rest) = (Vec::new(), &block[end..]);
    let number =
        |bytes: &[u8]| bytes.iter().rev().fold(0, |sum, byte| sum << 8 | usize::from(*byte));
    while let Some((tag, behind)) = rest.split_first() {
        let high = usize::from(tag >> 2);
        if tag & 3 == 0 {
            let more = high.saturating_sub(59);
            let length = if more == 0 { high } else { number(&behind[..more]) } + 1;
            bytes.extend(&behind[more..more + length]);
            rest = &behind[more + length..];
        } else {
            let (length, wide) = match tag & 3 {
                1 => (4 + (high & 7), 1),
                2 => (high + 1, 2),
                _ => (high + 1, 4),
            };
            let above = if tag & 3 == 1 { (high >> 3) << 8 } else { 0 };
            let offset = above + number(&behind[..wide]);
            assert!(offset > 0 && offset <= bytes.len(), "a copy from before the begin");
            (0..length).for_each(|_| bytes.push(bytes[bytes.len() - offset]));
            rest = &behind[wide..];
        }
    }
    assert_eq!(bytes.len(), size);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_description_is_read() {
        // "xababab" is a literal "xab" and a copy of 4 bytes from 2 before
        // (format_description.txt).
        let block = [7, 2 << 2, b'x', b'a', b'b', 3 << 2 | 2, 2, 0];
        assert_eq!(decode_block(&block), b"xababab");
        // The same copy with an offset of one byte.
        assert_eq!(decode_block(&[7, 2 << 2, b'x', b'a', b'b', 1, 2]), b"xababab");
    }

    #[test]
    fn what_is_written_is_read_back_and_repetition_takes_no_room() {
        let noise: Vec<u8> = (0..200_000_u32)
            .map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8)
            .collect();
        for length in [0, 1, 3, 4, 5, 59, 60, 61, 64, 65, 255, 256, 257, 65_536, 65_537, 200_000] {
            let part = &noise[..length];
            assert_eq!(decode_block(&compressed(part)), part, "{length}");
            let same = vec![7; length];
            let block = compressed(&same);
            assert_eq!(decode_block(&block), same, "{length}");
            assert!(block.len() <= 3 * length / 64 + 10, "{} of {length}", block.len());
        }
        let line = b"linerate_mesh_delay_seconds{mesh=\"m\",from=\"a\",to=\"b\"} 0.0012\n";
        let text = line.repeat(2000);
        let block = compressed(&text);
        assert_eq!(decode_block(&block), text);
        // What is further back than an offset reaches is found in what came since.
        let far = [&noise[..80_000], &text[..], &noise[..80_000]].concat();
        assert_eq!(decode_block(&compressed(&far)), far);
    }
}
