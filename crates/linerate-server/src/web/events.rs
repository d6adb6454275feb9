//! `GET /api/v1/runs/UUID/events`: Server-Sent Events (HTML Living Standard §9.2), resumable.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::{Path, State as Shared};
use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use tokio::sync::watch;

use super::error::ApiError;
use super::places::HttpConnectionSlot;
use super::run::{BrowserRun, Said};
use super::state::State;

/// Proxies close what is silent for longer.
const SIGN_OF_LIFE: Duration = Duration::from_secs(10);

/// Position of a listener in the events of a run.
struct Listener {
    run: Arc<BrowserRun>,
    count: watch::Receiver<usize>,
    /// The number of the event after the last in `ready`.
    next: usize,
    ready: VecDeque<(usize, Said)>,
    /// The place of the connection.
    _place: HttpConnectionSlot,
}

pub(crate) async fn events(
    Shared(state): Shared<Arc<State>>,
    Path(id): Path<String>,
    Extension(place): Extension<HttpConnectionSlot>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let run = state.runs.get(&id)?;
    let last = headers.get("last-event-id").and_then(|value| value.to_str().ok());
    // Events count from 0; who has seen number 7 goes on with 8.
    let next = last.and_then(|last| last.parse::<usize>().ok()).map_or(0, |last| last + 1);
    let count = run.count.subscribe();
    let listener = Listener { run, count, next, ready: VecDeque::new(), _place: place };
    let events = stream::unfold(listener, |mut listener| async {
        let (number, (kind, data)) = listener.next().await?;
        let event = Event::default().id(number.to_string()).event(kind).data(data);
        Some((Ok::<_, Infallible>(event), listener))
    });
    let alive = KeepAlive::new().interval(SIGN_OF_LIFE);
    let mut response = Sse::new(events).keep_alive(alive).into_response();
    // nginx would hold events back until its buffer is full.
    let unbuffered = axum::http::HeaderValue::from_static("no");
    response.headers_mut().insert("x-accel-buffering", unbuffered);
    Ok(response)
}

impl Listener {
    /// The next event, once there is one; none after the last.
    async fn next(&mut self) -> Option<(usize, Said)> {
        loop {
            if let Some(ready) = self.ready.pop_front() {
                return Some(ready);
            }
            self.count.borrow_and_update();
            let over = self.run.is_over();
            let said = self.run.said_from(self.next);
            let from = self.next;
            self.next += said.len();
            self.ready.extend(said.into_iter().enumerate().map(|(at, it)| (from + at, it)));
            if self.ready.is_empty() {
                if over {
                    return None;
                }
                self.count.changed().await.ok()?;
            }
        }
    }
}
