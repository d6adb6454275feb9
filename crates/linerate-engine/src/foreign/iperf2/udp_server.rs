//! The UDP side of the port of iperf 2 and ttcp: counts the datagrams of every sender, and answers
//! the end of iperf 2's with a report. One thread takes the datagrams of all, one by one.
//!
//! Nothing is sent to an address but a report, and that only for the end of a test that brought as
//! many bytes.
//! Left out: tests in which the server sends.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use linerate_core::record::{Failure, Fault};
use linerate_core::time::MonoTime;
use linerate_core::units::BitRate;
use linerate_proto::iperf2::{Mode, UdpReceiver, UdpTaken};
use linerate_proto::ttcp;
use linerate_sys::clock::monotonic;
use linerate_sys::datagram_socket::{DatagramOptions, DatagramSocket};
use linerate_sys::poll::readable;
use linerate_sys::stop::Stop;

use crate::throughput::{Admission, Demand, Permit};

/// Room for what arrives while the thread does something else.
const BUFFER_BYTES_MAX: u64 = 8 << 20;
/// Senders at once.
const CLIENTS_MAX: usize = 1024;
/// A sender that is silent for this long is gone.
const SILENCE_MAX: Duration = Duration::from_secs(5);
/// A sender whose test has ended is answered again for this long.
const ENDED_MAX: Duration = Duration::from_secs(3);
/// How often silence is looked for.
const LOOK: Duration = Duration::from_millis(100);
/// Datagrams that are taken between two looks at the clock's other duties.
const TAKEN_MAX: usize = 4096;

/// The socket.
#[derive(Debug)]
pub struct UdpEar {
    socket: DatagramSocket,
}

/// Told of every sender that ends.
pub type UdpLog<'a> = &'a mut dyn FnMut(SocketAddr, Result<String, Failure>);

/// A sender.
struct Client {
    machine: Machine,
    begin: MonoTime,
    last: MonoTime,
    told: bool,
    _permit: Permit,
}

enum Machine {
    Iperf(Box<UdpReceiver>),
    Ttcp(ttcp::UdpReceiver),
}

impl UdpEar {
    /// Binds the socket.
    /// # Errors
    /// When the port is taken.
    pub fn bind(local: SocketAddr) -> Result<Self, Failure> {
        let options = DatagramOptions {
            local,
            window_bytes: None,
            buffer_bytes_max: BUFFER_BYTES_MAX,
            dscp: None,
            shared: false,
        };
        let socket = DatagramSocket::open(&options);
        socket.map(|socket| Self { socket }).map_err(|error| crate::failure::system(&error))
    }

    /// Counts until `stop` is asked.
    pub fn run(&self, admission: &dyn Admission, stop: &Stop, log: UdpLog<'_>) {
        let mut clients = HashMap::new();
        let mut refused: HashMap<SocketAddr, MonoTime> = HashMap::new();
        let mut buffer = vec![0; 1 << 16];
        while !stop.asked() {
            // A failed wait is a look without datagrams.
            let _ = readable(&self.socket, LOOK);
            for _ in 0..TAKEN_MAX {
                // An error is that of an earlier answer: its address is gone.
                let Ok(Some((length, peer))) = self.socket.receive_from(&mut buffer) else { break };
                let now = monotonic();
                if !clients.contains_key(&peer) {
                    if refused.contains_key(&peer) {
                        continue;
                    }
                    let client = open(&buffer[..length], peer, (admission, clients.len()), now);
                    match client {
                        Ok(client) => drop(clients.insert(peer, client)),
                        Err(failure) => {
                            if refused.len() < CLIENTS_MAX {
                                refused.insert(peer, now);
                            }
                            log(peer, Err(failure));
                            continue;
                        }
                    }
                }
                if let Some(client) = clients.get_mut(&peer) {
                    self.take(client, &buffer[..length], peer, (now, &mut *log));
                }
            }
            let now = monotonic();
            refused.retain(|_, since| now.since(*since) < SILENCE_MAX);
            clients.retain(|peer, client| client.stays(*peer, now, &mut *log));
        }
    }

