//! The reflector's side: a request in a buffer becomes its reply in the same buffer.
//!
//! It cannot be used as an amplifier: a reply is as long as its request. Open requests that are
//! shorter than TWAMP's reply get none, unless the operator lets them have the base packet
//! (RFC 8762 §4.6), at a rate of their own.
//!
//! Nor can two reflectors be set on each other by a forged packet: none answers the port of a
//! reflector, nor a packet that is a reply itself.
//!
//! # Source
//! RFC 8762 §4.3, RFC 8972 §4; the limits are ours.

use std::net::SocketAddr;

use linerate_core::time::MonoTime;

use super::packet::{self, BYTES_TWAMP_REPLY, Key, Reply, Request, base_bytes};
use super::probe::sign_extensions;
use super::sessions::{Session, SessionId, Sessions};
use super::time::{ErrorEstimate, TimeFormat};
use super::tlv::{HEADER_BYTES, Tlv, TlvKind, Tlvs, flags};

/// Packets in a second from one source: more than one sender reaches over a link of 1 Gbit/s.
const PER_SECOND_MAX: u32 = 200_000;
/// The same of requests that are shorter than their reply.
const SHORT_PER_SECOND_MAX: u32 = 1_000;
/// The port of reflectors (RFC 8762 §4.1), which none of them answers.
const REFLECTOR_PORT: u16 = 862;
/// Ports below are those of services, such as echo, chargen and DNS, which may answer in turn.
const LOW_PORTS: u16 = 1024;
/// A reflector keeps a packet no longer than this.
const REFLECTS_WITHIN_NS: u64 = 1_000_000_000;
/// RFC 8972 §4.3: what keeps a clock. 1 is NTP, 2 PTP, 5 nothing.
const SOURCE_NTP: u8 = 1;
const SOURCE_PTP: u8 = 2;
const SOURCE_FREE: u8 = 5;
/// RFC 8972 §4.3: stamps by software on this host.
const METHOD_SOFTWARE: u8 = 2;

/// What a reflector is.
#[derive(Clone, Debug, Default)]
pub struct ReflectorOptions {
    /// Takes only packets that this signed; without it only open ones.
    pub key: Option<Key>,
    /// Repeats the sender's numbers instead of counting itself.
    pub stateless: bool,
    /// Answers open requests of 14 to 43 octets by 44, as RFC 8762 §4.6 has it: up to three times
    /// what came, and whoever forges a source sends that to another.
    pub short: bool,
    /// Answers senders whose port is below 1024, too, but never port 862 or its own.
    pub low_ports: bool,
}

/// What the network told of a request.
#[derive(Clone, Copy, Debug)]
pub struct Arrived {
    /// The sender.
    pub source: SocketAddr,
    /// To where it sent.
    pub local: SocketAddr,
    /// T2.
    pub at_ns: u64,
    /// Time to live on arrival.
    pub ttl: Option<u8>,
    /// DSCP and ECN on arrival, as in the IP header.
    pub tos: Option<u8>,
    /// PTP keeps this host's clock; the kernel alone does not tell it from NTP.
    pub by_ptp: bool,
}

/// A reply that lacks only T3 and its tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prepared {
    /// Octets of the reply.
    pub len: usize,
    /// The session, for [`Reflector::left`].
    pub session: SessionId,
    /// Number of the reply, for the same.
    pub sequence: u32,
    /// DSCP that the sender asks the reply to have.
    pub dscp: Option<u8>,
    format: TimeFormat,
}

/// Why a packet is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Too short.
    Short,
    /// Its tag is wrong.
    Tag,
    /// The source sends too many.
    Rate,
    /// It comes from a reflector, or from a port of services.
    Port,
}

/// Packets that were not answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refusals {
    /// Too short.
    pub short: u64,
    /// With a wrong tag.
    pub tag: u64,
    /// Beyond the rate of their source.
    pub rate: u64,
    /// From reflectors, and from ports of services.
    pub port: u64,
}

/// A reflector's memory.
#[derive(Debug, Default)]
pub struct Reflector {
    options: ReflectorOptions,
    sessions: Sessions,
    refusals: Refusals,
}

impl Reflector {
    /// A reflector without sessions.
    pub fn new(options: ReflectorOptions) -> Self {
        Self { options, ..Self::default() }
    }

    /// Sessions that it remembers.
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// Octets of memory that sessions and sources take.
    #[cfg(test)]
    pub(super) fn memory_bytes(&self) -> usize {
        self.sessions.memory_bytes()
    }

    /// What was not answered so far.
    pub const fn refusals(&self) -> Refusals {
        self.refusals
    }

