//! The server's side: what a connection's first bytes ask for, ttcp among them.
//!
//! A client is told apart by its first bytes, which stay in the socket where they are payload.
//! There is no way to say no but to close; a client whose test may not run is reset.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use linerate_core::record::{
    Direction, EndReport, Failure, Fault, Finish, Side, TcpDirections, TcpTest,
};
use linerate_core::time::MonoTime;
use linerate_core::units::BitRate;
use linerate_proto::iperf2::{
    Amount, Answer, ClientHeader, HEADER_BYTES_MAX, Mode, Opening, WIRE_VERSION, opening,
};
use linerate_sys::clock::{monotonic, sleep};
use linerate_sys::tcp::{self, TcpOptions};

use super::client::MANNER;
use crate::failure::words_of;
use crate::flow::tcp::Demand;
use crate::flow::tcp::endpoint::Endpoint;
use crate::foreign::serve::{Seen, Serving, UNTIL_CLOSED, failure_of, follow, peek, request, said};
use crate::foreign::test::VANISHED;

/// A client that listens for the connection back answers within this time.
const CONNECT_BACK: Duration = Duration::from_secs(4);
/// How late a client may be with listening.
const LISTENING: Duration = Duration::from_secs(1);
/// Longest buffer that a client may ask the server to write.
const BUFFER_MAX: u32 = 16 << 20;

/// Serves one connection to the port of ttcp and iperf 2; returns what the log should say.
/// # Errors
/// Why it did not end well.
pub fn serve(socket: TcpStream, serving: &mut Serving<'_>) -> Result<String, Failure> {
    let accepted = monotonic();
    tcp::notice_vanished_peer(&socket, VANISHED);
    // A ttcp goes on or closes; a few letters and silence are no test, and take no place.
    let told = |bytes: &[u8]| match opening(bytes) {
        Ok(Opening::Needs(_)) => false,
        Ok(Opening::Plain) => bytes.len() >= HEADER_BYTES_MAX,
        _ => true,
    };
    let bytes = peek(&socket, HEADER_BYTES_MAX, told, serving.stop)?;
    let opened = opening(&bytes).map_err(|error| {
        let peer = peer_of(&socket).map_or_else(|_| "a client".to_owned(), |peer| peer.to_string());
        Failure::new(Fault::PeerMisbehaved, "header of", peer, error)
    })?;
    match opened {
        // Fewer bytes than a header, then the end: data all the same.
        Opening::Plain | Opening::Needs(_) => {
            let reports = receive(socket, accepted, None, serving)?;
            Ok(format!("ttcp or plain data: {}", said(&reports)))
        }
        Opening::Bounce(first) => {
            let done = super::bounce::serve(&socket, first, serving)?;
            Ok(format!("iperf {done}"))
        }
        Opening::Header(header) => {
            let reports = answer(socket, accepted, header, serving)?;
            let version = header.version.map_or_else(|| "2.0".to_owned(), |v| v.to_string());
            Ok(format!("iperf {version}: {}", said(&reports)))
        }
    }
}

fn answer(
    socket: TcpStream,
    accepted: MonoTime,
    header: ClientHeader,
    serving: &mut Serving<'_>,
) -> Result<Vec<EndReport>, Failure> {
    match header.mode {
        Mode::Forward => receive(socket, accepted, Some(header), serving),
        Mode::Dual => dual(socket, header, serving),
        Mode::TradeOff => {
            let peer = peer_of(&socket)?;
            let _permit = permit(&request(TcpDirections::Up, UNTIL_CLOSED), peer, serving)?;
            let mut reports = receive(socket, accepted, Some(header), serving)?;
            let request = sending(header, TcpDirections::Down)?;
            let back = connect_back(peer, header.listen_port)?;
            let mut endpoint = Endpoint::in_manner(request, MANNER);
            add(&mut endpoint, back, (Direction::Down, 0, Side::Sender), serving);
            reports.extend(run(endpoint, serving)?);
            Ok(reports)
        }
        Mode::Reverse => {
            let request = sending(header, TcpDirections::Down)?;
            let _permit = permit(&request, peer_of(&socket)?, serving)?;
            take_header(&socket, header)?;
            let mut endpoint = Endpoint::in_manner(request, MANNER);
            add(&mut endpoint, socket, (Direction::Down, 0, Side::Sender), serving);
            run(endpoint, serving)
        }
        Mode::FullDuplex => {
            let request = sending(header, TcpDirections::Both)?;
            let _permit = permit(&request, peer_of(&socket)?, serving)?;
            let back = socket.try_clone().map_err(|error| lost(&socket, &error))?;
            let mut endpoint = Endpoint::in_manner(request, MANNER);
            add(&mut endpoint, socket, (Direction::Up, 0, Side::Receiver), serving);
            add(&mut endpoint, back, (Direction::Down, 0, Side::Sender), serving);
            run(endpoint, serving)
        }
    }
}

/// Data from the client until it closes.
fn receive(
    socket: TcpStream,
    accepted: MonoTime,
    header: Option<ClientHeader>,
    serving: &mut Serving<'_>,
) -> Result<Vec<EndReport>, Failure> {
    let request = request(TcpDirections::Up, UNTIL_CLOSED);
    let _permit = permit(&request, peer_of(&socket)?, serving)?;
    answer_header(&socket, header)?;
    let mut endpoint = Endpoint::in_manner(request, MANNER).open_since(accepted);
    add(&mut endpoint, socket, (Direction::Up, 0, Side::Receiver), serving);
    run(endpoint, serving)
}

