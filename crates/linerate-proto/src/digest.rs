//! SHA-256 (FIPS 180-4), in which form tokens are stored.

/// SHA-256 digest of `bytes`.
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    hmac_sha256::Hash::hash(bytes)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_example_of_the_standard_has_its_digest() {
        // FIPS 180-2, appendix B.1.
        let digest = super::sha256(b"abc");
        let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(digest, expected);
    }
}
