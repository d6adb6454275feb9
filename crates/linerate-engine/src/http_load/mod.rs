//! Load over HTTP/1.1, by the server: a browser's requests are the data flows of a test.
//!
//! Streams of one direction are moved, counted and sampled by the threads and loops of every other
//! test over TCP (`flow`), and the record is made here, for a browser counts what its own buffers
//! swallowed. What differs from other protocols is small: the head before the payload (`arrive`),
//! the messages around what is sent up (`upload`), and that nobody at the other end tells anything.
//! Speed tests of other programs (`visit`, `ndt7`) ask for one transfer after the other,
//! and over HTTP/2 for several at once on one connection (`guest`), which is one flow. Left out:
//! everything that a page needs beside load, which is the server's.

mod arrive;
mod delays;
mod direction;
mod guest;
mod ndt7;
mod page_datagrams;
mod transfer;
mod upload;
mod visit;
mod visit_account;
mod visits;

pub use arrive::{LoadArrival, LoadRegistry, arrive, refuse};
pub use delays::{PageDelays, add_delays};
pub use direction::{LoadPlan, LoadRun, LoadSample};
pub use guest::{Guest, Leg};
pub use page_datagrams::add_datagrams;
pub use visit::{Visited, serve_visitor};
pub use visits::{VisitCaps, VisitEnd, VisitServing, Visits};
