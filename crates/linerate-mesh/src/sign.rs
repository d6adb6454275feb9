//! Signatures of plans: Ed25519 (RFC 8032) over the bytes of the plan's file.
//!
//! The key is a file of its own, which the hub does not need: whoever has it alone can make agents
//! run something. The signature lies beside the plan as `PLAN.sig`: two lines, the public key and
//! the signature, hexadecimal digits.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use linerate_core::mesh::SignedPlan;
use linerate_core::record::{Failure, Fault};
use linerate_engine::failure::words_of;

use super::hex;

/// A key that signs plans.
#[derive(Debug)]
pub struct SigningKey(Ed25519KeyPair);

impl SigningKey {
    /// Makes one and keeps it in a file that only this user reads (PKCS#8, hexadecimal digits).
    /// # Errors
    /// When the file is there already, or cannot be written.
    pub fn create_key_file(path: &Path) -> Result<Self, Failure> {
        let failed = |reason: String| {
            Failure::new(Fault::Usage, "make key", path.display().to_string(), reason)
                .advise("name a file that is not there, in a directory that is")
        };
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new())
            .map_err(|error| failed(error.to_string()))?;
        let mut options = std::fs::File::options();
        let mut file = options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .map_err(|error| failed(words_of(&error)))?;
        writeln!(file, "{}", hex::encode_bytes(document.as_ref()))
            .and_then(|()| file.sync_all())
            .map_err(|error| failed(words_of(&error)))?;
        Self::read(path)
    }

    /// Reads one.
    /// # Errors
    /// When the file cannot be read or has none.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let failed = |reason: String| {
            Failure::new(Fault::Usage, "read key", path.display().to_string(), reason)
                .advise("linerate mesh key FILE makes one")
        };
        let text = std::fs::read_to_string(path).map_err(|error| failed(words_of(&error)))?;
        let none = || failed("it has no key for plans".to_owned());
        let bytes = hex::decode_bytes(text.trim()).ok_or_else(none)?;
        Ed25519KeyPair::from_pkcs8(&bytes).map(Self).map_err(|_| none())
    }

    /// The public key, hexadecimal digits.
    pub fn public(&self) -> String {
        hex::encode_bytes(self.0.public_key().as_ref())
    }

    /// Signs a plan's text (Ed25519, RFC 8032); the result carries text, public key and signature.
    pub fn sign_plan(&self, text: &str) -> SignedPlan {
        let signature = hex::encode_bytes(self.0.sign(text.as_bytes()).as_ref());
        SignedPlan { text: text.to_owned(), key: self.public(), signature }
    }
}

/// Checks that a plan is signed by the key that it names.
/// # Errors
/// One line where it has not.
pub(super) fn verify(plan: &SignedPlan) -> Result<(), String> {
    let key = hex::decode_array::<32>(&plan.key).ok_or("its key is none")?;
    let signature = hex::decode_array::<64>(&plan.signature).ok_or("its signature is none")?;
    UnparsedPublicKey::new(&ED25519, key)
        .verify(plan.text.as_bytes(), &signature)
        .map_err(|_| "the signature is not of this plan and key".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signature_of_the_standard_is_taken_and_a_changed_one_is_not() {
        // RFC 8032 §7.1, test 2: the message is the byte 0x72, "r".
        let plan = SignedPlan {
            text: "r".to_owned(),
            key: "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c".to_owned(),
            signature: "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da\
                        085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
                .to_owned(),
        };
        assert_eq!(verify(&plan), Ok(()));
        for (text, signature) in [("s", plan.signature.clone()), ("r", "00".repeat(64))] {
            let changed = SignedPlan { text: text.to_owned(), signature, ..plan.clone() };
            assert!(verify(&changed).is_err());
        }
        assert!(verify(&SignedPlan { key: "3d40".to_owned(), ..plan }).is_err());
    }

    #[test]
    fn a_key_is_made_once_kept_for_its_owner_and_signs() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("mesh.key");
        let made = SigningKey::create_key_file(&path).expect("a key");
        let mode = std::fs::metadata(&path).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(SigningKey::create_key_file(&path).is_err(), "it is not written over");
        let read = SigningKey::read(&path).expect("the same");
        assert_eq!(read.public(), made.public());
        assert_eq!(verify(&read.sign_plan("mesh = \"m\"")), Ok(()));
    }
}
