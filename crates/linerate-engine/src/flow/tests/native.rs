//! This program's own client and server against each other.

use std::time::Duration;

use linerate_core::path::Random;
use linerate_core::record::{
    Direction, EndReport, Finish, FlowEnd, MeasurementEnd as HostEnd, TcpDirections, TcpTest,
};
use linerate_core::time::MonoTime;
use linerate_proto::native::{
    Accept, Message, NativeClientMachine, NativeClientTest, NativeServerMachine, NativeServerTerms,
    NativeTcpTestRequest, Refuse, RefuseCode, STEP_TIMEOUT, TestRequest,
};

use super::world::{Model, Sends};
use super::{Rig, check_all, count};

const INTERVAL: Duration = Duration::from_millis(100);
/// The longest test that the server runs.
const SPAN_MAX: Duration = Duration::from_secs(10);

struct Native;

fn span(request: &TcpTest) -> Option<Duration> {
    let Finish::TimeNs(ns) = request.finish else { return None };
    Some(Duration::from_nanos(ns))
}

/// What each end sends: senders know the end of their test themselves.
fn sends(request: &TcpTest) -> Sends {
    let bytes = match request.finish {
        Finish::Bytes(bytes) => bytes,
        _ => span(request).map_or(0, |span| span.as_millis() as u64 * super::world::RATE),
    };
    let has = |way: &Direction| request.each_direction().contains(way).then_some(bytes);
    [has(&Direction::Up), has(&Direction::Down)]
}

fn decide(asked: &TestRequest) -> (Result<NativeServerTerms, Refuse>, Sends) {
    let malformed = |reason: String| Refuse::new(RefuseCode::Malformed, reason);
    let request = match asked {
        TestRequest::Tcp(request) => &request.test,
        TestRequest::Udp(_) | TestRequest::Trains(_) => {
            return (Err(malformed("no UDP here".to_owned())), [None; 2]);
        }
    };
    if let Err(error) = request.check() {
        return (Err(malformed(error.to_string())), [None; 2]);
    }
    let span_max = span(request).unwrap_or(SPAN_MAX).min(SPAN_MAX);
    let accept = Accept {
        token: "00".repeat(16),
        data_port: 1,
        udp_ports: Vec::new(),
        host_id: None,
        end: HostEnd::default(),
        features: Vec::new(),
    };
    let terms = NativeServerTerms {
        accept: Box::new(accept),
        interval: INTERVAL,
        span_max,
        stall_after: Some(span_max),
        end: span_max + Duration::from_secs(10),
        overdue: None,
        step: STEP_TIMEOUT,
        streams: "the data streams",
    };
    (Ok(terms), sends(request))
}

fn report(counts: [u64; 2]) -> Vec<EndReport> {
    let one = |direction, bytes| {
        EndReport::from_flow_end(direction, 0, FlowEnd { bytes, ..FlowEnd::default() })
    };
    vec![one(Direction::Up, counts[0]), one(Direction::Down, counts[1])]
}

fn read(reports: &[EndReport]) -> [u64; 2] {
    [0, 1].map(|at| reports.get(at).map_or(0, |report| report.end.bytes))
}

impl Rig for Native {
    type Client = NativeClientMachine;
    type Server = NativeServerMachine;

    fn client(
        &self,
        random: &mut Random,
    ) -> (NativeClientMachine, Model<NativeClientMachine>, Duration) {
        let directions = [TcpDirections::Up, TcpDirections::Down, TcpDirections::Both]
            [count(random, 3) as usize];
        let finish = match random.chance(0.4) {
            true => Finish::Bytes(1 + count(random, 2_000_000)),
            false => Finish::TimeNs((1 + count(random, 2)) * 1_000_000_000),
        };
        let request = TcpTest { directions, finish, ..TcpTest::default() };
        let test = NativeClientTest {
            span: span(&request),
            interval: INTERVAL,
            request: Message::Request(NativeTcpTestRequest {
                test: request.clone(),
                ..NativeTcpTestRequest::default()
            }),
            last: true,
            credentials: None,
        };
        let model = Model {
            interval: INTERVAL,
            sends: Some(sends(&request)),
            closes: true,
            datagrams: false,
            head: Vec::new(),
            decide: |_| (Ok(()), [None; 2]),
            report,
            read: |reports: &Vec<EndReport>| Some(read(reports)),
        };
        (NativeClientMachine::new(MonoTime::default(), test), model, Duration::from_secs(2))
    }

    fn server(&self) -> (NativeServerMachine, Model<NativeServerMachine>) {
        let model = Model {
            interval: INTERVAL,
            sends: None,
            closes: true,
            datagrams: false,
            head: Vec::new(),
            decide,
            report,
            read: |reports: &Vec<EndReport>| Some(read(reports)),
        };
        (NativeServerMachine::new(MonoTime::default()), model)
    }

    fn greeting(&self) -> usize {
        0
    }

    /// The client: a report that does not come (15 s, or a minute where an amount ends the test)
    /// and stalled streams (5 s). The server: a test by an amount (10 s) and its grace (10 s),
    /// stalled streams (5 s), an answer that does not come (10 s). Both: a second for the delays
    /// of the path.
    fn slack(&self) -> (Duration, Duration) {
        (Duration::from_secs(60 + 10 + 5 + 1), Duration::from_secs(20 + 5 + 10 + 1))
    }
}

#[test]
fn tcp_tests_end_as_they_should_whatever_happens() {
    check_all(&Native);
}
