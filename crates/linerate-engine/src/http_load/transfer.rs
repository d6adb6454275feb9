//! Bytes of one transfer over a connection, within a time, a rate and an amount: noise out,
//! anything in.
//!
//! What goes down counts as far as the client's kernel acknowledged it, and lasts until then: a
//! write returns when the bytes are in this host's buffer.

use std::io::{self, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use linerate_core::record::TcpInfo;
use linerate_core::time::MonoTime;
use linerate_sys::clock::{monotonic, sleep};
use linerate_sys::stop::Stop;
use linerate_sys::tcp::{self, tcp_info};

use super::arrive::is_pause;
use super::direction::incompressible_bytes;
use crate::flow::budget::Budget;

/// A call on the socket waits no longer before the clock and the stop flag are looked at.
const LOOK: Duration = Duration::from_millis(250);
/// A client that moves nothing for this long has vanished.
const STILL: Duration = Duration::from_secs(9);
/// A message that was begun in time is cut this long after it.
const MESSAGE_LATE: Duration = Duration::from_secs(2);
/// Bytes of one call.
const PIECE: usize = 256 << 10;
/// At a pace, a call moves what this time allows, and no less than a segment.
const SLOT: Duration = Duration::from_millis(2);
const PIECE_MIN: usize = 1448;
/// A pace that fell behind makes up for no more than this.
const LAG: Duration = Duration::from_millis(10);
/// Time between two points of the account.
const POINT_EVERY: Duration = Duration::from_millis(200);
/// The first look for an acknowledgement, and the longest pause between two.
const ACK_LOOK: (Duration, Duration) = (Duration::from_micros(50), Duration::from_millis(1));
/// TCP states in which nothing is acknowledged any more: CLOSE (7 of Linux tcp_states.h).
const CLOSED: u8 = 7;

/// Noise, as much as the longest message needs.
pub(super) fn content() -> &'static [u8] {
    static NOISE: OnceLock<Vec<u8>> = OnceLock::new();
    NOISE.get_or_init(|| incompressible_bytes(1 << 20))
}

/// A rate that several connections keep together.
#[derive(Debug)]
pub(super) struct Pace {
    bps: u64,
    next: Mutex<MonoTime>,
}

impl Pace {
    pub(super) fn from_bits_per_sec(bps: u64) -> Self {
        Self { bps: bps.max(1), next: Mutex::default() }
    }

    /// Most bytes of one call.
    pub(super) fn bytes_per_call(&self) -> usize {
        let bytes = u128::from(self.bps) * SLOT.as_nanos() / 8_000_000_000;
        usize::try_from(bytes).unwrap_or(usize::MAX).clamp(PIECE_MIN, PIECE)
    }

    /// When so many more bytes may have moved: behind all that was asked for before.
    pub(super) fn reserve_slot(&self, bytes: usize, now: MonoTime) -> MonoTime {
        let span = u64::try_from(bytes as u128 * 8_000_000_000 / u128::from(self.bps));
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let earliest = MonoTime::from_nanos(now.as_nanos().saturating_sub(LAG.as_nanos() as u64));
        *next = (*next).max(earliest) + Duration::from_nanos(span.unwrap_or(u64::MAX >> 1));
        *next
    }
}

/// The bounds of a transfer: time, pace and bytes.
#[derive(Clone, Debug)]
pub(super) struct TransferBounds<'a> {
    pub(super) stop: &'a Stop,
    /// The time after which nothing is begun.
    pub(super) until: MonoTime,
    pub(super) pace: Option<&'a Pace>,
    pub(super) budget: Budget,
}

/// The bytes that a transfer moved, over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Track {
    pub(super) begin: MonoTime,
    pub(super) end: MonoTime,
    /// Payload in bytes.
    pub(super) bytes: u64,
    /// Payload so far, at some times between.
    pub(super) points: Vec<(MonoTime, u64)>,
}

/// A connection that moves bytes until a time.
#[derive(Debug)]
pub(super) struct HttpTransfer<'a> {
    pub(super) stream: &'a TcpStream,
    bounds: TransferBounds<'a>,
    /// Bytes that were acknowledged before the first one: the kernel counts the SYN, too.
    before: u64,
    /// Bytes written and read that are load, and those written that are not.
    pub(super) sent: u64,
    pub(super) taken: u64,
    aside: u64,
    /// The budget is used up.
    spent: bool,
    begin: MonoTime,
    points: Vec<(MonoTime, u64)>,
}

impl<'a> HttpTransfer<'a> {
    /// A transfer that begins now.
    pub(super) fn begin_on_stream(stream: &'a TcpStream, bounds: TransferBounds<'a>) -> Self {
        let before = info_of(stream).bytes_acked.unwrap_or(0);
        let (sent, taken, aside, spent) = (0, 0, 0, false);
        let (begin, points) = (monotonic(), Vec::new());
        Self { stream, bounds, before, sent, taken, aside, spent, begin, points }
    }

    pub(super) fn is_over(&self) -> bool {
        self.spent || self.bounds.stop.is_requested() || monotonic() >= self.bounds.until
    }

