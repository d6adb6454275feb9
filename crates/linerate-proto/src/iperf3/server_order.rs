//! The server's side of a test as a machine, from the parameters on: the cookie is read by whoever
//! accepts the connection.

use super::wire::Inbox;
use super::{PARAMS_BYTES_MAX, Params, RESULTS_BYTES_MAX, Results, State, WireError};

/// What the server has to do next.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerEvent {
    /// Decide on this test.
    Params(Box<Params>),
    /// The client's time, bytes or blocks are reached.
    Ended,
    /// The client's account of the test.
    Results(Box<Results>),
    /// The client is done with the test.
    Finished,
    /// The client was interrupted.
    Terminated,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    AwaitParams,
    Deciding,
    AwaitStreams,
    Running,
    AwaitResults,
    AwaitDone,
    Over,
}

/// Follows one control connection from the parameters to the end.
#[derive(Debug)]
pub struct ServerOrder {
    stage: Stage,
    inbox: Inbox,
}

impl Default for ServerOrder {
    fn default() -> Self {
        Self { stage: Stage::AwaitParams, inbox: Inbox::default() }
    }
}

impl ServerOrder {
    /// Takes bytes of the client as they arrive.
    pub fn push(&mut self, bytes: &[u8]) {
        self.inbox.push(bytes);
    }

    /// The test was accepted and `create streams` sent.
    pub fn accepted(&mut self) {
        debug_assert_eq!(self.stage, Stage::Deciding);
        self.stage = Stage::AwaitStreams;
    }

    /// Every data stream has arrived and `test running` was sent.
    pub fn running(&mut self) {
        debug_assert_eq!(self.stage, Stage::AwaitStreams);
        self.stage = Stage::Running;
    }

    /// What the bytes so far ask for next, or `None` when more are needed.
    /// # Errors
    /// Whatever is not in order; the connection is then to be closed.
    pub fn next_event(&mut self) -> Result<Option<ServerEvent>, WireError> {
        match self.stage {
            Stage::AwaitParams => {
                let Some(text) = self.inbox.document("parameters", PARAMS_BYTES_MAX)? else {
                    return Ok(None);
                };
                self.stage = Stage::Deciding;
                Params::parse(&text).map(|params| Some(ServerEvent::Params(Box::new(params))))
            }
            Stage::AwaitResults => {
                let Some(text) = self.inbox.document("results", RESULTS_BYTES_MAX)? else {
                    return Ok(None);
                };
                self.stage = Stage::AwaitDone;
                Results::parse(&text).map(|results| Some(ServerEvent::Results(Box::new(results))))
            }
            stage => match self.inbox.state()? {
                Some(state) => self.step(stage, state).map(Some),
                None => Ok(None),
            },
        }
    }

    fn step(&mut self, stage: Stage, state: State) -> Result<ServerEvent, WireError> {
        let (next, event) = match (stage, state) {
            (Stage::Over, _) => {
                return Err(WireError::Order { got: state.name(), expected: stage.awaits() });
            }
            (Stage::Running, State::TestEnd) => (Stage::AwaitResults, ServerEvent::Ended),
            (Stage::AwaitDone, State::IperfDone) => (Stage::Over, ServerEvent::Finished),
            (_, State::ClientTerminate | State::IperfDone) => {
                (Stage::Over, ServerEvent::Terminated)
            }
            (stage, state) => {
                return Err(WireError::Order { got: state.name(), expected: stage.awaits() });
            }
        };
        self.stage = next;
        Ok(event)
    }
}

impl Stage {
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
