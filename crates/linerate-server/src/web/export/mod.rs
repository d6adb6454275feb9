//! Figures of `/metrics` handed on where a server was told to: by remote write of Prometheus, or
//! OTLP over HTTP.
//!
//! They are taken every half a minute and wait in a queue of bounded size until the receiver has
//! them, the oldest first; the oldest go when it is full. What a receiver refuses (4xx) is not
//! tried again; what it cannot take now (5xx, 429, no answer) is, after 1, 2, 4, … 60 s.

mod otlp;
mod remote_write;
mod snappy;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use linerate_core::time::WallTime;
use linerate_outbound::post;
use linerate_sys::clock::{sleep, wall_time};

use self::remote_write::Writer;
use super::metrics;
use super::open_metrics::OpenMetrics;
use super::state::State;

/// Time between two looks at the figures.
const EVERY: Duration = Duration::from_secs(30);
/// Time between two looks whether the server is to end.
const LOOK: Duration = Duration::from_millis(200);
/// The longest wait after failures.
const WAIT_MAX_S: u64 = 60;
/// Bound of the queue to a receiver: messages of two hours, and bytes.
const WAITING_MAX: usize = 240;
const BYTES_MAX: usize = 32 << 20;

/// Receiver that figures are sent to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExportReceiver {
    /// Prometheus remote write 1.0 to this address: `http://HOST:9090/api/v1/write`.
    RemoteWrite(String),
    /// OTLP 1 over HTTP in JSON to this address: `http://HOST:4318/v1/metrics`.
    Otlp(String),
}

impl std::fmt::Display for ExportReceiver {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::RemoteWrite(url) => write!(formatter, "{url} by remote write"),
            Self::Otlp(url) => write!(formatter, "{url} by OTLP"),
        }
    }
}

impl ExportReceiver {
    fn target_url(&self) -> &str {
        match self {
            Self::RemoteWrite(url) | Self::Otlp(url) => url,
        }
    }

    /// Checks that figures can be sent to an address.
    /// # Errors
    /// One line where they cannot.
    pub fn check_url(url: &str) -> Result<(), String> {
        post::check_url(url)
    }

    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::RemoteWrite(_) => &[
                ("Content-Type", "application/x-protobuf"),
                ("Content-Encoding", "snappy"),
                ("X-Prometheus-Remote-Write-Version", "0.1.0"),
            ],
            Self::Otlp(_) => &[("Content-Type", "application/json")],
        }
    }
}

/// Bodies that wait to be posted to a receiver, the oldest first.
#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Arc<Vec<u8>>>,
    bytes: usize,
    dropped: u64,
}

impl Queue {
    fn push(&mut self, body: Vec<u8>) {
        self.bytes += body.len();
        self.waiting.push_back(Arc::new(body));
        while self.waiting.len() > WAITING_MAX || (self.bytes > BYTES_MAX && self.waiting.len() > 1)
        {
            self.remove_sent();
            self.dropped += 1;
        }
    }

    fn remove_sent(&mut self) {
        if let Some(body) = self.waiting.pop_front() {
            self.bytes -= body.len();
        }
    }
}

/// Next step after a receiver's answer.
#[derive(Debug, PartialEq, Eq)]
enum Then {
    Next,
    Refused(String),
    Again(String),
}

fn classify_answer(answer: Result<u16, String>) -> Then {
    match answer {
        Ok(200..300) => Then::Next,
        Ok(status @ (429 | 500..)) => Then::Again(format!("HTTP {status}")),
        Ok(status) => Then::Refused(format!("HTTP {status}")),
        Err(reason) => Then::Again(reason),
    }
}

/// Seconds to wait after so many failures one after another.
fn wait_s(failures: u32) -> u64 {
    (1 << failures.min(10).saturating_sub(1)).min(WAIT_MAX_S)
}

/// Begins to hand on, until the server ends.
pub(super) fn start_export(state: &Arc<State>, receiver: ExportReceiver) {
    let queue = Arc::new(Mutex::new(Queue::default()));
    let (taking, filled) = (Arc::clone(state), Arc::clone(&queue));
    let form = receiver.clone();
    std::thread::spawn(move || queue_figures(&taking, &form, &filled));
    let state = Arc::clone(state);
    std::thread::spawn(move || send_figures(&state, &receiver, &queue));
}

