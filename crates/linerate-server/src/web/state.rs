//! What all requests share.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use axum::http::StatusCode;
use linerate_engine::http_load::{LoadRegistry, Visits};
use linerate_mesh::{Hub, HubRefusal};
use linerate_sys::stop::Stop;

use super::datagrams::port::QuicPort;
use super::error::ApiError;
use super::places::HttpConnectionTable;
use super::run_table::Runs;
use super::studies::place::Studies;
use super::{Outer, ServerFacts, WebOptions};
use crate::admission::{Gate, ServerLimits};

/// Shared by the runtime, the runs, and the threads that read heads of load.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) options: WebOptions,
    pub(crate) gate: Arc<Gate>,
    pub(crate) limits: ServerLimits,
    pub(crate) registry: LoadRegistry,
    pub(crate) runs: Runs,
    /// The study that is measured here.
    pub(crate) studies: Studies,
    /// Tests of other programs' clients.
    pub(crate) visits: Visits,
    /// Asked when the server ends: for connections that have threads of their own.
    pub(crate) ends: Stop,
    /// Places of connections: half of the server's, so that others always find one.
    pub(crate) places: Arc<HttpConnectionTable>,
    about: Mutex<ServerFacts>,
    /// The hub of a mesh, where there is one.
    pub(crate) mesh: OnceLock<Arc<Hub>>,
    /// A server outside, to which the page measures too, where one is named.
    pub(crate) outer: OnceLock<Outer>,
    /// Names of hosts as which it answers, beside addresses and names of its own network.
    pub(crate) hosts: OnceLock<Vec<String>>,
    /// Where browsers send datagrams, where that was asked for.
    pub(crate) datagrams: OnceLock<QuicPort>,
}

impl State {
    pub(crate) fn new(options: WebOptions, gate: Arc<Gate>, limits: ServerLimits) -> Self {
        Self {
            options,
            gate,
            limits,
            registry: LoadRegistry::default(),
            runs: Runs::default(),
            studies: Studies::default(),
            visits: Visits::default(),
            ends: Stop::new(),
            places: Arc::new(HttpConnectionTable::new(limits.connections / 2)),
            about: Mutex::default(),
            mesh: OnceLock::new(),
            outer: OnceLock::new(),
            hosts: OnceLock::new(),
            datagrams: OnceLock::new(),
        }
    }

    pub(crate) fn set_server_facts(&self, about: ServerFacts) {
        *self.about.lock().unwrap_or_else(PoisonError::into_inner) = about;
    }

    pub(crate) fn server_facts(&self) -> ServerFacts {
        self.about.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl From<HubRefusal> for ApiError {
    fn from(refused: HubRefusal) -> Self {
        match refused {
            HubRefusal::Bad(say) => Self::bad_request(say),
            HubRefusal::Unknown(say) => Self::new(StatusCode::UNAUTHORIZED, "policy", say),
            HubRefusal::System(say) => Self::new(StatusCode::INTERNAL_SERVER_ERROR, "system", say),
        }
    }
}

/// Does something with the hub's store, on a thread that may wait for it.
pub(super) async fn with_hub<T: Send + 'static>(
    hub: Arc<Hub>,
    work: impl FnOnce(&Hub) -> Result<T, HubRefusal> + Send + 'static,
) -> Result<T, ApiError> {
    let done = tokio::task::spawn_blocking(move || work(&hub)).await;
    let failed = |say: String| ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "system", say);
    Ok(done.map_err(|error| failed(error.to_string()))??)
}
