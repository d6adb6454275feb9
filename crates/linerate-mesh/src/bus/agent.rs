//! An agent's end of the bus: it asks as over HTTP, and waits for each answer.

use std::time::Duration;

use async_nats::jetstream;
use async_nats::{Client, HeaderMap, Message, Request, Subscriber};
use futures_util::StreamExt;
use linerate_outbound::Authority;
use linerate_proto::digest::sha256;
use tokio::runtime::Runtime;
use tokio::sync::Mutex;

use super::super::address::HubAddress;
use super::super::hex;
use super::super::pack::{ANSWER_BYTES_MAX, GZIP, packed, unpacked};
use super::seal::AgentKey;
use super::{
    ACCEPTS, BATCH, ENCODING, HEAD_BYTES, KEY, SIGNATURE, STATUS, join_subject, options, runtime,
    subject,
};

/// Longest wait for the hub's word that it has stored results which the broker has taken.
const STORED_WITHIN: Duration = Duration::from_secs(if cfg!(test) { 3 } else { 30 });

/// Status and body of an answer, as over HTTP.
pub(in super::super) type Answered = (u16, Vec<u8>);

/// An agent's connection to a broker, which is made again whenever it breaks.
pub(in super::super) struct AgentBus {
    runtime: Runtime,
    client: Client,
    key: AgentKey,
    /// Subscription to the hub's confirmations of stored results; none before the first results.
    stored: Mutex<Option<Subscriber>>,
}

impl std::fmt::Debug for AgentBus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentBus").finish_non_exhaustive()
    }
}

impl AgentBus {
    /// Connects with an agent's secret; a broker that is away is tried again.
    pub(in super::super) fn connect(
        address: &HubAddress,
        authority: Option<&Authority>,
        secret: &str,
    ) -> Result<Self, String> {
        let runtime = runtime(1).map_err(|failure| failure.to_string())?;
        let options = options(address, authority).retry_on_initial_connect();
        let client = runtime.block_on(options.connect(address.to_string()));
        let client = client.map_err(|error| error.to_string())?;
        let key = AgentKey::from_secret(secret).ok_or("its secret is none")?;
        Ok(Self { runtime, client, key, stored: Mutex::default() })
    }

    /// The agent's public key, which identifies it to the hub, hexadecimal digits.
    pub(in super::super) fn public(&self) -> String {
        self.key.public()
    }

    /// Asks to join; the token in the message is the only proof.
    pub(in super::super) fn request_join(&self, key: &str, body: &str) -> Result<Answered, String> {
        self.request(join_subject(key), body)
    }

    /// Sends a request as an agent of a mesh; `what` is `beat`, `plan` or `results`.
    pub(in super::super) fn request_as_agent(
        &self,
        mesh: &str,
        agent: &str,
        what: &str,
        body: &str,
    ) -> Result<Answered, String> {
        if what == "results" {
            self.runtime.block_on(self.publish_results(mesh, agent, body))
        } else {
            self.request(subject(mesh, agent, what), body)
        }
    }

    fn headers(&self, subject: &str, body: &[u8]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(KEY, self.key.public().as_str());
        headers.insert(SIGNATURE, self.key.sign_message(subject, body).as_str());
        headers
    }

    fn request(&self, subject: String, body: &str) -> Result<Answered, String> {
        let mut headers = self.headers(&subject, body.as_bytes());
        headers.insert(ACCEPTS, GZIP);
        let request = Request::new().headers(headers).payload(body.to_owned().into());
        let answer = self.runtime.block_on(self.client.send_request(subject, request));
        answered(&answer.map_err(|error| error.to_string())?)
    }

    /// Sends results to the broker, and then waits until the hub's store has them.
    async fn publish_results(
        &self,
        mesh: &str,
        agent: &str,
        body: &str,
    ) -> Result<Answered, String> {
        let body = packed(body.as_bytes());
        let most = self.client.max_payload().saturating_sub(HEAD_BYTES);
        if body.len() > most {
            let say = format!("{} bytes; the broker takes {most}", body.len());
            return Ok((413, serde_json::json!({ "say": say }).to_string().into_bytes()));
        }
        let batch = hex::encode_bytes(&sha256(&body));
        let mut stored = self.stored.lock().await;
        let stored = match &mut *stored {
            Some(stored) => stored,
            none => {
                let subject = subject(mesh, agent, "stored");
                let new =
                    self.client.subscribe(subject).await.map_err(|error| error.to_string())?;
                none.insert(new)
            }
        };
        let subject = subject(mesh, agent, "results");
        let mut headers = self.headers(&subject, &body);
        headers.insert(BATCH, batch.as_str());
        let context = jetstream::new(self.client.clone());
        let sent = context.publish_with_headers(subject, headers, body.into()).await;
        let kept = sent.map_err(|error| error.to_string())?.await;
        kept.map_err(|error| format!("the broker did not take the results: {error}"))?;
        let answer = tokio::time::timeout(STORED_WITHIN, async {
            while let Some(message) = stored.next().await {
                if header(&message, BATCH).is_some_and(|of| of == batch) {
                    return Some(message);
                }
            }
            None
        });
        match answer.await {
            Ok(Some(message)) => answered(&message),
            Ok(None) => Err("the connection to the broker is closed".to_owned()),
            Err(_) => Err("the broker has the results, and the store has not yet".to_owned()),
        }
    }
}

/// A header of a message.
pub(super) fn header<'a>(message: &'a Message, name: &str) -> Option<&'a str> {
    message.headers.as_ref()?.get(name).map(|value| value.as_str())
}

fn answered(message: &Message) -> Result<Answered, String> {
    let status = header(message, STATUS).and_then(|text| text.parse().ok());
    let status = status.ok_or("the answer has no status")?;
    let body = match header(message, ENCODING) {
        Some(GZIP) => {
            unpacked(&message.payload, ANSWER_BYTES_MAX).map_err(|error| error.to_string())?
        }
        _ => message.payload.to_vec(),
    };
    Ok((status, body))
}
