//! What the streams of a test at the server have in common, over TCP and UDP, whoever sends.

use std::net::IpAddr;
use std::time::Duration;

use linerate_core::record::{Failure, Fault};
use linerate_core::time::MonoTime;
use linerate_proto::dialect::{FlowState, Output};
use linerate_proto::nuttcp::{NuttcpServerMachine, NuttcpServerReport};

use super::data_ports::DataPorts;
use crate::foreign::serve::Serving;
use crate::served::LogText;

/// The streams of a test have this long to connect, and a port this long to be given up.
pub(super) const STREAMS: Duration = Duration::from_secs(5);

/// The session that the streams of a test belong to.
pub(super) struct NuttcpContext<'a, 's, 'w> {
    /// The client, in words.
    pub(super) peer: String,
    /// The address of this end of the control connection.
    pub(super) local_ip: IpAddr,
    /// The address of the client.
    pub(super) peer_ip: IpAddr,
    pub(super) ports: &'a DataPorts,
    pub(super) serving: &'s mut Serving<'w>,
}

impl NuttcpContext<'_, '_, '_> {
    /// The failure of a test that is not served.
    pub(super) fn refuse(&self, reason: impl Into<String>) -> Failure {
        Failure::new(Fault::PeerRefused, "serve", &self.peer, reason.into())
    }
}

/// The streams of a test that was let in.
pub(super) trait Served<'a> {
    /// True where the ports are this test's now, if it needs any.
    fn is_ready(&mut self, about: &NuttcpContext<'a, '_, '_>) -> Result<bool, Failure> {
        let _ = about;
        Ok(true)
    }

    /// Takes in streams or connects them; whether all are there.
    fn open_streams(
        &mut self,
        now: MonoTime,
        about: &mut NuttcpContext<'_, '_, '_>,
    ) -> Result<bool, Failure>;

    /// Does what the machine wants; the line of an interval, where that is asked and told.
    fn carry_out(
        &mut self,
        now: MonoTime,
        output: Output<NuttcpServerMachine>,
        about: &mut NuttcpContext<'_, '_, '_>,
    ) -> Result<Option<String>, Failure>;

    /// How far the data has come.
    fn flow_state(&mut self, now: MonoTime) -> FlowState;

    /// Ends the streams; what the client is told, and what there is to say for the log.
    fn end_streams(
        &mut self,
        about: &mut NuttcpContext<'_, '_, '_>,
    ) -> (NuttcpServerReport, Result<LogText, Failure>);
}
