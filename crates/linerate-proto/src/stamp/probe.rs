//! The sender's side: the packet of a session, built once and updated for each probe, and the
//! parsing of replies.

use super::packet::{self, Reply, StampKey, StampRequest, base_bytes};
use super::time::ErrorEstimate;
use super::tlv::{HEADER_BYTES, TlvKind, Tlvs, flags, push};

/// Octets of the longest UDP payload over IPv4 (65,535 minus both headers; RFC 768, RFC 791).
const BYTES_MAX: usize = 65_507;

/// Parameters of a session's packets.
#[derive(Clone, Debug, Default)]
pub struct ProbeOptions {
    /// Octets of the datagram.
    pub bytes: usize,
    /// Session identifier.
    pub ssid: u16,
    /// Key of authenticated mode; `None` for open mode.
    pub key: Option<StampKey>,
    /// Error estimate of T1.
    pub error: ErrorEstimate,
    /// Sequence number of the first probe on the wire.
    pub first_sequence: u32,
    /// DSCP requested for replies, with which the reflector also reports the DSCP on arrival.
    pub reply_dscp: Option<u8>,
}

/// Packet of one session.
#[derive(Clone, Debug)]
pub struct StampProbe {
    options: ProbeOptions,
    datagram: Vec<u8>,
}

/// Times and facts in a reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reflected {
    /// T1, as the reply repeats it.
    pub t1_ns: Option<u64>,
    /// T2: arrival of the probe, by the reflector's clock.
    pub t2_ns: Option<u64>,
    /// T3: time just before the reply was sent, by the reflector's clock.
    pub t3_ns: Option<u64>,
    /// Sequence number of the reply.
    pub reply_sequence: u32,
    /// The reflector states that its clock is synchronised (S bit of the error estimate).
    pub synchronised: bool,
    /// Error of T2 and T3 by the reflector's estimate.
    pub error_ns: Option<u64>,
    /// Time to live of the probe on arrival.
    pub ttl: Option<u8>,
    /// Follow-up telemetry: sequence of an earlier reply, and the time at which it left.
    pub follow_up: Option<(u32, u64)>,
    /// DSCP of the probe on arrival, where requested.
    pub dscp: Option<u8>,
}

impl StampProbe {
    /// Octets of a packet with all extensions that improve the results.
    pub const fn usual_bytes(authenticated: bool) -> usize {
        base_bytes(authenticated) + extensions_bytes(authenticated)
    }

    /// Octets of a packet without any extension.
    pub const fn least_bytes(authenticated: bool) -> usize {
        base_bytes(authenticated)
    }

    /// Builds the packet of a session, without the extensions that do not fit. `None` where the
    /// base packet does not fit.
    pub fn new(options: ProbeOptions) -> Option<Self> {
        let authenticated = options.key.is_some();
        let base = base_bytes(authenticated);
        let room = options.bytes.checked_sub(base).filter(|_| options.bytes <= BYTES_MAX)?;
        let mut datagram = vec![0; base];
        let first = StampRequest {
            sequence: options.first_sequence,
            t1: [0; 8],
            error: options.error,
            ssid: options.ssid,
        };
        first.write(authenticated, &mut datagram);
        let mut extensions = extensions(&options);
        let fits = |octets: usize| room.checked_sub(octets).is_some_and(|r| r == 0 || r >= 4);
        // The HMAC TLV is the last but for the padding (RFC 8972 §4.8).
        let tagged = authenticated.then_some((TlvKind::Hmac, vec![0; 16]));
        while !extensions.is_empty() && !fits(octets(&extensions) + octets(tagged.as_slice())) {
            extensions.pop();
        }
        let tagged = tagged.filter(|_| !extensions.is_empty());
        for (kind, value) in extensions.iter().chain(tagged.as_slice()) {
            push(&mut datagram, *kind, value);
        }
        match (options.bytes - datagram.len()).checked_sub(HEADER_BYTES) {
            Some(padding) => push(&mut datagram, TlvKind::ExtraPadding, &vec![0; padding]),
            // Too little for a TLV: zero octets without a meaning.
            None => datagram.resize(options.bytes, 0),
        }
        Some(Self { options, datagram })
    }

    const fn authenticated(&self) -> bool {
        self.options.key.is_some()
    }

