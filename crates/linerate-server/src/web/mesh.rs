//! `/api/v1/mesh`: the hub of a mesh, as `linerate serve --mesh` is one. `spec/mesh.md` has the
//! messages.
//!
//! The matrix is for clients of private networks, as lists of results are. The rest is for agents,
//! by their own secret: no body is read before that is known.

use std::sync::Arc;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, FromRequestParts, State as Shared};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use linerate_core::mesh::{Beat, BeatAnswer, Enrol, Enrolled, RunResults, Stored};
use linerate_mesh::{Hub, HubRefusal};

use super::error::ApiError;
use super::json::Json;
use super::page::takes_gzip;
use super::request::Peer;
use super::results::check_list_allowed;
use super::runs::read;
use super::state::{State, with_hub};

/// A message of results: the record of a long survey has some megabytes.
const RESULTS_BYTES_MAX: usize = 64 << 20;

const JSON: [(header::HeaderName, &str); 1] = [(header::CONTENT_TYPE, "application/json")];

pub(crate) const fn results_body() -> DefaultBodyLimit {
    DefaultBodyLimit::max(RESULTS_BYTES_MAX)
}

fn require_hub(state: &State) -> Result<Arc<Hub>, ApiError> {
    let none = || ApiError::not_found("this server is no hub: linerate serve --mesh PLAN is one");
    state.mesh.get().cloned().ok_or_else(none)
}

/// An agent of the hub's mesh, by its secret.
pub(crate) struct AuthenticatedAgent {
    hub: Arc<Hub>,
    name: String,
}

impl FromRequestParts<Arc<State>> for AuthenticatedAgent {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &Arc<State>) -> Result<Self, ApiError> {
        let hub = require_hub(state)?;
        let login = parts.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let secret = login.and_then(|text| text.strip_prefix("Bearer ")).map(str::to_owned);
        let say = "an agent's secret is needed: Authorization: Bearer SECRET";
        let none = || ApiError::new(StatusCode::UNAUTHORIZED, "policy", say);
        let secret = secret.ok_or_else(none)?;
        let name = with_hub(Arc::clone(&hub), move |hub| hub.agent_of(&secret)).await?;
        Ok(Self { hub, name })
    }
}

/// `GET /api/v1/mesh`: agents and pairs of the mesh, each with its newest result.
pub(crate) async fn matrix(
    Shared(state): Shared<Arc<State>>,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
) -> Result<impl IntoResponse, ApiError> {
    check_list_allowed(peer, &state, &headers)?;
    let hub = require_hub(&state)?;
    let json = with_hub(hub, |hub| Ok(hub.matrix_json()?)).await?;
    Ok((JSON, json.as_bytes().to_vec()))
}

/// `POST /api/v1/mesh/enrol`: an agent joins by a token.
pub(crate) async fn post_enrol(
    Shared(state): Shared<Arc<State>>,
    body: Bytes,
) -> Result<Json<Enrolled>, ApiError> {
    let (hub, asked) = (require_hub(&state)?, read::<Enrol>(&body)?);
    let done = with_hub(hub, move |hub| hub.enrol_agent(&asked)).await?;
    tracing::info!("agent {} has joined", done.agent);
    Ok(Json(done))
}

/// `GET /api/v1/mesh/plan`: the signed plan, packed where the agent takes gzip.
pub(crate) async fn get_plan(agent: AuthenticatedAgent, headers: HeaderMap) -> Response {
    if takes_gzip(&headers) {
        let encoding = [(header::CONTENT_ENCODING, "gzip"), (header::VARY, "accept-encoding")];
        return (JSON, encoding, agent.hub.plan_packed()).into_response();
    }
    (JSON, agent.hub.plan_json()).into_response()
}

/// `POST /api/v1/mesh/beat`: an agent says that it is there.
pub(crate) async fn post_beat(
    agent: AuthenticatedAgent,
    body: Bytes,
) -> Result<Json<BeatAnswer>, ApiError> {
    let AuthenticatedAgent { hub, name } = agent;
    let beat = read::<Beat>(&body)?;
    Ok(Json(with_hub(hub, move |hub| hub.answer_beat(&name, &beat)).await?))
}

/// `POST /api/v1/mesh/results`: an agent hands over results of its runs.
pub(crate) async fn results(
    agent: AuthenticatedAgent,
    body: Bytes,
) -> Result<Json<Stored>, ApiError> {
    let AuthenticatedAgent { hub, name } = agent;
    let done = with_hub(hub, move |hub| {
        let runs =
            read::<RunResults>(&body).map_err(|error| HubRefusal::Bad(error.into_message()))?;
        hub.store_runs(&name, &runs)
    });
    Ok(Json(done.await?))
}
