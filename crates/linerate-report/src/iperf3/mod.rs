//! A test as iperf3 prints it: lines, and the document of `-J` with the keys that its readers
//! know. Compared with Debian's iperf3 3.12.
//!
//! What differs on purpose: bytes of an interval are those that the receiver's kernel has taken
//! in, also at the sender, so that no row is above the rate of the line; a value that is not known
//! is null, not 0.

mod json;
mod sheet;
mod text;
mod unit;

pub use json::{Document, Surroundings};
pub use sheet::{Role, Sheet};
pub use text::{Lines, SEPARATOR, VERSION};
pub use unit::Unit;

#[cfg(test)]
mod tests;
