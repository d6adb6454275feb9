//! iperf3's client and server against each other.

use std::time::Duration;

use linerate_core::path::Random;
use linerate_core::time::MonoTime;
use linerate_proto::iperf3::{
    CLIENT_NAME, COOKIE_BYTES, Cookie, Iperf3ClientMachine, Iperf3ClientTest, Iperf3ServerMachine,
    Iperf3ServerTerms, Params, Protocol, Refusal, Results, StreamResult, stream_id,
};

use super::world::{Model, Sends};
use super::{Rig, Trouble, check_all, check_seeds, count, run};

const INTERVAL: Duration = Duration::from_millis(100);

/// Bytes of a block.
const BLOCK_BYTES: u64 = 10_000;

struct Iperf3(Protocol);

/// What each end sends at most.
fn sends(params: &Params) -> Sends {
    let bytes = match (params.bytes, params.blocks) {
        (0, 0) => u64::MAX,
        (0, blocks) => blocks * BLOCK_BYTES,
        (bytes, _) => bytes,
    };
    [(!params.reverse).then_some(bytes), (params.reverse || params.bidirectional).then_some(bytes)]
}

fn decide(params: &Params) -> (Result<Iperf3ServerTerms, Refusal>, Sends) {
    let span_max = Duration::from_secs(if params.time_s == 0 { 10 } else { params.time_s.min(10) });
    let sound = params.check_bounds().map_err(|error| Refusal::For(error.code));
    (sound.map(|()| Iperf3ServerTerms { span_max, interval: INTERVAL }), sends(params))
}

fn report(counts: [u64; 2]) -> Results {
    let stream = |at: u32| StreamResult {
        id: stream_id(at),
        bytes: counts[at as usize],
        ..StreamResult::default()
    };
    Results { streams: vec![stream(0), stream(1)], ..Results::default() }
}

fn read(results: &Results) -> [u64; 2] {
    [0, 1].map(|at| results.stream(stream_id(at)).map_or(0, |stream| stream.bytes))
}

impl Rig for Iperf3 {
    type Client = Iperf3ClientMachine;
    type Server = Iperf3ServerMachine;

    fn client(
        &self,
        random: &mut Random,
    ) -> (Iperf3ClientMachine, Model<Iperf3ClientMachine>, Duration) {
        let by_amount = random.chance(0.4);
        let way = count(random, 3);
        let time_s = 1 + count(random, 2);
        let by_blocks = by_amount && random.chance(0.5);
        let params = Params {
            protocol: self.0,
            time_s: if by_amount { 0 } else { time_s },
            bytes: if by_amount && !by_blocks { 1 + count(random, 2_000_000) } else { 0 },
            blocks: if by_blocks { 1 + count(random, 200) } else { 0 },
            block_bytes: Some(BLOCK_BYTES),
            parallel: 1,
            reverse: way == 1,
            bidirectional: way == 2,
            client_version: Some(CLIENT_NAME.to_owned()),
            ..Params::default()
        };
        let test = Iperf3ClientTest {
            cookie: Cookie::from_random([7; 36]),
            span: (!by_amount).then(|| Duration::from_secs(time_s)),
            interval: INTERVAL,
            receive_max: None,
            complete_after: by_amount.then_some(Duration::from_secs(3)),
            params: params.clone(),
        };
        let model = Model {
            interval: INTERVAL,
            sends: Some(sends(&params)),
            closes: false,
            datagrams: false,
            head: Vec::new(),
            decide: |_| (Ok(()), [None; 2]),
            report,
            read: |results| Some(read(results)),
        };
        (Iperf3ClientMachine::new(MonoTime::default(), test), model, Duration::from_secs(2))
    }

    fn server(&self) -> (Iperf3ServerMachine, Model<Iperf3ServerMachine>) {
        let model = Model {
            interval: INTERVAL,
            sends: None,
            closes: false,
            datagrams: false,
            head: Vec::new(),
            decide,
            report,
            read: |results| Some(read(results)),
        };
        (Iperf3ServerMachine::new(MonoTime::default()), model)
    }

    fn greeting(&self) -> usize {
        COOKIE_BYTES
    }

    /// The client: one answer that does not come (15 s), and what is on the way at the end (2, 2, 1
    /// and 3 s). The server: a test that is not ended (10 s later) or an answer that does not come
    /// (10 s), what is on the way (4 and 1 s), after a test that may last 10 s. Both: a second for
    /// the delays of the path.
    fn slack(&self) -> (Duration, Duration) {
        (Duration::from_secs(15 + 8 + 1), Duration::from_secs(8 + 10 + 10 + 5 + 1))
    }
}

#[test]
fn tcp_tests_end_as_they_should_whatever_happens() {
    check_all(&Iperf3(Protocol::Tcp));
}

#[test]
fn udp_tests_end_as_they_should_whatever_happens() {
    check_all(&Iperf3(Protocol::Udp));
}

/// Where nothing goes wrong both ends count every byte that was sent, in each direction, by time,
/// by bytes and by blocks, and the client is told the server's counts.
fn check_counts(protocol: Protocol) {
    check_seeds(|seed| {
        let mut random = Random::new(seed, 0);
        let rig = Iperf3(protocol);
        let ((client, server), _) = run(&rig, seed, Trouble::None, &mut random);
        let Some([up, down]) = client.counts else { return Err(format!("seed {seed}: no count")) };
        let same = client.counts == server.counts && client.told == server.counts;
        let (_, model, _) = rig.client(&mut Random::new(seed, 0));
        let [most_up, most_down] = model.sends.unwrap_or_default();
        let all = |bytes: u64, most: Option<u64>| match most {
            None => bytes == 0,
            Some(u64::MAX) => bytes > 0,
            Some(most) => bytes == most,
        };
        let told = || format!("seed {seed}: {:?}: {client:?}, {server:?}", model.sends);
        if same && all(up, most_up) && all(down, most_down) { Ok(()) } else { Err(told()) }
    });
}

#[test]
fn both_ends_of_a_tcp_test_count_what_was_sent() {
    check_counts(Protocol::Tcp);
}

#[test]
fn both_ends_of_a_udp_test_count_what_was_sent() {
    check_counts(Protocol::Udp);
}
