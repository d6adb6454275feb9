//! Two hosts behind NAT come together (`spec/meet.md`): this end of it.
//!
//! A hole is punched from the very port that the probes will leave from; the socket is closed
//! then, and what measures or reflects binds that port again: to the NATs it is the same flow.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use linerate_core::record::{Failure, Fault, IpFamily, MetWay, NatMeeting, StampPlan};
use linerate_core::time::MonoTime;
use linerate_proto::meet::{MEET_BYTES, Meet, MeetBody, MeetKey, MeetRole};
use linerate_proto::stamp::ReflectorOptions;
use linerate_sys::clock::{self, monotonic};
use linerate_sys::stop::Stop;

use super::reflect::StampReflector;
use crate::address::resolve;
use crate::failure::words_of;
use crate::socket_address::canonical;

/// Time between two questions to the third host, and between two greetings of the other end.
const ASK_EVERY: Duration = Duration::from_millis(200);
const HELLO_EVERY: Duration = Duration::from_millis(50);
/// The other has been told of, and nothing of it came through for so long: there is no hole.
const NO_HOLE_AFTER: Duration = Duration::from_secs(3);
/// The third has never answered.
const NO_THIRD_AFTER: Duration = Duration::from_secs(5);
/// Greetings after the last that was needed, for those that are lost; the reflecting end is ready
/// when the measuring one begins.
const MORE_HELLOS: u32 = 5;
const READY_AFTER: Duration = Duration::from_millis(500);
/// A reflector without probes for so long has nothing more to do.
const QUIET: Duration = Duration::from_secs(10);
/// How often a wait looks whether it is to end.
const LOOK: Duration = Duration::from_millis(20);

/// The host and the key by which two ends meet.
#[derive(Clone, Copy, Debug)]
pub struct Rendezvous {
    /// The third host, at which both ends meet.
    pub third: SocketAddr,
    /// The key that names the pair.
    pub key: MeetKey,
    /// How long the other is waited for.
    pub wait: Duration,
}

impl Rendezvous {
    /// At a host and UDP port, of those who know a word.
    /// # Errors
    /// When the host has no address.
    pub fn from_host_and_word(
        host: &str,
        port: u16,
        family: Option<IpFamily>,
        word: &str,
        wait: Duration,
    ) -> Result<Self, Failure> {
        let third = resolve(host, port, family)?;
        Ok(Self { third, key: MeetKey::from_word(word), wait })
    }
}

/// Where the other's datagrams come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetPeer {
    /// Address of the other end; the third host's where that relays.
    pub peer: SocketAddr,
    /// The meeting as a record has it.
    pub meeting: NatMeeting,
}

/// Comes together with the other end, or is asked to stop.
/// # Errors
/// When the third does not answer, or the other does not come.
pub fn meet_peer(at: &Rendezvous, role: MeetRole, stop: &Stop) -> Result<Option<MetPeer>, Failure> {
    let third = canonical(at.third);
    let failed = |error: &std::io::Error| {
        Failure::new(Fault::System, "meet at", third.to_string(), words_of(error))
    };
    let any = match third {
        SocketAddr::V4(_) => IpAddr::from([0; 4]),
        SocketAddr::V6(_) => IpAddr::from([0; 16]),
    };
    let socket = UdpSocket::bind((any, 0)).map_err(|error| failed(&error))?;
    socket.set_read_timeout(Some(LOOK)).map_err(|error| failed(&error))?;
    let local_port = socket.local_addr().map_err(|error| failed(&error))?.port();
    let end = MeetEnd { socket, third, key: at.key, role };
    let mut seen = MeetProgress::default();
    let way = end.come_together(&mut seen, at.wait, stop)?;
    let Some(way) = way else { return Ok(None) };
    let peer = match way {
        MetWay::Hole => seen.heard_from.unwrap_or(third),
        MetWay::Relay => third,
    };
    if role == MeetRole::Measures {
        clock::sleep(READY_AFTER);
    }
    Ok(Some(MetPeer { peer, meeting: NatMeeting { at: third, way, local_port } }))
}

/// A session of STAMP in words, with the way that its packets go.
pub(super) fn describe_session(stamp: StampPlan) -> String {
    let signed = if stamp.authenticated { "STAMP, signed" } else { "STAMP" };
    match stamp.met {
        None => signed.to_owned(),
        Some(NatMeeting { at, way: MetWay::Hole, .. }) => {
            format!("{signed}, through a hole punched with the help of {at}")
        }
        Some(NatMeeting { at, way: MetWay::Relay, .. }) => {
            format!("{signed}, passed on by {at}, for no hole could be punched")
        }
    }
}

/// Meets the other and reflects its probes until it has been quiet for ten seconds, or `until`;
/// how the two met, where they did.
/// # Errors
/// As [`meet_peer`], or when the port is taken.
pub fn reflect(
    at: &Rendezvous,
    options: ReflectorOptions,
    until: Option<MonoTime>,
    stop: &Stop,
) -> Result<Option<MetPeer>, Failure> {
    let Some(met) = meet_peer(at, MeetRole::Answers, stop)? else { return Ok(None) };
    let any = match met.peer {
        SocketAddr::V4(_) => IpAddr::from([0; 4]),
        SocketAddr::V6(_) => IpAddr::from([0; 16]),
    };
    let address = SocketAddr::new(any, met.meeting.local_port);
    let reflector = StampReflector::bind(address, options)?;
    let (last_ns, over) = (AtomicU64::new(monotonic().as_nanos()), Stop::default());
    let admits = |source: IpAddr| {
        let ours = source.to_canonical() == met.peer.ip();
        if ours {
            last_ns.store(monotonic().as_nanos(), Ordering::Relaxed);
        }
        ours
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let is_late = |now: MonoTime| until.is_some_and(|until| now >= until);
            let is_quiet = |now: MonoTime| {
                now.as_nanos().saturating_sub(last_ns.load(Ordering::Relaxed))
                    > QUIET.as_nanos() as u64
            };
            loop {
                let now = monotonic();
                if stop.is_requested() || is_late(now) || is_quiet(now) {
                    break over.request_stop();
                }
                clock::sleep(LOOK);
            }
        });
        reflector.run_for(&over, &admits);
    });
    Ok(Some(met))
}

