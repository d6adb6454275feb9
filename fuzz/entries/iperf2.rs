//! Any bytes as what iperf 2 or ttcp sends: no panic, headers within their length that survive
//! being written again, datagrams that never count more than came, reports that come back the same.

use linerate_proto::iperf2::{
    Answer, Bounce, HEADER_BYTES_MAX, Layout, Opening, Stamp, UdpReceiver, UdpReport, UdpTaken,
    opening,
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
    if let Some(answer) = Answer::parse(bytes) {
        assert_eq!(Answer::parse(&answer.to_bytes()), Some(answer));
    }
    if let Some(report) = UdpReport::parse(bytes) {
        assert_eq!(UdpReport::parse(&report.to_bytes(Layout::Wide)), Some(report));
    }
    datagrams(bytes);
}

/// The bytes as datagrams of several lengths, one after the other.
fn datagrams(bytes: &[u8]) {
    let length = usize::from(bytes.first().copied().unwrap_or(0)).max(1);
    let (mut receiver, mut old) = (UdpReceiver::default(), ttcp::UdpReceiver::default());
    let (mut came, mut ended) = (0, false);
    for (datagram, now_us) in bytes.chunks(length).zip(0_u64..) {
        let taken = receiver.take(datagram, datagram.len(), now_us * 1000);
        assert!(!ended || receiver.ended());
        ended |= taken == UdpTaken::End;
        came += datagram.len() as u64;
        old.take(datagram.len());
        if let Some(stamp) = Stamp::parse(datagram, Layout::Wide).filter(|_| datagram.len() >= 16) {
            let mut again = datagram.to_vec();
            stamp.write(&mut again);
            assert_eq!(Stamp::parse(&again, Layout::Wide), Some(stamp));
        }
    }
    assert!(receiver.counts().bytes <= came && old.bytes <= came);
    assert!(UdpReport::parse(&receiver.report()).is_some());
}
