//! Linux facilities under linerate: sockets, timestamps, namespaces, netlink, clocks.
//!
//! All `unsafe` and all reading of clocks is here; each facility has a safe, typed face. One file
//! per kernel facility, the manual page and the kernel version in its head.
#![allow(unsafe_code)]

pub mod child;
pub mod clock;
mod error;
pub mod ethtool;
pub mod fd_passing;
pub mod host;
pub mod netlink;
pub mod netns;
pub mod page_cache;
pub mod stop;
pub mod sysctl;
pub mod tcp;
pub mod thread;
pub mod userns;

pub use error::{Error, Result};
