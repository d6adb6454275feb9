//! Any lengths as datagrams of ttcp: no panic, one begin and one end, and all data counted.

use linerate_proto::ttcp::{MARK_BYTES, TtcpDatagram, TtcpUdpReceiver};

/// Runs the entry.
pub(crate) fn run(bytes: &[u8]) {
    let (mut receiver, mut begins, mut ends) = (TtcpUdpReceiver::default(), 0, 0);
    let (mut datagrams, mut sum) = (0, 0);
    for length in
        bytes.chunks(2).map(|two| two.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)))
    {
        match receiver.count_datagram(length) {
            TtcpDatagram::Begin => begins += 1,
            TtcpDatagram::End => ends += 1,
            TtcpDatagram::Data(bytes) => {
                assert!(bytes == length && length > MARK_BYTES);
                (datagrams, sum) = (datagrams + 1, sum + bytes as u64);
            }
            TtcpDatagram::Late => assert_eq!(ends, 1),
        }
    }
    assert!(begins <= 1 && ends <= 1);
    assert_eq!((receiver.datagrams, receiver.bytes), (datagrams, sum));
}
