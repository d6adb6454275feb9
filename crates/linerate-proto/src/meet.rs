//! How two hosts behind NAT come together at a third (`spec/meet.md`): each asks the third, from
//! the port that it will measure from, and is told where the other's datagrams come from; then both
//! send to each other until both have heard. Where nothing comes through, the third passes on what
//! the two send each other.
//!
//! Nobody is sent more than it sent: a message of any kind has 64 octets, and a host that has not
//! shown by a cookie that it is where it says is told nothing and sent nothing of another.

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

/// Pairs that meet at one time.
const PLACES_MAX: usize = 1024;
/// One that has not asked, nor sent, for so long is gone.
const GONE_NS: u64 = 10_000_000_000;
/// What is passed on for a pair: so many datagrams a second, and for so long.
const PASSED_PER_SECOND: u32 = 1000;
const PASSED_FOR_NS: u64 = 600_000_000_000;

/// What both hosts know, and nobody else: 16 octets of the SHA-256 of their word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MeetKey([u8; 16]);

impl MeetKey {
    /// The key of a word.
    pub fn of(word: &str) -> Self {
        let digest = sha256(format!("linerate meet {word}").as_bytes());
        Self(*digest.first_chunk().expect("a digest has 32 octets"))
    }
}

/// What one of the two does once they have met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It sends probes.
    Measures,
    /// It answers them.
    Answers,
}

/// What a message says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Say {
    /// To the third: where is the other?
    Ask {
        /// As the third told it last; 0 at first.
        cookie: u64,
        /// No hole: pass on what we send.
        relay: bool,
    },
    /// The third's answer.
    Told {
        /// To be given back.
        cookie: u64,
        /// Where the other's datagrams come from.
        other: Option<SocketAddr>,
        /// What both send is passed on from now on.
        relayed: bool,
    },
    /// To the other.
    Hello {
        /// One of the other's has come.
        heard: bool,
    },
}

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meet {
    /// Whose.
    pub key: MeetKey,
    /// Of whom, or to whom where the third speaks.
    pub role: Role,
    /// What.
    pub say: Say,
}

impl Meet {
    /// As octets.
    pub fn encode(&self) -> [u8; MEET_BYTES] {
        let mut bytes = [0; MEET_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[ROLE_AT] = u8::from(self.role == Role::Answers);
        bytes[KEY_AT..COOKIE_AT].copy_from_slice(&self.key.0);
        let (kind, flag, cookie, other) = match self.say {
            Say::Ask { cookie, relay } => (ASK, relay, cookie, None),
            Say::Told { cookie, other, relayed } => (TOLD, relayed, cookie, other),
            Say::Hello { heard } => (HELLO, heard, 0, None),
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

    /// What octets say; nothing where they are no message.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; MEET_BYTES] = bytes.try_into().ok()?;
        if !bytes.starts_with(&MAGIC) || bytes[ROLE_AT] > 1 || bytes[FLAGS_AT] > 1 {
            return None;
        }
        let role = if bytes[ROLE_AT] == 1 { Role::Answers } else { Role::Measures };
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
            ASK => Say::Ask { cookie, relay: flag },
            TOLD => Say::Told { cookie, other, relayed: flag },
            HELLO => Say::Hello { heard: flag },
            _ => return None,
        };
        Some(Self { key, role, say })
    }
}

/// What the third is to do with a datagram.
#[derive(Debug, PartialEq, Eq)]
pub enum Deed<'a, W> {
    /// Send this back.
    Answer([u8; MEET_BYTES]),
    /// Send it on, this way.
    PassOn(&'a W),
    /// Drop it.
    Drop,
    /// It is none of those who meet here.
    NotOurs,
}

/// Who meets at the third; `W` is the way back to one of them.
#[derive(Debug)]
pub struct Meetings<W> {
    places: HashMap<MeetKey, Place<W>>,
    /// Where those are whose datagrams are passed on.
    passed: HashMap<SocketAddr, (MeetKey, Role)>,
    cookies: RandomState,
}

#[derive(Debug)]
struct Place<W> {
    ends: [Option<End<W>>; 2],
    passed_since: Option<MonoTime>,
    second: MonoTime,
    in_second: u32,
}

#[derive(Debug)]
struct End<W> {
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

const fn place_of(role: Role) -> usize {
    match role {
        Role::Measures => 0,
        Role::Answers => 1,
    }
}

impl<W> Place<W> {
    fn new(now: MonoTime) -> Self {
        Self { ends: [None, None], passed_since: None, second: now, in_second: 0 }
    }

