//! Trains of probe datagrams with the fate of every packet, both ways: the client's and the
//! server's side of a session of rounds.
//!
//! One socket at either end carries all of them, opened as the streams of a UDP test are. Times are
//! the kernel's where it tells them: of handing to the driver, and of arrival.

mod arrivals;
mod client;
mod departures;
mod prober;
mod serve;
mod socket;
#[cfg(test)]
mod tests;

pub(crate) use client::{ObservedTrain, PathSeen, RoundPlan, Rounds, run};
pub(crate) use serve::{TrainsServer, session_terms};