    /// Time since the transfer began.
    pub(super) fn elapsed(&self) -> Duration {
        monotonic().duration_since(self.begin)
    }

    /// Sends so many bytes of noise; fewer when the time or the budget is over first.
    pub(super) fn send_load(&mut self, bytes: u64) -> io::Result<()> {
        let end = self.sent + bytes;
        while self.sent < end && !self.is_over() {
            let piece =
                usize::try_from(end - self.sent).unwrap_or(usize::MAX).min(self.bytes_per_call());
            if self.write_load(&content()[..piece])? == 0 {
                break;
            }
        }
        Ok(())
    }

    /// Sends a message of noise, whole unless the budget ends or its reader takes far too long;
    /// whether it was whole.
    pub(super) fn send_message(&mut self, bytes: usize) -> io::Result<bool> {
        let mut left = bytes.min(content().len());
        while left > 0 {
            if monotonic() >= self.bounds.until + MESSAGE_LATE {
                return Ok(false);
            }
            let piece = left.min(self.bytes_per_call());
            let count = self.write_load(&content()[..piece])?;
            if count == 0 {
                return Ok(false);
            }
            left -= count;
        }
        Ok(true)
    }

    /// Sends all of these bytes, which are no load, whatever the time.
    pub(super) fn send_aside(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let count = self.write(bytes)?;
            self.aside += count as u64;
            bytes = &bytes[count..];
        }
        Ok(())
    }

    /// Takes so many bytes and drops them; fewer when the time or the budget is over first, or the
    /// client leaves.
    pub(super) fn receive_load(&mut self, bytes: u64) -> io::Result<()> {
        let end = self.taken + bytes;
        while self.taken < end && !self.is_over() {
            if self.take_some(end - self.taken)? == 0 {
                break;
            }
        }
        Ok(())
    }

    /// Takes some of so many bytes; 0 when the client has left, or the budget ends.
    pub(super) fn take_some(&mut self, most: u64) -> io::Result<u64> {
        let _ = self.stream.set_read_timeout(Some(LOOK));
        let piece = self.bounds.pace.map_or(4 * PIECE, Pace::bytes_per_call);
        let piece = self.take_from_budget(usize::try_from(most).unwrap_or(usize::MAX).min(piece));
        if piece == 0 {
            return Ok(0);
        }
        let taken = self.patiently(|stream| tcp::discard(stream, piece));
        let count = *taken.as_ref().unwrap_or(&0);
        self.bounds.budget.give_back(piece - count);
        self.taken += count as u64;
        self.keep_pace(count);
        self.add_point(self.taken);
        taken.map(|count| count as u64)
    }

    /// Takes bytes that are no load; 0 when the client has left.
    pub(super) fn take_aside(&self, most: u64) -> io::Result<u64> {
        let _ = self.stream.set_read_timeout(Some(LOOK));
        let piece = usize::try_from(most).unwrap_or(usize::MAX).min(PIECE);
        self.patiently(|stream| tcp::discard(stream, piece)).map(|count| count as u64)
    }

    /// Payload of what was sent that the client's kernel acknowledged; all of it where this host's
    /// does not tell.
    pub(super) fn delivered(&self) -> u64 {
        let acked = info_of(self.stream).bytes_acked;
        let load = acked.map(|acked| acked.saturating_sub(self.before + self.aside));
        load.map_or(self.sent, |load| load.min(self.sent))
    }

    /// Waits until all that was written is acknowledged, or `enough` says that it will not be.
    pub(super) fn await_delivery(&self, mut enough: impl FnMut() -> bool) {
        let give_up = monotonic() + STILL;
        let mut pause = ACK_LOOK.0;
        while !is_delivered(self.stream) && monotonic() < give_up && !enough() {
            sleep(pause);
            pause = (pause * 3 / 2).min(ACK_LOOK.1);
        }
    }

    /// The bytes moved, ending now.
    pub(super) fn finish_track(&mut self) -> Track {
        let end = monotonic();
        let bytes = if self.sent > 0 { self.delivered() } else { self.taken };
        Track { begin: self.begin, end, bytes, points: std::mem::take(&mut self.points) }
    }

    /// True where the server is to end.
    pub(super) fn is_stopped(&self) -> bool {
        self.bounds.stop.is_requested()
    }

    fn bytes_per_call(&self) -> usize {
        self.bounds.pace.map_or(PIECE, Pace::bytes_per_call)
    }

    /// Bytes of those wanted that the budget still has.
    fn take_from_budget(&mut self, wanted: usize) -> usize {
        let drawn = self.bounds.budget.take_up_to(wanted);
        self.spent |= drawn == 0 && wanted > 0;
        drawn
    }

    fn keep_pace(&self, bytes: usize) {
        let Some(pace) = self.bounds.pace.filter(|_| bytes > 0) else { return };
        let now = monotonic();
        let slot = pace.reserve_slot(bytes, now);
        if slot > now {
            sleep(slot.duration_since(now));
        }
    }

    /// Writes some load; 0 when the budget ends.
    fn write_load(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let piece = self.take_from_budget(bytes.len());
        if piece == 0 {
            return Ok(0);
        }
        self.keep_pace(piece);
        let written = self.write(&bytes[..piece]);
        let count = *written.as_ref().unwrap_or(&0);
        self.bounds.budget.give_back(piece - count);
        self.sent += count as u64;
        if self.points.last().map_or(self.begin, |last| last.0) + POINT_EVERY <= monotonic() {
            self.add_point(self.delivered());
        }
        written
    }

    fn add_point(&mut self, bytes: u64) {
        let now = monotonic();
        if now >= self.points.last().map_or(self.begin, |last| last.0) + POINT_EVERY {
            self.points.push((now, bytes));
        }
    }

    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let _ = self.stream.set_write_timeout(Some(LOOK));
        self.patiently(|mut stream| stream.write(bytes))
    }

    /// Repeats a call until it does something, or the client has vanished.
    fn patiently(
        &self,
        mut call: impl FnMut(&TcpStream) -> io::Result<usize>,
    ) -> io::Result<usize> {
        let since = monotonic();
        loop {
            match call(self.stream) {
                Err(error) if is_pause(&error) => {
                    if monotonic() >= since + STILL || self.bounds.stop.is_requested() {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                }
                result => return result,
            }
        }
    }
}

