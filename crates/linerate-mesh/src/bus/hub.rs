//! A hub's end of the bus: answers requests, and takes results from the stream into the store.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_nats::jetstream::consumer::pull::Config as Pull;
use async_nats::jetstream::consumer::{AckPolicy, Consumer};
use async_nats::jetstream::stream::{Config as Stream, DiscardPolicy, RetentionPolicy};
use async_nats::jetstream::{self, AckKind};
use async_nats::{Client, HeaderMap, Message, Subject, Subscriber};
use futures_util::{FutureExt, StreamExt};
use linerate_core::mesh::{BeatAnswer, Enrol, RunResults, SignedPlan, Stored};
use linerate_core::record::{Failure, Fault};
use linerate_outbound::Authority;
use linerate_sys::clock::realtime_ns;
use linerate_sys::stop::Stop;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;

use super::super::address::HubAddress;
use super::super::hub::Hub;
use super::super::pack::{GZIP, unpacked};
use super::super::refused::HubRefusal;
use super::agent::header;
use super::broker::of_its_disk;
use super::seal::is_signed;
use super::{
    ACCEPTS, BATCH, ENCODING, HEAD_BYTES, KEY, SIGNATURE, STATUS, agent_in, join_subject, options,
    runtime, subject, subjects,
};

/// Messages of results that are stored in one transaction at most.
const MESSAGES_AT_ONCE: usize = 250;
/// Bytes that the stream keeps, and messages of one agent: beyond them the broker takes no more,
/// and results stay where they are.
const STREAM_BYTES: i64 = 1 << 30;
const MESSAGES_OF_ONE: i64 = 100;
/// Bytes of a message of results, unpacked.
const UNPACKED_MAX: u64 = 64 << 20;
/// Time after which the broker delivers a message again that was not acknowledged.
const ACK_WITHIN: Duration = Duration::from_secs(60);
/// Wait for the next message of an empty stream, before it is asked for again.
const LOOK: Duration = Duration::from_secs(5);
/// Longest wait for the broker's answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(20);
/// Wait after a failure of the store or the broker.
const TRY_AGAIN: Duration = Duration::from_secs(1);
/// Requests that are answered at once.
const REQUESTS_AT_ONCE: usize = 32;
/// Time over which beats are gathered to be answered together, and the most that are.
const MOMENT: Duration = Duration::from_millis(20);
const BEATS_AT_ONCE: usize = 1_000;
/// Time between two looks whether the hub is to stop.
const STOP_LOOK: Duration = Duration::from_millis(100);

type Pulled = jetstream::Message;

/// A hub's connection to a message broker, over which agents reach it.
pub struct HubBus {
    runtime: Runtime,
    client: Client,
    work: Arc<HubBusState>,
}

impl std::fmt::Debug for HubBus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HubBus").field("mesh", &self.work.mesh).finish_non_exhaustive()
    }
}

/// State that the hub's tasks share.
struct HubBusState {
    hub: Arc<Hub>,
    client: Client,
    mesh: String,
    /// True once a failure was logged, until it works again.
    told: AtomicBool,
}

/// Answer to a request over the broker: status and body, as over HTTP.
struct HubBusReply {
    status: u16,
    body: Vec<u8>,
    packed: bool,
}

impl HubBusReply {
    fn from_result<T: Serialize>(done: Result<T, HubRefusal>) -> Self {
        let (status, body) = match done {
            Ok(done) => (200, linerate_core::tree::to_json(&done).ok()),
            Err(refused) => {
                let (status, say) = match refused {
                    HubRefusal::Bad(say) => (400, say),
                    HubRefusal::Unknown(say) => (401, say),
                    HubRefusal::System(say) => (500, say),
                };
                (status, Some(serde_json::json!({ "say": say }).to_string()))
            }
        };
        Self { status, body: body.unwrap_or_default().into_bytes(), packed: false }
    }

    fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(STATUS, self.status.to_string().as_str());
        if self.packed {
            headers.insert(ENCODING, GZIP);
        }
        headers
    }

    /// Itself where a broker takes so many bytes, or that it does not: one that is silent about it
    /// is asked for ever.
    fn within(self, most: usize) -> Self {
        if self.body.len() + HEAD_BYTES <= most {
            return self;
        }
        let say = format!(
            "an answer of {} bytes; the broker takes {most}: raise max_payload there",
            self.body.len()
        );
        tracing::error!("{say}");
        Self::from_result::<()>(Err(HubRefusal::System(say)))
    }
}

impl HubBus {
    /// Connects a hub to a broker, whose stream it makes where there is none; and what there is to
    /// say about the broker's disk.
    /// # Errors
    /// When the broker is not reached, or has no JetStream for this user.
    pub fn connect(
        hub: Arc<Hub>,
        address: &HubAddress,
        authority: Option<&Authority>,
    ) -> Result<(Self, Option<String>), Failure> {
        let runtime = runtime(2)?;
        let failed = |reason: String, advice: &str| {
            Failure::new(Fault::Unreachable, "connect to broker", address.to_string(), reason)
                .advise(advice)
        };
        let client = runtime.block_on(options(address, authority).connect(address.to_string()));
        let client = client.map_err(|error| {
            failed(error.to_string(), "see that nats-server runs there and knows this user")
        })?;
        let mesh = hub.plan_summary().0;
        let told = AtomicBool::new(false);
        let work = Arc::new(HubBusState { hub, client: client.clone(), mesh, told });
        runtime.block_on(work.consumer()).map_err(|reason| {
            failed(reason, "run nats-server with JetStream (-js), and let this user use it")
        })?;
        let said = runtime.block_on(of_its_disk(&client));
        Ok((Self { runtime, client, work }, said))
    }

    /// Answers agents until it is asked to stop.
    /// # Errors
    /// When the broker does not let this user hear its agents.
    pub fn run(self, stop: &Stop) -> Result<(), Failure> {
        let Self { runtime, client, work } = self;
        let ran = runtime.block_on(async {
            let key = work.hub.signed_plan().key;
            let mesh = &work.mesh;
            let hear = async |subject: String| {
                // Of several hubs on one database one answers.
                let heard = client.queue_subscribe(subject.clone(), "hub".to_owned()).await;
                heard.map_err(|error| {
                    Failure::new(Fault::PeerRefused, "hear", subject, error.to_string())
                })
            };
            for subject in [join_subject(&key), subjects(mesh, "plan")] {
                tokio::spawn(Arc::clone(&work).answers(hear(subject).await?));
            }
            tokio::spawn(Arc::clone(&work).answers_beats(hear(subjects(mesh, "beat")).await?));
            tokio::spawn(Arc::clone(&work).ingests());
            while !stop.is_requested() {
                tokio::time::sleep(STOP_LOOK).await;
            }
            Ok(())
        });
        // What was not acknowledged comes again.
        runtime.shutdown_timeout(TRY_AGAIN);
        ran
    }
}

impl HubBusState {
    fn is_well(&self) {
        if self.told.swap(false, Ordering::SeqCst) {
            tracing::info!("results of the mesh are stored again");
        }
    }

    fn failed(&self, reason: &dyn std::fmt::Display) {
        if !self.told.swap(true, Ordering::SeqCst) {
            tracing::error!("results of the mesh stay where they are for now: {reason}");
        }
    }

    async fn answers(self: Arc<Self>, mut heard: Subscriber) {
        let places = Arc::new(Semaphore::new(REQUESTS_AT_ONCE));
        while let Some(message) = heard.next().await {
            let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
            let this = Arc::clone(&self);
            tokio::spawn(async move {
                let Some(reply) = message.reply.clone() else { return };
                let work = Arc::clone(&this);
                let answer = tokio::task::spawn_blocking(move || work.answer(&message)).await;
                let Ok(answer) = answer else { return };
                let answer = answer.within(this.client.max_payload());
                let (headers, body) = (answer.headers(), answer.body.into());
                // An agent that is not answered asks again.
                let _ = this.client.publish_with_headers(reply, headers, body).await;
                drop(place);
            });
        }
    }