    /// Makes the reply to the first `len` octets of `buffer`, which has room for a base packet.
    /// `error` is the error of this host's times, with their format left to the request's.
    /// # Errors
    /// Why there is none; it is counted.
    pub fn prepare(
        &mut self,
        buffer: &mut [u8],
        len: usize,
        arrived: &Arrived,
        error: ErrorEstimate,
        now: MonoTime,
    ) -> Result<Prepared, Refusal> {
        let outcome = self.try_prepare(buffer, len, arrived, error, now);
        match outcome {
            Ok(_) => {}
            Err(Refusal::Short) => self.refusals.short += 1,
            Err(Refusal::Tag) => self.refusals.tag += 1,
            Err(Refusal::Rate) => self.refusals.rate += 1,
            Err(Refusal::Port) => self.refusals.port += 1,
        }
        outcome
    }

    fn try_prepare(
        &mut self,
        buffer: &mut [u8],
        len: usize,
        arrived: &Arrived,
        error: ErrorEstimate,
        now: MonoTime,
    ) -> Result<Prepared, Refusal> {
        if !self.answers_port(arrived) {
            return Err(Refusal::Port);
        }
        let authenticated = self.options.key.is_some();
        let base = base_bytes(authenticated);
        let whole = len.max(base);
        let room = buffer.len();
        // What is signed was made by somebody who may have an answer.
        let exact = !authenticated && !self.options.short;
        if exact && len < BYTES_TWAMP_REPLY {
            return Err(Refusal::Short);
        }
        let datagram = buffer.get_mut(..whole).filter(|_| len <= room).ok_or(Refusal::Short)?;
        let request = Request::read(authenticated, &datagram[..len]).ok_or(Refusal::Short)?;
        if is_reply(authenticated, &datagram[..len], arrived.at_ns) {
            return Err(Refusal::Port);
        }
        let per_second = if len < base { SHORT_PER_SECOND_MAX } else { PER_SECOND_MAX };
        if !self.sessions.allow(arrived.source.ip(), per_second, now) {
            return Err(Refusal::Rate);
        }
        if self.options.key.as_ref().is_some_and(|key| !key.signed(datagram)) {
            return Err(Refusal::Tag);
        }
        let id =
            SessionId { source: arrived.source, local: arrived.local.ip(), ssid: request.ssid };
        let session = self.sessions.enter(id, request.sequence, now);
        let sequence = if self.options.stateless { request.sequence } else { session.next };
        session.next = session.next.wrapping_add(1);
        session.received = session.received.wrapping_add(1);
        // The sender's own format, which it can read for certain.
        let error = ErrorEstimate { format: request.error.format, ..error };
        let facts = Facts { session: *session, arrived, error };
        let key = self.options.key.as_ref();
        let dscp = extend(datagram, base, key, &facts);
        let reply = Reply {
            sequence,
            t3: [0; 8],
            error,
            ssid: request.ssid,
            t2: error.format.encode(arrived.at_ns),
            request,
            ttl: arrived.ttl,
        };
        reply.write(authenticated, datagram);
        key.iter().for_each(|key| sign_extensions(key, datagram));
        let len = if exact { len } else { whole };
        Ok(Prepared { len, session: id, sequence, dscp, format: error.format })
    }

    /// Whether a packet's source may be a sender.
    const fn answers_port(&self, arrived: &Arrived) -> bool {
        let port = arrived.source.port();
        port != REFLECTOR_PORT
            && port != arrived.local.port()
            && (port >= LOW_PORTS || self.options.low_ports)
    }

    /// Writes T3, and then the tag over it.
    pub fn finish(&self, buffer: &mut [u8], prepared: &Prepared, t3_ns: u64) {
        let key = self.options.key.as_ref();
        packet::stamp(key.is_some(), buffer, prepared.format, t3_ns);
        key.iter().for_each(|key| key.sign(buffer));
    }

    /// Notes when a reply really left, for the next reply of its session.
    pub fn left(&mut self, session: &SessionId, sequence: u32, at_ns: u64) {
        if let Some(session) = self.sessions.find(session) {
            session.follow_up = Some((sequence, at_ns));
        }
    }
}

/// Whether a packet is the reply of a reflector, on whatever port that is: where a sender has zeros
/// or padding (RFC 8762 §4.2), a reply has T2, which is a little before its T3. The port alone
/// would not do: reflectors on two other ports than 862 answered each other for ever.
fn is_reply(authenticated: bool, packet: &[u8], near_ns: u64) -> bool {
    let Some(reply) = Reply::read(authenticated, packet) else { return false };
    let time = |octets| reply.error.format.decode(octets, near_ns);
    let times = time(reply.t2).zip(time(reply.t3));
    times.is_some_and(|(t2, t3)| t2 <= t3 && t3 - t2 <= REFLECTS_WITHIN_NS)
}

