//! What a server's session asks of the streams of a test, over TCP or UDP.

use std::time::Duration;

use crate::served::LogText;
use linerate_core::record::{EndReport, Failure};
use linerate_core::time::MonoTime;
use linerate_proto::dialect::{FlowState, Output};
use linerate_proto::native::{Message, NativeServerMachine};

/// After the planned end a test may take this much longer: draining, a slow last answer.
pub(crate) const GRACE: Duration = Duration::from_secs(10);
/// The streams of a test at the server.
pub(crate) trait Served {
    /// Takes in streams that have come; whether all have, and are ready.
    fn open_streams(&mut self) -> Result<bool, Failure>;

    /// Does what the machine wants.
    fn carry_out(
        &mut self,
        now: MonoTime,
        output: Output<NativeServerMachine>,
    ) -> Result<(), Failure>;

    /// Messages for the client that are due now.
    fn news_for_client(&mut self) -> Result<Vec<Message>, Failure>;

    /// Takes a sample of every stream.
    fn sample(&mut self, now: MonoTime) -> Message;

    fn flow_state(&self) -> FlowState;

    /// Ends the streams: their account, and what the log says.
    fn finish(&mut self) -> Result<(Vec<EndReport>, LogText), Failure>;
}
