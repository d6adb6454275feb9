//! How far this host's civil time is right: what chronyd says on its command port, where one
//! answers, else what the kernel was told (adjtimex(2)), by ntpd, phc2sys or chronyd.
//!
//! chronyd's own bound is the better one: the kernel's grows by 0.5 ms a second after each update.
//! The command socket in /run/chrony is root's and is left out; so is ptp4l's, which tells of the
//! card's clock and not of this one.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use linerate_core::time::MonoTime;
use linerate_proto::chrony::{self, Tracking};
use linerate_proto::stamp::{ErrorEstimate, TimeFormat};
use linerate_sys::datagram_socket::{DatagramOptions, DatagramSocket};
use linerate_sys::{clock, clock_facts, poll};

/// chronyd answers within 0.1 ms; one that is stopped is not waited for.
const WAIT: Duration = Duration::from_millis(50);
/// How often it is asked.
const EVERY: Duration = Duration::from_secs(1);

/// Allowance for the way between the kernel's stamps and the wire. Over veth the whole path between
/// the stamps of both ends takes 0.5 µs at least (Linux 6.18); a card with interrupt moderation
/// needs more, which its driver does not say.
const STAMP_ERROR_NS: u64 = 1_000;

/// What is known of this host's civil time.
#[derive(Debug)]
pub struct CivilTime {
    socket: Option<DatagramSocket>,
    number: u32,
    asked: MonoTime,
    tracking: Option<Tracking>,
    error: (u64, bool),
}

impl CivilTime {
    /// Asks at once, and waits for an answer 50 ms at most.
    pub fn ask() -> Self {
        let mut all = Self {
            socket: open(),
            number: u32::from_ne_bytes(clock::random_bytes()),
            asked: MonoTime::default(),
            tracking: None,
            error: (u64::MAX, false),
        };
        all.request(clock::monotonic());
        if let Some(socket) = &all.socket {
            let _ = poll::readable(socket, WAIT);
        }
        all.take_reply();
        all
    }

    /// Asks again where a second went by, without waiting: what was answered is read then.
    pub(crate) fn keep(&mut self, now: MonoTime) {
        if now.since(self.asked) >= EVERY {
            self.take_reply();
            self.request(now);
        }
    }

    fn request(&mut self, now: MonoTime) {
        self.asked = now;
        self.number = self.number.wrapping_add(1);
        if let Some(socket) = &self.socket {
            // Where nobody listens, an earlier refusal is told here.
            let _ = socket.send(&chrony::tracking_request(self.number));
        }
    }

    fn take_reply(&mut self) {
        let mut buffer = [0; chrony::TRACKING_BYTES];
        let received = self.socket.as_ref().map(|socket| socket.receive_from(&mut buffer));
        self.tracking = match received {
            Some(Ok(Some((len, _)))) => Tracking::parse(&buffer[..len], self.number),
            _ => None,
        };
        let told = || {
            let state = clock_facts::sync_state().ok()?;
            Some((state.error_max_us.saturating_mul(1_000), state.synchronised))
        };
        let chronyd = self.tracking.and_then(|tracking| tracking.error_ns());
        self.error = chronyd.map(|ns| (ns, true)).or_else(told).unwrap_or((u64::MAX, false));
    }

    /// What chronyd says; `None` where none answers.
    pub fn tracking(&self) -> Option<&Tracking> {
        self.tracking.as_ref()
    }

    /// Largest error, where something keeps civil time right.
    pub fn error_ns(&self) -> Option<u64> {
        Some(self.error.0).filter(|_| self.error.1)
    }

    /// Largest error of the kernel's stamps in civil time, and whether something keeps that right.
    pub(crate) fn of_stamps(&self) -> ErrorEstimate {
        let (error_ns, synchronised) = self.error;
        ErrorEstimate::of(error_ns.saturating_add(STAMP_ERROR_NS), synchronised, TimeFormat::Ntp)
    }
}

fn open() -> Option<DatagramSocket> {
    let socket = DatagramSocket::open(&DatagramOptions {
        local: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        window_bytes: None,
        buffer_bytes_max: 0,
        dscp: None,
        shared: false,
    });
    let socket = socket.ok()?;
    socket.connect(SocketAddr::from((Ipv4Addr::LOCALHOST, chrony::PORT))).ok()?;
    Some(socket)
}
