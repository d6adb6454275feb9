//! Bytes as hexadecimal digits.

/// The digits of some bytes.
pub(super) fn encode_bytes(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes of some digits; none where they are others.
pub(super) fn decode_bytes(text: &str) -> Option<Vec<u8>> {
    if !text.is_ascii() || !text.len().is_multiple_of(2) {
        return None;
    }
    let pairs = text.as_bytes().chunks_exact(2);
    let byte = |pair: &[u8]| {
        let digits = pair.iter().all(u8::is_ascii_hexdigit);
        digits.then(|| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())?
    };
    pairs.map(byte).collect()
}

/// So many bytes; none where there are others.
pub(super) fn decode_array<const N: usize>(text: &str) -> Option<[u8; N]> {
    decode_bytes(text)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_bytes_and_anything_else_is_none() {
        assert_eq!(encode_bytes(&[0, 0xab, 0x7f]), "00ab7f");
        assert_eq!(decode_array("00aB7f"), Some([0, 0xab, 0x7f]));
        for wrong in ["00ab7", "00ab7g", "+0ab7f", "00ab7f00", "", "äb7f0"] {
            assert_eq!(decode_array::<3>(wrong), None, "{wrong}");
        }
    }
}
