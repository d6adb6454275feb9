//! What links, windows, losses and queues allow. Each formula gives its source and range.
pub mod framing;
pub mod gcra;
pub mod sheet;
pub mod token_bucket;
pub mod window;
