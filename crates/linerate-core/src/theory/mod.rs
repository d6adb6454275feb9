//! What links, windows, losses and queues allow. Each formula gives its source and range.
pub mod framing;
pub mod sheet;
pub mod window;
