//! The pattern as ttcp 1991 makes it, and transfers with lost marks.

use super::*;

#[test]
fn the_pattern_is_every_printable_character_and_begins_anew() {
    let bytes = pattern(200);
    assert_eq!(&bytes[..16], b" !\"#$%&'()*+,-./");
    // 95 printable characters.
    assert_eq!((bytes[94], bytes[95]), (b'~', b' '));
    assert_eq!(bytes.len(), 200);
}

fn run(lengths: &[usize]) -> (TtcpUdpReceiver, Vec<TtcpDatagram>) {
    let mut receiver = TtcpUdpReceiver::default();
    let seen = lengths.iter().map(|length| receiver.count_datagram(*length)).collect();
    (receiver, seen)
}

#[test]
fn a_transfer_is_what_lies_between_the_first_two_marks() {
    use TtcpDatagram::{Begin, Data, End, Late};
    let (receiver, seen) = run(&[4, 1024, 1024, 4, 4, 4, 4, 4]);
    assert_eq!(seen, [Begin, Data(1024), Data(1024), End, Late, Late, Late, Late]);
    assert_eq!((receiver.datagrams, receiver.bytes), (2, 2048));
}

#[test]
fn a_lost_begin_leaves_the_data_and_the_end() {
    use TtcpDatagram::{Data, End, Late};
    assert_eq!(run(&[1024, 4, 4]).1, [Data(1024), End, Late]);
}

#[test]
fn marks_of_any_length_up_to_four_count_and_an_empty_datagram_is_one() {
    use TtcpDatagram::{Begin, Data, End};
    assert_eq!(run(&[0, 5, 1]).1, [Begin, Data(5), End]);
}

#[test]
fn recorded_peers_send_the_pattern_and_are_no_clients_of_iperf() {
    let tcp = include_bytes!("../../../../testdata/ttcp/tcp.bin");
    let buffer = pattern(200);
    for sent in tcp.chunks(200) {
        // nuttcp keeps a count of its own at 24.
        assert_eq!((&sent[..24], &sent[32..]), (&buffer[..24], &buffer[32..]));
    }
    let pcattcp = include_bytes!("../../../../testdata/ttcp/pcattcp.bin");
    for bytes in [tcp.as_slice(), pcattcp] {
        assert_eq!(crate::iperf2::opening(bytes), Ok(crate::iperf2::Opening::Plain));
    }
}

#[test]
fn datagrams_of_a_file_are_a_transfer() {
    let mut bytes = include_bytes!("../../../../testdata/ttcp/udp.bin").as_slice();
    let (mut receiver, mut seen) = (TtcpUdpReceiver::default(), Vec::new());
    while let Some((length, rest)) = bytes.split_first_chunk::<2>() {
        let (datagram, rest) = rest.split_at(u16::from_be_bytes(*length).into());
        seen.push(receiver.count_datagram(datagram.len()));
        bytes = rest;
    }
    use TtcpDatagram::{Begin, Data, End, Late};
    let data = Data(64);
    assert_eq!(seen, [Begin, data, data, data, End, Late, Late, Late, Late]);
    assert_eq!((receiver.datagrams, receiver.bytes), (3, 192));
}
