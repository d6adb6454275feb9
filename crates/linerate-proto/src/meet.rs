//! UDP hole punching between two hosts behind NAT, by a third host, the server (`spec/meet.md`).
//! Each host asks the server, from the port that it will measure from, and learns the public
//! address and port of the other host. Both then send to each other until both have received a
//! datagram. If none gets through, the server relays their datagrams.
//!
//! The server cannot be used for amplification: every message has 64 octets, and a host that has
//! not returned the cookie sent to its address receives neither addresses nor relayed datagrams.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use linerate_core::time::MonoTime;

use crate::digest::sha256;

/// Octets of every message.
pub const MEET_BYTES: usize = 64;
const MAGIC: [u8; 8] = *b"lr-meet\x01";
const KIND_AT: usize = 8;
const ROLE_AT: usize = 9;
const FLAGS_AT: usize = 10;
const KEY_AT: usize = 12;
const COOKIE_AT: usize = 28;
const FAMILY_AT: usize = 36;
const PORT_AT: usize = 38;
const ADDRESS_AT: usize = 40;
const ASK: u8 = 1;
const TOLD: u8 = 2;
const HELLO: u8 = 3;

/// Most pairs that the server serves at one time.
const PLACES_MAX: usize = 1024;
/// A host from which no datagram came for this time is forgotten.
const GONE_NS: u64 = 10_000_000_000;
/// Most datagrams a second that the server relays for a pair, and the longest time it does so.
const PASSED_PER_SECOND: u32 = 1000;
const PASSED_FOR_NS: u64 = 600_000_000_000;

/// Secret that the two hosts share: 16 octets of the SHA-256 of their passphrase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MeetKey([u8; 16]);

impl MeetKey {
    /// The key that two hosts with this passphrase derive.
    pub fn from_word(word: &str) -> Self {
        let digest = sha256(format!("linerate meet {word}").as_bytes());
        Self(*digest.first_chunk().expect("a digest has 32 octets"))
    }
}

/// Role of a host in the measurement after the hole punching.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeetRole {
    /// The host sends the probes.
    Measures,
    /// The host answers the probes.
    Answers,
}

/// Content of a message, by its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeetBody {
    /// Request to the server for the address of the other host.
    Ask {
        /// The cookie that the server sent last; 0 in the first request.
        cookie: u64,
        /// No datagram got through: ask the server to relay.
        relay: bool,
    },
    /// Answer of the server.
    Told {
        /// Cookie for the next request.
        cookie: u64,
        /// Public address and port of the other host, once known.
        other: Option<SocketAddr>,
        /// The server relays the datagrams of both hosts from now on.
        relayed: bool,
    },
    /// Datagram to the other host.
    Hello {
        /// A datagram of the other host has arrived.
        heard: bool,
    },
}

/// A message of 64 octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meet {
    /// Key of the pair.
    pub key: MeetKey,
    /// Role of the sender; in an answer of the server, that of the host it answers.
    pub role: MeetRole,
    /// Kind and content of the message.
    pub say: MeetBody,
}

