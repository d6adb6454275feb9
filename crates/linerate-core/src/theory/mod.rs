//! What links, windows and encapsulations allow. Each formula gives its source and range.

pub mod framing;
pub mod window;
