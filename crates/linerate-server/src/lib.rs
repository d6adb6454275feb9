//! The other end of linerate: the listener with its limits, its page, and meshes.

pub mod admission;
pub mod alert;
pub mod foreign;
pub mod listen;
#[cfg(feature = "web")]
pub mod mesh;
pub mod policy_guard;
mod port;
pub mod schedule;
mod table;
#[cfg(feature = "web")]
pub mod web;
