//! The token that shows a server's policy who asks: from a file or from the environment, never
//! from the command line, where other users could read it.

use std::path::{Path, PathBuf};

use linerate_core::record::{AccessToken, Failure, Fault, Via};

use crate::paths;

/// The variable that holds the token where no file is named.
const VARIABLE: &str = "LINERATE_TOKEN";

/// Access token of the client.
#[derive(Debug, clap::Args)]
pub(super) struct AccessFlags {
    /// Show the server's policy the token in FILE; the server never gets it in clear [default: the
    /// environment's LINERATE_TOKEN, if set]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

impl AccessFlags {
    /// Refuses a file that nobody would be shown.
    /// # Errors
    /// When one is named.
    pub(super) fn unused(&self, reason: &str) -> Result<(), Failure> {
        self.token_file.as_ref().map_or(Ok(()), |file| {
            let object = file.display().to_string();
            Err(Failure::new(Fault::Usage, "use token", object, reason).advise("omit --token-file"))
        })
    }

    /// The token, where there is one.
    /// # Errors
    /// When the file cannot be read, either holds no token, or a file is named for a server of
    /// another program.
    pub(super) fn read_access_token(
        &self,
        via: Option<Via>,
    ) -> Result<Option<AccessToken>, Failure> {
        match (&self.token_file, via) {
            (Some(file), Some(_)) => {
                let reason = "only servers of linerate know such tokens";
                let object = file.display().to_string();
                Err(Failure::new(Fault::Usage, "use token", object, reason)
                    .advise("omit --token-file or --via"))
            }
            (Some(file), None) => read(file).map(Some),
            (None, Some(_)) => Ok(None),
            (None, None) => std::env::var(VARIABLE).map_or(Ok(None), |text| {
                AccessToken::new(&text).map(Some).ok_or_else(|| no_token(VARIABLE.to_owned()))
            }),
        }
    }
}

fn read(path: &Path) -> Result<AccessToken, Failure> {
    let text = std::fs::read_to_string(path);
    let text = text.map_err(|error| paths::unreadable("read token", path, &error))?;
    AccessToken::new(&text).ok_or_else(|| no_token(path.display().to_string()))
}

fn no_token(of: String) -> Failure {
    Failure::new(Fault::Usage, "read token", of, "not one word of 1 to 256 ASCII characters")
        .advise("the operator of the server makes one by `linerate policy token`")
}
