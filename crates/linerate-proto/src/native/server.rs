//! The server's side of a test as a machine: which message is in order when.

use linerate_core::record::{DatagramsSent, UdpTest};

use super::{Message, Request, WireError};

/// What the server has to do after a message.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerEvent {
    /// Decide on this test and answer with accept or refuse.
    Requested(Request),
    /// Decide on this UDP test and answer with accept or refuse.
    UdpRequested(UdpTest),
    /// Start all streams.
    Started,
    /// The client's UDP senders are done.
    UdpSent(Vec<DatagramsSent>),
    /// Stop sending early.
    Stopped,
    /// The client is done with the test.
    Finished,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    AwaitRequest,
    Deciding,
    AwaitStreams,
    AwaitStart,
    Running,
    Reported,
    Over,
}

/// Follows one control connection from the first message to the last.
#[derive(Debug)]
pub struct ServerMachine {
    state: State,
}

impl Default for ServerMachine {
    fn default() -> Self {
        Self { state: State::AwaitRequest }
    }
}

impl ServerMachine {
    /// Takes a message of the client.
    /// # Errors
    /// [`WireError::State`] when it is not in order; the connection is then to be closed.
    pub fn handle(&mut self, message: Message) -> Result<ServerEvent, WireError> {
        let (state, event) = match (self.state, message) {
            (State::AwaitRequest, Message::Request(request)) => {
                (State::Deciding, ServerEvent::Requested(request))
            }
            (State::AwaitRequest, Message::UdpRequest(request)) => {
                (State::Deciding, ServerEvent::UdpRequested(request))
            }
            // The next round of the same client: the place is still its own.
            (State::Reported, Message::Request(request)) => {
                (State::Deciding, ServerEvent::Requested(request))
            }
            (State::Running, Message::UdpSent { streams }) => {
                (State::Running, ServerEvent::UdpSent(streams))
            }
            // It may cross the result of a server that gave up waiting for it.
            (State::Reported, Message::UdpSent { streams }) => {
                (State::Reported, ServerEvent::UdpSent(streams))
            }
            (State::AwaitStart, Message::Start) => (State::Running, ServerEvent::Started),
            (State::Running, Message::Stop) => (State::Running, ServerEvent::Stopped),
            // A stop may cross the result on the wire.
            (State::Reported, Message::Stop) => (State::Reported, ServerEvent::Stopped),
            (State::Reported, Message::Bye) => (State::Over, ServerEvent::Finished),
            (_, Message::Abort { .. } | Message::Bye) => (State::Over, ServerEvent::Finished),
            (state, message) => {
                return Err(WireError::State { got: message.name(), expected: state.awaits() });
            }
        };
        self.state = state;
        Ok(event)
    }

    /// The test was accepted and the answer sent.
    pub fn accepted(&mut self) {
        debug_assert_eq!(self.state, State::Deciding);
        self.state = State::AwaitStreams;
    }

    /// Every data stream has arrived and `ready` was sent.
    pub fn streams_ready(&mut self) {
        debug_assert_eq!(self.state, State::AwaitStreams);
        self.state = State::AwaitStart;
    }

    /// The result was sent.
    pub fn reported(&mut self) {
        debug_assert_eq!(self.state, State::Running);
        self.state = State::Reported;
    }
}

impl State {
    const fn awaits(self) -> &'static str {
        match self {
            Self::AwaitRequest => "request",
            Self::Deciding | Self::AwaitStreams => "the data streams",
            Self::AwaitStart => "start",
            Self::Running => "the end of the test",
            Self::Reported => "bye or the next request",
            Self::Over => "nothing",
        }
    }
}
