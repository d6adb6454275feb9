//! Order of the control messages at the client: checks each of the server's messages against the
//! step of the test.

use super::wire::Inbox;
use super::{ErrorCode, RESULTS_BYTES_MAX, Results, State, WireError};

/// Next action of the client.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientEvent {
    /// Send the parameters.
    SendParams,
    /// Open the data streams: cookies first, in the order of their numbers.
    CreateStreams,
    /// Start the clock: every stream is connected.
    Starting,
    /// Start the senders.
    Running,
    /// Send the results.
    SendResults,
    /// Use the server's results.
    Results(Box<Results>),
    /// Send `iperf done` and close.
    Finished,
    /// The server is busy with another test.
    Denied,
    /// The server was interrupted.
    Terminated,
    /// The server failed, with iperf3's number and the kernel's; older versions send none.
    Failed(Option<(ErrorCode, i32)>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    AwaitParamExchange,
    AwaitCreateStreams,
    AwaitTestStart,
    AwaitTestRunning,
    Running,
    AwaitExchange,
    AwaitResults,
    AwaitDisplay,
    AwaitErrorNumbers,
    Over,
}

/// State of a control connection at the client, from the cookie to the end.
#[derive(Debug)]
pub struct ClientOrder {
    stage: Stage,
    inbox: Inbox,
}

impl Default for ClientOrder {
    fn default() -> Self {
        Self { stage: Stage::AwaitParamExchange, inbox: Inbox::default() }
    }
}

impl ClientOrder {
    /// Adds bytes received from the server.
    pub fn push(&mut self, bytes: &[u8]) {
        self.inbox.push(bytes);
    }

    /// Notes that the client has sent `test end`.
    pub fn note_test_end(&mut self) {
        if self.stage == Stage::Running {
            self.stage = Stage::AwaitExchange;
        }
    }

    /// The next action by the bytes so far; `None` when more are needed.
    /// # Errors
    /// When a message is invalid or out of order; the connection is then to be closed.
    pub fn next_event(&mut self) -> Result<Option<ClientEvent>, WireError> {
        match self.stage {
            Stage::AwaitResults => self.parse_results(),
            Stage::AwaitErrorNumbers => Ok(self.inbox.error_numbers().map(|numbers| {
                self.stage = Stage::Over;
                ClientEvent::Failed(Some(numbers))
            })),
            stage => match self.inbox.state()? {
                Some(state) => self.handle_state(stage, state),
                None => Ok(None),
            },
        }
    }

    /// The failure to report when the server closes the connection within a server error: version
    /// 3.12 leaves the kernel's number out when it refuses a user.
    pub fn event_on_close(&self) -> Option<ClientEvent> {
        let code = || self.inbox.error_number().map(|code| (code, 0));
        (self.stage == Stage::AwaitErrorNumbers).then(|| ClientEvent::Failed(code()))
    }

    fn parse_results(&mut self) -> Result<Option<ClientEvent>, WireError> {
        let Some(text) = self.inbox.document("results", RESULTS_BYTES_MAX)? else {
            return Ok(None);
        };
        self.stage = Stage::AwaitDisplay;
        Results::parse(&text).map(|results| Some(ClientEvent::Results(Box::new(results))))
    }

    fn handle_state(
        &mut self,
        stage: Stage,
        state: State,
    ) -> Result<Option<ClientEvent>, WireError> {
        let (next, event) = match (stage, state) {
            (Stage::Over, _) => {
                return Err(WireError::Order { got: state.name(), expected: stage.awaits() });
            }
            (Stage::AwaitParamExchange, State::ParamExchange) => {
                (Stage::AwaitCreateStreams, ClientEvent::SendParams)
            }
            (Stage::AwaitCreateStreams, State::CreateStreams) => {
                (Stage::AwaitTestStart, ClientEvent::CreateStreams)
            }
            (Stage::AwaitTestStart, State::TestStart) => {
                (Stage::AwaitTestRunning, ClientEvent::Starting)
            }
            (Stage::AwaitTestRunning, State::TestRunning) => (Stage::Running, ClientEvent::Running),
            (Stage::AwaitExchange, State::ExchangeResults) => {
                (Stage::AwaitResults, ClientEvent::SendResults)
            }
            (Stage::AwaitDisplay, State::DisplayResults) => (Stage::Over, ClientEvent::Finished),
            (_, State::AccessDenied) => (Stage::Over, ClientEvent::Denied),
            (_, State::ServerTerminate) => (Stage::Over, ClientEvent::Terminated),
            (_, State::ServerError) => {
                self.stage = Stage::AwaitErrorNumbers;
                return self.next_event();
            }
            (stage, state) => {
                return Err(WireError::Order { got: state.name(), expected: stage.awaits() });
            }
        };
        self.stage = next;
        Ok(Some(event))
    }
}

impl Stage {
    const fn awaits(self) -> &'static str {
        match self {
            Self::AwaitParamExchange => "parameter exchange",
            Self::AwaitCreateStreams => "create streams",
            Self::AwaitTestStart => "test start",
            Self::AwaitTestRunning => "test running",
            Self::Running => "the end of the test",
            Self::AwaitExchange => "exchange results",
            Self::AwaitResults => "the results",
            Self::AwaitDisplay => "display results",
            Self::AwaitErrorNumbers => "the numbers of the error",
            Self::Over => "nothing",
        }
    }
}