    /// Beats are answered together: of a moment, and no more than so many.
    async fn answers_beats(self: Arc<Self>, mut heard: Subscriber) {
        while let Some(first) = heard.next().await {
            let first_ns = realtime_ns();
            tokio::time::sleep(MOMENT).await;
            // The others came within it: in its middle, give or take half of it.
            let rest_ns = first_ns.midpoint(realtime_ns());
            let mut all = vec![first];
            while all.len() < BEATS_AT_ONCE
                && let Some(Some(next)) = heard.next().now_or_never()
            {
                all.push(next);
            }
            let this = Arc::clone(&self);
            let answered =
                tokio::task::spawn_blocking(move || this.answer_beats(&all, first_ns, rest_ns));
            let Ok(answered) = answered.await else { continue };
            for (reply, answer) in answered {
                let (headers, body) = (answer.headers(), answer.body.into());
                // An agent that is not answered asks again.
                let _ = self.client.publish_with_headers(reply, headers, body).await;
            }
        }
    }

    /// Answers beats. The first came at `first_ns`, the others about `rest_ns`, nanoseconds of this
    /// host's clock since 1970-01-01 UTC.
    fn answer_beats(
        &self,
        all: &[Message],
        first_ns: u64,
        rest_ns: u64,
    ) -> Vec<(Subject, HubBusReply)> {
        let (mut heard, mut places, mut answers) = (Vec::new(), Vec::new(), Vec::new());
        for (at, message) in all.iter().enumerate() {
            let at_ns = if at == 0 { first_ns } else { rest_ns };
            let Some(reply) = message.reply.clone() else { continue };
            let beat = self
                .agent_of(message)
                .and_then(|agent| Hub::check_beat(agent, read(&message.payload)?, at_ns));
            match beat {
                Ok(beat) => {
                    heard.push(beat);
                    places.push(reply);
                }
                Err(refused) => {
                    answers.push((reply, HubBusReply::from_result::<BeatAnswer>(Err(refused))))
                }
            }
        }
        let said = self.hub.answer_beats(&heard);
        answers.extend(places.into_iter().enumerate().map(|(at, reply)| {
            let one = said
                .as_ref()
                .map(|all| &all[at])
                .map_err(|failure| HubRefusal::from(failure.clone()));
            (reply, HubBusReply::from_result(one))
        }));
        answers
    }

    fn answer(&self, message: &Message) -> HubBusReply {
        let what = message.subject.rsplit('.').next().unwrap_or_default();
        match what {
            "plan" => match self.agent_of(message) {
                Ok(_) => {
                    let packed = header(message, ACCEPTS) == Some(GZIP);
                    let json = || self.hub.plan_json().into_bytes();
                    let body = if packed { self.hub.plan_packed() } else { json() };
                    HubBusReply { status: 200, body, packed }
                }
                Err(refused) => HubBusReply::from_result::<SignedPlan>(Err(refused)),
            },
            _ => HubBusReply::from_result(read::<Enrol>(&message.payload).and_then(|asked| {
                if signer(message)? != asked.secret {
                    return Err(HubRefusal::Bad(
                        "secret: the key that signs the message".to_owned(),
                    ));
                }
                let done = self.hub.enrol_key(&asked)?;
                tracing::info!("agent {} has joined", done.agent);
                Ok(done)
            })),
        }
    }

    /// The agent that signed a message on one of its own subjects.
    fn agent_of(&self, message: &Message) -> Result<String, HubRefusal> {
        let key = signer(message)?;
        self.check_subject_owner(message, self.hub.agent_with_key(&key)?)
    }