fn info_of(stream: &TcpStream) -> TcpInfo {
    tcp_info(stream.as_fd()).unwrap_or_default()
}

/// True where nothing that was written is on the way, or the connection is gone.
fn is_delivered(stream: &TcpStream) -> bool {
    let info = info_of(stream);
    let none = |count: Option<u32>| count.is_none_or(|count| count == 0);
    info.state == Some(CLOSED) || (none(info.notsent_bytes) && none(info.unacked))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn connected_pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("bound");
        let client = TcpStream::connect(address).expect("loopback");
        (client, listener.accept().expect("it came").0)
    }

    fn bounds<'a>(
        stop: &'a Stop,
        pace: Option<&'a Pace>,
        budget: Option<u64>,
    ) -> TransferBounds<'a> {
        let until = monotonic() + Duration::from_secs(20);
        TransferBounds { stop, until, pace, budget: Budget::from_amount(budget) }
    }

    #[test]
    fn what_is_sent_lasts_until_the_client_has_it_and_not_until_it_is_written() {
        let (mut client, server) = connected_pair();
        let stop = Stop::new();
        let held = Duration::from_millis(300);
        std::thread::scope(|scope| {
            let reader = scope.spawn(move || {
                // What the two kernels hold fills first; the rest waits for this end.
                sleep(held);
                io::Read::read_exact(&mut client, &mut vec![0; 20_000_006])
            });
            let mut transfer = HttpTransfer::begin_on_stream(&server, bounds(&stop, None, None));
            transfer.send_aside(b"a head").expect("open");
            transfer.send_load(20_000_000).expect("open");
            transfer.await_delivery(|| false);
            let track = transfer.finish_track();
            assert_eq!((track.bytes, transfer.sent), (20_000_000, 20_000_000));
            assert!(track.end.duration_since(track.begin) >= held, "{track:?}");
            assert!(reader.join().expect("no panic").is_ok());
        });
    }

    #[test]
    fn a_reader_that_leaves_has_had_what_its_kernel_took() {
        let (client, server) = connected_pair();
        let stop = Stop::new();
        let mut transfer = HttpTransfer::begin_on_stream(&server, bounds(&stop, None, None));
        transfer.send_message(1000).expect("room for it");
        transfer.await_delivery(|| false);
        drop(client);
        let _ = transfer.send_load(50_000_000);
        transfer.await_delivery(|| false);
        assert!(transfer.finish_track().bytes < transfer.sent.max(1001), "not what was written");
    }

    #[test]
    fn a_budget_ends_what_is_sent_and_what_is_taken() {
        let (client, server) = connected_pair();
        let stop = Stop::new();
        let mut transfer = HttpTransfer::begin_on_stream(&server, bounds(&stop, None, Some(5000)));
        transfer.send_load(9000).expect("open");
        assert_eq!((transfer.sent, transfer.is_over()), (5000, true));
        let mut other = HttpTransfer::begin_on_stream(&client, bounds(&stop, None, Some(3000)));
        other.receive_load(5000).expect("open");
        assert_eq!((other.taken, other.is_over()), (3000, true));
    }

    #[test]
    fn connections_at_one_pace_move_no_more_than_it_allows_together() {
        // Slots follow each other: 1000 bytes of 8 Mbit/s take 1 ms each.
        let pace = Pace::from_bits_per_sec(8_000_000);
        let begin = MonoTime::from_nanos(1_000_000_000);
        let slots: Vec<u64> =
            (0..4).map(|_| pace.reserve_slot(1000, begin).as_nanos() / 1000).collect();
        // At 1 s the pace makes up for 10 ms: the first slot ends at 990 + 1 ms.
        assert_eq!(slots, [991_000, 992_000, 993_000, 994_000], "µs");
        assert_eq!(Pace::from_bits_per_sec(1).bytes_per_call(), PIECE_MIN);
        assert_eq!(
            Pace::from_bits_per_sec(100_000_000).bytes_per_call(),
            25_000,
            "2 ms of 100 Mbit/s"
        );
    }
}
