//! A test with `iperf -s`: streams that begin with a header, and the server's answer to it.
//!
//! Both directions at once go over the same connections (`--full-duplex` of iperf 2.1 and newer);
//! the connections back of `-d` and `-r` are the personality's business.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use linerate_core::record::{
    Direction, Failure, Fault, Finish, FlowSide, Record, TcpDirections, TcpPlan, TcpTest,
};
use linerate_core::time::MonoTime;
use linerate_core::units::BitRate;
use linerate_proto::dialect::{Output, TestFailureReason};
use linerate_proto::iperf2::{
    Client, ClientHeader, ClientTest, Iperf2Amount, Mode, PeerFault, pattern,
};
use linerate_sys::clock::{monotonic, sleep};
use linerate_sys::poll::readable;

use crate::context::Context;
use crate::flow::account::Account;
use crate::flow::peer::connection_failure;
use crate::flow::tcp::client::run_by;
use crate::flow::tcp::endpoint::{StreamRules, stream_share};
use crate::flow::{Net, Words};
use crate::foreign::tcp_client::{Dialect, ForeignTcpClient};
use crate::foreign::test::{Test, refuse, remote_end};

/// Streams of iperf 2: digits, and no report over TCP.
pub(crate) const RULES: StreamRules = StreamRules {
    content: pattern,
    one_sided: true,
    shares: true,
    round_robin: false,
    steady: false,
};

/// Longest buffer that a server of iperf 2 may be asked to write: its own default.
const SERVER_BUFFER_MAX: u32 = 128 << 10;

/// A connection back, on which the server sends (`-d`, `-r` of iperf 2). The caller listens.
#[derive(Clone, Copy, Debug)]
pub struct Return {
    /// At the same time, and not afterwards.
    pub at_once: bool,
    /// The port where the caller listens.
    pub port: u16,
}

impl Return {
    /// The mode that the client's header asks for.
    pub(super) const fn header_mode(self) -> Mode {
        if self.at_once { Mode::Dual } else { Mode::TradeOff }
    }
}

/// The mode of a test by who sends on the client's own connections.
pub(super) const fn mode_of(directions: TcpDirections) -> Mode {
    match directions {
        TcpDirections::Up => Mode::Forward,
        TcpDirections::Down => Mode::Reverse,
        TcpDirections::Both => Mode::FullDuplex,
    }
}

/// Measures with a server of iperf 2.
pub(crate) fn measure(
    plan: &TcpPlan,
    context: &mut Context<'_>,
    account: &mut Account,
) -> Result<(), Failure> {
    measure_in(mode_of(plan.test.directions), plan.server.port, plan, context, account)
}

/// Measures from here to a server of iperf 2, and asks it to send on a connection of its own to the
/// caller; the record is that of the way there.
pub fn run_with_return(plan: &TcpPlan, back: Return, context: &mut Context<'_>) -> Record {
    let plan = TcpPlan {
        test: TcpTest { directions: TcpDirections::Up, ..plan.test.clone() },
        ..plan.clone()
    };
    run_by(&plan, context, |context, account| {
        measure_in(back.header_mode(), back.port, &plan, context, account)
    })
}

fn measure_in(
    mode: Mode,
    listen_port: u16,
    plan: &TcpPlan,
    context: &mut Context<'_>,
    account: &mut Account,
) -> Result<(), Failure> {
    let mut test = Test::from_plan(plan, RULES, account)?;
    for flow in 0..plan.test.streams {
        let header = ClientHeader { listen_port, ..header(mode, flow, plan)? };
        connect(&mut test, flow, header, account)?;
    }
    test.connected(plan, context);
    let client = ClientTest {
        mode,
        span: test.request.planned_span(),
        bytes: test.request.byte_budget(),
        interval: Duration::from_nanos(plan.test.interval_ns),
    };
    let mut answers = Answers { streams: test.sockets.clone(), at: 0 };
    let end = ForeignTcpClient { test, dialect: Iperf2 { program: None }, context, account };
    let (end, result) = end.run(Client::new(monotonic(), client), &mut answers);
    end.account.ends.push(remote_end(end.dialect.program));
    end.test.finish(result, end.context, end.account)
}

/// The client's own part; its streams are connected before the test begins.
struct Iperf2 {
    /// The name and version of the server's program, as it says.
    program: Option<String>,
}

impl Dialect for Iperf2 {
    type Machine = Client;

    const SAMPLES_END: bool = true;

    fn take_output(&mut self, told: Output<Client>, _: &mut Account) {
        if let Output::Peer(answer) = told {
            self.program = Some(format!("iperf {}", answer.version));
        }
    }
}

impl Words for Client {
    fn failure(server: &str, reason: TestFailureReason<PeerFault>) -> Failure {
        let (attempt, reason) = match reason {
            TestFailureReason::Peer(PeerFault::Early(early)) => {
                let early = early.as_secs_f64();
                ("receive from", format!("its streams ended {early:.3} s early"))
            }
            TestFailureReason::Peer(PeerFault::Short(received, asked)) => {
                ("receive from", format!("its streams ended after {received} of {asked} bytes"))
            }
            TestFailureReason::Stopped => {
                ("connect to", "stopped before its streams were open".to_owned())
            }
            _ => ("hear from", "the data did not end in time".to_owned()),
        };
        let failure = Failure::new(Fault::Unreachable, attempt, server, reason);
        failure.advise("the results so far are kept")
    }
}

