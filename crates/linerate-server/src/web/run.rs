//! A run: every direction of one test from a browser. Who follows its events may come late or come
//! back, for all of them are kept.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use linerate_core::record::Direction;
use linerate_core::time::MonoTime;
use linerate_proto::native::Token;
use linerate_sys::clock::monotonic;
use linerate_sys::stop::Stop;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::datagrams::round_result::RoundResult;
use super::delays::Delays;

/// Sessions of datagrams that a run may have: a browser may have to try again.
const SESSIONS_MAX: u8 = 3;

/// A browser's test as it was asked for, lowered to the limits.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct BrowserTestOptions {
    pub(crate) streams: u16,
    pub(crate) seconds: u64,
    pub(crate) directions: Vec<Direction>,
    /// Highest rate that the client's rule allows, all streams together.
    #[serde(skip)]
    pub(crate) rate_bps: Option<u64>,
    #[serde(skip)]
    pub(crate) name: Option<String>,
    /// Host name by which the client reached this server.
    #[serde(skip)]
    pub(crate) host: Option<String>,
}

/// One line of the events: its kind and its JSON.
pub(crate) type Said = (&'static str, String);

/// A run that was let in.
#[derive(Debug)]
pub(crate) struct BrowserRun {
    pub(crate) id: String,
    pub(crate) token: Token,
    pub(crate) asked: BrowserTestOptions,
    pub(crate) peer: SocketAddr,
    pub(crate) stop: Stop,
    said: Mutex<Vec<Said>>,
    /// Number of events so far, for listeners that wait for the next.
    pub(crate) count: watch::Sender<usize>,
    over: AtomicBool,
    /// Time at which the test ended; none while it runs.
    ended: Mutex<Option<MonoTime>>,
    /// Delays that the browser measured, until the records are stored.
    delays: Mutex<Option<Delays>>,
    /// Number of sessions of datagrams that the browser opened for this test.
    sessions: AtomicU8,
    /// Results of rounds of datagrams, and the number of rounds under way.
    rounds: Mutex<Vec<RoundResult>>,
    rounds_open: AtomicUsize,
}

/// A round that is not over.
#[derive(Debug)]
pub(crate) struct OpenRound<'a>(&'a AtomicUsize);

impl Drop for OpenRound<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl BrowserRun {
    pub(crate) fn new(
        id: String,
        token: Token,
        asked: BrowserTestOptions,
        peer: SocketAddr,
    ) -> Self {
        Self {
            id,
            token,
            asked,
            peer,
            stop: Stop::new(),
            said: Mutex::default(),
            count: watch::Sender::new(0),
            over: AtomicBool::new(false),
            ended: Mutex::default(),
            delays: Mutex::default(),
            sessions: AtomicU8::new(0),
            rounds: Mutex::default(),
            rounds_open: AtomicUsize::new(0),
        }
    }

    /// True once no more events will follow.
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// Counts another session of datagrams; false where the run has had its most.
    pub(crate) fn take_session(&self) -> bool {
        let next = |count: u8| (count < SESSIONS_MAX).then_some(count + 1);
        self.sessions.fetch_update(Ordering::AcqRel, Ordering::Acquire, next).is_ok()
    }

    /// A round begins, and is open until what this gives is dropped.
    pub(crate) fn open_round(&self) -> OpenRound<'_> {
        self.rounds_open.fetch_add(1, Ordering::AcqRel);
        OpenRound(&self.rounds_open)
    }

    /// Keeps what a round brought.
    pub(crate) fn take_round(&self, round: RoundResult) {
        lock(&self.rounds).push(round);
    }

    /// Results of the rounds; none while a round is under way.
    pub(crate) fn rounds(&self) -> Option<Vec<RoundResult>> {
        (self.rounds_open.load(Ordering::Acquire) == 0).then(|| lock(&self.rounds).clone())
    }

    /// Results of the rounds that have ended, even while others are under way.
    pub(crate) fn rounds_so_far(&self) -> Vec<RoundResult> {
        lock(&self.rounds).clone()
    }

    /// Keeps what the browser measured.
    pub(crate) fn take_delays(&self, delays: Delays) {
        *lock(&self.delays) = Some(delays);
    }

    /// Delays that the browser measured and reported.
    pub(crate) fn delays(&self) -> Option<Delays> {
        lock(&self.delays).clone()
    }

    /// Time since the run ended; none while it goes on.
    pub(crate) fn over_since(&self, now: MonoTime) -> Option<Duration> {
        lock(&self.ended).map(|ended| now.duration_since(ended))
    }

    /// The events from number `from` on.
    pub(crate) fn said_from(&self, from: usize) -> Vec<Said> {
        lock(&self.said).get(from..).unwrap_or_default().to_vec()
    }

    pub(crate) fn push_event(&self, event: &'static str, data: &Value) {
        let mut said = lock(&self.said);
        said.push((event, data.to_string()));
        self.count.send_replace(said.len());
    }

    pub(crate) fn push_state(&self, state: &str, say: &str) {
        self.push_event("state", &json!({ "state": state, "say": say }));
    }

    /// Nothing more will be said.
    pub(crate) fn mark_ended(&self) {
        *lock(&self.ended) = Some(monotonic());
        self.over.store(true, Ordering::Release);
        self.count.send_replace(lock(&self.said).len());
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
