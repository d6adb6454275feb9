//! `nuttcp` as 6.1.2 has it: `nuttcp host`, `nuttcp -r host`, `nuttcp -S`, over UDP with `-u`, and
//! the jitter and one-way delay of 7.0.1 with `-j` and `-o`.
//!
//! Left out: third parties, multicast, traceroute, the lines of `-v` but for the result.

mod asked;
mod lines;

use std::cell::Cell;
use std::net::ToSocketAddrs;
use std::time::Duration;

use linerate_core::record::{
    Direction, Event, Failure, Finish, TcpDirections, TcpPlan, TcpTest, UdpPlan, UdpTest, Via,
};
use linerate_core::units::BitRate;
use linerate_engine::context::Context;
use linerate_engine::foreign::Serving;
use linerate_engine::foreign::nuttcp::{self, DataPorts, NuttcpExtras};
use linerate_proto::nuttcp::{NuttcpInterval, WIRE_VERSION};
use linerate_sys::datagram_socket::route_mtu_bytes;

use self::asked::{NuttcpOptions, NuttcpRequest, SendAmount, TCP_LENGTH, USAGE, read};
use super::{listening, server_plan};
use crate::command::measure::this_tool;
use crate::exit::Outcome;
use crate::output;

/// Runs the command line.
pub(super) fn run(words: &[String]) -> Outcome {
    let asked = match read(words) {
        Ok(NuttcpRequest::Test(asked)) => asked,
        Ok(NuttcpRequest::Help) => {
            output::print_line(USAGE);
            return Ok(0);
        }
        Ok(NuttcpRequest::Version) => {
            output::print_line(&format!("nuttcp-{WIRE_VERSION}"));
            return Ok(0);
        }
        Err(mistake) => {
            output::print_note(&format!("nuttcp: {mistake}\n{USAGE}"));
            return Ok(1);
        }
    };
    let done = if asked.serves { run_server(&asked) } else { measure(&asked) };
    Ok(done.map_or_else(
        |failure| {
            output::print_note(&format!("nuttcp: {failure}"));
            1
        },
        |()| 0,
    ))
}

fn measure(asked: &NuttcpOptions) -> Result<(), Failure> {
    let stop = listening::until_interrupted()?;
    // Where the server receives it tells about the intervals, as nuttcp's does.
    let rows = Cell::new(0_u32);
    let print = |line: &str| {
        rows.set(rows.get() + 1);
        output::print_line(line);
    };
    let mut told = |interval: &NuttcpInterval, line: &str| match asked.parse {
        true => print(&lines::server_row(interval, line)),
        false => print(line),
    };
    let mut watch = |event: &Event| {
        if let (Event::Interval(row), Some(_)) = (event, asked.interval_s)
            && row.flow.is_none()
            && row.direction == Direction::Down
        {
            print(&lines::interval(row, asked.parse));
        }
    };
    let extras = NuttcpExtras {
        data_port: asked.data_port,
        intervals: asked.interval_s.is_some(),
        instant: asked.instant,
        jitter: asked.jitter,
        delay: asked.delay,
        told: &mut told,
    };
    let mut context = Context { tool: this_tool(), stop, watch: &mut watch };
    let (record, summary) = match asked.udp {
        false => nuttcp::run(&tcp_plan(asked), extras, &mut context),
        true => nuttcp::run_udp(&udp_plan(asked), extras, &mut context),
    };
    if let Some(failure) = record.failure {
        return Err(failure);
    }
    if rows.get() > 0 {
        output::print_line("");
    }
    output::print_line(&lines::result(asked, &record, summary.as_ref()));
    Ok(())
}

fn finish(asked: &NuttcpOptions, length: u32) -> Finish {
    match asked.amount {
        Some(SendAmount::Buffers(count)) => Finish::Buffers(count),
        Some(SendAmount::Bytes(bytes)) => Finish::Buffers(bytes.div_ceil(length.into())),
        None => Finish::TimeNs((asked.time_s * 1e9) as u64),
    }
}

const fn directions(asked: &NuttcpOptions) -> TcpDirections {
    if asked.receives { TcpDirections::Down } else { TcpDirections::Up }
}

/// Time between rows; a day where nobody asked for any.
fn interval_ns(asked: &NuttcpOptions) -> u64 {
    (asked.interval_s.unwrap_or(86_400.0) * 1e9) as u64
}

fn tcp_plan(asked: &NuttcpOptions) -> TcpPlan {
    let length = asked.length.unwrap_or(TCP_LENGTH);
    // The rate is that of all streams.
    let streams = u64::from(asked.streams.max(1));
    let pace = asked.rate_bps(length).map(|rate| (rate / streams).max(1));
    TcpPlan {
        server: server_plan(Via::Nuttcp, asked.host.as_deref(), asked.port, asked.family),
        test: TcpTest {
            directions: directions(asked),
            streams: asked.streams,
            finish: finish(asked, length),
            interval_ns: interval_ns(asked),
            buffer_bytes: length,
            window_bytes: asked.window,
            mss_bytes: asked.mss,
            nodelay: asked.nodelay,
            pace: pace.map(BitRate::from_bits_per_sec),
            dscp: asked.dscp,
            ..TcpTest::default()
        },
        ..TcpPlan::default()
    }
}

fn udp_plan(asked: &NuttcpOptions) -> UdpPlan {
    let length = asked.length.unwrap_or_else(|| usual_length(asked));
    UdpPlan {
        server: server_plan(Via::Nuttcp, asked.host.as_deref(), asked.port, asked.family),
        test: UdpTest {
            directions: directions(asked),
            streams: asked.streams,
            finish: finish(asked, length),
            interval_ns: interval_ns(asked),
            size_bytes: Some(length),
            window_bytes: asked.window,
            pace: asked.rate_bps(length).map(BitRate::from_bits_per_sec),
            dscp: asked.dscp,
            ..UdpTest::default()
        },
        ..UdpPlan::default()
    }
}

/// The largest power of two below the payload of a TCP segment on the route, 8192 at most.
fn usual_length(asked: &NuttcpOptions) -> u32 {
    let host = asked.host.as_deref().unwrap_or_default();
    let mut addresses = (host, asked.port).to_socket_addrs().into_iter().flatten();
    // A name that is not known is told by the test.
    let mtu = addresses.next().and_then(route_mtu_bytes).unwrap_or(1500);
    let segment = mtu.saturating_sub(60).clamp(64, 8192);
    1 << segment.ilog2()
}

fn run_server(asked: &NuttcpOptions) -> Result<(), Failure> {
    let listener = listening::listen(None, asked.port, None)?;
    let stop = listening::until_interrupted()?;
    let ports = DataPorts::beside(vec![asked.port]);
    listening::serve_connections(&listener, &stop, asked.once.then_some(1), &|stream, peer| {
        let mut serving = Serving {
            admission: &listening::AdmitEveryone,
            stop: &stop,
            interval: Duration::from_secs(1),
            watch: &mut |_| {},
        };
        match nuttcp::serve_connection(stream, &ports, &mut serving) {
            Ok(told) => output::print_note(&format!("{peer}: {}", told.line)),
            Err(failure) => output::print_note(&format!("nuttcp: {failure}")),
        }
    })
}
