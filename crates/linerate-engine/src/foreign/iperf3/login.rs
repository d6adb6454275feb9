//! Who may measure: a client's login and the guard of a server, as iperf3 does it.
//!
//! The token of a login is good for anybody who reads it until the clocks differ too much, and the
//! test that follows is neither encrypted nor bound to it; that is iperf3's protocol.
//!
//! A guard does the same work for every token, decrypted or not, and answers each failure alike, so
//! that answers say nothing about the padding (which is how such keys are attacked).

use std::path::Path;

use linerate_core::record::{Failure, Fault};
use linerate_proto::iperf3::{Credentials, Users, to_base64, token_bytes};
use linerate_sys::clock::wall_time;

use super::key_file::{Padding, read, wrong_file_failure};
use super::keys::{PrivateKey, PublicKey, sha256};

/// Seconds that clocks may differ by, unless told otherwise.
pub const SKEW_DEFAULT_S: u64 = 10;

/// A client's login: user, password and the server's public key.
#[derive(Clone)]
pub struct Login {
    user: String,
    password: String,
    key: PublicKey,
    padding: Padding,
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Login").field("user", &self.user).finish_non_exhaustive()
    }
}

impl Login {
    /// A user of the server whose public key is in the file.
    /// # Errors
    /// When the file holds no RSA key.
    pub fn new(
        user: String,
        password: String,
        public_key: &Path,
        padding: Padding,
    ) -> Result<Self, Failure> {
        Ok(Self { user, password, key: PublicKey::read(public_key)?, padding })
    }

    /// The token of this moment.
    pub(super) fn encrypted_token(&self) -> Result<String, Failure> {
        let credentials = Credentials {
            user: self.user.clone(),
            password: self.password.clone(),
            time_s: now_s(),
        };
        let encrypted = self.key.encrypt(credentials.to_text().as_bytes(), self.padding);
        encrypted.map(|bytes| to_base64(&bytes)).ok_or_else(|| {
            let reason = "user and password are longer than the key can hold";
            Failure::new(Fault::Usage, "encrypt the login of", &self.user, reason)
                .advise("use a longer key, or a shorter password")
        })
    }
}

/// A server's check of its clients' logins: its private key and the users.
#[derive(Debug)]
pub struct Guard {
    key: PrivateKey,
    users: Users,
    skew_s: u64,
    paddings: &'static [Padding],
}

impl Guard {
    /// Reads the private key and the users that are let in. With `older` the padding of iperf3
    /// until 3.16 is taken as well.
    /// # Errors
    /// When a file is not what it should be.
    pub fn new(
        private_key: &Path,
        users: &Path,
        skew_s: u64,
        older: bool,
    ) -> Result<Self, Failure> {
        let attempt = "read the users in";
        let key = PrivateKey::read(private_key)?;
        let text = read(users, attempt)?;
        let users = Users::parse(&text).map_err(|error| {
            wrong_file_failure(attempt, users, &error.to_string())
                .advise("create a digest with: printf '{USER}PASSWORD' | sha256sum")
        })?;
        let both = &[Padding::Oaep, Padding::Pkcs1][..];
        Ok(Self { key, users, skew_s, paddings: if older { both } else { &both[..1] } })
    }

    /// Lets a token in, or says to the log why not.
    pub(super) fn admit_token(&self, token: Option<&str>) -> Result<(), String> {
        let Some(token) = token else { return Err("it gives no user and password".to_owned()) };
        let bytes = token_bytes(token).unwrap_or_default();
        let read = |padding: &Padding| Credentials::parse(&self.key.decrypt(&bytes, *padding)?);
        let found: Vec<Option<Credentials>> = self.paddings.iter().map(read).collect();
        let nobody =
            || Credentials { user: String::new(), password: String::new(), time_s: i64::MIN };
        let credentials = found.into_iter().flatten().next();
        let is_readable = credentials.is_some();
        let credentials = credentials.unwrap_or_else(nobody);
        let hash = sha256(credentials.salted().as_bytes());
        let is_known = self.users.has_digest(&credentials.user, &hash);
        let is_timely = credentials.is_timely(now_s(), self.skew_s);
        let user = credentials.user.escape_debug();
        match (is_readable, is_timely, is_known) {
            (true, true, true) => Ok(()),
            (false, ..) => Err("its user and password cannot be read with this key".to_owned()),
            (_, false, _) => Err(format!("the clock of user {user} differs too much")),
            _ => Err(format!("user {user} is unknown, or the password is wrong")),
        }
    }
}

