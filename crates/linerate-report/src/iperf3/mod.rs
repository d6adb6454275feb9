//! A test as iperf3 prints it: lines, and the document of `-J` with the keys that its readers
//! know. Compared with iperf3 3.21 and Debian's 3.12.
//!
//! What differs on purpose: bytes of an interval are those that the receiver's kernel has taken
//! in, also at the sender, so that no row is above the rate of the line; a value that is not known
//! is null, not 0, and an end that told nothing has no key.

mod json;
mod print;
mod sheet;
mod text;
mod unit;

pub use json::{Iperf3Document, Surroundings};
pub use print::{line_of, pretty};
pub use sheet::{ENDLESS_NS, Iperf3Role, Sheet};
pub use text::{Iperf3Lines, SEPARATOR, VERSION};
pub use unit::Iperf3Unit;

#[cfg(test)]
mod tests;
