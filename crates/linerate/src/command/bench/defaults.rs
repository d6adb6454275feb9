//! What the flags of `linerate bench` come to where they leave it open: tests, ports, lengths.

use linerate_core::record::{BenchProtocol, BenchTest};
use linerate_proto::test_frame::{Tag, Tags, TestFrame};

use super::contract::ContractArg;
use super::flags::Args;
use super::mix::MixArg;

/// The tests of RFC 2544 §26 that need nobody at the device, each after the tests whose results it
/// needs.
const TESTS_RFC2544: [BenchTest; 5] = [
    BenchTest::Throughput,
    BenchTest::Latency,
    BenchTest::LossCurve,
    BenchTest::BackToBack,
    BenchTest::Recovery,
];

/// Measurements of a benchmark whose flags name none.
const TESTS: [BenchTest; 3] = [BenchTest::Flood, BenchTest::Throughput, BenchTest::Latency];

/// Lengths of RFC 2544 §9.1, Ethernet.
const SIZES: [u32; 7] = [64, 128, 256, 512, 1024, 1280, 1518];

/// The tests, with that of a contract where there is one.
pub(super) fn tests_to_run(args: &Args) -> Vec<BenchTest> {
    let mut tests = match (args.what.tests.as_slice(), args.what.rfc2544) {
        ([], true) => TESTS_RFC2544.to_vec(),
        ([], false) if args.what.contract.is_some() => Vec::new(),
        ([], false) => TESTS.to_vec(),
        (asked, _) => asked.to_vec(),
    };
    if args.what.contract.is_some() && !tests.contains(&BenchTest::Contract) {
        tests.push(BenchTest::Contract);
    }
    tests
}

/// True when a test needs a third port.
pub(super) fn has_third(args: &Args) -> bool {
    let of_many = [BenchTest::Addresses, BenchTest::Blocking];
    tests_to_run(args).iter().any(|test| of_many.contains(test))
}

/// Ports of a device that is made here.
pub(super) fn port_count(args: &Args) -> usize {
    let usual = match (args.frames.mesh, has_third(args)) {
        (true, _) => 4,
        (false, true) => 3,
        (false, false) => 2,
    };
    args.made.port_count.map_or(usual, usize::from)
}

/// The mix, where one is asked for.
pub(super) fn frame_mix(args: &Args) -> Option<MixArg> {
    let (least, longest) = (shortest(args), 1518 + tag_bytes(args));
    if args.frames.imix { Some(MixArg::imix(least, longest)) } else { args.frames.mix.clone() }
}

/// The lengths. Those that nobody asked for are made long enough for the headers.
pub(super) fn frame_sizes(args: &Args) -> Vec<u32> {
    if !args.frames.sizes.is_empty() {
        return args.frames.sizes.iter().map(|len| len.bytes()).collect();
    }
    // Cells are of one length.
    if let Some(ContractArg::Cells(_, cell)) = &args.what.contract {
        return vec![cell.map_or_else(|| shortest(args), |len| len.bytes())];
    }
    // A tag makes the longest frame longer: 1522 with one (IEEE 802.3 §3.2.7).
    let with_tags = |size: u32| if size == 1518 { size + tag_bytes(args) } else { size };
    SIZES.into_iter().map(|size| with_tags(size).max(shortest(args))).collect()
}

/// Length of the longest frame that is sent.
pub(super) fn longest(args: &Args) -> u32 {
    let mixed = frame_mix(args).and_then(|mix| mix.lengths().max());
    mixed.or_else(|| frame_sizes(args).into_iter().max()).unwrap_or(0)
}

fn shortest(args: &Args) -> u32 {
    shortest_bytes(args.frames.protocol, args.frames.vlan.len())
}

fn tag_bytes(args: &Args) -> u32 {
    4 * u32::try_from(args.frames.vlan.len()).unwrap_or(0)
}

/// The shortest frame with the headers of `protocol` and so many VLAN tags, FCS included.
pub(super) fn shortest_bytes(protocol: BenchProtocol, tags: usize) -> u32 {
    TestFrame::shortest_bytes(protocol.into(), tagged(tags))
}

pub(super) fn longest_bytes(protocol: BenchProtocol, tags: usize) -> u32 {
    TestFrame::longest_bytes(protocol.into(), tagged(tags))
}

const fn tagged(tags: usize) -> Tags {
    match tags {
        0 => Tags::None,
        1 => Tags::Single(Tag::from_id(1)),
        _ => Tags::Double { outer: Tag::from_id(1), inner: Tag::from_id(1) },
    }
}
