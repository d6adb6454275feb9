//! What links, windows, losses and queues allow. Each formula gives its source and range.
pub mod buffer;
pub mod framing;
pub mod loss;
pub mod red;
pub mod responsiveness;
pub mod rfc6349;
pub mod sequential;
pub mod sheet;
pub mod slow_start;
pub mod speed_record;
pub mod window;
