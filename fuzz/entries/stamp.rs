//! Any bytes as a request to a reflector of STAMP and as a reply to its sender: no panic, a reply
//! no longer than its request (but for the base packet), numbers and times that survive.

use std::net::SocketAddr;

use linerate_core::time::MonoTime;
use linerate_proto::stamp::{
    Arrived, BYTES_AUTHENTICATED, BYTES_OPEN, ErrorEstimate, ProbeOptions, Reflector,
    ReflectorOptions, Reply, StampKey, StampProbe, TimeFormat, Tlvs,
};

const NOW: MonoTime = MonoTime::from_nanos(1_000_000_000);
const TIME_NS: u64 = 1_700_000_000_123_456_789;

/// Runs the entry.
pub(crate) fn run(bytes: &[u8]) {
    let walked: usize = Tlvs::new(bytes).map(|tlv| 4 + tlv.value.len()).sum();
    assert!(walked <= bytes.len());
    for key in [None, StampKey::from_hex("000102030405060708090a0b0c0d0e0f")] {
        request(bytes, key.clone());
        reply(bytes, key);
    }
    if let Some(octets) = bytes.first_chunk() {
        for format in [TimeFormat::Ntp, TimeFormat::Ptp] {
            // A nanosecond is more than one step of NTP's fraction, so times survive.
            if let Some(time_ns) = format.decode(*octets, TIME_NS) {
                let again = format.decode(format.encode(time_ns), TIME_NS);
                assert!(again == Some(time_ns) || format.encode(time_ns) == [0; 8]);
            }
        }
    }
    if let Some(octets) = bytes.first_chunk() {
        let estimate = ErrorEstimate::read(*octets);
        assert_eq!(estimate.octets(), *octets);
    }
}

/// Longest payload of UDP over IPv4.
const BYTES_MAX: usize = 65_507;
/// RFC 5357 section 4.2.1: shorter open requests get no answer.
const BYTES_TWAMP_REPLY: usize = 41;

fn request(bytes: &[u8], key: Option<StampKey>) {
    let signed = key.is_some();
    let base = if signed { BYTES_AUTHENTICATED } else { BYTES_OPEN };
    let (stateless, short) = (bytes.len().is_multiple_of(2), bytes.len().is_multiple_of(3));
    let mut reflector =
        Reflector::new(ReflectorOptions { key, stateless, short, low_ports: false });
    let arrived = Arrived {
        source: SocketAddr::from(([192, 0, 2, 1], 5000)),
        local: SocketAddr::from(([192, 0, 2, 2], 862)),
        at_ns: TIME_NS,
        ttl: Some(64),
        tos: None,
        by_ptp: false,
    };
    let mut buffer = bytes.to_vec();
    buffer.resize(bytes.len().max(BYTES_AUTHENTICATED), 0);
    let error = ErrorEstimate::from_error_ns(1_000, true, TimeFormat::Ntp);
    for round in 0..2 {
        let Ok(prepared) = reflector.prepare(&mut buffer, bytes.len(), &arrived, error, NOW) else {
            return;
        };
        let least = if signed || short { base } else { BYTES_TWAMP_REPLY };
        assert_eq!(prepared.len, bytes.len().max(least));
        reflector.finish(&mut buffer, &prepared, TIME_NS + round);
        let reply = Reply::read(signed, &buffer[..prepared.len]).expect("a whole reply");
        assert_eq!(reply.ttl, Some(64));
        reflector.note_departure(&prepared.session, prepared.sequence, TIME_NS);
        buffer[..bytes.len()].copy_from_slice(bytes);
    }
}

fn reply(bytes: &[u8], key: Option<StampKey>) {
    let usual = StampProbe::usual_bytes(key.is_some());
    for size in [usual, (usual + bytes.len()).min(BYTES_MAX)] {
        let options = ProbeOptions { bytes: size, key: key.clone(), ..ProbeOptions::default() };
        let mut probe = StampProbe::new(options).expect("room for the base");
        assert_eq!(probe.request(7, TIME_NS).len(), size);
        if let Some((sequence, _)) = probe.answered(bytes, 7, TIME_NS) {
            assert!(sequence <= 7);
        }
    }
}
