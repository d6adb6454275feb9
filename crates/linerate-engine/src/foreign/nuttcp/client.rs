//! A test with `nuttcp -S`: the parameters, the streams, the server's summary.
//!
//! This end always connects, also to receive (nuttcp's own `-F`), so that nothing has to be open
//! here. Left out: both directions at once, which nuttcp does not have.

use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use linerate_core::record::{
    Direction, Event, Failure, Fault, Finish, FlowEnd, Side, TcpDirections, TcpPlan,
};
use linerate_proto::native::EndReport;
use linerate_proto::nuttcp::{
    ClientEvent, ClientMachine, PORT, Parameters, Summary, UNLIMITED, UNTIL_TIMEOUT, Version,
};
use linerate_sys::clock::{monotonic, sleep};

use super::MANNER;
use super::control::{Control, Heard};
use crate::context::Context;
use crate::foreign::test::{Test, refuse, remote_end};
use crate::throughput::account::Account;

/// The server has this long for each answer. It may keep a client waiting while others measure.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// The server has this long for its summary once the data is over.
const SUMMARY_TIMEOUT: Duration = Duration::from_secs(10);
/// A server that said OK listens within this time.
const LISTEN_TIMEOUT: Duration = Duration::from_secs(1);
/// How often the stop flag is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// Measures with a server of nuttcp.
pub(crate) fn measure(
    plan: &TcpPlan,
    context: &mut Context<'_>,
    account: &mut Account,
) -> Result<(), Failure> {
    let direction = match plan.directions {
        TcpDirections::Up => Direction::Up,
        TcpDirections::Down => Direction::Down,
        TcpDirections::Both => {
            let reason = "nuttcp measures one way at a time".to_owned();
            return Err(refuse(reason).advise("leave out --bidir"));
        }
    };
    let parameters = parameters(plan, direction)?;
    let mut test = Test::of(plan, MANNER, account)?;
    let mut session = Session::open(&test, context)?;
    let version = session.greet(context)?;
    account.ends.push(remote_end(Some(format!("nuttcp {version}"))));
    session.ask(&parameters.to_line(version), context)?;
    for flow in 0..plan.streams {
        let server = SocketAddr::new(test.server.ip(), PORT + flow);
        let side = if direction == Direction::Up { Side::Sender } else { Side::Receiver };
        let socket = connect(&test, server, side)?;
        test.add(socket, (direction, flow), account);
    }
    test.connected(plan, context);
    let result = test.start(account).and_then(|()| {
        test.follow(context, account, &mut |_| session.listen(monotonic()).map(|_| ()))
    });
    let result = result.and_then(|()| session.read_summary(context));
    let result = test.finish(result, account);
    session.told(plan, direction, account);
    result
}

/// Connects a data stream. A server that transmits says OK a moment before it listens.
fn connect(test: &Test, server: SocketAddr, side: Side) -> Result<TcpStream, Failure> {
    let deadline = monotonic() + LISTEN_TIMEOUT;
    loop {
        match test.connect(server, side) {
            Err(failure) if failure.fault == Fault::Unreachable && monotonic() < deadline => {
                sleep(Duration::from_millis(5));
            }
            result => return result,
        }
    }
}

/// The parameters of a plan.
fn parameters(plan: &TcpPlan, direction: Direction) -> Result<Parameters, Failure> {
    let up = direction == Direction::Up;
    let streams = u64::from(plan.streams);
    let (nbuf, timeout_s) = match plan.finish {
        Finish::TimeNs(ns) => (UNTIL_TIMEOUT, ns.saturating_add(plan.omit_ns) as f64 / 1e9),
        Finish::Buffers(count) => (count, 0.0),
        Finish::Bytes(bytes)
            if bytes % u64::from(plan.buffer_bytes) == 0 || (up && plan.streams == 1) =>
        {
            (bytes.div_ceil(plan.buffer_bytes.into()), 0.0)
        }
        Finish::Bytes(_) => {
            let reason = "nuttcp sends whole buffers".to_owned();
            return Err(refuse(reason).advise("give -n a multiple of -l, or -k"));
        }
    };
    if plan.congestion_control.is_some() && !up {
        let reason = "nuttcp's server cannot be told its congestion control".to_owned();
        return Err(refuse(reason).advise("leave out -C, or set it on that host"));
    }
    // kbit/s of all streams together.
    let rate = plan.pace.map(|pace| (pace.bits_per_sec() * streams).div_ceil(1000));
    Ok(Parameters {
        buflen: if up { plan.buffer_bytes } else { buflen(plan) },
        nbuf,
        window: plan.window_bytes.unwrap_or(0),
        nstream: plan.streams,
        rate: rate.unwrap_or(UNLIMITED),
        client_sends: up,
        // The receiver connects: this end, also where it receives.
        flip: !up,
        timeout_s,
        mss: plan.mss_bytes.unwrap_or(0),
        tos: plan.dscp.unwrap_or(0) << 2,
        nodelay: plan.nodelay,
        ..Parameters::default()
    })
}