/// Data from the client, and to it on a connection of its own.
fn dual(
    socket: TcpStream,
    header: ClientHeader,
    serving: &mut Serving<'_>,
) -> Result<Vec<EndReport>, Failure> {
    let peer = peer_of(&socket)?;
    let request = sending(header, TcpDirections::Both)?;
    let _permit = permit(&request, peer, serving)?;
    answer_header(&socket, Some(header))?;
    let back = connect_back(peer, header.listen_port)?;
    let mut endpoint = Endpoint::in_manner(request, MANNER);
    add(&mut endpoint, socket, (Direction::Up, 0, Side::Receiver), serving);
    add(&mut endpoint, back, (Direction::Down, 0, Side::Sender), serving);
    run(endpoint, serving)
}

fn run(mut endpoint: Endpoint, serving: &mut Serving<'_>) -> Result<Vec<EndReport>, Failure> {
    follow(&mut endpoint, serving, &mut |_| Ok(()))?;
    let reports = endpoint.finish();
    (serving.watch)(&Seen::Done(&reports));
    failure_of(&reports).map_or(Ok(reports), Err)
}

fn add(
    endpoint: &mut Endpoint,
    socket: TcpStream,
    place: (Direction, u16, Side),
    serving: &mut Serving<'_>,
) {
    (serving.watch)(&Seen::Stream(&socket, place.0, place.1));
    let client = socket.peer_addr().map_or_else(|_| String::new(), |peer| peer.to_string());
    endpoint.add(socket, place, client);
}

/// The test of a server that sends: the client's amount, buffer and rate.
fn sending(header: ClientHeader, directions: TcpDirections) -> Result<TcpTest, Failure> {
    let finish = match header.amount {
        Amount::Bytes(bytes) => Finish::Bytes(bytes.into()),
        Amount::Centiseconds(count) => Finish::TimeNs(u64::from(count) * 10_000_000),
    };
    let mut request = request(directions, finish);
    request.pace = Some(header.rate_bps).filter(|rate| *rate > 0).map(BitRate::from_bits_per_sec);
    request.dscp = Some(header.service_type >> 2).filter(|dscp| *dscp > 0);
    if (1..=BUFFER_MAX).contains(&header.buffer_bytes) {
        request.buffer_bytes = header.buffer_bytes;
    }
    request.check().map_err(|error| {
        Failure::new(Fault::PeerMisbehaved, "header of", "an iperf 2 client", error)
    })?;
    Ok(request)
}

pub(super) fn permit(
    request: &TcpTest,
    peer: SocketAddr,
    serving: &Serving<'_>,
) -> Result<crate::flow::tcp::Permit, Failure> {
    serving.admission.admit(&Demand::of(request), peer).map_err(|refuse| {
        Failure::new(
            Fault::PeerRefused,
            "serve",
            peer.to_string(),
            format!("closed, {}", refuse.reason),
        )
    })
}

fn answer_header(socket: &TcpStream, header: Option<ClientHeader>) -> Result<(), Failure> {
    if !header.is_some_and(|header| header.wants_answer) {
        return Ok(());
    }
    let answer = Answer { version: WIRE_VERSION }.to_bytes();
    (&mut &*socket).write_all(&answer).map_err(|error| lost(socket, &error))
}

/// Takes the header off a connection whose data goes the other way; it is there already.
fn take_header(socket: &TcpStream, header: ClientHeader) -> Result<(), Failure> {
    let mut bytes = vec![0; header.length];
    (&mut &*socket).read_exact(&mut bytes).map_err(|error| lost(socket, &error))
}

/// The client listens from a thread of its own, which may come to it later than its header comes
/// here: a refusal is tried again for a while.
fn connect_back(peer: SocketAddr, port: u16) -> Result<TcpStream, Failure> {
    let to = SocketAddr::new(peer.ip(), port);
    let patience = monotonic() + LISTENING;
    let socket = loop {
        match tcp::connect(to, None, &TcpOptions::default(), CONNECT_BACK) {
            Ok(socket) => break socket,
            Err(error)
                if error.source.kind() == ErrorKind::ConnectionRefused
                    && monotonic() < patience =>
            {
                sleep(LISTENING / 100);
            }
            Err(error) => {
                let words = words_of(&error.source);
                let failure =
                    Failure::new(Fault::Unreachable, "connect back to", to.to_string(), words);
                return Err(
                    failure.advise("iperf's -d and -r need its port to be open at the client")
                );
            }
        }
    };
    tcp::notice_vanished_peer(&socket, VANISHED);
    Ok(socket)
}

pub(super) fn peer_of(socket: &TcpStream) -> Result<SocketAddr, Failure> {
    let peer = socket.peer_addr().map_err(|error| {
        Failure::new(Fault::Unreachable, "address of", "a client", words_of(&error))
    })?;
    Ok(SocketAddr::new(peer.ip().to_canonical(), peer.port()))
}

pub(super) fn lost(socket: &TcpStream, error: &std::io::Error) -> Failure {
    let peer = peer_of(socket).map_or_else(|_| "a client".to_owned(), |peer| peer.to_string());
    Failure::new(Fault::Unreachable, "serve", peer, words_of(error))
}
