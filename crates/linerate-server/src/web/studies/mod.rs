//! `/api/v1/studies`: the studies that this program brings, their runs in the store, and one run at
//! a time that is measured here, by a process of its own (`work`).
//!
//! Who may have measurements from here (`measure_to` of the policy) may start one: it takes a place
//! at the gate like any test, and its packets stay in virtual networks of this host. A page that is
//! closed ends nothing; a server that ends stops the run, which can be resumed.

pub(crate) mod place;
mod work;

use std::sync::Arc;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::{Path, State as Shared};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use linerate_core::policy::TestKind;
use linerate_core::study::{PublishedFigures, StudyPlan};
use linerate_engine::environment::local_end;
use linerate_engine::flow::admission::Demand;
use linerate_engine::study::{SHIPPED, TABLES};
use linerate_report::study::{self, StudyResults};
use linerate_store::{NewStudyRun, Store, StudyRun, StudyState};
use linerate_sys::clock::{record_id, wall_time};
use linerate_sys::stop::Stop;
use serde::{Deserialize, Serialize};

use super::error::ApiError;
use super::json::Json;
use super::request::{Peer, client_of};
use super::results::{REPORT_POLICY, check_list_allowed, text_response};
use super::runs::{read, ticket_of};
use super::state::State;
use super::stored::with_store;
use crate::policy_guard::PolicyClient;
use place::{Now, short_id};

/// Repetitions that a page may ask for.
const REPETITIONS_MAX: u32 = 20;
/// Runs of one list.
const RUNS_MAX: usize = 100;

/// What a page asks for: a study by its name, or a run that is to go on.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(rename = "StudyRequest"))]
pub(crate) struct StudyRequest {
    study: Option<String>,
    resume: Option<String>,
    repetitions: Option<u32>,
    ticket: Option<String>,
}

/// The studies, and their runs, the newest first.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Studies"))]
pub(crate) struct StudyList {
    studies: Vec<ShippedStudyLine>,
    runs: Vec<RunLine>,
    /// Whether the asking client may start one, and if not, why.
    may_start: bool,
    why_not: Option<String>,
}

/// A study that the program brings.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Study"))]
struct ShippedStudyLine {
    name: String,
    title: String,
    measurements: usize,
}

/// A run of a study.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "StudyRun"))]
pub(crate) struct RunLine {
    run: String,
    study: String,
    title: String,
    /// `running`, `finished`, `partial`, `interrupted` or `failed`. One that was begun and is not
    /// measured here is interrupted.
    state: &'static str,
    /// Measurements that are stored, of all.
    stored: u64,
    measurements: usize,
    started_at: String,
    finished_at: Option<String>,
    /// Whether it is measured here now.
    here: bool,
    /// Why it failed, where that is known.
    said: Option<String>,
}

impl RunLine {
    fn from_study_run(run: StudyRun, now: &Now) -> Self {
        let here = now.run.as_ref().is_some_and(|(id, _)| *id == run.id);
        let state = match run.state {
            StudyState::Running if !here => StudyState::Interrupted,
            state => state,
        };
        let said = now.said.as_ref().filter(|(id, _)| *id == run.id).map(|(_, said)| said.clone());
        Self {
            title: run.plan.title.clone(),
            measurements: run.plan.cell_plans().len(),
            run: run.id,
            study: run.study,
            state: state.state_name(),
            stored: run.stored,
            started_at: run.started_at,
            finished_at: run.finished_at,
            here,
            said,
        }
    }
}

