//! How far this host's civil time is right: what chronyd says on its command port, where one
//! answers; else what ptp4l says, where it keeps civil time; else what the kernel was told
//! (adjtimex(2)), by ntpd, phc2sys or chronyd.
//!
//! chronyd's own bound is the better one: the kernel's grows by 0.5 ms a second after each update.
//! ptp4l tells the kernel a largest error of 0 whatever its master is worth (3.1.1), so that the
//! kernel's is not asked where ptp4l keeps civil time. With timestamps of the card it keeps the
//! card's clock: that is shown and says nothing of this one. The command socket in /run/chrony is
//! root's and is left out.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use linerate_core::record::ClockKeeper;
use linerate_core::time::MonoTime;
use linerate_proto::chrony::{self, Tracking};
use linerate_proto::ptp4l::Ptp4l;
use linerate_proto::stamp::{ErrorEstimate, TimeFormat};
use linerate_sys::datagram_socket::{DatagramOptions, DatagramSocket};
use linerate_sys::{clock, clock_facts, poll};

use super::ptp4l::Ptp4lClient;

/// chronyd and ptp4l answer within 0.1 ms; one that is stopped is not waited for.
const WAIT: Duration = Duration::from_millis(50);
/// How often it is asked.
const EVERY: Duration = Duration::from_secs(1);

/// Allowance for the way between the kernel's stamps and the wire. Over veth the whole path between
/// the stamps of both ends takes 0.5 µs at least (Linux 6.18); a card with interrupt moderation
/// needs more, which its driver does not say.
const STAMP_ERROR_NS: u64 = 1_000;

/// The civil time of this host, and the programs that keep it.
#[derive(Debug)]
pub struct CivilTime {
    socket: Option<DatagramSocket>,
    number: u32,
    asked: MonoTime,
    tracking: Option<Tracking>,
    ptp4l: Option<Ptp4lClient>,
    said: Option<Ptp4l>,
    /// Largest error and who says so; `None` where nothing keeps civil time right.
    error: Option<(u64, ClockKeeper)>,
    /// Largest error to state, whoever keeps the clock.
    largest_ns: u64,
}

impl CivilTime {
    /// Asks at once, and waits for each answer 50 ms at most.
    pub fn ask_clock_keepers() -> Self {
        Self::ask_with(Ptp4lClient::connect_local())
    }

    fn ask_with(ptp4l: Option<Ptp4lClient>) -> Self {
        let mut all = Self {
            socket: open_chrony_socket(),
            number: u32::from_ne_bytes(clock::random_bytes()),
            asked: MonoTime::default(),
            tracking: None,
            ptp4l,
            said: None,
            error: None,
            largest_ns: u64::MAX,
        };
        all.request(clock::monotonic());
        if let Some(socket) = &all.socket {
            let _ = poll::readable(socket, WAIT);
        }
        all.said = all.ptp4l.as_mut().and_then(|ptp4l| ptp4l.query_status(WAIT));
        all.take_reply();
        all
    }

    /// Asks again where a second went by, without waiting: what was answered is read then.
    pub(crate) fn refresh_if_due(&mut self, now: MonoTime) {
        if now.duration_since(self.asked) >= EVERY {
            self.said = self.ptp4l.as_ref().and_then(Ptp4lClient::answers);
            self.take_reply();
            self.request(now);
            if let Some(ptp4l) = &mut self.ptp4l {
                ptp4l.request();
            }
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
        let kernel = clock_facts::sync_state().ok();
        let kernel_ns = kernel.map(|state| state.error_max_us.saturating_mul(1_000));
        let told_ns = kernel_ns.filter(|_| kernel.is_some_and(|state| state.synchronised));
        self.error = choose_clock_error(self.tracking.as_ref(), self.said.as_ref(), told_ns);
        let own = kernel_ns.filter(|_| !self.is_kept_by_ptp4l());
        self.largest_ns = self.error.map(|(ns, _)| ns).or(own).unwrap_or(u64::MAX);
    }

    /// ptp4l keeps civil time, by a master that may be right or not.
    pub(crate) fn is_kept_by_ptp4l(&self) -> bool {
        self.said.is_some_and(|said| said.keeps_civil_time())
    }

    /// The tracking report of chronyd; `None` where none answers.
    pub fn tracking(&self) -> Option<&Tracking> {
        self.tracking.as_ref()
    }

    /// The status of ptp4l; `None` where none answers.
    pub fn ptp4l_status(&self) -> Option<&Ptp4l> {
        self.said.as_ref()
    }

    /// Largest error and who says so, where something keeps civil time right.
    pub fn largest_error(&self) -> Option<(u64, ClockKeeper)> {
        self.error
    }

    /// Largest error of the kernel's stamps in civil time, and whether something keeps that right.
    pub(crate) fn of_stamps(&self) -> ErrorEstimate {
        let largest_ns = self.largest_ns.saturating_add(STAMP_ERROR_NS);
        ErrorEstimate::from_error_ns(largest_ns, self.error.is_some(), TimeFormat::Ntp)
    }
}

/// Largest error and who says so: chronyd, else ptp4l, else the kernel, which has it from ptp4l
/// where that keeps civil time.
fn choose_clock_error(
    chronyd: Option<&Tracking>,
    ptp4l: Option<&Ptp4l>,
    kernel: Option<u64>,
) -> Option<(u64, ClockKeeper)> {
    if let Some(ns) = chronyd.and_then(Tracking::error_ns) {
        return Some((ns, ClockKeeper::Chronyd));
    }
    match ptp4l.filter(|ptp4l| ptp4l.keeps_civil_time()) {
        Some(ptp4l) => Some((ptp4l.error_ns()?, ClockKeeper::Ptp4l)),
        None => Some((kernel?, ClockKeeper::Kernel)),
    }
}

fn open_chrony_socket() -> Option<DatagramSocket> {
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

#[cfg(test)]
mod tests {
    use linerate_proto::ptp4l::{Current, Port, PortState, Stamping};

    use super::*;

    /// The status of a ptp4l that keeps civil time by a master of its own (recorded ones are in
    /// testdata/ptp4l).
    fn of_own_master() -> Ptp4l {
        let current = Current { steps: 1, offset_ns: -758.0, path_delay_ns: 1_940.0 };
        let port = Port { state: PortState::Slave, stamping: Stamping::Software };
        Ptp4l { current: Some(current), port: Some(port), ..Ptp4l::default() }
    }

    #[test]
    fn the_kernel_is_not_asked_where_ptp4l_keeps_civil_time() {
        let own = of_own_master();
        assert_eq!(
            choose_clock_error(None, Some(&own), Some(0)),
            None,
            "the kernel has it from ptp4l"
        );
        let port = Port { state: PortState::Slave, stamping: Stamping::Hardware };
        let card = Ptp4l { port: Some(port), ..own };
        let kernel = Some((7_000, ClockKeeper::Kernel));
        assert_eq!(
            choose_clock_error(None, Some(&card), Some(7_000)),
            kernel,
            "it keeps another clock"
        );
        assert_eq!(choose_clock_error(None, None, Some(7_000)), kernel);
        assert_eq!(choose_clock_error(None, None, None), None);
    }
}
