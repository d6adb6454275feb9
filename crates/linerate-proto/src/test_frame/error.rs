//! Why there is no such test frame.

use thiserror::Error;

pub(super) type Result<T> = std::result::Result<T, TestFrameError>;

/// Why there is no such test frame.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TestFrameError {
    /// Headers and signature do not fit.
    #[error(
        "a frame of {len_bytes} bytes has no room for the headers of {protocol} and the \
         signature; the shortest has {shortest_bytes}"
    )]
    TooShort {
        /// The length asked for, FCS included.
        len_bytes: u32,
        /// Protocol.
        protocol: &'static str,
        /// The shortest length, FCS included.
        shortest_bytes: u32,
    },
    /// The protocol has no packets that long.
    #[error("{protocol} has no frame of {len_bytes} bytes; the longest has {longest_bytes}")]
    TooLong {
        /// The length asked for, FCS included.
        len_bytes: u32,
        /// Protocol.
        protocol: &'static str,
        /// The longest length, FCS included.
        longest_bytes: u32,
    },
    /// An IP address that may be somebody's.
    #[error(
        "{0} is not of a test network (198.18.0.0/15, 2001:2::/48); allow other addresses \
         explicitly if the network is yours alone"
    )]
    Address(std::net::IpAddr),
    /// An address that is not a host's.
    #[error("{address} as {what}: no station has it")]
    Station {
        /// What for.
        what: &'static str,
        /// The address.
        address: String,
    },
    /// A number beyond its field.
    #[error("{what} {value}: at most {value_max} fits")]
    Value {
        /// What for.
        what: &'static str,
        /// The number.
        value: u16,
        /// The largest one.
        value_max: u16,
    },
    /// No flow or too many.
    #[error("{0} flows: from 1 to 1000000 are possible")]
    FlowCount(u32),
    /// Too many fields.
    #[error("{0} varying fields: at most 4 are possible")]
    FieldCount(usize),
    /// A field named twice or without a value.
    #[error("{0}: named twice or with 0 values")]
    FieldTwice(&'static str),
    /// More flows than values.
    #[error("{flows} flows need as many values; the varying fields have {values} together")]
    FewValues {
        /// Flows.
        flows: u32,
        /// Values of all fields together.
        values: u64,
    },
    /// The protocol has no such field.
    #[error("{protocol} has no {field} to vary")]
    NoField {
        /// The field.
        field: &'static str,
        /// Protocol.
        protocol: &'static str,
    },
    /// Varying ports out of the ranges.
    #[error(
        "{field} {first} to {last}: varying sources are within 1024 to 65535, destinations \
         within 1 to 49151 (RFC 4814)"
    )]
    Ports {
        /// Which.
        field: &'static str,
        /// The first one.
        first: u32,
        /// The last one.
        last: u32,
    },
    /// Varying addresses run out of their range.
    #[error("{count} {field} go beyond their range; start lower or take fewer")]
    Range {
        /// Which.
        field: &'static str,
        /// How many.
        count: u32,
    },
}
