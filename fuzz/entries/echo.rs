//! Any bytes as what comes back to a probe of ping or trace, and as a question to the UDP echo: no
//! panic, fields that survive being written again, and no answer that is a question.

use std::net::IpAddr;

use linerate_core::record::IpFamily;
use linerate_proto::echo::{
    IcmpProbe, Marks, PeerTimes, SynProbe, UDP_ECHO_BYTES_MIN, UDP_ECHO_CLASSES_BYTES, UdpProbe,
    answer_in_place, class_asked, class_of_question, read_answer, write_class,
};
use linerate_proto::frame::checksum;
use linerate_proto::frame::icmp::{Echo, reason};

/// Runs the entry.
pub(crate) fn run(bytes: &[u8]) {
    udp(bytes);
    icmp(bytes);
    // A segment from the end of a trace.
    for low in [0, 15] {
        let _ = SynProbe::new(low).answered(bytes);
    }
    if let Some(marks) = Marks::read(bytes) {
        assert!(bytes.starts_with(&marks.octets()));
    }
    if let Some(word) = bytes.first_chunk() {
        let _ = SynProbe::new(7).quoted(u32::from_be_bytes(*word));
    }
}

fn udp(bytes: &[u8]) {
    let mut question = bytes.to_vec();
    if answer_in_place(&mut question) {
        assert_eq!((question.len(), read_answer(bytes)), (bytes.len(), None));
        let answer = read_answer(&question).expect("an answer");
        assert!(!answer_in_place(&mut question));
        let mut probe = UdpProbe::new(bytes.len(), answer.cookie).expect("no shorter than it is");
        let _ = probe.request(answer.sequence, 1);
        assert_eq!(probe.answered(&question), Some(answer.sequence));
        assert_eq!(probe.answered(bytes), None);
    }
    if let Some(class) = class_asked(bytes) {
        assert!(PeerTimes::are_requested(bytes) && bytes.len() >= UDP_ECHO_CLASSES_BYTES);
        write_class(&mut question, class);
        assert_eq!(class_of_question(&question), Some(class));
    }
    if let Some(times) = PeerTimes::from_answer(bytes) {
        times.write(&mut question);
        assert_eq!(PeerTimes::from_answer(&question), Some(times));
    }
    assert!(bytes.len() >= UDP_ECHO_BYTES_MIN || read_answer(bytes).is_none());
}

fn icmp(bytes: &[u8]) {
    let _ = checksum::verifies(bytes);
    for (family, address) in [(IpFamily::V4, "192.0.2.1"), (IpFamily::V6, "2001:db8::1")] {
        if let [kind, code, ..] = bytes {
            assert!(!reason(family, *kind, *code).is_empty());
        }
        let Some(echo) = Echo::parse_reply(family, bytes) else { continue };
        assert_eq!(echo.data.len() + 8, bytes.len());
        let address: IpAddr = address.parse().expect("an address");
        for cookie in [0, 0x0102_0304_0506_0708] {
            let probe = IcmpProbe::new(family, Some(echo.identifier), echo.data.len(), cookie);
            let past = probe.clone().past_the_kernel(address, address);
            for newest in [0, u64::from(echo.sequence), u64::MAX] {
                let _ = (probe.answered(bytes, newest), past.answered(bytes, newest));
            }
        }
    }
}
