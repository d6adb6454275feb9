//! Damage that every reader of a peer's bytes has to bear: recordings cut short, and bits flipped.

/// Runs a reader on each recording, cut and flipped.
pub(crate) fn all(corpus: &[Vec<u8>], head: usize, run: impl Fn(&[u8])) {
    for bytes in corpus {
        cut(bytes, &run);
        flip(bytes, head, &run);
    }
}

/// The bytes cut at each place, the whole among them.
fn cut(bytes: &[u8], run: impl Fn(&[u8])) {
    (0..=bytes.len()).for_each(|at| run(&bytes[..at]));
}

/// The bytes with one bit flipped: each bit of the first `head` bytes, and one of each byte of the
/// rest.
fn flip(bytes: &[u8], head: usize, run: impl Fn(&[u8])) {
    let first = 0..bytes.len().min(head) * 8;
    let rest = (head..bytes.len()).map(|byte| byte * 8 + byte % 8);
    for bit in first.chain(rest) {
        let mut damaged = bytes.to_vec();
        damaged[bit / 8] ^= 1 << (bit % 8);
        run(&damaged);
    }
}
