//! What all requests share.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use axum::http::StatusCode;
use linerate_engine::http_load::{LoadRegistry, Visits};
use linerate_mesh::{Hub, Refused};
use linerate_sys::stop::Stop;

use super::datagrams::port::Port;
use super::error::ApiError;
use super::places::Places;
use super::run_table::Runs;
use super::studies::place::Studies;
use super::{About, Outer, WebOptions};
use crate::admission::{Gate, Limits};

/// Shared by the runtime, the runs, and the threads that read heads of load.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) options: WebOptions,
    pub(crate) gate: Arc<Gate>,
    pub(crate) limits: Limits,
    pub(crate) registry: LoadRegistry,
    pub(crate) runs: Runs,
    /// The study that is measured here.
    pub(crate) studies: Studies,
    /// Tests of other programs' clients.
    pub(crate) visits: Visits,
    /// Asked when the server ends: for connections that have threads of their own.
    pub(crate) ends: Stop,
    /// Places of connections: half of the server's, so that others always find one.
    pub(crate) places: Arc<Places>,
    about: Mutex<About>,
    /// The hub of a mesh, where there is one.
    pub(crate) mesh: OnceLock<Arc<Hub>>,
    /// A server outside, to which the page measures too, where one is named.
    pub(crate) outer: OnceLock<Outer>,
    /// Names of hosts as which it answers, beside addresses and names of its own network.
    pub(crate) hosts: OnceLock<Vec<String>>,
    /// Where browsers send datagrams, where that was asked for.
    pub(crate) datagrams: OnceLock<Port>,
}

impl State {
    pub(crate) fn new(options: WebOptions, gate: Arc<Gate>, limits: Limits) -> Self {
        Self {
            options,
            gate,
            limits,
            registry: LoadRegistry::default(),
            runs: Runs::default(),
            studies: Studies::default(),
            visits: Visits::default(),
            ends: Stop::new(),
            places: Arc::new(Places::new(limits.connections / 2)),
            about: Mutex::default(),
            mesh: OnceLock::new(),
            outer: OnceLock::new(),
            hosts: OnceLock::new(),
            datagrams: OnceLock::new(),
        }
    }

    pub(crate) fn tell(&self, about: About) {
        *self.about.lock().unwrap_or_else(PoisonError::into_inner) = about;
    }

    pub(crate) fn about(&self) -> About {
        self.about.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl From<Refused> for ApiError {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Bad(say) => Self::bad(say),
            Refused::Unknown(say) => Self::new(StatusCode::UNAUTHORIZED, "policy", say),
            Refused::System(say) => Self::new(StatusCode::INTERNAL_SERVER_ERROR, "system", say),
        }
    }
}

/// Does something with the hub's store, on a thread that may wait for it.
pub(super) async fn with_hub<T: Send + 'static>(
    hub: Arc<Hub>,
    work: impl FnOnce(&Hub) -> Result<T, Refused> + Send + 'static,
) -> Result<T, ApiError> {
    let done = tokio::task::spawn_blocking(move || work(&hub)).await;
    let failed = |say: String| ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "system", say);
    Ok(done.map_err(|error| failed(error.to_string()))??)
}
