//! nuttcp's client and server against each other.
//!
//! Marks of datagrams, the end of streams and the end of a sender are one here: receivers see that
//! what was sent is over.

use std::time::Duration;

use linerate_core::path::Random;
use linerate_core::time::MonoTime;
use linerate_proto::nuttcp::{
    ANSWER_TIMEOUT, ASK_TIMEOUT, END_MAX, GRACE, IDLE, LEAVE_MAX, NuttcpClientMachine,
    NuttcpClientTest, NuttcpServerMachine, NuttcpServerReport, NuttcpServerTerms, NuttcpSummary,
    Parameters, SUMMARY_TIMEOUT,
};

use super::world::{End, Model, RATE, Sends};
use super::{Rig, Trouble, check_all, check_seeds, count, judge, run};

const INTERVAL: Duration = Duration::from_millis(100);
const OPEN_MAX: Duration = Duration::from_secs(5);
const SPAN_MAX: Duration = Duration::from_secs(10);
/// One buffer, so that every amount is a number of whole ones: 4 digits of a megabyte are exact.
const BUFFER: u64 = 1 << 20;

struct Nuttcp {
    udp: bool,
}

/// What each end sends at most; `nbuf` counts buffers of [`BUFFER`] bytes.
fn sends(asked: &Parameters) -> Sends {
    let bytes = asked.nbuf * BUFFER;
    [asked.client_sends.then_some(bytes), (!asked.client_sends).then_some(bytes)]
}

/// A server tells one sum, whichever way the data went.
fn report([client, server]: [u64; 2]) -> NuttcpServerReport {
    NuttcpServerReport { bytes: client + server, seconds: 1.0, ..NuttcpServerReport::default() }
}

impl Rig for Nuttcp {
    type Client = NuttcpClientMachine;
    type Server = NuttcpServerMachine;

    fn client(
        &self,
        random: &mut Random,
    ) -> (NuttcpClientMachine, Model<NuttcpClientMachine>, Duration) {
        let parameters = Parameters {
            buflen: 65_536,
            nbuf: 1 + count(random, 2),
            client_sends: random.chance(0.5),
            flip: random.chance(0.5),
            udp: self.udp,
            interval_s: if random.chance(0.5) { INTERVAL.as_secs_f64() } else { 0.0 },
            timeout_s: 0.0,
            ..Parameters::default()
        };
        let span = Duration::from_millis(parameters.nbuf * BUFFER / RATE);
        let model = Model {
            interval: INTERVAL,
            sends: Some(sends(&parameters)),
            closes: true,
            datagrams: self.udp,
            head: Vec::new(),
            decide: |()| (Ok(()), [None; 2]),
            report: |_| NuttcpSummary::default(),
            read: |summary: &NuttcpSummary| {
                summary.megabytes.map(|it| [(it * 1_048_576.0).round() as u64, 0])
            },
        };
        let test = NuttcpClientTest { parameters, span: Some(span), interval: INTERVAL };
        (NuttcpClientMachine::new(MonoTime::default(), test), model, Duration::from_secs(3))
    }

    fn server(&self) -> (NuttcpServerMachine, Model<NuttcpServerMachine>) {
        let model = Model {
            interval: INTERVAL,
            sends: None,
            closes: true,
            datagrams: self.udp,
            head: Vec::new(),
            decide: |asked| {
                let terms = NuttcpServerTerms {
                    open_max: OPEN_MAX,
                    span_max: SPAN_MAX,
                    interval: INTERVAL,
                };
                (Ok(terms), sends(asked))
            },
            report,
            read: |_| None,
        };
        (NuttcpServerMachine::new(MonoTime::default()), model)
    }

    fn greeting(&self) -> usize {
        0
    }

    /// A client whose user stops it takes what has come: it tells a server that sends by closing.
    fn server_answers(&self, trouble: Trouble) -> bool {
        !matches!(trouble, Trouble::Stop { end: End::Client, .. })
    }

    /// The client: two answers that do not come, the end of a test that does not, its summary, and
    /// what a server that is gone had sent. The server: the parameters, the streams, a client that
    /// moves nothing, datagrams without an end. Both: a second for the delays of the path.
    fn slack(&self) -> (Duration, Duration) {
        let path = Duration::from_secs(1);
        (
            ANSWER_TIMEOUT * 2 + GRACE + SUMMARY_TIMEOUT + LEAVE_MAX + path,
            ASK_TIMEOUT + OPEN_MAX + SPAN_MAX + IDLE + END_MAX + path,
        )
    }
}

#[test]
fn tcp_tests_end_as_they_should_whatever_happens() {
    check_all(&Nuttcp { udp: false });
}

#[test]
fn udp_tests_end_as_they_should_whatever_happens() {
    check_all(&Nuttcp { udp: true });
}

/// nuttcp 6.1.2 does the same: 5 s without a datagram are a summary of 0.0000 MB.
#[test]
fn datagrams_that_never_come_are_counted_as_none_once_there_was_time_for_them() {
    check_seeds(|seed| {
        let mut random = Random::new(seed, 0);
        let trouble = Trouble::NoStreams;
        let (left, limits) = run(&Nuttcp { udp: true }, seed, trouble, &mut random);
        judge(seed, trouble, &left, &limits)?;
        let (client, server) = &left;
        // One that receives knows without the server that nothing comes.
        if client.ran.is_none() {
            return Ok(());
        }
        let none = client.told == Some([0, 0]) && server.counts == Some([0, 0]);
        let well = [client, server].iter().all(|it| matches!(it.end, Some(Ok(()))));
        // The time for the streams, and the delays of the path.
        let soon =
            client.at.duration_since(MonoTime::default()) < OPEN_MAX + Duration::from_secs(1);
        match none && well && soon {
            true => Ok(()),
            false => Err(format!("seed {seed}: {client:?}\n{server:?}")),
        }
    });
}