    /// The datagram of probe `sequence`, sent at `t1_ns`. The HMAC takes some µs between T1 and the
    /// wire.
    pub fn request(&mut self, sequence: u64, t1_ns: u64) -> &[u8] {
        let authenticated = self.authenticated();
        let on_wire = self.options.first_sequence.wrapping_add(sequence as u32);
        packet::write_sequence(&mut self.datagram, on_wire);
        if let Some(key) = &self.options.key {
            sign_extensions(key, &mut self.datagram);
            packet::write_timestamp(
                authenticated,
                &mut self.datagram,
                self.options.error.format,
                t1_ns,
            );
            key.sign_packet(&mut self.datagram);
        } else {
            packet::write_timestamp(
                authenticated,
                &mut self.datagram,
                self.options.error.format,
                t1_ns,
            );
        }
        &self.datagram
    }

    /// Sequence of the probe that `datagram` answers, and the reply's content; `None` when it is no
    /// reply of this session or its HMAC is wrong. `newest` is the last probe sent, `now_ns` the
    /// time.
    pub fn answered(&self, datagram: &[u8], newest: u64, now_ns: u64) -> Option<(u64, Reflected)> {
        let authenticated = self.authenticated();
        let reply = Reply::read(authenticated, datagram)?;
        if self.options.key.as_ref().is_some_and(|key| !key.verifies_packet(datagram)) {
            return None;
        }
        // Reflectors without support for identifiers send 0 (RFC 8972 §3).
        if reply.ssid != self.options.ssid && reply.ssid != 0 {
            return None;
        }
        let low = reply.request.sequence.wrapping_sub(self.options.first_sequence);
        let back = (newest as u32).wrapping_sub(low);
        let sequence = newest.checked_sub(u64::from(back))?;
        let format = reply.error.format;
        let mut told = Reflected {
            t1_ns: self.options.error.format.decode(reply.request.t1, now_ns),
            t2_ns: format.decode(reply.t2, now_ns),
            t3_ns: format.decode(reply.t3, now_ns),
            reply_sequence: reply.sequence,
            synchronised: reply.error.synchronised,
            error_ns: reply.error.error_ns(),
            ttl: reply.ttl,
            follow_up: None,
            dscp: None,
        };
        let decode = |octets| format.decode(octets, now_ns);
        self.read_extensions(datagram, decode, &mut told);
        Some((sequence, told))
    }

    fn read_extensions(
        &self,
        datagram: &[u8],
        decode: impl Fn([u8; 8]) -> Option<u64>,
        told: &mut Reflected,
    ) {
        let Some(rest) = datagram.get(base_bytes(self.authenticated())..) else { return };
        let known = |flags: u8| flags & (flags::UNKNOWN | flags::MALFORMED | flags::INTEGRITY) == 0;
        for tlv in Tlvs::new(rest)
            .filter(|tlv| known(tlv.flags) && tlv.kind.allows_length(tlv.value.len()))
        {
            match (tlv.kind, tlv.value) {
                (TlvKind::FollowUp, value) => {
                    let Some((number, rest)) = value.split_first_chunk() else { continue };
                    let at = rest.first_chunk().and_then(|time| decode(*time));
                    told.follow_up = at.map(|at| (u32::from_be_bytes(*number), at));
                }
                (TlvKind::ClassOfService, [high, low, ..]) => {
                    told.dscp = Some((high & 3) << 4 | low >> 4);
                }
                _ => {}
            }
        }
    }
}

const fn extensions_bytes(authenticated: bool) -> usize {
    let follow_up_and_information = 2 * HEADER_BYTES + 16 + 4;
    follow_up_and_information + if authenticated { HEADER_BYTES + 16 } else { 0 }
}

fn octets(extensions: &[(TlvKind, Vec<u8>)]) -> usize {
    extensions.iter().map(|(_, value)| HEADER_BYTES + value.len()).sum()
}

/// Extensions of a packet, the most useful first.
fn extensions(options: &ProbeOptions) -> Vec<(TlvKind, Vec<u8>)> {
    let service = options.reply_dscp.map(|dscp| vec![dscp << 2, 0, 0, 0]);
    let service = service.map(|value| (TlvKind::ClassOfService, value));
    [
        Some((TlvKind::FollowUp, vec![0; 16])),
        service,
        Some((TlvKind::TimestampInformation, vec![0; 4])),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Writes the HMAC of the TLVs, over the sequence number and the TLVs before it.
pub(super) fn sign_extensions(key: &StampKey, datagram: &mut [u8]) {
    let base = base_bytes(true);
    let Some(rest) = datagram.get(base..) else { return };
    let Some(tlv) = Tlvs::new(rest).find(|tlv| tlv.kind == TlvKind::Hmac) else { return };
    if tlv.value.len() != packet::HMAC_BYTES {
        return;
    }
    let at = base + tlv.at;
    let tag = key.hmac_tag(&[&datagram[..4], &datagram[base..at]]);
    datagram[at + HEADER_BYTES..][..packet::HMAC_BYTES].copy_from_slice(&tag);
}
