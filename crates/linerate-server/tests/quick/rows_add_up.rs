//! Rows of tests over UDP add up to their results to the byte, where a begin is omitted and where
//! the end is no whole interval.

use linerate_core::record::{
    Direction, Event, Finish, FlowEnd, Record, ServerPlan, TcpDirections, Tool, UdpPlan, UdpTest,
    Via,
};
use linerate_core::units::BitRate;
use linerate_engine::context::Context;
use linerate_engine::throughput;
use linerate_server::admission::ServerLimits;
use linerate_sys::stop::Stop;

use crate::peers::{HERE, with_server};

/// Measures with a server on this port; the bytes of the rows that count, of each direction.
fn measure(via: Via, port: u16, test: UdpTest<Option<u32>>) -> (Record, [u64; 2]) {
    let mut told = [0; 2];
    let mut watch = |event: &Event| {
        let Event::Interval(row) = event else { return };
        let is_whole = row.flow.is_none() || test.streams == 1;
        if is_whole && !row.omitted {
            told[usize::from(row.direction == Direction::Down)] += row.bytes;
        }
    };
    let tool = Tool { name: "linerate".to_owned(), version: "test".to_owned() };
    let mut context = Context { tool, stop: Stop::new(), watch: &mut watch };
    let server = ServerPlan::new(Some(via), HERE.to_string(), port);
    let plan = UdpPlan { server, test: test.clone(), ..UdpPlan::default() };
    (throughput::run_udp(&plan, &mut context), told)
}

/// What this end counted of a direction.
fn counted(record: &Record, direction: Direction) -> u64 {
    let flows = record.flows.iter().filter(|flow| flow.direction == direction);
    let own = flows.filter_map(|flow| match direction {
        Direction::Up => flow.sender.as_ref(),
        Direction::Down => flow.receiver.as_ref(),
    });
    own.map(|end: &FlowEnd| end.bytes_measured).sum()
}

fn check(via: Via, port: u16, test: &UdpTest<Option<u32>>) {
    let (record, told) = measure(via, port, test.clone());
    assert_eq!(record.failure, None, "{via:?} {test:?}");
    let counted = [Direction::Up, Direction::Down].map(|way| counted(&record, way));
    assert_eq!(told, counted, "{via:?} {test:?}");
    assert!(counted.iter().any(|bytes| *bytes > 0), "{via:?} {test:?}");
}

fn test(directions: TcpDirections, streams: u16) -> UdpTest<Option<u32>> {
    UdpTest {
        directions,
        streams,
        finish: Finish::TimeNs(1_000_000_000),
        interval_ns: 300_000_000,
        size_bytes: Some(1000),
        pace: Some(BitRate::from_bits_per_sec(20_000_000)),
        ..UdpTest::default()
    }
}

#[test]
fn rows_of_iperf3_after_an_omitted_second_are_the_sum() {
    use TcpDirections::{Both, Down, Up};
    with_server(ServerLimits::default(), |server| {
        for (directions, streams) in [(Up, 1), (Down, 1), (Both, 2)] {
            let test = UdpTest { omit_ns: 1_000_000_000, ..test(directions, streams) };
            check(Via::Iperf3, server.port(Via::Iperf3), &test);
            // The next one finds its place free.
            server.log(1);
        }
    });
}

#[test]
fn rows_of_iperf_2_have_the_rest_after_the_last_whole_interval() {
    use TcpDirections::{Down, Up};
    with_server(ServerLimits::default(), |server| {
        for (directions, streams) in [(Up, 1), (Up, 2), (Down, 2)] {
            for finish in [Finish::TimeNs(1_000_000_000), Finish::Buffers(900)] {
                let test = UdpTest { finish, ..test(directions, streams) };
                check(Via::Iperf2, server.port(Via::Iperf2), &test);
                server.log(usize::from(streams));
            }
        }
    });
}
