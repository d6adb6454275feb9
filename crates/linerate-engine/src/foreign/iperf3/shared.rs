//! What the sessions of a server share, and what a session asks of the streams of its test.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use linerate_core::record::{Event, Failure, Record, Tool};
use linerate_core::time::MonoTime;
use linerate_proto::dialect::{FlowState, Output};
use linerate_proto::iperf3::{Cookie, Iperf3ServerMachine, Params, Results, ServerOutput};
use linerate_sys::stop::Stop;

use super::login::Guard;
use super::registry::{Registration, Registry};
use super::udp_port::Iperf3UdpPort;
use crate::flow::account::Account;
use crate::flow::admission::Admission;
use crate::flow::contradiction;
use crate::flow::fold::fill_record;
use crate::served::LogText;

/// The settings that every session of a server shares.
pub struct Iperf3Context<'a> {
    /// Where data connections come from.
    pub registry: &'a Registry,
    /// Where UDP streams announce themselves; none where another program has that port.
    pub udp_port: Option<&'a Iperf3UdpPort>,
    /// Decides which tests may run.
    pub admission: &'a dyn Admission,
    /// Asks clients who they are; none lets everybody in.
    pub guard: Option<&'a Guard>,
    /// The server is being stopped.
    pub stop: &'a Stop,
    /// This program, for the record.
    pub tool: Tool,
    /// Time between two rows.
    pub interval: Duration,
}

/// LogText of a session as it goes on.
pub trait Observer {
    /// A connection, a stream, a row.
    fn event_seen(&mut self, _event: &Event) {}

    /// The parameters, once they are accepted.
    fn accepted(&mut self, _params: &Params, _peer: SocketAddr, _cookie: &Cookie) {}

    /// The text or document that the client wants to have of this end.
    fn output(&mut self, _record: &Record) -> Option<ServerOutput> {
        None
    }

    /// The end: everything that was seen.
    fn test_ended(&mut self, _record: &Record) {}
}

/// The session that the streams of a test belong to.
pub(super) struct About<'a> {
    pub(super) shared: &'a Iperf3Context<'a>,
    pub(super) observer: &'a mut dyn Observer,
    pub(super) cookie: Cookie,
    pub(super) peer: SocketAddr,
    /// Where the client reached this host.
    pub(super) own: Option<IpAddr>,
    /// Where its TCP streams arrive.
    pub(super) registration: Option<Registration>,
    pub(super) record: Option<Record>,
    /// The client's figures cannot be.
    pub(super) contradiction: Option<Failure>,
}

impl About<'_> {
    /// Notes that all streams that come by TCP have come.
    pub(super) fn expect_no_streams(&self) {
        self.registration.iter().for_each(Registration::complete);
    }

    /// Leaves out what the client tells where it cannot be: the record says so at the end.
    pub(super) fn check_client_figures(&mut self, account: &mut Account, now: MonoTime) {
        let Some(record) = &self.record else { return };
        let elapsed_ns = now.nanos_since(account.begin);
        self.contradiction = contradiction::of_client(&record.plan, account, elapsed_ns);
        if self.contradiction.is_some() {
            account.local.clear();
        }
    }

    /// Puts the account into the record; what the client wants to have of that.
    pub(super) fn output(&mut self, account: &Account, params: &Params) -> Option<ServerOutput> {
        let record = self.record.as_mut()?;
        fill_record(record, account);
        if params.get_server_output { self.observer.output(record) } else { None }
    }
}

/// The streams of a test that was let in.
pub(super) trait Served {
    /// True where the client may be asked for its streams now.
    fn is_ready(&mut self, about: &About<'_>) -> Result<bool, Failure>;

    /// Takes in streams that have arrived; whether all have, and are ready.
    fn open_streams(&mut self, about: &mut About<'_>) -> Result<bool, Failure>;

    /// Does what the machine wants; what was counted, when that is asked.
    fn carry_out(
        &mut self,
        now: MonoTime,
        output: Output<Iperf3ServerMachine>,
        about: &mut About<'_>,
    ) -> Result<Option<Results>, Failure>;

    /// How far the data has come.
    fn flow_state(&mut self, now: MonoTime) -> FlowState;

    /// Ends what still runs; what there is to say for the log.
    fn end_streams(&mut self) -> LogText;
}
