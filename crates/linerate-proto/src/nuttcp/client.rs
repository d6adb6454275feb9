//! The client's side as a machine: which line means what when.

use super::{LineError, Version, shown};

/// Lines of one test that are looked at: a day of intervals of 100 ms.
const LINES_MAX: usize = 1_000_000;

/// What the client has to do after a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientEvent {
    /// Send the parameters for a server of this version.
    Hello(Version),
    /// Open the data streams.
    Accepted,
    /// The server said no; its reason so far.
    Refused(String),
    /// A line for people, an interval, the summary.
    Line(String),
    /// The data is over; the summary follows.
    Done,
    /// Nothing yet.
    Nothing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    AwaitHello,
    AwaitAnswer,
    Refused,
    Running,
}

/// Follows the lines of a server.
#[derive(Debug)]
pub struct ClientMachine {
    state: State,
    reason: String,
    lines: usize,
}

impl Default for ClientMachine {
    fn default() -> Self {
        Self { state: State::AwaitHello, reason: String::new(), lines: 0 }
    }
}

impl ClientMachine {
    /// Takes a line of the server.
    /// # Errors
    /// [`LineError::State`] when it is not in order, [`LineError::TooMany`].
    pub fn handle(&mut self, line: String) -> Result<ClientEvent, LineError> {
        self.lines += 1;
        if self.lines > LINES_MAX {
            return Err(LineError::TooMany(LINES_MAX));
        }
        match self.state {
            State::AwaitHello => {
                let version = line.strip_prefix("HELO nuttcp ").and_then(Version::parse);
                let version = version.ok_or_else(|| out_of_order(&line, "HELO"))?;
                self.state = State::AwaitAnswer;
                Ok(ClientEvent::Hello(version))
            }
            State::AwaitAnswer if line.starts_with("OK") => {
                self.state = State::Running;
                Ok(ClientEvent::Accepted)
            }
            State::AwaitAnswer if line.starts_with("KO") => {
                self.state = State::Refused;
                Ok(ClientEvent::Nothing)
            }
            State::AwaitAnswer => Err(out_of_order(&line, "OK or KO")),
            State::Refused if line.starts_with("KO") => {
                Ok(ClientEvent::Refused(std::mem::take(&mut self.reason)))
            }
            State::Refused => {
                let separator = if self.reason.is_empty() { "" } else { "; " };
                self.reason.push_str(separator);
                self.reason.push_str(&shown(&line));
                let enough = self.reason.len() > 400;
                let event = |reason| {
                    if enough { ClientEvent::Refused(reason) } else { ClientEvent::Nothing }
                };
                Ok(event(self.reason.clone()))
            }
            State::Running if line == "DONE" => Ok(ClientEvent::Done),
            State::Running => Ok(ClientEvent::Line(line)),
        }
    }

    /// The server closed the connection: the reason of a refusal whose end did not come.
    pub fn closed(&mut self) -> Option<String> {
        (self.state == State::Refused).then(|| std::mem::take(&mut self.reason))
    }
}

fn out_of_order(line: &str, expected: &'static str) -> LineError {
    LineError::State { got: shown(line), expected }
}