impl Meet {
    /// The octets on the wire.
    pub fn encode(&self) -> [u8; MEET_BYTES] {
        let mut bytes = [0; MEET_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[ROLE_AT] = u8::from(self.role == MeetRole::Answers);
        bytes[KEY_AT..COOKIE_AT].copy_from_slice(&self.key.0);
        let (kind, flag, cookie, other) = match self.say {
            MeetBody::Ask { cookie, relay } => (ASK, relay, cookie, None),
            MeetBody::Told { cookie, other, relayed } => (TOLD, relayed, cookie, other),
            MeetBody::Hello { heard } => (HELLO, heard, 0, None),
        };
        (bytes[KIND_AT], bytes[FLAGS_AT]) = (kind, u8::from(flag));
        bytes[COOKIE_AT..FAMILY_AT].copy_from_slice(&cookie.to_be_bytes());
        if let Some(other) = other {
            bytes[PORT_AT..ADDRESS_AT].copy_from_slice(&other.port().to_be_bytes());
            match other.ip().to_canonical() {
                IpAddr::V4(address) => {
                    bytes[FAMILY_AT] = 4;
                    bytes[ADDRESS_AT..ADDRESS_AT + 4].copy_from_slice(&address.octets());
                }
                IpAddr::V6(address) => {
                    bytes[FAMILY_AT] = 6;
                    bytes[ADDRESS_AT..ADDRESS_AT + 16].copy_from_slice(&address.octets());
                }
            }
        }
        bytes
    }

    /// Parses a datagram; `None` for octets that are no message of this protocol.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; MEET_BYTES] = bytes.try_into().ok()?;
        if !bytes.starts_with(&MAGIC) || bytes[ROLE_AT] > 1 || bytes[FLAGS_AT] > 1 {
            return None;
        }
        let role = if bytes[ROLE_AT] == 1 { MeetRole::Answers } else { MeetRole::Measures };
        let key = MeetKey(*bytes[KEY_AT..].first_chunk()?);
        let cookie = u64::from_be_bytes(*bytes[COOKIE_AT..].first_chunk()?);
        let flag = bytes[FLAGS_AT] == 1;
        let port = u16::from_be_bytes(*bytes[PORT_AT..].first_chunk()?);
        let address = &bytes[ADDRESS_AT..];
        let ip = match bytes[FAMILY_AT] {
            0 => None,
            4 => Some(IpAddr::from(*address.first_chunk::<4>()?)),
            // One of IPv4 in IPv6's form (RFC 4291 §2.5.5.2) is written as what it is.
            6 => Some(Ipv6Addr::from(*address.first_chunk::<16>()?).to_canonical()),
            _ => return None,
        };
        let other = ip.filter(|_| port > 0).map(|ip| SocketAddr::new(ip, port));
        let say = match bytes[KIND_AT] {
            ASK => MeetBody::Ask { cookie, relay: flag },
            TOLD => MeetBody::Told { cookie, other, relayed: flag },
            HELLO => MeetBody::Hello { heard: flag },
            _ => return None,
        };
        Some(Self { key, role, say })
    }
}

/// Action of the server on a datagram.
#[derive(Debug, PartialEq, Eq)]
pub enum MeetAction<'a, W> {
    /// Send these octets back to the source.
    Answer([u8; MEET_BYTES]),
    /// Relay the datagram to the other host of the pair.
    PassOn(&'a W),
    /// Drop the datagram.
    Drop,
    /// The datagram is no message, and its source is no host of a relayed pair.
    NotOurs,
}

/// Pairs of hosts that the server knows; `W` is the reply path to a host.
#[derive(Debug)]
pub struct Meetings<W> {
    places: HashMap<MeetKey, MeetingPlace<W>>,
    /// Source addresses of the hosts whose datagrams are relayed.
    passed: HashMap<SocketAddr, (MeetKey, MeetRole)>,
    cookies: RandomState,
}

#[derive(Debug)]
struct MeetingPlace<W> {
    ends: [Option<MeetingEnd<W>>; 2],
    passed_since: Option<MonoTime>,
    second: MonoTime,
    in_second: u32,
}

#[derive(Debug)]
struct MeetingEnd<W> {
    source: SocketAddr,
    back: W,
    at: MonoTime,
    relay: bool,
}

impl<W> Default for Meetings<W> {
    fn default() -> Self {
        Self { places: HashMap::new(), passed: HashMap::new(), cookies: RandomState::new() }
    }
}

const fn place_of(role: MeetRole) -> usize {
    match role {
        MeetRole::Measures => 0,
        MeetRole::Answers => 1,
    }
}

impl<W> MeetingPlace<W> {
    fn new(now: MonoTime) -> Self {
        Self { ends: [None, None], passed_since: None, second: now, in_second: 0 }
    }

    fn is_over(&self, now: MonoTime) -> bool {
        let gone = |end: &Option<MeetingEnd<W>>| {
            end.as_ref().is_none_or(|end| now.nanos_since(end.at) > GONE_NS)
        };
        let long = |since: MonoTime| now.nanos_since(since) > PASSED_FOR_NS;
        self.ends.iter().all(gone) || self.passed_since.is_some_and(long)
    }

