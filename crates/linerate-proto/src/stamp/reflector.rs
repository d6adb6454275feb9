//! The reflector's side: a request in a buffer becomes its reply in the same buffer.
//!
//! It cannot be used as an amplifier: a reply is as long as its request. Open requests shorter than
//! TWAMP's reply get no reply, unless the operator allows a longer one, the base packet (RFC 8762
//! §4.6), at a separate rate limit.
//!
//! A forged packet cannot start a loop between two reflectors: a reflector answers neither the port
//! of reflectors nor a packet that is a reply.
//!
//! # Source
//! RFC 8762 §4.3, RFC 8972 §4; the limits are ours.

use std::net::SocketAddr;

use linerate_core::time::MonoTime;

use super::packet::{self, BYTES_TWAMP_REPLY, Reply, StampKey, StampRequest, base_bytes};
use super::probe::sign_extensions;
use super::sessions::{Session, SessionId, Sessions};
use super::time::{ErrorEstimate, TimeFormat};
use super::tlv::{HEADER_BYTES, Tlv, TlvKind, Tlvs, flags};

/// Most packets a second from one source: more than one sender reaches over a link of 1 Gbit/s.
const PER_SECOND_MAX: u32 = 200_000;
/// Most packets a second from one source of requests that are shorter than their reply.
const SHORT_PER_SECOND_MAX: u32 = 1_000;
/// Port of reflectors (RFC 8762 §4.1), to which no reply is sent.
const REFLECTOR_PORT: u16 = 862;
/// First port above the well-known ports, whose services, such as echo, chargen and DNS, may answer
/// a reply.
const LOW_PORTS: u16 = 1024;
/// Longest time between T2 and T3 of a reply.
const REFLECTS_WITHIN_NS: u64 = 1_000_000_000;
/// Sources of clock synchronisation (RFC 8972 §4.3): 1 NTP, 2 PTP, 5 none.
const SOURCE_NTP: u8 = 1;
const SOURCE_PTP: u8 = 2;
const SOURCE_FREE: u8 = 5;
/// Method of timestamps (RFC 8972 §4.3): software on this host.
const METHOD_SOFTWARE: u8 = 2;

/// Configuration of a reflector.
#[derive(Clone, Debug, Default)]
pub struct ReflectorOptions {
    /// Key of authenticated mode, in which other packets are refused; `None` for open mode.
    pub key: Option<StampKey>,
    /// Stateless mode: replies repeat the sender's sequence number.
    pub stateless: bool,
    /// Answers open requests of 14 to 43 octets by 44, as in RFC 8762 §4.6. With a forged source
    /// this amplifies up to three times.
    pub short: bool,
    /// Answers also senders with a port below 1024, but never port 862 or the reflector's own.
    pub low_ports: bool,
}

/// Facts of a request's arrival.
#[derive(Clone, Copy, Debug)]
pub struct Arrived {
    /// Address and port of the sender.
    pub source: SocketAddr,
    /// Destination address and port of the request.
    pub local: SocketAddr,
    /// T2 in nanoseconds since 1970.
    pub at_ns: u64,
    /// Time to live of the request on arrival.
    pub ttl: Option<u8>,
    /// DSCP and ECN on arrival, as in the IP header.
    pub tos: Option<u8>,
    /// True if PTP synchronises this host's clock, which the kernel does not distinguish from NTP.
    pub by_ptp: bool,
}

/// A reply that lacks only T3 and its tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prepared {
    /// Octets of the reply.
    pub len: usize,
    /// Session of the request, for [`Reflector::note_departure`].
    pub session: SessionId,
    /// Sequence number of the reply, for [`Reflector::note_departure`].
    pub sequence: u32,
    /// DSCP that the sender requests for the reply.
    pub dscp: Option<u8>,
    format: TimeFormat,
}

/// Reason for which a packet is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StampRefusal {
    /// The packet is too short.
    Short,
    /// The HMAC is wrong.
    Tag,
    /// The source exceeds its rate limit.
    Rate,
    /// The source is a reflector or a well-known port.
    Port,
}

