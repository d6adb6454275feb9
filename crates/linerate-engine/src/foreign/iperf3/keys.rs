//! RSA keys in the files that `openssl` writes (RFC 7468), and what iperf3 does with them.
//!
//! Left out: keys under a passphrase, and keys of less than 2048 bits, which the library refuses.

use std::path::Path;

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::rsa::{
    OAEP_SHA1_MGF1SHA1, OaepPrivateDecryptingKey, OaepPublicEncryptingKey,
    Pkcs1PrivateDecryptingKey, Pkcs1PublicEncryptingKey, PrivateDecryptingKey, PublicEncryptingKey,
};
use linerate_core::record::Failure;
use linerate_proto::iperf3::from_base64;

use super::key_file::{Padding, read, wrong_file_failure};

/// The key that a server gives to its users.
#[derive(Clone, Debug)]
pub(super) struct PublicKey(PublicEncryptingKey);

/// The key that a server keeps.
#[derive(Debug)]
pub(super) struct PrivateKey {
    oaep: OaepPrivateDecryptingKey,
    pkcs1: Pkcs1PrivateDecryptingKey,
}

impl PublicKey {
    /// Reads `-----BEGIN PUBLIC KEY-----`.
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let fail = |reason: &str| wrong_file_failure("read the public key in", path, reason);
        let text = read(path, "read the public key in")?;
        let der = pem_bytes(&text, "PUBLIC KEY").ok_or_else(|| {
            fail("it holds no \"BEGIN PUBLIC KEY\"")
                .advise("create it with: openssl rsa -in PRIVATE -pubout -out PUBLIC")
        })?;
        PublicEncryptingKey::from_der(&der)
            .map(Self)
            .map_err(|_| fail("it is no RSA key of 2048 to 8192 bits"))
    }

    /// Encrypts a text; none where it is too long for the key.
    pub(super) fn encrypt(&self, text: &[u8], padding: Padding) -> Option<Vec<u8>> {
        let mut room = vec![0; self.0.key_size_bytes()];
        let encrypted = match padding {
            Padding::Oaep => OaepPublicEncryptingKey::new(self.0.clone())
                .and_then(|key| key.encrypt(&OAEP_SHA1_MGF1SHA1, text, &mut room, None).map(drop)),
            Padding::Pkcs1 => Pkcs1PublicEncryptingKey::new(self.0.clone())
                .and_then(|key| key.encrypt(text, &mut room).map(drop)),
        };
        encrypted.ok().map(|()| room)
    }
}

impl PrivateKey {
    /// Reads `-----BEGIN PRIVATE KEY-----` or `-----BEGIN RSA PRIVATE KEY-----`.
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let fail = |reason: &str| wrong_file_failure("read the private key in", path, reason);
        let text = read(path, "read the private key in")?;
        if text.contains("ENCRYPTED") {
            return Err(fail("it is under a passphrase")
                .advise("remove the passphrase with: openssl rsa -in FILE -out OPEN"));
        }
        let whole = pem_bytes(&text, "PRIVATE KEY");
        let inner = || pem_bytes(&text, "RSA PRIVATE KEY").map(|inner| wrapped(&inner));
        let der = whole.or_else(inner).ok_or_else(|| fail("it holds no \"BEGIN PRIVATE KEY\""))?;
        let key = PrivateDecryptingKey::from_pkcs8(&der)
            .map_err(|_| fail("it is no RSA key of 2048 to 8192 bits"))?;
        let both = OaepPrivateDecryptingKey::new(key.clone())
            .and_then(|oaep| Ok((oaep, Pkcs1PrivateDecryptingKey::new(key)?)));
        let (oaep, pkcs1) = both.map_err(|_| fail("it cannot be used"))?;
        Ok(Self { oaep, pkcs1 })
    }

    /// Decrypts; none where that gives nothing.
    pub(super) fn decrypt(&self, bytes: &[u8], padding: Padding) -> Option<Vec<u8>> {
        let mut room = vec![0; self.oaep.min_output_size()];
        let text = match padding {
            Padding::Oaep => self.oaep.decrypt(&OAEP_SHA1_MGF1SHA1, bytes, &mut room, None),
            Padding::Pkcs1 => self.pkcs1.decrypt(bytes, &mut room),
        };
        text.ok().map(|text| text.to_vec())
    }
}

/// The digest in which a server keeps the passwords of its users.
pub(super) fn sha256(text: &[u8]) -> Vec<u8> {
    digest(&SHA256, text).as_ref().to_vec()
}

/// The bytes between the lines of a label.
fn pem_bytes(text: &str, label: &str) -> Option<Vec<u8>> {
    let (_, rest) = text.split_once(&format!("-----BEGIN {label}-----"))?;
    let (inside, _) = rest.split_once(&format!("-----END {label}-----"))?;
    from_base64(inside)
}

/// A key of PKCS#1 (RFC 8017 A.1.2) in the frame of PKCS#8 (RFC 5208 §5): version 0, the
/// identifier of RSA (1.2.840.113549.1.1.1, no parameters), and the key as octets.
fn wrapped(key: &[u8]) -> Vec<u8> {
    const VERSION_AND_RSA: [u8; 18] = [
        0x02, 0x01, 0x00, 0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01,
        0x01, 0x05, 0x00,
    ];
    let octets = [&[0x04][..], &der_length(key.len()), key].concat();
    let inside = [&VERSION_AND_RSA[..], &octets].concat();
    [&[0x30][..], &der_length(inside.len()), &inside].concat()
}

/// A length in DER (X.690 §8.1.3): below 128 as it is, else behind the number of its bytes.
fn der_length(length: usize) -> Vec<u8> {
    let bytes = length.to_be_bytes();
    let used = &bytes[bytes.iter().position(|byte| *byte != 0).unwrap_or(bytes.len() - 1)..];
    match used {
        [short @ 0..=127] => vec![*short],
        long => [&[0x80 | long.len() as u8][..], long].concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::der_length;

    #[test]
    fn lengths_are_those_of_der() {
        // X.690 §8.1.3.5: 201 is 81 C9.
        for (length, bytes) in [
            (0, &[0][..]),
            (127, &[0x7f]),
            (128, &[0x81, 0x80]),
            (201, &[0x81, 0xc9]),
            (1190, &[0x82, 0x04, 0xa6]),
        ] {
            assert_eq!(der_length(length), bytes, "{length}");
        }
    }
}
