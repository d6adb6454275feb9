//! Any bytes as what iperf 2 or ttcp sends: no panic, headers within their length that survive
//! being written again, datagrams that never count more than came, reports that come back the same.

use linerate_core::time::MonoTime;
use linerate_proto::iperf2::{
    Bounce, HEADER_BYTES_MAX, Iperf2Answer, Iperf2DatagramLayout, Opening, Stamp, UdpDatagramKind,
    UdpOpening, UdpReceiver, UdpReport, UdpTally, answered_cookie, cookie, cookie_answer, opening,
    put_cookie,
};
use linerate_proto::ttcp;

/// Runs the entry.
pub(crate) fn run(bytes: &[u8]) {
    match opening(bytes) {
        Ok(Opening::Needs(length)) => {
            assert!(length > bytes.len() && length <= HEADER_BYTES_MAX);
        }
        Ok(Opening::Header(header)) => {
            assert!(header.length <= bytes.len());
            let again = opening(&header.to_bytes()).expect("its own header");
            let Opening::Header(again) = again else { panic!("{again:?}") };
            assert_eq!((again.mode, again.threads), (header.mode, header.threads));
        }
        Ok(Opening::Bounce(bounce)) => assert_eq!(Bounce::parse(bytes), Some(bounce)),
        Ok(Opening::Plain) => {}
        Err(error) => assert!(!error.to_string().contains('\n')),
    }
    if let Some(answer) = Iperf2Answer::parse(bytes) {
        assert_eq!(Iperf2Answer::parse(&answer.to_bytes()), Some(answer));
    }
    if let Some(report) = UdpReport::parse(bytes) {
        assert_eq!(UdpReport::parse(&report.to_bytes(Iperf2DatagramLayout::Wide)), Some(report));
    }
    if let Some(number) = cookie(bytes) {
        let mut again = bytes.to_vec();
        put_cookie(&mut again, number);
        assert_eq!(again, bytes);
        assert_eq!(answered_cookie(&cookie_answer(number)), Some(number));
    }
    let _ = answered_cookie(bytes);
    datagrams(bytes);
    tallied(bytes);
}

/// The bytes as datagrams of one sender: never more answered than came.
fn tallied(bytes: &[u8]) {
    let length = bytes.last().map_or(1, |last| usize::from(*last).max(1));
    let _ = UdpOpening::asks_to_receive(bytes);
    if let Some(mut opening) = UdpOpening::from_first_datagram(bytes) {
        for datagram in bytes.chunks(length) {
            let _ = opening.add_datagram(datagram);
        }
    }
    let mut tally =
        UdpTally::from_first_datagram(&bytes[..length.min(bytes.len())], MonoTime::from_nanos(0));
    let (mut came, mut answered) = (0, 0);
    for (datagram, us) in bytes.chunks(length).zip(0_u64..) {
        came += datagram.len() as u64;
        let answer = tally.count_datagram(datagram, MonoTime::from_nanos(us * 1000), us);
        answered += answer.map_or(0, |answer| answer.len() as u64);
        assert!(answered <= came);
    }
    assert_eq!(tally.arrivals(MonoTime::from_nanos(1 << 40)).bytes, came);
    let _ = (tally.header(), tally.counted());
}

/// The bytes as datagrams of several lengths, one after the other.
fn datagrams(bytes: &[u8]) {
    let length = usize::from(bytes.first().copied().unwrap_or(0)).max(1);
    let _ = Iperf2DatagramLayout::from_first_datagram(bytes);
    let (mut receiver, mut old) = (UdpReceiver::default(), ttcp::TtcpUdpReceiver::default());
    let (mut came, mut ended) = (0, false);
    for (datagram, now_us) in bytes.chunks(length).zip(0_u64..) {
        let taken = receiver.count_datagram(datagram, datagram.len(), now_us * 1000);
        assert!(!ended || receiver.has_ended());
        ended |= taken == UdpDatagramKind::End;
        came += datagram.len() as u64;
        old.count_datagram(datagram.len());
        if let Some(stamp) =
            Stamp::parse(datagram, Iperf2DatagramLayout::Wide).filter(|_| datagram.len() >= 16)
        {
            let mut again = datagram.to_vec();
            stamp.write(&mut again);
            assert_eq!(Stamp::parse(&again, Iperf2DatagramLayout::Wide), Some(stamp));
        }
    }
    assert!(receiver.counts().bytes <= came && old.bytes <= came);
    assert!(UdpReport::parse(&receiver.report()).is_some());
}
