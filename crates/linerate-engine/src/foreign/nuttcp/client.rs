//! A test with `nuttcp -S`: the parameters, the streams, the server's summary.
//!
//! This end always connects, also to receive (nuttcp's own `-F`), so that nothing has to be open
//! here. Left out: both directions at once, which nuttcp does not have.

use std::net::SocketAddr;
use std::time::Duration;

use linerate_core::record::{
    Direction, Event, Failure, Fault, Finish, FlowEnd, FlowSide, Plan, Record, TcpDirections,
    TcpPlan, TcpTest,
};
use linerate_proto::dialect::Output;
use linerate_proto::nuttcp::{
    ClientNews, NuttcpClientMachine, NuttcpClientTest, NuttcpInterval, NuttcpSummary, PORT,
    Parameters, UNLIMITED, UNTIL_TIMEOUT,
};
use linerate_sys::clock::{monotonic, sleep};

use super::RULES;

use crate::context::Context;
use crate::flow::Socket;
use crate::flow::account::{Account, client_side};
use crate::flow::contradiction::of_sum;
use crate::flow::tcp::client::run_by;
use crate::foreign::tcp_client::{Dialect, ForeignTcpClient};
use crate::foreign::test::{Test, refuse, remote_end};

/// A server that said OK listens within this time.
const LISTEN_TIMEOUT: Duration = Duration::from_secs(1);

/// Observer of each interval line of the server: its figures and the line.
pub type ToldInterval<'a> = dyn FnMut(&NuttcpInterval, &str) + 'a;

/// The options of nuttcp's own command line beside a plan.
pub struct NuttcpExtras<'a> {
    /// Port of the first data stream.
    pub data_port: Option<u16>,
    /// A server that receives tells about each interval of the plan.
    pub intervals: bool,
    /// A server that transmits keeps its pace from write to write (`-Ri`).
    pub instant: bool,
    /// A server that receives tells its jitter: what `-j` shows of it, 0 for nothing.
    pub jitter: u8,
    /// The same of one-way delays (`-o`).
    pub delay: u8,
    /// Observer of the server's interval lines.
    pub told: &'a mut ToldInterval<'a>,
}

impl<'a> NuttcpExtras<'a> {
    /// The extras of a plan without options of nuttcp's own.
    pub fn without_options(told: &'a mut ToldInterval<'a>) -> Self {
        Self { data_port: None, intervals: false, instant: false, jitter: 0, delay: 0, told }
    }
}

/// A receiver reads to the end of the stream, as nuttcp does: a server whose writes time out says
/// that the test failed. Send buffers of 32 MB are empty by then at 1 Mbit/s and above.
const DRAIN_NS: u64 = 300_000_000_000;

/// Measures with a server of nuttcp.
pub(crate) fn measure(
    plan: &TcpPlan,
    context: &mut Context<'_>,
    account: &mut Account,
) -> Result<(), Failure> {
    measure_with(plan, NuttcpExtras::without_options(&mut |_, _| {}), context, account).map(|_| ())
}

/// Measures with a server of nuttcp, as `throughput::run_tcp` does; also gives what the server
/// told of its end.
pub fn run(
    plan: &TcpPlan,
    extras: NuttcpExtras<'_>,
    context: &mut Context<'_>,
) -> (Record, Option<NuttcpSummary>) {
    let mut summary = None;
    let record = run_by(plan, context, |context, account| {
        summary = Some(measure_with(plan, extras, context, account)?);
        Ok(())
    });
    (record, summary)
}

fn measure_with(
    plan: &TcpPlan,
    extras: NuttcpExtras<'_>,
    context: &mut Context<'_>,
    account: &mut Account,
) -> Result<NuttcpSummary, Failure> {
    let direction = match plan.test.directions {
        TcpDirections::Up => Direction::Up,
        TcpDirections::Down => Direction::Down,
        TcpDirections::Both => {
            let reason = "nuttcp measures one way at a time".to_owned();
            return Err(refuse(reason).advise("omit --bidir"));
        }
    };
    let plan = &in_turn(plan);
    let mut parameters = parameters(plan, direction)?;
    parameters.port = extras.data_port.unwrap_or(PORT);
    parameters.instant = extras.instant;
    // A server that transmits has nothing to tell meanwhile.
    if extras.intervals && direction == Direction::Up {
        parameters.interval_s = plan.test.interval_ns as f64 / 1e9;
    }
    let mut test = Test::from_plan(plan, RULES, account)?;
    test.endpoint.set_drain_ns(DRAIN_NS);
    let control = test.connect(test.server, FlowSide::Receiver)?;
    (context.watch)(&Event::Connected(format!("control to {}", test.server)));
    let asked = NuttcpClientTest {
        span: test.request.planned_span(),
        interval: Duration::from_nanos(plan.test.interval_ns),
        parameters,
    };
    let dialect = Nuttcp {
        plan,
        direction,
        port: asked.parameters.port,
        told: extras.told,
        summary: NuttcpSummary::default(),
    };
    let end = ForeignTcpClient { test, dialect, context, account };
    let (end, result) =
        end.run(NuttcpClientMachine::new(monotonic(), asked), &mut Socket::new(control)?);
    let ForeignTcpClient { test, dialect, context, account } = end;
    let result = test.finish_if_started(result, context, account);
    add_server_summary(&dialect.summary, plan, direction, account);
    result.map(|()| dialect.summary)
}

