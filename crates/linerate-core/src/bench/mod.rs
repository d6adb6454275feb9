//! Benchmarks of devices: frames, searches and curves. RFC 1242, RFC 2544 and their successors.
//!
//! What is here is pure: which frames a trial sends, which load comes next, what a series of
//! trials says. Interfaces and clocks are the engine's.

pub mod burst;
pub mod curve;
mod frames;
pub mod medium;
pub mod pair;
pub mod poisson;
pub mod search;

pub use frames::{
    Foreign, FrameLoad, FrameTemplate, HeaderSum, Pace, Received, SIGNATURE_BYTES, Sent, Signature,
    Spread, Varying, WhenLate,
};
