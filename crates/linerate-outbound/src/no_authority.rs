//! Authorities in a program that was built without TLS: none is believed.

use std::path::Path;

use linerate_core::record::{BuildPart, Failure};

/// Authorities that vouch for another end's certificate: there are none.
#[derive(Clone, Debug)]
pub enum Authority {}

impl Authority {
    /// Refuses.
    /// # Errors
    /// Always.
    pub fn read(_: Option<&Path>) -> Result<Self, Failure> {
        Err(Failure::not_built("check the certificate of", "another end", BuildPart::Tls))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_tls_no_authority_is_read_and_the_line_says_what_to_do() {
        let refusal = Authority::read(None).expect_err("refused");
        let said = refusal.to_string();
        assert_eq!(refusal.exit_code(), 2, "{said}");
        assert!(
            said.contains("certificate") && said.ends_with(&BuildPart::Tls.refusal()),
            "{said}"
        );
    }
}
