//! Measuring for months: a plan kept by one host (`schedule`), and a mesh: the hub that many agents
//! join, in `linerate serve`, and the agent. `alert` hands on what both find.
//!
//! An agent dials out and nobody dials in. What it runs it takes from a signed plan alone, with or
//! without the hub; what it measures stays in its own store until the hub's has it. A hub that was
//! taken over can withhold plans and results, and can make no agent run anything. The calendar,
//! the plans and the messages are values of `linerate_core`; HTTP is the server's.

mod address;
mod agent;
pub mod alert;
mod answer;
mod beats;
mod booking;
#[cfg(feature = "scale")]
mod bus;
mod client;
mod clock;
mod found;
mod further;
mod hex;
mod hub;
mod incidents;
mod meet;
#[cfg(all(test, feature = "tls"))]
#[path = "no_sign.rs"]
#[allow(dead_code, unreachable_pub, reason = "its refusals alone are tested")]
mod no_sign;
mod pack;
mod plan;
mod refused;
mod results;
pub mod schedule;
#[cfg(feature = "tls")]
mod sign;
#[cfg(not(feature = "tls"))]
#[path = "no_sign.rs"]
mod sign;
mod silence;
mod spool;
mod talk;
#[cfg(any(test, all(feature = "test-support", feature = "tls")))]
pub mod tests;
mod watch;

pub use address::HubAddress;
pub use agent::{AgentEnded, AgentOptions, JoinedAgent};
pub use booking::{BookingRequest, What, book_run};
#[cfg(feature = "scale")]
pub use bus::HubBus;
pub use hub::Hub;
pub use linerate_outbound::Authority;
pub use plan::signature_file;
pub use plan::{Checked, load_mesh_matrix, parse_plan_text, signed};
pub use refused::HubRefusal;
pub use sign::SigningKey;
pub use watch::watch_mesh;

use linerate_core::mesh::SignedPlan;
use linerate_proto::digest::sha256;
use linerate_sys::clock::random_bytes;

/// Prefix of a token, by which people recognise one.
const TOKEN: &str = "lrm1";

/// A token for one agent: a secret part for the hub, and the key that signs plans, which the agent
/// believes because whoever runs the mesh has handed it over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinToken {
    /// Secret part for the hub, 32 hexadecimal digits.
    pub secret: String,
    /// Public key that signs plans (Ed25519), 64 hexadecimal digits.
    pub key: String,
}

impl JoinToken {
    /// Makes a new token for the mesh of a plan; it carries the key that signed the plan.
    pub fn generate_for_plan(plan: &SignedPlan) -> Self {
        Self { secret: hex::encode_bytes(&random_bytes::<16>()), key: plan.key.clone() }
    }

    /// The token as text, to be handed to the agent's host.
    pub fn encoded_text(&self) -> String {
        format!("{TOKEN}.{}.{}", self.secret, self.key)
    }

    /// One that was handed over.
    /// # Errors
    /// One line where it is none.
    pub fn read(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.trim().split('.').collect();
        let [TOKEN, secret, key] = parts.as_slice() else {
            return Err("a token is lrm1.SECRET.KEY, as linerate mesh token prints it".to_owned());
        };
        let whole =
            hex::decode_array::<16>(secret).is_some() && hex::decode_array::<32>(key).is_some();
        let read = || Self { secret: (*secret).to_owned(), key: (*key).to_owned() };
        whole.then(read).ok_or_else(|| "the token is cut or changed".to_owned())
    }

    /// Digest of the token's secret part, which the hub keeps in its place.
    pub fn digest(&self) -> String {
        digest(&self.secret)
    }
}

/// Digest of a secret: SHA-256 of its text, hexadecimal digits.
fn digest(secret: &str) -> String {
    hex::encode_bytes(&sha256(secret.as_bytes()))
}

#[cfg(test)]
mod token_tests {
    use super::*;

    #[test]
    fn a_token_is_read_as_it_was_printed_and_not_when_cut() {
        let key = "ab".repeat(32);
        let plan = SignedPlan { text: String::new(), key: key.clone(), signature: String::new() };
        let token = JoinToken::generate_for_plan(&plan);
        assert_eq!(JoinToken::read(&token.encoded_text()), Ok(token.clone()));
        assert_ne!(JoinToken::generate_for_plan(&plan).secret, token.secret);
        let text = token.encoded_text();
        for cut in [&text[..text.len() - 1], "", "lrm1..", "lrm2.a.b"] {
            assert!(JoinToken::read(cut).is_err(), "{cut}");
        }
    }
}