/// `GET /api/v1/studies`: the studies that can be run, and the runs in the store.
pub(crate) async fn get_studies(
    Shared(state): Shared<Arc<State>>,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
) -> Result<Json<StudyList>, ApiError> {
    check_list_allowed(peer, &state, &headers)?;
    let client = client_of(peer.0, &headers)?;
    let runs = with_store(&state, |store| store.list_study_runs()).await?;
    let allowed = may_start(&state, &client);
    let now = state.studies.lock();
    let runs =
        runs.into_iter().take(RUNS_MAX).map(|run| RunLine::from_study_run(run, &now)).collect();
    let studies = SHIPPED.iter().filter_map(|shipped| StudyPlan::from_toml(shipped.toml).ok());
    let studies = studies.map(|plan| ShippedStudyLine {
        measurements: plan.cell_plans().len(),
        name: plan.name,
        title: plan.title,
    });
    let (may_start, why_not) = (allowed.is_ok(), allowed.err().map(ApiError::into_message));
    Ok(Json(StudyList { studies: studies.collect(), runs, may_start, why_not }))
}

/// Refuses a client that may not start a study, nor end one: no rule of the policy lets it measure
/// from here.
fn may_start(state: &State, client: &PolicyClient) -> Result<(), ApiError> {
    if state.gate.policy_guard().targets(client).is_empty() {
        let say = "a study is for whom a rule of the policy lets measure from here: measure_to";
        return Err(ApiError::forbidden(say));
    }
    Ok(())
}

/// `POST /api/v1/studies`: begins a run of a study, or goes on with one.
pub(crate) async fn post_study(
    Shared(state): Shared<Arc<State>>,
    Extension(Peer(peer)): Extension<Peer>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, ApiError> {
    let request: StudyRequest = read(&body)?;
    let ticket = request.ticket.as_deref().map(ticket_of).transpose()?;
    let client = client_of(peer, &headers)?;
    may_start(&state, &client)?;
    let run = match (&request.study, &request.resume) {
        (Some(name), None) => Begin::New(Box::new(study_plan(name, request.repetitions)?)),
        (None, Some(id)) => Begin::Again(stored(&state, id).await?.id),
        _ => return Err(ApiError::bad_request("study: the name of one, or resume: a run of one")),
    };
    let id = match &run {
        Begin::New(_) => record_id().to_string(),
        Begin::Again(id) => id.clone(),
    };
    let demand = Demand::new(TestKind::Tcp, 1);
    // Whoever waits in the gate's line waits for tests, not for a study that takes minutes.
    let stop = state.studies.take_place(&id)?;
    let begun = start_study(&state, run, &id, stop, |state| {
        Ok(state.gate.admit_by_ticket(&demand, ticket, &client)?)
    });
    if let Err(error) = begun.await {
        state.studies.release_place(None);
        return Err(error);
    }
    tracing::info!(%peer, "http: run {} of a study", short_id(&id));
    let line = RunLine::from_study_run(stored(&state, &id).await?, &state.studies.lock());
    Ok((StatusCode::CREATED, Json(line)).into_response())
}

/// A run that is to be started: a new one of a plan, or a stored one, by its identifier.
enum Begin {
    New(Box<StudyPlan>),
    Again(String),
}

/// A study as it will be run.
fn study_plan(name: &str, repetitions: Option<u32>) -> Result<StudyPlan, ApiError> {
    let known = SHIPPED.iter().find(|shipped| shipped.name == name);
    let none = || ApiError::not_found(format!("{name}: no study of this name comes with linerate"));
    let broken = |say: String| ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "system", say);
    let plan = StudyPlan::from_toml(known.ok_or_else(none)?.toml);
    let plan = plan.map_err(|error| broken(error.to_string()))?;
    match repetitions {
        None => Ok(plan),
        Some(count) if (1..=REPETITIONS_MAX).contains(&count) => Ok(plan.repeated(count)),
        Some(_) => Err(ApiError::bad_request(format!("repetitions: 1 to {REPETITIONS_MAX}"))),
    }
}

