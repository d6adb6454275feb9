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
enum Iperf3ClientOrderStage {
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
    stage: Iperf3ClientOrderStage,
    inbox: Inbox,
}

impl Default for ClientOrder {
    fn default() -> Self {
        Self { stage: Iperf3ClientOrderStage::AwaitParamExchange, inbox: Inbox::default() }
    }
}

impl ClientOrder {
    /// Adds bytes received from the server.
    pub fn push(&mut self, bytes: &[u8]) {
        self.inbox.push(bytes);
    }

    /// Notes that the client has sent `test end`.
    pub fn note_test_end(&mut self) {
        if self.stage == Iperf3ClientOrderStage::Running {
            self.stage = Iperf3ClientOrderStage::AwaitExchange;
        }
    }

    /// The next action by the bytes so far; `None` when more are needed.
    /// # Errors
    /// When a message is invalid or out of order; the connection is then to be closed.
    pub fn next_event(&mut self) -> Result<Option<ClientEvent>, WireError> {
        match self.stage {
            Iperf3ClientOrderStage::AwaitResults => self.parse_results(),
            Iperf3ClientOrderStage::AwaitErrorNumbers => {
                Ok(self.inbox.error_numbers().map(|numbers| {
                    self.stage = Iperf3ClientOrderStage::Over;
                    ClientEvent::Failed(Some(numbers))
                }))
            }
            stage => match self.inbox.next_state()? {
                Some(state) => self.handle_state(stage, state),
                None => Ok(None),
            },
        }
    }

    /// The failure to report when the server closes the connection within a server error: version
    /// 3.12 leaves the kernel's number out when it refuses a user.
    pub fn event_on_close(&self) -> Option<ClientEvent> {
        let code = || self.inbox.error_number().map(|code| (code, 0));
        (self.stage == Iperf3ClientOrderStage::AwaitErrorNumbers)
            .then(|| ClientEvent::Failed(code()))
    }

    fn parse_results(&mut self) -> Result<Option<ClientEvent>, WireError> {
        let Some(text) = self.inbox.document("results", RESULTS_BYTES_MAX)? else {
            return Ok(None);
        };
        self.stage = Iperf3ClientOrderStage::AwaitDisplay;
        Results::parse(&text).map(|results| Some(ClientEvent::Results(Box::new(results))))
    }

    fn handle_state(
        &mut self,
        stage: Iperf3ClientOrderStage,
        state: State,
    ) -> Result<Option<ClientEvent>, WireError> {
        let (next, event) = match (stage, state) {
            (Iperf3ClientOrderStage::Over, _) => {
                return Err(WireError::Order { got: state.name(), expected: stage.awaits() });
            }
            (Iperf3ClientOrderStage::AwaitParamExchange, State::ParamExchange) => {
                (Iperf3ClientOrderStage::AwaitCreateStreams, ClientEvent::SendParams)
            }
            (Iperf3ClientOrderStage::AwaitCreateStreams, State::CreateStreams) => {
                (Iperf3ClientOrderStage::AwaitTestStart, ClientEvent::CreateStreams)
            }
            (Iperf3ClientOrderStage::AwaitTestStart, State::TestStart) => {
                (Iperf3ClientOrderStage::AwaitTestRunning, ClientEvent::Starting)
            }
            (Iperf3ClientOrderStage::AwaitTestRunning, State::TestRunning) => {
                (Iperf3ClientOrderStage::Running, ClientEvent::Running)
            }
            (Iperf3ClientOrderStage::AwaitExchange, State::ExchangeResults) => {
                (Iperf3ClientOrderStage::AwaitResults, ClientEvent::SendResults)
            }
            (Iperf3ClientOrderStage::AwaitDisplay, State::DisplayResults) => {
                (Iperf3ClientOrderStage::Over, ClientEvent::Finished)
            }
            (_, State::AccessDenied) => (Iperf3ClientOrderStage::Over, ClientEvent::Denied),
            (_, State::ServerTerminate) => (Iperf3ClientOrderStage::Over, ClientEvent::Terminated),
            (_, State::ServerError) => {
                self.stage = Iperf3ClientOrderStage::AwaitErrorNumbers;
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

impl Iperf3ClientOrderStage {
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