    fn check_subject_owner(&self, message: &Message, agent: String) -> Result<String, HubRefusal> {
        if agent_in(&message.subject).is_some_and(|of| of == agent) {
            return Ok(agent);
        }
        Err(HubRefusal::Unknown("a subject of another agent".to_owned()))
    }

    /// The stream's consumer; both are made where they are not there.
    async fn consumer(&self) -> Result<Consumer<Pull>, String> {
        let context = jetstream::new(self.client.clone());
        let name = format!("LR-{}", self.mesh.replace('.', "~"));
        let stream = Stream {
            name,
            subjects: vec![subjects(&self.mesh, "results")],
            retention: RetentionPolicy::WorkQueue,
            max_bytes: STREAM_BYTES,
            max_messages_per_subject: MESSAGES_OF_ONE,
            // The oldest are not dropped for the newest: an agent is told that there is no room.
            discard: DiscardPolicy::New,
            discard_new_per_subject: true,
            ..Stream::default()
        };
        let stream =
            context.get_or_create_stream(stream).await.map_err(|error| error.to_string())?;
        let pull = Pull {
            durable_name: Some("store".to_owned()),
            ack_policy: AckPolicy::Explicit,
            ack_wait: ACK_WITHIN,
            ..Pull::default()
        };
        stream.get_or_create_consumer("store", pull).await.map_err(|error| error.to_string())
    }

    /// Takes results into the store, for ever. A stream that the broker forgot is made again.
    async fn ingests(self: Arc<Self>) {
        loop {
            match self.consumer().await {
                Ok(consumer) => {
                    if let Err(reason) = self.ingests_from(&consumer).await {
                        self.failed(&reason);
                    }
                }
                Err(reason) => self.failed(&reason),
            }
            tokio::time::sleep(TRY_AGAIN).await;
        }
    }

    async fn ingests_from(self: &Arc<Self>, consumer: &Consumer<Pull>) -> Result<(), String> {
        loop {
            // A broker that ends meanwhile does not answer.
            let messages = tokio::time::timeout(ANSWER_WITHIN, next(consumer)).await;
            let messages = messages.map_err(|_| "no answer of the broker")??;
            if messages.is_empty() {
                continue;
            }
            let work = Arc::clone(self);
            let given = messages.clone();
            let done = tokio::task::spawn_blocking(move || work.store_results(&given)).await;
            match done.map_err(|error| error.to_string())? {
                Ok(answers) => {
                    self.is_well();
                    for (message, answer) in messages.iter().zip(answers) {
                        self.confirm(message, answer).await?;
                    }
                }
                Err(failure) => {
                    self.failed(&failure);
                    for message in &messages {
                        let again = AckKind::Nak(Some(TRY_AGAIN));
                        message.ack_with(again).await.map_err(|error| error.to_string())?;
                    }
                    tokio::time::sleep(TRY_AGAIN).await;
                }
            }
        }
    }

    /// Tells the agent what became of its message, and then takes it from the stream. The order
    /// matters: an agent that is not told sends the results again.
    async fn confirm(&self, message: &Pulled, answer: Option<HubBusReply>) -> Result<(), String> {
        if let Some((answer, agent)) = answer.zip(agent_in(&message.subject)) {
            let mut headers = answer.headers();
            let digits = |text: &&str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
            headers.insert(BATCH, header(message, BATCH).filter(digits).unwrap_or_default());
            let subject = subject(&self.mesh, &agent, "stored");
            let sent = self.client.publish_with_headers(subject, headers, answer.body.into());
            sent.await.map_err(|error| error.to_string())?;
        }
        message.ack().await.map_err(|error| error.to_string())
    }

