//! `GET /api/v1/server`: what this server is, allows and does now.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State as Shared;
use axum::http::HeaderMap;
use linerate_core::policy::Keep;
use linerate_core::schedule::Span;
use linerate_core::units::Bytes;
use linerate_sys::clock::wall_time;
use serde::Serialize;

use super::address::network_of;
use super::error::ApiError;
use super::json::Json;
use super::request::{Peer, client_of};
use super::runs::{most_seconds, most_streams};
use super::state::State;

/// What a client is told of the server.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct ServerInfo {
    name: String,
    version: String,
    host: Option<String>,
    now: String,
    client: String,
    limits: InForce,
    running: usize,
    waiting: usize,
    other_programs: Vec<OtherProgram>,
    udp_echo: bool,
    stamp_port: Option<u16>,
    features: Vec<&'static str>,
    measure_from_here: FromHere,
    /// A server outside, `HOST:PORT`, to which its page measures too; null where none is named.
    outer: Option<String>,
    results_kept: Option<RetentionLimits>,
}

/// What its policy keeps of results; null where nothing is limited, as with all of it where no
/// policy says.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct RetentionLimits {
    seconds: Option<u64>,
    count: Option<u64>,
    bytes: Option<u64>,
}

impl From<&Keep> for RetentionLimits {
    fn from(keep: &Keep) -> Self {
        let (seconds, bytes) = (keep.time.map(Span::seconds), keep.bytes.map(Bytes::count));
        Self { seconds, count: keep.count, bytes }
    }
}

/// Where this server measures to for the asking client: `false`, or `{"targets"}`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
enum FromHere {
    Nobody(bool),
    To { targets: Vec<String> },
}

impl FromHere {
    fn from_targets(targets: Vec<String>) -> Self {
        if targets.is_empty() { Self::Nobody(false) } else { Self::To { targets } }
    }
}

/// Limits of a test from a browser.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct InForce {
    tests: usize,
    streams: u16,
    seconds: u64,
    bytes: Option<u64>,
    rate_bps: Option<u64>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct OtherProgram {
    program: &'static str,
    port: u16,
}

pub(crate) async fn server(
    Shared(state): Shared<Arc<State>>,
    Extension(Peer(peer)): Extension<Peer>,
    headers: HeaderMap,
) -> Result<Json<ServerInfo>, ApiError> {
    let client = client_of(peer, &headers)?;
    let allowance = state.gate.policy_guard().allowance(&client);
    let about = state.server_facts();
    let other = |(program, port)| OtherProgram { program, port };
    let mut features = vec!["load", "events", "echo"];
    if state.options.store.is_some() {
        features.push("results");
    }
    if state.datagrams.get().is_some() {
        features.push("datagrams");
    }
    if state.mesh.get().is_some() {
        features.push("mesh");
    }
    Ok(Json(ServerInfo {
        name: state.options.tool.name.clone(),
        version: state.options.tool.version.clone(),
        host: linerate_sys::host::read_line("/proc/sys/kernel/hostname"),
        now: wall_time().to_string(),
        client: network_of(peer.ip()),
        limits: InForce {
            tests: state.limits.tests,
            streams: most_streams(&state, allowance.streams),
            seconds: most_seconds(&state, allowance.time),
            bytes: allowance.bytes,
            rate_bps: allowance.rate_bps,
        },
        running: state.gate.running(),
        waiting: state.gate.waiting(),
        other_programs: about.others.into_iter().map(other).collect(),
        udp_echo: about.udp_echo,
        stamp_port: about.stamp_port,
        features,
        measure_from_here: FromHere::from_targets(state.gate.policy_guard().targets(&client)),
        outer: state.outer.get().map(|outer| outer.host_port().to_owned()),
        results_kept: state.options.store.as_ref().and_then(|_| {
            state.gate.policy_guard().policy()?.keep.as_ref().map(RetentionLimits::from)
        }),
    }))
}
