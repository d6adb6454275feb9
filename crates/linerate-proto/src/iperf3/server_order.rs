//! Order of the control messages at the server, from the parameters on: checks each of the client's
//! messages against the step of the test. The acceptor of the connection has read the cookie.

use super::wire::Inbox;
use super::{PARAMS_BYTES_MAX, Params, RESULTS_BYTES_MAX, Results, State, WireError};

/// Next action of the server.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerEvent {
    /// Accept or refuse this test.
    Params(Box<Params>),
    /// The client has reached its time, bytes or blocks.
    Ended,
    /// Use the client's results.
    Results(Box<Results>),
    /// The client is done with the test.
    Finished,
    /// The client was interrupted.
    Terminated,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Iperf3ServerOrderStage {
    AwaitParams,
    Deciding,
    AwaitStreams,
    Running,
    AwaitResults,
    AwaitDone,
    Over,
}

/// State of a control connection at the server, from the parameters to the end.
#[derive(Debug)]
pub struct ServerOrder {
    stage: Iperf3ServerOrderStage,
    inbox: Inbox,
}

impl Default for ServerOrder {
    fn default() -> Self {
        Self { stage: Iperf3ServerOrderStage::AwaitParams, inbox: Inbox::default() }
    }
}

impl ServerOrder {
    /// Adds bytes received from the client.
    pub fn push(&mut self, bytes: &[u8]) {
        self.inbox.push(bytes);
    }

    /// Notes that the test was accepted and `create streams` sent.
    pub fn note_accepted(&mut self) {
        debug_assert_eq!(self.stage, Iperf3ServerOrderStage::Deciding);
        self.stage = Iperf3ServerOrderStage::AwaitStreams;
    }

    /// Notes that every data stream is connected and `test running` sent.
    pub fn note_running(&mut self) {
        debug_assert_eq!(self.stage, Iperf3ServerOrderStage::AwaitStreams);
        self.stage = Iperf3ServerOrderStage::Running;
    }

    /// The next action by the bytes so far; `None` when more are needed.
    /// # Errors
    /// When a message is invalid or out of order; the connection is then to be closed.
    pub fn next_event(&mut self) -> Result<Option<ServerEvent>, WireError> {
        match self.stage {
            Iperf3ServerOrderStage::AwaitParams => {
                let Some(text) = self.inbox.document("parameters", PARAMS_BYTES_MAX)? else {
                    return Ok(None);
                };
                self.stage = Iperf3ServerOrderStage::Deciding;
                Params::parse(&text).map(|params| Some(ServerEvent::Params(Box::new(params))))
            }
            Iperf3ServerOrderStage::AwaitResults => {
                let Some(text) = self.inbox.document("results", RESULTS_BYTES_MAX)? else {
                    return Ok(None);
                };
                self.stage = Iperf3ServerOrderStage::AwaitDone;
                Results::parse(&text).map(|results| Some(ServerEvent::Results(Box::new(results))))
            }
            stage => match self.inbox.next_state()? {
                Some(state) => self.handle_state(stage, state).map(Some),
                None => Ok(None),
            },
        }
    }

    fn handle_state(
        &mut self,
        stage: Iperf3ServerOrderStage,
        state: State,
    ) -> Result<ServerEvent, WireError> {
        let (next, event) = match (stage, state) {
            (Iperf3ServerOrderStage::Over, _) => {
                return Err(WireError::Order { got: state.name(), expected: stage.awaits() });
            }
            (Iperf3ServerOrderStage::Running, State::TestEnd) => {
                (Iperf3ServerOrderStage::AwaitResults, ServerEvent::Ended)
            }
            (Iperf3ServerOrderStage::AwaitDone, State::IperfDone) => {
                (Iperf3ServerOrderStage::Over, ServerEvent::Finished)
            }
            (_, State::ClientTerminate | State::IperfDone) => {
                (Iperf3ServerOrderStage::Over, ServerEvent::Terminated)
            }
            (stage, state) => {
                return Err(WireError::Order { got: state.name(), expected: stage.awaits() });
            }
        };
        self.stage = next;
        Ok(event)
    }
}

impl Iperf3ServerOrderStage {
    const fn awaits(self) -> &'static str {
        match self {
            Self::AwaitParams => "the parameters",
            Self::Deciding | Self::AwaitStreams => "the data streams",
            Self::Running => "test end",
            Self::AwaitResults => "the results",
            Self::AwaitDone => "iperf done",
            Self::Over => "nothing",
        }
    }
}
