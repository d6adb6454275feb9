//! Signatures of an agent's messages: Ed25519 (RFC 8032) by the key whose seed is its secret, over
//! the subject, a line feed, and the bytes of the message.

use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};

use super::super::hex;

/// Ed25519 key by which an agent signs its messages to the hub over NATS.
#[derive(Debug)]
pub(super) struct AgentKey(Ed25519KeyPair);

impl AgentKey {
    /// The key whose seed is a secret of 64 hexadecimal digits; none for any other text.
    pub(super) fn from_secret(secret: &str) -> Option<Self> {
        let seed = hex::decode_array::<32>(secret)?;
        Ed25519KeyPair::from_seed_unchecked(&seed).ok().map(Self)
    }

    /// The public key: by it the hub knows the agent.
    pub(super) fn public(&self) -> String {
        hex::encode_bytes(self.0.public_key().as_ref())
    }

    /// The signature of a message on a subject.
    pub(super) fn sign_message(&self, subject: &str, body: &[u8]) -> String {
        hex::encode_bytes(self.0.sign(&signed(subject, body)).as_ref())
    }
}

fn signed(subject: &str, body: &[u8]) -> Vec<u8> {
    [subject.as_bytes(), b"\n", body].concat()
}

/// True where a key's signature of a message on a subject is valid.
pub(super) fn is_signed(key: &str, signature: &str, subject: &str, body: &[u8]) -> bool {
    let (key, signature) = (hex::decode_array::<32>(key), hex::decode_array::<64>(signature));
    let Some((key, signature)) = key.zip(signature) else { return false };
    UnparsedPublicKey::new(&ED25519, key).verify(&signed(subject, body), &signature).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_makes_the_key_of_the_standard_and_a_message_of_another_subject_is_not_taken() {
        // RFC 8032 §7.1, test 1.
        let secret = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
        let key = AgentKey::from_secret(secret).expect("a seed");
        let public = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
        assert_eq!(key.public(), public);
        let signature = key.sign_message("lr.v1.m.a.beat", b"{}");
        assert!(is_signed(public, &signature, "lr.v1.m.a.beat", b"{}"));
        assert!(!is_signed(public, &signature, "lr.v1.m.b.beat", b"{}"));
        assert!(!is_signed(public, &signature, "lr.v1.m.a.beat", b"{ }"));
        let other = AgentKey::from_secret(&"11".repeat(32)).expect("a seed");
        assert!(!is_signed(&other.public(), &signature, "lr.v1.m.a.beat", b"{}"));
        assert!(!is_signed("none", &signature, "lr.v1.m.a.beat", b"{}"));
        assert!(AgentKey::from_secret("short").is_none());
    }
}
