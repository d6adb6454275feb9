//! Errors of the API: one shape for all, `{"error", "say", …}`.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use linerate_proto::native::RefuseCode;
use serde::Serialize;

use crate::admission::Waiting;

/// What is wrong, for programs and for people.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ApiError {
    #[serde(skip)]
    pub(crate) status: StatusCode,
    /// A word of a fixed list: `spec/http.md`.
    error: &'static str,
    /// What, on what, why not, what to do.
    say: String,
    /// Place in the line, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<usize>,
    /// When to ask again.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
    /// What keeps the place.
    #[serde(skip_serializing_if = "Option::is_none")]
    ticket: Option<String>,
}

impl ApiError {
    pub(crate) fn new(status: StatusCode, error: &'static str, say: impl Into<String>) -> Self {
        let (position, retry_after_ms, ticket) = (None, None, None);
        Self { status, error, say: say.into(), position, retry_after_ms, ticket }
    }

    /// The request makes no sense.
    pub(crate) fn bad(say: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_request", say)
    }

    /// There is no such thing.
    pub(crate) fn not_found(say: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", say)
    }

    /// It is not allowed.
    pub(crate) fn forbidden(say: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "policy", say)
    }
}

impl From<Waiting> for ApiError {
    fn from(waiting: Waiting) -> Self {
        let Waiting { refuse, place } = waiting;
        let (status, error) = match refuse.code {
            RefuseCode::Busy if place.is_some() => (StatusCode::TOO_MANY_REQUESTS, "busy"),
            RefuseCode::Busy => (StatusCode::SERVICE_UNAVAILABLE, "busy"),
            _ => (StatusCode::FORBIDDEN, "limit"),
        };
        Self {
            position: place.map(|(position, _)| position),
            retry_after_ms: refuse.retry_after_ms,
            ticket: place.map(|(_, ticket)| format!("{ticket:016x}")),
            ..Self::new(status, error, refuse.reason)
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = (self.status, axum::Json(&self)).into_response();
        if let Some(ms) = self.retry_after_ms {
            let seconds = HeaderValue::from(ms.div_ceil(1000));
            response.headers_mut().insert(header::RETRY_AFTER, seconds);
        }
        response
    }
}
