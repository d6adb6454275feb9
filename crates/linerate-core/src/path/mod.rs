//! The emulated path as a state machine of small elements, on any clock.
//!
//! A path has two directions, each a [`Pipeline`] of elements in the order in which a packet meets
//! them. Every element answers the same three questions: take a packet, what is due, when next.
//! Times are exact: a packet leaves at the time that the model says, whenever the caller asks.
//! Left out: bytes (the caller keeps them under the packet's tag), sockets and clocks.

mod delay;
mod element;
mod link;
mod loss;
mod packet;
mod pipeline;
mod random;

pub use delay::Delay;
pub use element::{Backlog, Departure, Element, LossCause, Lost, Outlet};
pub use link::{Framing, Limit, Link};
pub use loss::Bernoulli;
pub use packet::{Ecn, Packet};
pub use pipeline::Pipeline;
pub use random::Random;
