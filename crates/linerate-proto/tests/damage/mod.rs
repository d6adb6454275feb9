//! Damage that every reader of a peer's bytes has to bear: recordings cut short, and bits flipped.
#![allow(unreachable_pub, reason = "each test has this module for itself")]

/// Runs a reader on the bytes cut at each place, the whole among them.
pub fn cut(bytes: &[u8], run: impl Fn(&[u8])) {
    (0..=bytes.len()).for_each(|at| run(&bytes[..at]));
}

/// Runs a reader on the bytes with one bit flipped: each bit of the first `head` bytes, and one of
/// each byte of the rest.
pub fn flip(bytes: &[u8], head: usize, run: impl Fn(&[u8])) {
    let first = 0..bytes.len().min(head) * 8;
    let rest = (head..bytes.len()).map(|byte| byte * 8 + byte % 8);
    for bit in first.chain(rest) {
        let mut damaged = bytes.to_vec();
        damaged[bit / 8] ^= 1 << (bit % 8);
        run(&damaged);
    }
}
