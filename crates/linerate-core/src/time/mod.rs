//! Points in time, the clocks that give them, and the digits that a clock justifies.
//!
//! Spans come from one monotonic clock; wall time labels and is never subtracted.

mod clock;
mod digits;
mod mono;
mod wall;

pub use clock::{Clock, SimClock};
pub use digits::decimals_of_ms;
pub use mono::MonoTime;
pub use wall::WallTime;
