//! The end of a UDP test, by the side that sent: said until the other side reports, or told a few
//! times to one that makes no report; and the beginning of a stream to one that may not listen yet.

use std::time::Duration;

use linerate_proto::iperf2::{Layout, REPORT_BYTES, Stamp, UdpReport};
use linerate_sys::clock::{monotonic, sleep};
use linerate_sys::datagram_socket::DatagramSocket;
use linerate_sys::poll::readable;

use super::udp_layout::wall_us;

/// The end is said again after this, until the report comes, as iperf 2.1 does it.
const AGAIN: Duration = Duration::from_millis(10);
/// A client may listen as much later than it sends.
const LISTENING: Duration = Duration::from_secs(1);
/// A refusal of the first datagram has this long to come.
const REFUSAL: Duration = Duration::from_millis(20);
/// The report has this long to come.
const REPORT_TIMEOUT: Duration = Duration::from_secs(2);

/// A datagram with the header that the others had.
fn datagram(head: &[u8], size: usize) -> Vec<u8> {
    let mut datagram = linerate_proto::iperf2::pattern(size.max(Layout::Wide.bytes()));
    let length = head.len().min(datagram.len());
    datagram[..length].copy_from_slice(&head[..length]);
    datagram
}

fn number_after(sent: u64) -> i64 {
    i64::try_from(sent).unwrap_or(i64::MAX - (1 << 20)) + 1
}

/// Says the end after `sent` datagrams until the report comes; each time has the next number.
pub(super) fn ask_report(
    socket: &DatagramSocket,
    sent: u64,
    (head, size): (&[u8], usize),
) -> Option<UdpReport> {
    let mut datagram = datagram(head, size);
    let deadline = monotonic() + REPORT_TIMEOUT;
    let mut number = number_after(sent);
    while monotonic() < deadline {
        Stamp { number: -number, sent_us: wall_us(monotonic()) }.write(&mut datagram);
        number += 1;
        // One that is refused or finds no room is said again.
        let _ = socket.send(&datagram);
        if !readable(socket, AGAIN).unwrap_or(false) {
            continue;
        }
        let mut answer = [0; REPORT_BYTES];
        if let Ok(Some((length, _))) = socket.receive_from(&mut answer)
            && let Some(report) = UdpReport::parse(&answer[..length])
        {
            return Some(report);
        }
    }
    None
}

/// Sends the first datagram to a client that listens from a thread of its own, which may come to it
/// later than its header comes here: one that is refused is sent again for a while.
pub(super) fn begin(socket: &DatagramSocket, (head, size): (&[u8], usize)) {
    let mut datagram = datagram(head, size);
    let deadline = monotonic() + LISTENING;
    while monotonic() < deadline {
        Stamp { number: 1, sent_us: wall_us(monotonic()) }.write(&mut datagram);
        // A refusal is told by this call or, once it has arrived, by the next one.
        let sent = socket.send(&datagram).is_ok();
        let _ = readable(socket, REFUSAL);
        if sent && socket.receive_from(&mut [0; 1]).is_ok() {
            return;
        }
        sleep(AGAIN);
    }
}

/// Tells the end after `sent` datagrams, `times` times with one number.
pub(super) fn tell(socket: &DatagramSocket, sent: u64, (head, size): (&[u8], usize), times: u32) {
    let mut datagram = datagram(head, size);
    for time in 0..times {
        if time > 0 {
            sleep(AGAIN);
        }
        let stamp = Stamp { number: -number_after(sent), sent_us: wall_us(monotonic()) };
        stamp.write(&mut datagram);
        // The other end has its own patience where none arrives.
        let _ = socket.send_when_room(&datagram);
    }
}