/// The state of a meeting that is under way.
#[derive(Debug, Default)]
struct MeetProgress {
    cookie: u64,
    answered: bool,
    /// Where the other is, as the third says, and since when.
    told: Option<(SocketAddr, MonoTime)>,
    relayed: bool,
    /// Where a greeting of the other came from, which a NAT may have made another than was told.
    heard_from: Option<SocketAddr>,
    /// True where the other end has heard this one.
    both: bool,
}

struct MeetEnd {
    socket: UdpSocket,
    third: SocketAddr,
    key: MeetKey,
    role: MeetRole,
}

impl MeetEnd {
    fn come_together(
        &self,
        seen: &mut MeetProgress,
        wait: Duration,
        stop: &Stop,
    ) -> Result<Option<MetWay>, Failure> {
        let began = monotonic();
        let (mut asked, mut greeted) = (None::<MonoTime>, None::<MonoTime>);
        let due = |last: Option<MonoTime>, every: Duration, now: MonoTime| {
            last.is_none_or(|last| now >= last + every)
        };
        while !stop.is_requested() {
            let now = monotonic();
            let no_hole = seen.told.is_some_and(|(_, since)| now >= since + NO_HOLE_AFTER);
            if due(asked, ASK_EVERY, now) {
                asked = Some(now);
                let (cookie, relay) = (seen.cookie, no_hole && !seen.both);
                self.send_message(MeetBody::Ask { cookie, relay }, self.third);
            }
            if due(greeted, HELLO_EVERY, now) {
                greeted = Some(now);
                self.greet_peer(seen);
            }
            self.receive_message(seen);
            if seen.both {
                for _ in 0..MORE_HELLOS {
                    clock::sleep(HELLO_EVERY);
                    self.greet_peer(seen);
                }
                return Ok(Some(MetWay::Hole));
            }
            if seen.relayed {
                return Ok(Some(MetWay::Relay));
            }
            self.check_timeouts(seen, now, began, wait)?;
        }
        Ok(None)
    }

    fn check_timeouts(
        &self,
        seen: &MeetProgress,
        now: MonoTime,
        began: MonoTime,
        wait: Duration,
    ) -> Result<(), Failure> {
        let failed = |reason: String| {
            Failure::new(Fault::Unreachable, "meet at", self.third.to_string(), reason)
        };
        if !seen.answered && now >= began + NO_THIRD_AFTER {
            let advice = "start `linerate serve --meet` there; its UDP port is that of its tests";
            return Err(failed("it does not answer".to_owned()).advise(advice));
        }
        if now < began + wait {
            return Ok(());
        }
        Err(match seen.told {
            None => failed(format!("the other end did not come within {} s", wait.as_secs()))
                .advise("give both ends the same --word, one of them --reflect"),
            Some((other, _)) => {
                failed(format!("nothing came through from {other}, nor by the host itself"))
                    .advise("let one of the two reach the other, by a forwarded UDP port")
            }
        })
    }

    fn send_message(&self, say: MeetBody, to: SocketAddr) {
        // What cannot be sent now is lost, as it might be on the way.
        let message = Meet { key: self.key, role: self.role, say };
        let _ = self.socket.send_to(&message.encode(), to);
    }

    /// Greets the other where it is said to be, and where it was heard from.
    fn greet_peer(&self, seen: &MeetProgress) {
        let told = seen.told.map(|(other, _)| other);
        let heard = seen.heard_from.filter(|from| Some(*from) != told);
        let same = |it: &SocketAddr| it.is_ipv4() == self.third.is_ipv4();
        for other in told.into_iter().chain(heard).filter(same) {
            self.send_message(MeetBody::Hello { heard: seen.heard_from.is_some() }, other);
        }
    }

    /// Takes what has come, for one wait of the socket.
    fn receive_message(&self, seen: &mut MeetProgress) {
        let mut buffer = [0; MEET_BYTES + 1];
        // An error is that of an earlier greeting, which a NAT refused.
        let Ok((len, from)) = self.socket.recv_from(&mut buffer) else { return };
        let Some(said) = Meet::decode(&buffer[..len]).filter(|meet| meet.key == self.key) else {
            return;
        };
        match said.say {
            MeetBody::Told { cookie, other, relayed }
                if from == self.third && said.role == self.role =>
            {
                (seen.cookie, seen.answered, seen.relayed) = (cookie, true, relayed);
                if let Some(other) = other {
                    let since = seen.told.map_or_else(monotonic, |(_, since)| since);
                    seen.told = Some((other, since));
                }
            }
            MeetBody::Hello { heard } if said.role != self.role => {
                seen.heard_from = Some(from);
                seen.both |= heard;
            }
            _ => {}
        }
    }
}
