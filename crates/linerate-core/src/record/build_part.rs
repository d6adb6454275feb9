//! Parts of the program that its default build leaves out (features of `Cargo.toml`), and the one
//! line that refuses what needs one: the part that is missing, and the programs that have it.

use super::{Failure, Fault};

/// Advice for a build that leaves parts out.
const HAS_ALL: &str = "use the program of a package, or build all of it: ./dev build full";

/// A part that a build may leave out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuildPart {
    /// TLS as server and as client: feature `tls`.
    Tls,
    /// Signatures of plans of a mesh: feature `tls`.
    PlanSignatures,
    /// Certificates by ACME: feature `acme`.
    Acme,
    /// Datagrams of browsers: feature `datagrams`.
    WebTransport,
    /// RSA, by which users of iperf3 log in: feature `rsa`.
    Rsa,
    /// A mesh beyond one hub, and its archive: feature `scale`.
    Scale,
}

impl BuildPart {
    /// Name of the part, for users.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tls => "TLS",
            Self::PlanSignatures => "signatures of plans",
            Self::Acme => "ACME",
            Self::WebTransport => "WebTransport",
            Self::Rsa => "users of iperf3 (RSA)",
            Self::Scale => "NATS, PostgreSQL and Parquet",
        }
    }

    fn reason(self) -> String {
        format!("this program was built without {}", self.name())
    }

    /// The reason and the next step, for an error that has no place for both.
    pub fn refusal(self) -> String {
        format!("{}; {HAS_ALL}", self.reason())
    }
}

impl Failure {
    /// The refusal of an attempt that needs a part which this program was built without.
    pub fn not_built(
        attempt: impl Into<String>,
        object: impl Into<String>,
        part: BuildPart,
    ) -> Self {
        Self::new(Fault::Usage, attempt, object, part.reason()).advise(HAS_ALL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_one_line_with_the_part_that_is_missing_and_where_it_is() {
        let failure = Failure::not_built("order a certificate by", "--acme", BuildPart::Acme);
        let expected = "order a certificate by --acme: this program was built without ACME; use \
                        the program of a package, or build all of it: ./dev build full";
        assert_eq!((failure.to_string().as_str(), failure.exit_code()), (expected, 2));
        // The same words where an error has one place for both.
        assert!(expected.ends_with(&BuildPart::Acme.refusal()));
    }
}
