//! Points in time and the clocks that give them.
//!
//! Spans come from one monotonic clock; wall time labels and is never subtracted.

mod clock;
mod mono;
mod wall;

pub use clock::{Clock, SimClock};
pub use mono::MonoTime;
pub use wall::WallTime;
