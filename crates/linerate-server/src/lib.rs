//! The other end and the memory of linerate: the listener with its limits, its page, and the store.

pub mod admission;
pub mod alert;
mod ask;
pub mod foreign;
pub mod listen;
#[cfg(feature = "web")]
pub mod mesh;
pub mod policy_guard;
mod port;
pub mod schedule;
pub mod store;
mod table;
#[cfg(feature = "web")]
pub mod web;
