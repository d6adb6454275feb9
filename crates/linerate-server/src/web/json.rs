//! Answers of JSON, written by the tree as all documents are.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use linerate_core::tree;
use serde::Serialize;

/// A body of JSON.
pub(crate) struct Json<T>(pub(crate) T);

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        let kind = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
        match tree::to_json(&self.0) {
            Ok(text) => (kind, text).into_response(),
            Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
        }
    }
}