/// Counts of packets that were not answered, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refusals {
    /// Packets that were too short.
    pub short: u64,
    /// Packets with a wrong HMAC.
    pub tag: u64,
    /// Packets above the rate limit of their source.
    pub rate: u64,
    /// Packets from reflectors or well-known ports.
    pub port: u64,
}

/// State of a reflector.
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

    /// Number of sessions in memory.
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// Octets of memory for sessions and sources.
    #[cfg(test)]
    pub(super) fn memory_bytes(&self) -> usize {
        self.sessions.memory_bytes()
    }

    /// Counts of packets that were not answered so far.
    pub const fn refusals(&self) -> Refusals {
        self.refusals
    }

    /// Turns the request in the first `len` octets of `buffer`, which has room for a base packet,
    /// into its reply. `error` is the error estimate of this host's times; the reply uses the time
    /// format of the request.
    /// # Errors
    /// The reason for which there is no reply; it is counted.
    pub fn prepare(
        &mut self,
        buffer: &mut [u8],
        len: usize,
        arrived: &Arrived,
        error: ErrorEstimate,
        now: MonoTime,
    ) -> Result<Prepared, StampRefusal> {
        let outcome = self.try_prepare(buffer, len, arrived, error, now);
        match outcome {
            Ok(_) => {}
            Err(StampRefusal::Short) => self.refusals.short += 1,
            Err(StampRefusal::Tag) => self.refusals.tag += 1,
            Err(StampRefusal::Rate) => self.refusals.rate += 1,
            Err(StampRefusal::Port) => self.refusals.port += 1,
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
    ) -> Result<Prepared, StampRefusal> {
        if !self.answers_port(arrived) {
            return Err(StampRefusal::Port);
        }
        let authenticated = self.options.key.is_some();
        let base = base_bytes(authenticated);
        let whole = len.max(base);
        let room = buffer.len();
        // Authenticated requests may get a longer reply, because their source is not forged.
        let exact = !authenticated && !self.options.short;
        if exact && len < BYTES_TWAMP_REPLY {
            return Err(StampRefusal::Short);
        }
        let datagram =
            buffer.get_mut(..whole).filter(|_| len <= room).ok_or(StampRefusal::Short)?;
        let request =
            StampRequest::read(authenticated, &datagram[..len]).ok_or(StampRefusal::Short)?;
        if is_reply(authenticated, &datagram[..len], arrived.at_ns) {
            return Err(StampRefusal::Port);
        }
        let per_second = if len < base { SHORT_PER_SECOND_MAX } else { PER_SECOND_MAX };
        if !self.sessions.allow_packet(arrived.source.ip(), per_second, now) {
            return Err(StampRefusal::Rate);
        }
        if self.options.key.as_ref().is_some_and(|key| !key.verifies_packet(datagram)) {
            return Err(StampRefusal::Tag);
        }
        let id =
            SessionId { source: arrived.source, local: arrived.local.ip(), ssid: request.ssid };
        let session = self.sessions.get_or_start(id, request.sequence, now);
        let sequence = if self.options.stateless { request.sequence } else { session.next };
        session.next = session.next.wrapping_add(1);
        session.received = session.received.wrapping_add(1);
        // The time format of the request, which its sender understands.
        let error = ErrorEstimate { format: request.error.format, ..error };
        let facts = TlvAnswerValues { session: *session, arrived, error };
        let key = self.options.key.as_ref();
        let dscp = answer_tlvs(datagram, base, key, &facts);
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

    /// True if replies may be sent to the port of a packet's source.
    const fn answers_port(&self, arrived: &Arrived) -> bool {
        let port = arrived.source.port();
        port != REFLECTOR_PORT
            && port != arrived.local.port()
            && (port >= LOW_PORTS || self.options.low_ports)
    }

    /// Writes T3, and then the HMAC over it.
    pub fn finish(&self, buffer: &mut [u8], prepared: &Prepared, t3_ns: u64) {
        let key = self.options.key.as_ref();
        packet::write_timestamp(key.is_some(), buffer, prepared.format, t3_ns);
        key.iter().for_each(|key| key.sign_packet(buffer));
    }

    /// Notes the kernel's time of departure of a reply, for the next reply of its session.
    pub fn note_departure(&mut self, session: &SessionId, sequence: u32, at_ns: u64) {
        if let Some(session) = self.sessions.find_session(session) {
            session.follow_up = Some((sequence, at_ns));
        }
    }
}

/// True if a packet is the reply of a reflector on any port: where a request has zeros or padding
/// (RFC 8762 §4.2), a reply has T2, a little before its T3. Without this check reflectors on two
/// other ports than 862 would answer each other for ever.
fn is_reply(authenticated: bool, packet: &[u8], near_ns: u64) -> bool {
    let Some(reply) = Reply::read(authenticated, packet) else { return false };
    let time = |octets| reply.error.format.decode(octets, near_ns);
    let times = time(reply.t2).zip(time(reply.t3));
    times.is_some_and(|(t2, t3)| t2 <= t3 && t3 - t2 <= REFLECTS_WITHIN_NS)
}

/// Values with which TLVs are answered.
struct TlvAnswerValues<'a> {
    session: Session,
    arrived: &'a Arrived,
    error: ErrorEstimate,
}

