//! The other end of linerate: the listener with its limits, its API and its page.

pub mod admission;
pub mod foreign;
pub mod listen;
pub mod policy_guard;
mod port;
mod table;
#[cfg(feature = "web")]
pub mod web;
