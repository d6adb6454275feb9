//! One result by its identifier, from the store or the hub's database.

use std::sync::Arc;

use axum::http::StatusCode;
use linerate_core::record::{Failure, Record, RecordId};
use linerate_store::Store;

use super::error::ApiError;
use super::state::{State, with_hub};

/// The record, or the answer that there is none.
pub(crate) async fn stored(state: &State, id: &str) -> Result<Record, ApiError> {
    let unknown = ApiError::not_found(format!("{id}: there is no such result"));
    let Ok(whole) = id.parse::<RecordId>() else { return Err(unknown) };
    let id = whole.to_string();
    let hub = state.mesh.get().filter(|hub| hub.has_database());
    let found = match (&state.options.store, hub) {
        (None, Some(_)) => None,
        _ => with_store(state, move |store| store.stored(&id)).await?,
    };
    let found = match (found, hub) {
        (None, Some(hub)) => with_hub(Arc::clone(hub), move |hub| hub.record_named(whole)).await?,
        (found, _) => found,
    };
    found.ok_or(unknown)
}

/// Does something with the store, on a thread that may wait for it.
pub(crate) async fn with_store<T: Send + 'static>(
    state: &State,
    work: impl FnOnce(&Store) -> Result<T, Failure> + Send + 'static,
) -> Result<T, ApiError> {
    let none = || ApiError::not_found("this server keeps no results");
    let path = state.options.store.clone().ok_or_else(none)?;
    let done = tokio::task::spawn_blocking(move || {
        Store::open_for_lookup(&path).and_then(|store| work(&store))
    });
    let failed = |say: String| ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "system", say);
    let done = done.await.map_err(|error| failed(error.to_string()))?;
    done.map_err(|failure| failed(failure.to_string()))
}
