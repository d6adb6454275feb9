//! What an agent and its hub say to each other, as JSON over HTTP: `spec/mesh.md`.
//!
//! Fields are added and never change their meaning; one that is not known is passed over, so that
//! a version speaks with the one before it.

use serde::{Deserialize, Serialize};

use crate::schedule::{RunState, RunWhy};

/// The version of the messages.
pub const VERSION: u32 = 1;
/// Results of one message.
pub const RESULTS_AT_ONCE: usize = 20;

/// An agent joins: a token once, and from then on its own secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "MeshEnrol"))]
pub struct Enrol {
    /// [`VERSION`].
    pub v: u32,
    /// The token's secret part, hexadecimal digits.
    pub token: String,
    /// Drawn by the agent and kept by it: 64 hexadecimal digits.
    pub secret: String,
}

/// It has joined.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "MeshEnrolled"))]
pub struct Enrolled {
    /// The mesh.
    pub mesh: String,
    /// The agent's name in it.
    pub agent: String,
}

/// A plan with its signature (Ed25519, RFC 8032) over the bytes of its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "MeshPlan"))]
pub struct SignedPlan {
    /// The plan, TOML.
    pub text: String,
    /// The key that signed it, 64 hexadecimal digits.
    pub key: String,
    /// The signature, 128 hexadecimal digits.
    pub signature: String,
}

/// An agent is there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "MeshBeat"))]
pub struct Beat {
    /// [`VERSION`].
    pub v: u32,
    /// Drawn when the program began: two that have one agent's secret differ in it.
    pub instance: String,
    /// How often the agent was started.
    pub starts: u64,
    /// Revision of the newest plan that it has; 0 where it has none.
    pub revision: u64,
    /// Results that it keeps until they are stored.
    pub waiting: u64,
    /// How far the agent's clock was ahead of the hub's at the last beat, seconds.
    #[serde(default)]
    pub ahead_s: Option<f64>,
}

/// What the hub says to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "MeshBeatAnswer"))]
pub struct BeatAnswer {
    /// Revision of the plan that the hub has.
    pub revision: u64,
    /// The hub's clock in the middle of the time that it had the beat, seconds since 1970-01-01
    /// UTC.
    pub wall_s: f64,
    /// Another program is this agent: this one is to hold.
    #[serde(default)]
    pub double: bool,
    /// Runs beside the calendar that are booked for it and whose end the hub does not know.
    #[serde(default)]
    pub bookings: Vec<Booking>,
    /// Runs of this agent that the hub's store has taken in all; one that has fewer than it had was
    /// set back.
    #[serde(default)]
    pub runs: Option<u64>,
}

/// A run beside the calendar.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "MeshBooking"))]
pub struct Booking {
    /// Its identifier.
    pub id: String,
    /// The command's name and the other agent: `burst/b`.
    pub task: String,
    /// Its begin, seconds since 1970-01-01 UTC.
    pub start_s: i64,
    /// Seconds of its slot.
    pub takes_s: i64,
}

/// A run that is over, with its record where it left one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "MeshRunResult"))]
pub struct RunResult {
    /// `rate/b`: the task and the other agent.
    pub task: String,
    /// Its begin, seconds since 1970-01-01 UTC; with the task and the agent its name.
    pub start_s: i64,
    /// `ok`, `failed`, `missed` or `lost`.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub state: RunState,
    /// Why there is no result.
    #[serde(default)]
    pub reason: Option<String>,
    /// `calendar`, or `booked` for a run beside it.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub why: RunWhy,
    /// The record.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "Option<serde_json::Value>"))]
    pub record: Option<serde_json::Value>,
}

/// Runs in their order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "MeshRunResults"))]
pub struct RunResults {
    /// [`VERSION`].
    pub v: u32,
    /// At most [`RESULTS_AT_ONCE`].
    pub results: Vec<RunResult>,
}

/// They are in the hub's store: the agent may drop them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "MeshStored"))]
pub struct Stored {
    /// Runs of the message.
    pub stored: usize,
    /// Those of them that were there already.
    pub known: usize,
    /// As of a beat's answer, with these.
    #[serde(default)]
    pub runs: Option<u64>,
}