/// The client's own part.
struct Nuttcp<'a> {
    plan: &'a TcpPlan,
    direction: Direction,
    /// Port of the first stream.
    port: u16,
    told: &'a mut ToldInterval<'a>,
    /// The server's summary of its end.
    summary: NuttcpSummary,
}

impl Dialect for Nuttcp<'_> {
    type Machine = NuttcpClientMachine;

    /// Connects every stream. A server that transmits says OK a moment before it listens.
    fn connect(
        &mut self,
        test: &mut Test,
        context: &mut Context<'_>,
        account: &mut Account,
    ) -> Result<(), Failure> {
        let deadline = monotonic() + LISTEN_TIMEOUT;
        for flow in 0..self.plan.test.streams {
            let server = SocketAddr::new(test.server.ip(), self.port + flow);
            let socket = loop {
                match test.connect(server, client_side(self.direction)) {
                    Err(failure)
                        if failure.fault == Fault::Unreachable && monotonic() < deadline =>
                    {
                        sleep(Duration::from_millis(5));
                    }
                    result => break result?,
                }
            };
            test.add(socket, self.direction, flow, account);
        }
        test.connected(self.plan, context);
        Ok(())
    }

    fn take_output(&mut self, told: Output<NuttcpClientMachine>, account: &mut Account) {
        match told {
            Output::News(news) => drop(take_news(news, account, self.told)),
            Output::Peer(summary) => self.summary = *summary,
            _ => {}
        }
    }
}

/// Takes what the server told; the interval, if that is what it was.
pub(super) fn take_news(
    news: ClientNews,
    account: &mut Account,
    told: &mut ToldInterval<'_>,
) -> Option<NuttcpInterval> {
    match news {
        ClientNews::Greeted(version) => {
            account.ends.push(remote_end(Some(format!("nuttcp {version}"))));
            None
        }
        ClientNews::Interval(interval, line) => {
            told(&interval, &line);
            Some(interval)
        }
    }
}

/// The parameters of a plan.
fn parameters(plan: &TcpPlan, direction: Direction) -> Result<Parameters, Failure> {
    let up = direction == Direction::Up;
    let streams = u64::from(plan.test.streams);
    let (nbuf, timeout_s) = match plan.test.finish {
        Finish::TimeNs(ns) => (UNTIL_TIMEOUT, ns.saturating_add(plan.test.omit_ns) as f64 / 1e9),
        Finish::Buffers(count) => (count, 0.0),
        Finish::Bytes(bytes)
            if bytes % u64::from(plan.test.buffer_bytes) == 0 || (up && plan.test.streams == 1) =>
        {
            (bytes.div_ceil(plan.test.buffer_bytes.into()), 0.0)
        }
        Finish::Bytes(_) => {
            let reason = "nuttcp sends whole buffers".to_owned();
            return Err(refuse(reason).advise("give -n a multiple of -l, or -k"));
        }
    };
    if plan.test.congestion_control.is_some() && !up {
        let reason = "the congestion control of a nuttcp server cannot be chosen by the \
                      client"
            .to_owned();
        return Err(refuse(reason).advise("omit -C, or set it on that host"));
    }
    // kbit/s of all streams together.
    let rate = plan.test.pace.map(|pace| (pace.bits_per_sec() * streams).div_ceil(1000));
    Ok(Parameters {
        buflen: if up { plan.test.buffer_bytes } else { buflen(plan) },
        nbuf,
        window: plan.test.window_bytes.unwrap_or(0),
        nstream: plan.test.streams,
        rate: rate.unwrap_or(UNLIMITED),
        client_sends: up,
        // The receiver connects: this end, also where it receives.
        flip: !up,
        timeout_s,
        mss: plan.test.mss_bytes.unwrap_or(0),
        tos: plan.test.dscp.unwrap_or(0) << 2,
        nodelay: plan.test.nodelay,
        ..Parameters::default()
    })
}

