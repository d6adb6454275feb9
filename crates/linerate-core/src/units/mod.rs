//! Quantities of the field as types: rates in bit/s and packets/s, sizes in bytes, frame lengths,
//! ratios of counts.
//!
//! Rates are decimal (1 Mbit/s is 1,000,000 bit/s). Sizes print in powers of 1024 when they are
//! memory, and as plain bytes otherwise. Anything that leaves these types (JSON, CSV, flags)
//! carries its unit in the name.

mod bit_rate;
mod bytes;

pub use bit_rate::BitRate;
pub use bytes::Bytes;
