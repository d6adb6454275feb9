//! Linux facilities under linerate: sockets, timestamps, namespaces, netlink, clocks.
//!
//! All `unsafe` and all reading of clocks is here; each facility has a safe, typed face. One file
//! per kernel facility, the manual page and the kernel version in its head.
#![allow(unsafe_code)]

pub mod clock;
mod error;
pub mod stop;

pub use error::{Error, Result};
