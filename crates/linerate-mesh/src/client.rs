//! What an agent asks its hub: over HTTP, one request a connection, over TLS where the hub's
//! address says https; or by way of a broker. Waits and sizes are limited.

use std::io::{Read, Write};
#[cfg(feature = "scale")]
use std::sync::Arc;
use std::time::Duration;

use linerate_core::mesh::{
    Beat, BeatAnswer, Enrol, Enrolled, RunResults, SignedPlan, Stored, VERSION,
};
use linerate_core::record::Failure;
#[cfg(feature = "scale")]
use linerate_core::record::Fault;
use linerate_engine::failure::words_of;
use linerate_outbound::{Authority, connect};
use linerate_store::MeshSelf;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::address::HubAddress;
use super::answer::HubAnswer;
#[cfg(feature = "scale")]
use super::bus::AgentBus;
use super::pack::{ANSWER_BYTES_MAX, GZIP, unpacked};

/// Longest wait for each read and write: a hub has 30 s for its answer.
const QUIET_MAX: Duration = Duration::from_secs(35);
/// Failure of a request to the hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NoAnswer {
    /// The hub was not reached, or the exchange was cut off; the agent tries again later.
    Away(String),
    /// The hub refused the request: HTTP status and the reason that it gave.
    Refused(u16, String),
}

impl std::fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Away(say) => write!(f, "{say}"),
            Self::Refused(status, say) => write!(f, "{say} (HTTP {status})"),
        }
    }
}

/// Client of a hub, over HTTP or through a broker.
#[derive(Clone, Debug)]
pub(super) struct HubClient {
    pub(super) hub: HubAddress,
    authority: Option<Authority>,
    /// Connection through a broker; none where the hub is asked over HTTP.
    #[cfg(feature = "scale")]
    bus: Option<Arc<AgentBus>>,
}

impl HubClient {
    /// A client of an agent with a secret.
    pub(super) fn new(
        hub: &HubAddress,
        authority: Option<&Authority>,
        secret: &str,
    ) -> Result<Self, Failure> {
        let (hub, authority) = (hub.clone(), authority.cloned());
        #[cfg(feature = "scale")]
        {
            let failed =
                |reason: String| Failure::new(Fault::System, "connect to", hub.to_string(), reason);
            let bus = hub.is_broker().then(|| {
                AgentBus::connect(&hub, authority.as_ref(), secret).map(Arc::new).map_err(failed)
            });
            let bus = bus.transpose()?;
            Ok(Self { hub, authority, bus })
        }
        #[cfg(not(feature = "scale"))]
        {
            let _ = secret;
            Ok(Self { hub, authority })
        }
    }

    /// Asks to join, by the secret part of a token and the key beside it.
    pub(super) fn request_join(&self, me: &MeshSelf, token: &str) -> Result<Enrolled, NoAnswer> {
        let asked = |secret: String| Enrol { v: VERSION, token: token.to_owned(), secret };
        #[cfg(feature = "scale")]
        if let Some(bus) = &self.bus {
            // What a broker sees is no secret: the hub is told the public key.
            let body = self.encode_body(&asked(bus.public()))?;
            return self.answer(bus.request_join(&me.key, &body));
        }
        self.post_json("/api/v1/mesh/enrol", me, &asked(me.secret.clone()))
    }

    /// Fetches the mesh's newest plan with its signature from the hub.
    pub(super) fn fetch_plan(&self, me: &MeshSelf) -> Result<SignedPlan, NoAnswer> {
        self.send_request("GET", "/api/v1/mesh/plan", me, "")
    }

    /// Sends a beat, which tells the hub that the agent is there and how it is.
    pub(super) fn send_beat(&self, me: &MeshSelf, beat: &Beat) -> Result<BeatAnswer, NoAnswer> {
        self.post_json("/api/v1/mesh/beat", me, beat)
    }

