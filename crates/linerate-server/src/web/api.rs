//! The paths of the API.

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::{HeaderValue, StatusCode, Uri, header};
use axum::middleware::from_fn_with_state;
use axum::response::IntoResponse;
use axum::routing::{delete, get, post};

use super::error::ApiError;
use super::state::State;
use super::{
    echo, events, families, from_here, mesh, metrics, page, pages, probe, published, quality,
    results, runs, series, server_info, studies, words,
};

/// No request has a longer body.
const BODY_BYTES_MAX: usize = 64 * 1024;

pub(crate) fn router(state: Arc<State>) -> Router {
    let has_page = state.options.page;
    let api = Router::new()
        .route("/api/v1/server", get(server_info::server))
        .route("/api/v1/runs", post(runs::post_run))
        .route("/api/v1/measure", post(from_here::post_measure))
        .route("/api/v1/runs/{run}", delete(runs::delete_run))
        .route("/api/v1/runs/{run}/events", get(events::events))
        .route("/api/v1/runs/{run}/delays", post(runs::delays))
        .route("/api/v1/echo", get(echo::get_echo))
        .route("/api/v1/here", get(families::get_here))
        .route("/api/v1/results", get(results::get_results))
        .route("/api/v1/results/{result}", get(results::get_result))
        .route("/api/v1/results/{result}/explain", get(results::explained))
        .route("/api/v1/results/{result}/report", get(results::report))
        .route("/api/v1/results/{result}/words", get(words::get_words))
        .route("/api/v1/results/{result}/figures", get(results::figures))
        .route("/api/v1/series", get(series::series))
        .route("/api/v1/studies", get(studies::get_studies))
        .route("/api/v1/studies", post(studies::post_study))
        .route("/api/v1/studies/{run}", get(studies::get_study_run))
        .route("/api/v1/studies/{run}", delete(studies::delete_study_run))
        .route("/api/v1/studies/{run}/report", get(studies::report))
        .route("/api/v1/published", get(published::get_published))
        .route("/api/v1/published/{table}", get(published::get_published_table))
        .route("/api/v1/mesh", get(mesh::matrix))
        .route("/api/v1/mesh/enrol", post(mesh::post_enrol))
        .route("/api/v1/mesh/plan", get(mesh::get_plan))
        .route("/api/v1/mesh/beat", post(mesh::post_beat))
        .route("/api/v1/mesh/results", post(mesh::results).layer(mesh::results_body()))
        .route("/api/v1/openapi.json", get(openapi))
        .route("/probe", get(probe::get_probe))
        .route("/metrics", get(metrics::metrics))
        .route("/.well-known/nq", get(quality::config))
        .route("/nq/small", get(quality::get_small))
        .route("/nq/large", get(quality::get_large))
        .route("/nq/upload", post(quality::upload))
        .route("/robots.txt", get(page::robots))
        .with_state(Arc::clone(&state))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .method_not_allowed_fallback(wrong_method);
    let page = get(page::get_page).with_state(Arc::clone(&state));
    let all = if has_page { api.fallback(page) } else { api.fallback(nothing) };
    all.layer(from_fn_with_state(state, pages::check_origin))
}

/// The document that `super::openapi` makes of the types; a test holds both to each other.
async fn openapi() -> impl IntoResponse {
    let kind = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    (kind, include_str!("../../../../spec/openapi.json"))
}

async fn wrong_method(uri: Uri) -> ApiError {
    let say = format!("{}: not with this method", uri.path());
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "bad_request", say)
}

async fn nothing(uri: Uri) -> ApiError {
    ApiError::not_found(format!("{}: there is no such path here", uri.path()))
}