    fn is_over(&self, now: MonoTime) -> bool {
        let gone =
            |end: &Option<End<W>>| end.as_ref().is_none_or(|end| now.nanos_since(end.at) > GONE_NS);
        let long = |since: MonoTime| now.nanos_since(since) > PASSED_FOR_NS;
        self.ends.iter().all(gone) || self.passed_since.is_some_and(long)
    }

    /// Whether one more may be passed on in this second.
    fn has_room(&mut self, now: MonoTime) -> bool {
        if now.nanos_since(self.second) >= 1_000_000_000 {
            (self.second, self.in_second) = (now, 0);
        }
        self.in_second += 1;
        self.in_second <= PASSED_PER_SECOND
    }
}

impl<W> Meetings<W> {
    /// What is to be done with a datagram; `back` gives the way to its sender.
    pub fn take(
        &mut self,
        bytes: &[u8],
        source: SocketAddr,
        back: impl FnOnce() -> W,
        now: MonoTime,
    ) -> Deed<'_, W> {
        match Meet::decode(bytes) {
            Some(Meet { key, role, say: Say::Ask { cookie, relay } }) => {
                let right = self.cookies.hash_one((source, key));
                if cookie != right {
                    let say = Say::Told { cookie: right, other: None, relayed: false };
                    return Deed::Answer(Meet { key, role, say }.encode());
                }
                let end = End { source, back: back(), at: now, relay };
                match self.asked(key, role, end, now) {
                    Some((other, relayed)) => {
                        let say = Say::Told { cookie: right, other, relayed };
                        Deed::Answer(Meet { key, role, say }.encode())
                    }
                    None => Deed::Drop,
                }
            }
            // Messages of the two to each other come here by mistake alone.
            Some(_) => Deed::Drop,
            None => self.pass_on(source, now),
        }
    }

    /// Notes one that has asked; where the other is, and whether what both send is passed on.
    fn asked(
        &mut self,
        key: MeetKey,
        role: Role,
        end: End<W>,
        now: MonoTime,
    ) -> Option<(Option<SocketAddr>, bool)> {
        if !self.places.contains_key(&key) && self.places.len() >= PLACES_MAX {
            self.forget(now);
            if self.places.len() >= PLACES_MAX {
                return None;
            }
        }
        let place = self.places.entry(key).or_insert_with(|| Place::new(now));
        if place.is_over(now) {
            let before = std::mem::replace(place, Place::new(now));
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
        let there = |end: &&End<W>| now.nanos_since(end.at) <= GONE_NS;
        let [Some(me), Some(other)] =
            [mine, others].map(|at| place.ends[at].as_ref().filter(there))
        else {
            return Some((None, false));
        };
        let found = (Some(other.source), me.relay && other.relay);
        if found.1 {
            place.passed_since.get_or_insert(now);
            for (at, role) in [(0, Role::Measures), (1, Role::Answers)] {
                if let Some(end) = &place.ends[at] {
                    self.passed.insert(end.source, (key, role));
                }
            }
        }
        Some(found)
    }

    fn pass_on(&mut self, source: SocketAddr, now: MonoTime) -> Deed<'_, W> {
        let Some((key, role)) = self.passed.get(&source).copied() else { return Deed::NotOurs };
        let over = self.places.get(&key).is_none_or(|place| place.is_over(now));
        if over {
            self.forget(now);
            return Deed::NotOurs;
        }
        let Some(place) = self.places.get_mut(&key) else { return Deed::NotOurs };
        if !place.has_room(now) {
            return Deed::Drop;
        }
        if let Some(end) = &mut place.ends[place_of(role)] {
            end.at = now;
        }
        place.ends[1 - place_of(role)].as_ref().map_or(Deed::Drop, |end| Deed::PassOn(&end.back))
    }

    fn forget(&mut self, now: MonoTime) {
        self.places.retain(|_, place| !place.is_over(now));
        let places = &self.places;
        self.passed.retain(|_, (key, _)| places.contains_key(key));
    }
}

#[cfg(test)]
mod tests;
