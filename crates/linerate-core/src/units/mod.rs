//! Quantities of the field as types: rates in bit/s and packets/s, sizes in bytes, frame lengths,
//! ratios of counts, shares, lengths of paths, and spans of time as text.
//!
//! Anything that leaves these types (JSON, CSV, flags) carries its unit in the name.
//!
//! How text is read. A number is digits with at most one point (`155.52`, `.5`, `10`), without
//! sign, exponent or separators; a space may stand between number and unit. Decimals are exact to
//! 18 places and the result is rounded to the nearest whole unit, half up; what is not zero but
//! would round to zero is refused, and so is what does not fit.
//!
//! - [`BitRate`]: `155.52 Mbit/s`, `10G`, `64kbps`; prefixes k M G T P E in either case, powers of
//!   1000; units bit/s, bit, b, bps, b/s; a bare number is bit/s.
//! - [`PacketRate`]: `14.88 Mpps`, `1k`; prefixes as above; units pps, p/s, packets/s.
//! - [`Bytes`]: `64K`, `64KiB`, `64kB`; a letter k M G T P E alone is a power of 1024, with `iB`
//!   too, with `B` a power of 1000; units B, byte, bytes; a bare number is bytes.
//! - [`FrameLen`]: `64`, `1518 bytes`; no prefixes.
//! - [`Ratio`]: `3/10`, two counts.
//! - [`Fraction`]: `1e-4`, `0.01%`, `1/10000`; a number from 0 to 1, the only one with an exponent.
//! - [`Distance`]: `1000km`, `250 m`, `80mi`; the unit is not left out.
//! - a span ([`parse_span`]): `10`, `500ms`, `1h30m`; units h, m, s, ms, us, ns, largest first; a
//!   bare number is seconds.
//!
//! A rate's prefix is always decimal: 1 Mbit/s is 1,000,000 bit/s (IEC 80000-13). A size's single
//! letter is binary because that is what `-w 64K` means to users of iperf3 and nuttcp (65536).
//!
//! How values are printed. Rates: at most two decimals, trailing zeros dropped, in the largest
//! prefix that keeps the number at 1 or above (`9.41 Gbit/s`, `155.52 Mbit/s`, `0 bit/s`). Sizes:
//! see [`Bytes`]. What is printed can be read again, within the printed digits.

mod bit_rate;
mod bytes;
mod decimal;
mod distance;
mod dscp;
mod error;
mod fraction;
mod frame_len;
mod packet_rate;
mod ratio;
mod span;

pub use bit_rate::BitRate;
pub use bytes::{Bytes, PlainBytes};
pub use distance::Distance;
pub use dscp::parse_dscp;
pub use error::ParseUnitError;
pub use fraction::Fraction;
pub use frame_len::{FrameLen, FrameLenError};
pub use packet_rate::PacketRate;
pub use ratio::{Percent, Ratio};
pub use span::{parse_span, print_span};