    fn take(
        &self,
        client: &mut Client,
        datagram: &[u8],
        peer: SocketAddr,
        (now, log): (MonoTime, UdpLog<'_>),
    ) {
        client.last = now;
        match &mut client.machine {
            Machine::Iperf(receiver) => {
                let taken = receiver.take(datagram, datagram.len(), now.nanos() / 1000);
                if taken != UdpTaken::End {
                    return;
                }
                let report = receiver.report();
                // Never more to an address than came from it.
                if receiver.counts().bytes >= report.len() as u64 {
                    // The end comes again where the report is lost or finds no room.
                    let _ = self.socket.send_to(&report, peer);
                }
            }
            Machine::Ttcp(receiver) => {
                if receiver.take(datagram.len()) != ttcp::Received::End {
                    return;
                }
            }
        }
        client.tell(peer, log);
    }
}

/// A new sender, by its first datagram.
fn open(
    datagram: &[u8],
    peer: SocketAddr,
    (admission, clients): (&dyn Admission, usize),
    now: MonoTime,
) -> Result<Client, Failure> {
    let fail =
        |reason: String| Failure::new(Fault::PeerRefused, "count UDP of", peer.to_string(), reason);
    if clients >= CLIENTS_MAX {
        return Err(fail(format!("{CLIENTS_MAX} senders are there")));
    }
    let machine = machine_of(datagram);
    if let Machine::Iperf(receiver) = &machine {
        let mut first = receiver.clone();
        first.take(datagram, datagram.len(), 0);
        if first.header().is_some_and(|header| header.mode != Mode::Forward) {
            return Err(fail("this server does not send over iperf 2's UDP".to_owned()));
        }
    }
    let canonical = SocketAddr::new(peer.ip().to_canonical(), peer.port());
    let demand = Demand { streams: 1, planned: None };
    let permit = admission.admit(&demand, canonical).map_err(|refuse| fail(refuse.reason))?;
    Ok(Client { machine, begin: now, last: now, told: false, _permit: permit })
}

/// ttcp begins with a mark, or where that was lost with its pattern: four printable characters
/// where iperf 2 has a number, which would be beyond 500 million.
fn machine_of(datagram: &[u8]) -> Machine {
    let printable = datagram.iter().take(4).all(|byte| (b' '..=b'~').contains(byte));
    if datagram.len() <= ttcp::MARK_BYTES || printable {
        Machine::Ttcp(ttcp::UdpReceiver::default())
    } else {
        Machine::Iperf(Box::default())
    }
}

impl Client {
    /// Whether the sender is still there; one that is gone without an end is told.
    fn stays(&mut self, peer: SocketAddr, now: MonoTime, log: UdpLog<'_>) -> bool {
        let patience = if self.told { ENDED_MAX } else { SILENCE_MAX };
        if now.since(self.last) < patience {
            return true;
        }
        self.tell(peer, log);
        false
    }

    /// The line of the log, once.
    fn tell(&mut self, peer: SocketAddr, log: UdpLog<'_>) {
        if std::mem::replace(&mut self.told, true) {
            return;
        }
        let seconds = self.last.nanos_since(self.begin) as f64 / 1e9;
        let rate = |bytes: u64| {
            let bps = if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 };
            BitRate::from_bits_per_sec(bps as u64)
        };
        let line = match &self.machine {
            Machine::Iperf(receiver) => {
                let counts = receiver.counts();
                let end = if receiver.ended() { "" } else { ", without an end" };
                format!(
                    "iperf UDP: {} bytes in {seconds:.3} s, {}, {} of {} datagrams lost, {} out of \
                     order, jitter {} us{end}",
                    counts.bytes,
                    rate(counts.bytes),
                    counts.lost,
                    counts.datagrams,
                    counts.out_of_order,
                    counts.jitter_us
                )
            }
            Machine::Ttcp(receiver) => format!(
                "ttcp UDP: {} bytes in {seconds:.3} s, {}, {} datagrams",
                receiver.bytes,
                rate(receiver.bytes),
                receiver.datagrams
            ),
        };
        log(peer, Ok(line));
    }
}
