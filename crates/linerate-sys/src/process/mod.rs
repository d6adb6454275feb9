//! This process and its host: threads, children, namespaces, memory, settings.

pub mod arena;
pub mod cgroup;
pub mod child;
pub mod host;
pub mod netns;
pub mod open_files;
pub mod password;
pub mod permission;
pub mod realtime;
pub mod sched;
pub mod service;
pub mod stop;
pub mod sysctl;
pub mod terminal;
pub mod thread;
pub mod userns;
