//! NATS as the wire of a mesh beyond fifty agents: the messages of HTTP on subjects.
//!
//! Beats, plans and joins are requests to whichever hub answers. Results go through a stream of
//! JetStream, which is a wire with some room and no record: what a broker acknowledged may be lost
//! (it writes to its disk later), so an agent drops a result only when the hub says, on the agent's
//! subject `stored`, that the *store* has it. `spec/mesh.md` has the subjects.
//!
//! Each message of an agent is signed by a key that only that agent has, and the hub takes it as
//! the agent's whose key it is: a broker can withhold and repeat, and can say nothing for an agent.

mod agent;
mod broker;
mod hub;
mod seal;

pub(super) use agent::AgentBus;
pub use hub::HubBus;

use std::time::Duration;

use async_nats::ConnectOptions;
use linerate_core::record::{Failure, Fault};
use linerate_outbound::Authority;

use super::address::HubAddress;

/// The hub's answer: a status as of HTTP.
const STATUS: &str = "Linerate-Status";
/// The message of results that an answer is about: the SHA-256 of its bytes, hexadecimal digits.
const BATCH: &str = "Linerate-Batch";
/// An agent's public key, and its signature, hexadecimal digits.
const KEY: &str = "Linerate-Key";
const SIGNATURE: &str = "Linerate-Signature";

/// Headers for the encodings that a requester accepts and that an answer has (RFC 9110 §12.5.3,
/// §8.4).
const ACCEPTS: &str = "Accept-Encoding";
const ENCODING: &str = "Content-Encoding";
/// Room for the subject and the headers within what a broker takes.
const HEAD_BYTES: usize = 4096;

/// A connection, and each answer of the broker, is there within this.
const WITHIN: Duration = Duration::from_secs(10);

/// A subject of an agent; a name may have dots, which part a subject.
fn subject(mesh: &str, agent: &str, what: &str) -> String {
    let token = |name: &str| name.replace('.', "~");
    format!("lr.v1.{}.{}.{what}", token(mesh), token(agent))
}

/// One of every agent of a mesh.
fn subjects(mesh: &str, what: &str) -> String {
    subject(mesh, "*", what)
}

/// The agent of a subject.
fn agent_in(subject: &str) -> Option<String> {
    subject.split('.').nth(3).map(|token| token.replace('~', "."))
}

/// Subject on which agents join the mesh whose plans a key signs.
fn join_subject(key: &str) -> String {
    format!("lr.v1.join.{key}")
}

/// Options of a connection to a broker whose certificate is checked by an authority.
fn options(address: &HubAddress, authority: Option<&Authority>) -> ConnectOptions {
    let options = ConnectOptions::new().name("linerate").connection_timeout(WITHIN);
    let options = options.request_timeout(Some(WITHIN));
    let options = match address.broker_credentials() {
        Some((user, password)) => options.user_and_password(user.to_owned(), password.to_owned()),
        None => options,
    };
    match authority {
        Some(authority) => options.tls_client_config(authority.config()).require_tls(true),
        None => options,
    }
}

fn runtime(threads: usize) -> Result<tokio::runtime::Runtime, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .thread_name("bus")
        .enable_all()
        .build();
    runtime.map_err(|error| {
        Failure::new(Fault::System, "start", "the threads of the bus", error.to_string())
    })
}

/// A connection of a test.
#[cfg(test)]
pub(super) fn connected(
    address: &HubAddress,
    authority: Option<&Authority>,
) -> (tokio::runtime::Runtime, async_nats::Client) {
    let runtime = runtime(1).expect("threads");
    let client = runtime.block_on(options(address, authority).connect(address.to_string()));
    (runtime, client.expect("the broker is there"))
}

/// An agent of a test that is many agents by one connection.
#[cfg(test)]
pub(super) struct OneOfMany {
    key: seal::AgentKey,
    beat: String,
}

#[cfg(test)]
impl OneOfMany {
    pub(super) fn from_secret(secret: &str, mesh: &str, agent: &str) -> Self {
        let key = seal::AgentKey::from_secret(secret).expect("a seed");
        Self { key, beat: subject(mesh, agent, "beat") }
    }

    /// The agent's public key, which identifies it to the hub, hexadecimal digits.
    pub(super) fn public(&self) -> String {
        self.key.public()
    }

    /// Asks as an agent does; whether it was answered well.
    pub(super) fn send_beat(
        &self,
        client: async_nats::Client,
        body: &str,
    ) -> impl Future<Output = bool> + Send + use<> {
        let mut headers = async_nats::HeaderMap::new();
        headers.insert(KEY, self.key.public().as_str());
        headers.insert(SIGNATURE, self.key.sign_message(&self.beat, body.as_bytes()).as_str());
        let request = async_nats::Request::new().headers(headers).payload(body.to_owned().into());
        let subject = self.beat.clone();
        async move {
            let answer = client.send_request(subject, request).await;
            answer.is_ok_and(|message| agent::header(&message, STATUS) == Some("200"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_dots_is_one_part_of_a_subject() {
        let of = subject("campus", "rack.7", "results");
        assert_eq!(of, "lr.v1.campus.rack~7.results");
        assert_eq!(agent_in(&of).as_deref(), Some("rack.7"));
        assert_eq!(subjects("m.n", "beat"), "lr.v1.m~n.*.beat");
        assert_eq!(agent_in("lr.v1.m"), None);
    }
}
