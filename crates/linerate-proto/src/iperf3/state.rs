//! The states of a test: single signed bytes on the control connection.

/// One control byte. Values 3 and 5 … 8 are unused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Server: all streams are connected, timers start.
    TestStart,
    /// Server: senders may start.
    TestRunning,
    /// Client: the time, the bytes or the blocks are reached.
    TestEnd,
    /// Server: send the parameters.
    ParamExchange,
    /// Server: open the data streams.
    CreateStreams,
    /// Server: it was interrupted.
    ServerTerminate,
    /// Client: it was interrupted.
    ClientTerminate,
    /// Server: send the results.
    ExchangeResults,
    /// Server: all is exchanged.
    DisplayResults,
    /// Between tests; never sent.
    IperfStart,
    /// Client: the test is over.
    IperfDone,
    /// Server: another test is running.
    AccessDenied,
    /// Server: it failed; two numbers follow.
    ServerError,
}

const BYTES: [(State, i8); 13] = [
    (State::TestStart, 1),
    (State::TestRunning, 2),
    (State::TestEnd, 4),
    (State::ParamExchange, 9),
    (State::CreateStreams, 10),
    (State::ServerTerminate, 11),
    (State::ClientTerminate, 12),
    (State::ExchangeResults, 13),
    (State::DisplayResults, 14),
    (State::IperfStart, 15),
    (State::IperfDone, 16),
    (State::AccessDenied, -1),
    (State::ServerError, -2),
];

impl State {
    /// The state that a byte stands for.
    pub fn from_byte(byte: u8) -> Option<Self> {
        let value = byte.cast_signed();
        BYTES.iter().find(|(_, other)| *other == value).map(|(state, _)| *state)
    }

    /// The byte on the wire.
    pub fn to_byte(self) -> u8 {
        let row = BYTES.iter().find(|(state, _)| *state == self);
        row.expect("the table has every state").1.cast_unsigned()
    }

    /// Name of the state in words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TestStart => "test start",
            Self::TestRunning => "test running",
            Self::TestEnd => "test end",
            Self::ParamExchange => "parameter exchange",
            Self::CreateStreams => "create streams",
            Self::ServerTerminate => "server terminate",
            Self::ClientTerminate => "client terminate",
            Self::ExchangeResults => "exchange results",
            Self::DisplayResults => "display results",
            Self::IperfStart => "iperf start",
            Self::IperfDone => "iperf done",
            Self::AccessDenied => "access denied",
            Self::ServerError => "server error",
        }
    }
}