    /// Stores messages of results; what each is answered. One that nobody signed is not answered.
    fn store_results(&self, messages: &[Pulled]) -> Result<Vec<Option<HubBusReply>>, Failure> {
        let mut agents: HashMap<String, Result<String, HubRefusal>> = HashMap::new();
        let (mut given, mut reads) = (Vec::new(), Vec::with_capacity(messages.len()));
        for message in messages {
            let key = match signer(message) {
                Ok(key) => key,
                Err(refused) => {
                    tracing::warn!("{}: not taken: {refused:?}", message.subject);
                    reads.push(ResultMessageState::Unsigned);
                    continue;
                }
            };
            let agent =
                agents.entry(key).or_insert_with_key(|key| self.hub.agent_with_key(key)).clone();
            let runs = agent
                .and_then(|agent| self.check_subject_owner(message, agent))
                .and_then(|agent| Ok((agent, results(&message.payload)?)));
            reads.push(match runs {
                Ok(runs) => {
                    given.push(runs);
                    ResultMessageState::Given
                }
                // The store could not be asked: all come again.
                Err(HubRefusal::System(say)) => {
                    return Err(Failure::new(Fault::System, "store", "results", say));
                }
                Err(refused) => ResultMessageState::Refused(refused),
            });
        }
        let mut done = self.hub.take_all(&given)?.into_iter();
        let answers = reads.into_iter().map(|read| match read {
            ResultMessageState::Unsigned => None,
            ResultMessageState::Refused(refused) => {
                Some(HubBusReply::from_result::<Stored>(Err(refused)))
            }
            ResultMessageState::Given => done.next().map(HubBusReply::from_result),
        });
        Ok(answers.collect())
    }
}

/// A message of results after its signature and its content were checked.
enum ResultMessageState {
    Unsigned,
    Refused(HubRefusal),
    Given,
}

/// The messages that are there, at most so many; waits for one where there is none.
async fn next(consumer: &Consumer<Pull>) -> Result<Vec<Pulled>, String> {
    let mut messages = Vec::new();
    let fetched = consumer.fetch().max_messages(MESSAGES_AT_ONCE).messages().await;
    let mut fetched = fetched.map_err(|error| error.to_string())?;
    while let Some(message) = fetched.next().await {
        messages.push(message.map_err(|error| error.to_string())?);
    }
    if messages.is_empty() {
        let waited = consumer.batch().max_messages(1).expires(LOOK).messages().await;
        let mut waited = waited.map_err(|error| error.to_string())?;
        while let Some(message) = waited.next().await {
            messages.push(message.map_err(|error| error.to_string())?);
        }
    }
    Ok(messages)
}

/// The key that signed a message.
fn signer(message: &Message) -> Result<String, HubRefusal> {
    let (key, signature) = (header(message, KEY), header(message, SIGNATURE));
    let unsigned = || HubRefusal::Unknown("the message is not signed by an agent's key".to_owned());
    let (key, signature) = key.zip(signature).ok_or_else(unsigned)?;
    let signed = is_signed(key, signature, &message.subject, &message.payload);
    signed.then(|| key.to_owned()).ok_or_else(unsigned)
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, HubRefusal> {
    linerate_core::tree::from_json_bytes(body).map_err(|error| HubRefusal::Bad(error.to_string()))
}

fn results(body: &[u8]) -> Result<RunResults, HubRefusal> {
    let bytes = unpacked(body, UNPACKED_MAX);
    read(&bytes.map_err(|error| HubRefusal::Bad(format!("it cannot be unpacked: {error}")))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_the_broker_does_not_take_says_so_instead() {
        let answer =
            |bytes: usize| HubBusReply { status: 200, body: vec![b' '; bytes], packed: true };
        assert_eq!(answer(100).within(100 + HEAD_BYTES).status, 200);
        let said = answer(101).within(100 + HEAD_BYTES);
        let say = String::from_utf8(said.body.clone()).expect("text");
        assert!(said.status == 500 && !said.packed && say.contains("101 bytes"), "{say}");
    }
}
