//! Errors in the specification of a test frame.

use thiserror::Error;

pub(super) type Result<T> = std::result::Result<T, TestFrameError>;

/// Error in the specification of a test frame.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TestFrameError {
    /// The frame is too short for headers and signature.
    #[error(
        "a frame of {len_bytes} bytes has no room for the headers of {protocol} and the \
         signature; the shortest has {shortest_bytes}"
    )]
    TooShort {
        /// Requested length, including the FCS.
        len_bytes: u32,
        /// Name of the protocol.
        protocol: &'static str,
        /// Shortest length, including the FCS.
        shortest_bytes: u32,
    },
    /// The frame is too long for the protocol.
    #[error("{protocol} has no frame of {len_bytes} bytes; the longest has {longest_bytes}")]
    TooLong {
        /// Requested length, including the FCS.
        len_bytes: u32,
        /// Name of the protocol.
        protocol: &'static str,
        /// Longest length, including the FCS.
        longest_bytes: u32,
    },
    /// An IP address outside the test networks.
    #[error(
        "{0} is not of a test network (198.18.0.0/15, 2001:2::/48); allow other addresses \
         explicitly if the network is yours alone"
    )]
    Address(std::net::IpAddr),
    /// An address that no single station can have.
    #[error("{address} as {what}: no station has it")]
    Station {
        /// Name of the field.
        what: &'static str,
        /// The address as text.
        address: String,
    },
    /// A number too large for its field.
    #[error("{what} {value}: at most {value_max} fits")]
    Value {
        /// Name of the field.
        what: &'static str,
        /// Requested number.
        value: u16,
        /// Largest allowed number.
        value_max: u16,
    },
    /// Number of flows out of range.
    #[error("{0} flows: from 1 to 1000000 are possible")]
    FlowCount(u32),
    /// Too many varying fields.
    #[error("{0} varying fields: at most 4 are possible")]
    FieldCount(usize),
    /// A varying field named twice, or without values.
    #[error("{0}: named twice or with 0 values")]
    FieldTwice(&'static str),
    /// More flows than values.
    #[error("{flows} flows need as many values; the varying fields have {values} together")]
    FewValues {
        /// Number of flows.
        flows: u32,
        /// Combinations of the values of all fields.
        values: u64,
    },
    /// The protocol has no such field.
    #[error("{protocol} has no {field} to vary")]
    NoField {
        /// Name of the varying field.
        field: &'static str,
        /// Name of the protocol.
        protocol: &'static str,
    },
    /// Varying ports outside the ranges of RFC 4814.
    #[error(
        "{field} {first} to {last}: varying sources are within 1024 to 65535, destinations \
         within 1 to 49151 (RFC 4814)"
    )]
    Ports {
        /// Name of the varying field.
        field: &'static str,
        /// First port.
        first: u32,
        /// Last port.
        last: u32,
    },
    /// Varying addresses beyond their range.
    #[error("{count} {field} go beyond their range; start lower or take fewer")]
    Range {
        /// Name of the varying field.
        field: &'static str,
        /// Number of values.
        count: u32,
    },
}
