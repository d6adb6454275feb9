//! Live capture on a veth pair between two namespaces that the test makes: what passes is seen, at
//! both ends, with its direction, its length and its time; what finds no room is counted.
//!
//! Needs the privilege to make network namespaces; says so and passes when it is absent.
#![allow(clippy::print_stdout, reason = "skipped tests say so")]

use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::AsFd;
use std::thread;
use std::time::Duration;

use linerate_sys::netlink::{RouteSocket, VethEnd, VethPair};
use linerate_sys::netns::Netns;
use linerate_sys::packet_capture::{
    BLOCK_AGE, CaptureOptions, LinkKind, PacketCapture, PacketDirection,
};
use linerate_sys::{clock, userns};
use rustix::thread::CapabilitySet;

/// No wait of a test takes this long on a working machine; a busy one may take seconds.
const PATIENCE: Duration = Duration::from_secs(10);

const LEFT: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const RIGHT: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
/// Ethernet, IPv4 and UDP headers in front of a payload.
const HEADERS: u32 = 14 + 20 + 8;

/// Two namespaces and a cable whose ends are called `left` and `right`; on the right, a socket that
/// nobody reads takes datagrams.
struct Cable {
    left: Netns,
    right: Netns,
    receiver: Option<UdpSocket>,
}

impl Cable {
    /// The cable, or none where the host does not allow one.
    fn new() -> Option<Self> {
        if !userns::may_make_networks() {
            println!("skipped: CAP_SYS_ADMIN and CAP_NET_ADMIN are needed for network namespaces");
            return None;
        }
        let mut cable = Self {
            left: Netns::new().expect("a namespace"),
            right: Netns::new().expect("a namespace"),
            receiver: None,
        };
        let end = |name, index, netns| VethEnd { name, index, netns };
        let ends = [end("left", 2, cable.left.as_fd()), end("right", 3, cable.right.as_fd())];
        let pair = VethPair { ends, mtu_bytes: 1500, super_packets: false };
        RouteSocket::open().and_then(|mut socket| socket.add_veth(&pair)).expect("a veth pair");
        for (netns, index, address) in [(&cable.left, 2, LEFT), (&cable.right, 3, RIGHT)] {
            inside(netns, || {
                let mut socket = RouteSocket::open().expect("netlink");
                socket.add_address(index, address.into(), 24).expect("an address");
                socket.set_up(1).expect("loopback up");
                socket.set_up(index).expect("link up");
            });
        }
        cable.wait_for_carrier();
        Some(cable)
    }

    /// Sends until a datagram arrives: the carrier and the neighbour are there from then on.
    fn wait_for_carrier(&mut self) {
        let receiver = inside(&self.right, || UdpSocket::bind((RIGHT, 9)).expect("a socket"));
        receiver.set_read_timeout(Some(Duration::from_millis(50))).expect("a timeout");
        let sender = self.sender();
        for _ in 0..200 {
            let _ = sender.send(b"awake?");
            if receiver.recv(&mut [0; 16]).is_ok() {
                self.receiver = Some(receiver);
                return;
            }
        }
        panic!("no datagram arrives");
    }

    /// A socket on the left that sends to the right.
    fn sender(&self) -> UdpSocket {
        inside(&self.left, || {
            let socket = UdpSocket::bind((LEFT, 5001)).expect("a socket");
            socket.connect(SocketAddrV4::new(RIGHT, 9)).expect("a route");
            socket
        })
    }

    fn capture(&self, end: &str, change: impl FnOnce(&mut CaptureOptions) + Send) -> PacketCapture {
        let netns = if end == "left" { &self.left } else { &self.right };
        let mut options = CaptureOptions::of_interface(end);
        change(&mut options);
        inside(netns, || PacketCapture::open(&options).expect("a capture"))
    }
}

/// Runs `work` on a thread in the namespace.
fn inside<T: Send>(netns: &Netns, work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let thread = scope.spawn(|| {
            netns.enter().expect("the namespace");
            work()
        });
        thread.join().expect("the thread ends well")
    })
}

/// What is kept of a UDP packet from port 5001: time, captured and original length, direction, and
/// the first byte of its payload.
type Row = (u64, usize, u32, PacketDirection, u8);

/// Takes until `count` packets are there.
fn take(capture: &mut PacketCapture, count: usize) -> Vec<Row> {
    let mut rows = Vec::new();
    let end = clock::monotonic().as_nanos() + PATIENCE.as_nanos() as u64;
    while rows.len() < count && clock::monotonic().as_nanos() < end {
        let taken = capture.take_packets(Duration::from_millis(100), |packet| {
            // IPv4 at 14, protocol UDP, source port 5001.
            if packet.data.get(12..14) == Some(&[8, 0])
                && packet.data.get(23) == Some(&17)
                && packet.data.get(34..36) == Some(&5001u16.to_be_bytes())
            {
                let first = packet.data.get(HEADERS as usize).copied().unwrap_or(0);
                let lengths = (packet.data.len(), packet.original_len);
                rows.push((packet.at_ns, lengths.0, lengths.1, packet.direction, first));
            }
        });
        taken.expect("the link stays up");
    }
    rows
}

fn wall_ns() -> u64 {
    clock::wall_time().unix_millis() * 1_000_000
}