    /// Counts a datagram; true if it is within the limit of this second.
    fn has_room(&mut self, now: MonoTime) -> bool {
        if now.nanos_since(self.second) >= 1_000_000_000 {
            (self.second, self.in_second) = (now, 0);
        }
        self.in_second += 1;
        self.in_second <= PASSED_PER_SECOND
    }
}

impl<W> Meetings<W> {
    /// Handles a datagram and returns the action; `back` gives the reply path to its source.
    pub fn handle(
        &mut self,
        bytes: &[u8],
        source: SocketAddr,
        back: impl FnOnce() -> W,
        now: MonoTime,
    ) -> MeetAction<'_, W> {
        match Meet::decode(bytes) {
            Some(Meet { key, role, say: MeetBody::Ask { cookie, relay } }) => {
                let right = self.cookies.hash_one((source, key));
                if cookie != right {
                    let say = MeetBody::Told { cookie: right, other: None, relayed: false };
                    return MeetAction::Answer(Meet { key, role, say }.encode());
                }
                let end = MeetingEnd { source, back: back(), at: now, relay };
                match self.note_request(key, role, end, now) {
                    Some((other, relayed)) => {
                        let say = MeetBody::Told { cookie: right, other, relayed };
                        MeetAction::Answer(Meet { key, role, say }.encode())
                    }
                    None => MeetAction::Drop,
                }
            }
            // Hosts of a pair send the other kinds to each other, never to the server.
            Some(_) => MeetAction::Drop,
            None => self.pass_on(source, now),
        }
    }

    /// Notes the host of a request; returns the other host's address and whether both are relayed.
    fn note_request(
        &mut self,
        key: MeetKey,
        role: MeetRole,
        end: MeetingEnd<W>,
        now: MonoTime,
    ) -> Option<(Option<SocketAddr>, bool)> {
        if !self.places.contains_key(&key) && self.places.len() >= PLACES_MAX {
            self.forget(now);
            if self.places.len() >= PLACES_MAX {
                return None;
            }
        }
        let place = self.places.entry(key).or_insert_with(|| MeetingPlace::new(now));
        if place.is_over(now) {
            let before = std::mem::replace(place, MeetingPlace::new(now));
            for end in before.ends.iter().flatten() {
                self.passed.remove(&end.source);
            }
        }
        let (mine, others) = (place_of(role), 1 - place_of(role));
        let source = end.source;
        let before = place.ends[mine].replace(end);
        if let Some(before) = before.filter(|before| before.source != source) {
            self.passed.remove(&before.source);
        }
        let there = |end: &&MeetingEnd<W>| now.nanos_since(end.at) <= GONE_NS;
        let [Some(me), Some(other)] =
            [mine, others].map(|at| place.ends[at].as_ref().filter(there))
        else {
            return Some((None, false));
        };
        let found = (Some(other.source), me.relay && other.relay);
        if found.1 {
            place.passed_since.get_or_insert(now);
            for (at, role) in [(0, MeetRole::Measures), (1, MeetRole::Answers)] {
                if let Some(end) = &place.ends[at] {
                    self.passed.insert(end.source, (key, role));
                }
            }
        }
        Some(found)
    }

    fn pass_on(&mut self, source: SocketAddr, now: MonoTime) -> MeetAction<'_, W> {
        let Some((key, role)) = self.passed.get(&source).copied() else {
            return MeetAction::NotOurs;
        };
        let over = self.places.get(&key).is_none_or(|place| place.is_over(now));
        if over {
            self.forget(now);
            return MeetAction::NotOurs;
        }
        let Some(place) = self.places.get_mut(&key) else { return MeetAction::NotOurs };
        if !place.has_room(now) {
            return MeetAction::Drop;
        }
        if let Some(end) = &mut place.ends[place_of(role)] {
            end.at = now;
        }
        place.ends[1 - place_of(role)]
            .as_ref()
            .map_or(MeetAction::Drop, |end| MeetAction::PassOn(&end.back))
    }

    fn forget(&mut self, now: MonoTime) {
        self.places.retain(|_, place| !place.is_over(now));
        let places = &self.places;
        self.passed.retain(|_, (key, _)| places.contains_key(key));
    }
}

#[cfg(test)]
mod tests;
