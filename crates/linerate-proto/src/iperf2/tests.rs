//! Headers as real clients sent them, cut at every length, with flipped bits; what is no header.

use super::*;

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| {
        u8::from_str_radix(std::str::from_utf8(pair).expect("ASCII"), 16).expect("two digits")
    };
    digits.chunks(2).map(byte).collect()
}

/// The extension of 2.1.8 with these upper flags (recorded).
fn extension(upper: &str) -> String {
    format!("0000000000000000 {upper}0000 0002000100080003 0000000000000000000000000000 0000")
}

/// Headers recorded from `iperf -c` of Debian's iperf 2.1.8, by its flags.
fn recorded() -> Vec<(&'static str, String, Mode, Iperf2Amount)> {
    let second = Iperf2Amount::Centiseconds(100);
    let of = |first: &str, upper| format!("{first}{}", extension(upper));
    vec![
        (
            "-t 1",
            of("40010078 00000001 0000a059 00000000 00000000 ffffff9c", "0000"),
            Mode::Forward,
            second,
        ),
        (
            "-n 50000 -l 20000",
            of("40010078 00000001 0000a737 00004e20 00000000 0000c350", "0000"),
            Mode::Forward,
            Iperf2Amount::Bytes(50_000),
        ),
        (
            "-R -t 1",
            of("44010078 00000001 000093ef 00000000 00000000 ffffff9c", "0400"),
            Mode::Reverse,
            second,
        ),
        (
            "--full-duplex -t 1",
            of("44010078 00000001 00008649 00000000 00000000 ffffff9c", "0800"),
            Mode::FullDuplex,
            second,
        ),
        (
            "-d -t 1",
            of("c0010079 00000001 00009963 00000000 00000000 ffffff9c", "0000"),
            Mode::Dual,
            second,
        ),
        (
            "-r -t 1",
            of("c0010078 00000001 0000b0c5 00000000 00000000 ffffff9c", "0000"),
            Mode::TradeOff,
            second,
        ),
    ]
}

fn header(bytes: &[u8]) -> ClientHeader {
    match opening(bytes) {
        Ok(Opening::Header(header)) => header,
        other => panic!("{other:?}"),
    }
}

#[test]
fn recorded_headers_are_read_and_written_to_the_byte() {
    for (flags, hex, mode, amount) in recorded() {
        let wire = bytes(&hex);
        assert_eq!(wire.len(), 60, "{flags}");
        let read = header(&wire);
        assert_eq!((read.mode, read.amount, read.threads), (mode, amount, 1), "{flags}");
        assert_eq!(read.version.map(|version| version.to_string()).as_deref(), Some("2.1.8"));
        let asks = matches!(mode, Mode::Forward | Mode::Dual | Mode::TradeOff);
        assert_eq!(read.wants_answer, asks, "{flags}");
        assert_eq!(read.to_bytes().as_slice(), wire, "{flags}");
    }
}

#[test]
fn a_header_of_2_2_1_is_longer_and_read_all_the_same() {
    // As sent by iperf 2.2.1: -t 1 -b 2M -l 20000; 64 bytes by its length field.
    let first = "40010080 00000001 0000176f 00004e20 00000000 ffffff9c";
    let mut wire = bytes(first);
    wire.extend(bytes("0000000000000000 00000000 0002000200010001"));
    wire.resize(64, 0);
    let read = header(&wire);
    assert_eq!((read.length, read.buffer_bytes, read.listen_port), (64, 20_000, 5999));
    assert_eq!(read.version.map(|version| version.to_string()).as_deref(), Some("2.2.1"));
    assert_eq!(opening(&wire[..63]), Ok(Opening::Needs(64)));
}

#[test]
fn a_header_of_the_first_form_has_24_bytes_and_asks_for_no_answer() {
    // iperf 2.0.5 -d: port 5001 is 0x1389, 10 s are -1000 hundredths.
    let wire = bytes("80000001 00000001 00001389 00000000 00000000 fffffc18");
    let read = header(&wire);
    assert_eq!((read.mode, read.amount), (Mode::Dual, Iperf2Amount::Centiseconds(1000)));
    assert_eq!((read.listen_port, read.version, read.length), (5001, None, 24));
    assert!(!read.wants_answer);
}

#[test]
fn what_others_begin_with_is_plain() {
    let ttcp = b" !\"#$%&'()*+,-./0123456789";
    let cases: [&[u8]; 6] =
        [ttcp, b"PCAUSA PCATTCP Pattern", b"0123456789", &[0; 64], b"GET / HTTP/1.1\r\n", b"HELO"];
    for wire in cases {
        assert_eq!(opening(wire), Ok(Opening::Plain), "{}", wire.escape_ascii());
    }
}

#[test]
fn a_header_cut_at_any_length_asks_for_the_rest() {
    let (_, hex, ..) = &recorded()[0];
    let wire = bytes(hex);
    for cut in 0..wire.len() {
        let needs = if cut < 4 { 4 } else { 60 };
        assert_eq!(opening(&wire[..cut]), Ok(Opening::Needs(needs)), "cut at {cut}");
    }
}

#[test]
fn flipped_bits_never_panic_and_never_ask_for_more_than_the_longest_header() {
    for (_, hex, ..) in recorded() {
        let wire = bytes(&hex);
        for bit in 0..wire.len() * 8 {
            let mut damaged = wire.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            if let Ok(Opening::Needs(length)) = opening(&damaged) {
                assert!(length <= HEADER_BYTES_MAX, "bit {bit}: {length}");
            }
        }
    }
}

#[test]
fn a_header_too_short_for_its_flags_or_without_a_port_to_connect_to_is_an_error() {
    // 40 bytes cannot hold the extension.
    let wire = bytes("40010050 00000001 0000a059 00000000 00000000 ffffff9c");
    assert_eq!(opening(&wire), Err(HeaderError::Length(40, 60)));
    let wire = bytes("80000001 00000001 00010000 00000000 00000000 fffffc18");
    assert_eq!(opening(&wire), Err(HeaderError::Port(65_536)));
    let wire = bytes("80000000 00000001 00000000 00000000 00000000 fffffc18");
    assert_eq!(opening(&wire), Err(HeaderError::Port(0)));
}

#[test]
fn an_amount_keeps_its_unit_at_the_ends_of_its_range() {
    for amount in
        [Iperf2Amount::Bytes(0), Iperf2Amount::Bytes(0x7fff_ffff), Iperf2Amount::Centiseconds(1)]
    {
        let wire = ClientHeader::new(Mode::Forward, amount).to_bytes();
        assert_eq!(header(&wire).amount, amount);
    }
    let longest = Iperf2Amount::Centiseconds(1 << 31);
    let wire = ClientHeader::new(Mode::Forward, longest).to_bytes();
    assert_eq!(header(&wire).amount, longest);
}

/// What `iperf -s` of 2.1.8 answers (recorded).
const ANSWER: &str = "00000002 0000001c 00000000 00020001 00080003 00000000 00000000";

#[test]
fn the_recorded_answer_is_read_and_written_to_the_byte() {
    let wire = bytes(ANSWER);
    let answer = Iperf2Answer::parse(&wire).expect("an answer");
    assert_eq!(answer.version, WIRE_VERSION);
    assert_eq!(answer.to_bytes().as_slice(), wire);
    for cut in 0..wire.len() {
        assert_eq!(Iperf2Answer::parse(&wire[..cut]), None, "cut at {cut}");
    }
    assert_eq!(Iperf2Answer::parse(&[0xff; 64]), None);
}