#[test]
fn both_ends_see_every_packet_with_direction_length_and_time() {
    let Some(cable) = Cable::new() else { return };
    let mut left = cable.capture("left", |_| {});
    let mut right = cable.capture("right", |options| options.promiscuous = true);
    assert_eq!(left.link_kind(), LinkKind::Ethernet);
    let before = wall_ns();
    let sender = cable.sender();
    for number in 0..20u8 {
        sender.send(&vec![number; 100 + usize::from(number)]).expect("sent");
    }
    let sent = take(&mut left, 20);
    let received = take(&mut right, 20);
    // The wall clock is read in whole milliseconds.
    let after = wall_ns() + 1_000_000;
    for (rows, direction) in
        [(&sent, PacketDirection::Outgoing), (&received, PacketDirection::Incoming)]
    {
        assert_eq!(rows.len(), 20);
        for (number, row) in rows.iter().enumerate() {
            let len = HEADERS + 100 + number as u32;
            assert_eq!((row.1, row.2, row.3, row.4), (len as usize, len, direction, number as u8));
            assert!(row.0 >= before && row.0 <= after, "{before} <= {} <= {after}", row.0);
        }
        assert!(rows.is_sorted_by_key(|row| row.0), "times rise");
    }
    // Microseconds would end in 000; twenty of them all at once is one chance in 10^60.
    assert!(sent.iter().any(|row| row.0 % 1000 != 0), "times are in nanoseconds");
    for (out, inn) in sent.iter().zip(&received) {
        assert!(inn.0 >= out.0, "a packet leaves before it comes");
    }
    let counts = right.counts().expect("statistics");
    assert!(counts.seen >= 20 && counts.dropped == 0, "{counts:?}");
}

#[test]
fn a_snapshot_length_cuts_what_is_kept_and_not_what_is_told() {
    let Some(cable) = Cable::new() else { return };
    let mut right = cable.capture("right", |options| options.snaplen = Some(60));
    cable.sender().send(&[7; 1000]).expect("sent");
    let rows = take(&mut right, 1);
    assert_eq!((rows[0].1, rows[0].2, rows[0].4), (60, HEADERS + 1000, 7));
}

#[test]
fn what_finds_no_room_is_counted() {
    let Some(cable) = Cable::new() else { return };
    // Two blocks of 256 KiB hold fewer than 400 packets of 1,442 bytes.
    let mut right = cable.capture("right", |options| options.ring_bytes = 1);
    let sender = cable.sender();
    for _ in 0..1000 {
        sender.send(&[0; 1400]).expect("sent");
    }
    // The last block is handed over when it is old.
    clock::sleep(BLOCK_AGE * 3);
    let rows = take(&mut right, 100);
    let counts = right.counts().expect("statistics");
    assert!(counts.dropped > 500, "{counts:?}");
    assert!(rows.len() >= 100 && counts.seen >= 1000, "{} and {counts:?}", rows.len());
    assert!(rows.len() as u64 + counts.dropped <= counts.seen, "{} and {counts:?}", rows.len());
    // After the freeze the capture goes on: what is sent now comes, behind what waits.
    clock::sleep(BLOCK_AGE * 3);
    let is_last = |row: &Row| row.4 == 9;
    for _ in 0..20 {
        sender.send(&[9; 1400]).expect("sent");
        if take(&mut right, 1).iter().any(is_last) {
            return;
        }
    }
    panic!("nothing comes after the ring was full");
}

#[test]
fn loopback_shows_each_packet_once() {
    let Some(cable) = Cable::new() else { return };
    let rows = inside(&cable.left, || {
        let options = CaptureOptions::of_interface("lo");
        let mut capture = PacketCapture::open(&options).expect("a capture");
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 5001)).expect("a socket");
        for number in 0..5u8 {
            socket.send_to(&[number], (Ipv4Addr::LOCALHOST, 9)).expect("sent");
        }
        take(&mut capture, 5)
    });
    let numbers: Vec<u8> = rows.iter().map(|row| row.4).collect();
    assert_eq!(numbers, [0, 1, 2, 3, 4]);
}

#[test]
fn a_link_that_goes_away_ends_the_capture_with_a_reason() {
    let Some(cable) = Cable::new() else { return };
    let mut left = cable.capture("left", |_| {});
    // With its namespace the right end goes, and the left end with it.
    let Cable { left: _netns, right, receiver } = cable;
    drop((right, receiver));
    let end = clock::monotonic().as_nanos() + PATIENCE.as_nanos() as u64;
    let error = loop {
        assert!(clock::monotonic().as_nanos() < end, "the capture goes on");
        if let Err(error) = left.take_packets(Duration::from_millis(100), |_| {}) {
            break error.to_string();
        }
    };
    assert!(error.starts_with("capture on interface left: Network is down"), "{error}");
}

#[test]
fn what_cannot_be_captured_is_said_in_one_line() {
    let Some(cable) = Cable::new() else { return };
    let open = |name: &str| {
        let options = CaptureOptions::of_interface(name);
        PacketCapture::open(&options).expect_err("no capture").to_string()
    };
    inside(&cable.left, || {
        let text = open("nothing0");
        assert_eq!(text, "capture on interface nothing0: No such device (os error 19)");
        let mut sets = rustix::thread::capabilities(None).expect("capabilities");
        sets.effective.remove(CapabilitySet::NET_RAW);
        rustix::thread::set_capabilities(None, sets).expect("fewer capabilities");
        let expected = "open packet socket on left: not permitted; capturing needs CAP_NET_RAW: \
                        run as root, or `setcap cap_net_raw+ep` the program";
        assert_eq!(open("left"), expected);
    });
}