/// Notes the run and starts its process, with a place at the gate.
async fn start_study(
    state: &Arc<State>,
    run: Begin,
    id: &str,
    stop: Stop,
    admit: impl FnOnce(&State) -> Result<linerate_engine::flow::admission::Permit, ApiError>,
) -> Result<(), ApiError> {
    let none = || ApiError::not_found("this server keeps no results, so it can run no study");
    let path = state.options.store.clone().ok_or_else(none)?;
    let permit = admit(state)?;
    let failed = |say: String| ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "system", say);
    if let Begin::New(plan) = run {
        let host = Some(local_end(None));
        let new = NewStudyRun { id: id.to_owned(), plan: *plan, started_at: wall_time(), host };
        let place = path.clone();
        let noted = move || Store::open(&place).and_then(|mut store| store.begin_run(&new));
        let noted = tokio::task::spawn_blocking(noted).await;
        noted
            .map_err(|error| failed(error.to_string()))?
            .map_err(|failure| failed(failure.to_string()))?;
    }
    let job = work::StudyJob { run: id.to_owned(), store: path, stop };
    work::start_process(state, job, permit).map_err(|error| failed(format!("no thread: {error}")))
}

/// A run of the store by its whole identifier.
async fn stored(state: &State, id: &str) -> Result<StudyRun, ApiError> {
    let unknown = ApiError::not_found(format!("{id}: there is no such run"));
    let id = id.to_owned();
    let found = with_store(state, move |store| {
        Ok(store.list_study_runs()?.into_iter().find(|run| run.id == id))
    });
    found.await?.ok_or(unknown)
}

/// `GET /api/v1/studies/RUN`: one run of a study, and how far it is.
pub(crate) async fn get_study_run(
    Shared(state): Shared<Arc<State>>,
    Path(id): Path<String>,
) -> Result<Json<RunLine>, ApiError> {
    let run = stored(&state, &id).await?;
    Ok(Json(RunLine::from_study_run(run, &state.studies.lock())))
}

/// `DELETE /api/v1/studies/RUN`: ends it; what was measured until then is kept.
pub(crate) async fn delete_study_run(
    Shared(state): Shared<Arc<State>>,
    Extension(Peer(peer)): Extension<Peer>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Json<serde_json::Value>, ApiError> {
    may_start(&state, &client_of(peer, &headers)?)?;
    let now = state.studies.lock();
    let Some((_, stop)) = now.run.as_ref().filter(|(run, _)| *run == id) else {
        return Err(ApiError::not_found(format!("{}: it is not measured now", short_id(&id))));
    };
    stop.request_stop();
    Ok(Json(serde_json::json!({ "run": id, "ended": true })))
}

/// `GET /api/v1/studies/RUN/report`: the report of a run, a page of HTML.
pub(crate) async fn report(
    Shared(state): Shared<Arc<State>>,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let run = stored(&state, &id).await?;
    let page = with_store(&state, move |store| {
        let records = store.run_records(&run.id)?;
        let published = published(&run.plan);
        let results = StudyResults { plan: run.plan, run: run.id, records, published };
        Ok(study::document(&results).html())
    });
    let mut response = text_response(page.await?, "text/html; charset=utf-8");
    let policy = HeaderValue::from_static(REPORT_POLICY);
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    Ok(response)
}

/// Published figures of the study that a plan rebuilds; none for other plans.
fn published(plan: &StudyPlan) -> PublishedFigures {
    let of_study = TABLES.iter().filter(|table| table.about.study == plan.name);
    PublishedFigures::from_tables(of_study.filter_map(|table| table.read().ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_study_has_a_name_and_few_repetitions() {
        let whole = study_plan("bench-demo", None).expect("it ships");
        let twice = study_plan("bench-demo", Some(2)).expect("it ships");
        assert_eq!(
            twice.cell_plans().len(),
            2 * study_plan("bench-demo", Some(1)).expect("it").cell_plans().len()
        );
        assert!(!whole.cell_plans().is_empty());
        assert_eq!(
            study_plan("no-such", None).map(|plan| plan.name).unwrap_err().status,
            StatusCode::NOT_FOUND
        );
        for wrong in [0, REPETITIONS_MAX + 1] {
            assert!(study_plan("bench-demo", Some(wrong)).is_err(), "{wrong}");
        }
    }
}
