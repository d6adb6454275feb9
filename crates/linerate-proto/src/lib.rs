//! Wire formats and protocol machines of linerate, without I/O.

pub mod echo;
pub mod frame;
pub mod native;
