//! TCP throughput: the client's and the server's side of a test.
//!
//! The control connection is followed by a machine (`linerate_proto::native`) on one thread, which
//! also takes samples; each data stream has a thread of its own that does nothing but move bytes.
//! The receiver's count over its own span is the result.

pub(crate) mod client;
pub(crate) mod control;
mod cpu_trace;
pub(crate) mod data;
pub(crate) mod delivery;
pub(crate) mod endpoint;
mod link;
mod low_water;
mod pace;
pub(crate) mod receive_method;
mod round_robin;
mod send_buffer;
mod send_method;
pub(crate) mod session;
pub(crate) mod signals;
pub(crate) mod span;
mod trials;

pub use control::{read_data_hello_rest, read_hello, send_hello};
pub use session::{DataRegistry, serve_test};

// What UDP tests share with TCP's.
pub(crate) use data::cost_since;
