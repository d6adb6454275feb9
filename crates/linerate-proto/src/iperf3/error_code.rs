//! iperf3's error numbers, which follow the state `server error` (iperf_api.h, 3.1 and later).

use std::fmt;

/// An error number of iperf3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorCode(
    /// The number on the wire.
    pub i32,
);

impl ErrorCode {
    /// The time of the test is out of bounds.
    pub const DURATION: Self = Self(5);
    /// More streams than allowed.
    pub const STREAMS: Self = Self(6);
    /// The block is too large.
    pub const BLOCK: Self = Self(7);
    /// The socket buffer is too large.
    pub const BUFFER: Self = Self(8);
    /// The segment size is too large.
    pub const MSS: Self = Self(10);
    /// The omitted time is too long.
    pub const OMIT: Self = Self(12);
    /// An option that this end does not implement.
    pub const UNIMPLEMENTED: Self = Self(13);
    /// The burst is too large.
    pub const BURST: Self = Self(15);
    /// Reverse and bidirectional at once.
    pub const REVERSE_AND_BOTH: Self = Self(25);
    /// The sum of the streams' rates is above the server's limit.
    pub const TOTAL_RATE: Self = Self(27);
    /// The test is longer than the server allows (since 3.20).
    pub const LONGER_THAN_ALLOWED: Self = Self(37);
    /// The test cannot be set up.
    pub const NEW_TEST: Self = Self(100);
    /// A control byte out of order.
    pub const MESSAGE: Self = Self(110);
    /// The parameters did not arrive.
    pub const RECEIVE_PARAMS: Self = Self(114);
    /// The type of service is invalid.
    pub const TOS: Self = Self(21);
    /// The block does not fit a datagram.
    pub const UDP_BLOCK: Self = Self(20);
    /// The kernel did not grant the socket buffer.
    pub const SET_BUFFER: Self = Self(141);
    /// The congestion control is unknown to the kernel.
    pub const CONGESTION: Self = Self(134);
    /// The credentials are wrong.
    pub const AUTHENTICATION: Self = Self(142);
    /// No data arrived before the time-out.
    pub const NO_MESSAGE: Self = Self(144);
    /// The test took longer than the server allows.
    pub const EXPIRED: Self = Self(160);
    /// A stream could not be created.
    pub const CREATE_STREAM: Self = Self(200);

    /// Text of the error, where the number is known.
    pub const fn error_text(self) -> Option<&'static str> {
        Some(match self.0 {
            5 => "the time of the test is out of its bounds",
            6 => "too many streams",
            7 => "the block is too large",
            8 => "the socket buffer is too large",
            10 => "the segment size is too large",
            12 => "the omitted time is too long",
            13 => "it does not do what was asked",
            15 => "the burst is too large",
            20 => "the block does not fit a datagram",
            21 => "the type of service is none",
            25 => "reverse and both ways exclude each other",
            27 => "the rate is above its limit",
            37 => "it does not allow a test of that length",
            100 | 101 => "it could not set up the test",
            104 => "it could not accept a connection",
            106 => "it did not get the cookie",
            107 | 111 => "it could not write to the control connection",
            108 | 112 => "it could not read from the control connection",
            109 => "the control connection was closed",
            110 => "it got an unknown control byte",
            114 => "it did not get the parameters",
            116 => "it could not send the results",
            117 => "it did not get the results",
            119 => "the client has terminated",
            120 => "the server has terminated",
            121 => "it is busy with another test",
            122 => "it could not set TCP_NODELAY",
            123 => "it could not set the segment size",
            124 | 141 => "it could not set the socket buffer",
            125 => "it could not set the type of service",
            134 => "it does not have that congestion control",
            140 => "it could not set the pace",
            142 => "it asks for a user and a password, or those given are wrong",
            144 => "nothing came from the client for too long",
            160 => "the test took longer than planned",
            200 | 201 => "it could not create a stream",
            202 => "it could not listen for streams",
            204 => "it could not accept a stream",
            205 => "it could not write to a stream",
            206 => "it could not read from a stream",
            _ => return None,
        })
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.error_text() {
            Some(words) => write!(f, "{words} (error {})", self.0),
            None => write!(f, "error {}", self.0),
        }
    }
}