fn with_queue<T>(queue: &Mutex<Queue>, work: impl FnOnce(&mut Queue) -> T) -> T {
    work(&mut queue.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Waits; whether the server goes on.
fn waited(state: &State, time: Duration) -> bool {
    let mut left = time;
    while left > Duration::ZERO && !state.ends.is_requested() {
        let part = left.min(LOOK);
        sleep(part);
        left -= part;
    }
    !state.ends.is_requested()
}

fn queue_figures(state: &State, receiver: &ExportReceiver, queue: &Mutex<Queue>) {
    let mut writer = Writer::default();
    let begun = wall_time();
    let mut failed = false;
    loop {
        let store = state.options.store.as_deref();
        let hub = state.mesh.get().map(AsRef::as_ref);
        match metrics::collect_metrics(store, &state.gate, hub) {
            Ok(found) => {
                failed = false;
                let body = encoded(receiver, &found, &mut writer, begun, wall_time());
                with_queue(queue, |queue| queue.push(body));
            }
            // A store without a result yet is not there.
            Err(failure) if !failed => {
                failed = true;
                tracing::warn!("no figures to export: {failure}");
            }
            Err(_) => {}
        }
        if !waited(state, EVERY) {
            return;
        }
    }
}

fn encoded(
    receiver: &ExportReceiver,
    found: &OpenMetrics,
    writer: &mut Writer,
    begun: WallTime,
    now: WallTime,
) -> Vec<u8> {
    match receiver {
        ExportReceiver::RemoteWrite(_) => snappy::compressed(&writer.request(found, now)),
        ExportReceiver::Otlp(_) => otlp::request(found, begun, now).to_string().into_bytes(),
    }
}

fn send_figures(state: &State, receiver: &ExportReceiver, queue: &Mutex<Queue>) {
    let (url, mut failures, mut dropped) = (receiver.target_url(), 0, 0);
    while waited(state, LOOK) {
        let Some(body) = with_queue(queue, |queue| queue.waiting.front().cloned()) else {
            continue;
        };
        let answer = post::post_body(url, receiver.headers(), &body, None);
        let result = classify_answer(answer);
        if let Then::Again(reason) = &result {
            if failures == 0 {
                tracing::warn!("figures not handed on, tried again: {reason}");
            }
            failures += 1;
            waited(state, Duration::from_secs(wait_s(failures)));
            continue;
        }
        if let Then::Refused(reason) = &result {
            tracing::warn!("{url} refused figures, which are lost: {reason}");
        }
        let lost = with_queue(queue, |queue| {
            // While it was sent it may have been dropped, for newer ones.
            if queue.waiting.front().is_some_and(|arc| Arc::ptr_eq(arc, &body)) {
                queue.remove_sent();
            }
            std::mem::replace(&mut dropped, queue.dropped) != queue.dropped
        });
        if failures > 0 || lost {
            tracing::warn!("figures are handed on again; {dropped} looks at them were dropped");
        }
        failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_bounded_and_drops_the_oldest() {
        let mut queue = Queue::default();
        for number in 0..300_u16 {
            queue.push(number.to_be_bytes().to_vec());
        }
        assert_eq!((queue.waiting.len(), queue.dropped, queue.bytes), (240, 60, 480));
        assert_eq!(**queue.waiting.front().expect("filled"), 60_u16.to_be_bytes());
        queue.push(vec![0; BYTES_MAX]);
        assert_eq!((queue.waiting.len(), queue.bytes), (1, BYTES_MAX), "one is always kept");
        queue.remove_sent();
        queue.remove_sent();
        assert_eq!((queue.waiting.len(), queue.bytes), (0, 0));
    }

    #[test]
    fn what_is_refused_is_not_tried_again_and_what_cannot_be_taken_now_is() {
        assert_eq!(classify_answer(Ok(204)), Then::Next);
        for status in [400, 404, 415] {
            assert_eq!(classify_answer(Ok(status)), Then::Refused(format!("HTTP {status}")));
        }
        for status in [429, 500, 503] {
            assert_eq!(classify_answer(Ok(status)), Then::Again(format!("HTTP {status}")));
        }
        assert_eq!(classify_answer(Err("refused".to_owned())), Then::Again("refused".to_owned()));
        let waits: Vec<u64> = [1, 2, 3, 6, 7, 8, 4_000_000_000].map(wait_s).to_vec();
        assert_eq!(waits, [1, 2, 4, 32, 60, 60, 60]);
    }
}
