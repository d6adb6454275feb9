//! ttcp's transmitter and receiver against each other.
//!
//! Over TCP the receiver is that of the port which ttcp and iperf 2 share: it tells by the first
//! bytes that there is no header. Over UDP marks and the end of a sender are one here: the receiver
//! sees that all has come, or falls silent.

use std::convert::Infallible;
use std::time::Duration;

use linerate_core::path::Random;
use linerate_core::time::MonoTime;
use linerate_proto::iperf2::{
    FIRST_BYTES, LEAVE_MAX as SERVER_LEAVE_MAX, Mode, OPENING_MAX, Server, UdpReport, UdpServer,
    UdpTerms,
};
use linerate_proto::ttcp::{GRACE, LEAVE_MAX, Transmitter, pattern};

use super::iperf2::{self, SPAN_MAX};
use super::world::{Model, RATE, VANISHED};
use super::{End, Rig, Trouble, check_all, check_seeds, count, judge, run};
use crate::foreign::ttcp::SILENCE_MAX;

const INTERVAL: Duration = Duration::from_millis(100);
/// Bytes of a test at most, 2 s of them.
const BYTES_MAX: u64 = 2000 * RATE;

/// A transmitter of so many bytes.
fn transmitter(bytes: u64, datagrams: bool) -> (Transmitter, Model<Transmitter>, Duration) {
    let span = Duration::from_millis(bytes / RATE + 1);
    let model = Model {
        interval: INTERVAL,
        sends: Some([Some(bytes), None]),
        closes: true,
        datagrams,
        // Enough of the pattern to tell that it is no header.
        head: if datagrams { Vec::new() } else { pattern(255) },
        decide: |never: &Infallible| match *never {},
        report: |_| unreachable!("it tells nothing"),
        read: |never: &Infallible| match *never {},
    };
    (Transmitter::new(Some(span), INTERVAL), model, span)
}

struct OverTcp;

impl Rig for OverTcp {
    type Client = Transmitter;
    type Server = Server;

    fn client(&self, random: &mut Random) -> (Transmitter, Model<Transmitter>, Duration) {
        transmitter(1 + count(random, BYTES_MAX), false)
    }

    fn server(&self) -> (Server, Model<Server>) {
        iperf2::server()
    }

    fn greeting(&self) -> usize {
        0
    }

    fn server_answers(&self, _: Trouble) -> bool {
        false
    }

    /// The transmitter: what is on the way, and marks. The receiver: first bytes, streams that
    /// open, a test of 5 s, streams that leave, or that nothing comes of a host that is gone. Both:
    /// a second for the delays of the path.
    fn slack(&self) -> (Duration, Duration) {
        let path = Duration::from_secs(1);
        let receiver = FIRST_BYTES + OPENING_MAX + SPAN_MAX + SERVER_LEAVE_MAX;
        (GRACE + LEAVE_MAX + path, receiver.max(VANISHED) + path)
    }
}

struct OverUdp;

impl Rig for OverUdp {
    type Client = Transmitter;
    type Server = UdpServer;

    fn client(&self, _: &mut Random) -> (Transmitter, Model<Transmitter>, Duration) {
        transmitter(UDP_BYTES, true)
    }

    fn server(&self) -> (UdpServer, Model<UdpServer>) {
        let model = Model {
            interval: INTERVAL,
            sends: Some([Some(UDP_BYTES), None]),
            closes: true,
            datagrams: true,
            head: Vec::new(),
            decide: |never: &Infallible| match *never {},
            report: |_| UdpReport::default(),
            read: |_| None,
        };
        let terms =
            UdpTerms { mode: Mode::Forward, silence_max: SILENCE_MAX, interval: None, back: None };
        (UdpServer::new(MonoTime::default(), terms), model)
    }

    fn greeting(&self) -> usize {
        0
    }

    fn server_answers(&self, _: Trouble) -> bool {
        false
    }

    /// The transmitter: as over TCP. The receiver: until it takes the other for gone.
    fn slack(&self) -> (Duration, Duration) {
        let path = Duration::from_secs(1);
        (GRACE + LEAVE_MAX + path, SILENCE_MAX + path)
    }
}

/// Of every transfer over UDP: its receiver has to know them to see that all has come.
const UDP_BYTES: u64 = 1500 * RATE;

#[test]
fn tcp_transfers_end_as_they_should_whatever_happens() {
    check_all(&OverTcp);
}

#[test]
fn udp_transfers_end_as_they_should_whatever_happens() {
    check_all(&OverUdp);
}

/// ttcp has no way to learn it: the transmitter ends well, and the receiver counts what came.
#[test]
fn a_transmitter_that_nobody_hears_ends_in_its_time_and_its_receiver_counts_nothing() {
    check_seeds(|seed| {
        let mut random = Random::new(seed, 0);
        let trouble = Trouble::NoStreams;
        let (left, limits) = run(&OverUdp, seed, trouble, &mut random);
        judge(seed, trouble, &left, &limits)?;
        let (client, server) = &left;
        let well = [client, server].iter().all(|it| matches!(it.end, Some(Ok(()))));
        // 1.5 s of data; nothing for 10 s.
        let sent = client.counts == Some([UDP_BYTES, 0]) && client.at < at(2000);
        let silence =
            server.counts == Some([0, 0]) && (at(10_000)..at(10_100)).contains(&server.at);
        match well && sent && silence {
            true => Ok(()),
            false => Err(format!("seed {seed}: {client:?}\n{server:?}")),
        }
    });
}

fn at(ms: u64) -> MonoTime {
    MonoTime::from_nanos(ms * 1_000_000)
}

/// Whoever stops a transmitter has the bytes until then, and no end is awaited.
#[test]
fn a_stopped_transmitter_ends_at_once() {
    check_seeds(|seed| {
        let mut random = Random::new(seed, 0);
        let stop_ms = 300 + count(&mut random, 1000);
        let trouble = Trouble::Stop { end: End::Client, at: Duration::from_millis(stop_ms) };
        let (left, limits) = run(&OverTcp, seed, trouble, &mut random);
        judge(seed, trouble, &left, &limits)?;
        match left.0.at < at(stop_ms + 100) {
            true => Ok(()),
            false => Err(format!("seed {seed}: {:?}", left.0)),
        }
    });
}