/// What TLVs are answered from.
struct Facts<'a> {
    session: Session,
    arrived: &'a Arrived,
    error: ErrorEstimate,
}

/// Answers the TLVs in place; the DSCP that the reply shall have, where one asks.
fn extend(datagram: &mut [u8], base: usize, key: Option<&Key>, facts: &Facts<'_>) -> Option<u8> {
    let (head, rest) = datagram.split_at_mut(base);
    if key.is_some_and(|key| !trustworthy(key, &head[..4], rest)) {
        each(rest, |flags, _, _| *flags |= flags::INTEGRITY);
        return None;
    }
    let mut dscp = None;
    each(rest, |flags, kind, value| {
        if !kind.takes(value.len()) {
            *flags = *flags & !flags::UNKNOWN | flags::MALFORMED;
        } else if answer(kind, value, key.is_some(), facts, &mut dscp) {
            *flags &= !flags::UNKNOWN;
        } else {
            *flags |= flags::UNKNOWN;
        }
    });
    dscp
}

/// Whether the TLVs carry no tag, or the right one. Of TLVs without a tag only padding is
/// trustworthy in authenticated mode (RFC 8972 §4.8), and padding alone needs none.
fn trustworthy(key: &Key, sequence: &[u8], rest: &[u8]) -> bool {
    let tag = Tlvs::new(rest).find(|tlv| tlv.kind == TlvKind::Hmac);
    match tag {
        Some(tag) => {
            let mut after = Tlvs::new(&rest[tag.at..]).skip(1);
            key.verifies(&[sequence, &rest[..tag.at]], tag.value)
                && after.all(|tlv| tlv.kind == TlvKind::ExtraPadding)
        }
        None => Tlvs::new(rest).all(|tlv| tlv.kind == TlvKind::ExtraPadding),
    }
}

/// Gives flags, type and value of each TLV; a last one whose length does not fit gets its flag.
fn each(rest: &mut [u8], mut change: impl FnMut(&mut u8, TlvKind, &mut [u8])) {
    let mut at = 0;
    loop {
        let mut walk = Tlvs::new(&rest[at..]);
        let Some(Tlv { kind, value, .. }) = walk.next() else { break };
        // Zeros are those of a sender without TLVs, to the end (RFC 8762 §4.2).
        if rest[at..].starts_with(&[0; HEADER_BYTES]) {
            return;
        }
        let (len, next) = (value.len(), at + walk.at());
        let (flags, behind) = rest[at..].split_first_mut().expect("a TLV has a header");
        change(flags, kind, &mut behind[HEADER_BYTES - 1..][..len]);
        at = next;
    }
    if rest.len() - at >= HEADER_BYTES {
        rest[at] |= flags::MALFORMED;
    }
}

/// Fills in a value; whether its type is known here.
fn answer(
    kind: TlvKind,
    value: &mut [u8],
    authenticated: bool,
    facts: &Facts<'_>,
    dscp: &mut Option<u8>,
) -> bool {
    let Facts { session, arrived, error } = facts;
    match kind {
        TlvKind::ExtraPadding => {}
        // Its sub-TLVs stay as they came, unknown.
        TlvKind::Location => {
            value[..2].copy_from_slice(&arrived.local.port().to_be_bytes());
            value[2..4].copy_from_slice(&arrived.source.port().to_be_bytes());
        }
        TlvKind::TimestampInformation => {
            let source = match (error.synchronised, arrived.by_ptp) {
                (true, true) => SOURCE_PTP,
                (true, false) => SOURCE_NTP,
                (false, _) => SOURCE_FREE,
            };
            value.copy_from_slice(&[source, METHOD_SOFTWARE, source, METHOD_SOFTWARE]);
        }
        // DSCP1 (6 bits), DSCP2 (6), ECN (2), RP (2): the first is obeyed, so RP is 0.
        TlvKind::ClassOfService => {
            let tos = arrived.tos.unwrap_or(0);
            let asked = value[0] >> 2;
            *dscp = Some(asked);
            value[0] = asked << 2 | tos >> 6;
            value[1] = (tos >> 2 & 0x0F) << 4 | (tos & 3) << 2;
        }
        TlvKind::DirectMeasurement => {
            value[4..8].copy_from_slice(&session.received.to_be_bytes());
            value[8..12].copy_from_slice(&session.next.to_be_bytes());
        }
        TlvKind::FollowUp => {
            value.fill(0);
            if let Some((sequence, at_ns)) = session.follow_up {
                value[..4].copy_from_slice(&sequence.to_be_bytes());
                value[4..12].copy_from_slice(&error.format.encode(at_ns));
                value[12] = METHOD_SOFTWARE;
            }
        }
        TlvKind::Hmac => return authenticated,
        TlvKind::AccessReport | TlvKind::Other(_) => return false,
    }
    true
}
