//! Login with an access token over the native protocol, without sending the token in clear
//! (spec/native.md, "Login").
//!
//! ```text
//! key   = SHA-256(token)                        stored at the server
//! info  = "linerate login 1" | server's nonce (32) | client's nonce (32)
//! proof = token XOR HKDF-Expand(key, info, length of the token)      RFC 5869 §2.3
//! ```
//!
//! The server decrypts the token from the proof with each stored key and compares the token's
//! digest with that key: SCRAM's construction (RFC 5802 §3), so that a stolen key is not enough to
//! log in. Left out: protection of the messages after the login.

use hmac_sha256::HKDF;
use linerate_core::record::AccessToken;
use serde::{Deserialize, Serialize};

use crate::digest::sha256;

/// Bytes of a nonce.
pub const NONCE_BYTES: usize = 32;

const LABEL: &[u8; 16] = b"linerate login 1";

/// A random number that is used once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Nonce(pub [u8; NONCE_BYTES]);

/// The client's answer to a server's nonce.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    /// Nonce of the client.
    pub nonce: Nonce,
    /// The token XOR the derived key, 1 to 256 bytes.
    pub proof: HexBytes,
}

/// Bytes written as hexadecimal digits, at most as many as a token has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct HexBytes(pub Vec<u8>);

/// Token and nonce with which a client answers a server's nonce.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NativeCredentials {
    /// Access token of the client.
    pub token: AccessToken,
    /// Random number for this login only.
    pub nonce: Nonce,
}

impl NativeCredentials {
    /// Computes the answer to the server's nonce.
    pub fn answer_challenge(&self, challenge: Nonce) -> Proof {
        let token = self.token.as_bytes();
        let cover = derive_mask(&sha256(token), challenge, self.nonce, token.len());
        Proof { nonce: self.nonce, proof: HexBytes(xor_bytes(token, &cover)) }
    }
}

impl Proof {
    /// The stored digest that matches the token in this proof. All digests are tried, so that the
    /// time does not reveal which one matches.
    pub fn matching_digest(
        &self,
        challenge: Nonce,
        digests: impl Iterator<Item = [u8; 32]>,
    ) -> Option<[u8; 32]> {
        digests.fold(None, |found, digest| {
            let cover = derive_mask(&digest, challenge, self.nonce, self.proof.0.len());
            let shown = sha256(&xor_bytes(&self.proof.0, &cover));
            let differ = digest.iter().zip(shown).fold(0, |all, (a, b)| all | (a ^ b));
            if differ == 0 { Some(digest) } else { found }
        })
    }
}

fn derive_mask(key: &[u8; 32], server: Nonce, client: Nonce, length: usize) -> Vec<u8> {
    let info = [&LABEL[..], &server.0, &client.0].concat();
    let mut cover = vec![0; length.min(AccessToken::BYTES_MAX)];
    HKDF::expand(&mut cover, key, info);
    cover
}

fn xor_bytes(bytes: &[u8], cover: &[u8]) -> Vec<u8> {
    bytes.iter().zip(cover).map(|(byte, cover)| byte ^ cover).collect()
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2);
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    pairs
        .map(|pair| match pair {
            [high, low] => Some((digit(high)? * 16 + digit(low)?) as u8),
            _ => None,
        })
        .collect()
}

impl From<Nonce> for String {
    fn from(nonce: Nonce) -> Self {
        to_hex(&nonce.0)
    }
}

impl TryFrom<String> for Nonce {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let bytes = from_hex(&text).and_then(|bytes| bytes.try_into().ok());
        bytes.map(Self).ok_or("a nonce is 64 hexadecimal digits")
    }
}

impl From<HexBytes> for String {
    fn from(bytes: HexBytes) -> Self {
        to_hex(&bytes.0)
    }
}

impl TryFrom<String> for HexBytes {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let fits = |bytes: &Vec<u8>| (1..=AccessToken::BYTES_MAX).contains(&bytes.len());
        let bytes = from_hex(&text).filter(fits);
        bytes.map(Self).ok_or("a proof is 2 to 512 hexadecimal digits")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: Nonce = Nonce([0x11; 32]);

    fn credentials(token: &str) -> NativeCredentials {
        let token = AccessToken::new(token).expect("one word");
        NativeCredentials { token, nonce: Nonce([0x22; 32]) }
    }

    #[test]
    fn a_proof_is_what_another_program_computes() {
        // Python 3.11: hmac and hashlib, HKDF-Expand written from RFC 5869 §2.3.
        let proof = credentials("noc-7f3a").answer_challenge(SERVER).proof;
        assert_eq!(String::from(proof), "3deccb553a8256cb");
        // Two blocks of the expansion and a part of a third.
        let proof = credentials(&"0123456789abcdef".repeat(5)).answer_challenge(SERVER).proof;
        assert_eq!(
            String::from(proof),
            "059088927a2a556da1adf0898fc4b294280fc285350531cb799d4ed3e4d20446cecb53da920e3062cde01e23ba0f355023d1fa63f1cb3d550babcc8dfd424be765c864605c8169b9940a37f2291c861e"
        );
    }

    #[test]
    fn only_the_token_itself_and_only_this_login_is_known() {
        let digests = ["one", "two"].map(|token| sha256(token.as_bytes()));
        let proof = credentials("two").answer_challenge(SERVER);
        assert_eq!(proof.matching_digest(SERVER, digests.into_iter()), Some(digests[1]));
        // Heard and shown again.
        assert_eq!(proof.matching_digest(Nonce([0x12; 32]), digests.into_iter()), None);
        assert_eq!(
            credentials("three")
                .answer_challenge(SERVER)
                .matching_digest(SERVER, digests.into_iter()),
            None
        );
        // Who has the digest alone shows that.
        let stolen = credentials(&to_hex(&digests[1])).answer_challenge(SERVER);
        assert_eq!(stolen.matching_digest(SERVER, digests.into_iter()), None);
        assert_eq!(proof.matching_digest(SERVER, std::iter::empty()), None);
        for bit in 0..24 {
            let mut damaged = proof.clone();
            damaged.proof.0[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(damaged.matching_digest(SERVER, digests.into_iter()), None, "bit {bit}");
        }
    }

    #[test]
    fn what_is_no_proof_is_refused_when_it_is_read() {
        let read = |nonce: &str, proof: &str| {
            let json = serde_json::json!({"nonce": nonce, "proof": proof});
            linerate_core::tree::from_value::<Proof>(json)
        };
        let nonce = "ab".repeat(32);
        let written = linerate_core::tree::to_value(read(&nonce, "00fF").expect("hexadecimal"))
            .expect("plain");
        assert_eq!(written, serde_json::json!({"nonce": nonce, "proof": "00ff"}));
        let long = "00".repeat(257);
        for (nonce, proof) in [
            (nonce.as_str(), ""),
            (&nonce, "0"),
            (&nonce, "0g"),
            (&nonce, "\u{e9}"),
            (&nonce, &long),
            ("ab", "00"),
            ("", "00"),
        ] {
            assert!(read(nonce, proof).is_err(), "{nonce} {proof}");
        }
    }
}