fn now_s() -> i64 {
    i64::try_from(wall_time().unix_millis() / 1000).unwrap_or(i64::MAX)
}

#[cfg(feature = "rsa")]
#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    /// A file of testdata/iperf3/users (its README says how it was made).
    fn test_file(name: &str) -> PathBuf {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/iperf3/users");
        PathBuf::from(folder).join(name)
    }

    fn test_guard(key: &str, skew_s: u64, older: bool) -> Guard {
        Guard::new(&test_file(key), &test_file("users"), skew_s, older).expect("sound files")
    }

    fn read_token(name: &str) -> String {
        std::fs::read_to_string(test_file(name)).expect("it is there").trim().to_owned()
    }

    fn login_token(user: &str, password: &str, padding: Padding) -> String {
        Login::new(user.to_owned(), password.to_owned(), &test_file("public.pem"), padding)
            .and_then(|login| login.encrypted_token())
            .expect("short")
    }

    /// Any clock will do.
    const EVER: u64 = u64::MAX;

    #[test]
    fn tokens_of_iperf3_and_of_openssl_are_read_with_either_form_of_the_key() {
        for key in ["private.pem", "private-pkcs1.pem"] {
            let guard = test_guard(key, EVER, true);
            for name in ["token-3.12", "token-oaep"] {
                assert_eq!(guard.admit_token(Some(&read_token(name))), Ok(()), "{name} with {key}");
            }
        }
        let strict = test_guard("private.pem", EVER, false);
        assert_eq!(strict.admit_token(Some(&read_token("token-oaep"))), Ok(()));
        let said =
            strict.admit_token(Some(&read_token("token-3.12"))).expect_err("the older padding");
        assert!(said.contains("cannot be read"), "{said}");
    }

    #[test]
    fn a_token_that_is_old_is_not_let_in() {
        // The clock of this machine is not that of November 2026, or it is for a moment only.
        let said = test_guard("private.pem", 1, true).admit_token(Some(&read_token("token-oaep")));
        assert!(said.is_err_and(|said| said == "the clock of user mario differs too much"));
    }

    #[test]
    fn own_tokens_are_let_in_where_user_and_password_are_right() {
        for padding in [Padding::Oaep, Padding::Pkcs1] {
            let guard = test_guard("private.pem", 3600, padding == Padding::Pkcs1);
            for (user, password, ok) in [
                ("mario", "rossi", true),
                ("luigi", "verdi", true),
                ("mario", "verdi", false),
                ("mario", "", false),
                ("peach", "rossi", false),
                ("", "", false),
            ] {
                let answer = guard.admit_token(Some(&login_token(user, password, padding)));
                assert_eq!(answer.is_ok(), ok, "{user} {password}: {answer:?}");
            }
        }
    }

    #[test]
    fn what_is_no_token_is_refused() {
        let guard = test_guard("private.pem", EVER, true);
        let whole = login_token("mario", "rossi", Padding::Oaep);
        for wrong in ["", "====", "rossi", &whole[..100], &whole[4..], &whole.repeat(8)] {
            assert!(guard.admit_token(Some(wrong)).is_err(), "{wrong}");
        }
        assert!(guard.admit_token(None).is_err());
    }

    #[test]
    fn files_that_are_not_what_they_should_be_are_named() {
        let check = |key: &str, users: &str, parts: &[&str]| {
            let failure =
                Guard::new(&test_file(key), &test_file(users), 10, false).expect_err("wrong files");
            let said = failure.to_string();
            assert!(parts.iter().all(|part| said.contains(part)), "{said}");
            assert!(!said.contains('\n'), "{said}");
        };
        check("private-locked.pem", "users", &["private-locked.pem", "passphrase", "openssl rsa"]);
        check("public.pem", "users", &["holds no \"BEGIN PRIVATE KEY\""]);
        check("nowhere.pem", "users", &["nowhere.pem", "no such file"]);
        check("private.pem", "public.pem", &["line 1 is not a name", "sha256sum"]);
        let login =
            |user: String, key| Login::new(user, String::new(), &test_file(key), Padding::Oaep);
        let wrong = login("a".to_owned(), "users").expect_err("no key");
        assert!(wrong.to_string().contains("openssl rsa -in PRIVATE -pubout"), "{wrong}");
        let long = login("a".repeat(250), "public.pem").expect("a key");
        assert!(
            long.encrypted_token()
                .is_err_and(|said| said.to_string().contains("longer than the key"))
        );
        assert!(!format!("{long:?}").contains("password"));
    }
}
