//! Errors of the API: one shape for all, `{"error", "say", …}`.

use super::json::Json;
use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use linerate_proto::native::RefuseCode;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::admission::AdmissionWait;

/// What is wrong, for programs and for people.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Error"))]
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

    /// With the time after which another try may succeed.
    pub(crate) fn retry_after(self, retry_after_ms: Option<u64>) -> Self {
        Self { retry_after_ms, ..self }
    }

    /// The request makes no sense.
    pub(crate) fn bad_request(say: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_request", say)
    }

    /// The error's text for people.
    pub(crate) fn into_message(self) -> String {
        self.say
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

impl From<AdmissionWait> for ApiError {
    fn from(waiting: AdmissionWait) -> Self {
        let AdmissionWait { refuse, place } = waiting;
        let (status, error) = match refuse.code {
            RefuseCode::Busy if place.is_some() => (StatusCode::TOO_MANY_REQUESTS, "busy"),
            RefuseCode::Busy => (StatusCode::SERVICE_UNAVAILABLE, "busy"),
            RefuseCode::Policy => (StatusCode::FORBIDDEN, "policy"),
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
        let mut response = (self.status, Json(&self)).into_response();
        if let Some(ms) = self.retry_after_ms {
            let seconds = HeaderValue::from(ms.div_ceil(1000));
            response.headers_mut().insert(header::RETRY_AFTER, seconds);
        }
        response
    }
}

/// A query string that was read; one that cannot be is refused as an [`ApiError`].
pub(crate) struct Readable<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Readable<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let read = Query::<T>::from_request_parts(parts, state).await;
        let Query(value) = read.map_err(|error| {
            let text = error.body_text();
            let text = text.split_once("query string: ").map_or(text.as_str(), |(_, why)| why);
            ApiError::bad_request(format!("behind ?: {}", in_plain_words(text)))
        })?;
        Ok(Self(value))
    }
}

/// An error of the JSON or query parser in plain words.
pub(crate) fn in_plain_words(said: &str) -> String {
    // Where in the text: only of use where the text is long, and people send a line.
    let text = said.split(" at line ").next().unwrap_or(said).replace('`', "");
    let (key, text) = match text.split_once(": ") {
        Some((key, rest)) if !key.contains(' ') => (format!("{key}: "), rest.to_owned()),
        _ => (String::new(), text),
    };
    let plain = if let Some((name, known)) = text
        .strip_prefix("unknown field ")
        .or_else(|| text.strip_prefix("unknown variant "))
        .and_then(|rest| rest.split_once(", expected "))
    {
        let known = known.trim_start_matches("one of ").replace(" or ", ", ");
        format!("{name} is not known here; known: {known}")
    } else if let Some(name) = text.strip_prefix("missing field ") {
        format!("{name} is missing")
    } else if let Some(name) = text.strip_prefix("duplicate field ") {
        format!("{name} stands twice")
    } else if let Some((found, expected)) = text
        .strip_prefix("invalid type: ")
        .or_else(|| text.strip_prefix("invalid value: "))
        .or_else(|| text.strip_prefix("invalid length "))
        .and_then(|rest| rest.split_once(", expected "))
    {
        format!("{} is expected, not {found}", plain_type_name(expected))
    } else if text == "invalid digit found in string" || text.contains(" integer from ") {
        "a whole number is expected".to_owned()
    } else {
        format!("it is no JSON object ({text})")
    };
    format!("{key}{plain}")
}

/// The expected value in plain words, without names of types.
fn plain_type_name(expected: &str) -> &str {
    match expected {
        "u16" | "u32" | "u64" | "usize" | "i64" => "a whole number",
        "f64" => "a number",
        "a sequence" => "a list",
        "a string" | "string" => "a text",
        it if it.starts_with("struct ") => "an object",
        it if it.starts_with("a tuple") => "a pair of numbers",
        it => it,
    }
}

/// Refusals of the layers below, as of a body that is too long, in the API's own shape.
pub(crate) fn in_one_shape(response: Response) -> Response {
    let status = response.status();
    let own = response.headers().get(header::CONTENT_TYPE);
    let own = own.is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
    if own || !(status.is_client_error() || status.is_server_error()) {
        return response;
    }
    let (error, say) = match status {
        StatusCode::NOT_FOUND => ("not_found", "there is no such path here"),
        StatusCode::METHOD_NOT_ALLOWED => ("bad_request", "this path is not with this method"),
        StatusCode::PAYLOAD_TOO_LARGE => ("bad_request", "a body has 64 KiB at most"),
        StatusCode::UNSUPPORTED_MEDIA_TYPE => ("bad_request", "a body is JSON"),
        _ if status.is_server_error() => ("system", "this host could not answer"),
        _ => ("bad_request", "the request makes no sense to this server"),
    };
    ApiError::new(status, error, say).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_reader_says_is_told_in_plain_words() {
        for (said, plain) in [
            ("missing field `to` at line 1 column 2", "to is missing"),
            (
                "unknown field `x`, expected one of `a`, `b` at line 1 column 4",
                "x is not known here; known: a, b",
            ),
            (
                "invalid type: string \"4\", expected u16 at line 1 column 4",
                "a whole number is expected, not string \"4\"",
            ),
            ("limit: invalid digit found in string", "limit: a whole number is expected"),
        ] {
            assert_eq!(in_plain_words(said), plain);
        }
    }
}
