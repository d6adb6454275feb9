//! What every engine is given beside its plan.

use linerate_core::record::{Event, Tool};
use linerate_sys::stop::Stop;

/// The surroundings of one measurement.
pub struct Context<'a> {
    /// The program, for the record.
    pub tool: Tool,
    /// Set when the user wants no more.
    pub stop: Stop,
    /// Observer of everything as it happens, on the calling thread.
    pub watch: &'a mut dyn FnMut(&Event),
}