/// What the server writes at once: where it has a pace, no more than that gives in 10 ms, for it
/// keeps the pace from write to write.
fn buflen(plan: &TcpPlan) -> u32 {
    let Some(pace) = plan.pace.filter(|_| matches!(plan.finish, Finish::TimeNs(_))) else {
        return plan.buffer_bytes;
    };
    let in_10_ms = u32::try_from(pace.bits_per_sec() / 800).unwrap_or(u32::MAX);
    plan.buffer_bytes.min(in_10_ms.max(1024))
}

/// The control connection of a test, and what the server told.
struct Session {
    control: Control,
    machine: ClientMachine,
    summary: Summary,
    over: bool,
}

impl Session {
    fn open(test: &Test, context: &mut Context<'_>) -> Result<Self, Failure> {
        let stream = test.connect(test.server, Side::Receiver)?;
        let line = format!("control to {}", test.server);
        (context.watch)(&Event::Connected(line));
        let control = Control::new(stream);
        let machine = ClientMachine::default();
        Ok(Self { control, machine, summary: Summary::default(), over: false })
    }

    fn greet(&mut self, context: &Context<'_>) -> Result<Version, Failure> {
        self.control.send(&format!("HELO nuttcp v{}\n", linerate_proto::nuttcp::WIRE_VERSION))?;
        match self.next_event("greeting", ANSWER_TIMEOUT, context)? {
            ClientEvent::Hello(version) => Ok(version),
            event => Err(self.refusal(event)),
        }
    }

    fn ask(&mut self, line: &str, context: &Context<'_>) -> Result<(), Failure> {
        self.control.send(line)?;
        match self.next_event("answer", ANSWER_TIMEOUT, context)? {
            ClientEvent::Accepted => Ok(()),
            event => Err(self.refusal(event)),
        }
    }

    /// The next event that means something.
    fn next_event(
        &mut self,
        what: &str,
        timeout: Duration,
        context: &Context<'_>,
    ) -> Result<ClientEvent, Failure> {
        let deadline = monotonic() + timeout;
        while monotonic() < deadline && !context.stop.asked() {
            match self.control.hear(deadline.min(monotonic() + LOOK))? {
                Heard::Line(line) => match self.handle(line)? {
                    ClientEvent::Nothing => {}
                    event => return Ok(event),
                },
                Heard::Closed => match self.machine.closed() {
                    Some(reason) => return Ok(ClientEvent::Refused(reason)),
                    None => return Err(self.control.closed()),
                },
                Heard::Nothing => {}
            }
        }
        Err(self.control.silent(what))
    }

    /// Takes the lines that have come by `until`; whether the server has closed.
    fn listen(&mut self, until: linerate_core::time::MonoTime) -> Result<bool, Failure> {
        while !self.over {
            match self.control.hear(until)? {
                Heard::Line(line) => {
                    self.handle(line)?;
                }
                Heard::Closed => self.over = true,
                Heard::Nothing => return Ok(false),
            }
        }
        Ok(true)
    }

    fn handle(&mut self, line: String) -> Result<ClientEvent, Failure> {
        self.summary.read(&line);
        self.machine.handle(line).map_err(|error| self.control.misbehaved(&error))
    }

    /// Takes the summary; the server closes behind it.
    fn read_summary(&mut self, context: &Context<'_>) -> Result<(), Failure> {
        let deadline = monotonic() + SUMMARY_TIMEOUT;
        while monotonic() < deadline {
            if self.listen(deadline.min(monotonic() + LOOK))? || context.stop.asked() {
                return Ok(());
            }
        }
        Err(self.control.silent("summary"))
    }

    fn refusal(&self, event: ClientEvent) -> Failure {
        match event {
            ClientEvent::Refused(reason) => {
                Failure::new(Fault::PeerRefused, "ask for a test with", self.control.peer(), reason)
            }
            _ => {
                let reason = "answers out of order";
                Failure::new(Fault::PeerMisbehaved, "test with", self.control.peer(), reason)
            }
        }
    }

    /// Puts what the server told of its end into the account. Its figures are those of all streams
    /// and of the whole time, so they are the end of a stream only where it is the only one.
    fn told(&self, plan: &TcpPlan, direction: Direction, account: &mut Account) {
        let [local] = account.local.as_slice() else { return };
        let Some(bytes) = self.summary.bytes(local.end.bytes) else { return };
        let Some(span_ns) = self.summary.span_ns(bytes).filter(|_| plan.omit_ns == 0) else {
            return;
        };
        let technique = if direction == Direction::Up { "nuttcp, read" } else { "nuttcp, write" };
        let end = FlowEnd {
            bytes,
            bytes_measured: bytes,
            span_ns,
            io_calls: self.summary.calls.unwrap_or(0),
            technique: technique.to_owned(),
            ..FlowEnd::default()
        };
        let report =
            EndReport { end, syn: None, failure: None, stolen_ratio: None, ..local.clone() };
        account.remote.push(report);
    }
}
