//! A status as bytes written by hand, cut and damaged; requests of a search within their bounds;
//! what a server tells of a search through both machines.

use linerate_core::record::{Finish, SearchPlan, TcpDirections, UdpTest};
use linerate_core::search::{DelayRange, StreamCounts};
use linerate_core::units::BitRate;

use super::*;

fn status() -> UdpStatus {
    UdpStatus {
        tag: 0x1234,
        t_ns: 0x0506_0708_090a,
        number: 7,
        tally: StreamCounts { received: 0x100, next: 0x110, reordered: 2, duplicates: 3 },
        newest: Some(Newest {
            stamp_ns: 0x0102_0304_0506,
            held_ns: 0x4000,
            delay: DelayRange { min_ns: 1, mean_ns: 0x20, max_ns: 0x300 },
        }),
    }
}

/// By the table of spec/udp-throughput.md.
const BYTES: [u8; STATUS_BYTES] = [
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe, // a status
    0x12, 0x34, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, // tag, time
    0, 0, 0, 0, 0, 0, 0, 7, // the seventh
    0, 0, 0, 0, 0, 0, 1, 0, // received
    0, 0, 0, 0, 0, 0, 1, 0x10, // next
    0, 0, 0, 0, 0, 0, 0, 3, // duplicates
    0, 0, 0, 0, 0, 0, 0, 2, // reordered
    0, 0, 1, 2, 3, 4, 5, 6, // stamp
    0, 0, 0, 0, 0, 0, 0x40, 0, // held
    0, 0, 0, 0, 0, 0, 0, 1, // delay: least
    0, 0, 0, 0, 0, 0, 0, 0x20, // mean
    0, 0, 0, 0, 0, 0, 3, 0, // most
];

#[test]
fn a_status_is_the_bytes_of_the_specification_both_ways() {
    assert_eq!(status().to_bytes(), BYTES);
    assert_eq!(UdpStatus::parse(&BYTES), Some(status()));
    let mut none = BYTES;
    none[56..].fill(0xff);
    let quiet = UdpStatus { newest: None, ..status() };
    assert_eq!(quiet.to_bytes(), none);
    assert_eq!(UdpStatus::parse(&none), Some(quiet));
}

#[test]
fn what_is_cut_or_cannot_be_is_no_status() {
    for len in 0..STATUS_BYTES {
        assert_eq!(UdpStatus::parse(&BYTES[..len]), None, "{len} bytes");
    }
    assert_eq!(UdpStatus::parse(&[BYTES.as_slice(), &[0]].concat()), None, "a byte more");
    let changed = |at: usize, value: u8| {
        let mut bytes = BYTES;
        bytes[at] = value;
        UdpStatus::parse(&bytes)
    };
    assert_eq!(changed(7, 0xff), None, "a sign of life");
    assert_eq!(changed(23, 0), None, "statuses count from 1");
    assert_eq!(changed(30, 2), None, "more than numbers");
    assert_eq!(changed(79, 0x21), None, "the least delay above the mean");
    for bit in 0..STATUS_BYTES * 8 {
        let mut damaged = BYTES;
        damaged[bit / 8] ^= 1 << (bit % 8);
        if let Some(status) = UdpStatus::parse(&damaged) {
            assert_eq!(status.to_bytes(), damaged, "bit {bit}");
        }
    }
}

fn request() -> UdpTest {
    UdpTest {
        directions: TcpDirections::Up,
        streams: 1,
        finish: Finish::TimeNs(10_000_000_000),
        omit_ns: 0,
        interval_ns: 1_000_000_000,
        size_bytes: 1472,
        pace: Some(BitRate::from_bits_per_sec(490_000)),
        window_bytes: None,
        dscp: None,
        joined: true,
        taken_singly: false,
        search: Some(SearchPlan::default()),
    }
}

#[test]
fn a_search_is_one_stream_for_a_time_with_statuses_in_each_sub_interval() {
    assert_eq!(request().check(), Ok(()));
    let search = |search| UdpTest { search: Some(search), ..request() };
    let plan = SearchPlan::default;
    let wrong = [
        (UdpTest { streams: 2, ..request() }, "streams of a search"),
        (UdpTest { directions: TcpDirections::Both, ..request() }, "streams of a search"),
        (UdpTest { finish: Finish::Buffers(9), ..request() }, "end of a search"),
        (UdpTest { omit_ns: 1, ..request() }, "omitted span of a search"),
        (UdpTest { interval_ns: 99_000_000, ..request() }, "sub-interval"),
        (UdpTest { interval_ns: 11_000_000_000, ..request() }, "sub-interval"),
        (search(SearchPlan { feedback_ns: 4_999_999, ..plan() }), "feedback interval"),
        (search(SearchPlan { feedback_ns: u64::MAX, ..plan() }), "feedback interval"),
        (search(SearchPlan { delay_low_ns: 0, ..plan() }), "low delay"),
        (search(SearchPlan { delay_high_ns: 1, ..plan() }), "low delay"),
        (search(SearchPlan { congested_after: 0, ..plan() }), "statuses and rows of a search"),
        (search(SearchPlan { fast_rows: 0, ..plan() }), "statuses and rows of a search"),
    ];
    for (request, field) in wrong {
        let error = request.check().expect_err(field);
        assert_eq!(error.field, field, "{error}");
    }
}

#[test]
fn a_request_without_a_search_is_written_as_before_and_read_without_it() {
    let plain = UdpTest { search: None, ..request() };
    let json = linerate_core::tree::to_value(&plain).expect("a request");
    assert!(json.get("search").is_none());
    assert_eq!(linerate_core::tree::from_value::<UdpTest>(json).expect("and back"), plain);
    let json = linerate_core::tree::to_json(&request()).expect("a request");
    assert_eq!(linerate_core::tree::from_json::<UdpTest>(&json).expect("and back"), request());
}
