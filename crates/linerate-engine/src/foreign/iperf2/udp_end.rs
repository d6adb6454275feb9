//! The end of a UDP test, by the side that sent: said until the other side reports, or told a few
//! times to one that makes no report; and the beginning of a stream to one that may not listen yet.

use std::os::fd::AsFd;
use std::time::Duration;

use linerate_proto::iperf2::{
    END_AGAIN as AGAIN, REPORT_BYTES, REPORT_TIMEOUT, Stamp, UdpReport, end,
};
use linerate_sys::clock::{monotonic, sleep};
use linerate_sys::datagram_socket::DatagramSocket;
use linerate_sys::poll::{any_readable, readable};

use super::udp_layout::wall_us;

/// A client may listen as much later than it sends.
const LISTENING: Duration = Duration::from_secs(1);
/// A refusal of the first datagram has this long to come.
const REFUSAL: Duration = Duration::from_millis(20);

/// Says the end of streams, each after `sent` datagrams and at most `most` times, until their
/// reports come; each time has the next number. All are asked together, so that none waits for
/// another's.
pub(super) fn ask_reports(
    streams: &[(&DatagramSocket, u64)],
    (head, size): (&[u8], usize),
    mut most: u64,
) -> Vec<Option<UdpReport>> {
    let deadline = monotonic() + REPORT_TIMEOUT;
    let mut reports = vec![None; streams.len()];
    let (mut again, mut next) = (0, monotonic());
    while monotonic() < deadline && reports.iter().any(Option::is_none) {
        let waiting = || streams.iter().zip(&reports).filter(|(_, report)| report.is_none());
        // A port that refuses is no reason to ask it faster.
        if most > 0 && monotonic() >= next {
            most -= 1;
            next = monotonic() + AGAIN;
            for ((socket, sent), _) in waiting() {
                // One that is refused or finds no room is said again.
                let _ = socket.send(&end(head, size, sent + again, wall_us(monotonic())));
            }
            again += 1;
        }
        let fds: Vec<_> = waiting().map(|((socket, _), _)| socket.as_fd()).collect();
        // A failed wait is a look without reports.
        let _ = any_readable(&fds, next.since(monotonic()).max(AGAIN / 10));
        for ((socket, _), report) in streams.iter().zip(&mut reports) {
            *report = report.take().or_else(|| report_of(socket));
        }
    }
    reports
}

/// The report that came on a socket, if one did.
fn report_of(socket: &DatagramSocket) -> Option<UdpReport> {
    let mut answer = [0; REPORT_BYTES];
    // An error is that of an end that was refused.
    let (length, _) = socket.receive_from(&mut answer).ok()??;
    UdpReport::parse(&answer[..length])
}

/// Sends the first datagram to a client that listens from a thread of its own, which may come to it
/// later than its header comes here: one that is refused is sent again for a while, in all `most`
/// times at most.
pub(super) fn begin(socket: &DatagramSocket, (head, size): (&[u8], usize), most: u64) {
    let mut datagram = end(head, size, 0, 0);
    let deadline = monotonic() + LISTENING;
    for _ in 0..most {
        if monotonic() >= deadline {
            return;
        }
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
pub(super) fn tell(socket: &DatagramSocket, sent: u64, (head, size): (&[u8], usize), times: u64) {
    for time in 0..times {
        if time > 0 {
            sleep(AGAIN);
        }
        // The other end has its own patience where none arrives.
        let _ = socket.send_when_room(&end(head, size, sent, wall_us(monotonic())));
    }
}
