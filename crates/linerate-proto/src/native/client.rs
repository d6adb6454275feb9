//! The client's side of a test as a machine: which message is in order when.

use linerate_core::record::{DatagramsSent, EndReport, SearchNews};

use super::{Accept, FlowSample, Message, Refuse, UdpSample, WireError};

/// What the client has to do after a message.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientEvent {
    /// Connect the data streams.
    Accepted(Box<Accept>),
    /// Give up, or try again later.
    Refused(Refuse),
    /// Send start and begin.
    Ready,
    /// The server's streams at the end of an interval.
    Interval(Vec<FlowSample>),
    /// The server's UDP streams at the end of an interval.
    UdpInterval(Vec<UdpSample>),
    /// The server's UDP senders are done.
    UdpSent(Vec<DatagramsSent>),
    /// What the server's end of a search has to add.
    UdpSearch(SearchNews),
    /// The server's account of the test.
    Reported(Vec<EndReport>),
    /// The server cannot go on.
    Aborted(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    AwaitAnswer,
    AwaitReady,
    Running,
    Over,
}

/// Follows one control connection from the request to the result.
#[derive(Debug)]
pub struct ClientMachine {
    state: State,
}

impl Default for ClientMachine {
    fn default() -> Self {
        Self { state: State::AwaitAnswer }
    }
}

impl ClientMachine {
    /// Takes a message of the server.
    /// # Errors
    /// [`WireError::State`] when it is not in order; the connection is then to be closed.
    pub fn handle(&mut self, message: Message) -> Result<ClientEvent, WireError> {
        let (state, event) = match (self.state, message) {
            (State::AwaitAnswer, Message::Accept(accept)) => {
                (State::AwaitReady, ClientEvent::Accepted(accept))
            }
            (State::AwaitAnswer, Message::Refuse(refuse)) => {
                (State::Over, ClientEvent::Refused(refuse))
            }
            (State::AwaitReady, Message::Ready) => (State::Running, ClientEvent::Ready),
            (State::Running, Message::Interval { samples }) => {
                (State::Running, ClientEvent::Interval(samples))
            }
            (State::Running, Message::UdpInterval { samples }) => {
                (State::Running, ClientEvent::UdpInterval(samples))
            }
            (State::Running, Message::UdpSent { streams }) => {
                (State::Running, ClientEvent::UdpSent(streams))
            }
            (State::Running, Message::UdpSearch(news)) => {
                (State::Running, ClientEvent::UdpSearch(news))
            }
            (State::Running, Message::Result { reports }) => {
                (State::Over, ClientEvent::Reported(reports))
            }
            (
                State::AwaitAnswer | State::AwaitReady | State::Running,
                Message::Abort { reason },
            ) => (State::Over, ClientEvent::Aborted(reason)),
            (state, message) => {
                return Err(WireError::State { got: message.name(), expected: state.awaits() });
            }
        };
        self.state = state;
        Ok(event)
    }
}

impl ClientMachine {
    /// The next request was sent on the same connection, after the last result.
    pub fn asked_again(&mut self) {
        debug_assert_eq!(self.state, State::Over);
        self.state = State::AwaitAnswer;
    }
}

impl State {
    const fn awaits(self) -> &'static str {
        match self {
            Self::AwaitAnswer => "accept or refuse",
            Self::AwaitReady => "ready",
            Self::Running => "interval or result",
            Self::Over => "nothing",
        }
    }
}
