//! Benchmarks of devices: frames, searches and curves. RFC 1242, RFC 2544 and their successors.
//!
//! What is here is pure: which frames a trial sends, which load comes next, what a series of
//! trials says. Interfaces and clocks are the engine's.

pub mod activation;
pub mod addresses;
pub mod blame;
pub mod buffer;
pub mod burst;
pub mod congestion;
pub mod curve;
mod frames;
pub mod latency;
pub mod medium;
pub mod pair;
pub mod poisson;
pub mod policer;
pub mod recovery;
pub mod search;
mod send_timing;
mod send_watch;
pub mod soak;
mod summary;
pub mod time_needed;

pub use blame::Pause;
pub use frames::{
    ForeignFrames, FrameLoad, FramePace, FrameTemplate, HeaderSum, ReceiveCounts, SIGNATURE_BYTES,
    SendCounts, Signature, TimeHistogram, Varying, WhenLate,
};
pub use send_timing::{PAUSES_MAX, SUSPECTS_MAX, SendTiming};
pub use send_watch::{SendWatch, WatchRule};
