//! The server's side as a machine: which line is in order when, and the lines to answer.

use super::{LineError, Parameters, Version, WIRE_VERSION, shown};

/// What the server has to do after a line.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerEvent {
    /// Send this line.
    Answer(String),
    /// Decide on this test and answer by [`ServerMachine::accept`] or [`ServerMachine::refuse`].
    Requested(Box<Parameters>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    AwaitHello,
    AwaitParameters,
    Over,
}

/// Follows the lines of a client.
#[derive(Debug)]
pub struct ServerMachine {
    state: State,
}

impl Default for ServerMachine {
    fn default() -> Self {
        Self { state: State::AwaitHello }
    }
}

impl ServerMachine {
    /// Takes a line of the client. The oldest clients send their parameters without a greeting.
    /// # Errors
    /// [`LineError`] when it is not in order or cannot be; the connection is then to be closed.
    pub fn handle(&mut self, line: &str) -> Result<ServerEvent, LineError> {
        let greeting = line.strip_prefix("HELO nuttcp ").and_then(Version::parse);
        match (self.state, greeting) {
            (State::AwaitHello, Some(_)) => {
                self.state = State::AwaitParameters;
                Ok(ServerEvent::Answer(format!("HELO nuttcp v{WIRE_VERSION}\n")))
            }
            (State::AwaitHello | State::AwaitParameters, None) if line.starts_with("buflen") => {
                self.state = State::Over;
                let parameters = Parameters::parse(line).map_err(LineError::Parameters)?;
                Ok(ServerEvent::Requested(Box::new(parameters)))
            }
            (state, _) => Err(LineError::State { got: shown(line), expected: state.awaits() }),
        }
    }

    /// The line that lets the client begin.
    pub fn accept() -> String {
        format!("OK v{WIRE_VERSION}\n")
    }

    /// The lines that send the client away.
    pub fn refuse(reason: &str) -> String {
        let reason: String = reason.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        format!("KO\nnuttcp-r: v{WIRE_VERSION}: Error: {reason}\nKO\n")
    }
}

impl State {
    const fn awaits(self) -> &'static str {
        match self {
            Self::AwaitHello => "HELO",
            Self::AwaitParameters => "parameters",
            Self::Over => "nothing",
        }
    }
}