/// Answers the TLVs in place; returns the DSCP requested for the reply, if any.
fn answer_tlvs(
    datagram: &mut [u8],
    base: usize,
    key: Option<&StampKey>,
    facts: &TlvAnswerValues<'_>,
) -> Option<u8> {
    let (head, rest) = datagram.split_at_mut(base);
    if key.is_some_and(|key| !trustworthy(key, &head[..4], rest)) {
        each_tlv(rest, |flags, _, _| *flags |= flags::INTEGRITY);
        return None;
    }
    let mut dscp = None;
    each_tlv(rest, |flags, kind, value| {
        if !kind.allows_length(value.len()) {
            *flags = *flags & !flags::UNKNOWN | flags::MALFORMED;
        } else if answer_tlv(kind, value, key.is_some(), facts, &mut dscp) {
            *flags &= !flags::UNKNOWN;
        } else {
            *flags |= flags::UNKNOWN;
        }
    });
    dscp
}

/// True if the TLVs have the correct HMAC, or are padding only, which needs none in authenticated
/// mode (RFC 8972 §4.8).
fn trustworthy(key: &StampKey, sequence: &[u8], rest: &[u8]) -> bool {
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

/// Calls `change` with flags, type and value of each TLV; a last one whose length does not fit is
/// flagged as malformed.
fn each_tlv(rest: &mut [u8], mut change: impl FnMut(&mut u8, TlvKind, &mut [u8])) {
    let mut at = 0;
    loop {
        let mut walk = Tlvs::new(&rest[at..]);
        let Some(Tlv { kind, value, .. }) = walk.next() else { break };
        // Zeros are the padding of a sender without TLVs (RFC 8762 §4.2).
        if rest[at..].starts_with(&[0; HEADER_BYTES]) {
            return;
        }
        let (len, next) = (value.len(), at + walk.next_offset());
        let (flags, behind) = rest[at..].split_first_mut().expect("a TLV has a header");
        change(flags, kind, &mut behind[HEADER_BYTES - 1..][..len]);
        at = next;
    }
    if rest.len() - at >= HEADER_BYTES {
        rest[at] |= flags::MALFORMED;
    }
}

/// Fills in the value of a TLV; false if its type is not supported.
fn answer_tlv(
    kind: TlvKind,
    value: &mut [u8],
    authenticated: bool,
    facts: &TlvAnswerValues<'_>,
    dscp: &mut Option<u8>,
) -> bool {
    let TlvAnswerValues { session, arrived, error } = facts;
    match kind {
        TlvKind::ExtraPadding => {}
        // The sub-TLVs are returned unchanged, as unknown.
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
