//! Any bytes as what a page sends of a round of numbered datagrams: no panic, rounds within their
//! bounds, reports no larger than their bytes, and all of them the same when written again.

use linerate_proto::datagrams::{Datagram, DatagramRoundRequest, REPORT_BYTES_MAX, Report};

/// Runs the entry.
pub(crate) fn run(bytes: &[u8]) {
    if let Some(datagram) = Datagram::parse(bytes) {
        assert_eq!(Datagram::parse(&datagram.padded_bytes(bytes.len())), Some(datagram));
    }
    if let Some(octets) = bytes.first_chunk() {
        match DatagramRoundRequest::parse(octets) {
            Ok(ask) => {
                assert_eq!(DatagramRoundRequest::parse(&ask.wire_bytes()), Ok(ask));
                let span_us = u64::from(ask.count) * u64::from(ask.interval_us);
                assert!((16..=1000).contains(&ask.bytes) && span_us <= 3_000_000_000);
            }
            Err(error) => assert!(!error.to_string().contains('\n')),
        }
    }
    for asked in [0, 1, 3000] {
        match Report::parse(bytes, asked) {
            Ok(report) => {
                assert!(report.sent <= asked && bytes.len() <= REPORT_BYTES_MAX);
                assert_eq!(report.wire_bytes(), bytes);
            }
            Err(error) => assert!(!error.to_string().contains('\n')),
        }
    }
}