/// The answers that the server writes on streams that this end alone sends on, read stream after
/// stream until it closes.
struct Answers {
    streams: Vec<Arc<TcpStream>>,
    /// Index of the stream that is read; those before are closed.
    at: usize,
}

impl Net for Answers {
    fn now(&self) -> MonoTime {
        monotonic()
    }

    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        while let Some(stream) = self.streams.get(self.at) {
            if !readable(stream, Duration::ZERO)? {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            match (&**stream).read(bytes) {
                Ok(0) => self.at += 1,
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => self.at += 1,
                result => return result,
            }
        }
        Ok(0)
    }

    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        // Its header goes with the data.
        Err(io::ErrorKind::Unsupported.into())
    }

    fn wait(&mut self, until: MonoTime, for_bytes: bool) {
        let span = until.duration_since(monotonic());
        match self.streams.get(self.at).filter(|_| for_bytes) {
            Some(stream) => drop(readable(stream, span)),
            None => sleep(span),
        }
    }
}

/// Connects a stream, which begins with `header`.
fn connect(
    test: &mut Test,
    flow: u16,
    header: ClientHeader,
    account: &mut Account,
) -> Result<(), Failure> {
    let bytes = header.to_bytes();
    account.head_bytes = bytes.len() as u64;
    let side = if header.mode == Mode::Reverse { FlowSide::Receiver } else { FlowSide::Sender };
    let socket = test.connect(test.server, side)?;
    let server = test.server.to_string();
    let lost = |error: io::Error| connection_failure(&server, "open data stream to", &error);
    match header.mode {
        Mode::Reverse => {
            (&socket).write_all(&bytes).map_err(lost)?;
            test.add(socket, Direction::Down, flow, account);
            return Ok(());
        }
        Mode::FullDuplex => {
            let back = socket.try_clone().map_err(lost)?;
            test.add(back, Direction::Down, flow, account);
        }
        Mode::Forward | Mode::Dual | Mode::TradeOff => {}
    }
    test.add(socket, Direction::Up, flow, account);
    test.endpoint.begin_with(bytes);
    Ok(())
}

/// The header of one stream. Its amount is that stream's own.
fn header(mode: Mode, flow: u16, plan: &TcpPlan) -> Result<ClientHeader, Failure> {
    let amount = match plan.test.finish {
        Finish::TimeNs(ns) => time_amount(ns.saturating_add(plan.test.omit_ns))?,
        Finish::Bytes(bytes) => own_amount(bytes, flow, plan)?,
        Finish::Buffers(count) => {
            own_amount(count.saturating_mul(plan.test.buffer_bytes.into()), flow, plan)?
        }
    };
    Ok(ClientHeader {
        threads: plan.test.streams.into(),
        // iperf 2.1.8 writes beyond its own buffer of 128 KiB when a header asks for more.
        buffer_bytes: if plan.test.buffer_bytes <= SERVER_BUFFER_MAX {
            plan.test.buffer_bytes
        } else {
            0
        },
        rate_bps: plan.test.pace.map_or(0, BitRate::bits_per_sec),
        service_type: plan.test.dscp.unwrap_or(0) << 2,
        window: plan.test.window_bytes.and_then(|bytes| u32::try_from(bytes).ok()).unwrap_or(0),
        ..ClientHeader::new(mode, amount)
    })
}

/// Hundredths of a second, rounded up: the server is not to end before this end does.
pub(super) fn time_amount(ns: u64) -> Result<Iperf2Amount, Failure> {
    let centiseconds = u32::try_from(ns.div_ceil(10_000_000)).ok();
    let fits = centiseconds.filter(|count| *count <= 1 << 31);
    fits.map(Iperf2Amount::Centiseconds)
        .ok_or_else(|| refuse("iperf 2 has no room for a time of 248 days or more".to_owned()))
}

/// The bytes of one stream of all.
fn own_amount(bytes: u64, flow: u16, plan: &TcpPlan) -> Result<Iperf2Amount, Failure> {
    let own = stream_share(bytes, flow, plan.test.streams);
    let fits = u32::try_from(own).ok().filter(|own| (60..1 << 31).contains(own));
    fits.map(Iperf2Amount::Bytes).ok_or_else(|| {
        refuse(format!("{own} bytes of a stream; iperf 2 has room for 60 … 2,147,483,647"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_shared_out_so_that_none_is_lost() {
        let plan =
            TcpPlan { test: TcpTest { streams: 3, ..TcpTest::default() }, ..TcpPlan::default() };
        let own = |flow| own_amount(1000, flow, &plan).expect("enough for a header");
        assert_eq!([own(0), own(1), own(2)], [334, 333, 333].map(Iperf2Amount::Bytes));
        assert!(own_amount(100, 0, &plan).is_err(), "34 bytes hold no header");
        assert!(own_amount(3 << 31, 0, &plan).is_err());
    }

    #[test]
    fn a_time_is_rounded_up_to_hundredths_of_a_second() {
        assert_eq!(time_amount(1_000_000_001).ok(), Some(Iperf2Amount::Centiseconds(101)));
        assert_eq!(time_amount(1_000_000_000).ok(), Some(Iperf2Amount::Centiseconds(100)));
        assert!(time_amount(u64::MAX).is_err());
    }
}