    /// Sends results of runs to the hub; the answer names those that the hub has stored.
    pub(super) fn send_results(
        &self,
        me: &MeshSelf,
        runs: &RunResults,
    ) -> Result<Stored, NoAnswer> {
        self.post_json("/api/v1/mesh/results", me, runs)
    }

    fn encode_body(&self, body: &impl Serialize) -> Result<String, NoAnswer> {
        linerate_core::tree::to_json(body).map_err(|error| NoAnswer::Away(error.to_string()))
    }

    /// Sends a message as JSON and reads the answer.
    pub(super) fn post_json<T: DeserializeOwned>(
        &self,
        path: &str,
        me: &MeshSelf,
        body: &impl Serialize,
    ) -> Result<T, NoAnswer> {
        self.send_request("POST", path, me, &self.encode_body(body)?)
    }

    fn send_request<T: DeserializeOwned>(
        &self,
        method: &str,
        path: &str,
        me: &MeshSelf,
        body: &str,
    ) -> Result<T, NoAnswer> {
        #[cfg(feature = "scale")]
        if let (Some(bus), Some((mesh, agent))) = (&self.bus, &me.name) {
            let what = path.rsplit('/').next().unwrap_or_default();
            return self.answer(bus.request_as_agent(mesh, agent, what, body));
        }
        let login = match me.name {
            Some(_) => format!("Authorization: Bearer {}\r\n", me.secret),
            None => String::new(),
        };
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\n{login}Content-Type: application/json\r\n\
             Content-Length: {}\r\nAccept-Encoding: {GZIP}\r\nConnection: close\r\n\r\n{body}",
            self.hub.authority(),
            body.len()
        );
        let answer = self
            .exchange_bytes(request.as_bytes())
            .map_err(|error| words_of(&error))
            .and_then(|bytes| {
                let HubAnswer { status, is_packed, body } =
                    HubAnswer::parse(&bytes).ok_or("its answer is cut")?;
                let body =
                    if is_packed { unpacked(body, ANSWER_BYTES_MAX) } else { Ok(body.to_vec()) };
                Ok((status, body.map_err(|error| error.to_string())?))
            });
        self.answer(answer)
    }

    /// Reads an answer by its status: the document, a refusal, or a failure to be tried again.
    fn answer<T: DeserializeOwned>(
        &self,
        answer: Result<(u16, Vec<u8>), String>,
    ) -> Result<T, NoAnswer> {
        let away = |reason: String| NoAnswer::Away(format!("{}: {reason}", self.hub));
        let (status, body) = answer.map_err(away)?;
        if (200..300).contains(&status) {
            return linerate_core::tree::from_json_bytes(&body)
                .map_err(|error| away(format!("its answer makes no sense: {error}")));
        }
        let said: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
        let say = said["say"].as_str().unwrap_or("no reason was given").to_owned();
        match status {
            400..500 if status != 408 && status != 429 => Err(NoAnswer::Refused(status, say)),
            _ => Err(away(format!("{say} (HTTP {status})"))),
        }
    }

    fn exchange_bytes(&self, request: &[u8]) -> std::io::Result<Vec<u8>> {
        let mut stream = connect(&self.hub.host, QUIET_MAX)?;
        match &self.authority {
            None => exchange(&mut stream, request),
            #[cfg(not(feature = "tls"))]
            Some(authority) => match *authority {},
            #[cfg(feature = "tls")]
            Some(authority) => {
                let mut client = authority.client(&self.hub.host.name)?;
                exchange(&mut rustls::Stream::new(&mut client, &mut stream), request)
            }
        }
    }
}

fn exchange(stream: &mut (impl Read + Write), request: &[u8]) -> std::io::Result<Vec<u8>> {
    stream.write_all(request)?;
    stream.flush()?;
    let mut bytes = Vec::new();
    // A server may close without TLS's farewell once its answer is out: the length tells whether
    // it is whole.
    match stream.take(ANSWER_BYTES_MAX).read_to_end(&mut bytes) {
        Err(error) if bytes.is_empty() => Err(error),
        _ => Ok(bytes),
    }
}