/// The plan with buffers that several paced streams can send in turn: a round of them has to take
/// little beside the time of the test, for it ends with a whole round.
fn in_turn(plan: &TcpPlan) -> TcpPlan {
    let buffer_bytes = if plan.test.streams > 1 { buflen(plan) } else { plan.test.buffer_bytes };
    TcpPlan { test: TcpTest { buffer_bytes, ..plan.test.clone() }, ..plan.clone() }
}

/// Bytes of one write of nuttcp 6.1.2 over TCP.
const WRITE_BYTES: u32 = 64 << 10;

/// Bytes of one write. In a test by time with a pace they are no more than that gives in 10 ms, for
/// the pace is kept from write to write; with several streams they are what nuttcp writes where
/// nothing was asked.
fn buflen(plan: &TcpPlan) -> u32 {
    if !matches!(plan.test.finish, Finish::TimeNs(_)) {
        return plan.test.buffer_bytes;
    }
    let Some(pace) = plan.test.pace else {
        let asked = plan.test.buffer_bytes != TcpPlan::default().test.buffer_bytes;
        let whole = asked || plan.test.streams == 1;
        return if whole {
            plan.test.buffer_bytes
        } else {
            plan.test.buffer_bytes.min(WRITE_BYTES)
        };
    };
    let in_10_ms = u32::try_from(pace.bits_per_sec() / 800).unwrap_or(u32::MAX);
    plan.test.buffer_bytes.min(in_10_ms.max(1024))
}

/// Puts what the server told of its end into the account. Its figures are those of all streams and
/// of the whole time, so they are the end of a stream only where it is the only one.
fn add_server_summary(
    summary: &NuttcpSummary,
    plan: &TcpPlan,
    direction: Direction,
    account: &mut Account,
) {
    let here = account.local.iter().map(|local| local.end.bytes).fold(0, u64::saturating_add);
    let Some(bytes) = summary.payload_bytes(here) else { return };
    let [local] = account.local.as_slice() else {
        account.contradiction = of_sum(&Plan::Tcp(plan.clone()), account, direction, bytes);
        return;
    };
    let Some(span_ns) = summary.span_ns(bytes).filter(|_| plan.test.omit_ns == 0) else {
        return;
    };
    let technique = if direction == Direction::Up { "nuttcp, read" } else { "nuttcp, write" };
    let end = FlowEnd {
        bytes,
        bytes_measured: bytes,
        span_ns,
        io_calls: summary.calls.unwrap_or(0),
        technique: technique.to_owned(),
        ..FlowEnd::default()
    };
    let report = local.of_other_end(end);
    account.remote.push(report);
}

#[cfg(test)]
mod tests {
    use linerate_core::units::BitRate;

    use super::*;

    #[test]
    fn a_round_of_paced_buffers_takes_ten_milliseconds() {
        let plan = TcpPlan {
            test: TcpTest {
                streams: 4,
                buffer_bytes: 524_288,
                pace: Some(BitRate::from_bits_per_sec(5_000_000)),
                finish: Finish::TimeNs(1_000_000_000),
                ..TcpTest::default()
            },
            ..TcpPlan::default()
        };
        // 5,000,000 bit/s x 10 ms / 8; a whole buffer would take 0.84 s.
        assert_eq!(in_turn(&plan).test.buffer_bytes, 6250);
        let bytes = |plan: &TcpPlan| in_turn(plan).test.buffer_bytes;
        assert_eq!(
            bytes(&TcpPlan { test: TcpTest { streams: 1, ..plan.test.clone() }, ..plan.clone() }),
            524_288
        );
        // Without a pace, what nuttcp 6.1.2 writes, unless another length was asked for.
        assert_eq!(
            bytes(&TcpPlan { test: TcpTest { pace: None, ..plan.test.clone() }, ..plan.clone() }),
            65_536
        );
        let asked = TcpPlan {
            test: TcpTest { pace: None, buffer_bytes: 300_000, ..plan.test.clone() },
            ..plan.clone()
        };
        assert_eq!(bytes(&asked), 300_000);
        assert_eq!(
            bytes(&TcpPlan { test: TcpTest { finish: Finish::Buffers(100), ..plan.test }, ..plan }),
            524_288
        );
    }
}
