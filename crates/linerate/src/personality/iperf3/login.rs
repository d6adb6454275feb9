//! Who may measure: the flags of a login, and those of a server that asks for one.

use std::path::PathBuf;

use linerate_core::record::{Failure, Fault};
use linerate_engine::failure::words_of;
use linerate_engine::foreign::iperf3::{Guard, Login, Padding, SKEW_DEFAULT_S};

use super::asked::Iperf3Options;

/// Environment variable with the password; without it the program asks for one.
const PASSWORD_VARIABLE: &str = "IPERF3_PASSWORD";

/// The login of a client, where the flags give a user.
pub(super) fn client_login(asked: &Iperf3Options) -> Result<Option<Login>, Failure> {
    let (Some(user), Some(key)) = (&asked.username, &asked.public_key) else { return Ok(None) };
    let padding = if asked.pkcs1_padding { Padding::Pkcs1 } else { Padding::Oaep };
    let password = match std::env::var(PASSWORD_VARIABLE) {
        Ok(password) => password,
        Err(_) => linerate_sys::password::read_password("Password: ").map_err(|error| {
            Failure::new(Fault::Usage, "read the password of", user, words_of(&error))
                .advise(format!("put it into {PASSWORD_VARIABLE}"))
        })?,
    };
    Login::new(user.clone(), password, key, padding).map(Some)
}

/// The guard of a server that asks for logins, where the flags give its files.
pub(super) fn login_guard(asked: &Iperf3Options) -> Result<Option<Guard>, Failure> {
    let (Some(key), Some(users)) = (&asked.private_key, &asked.users) else { return Ok(None) };
    let skew_s = asked.skew_s.unwrap_or(SKEW_DEFAULT_S);
    Guard::new(key, users, skew_s, asked.pkcs1_padding).map(Some)
}

/// Flags of a server that asks iperf3's clients who they are.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Users of iperf3")]
pub(crate) struct GuardFlags {
    /// Require a user name and password from iperf3 clients, encrypted for this RSA private key
    #[arg(long, value_name = "FILE", requires = "authorized_users_path")]
    rsa_private_key_path: Option<PathBuf>,
    /// File of authorized users, one per line: NAME,SHA-256 of '{NAME}PASSWORD' in hex
    #[arg(long, value_name = "FILE", requires = "rsa_private_key_path")]
    authorized_users_path: Option<PathBuf>,
    /// Maximum clock difference between client and server in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = SKEW_DEFAULT_S,
          value_parser = clap::value_parser!(u64).range(1..))]
    time_skew_threshold: u64,
    /// Also accept the RSA padding (PKCS #1 v1.5) of iperf3 before 3.17
    #[arg(long)]
    use_pkcs1_padding: bool,
}

impl GuardFlags {
    /// The guard, where there is one.
    pub(crate) fn login_guard(&self) -> Result<Option<Guard>, Failure> {
        let (Some(key), Some(users)) = (&self.rsa_private_key_path, &self.authorized_users_path)
        else {
            return Ok(None);
        };
        Guard::new(key, users, self.time_skew_threshold, self.use_pkcs1_padding).map(Some)
    }
}
