//! The emulated path as a state machine of small elements, on any clock.
//!
//! A path has two directions, each a [`Pipeline`] of elements in the order in which a packet meets
//! them. Every element answers the same three questions: take a packet, what is due, when next.
//! Times are exact: a packet leaves at the time that the model says, whenever the caller asks.
//! Left out: bytes (the caller keeps them under the packet's tag), sockets and clocks.

mod batch;
mod bound;
mod build;
mod burst_loss;
pub mod check;
mod codel;
mod cross;
mod damage;
mod delay;
mod dualpi2;
mod duplex_mismatch;
mod element;
mod events;
mod facts;
mod fq_codel;
mod framing;
mod held;
mod jitter;
mod link;
mod loss;
mod netem;
mod outline;
mod packet;
mod pipeline;
mod queue;
mod random;
mod red;
#[cfg(test)]
mod testing;
mod token_bucket;
mod trace;
mod trunk;

pub use batch::Batch;
pub use bound::Bound;
pub use burst_loss::{BurstLoss, BurstLossSettings};
pub use codel::{Codel, CodelSettings};
pub use cross::{Arrivals, CrossEnd, CrossSettings, CrossTraffic};
pub use damage::{BitErrors, CellLoss, CellLossSettings};
pub use delay::Delay;
pub use dualpi2::{DualPi2, DualPi2Settings};
pub use duplex_mismatch::{DuplexEnd, DuplexMismatch};
pub use element::{Backlog, Departure, Element, Lost, Outlet, PathLossCause};
pub use events::{Corruption, Duplication, ListedLoss, MtuLimit, Outages};
pub use facts::{DirectionFacts, PathProblem, link_and_carrier};
pub use fq_codel::{FLOW_QUEUES, FqCodel};
pub use framing::Framing;
pub use jitter::{Jitter, Spread};
pub use link::{HalfDuplexMedium, QueuedLink};
pub use loss::Bernoulli;
pub use netem::{Netem, NetemRate};
pub use outline::Load;
pub use packet::{Ecn, Packet};
pub use pipeline::Pipeline;
pub use queue::{Limit, Queue, TailDrop};
pub use random::Random;
pub use red::{Red, RedSettings};
pub use token_bucket::{Bucket, Policer, TokenBucketShaper};
pub use trace::{OPPORTUNITIES_MAX, OPPORTUNITY_BYTES, Trace, TraceError, TraceLink};
pub use trunk::Trunk;
