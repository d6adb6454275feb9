//! Any bytes as an error message of ICMP: no panic, parts that lie within the message, and labels
//! of no more bits than they have.

use linerate_core::record::IpFamily;
use linerate_proto::icmp_error::{IcmpError, ProbeMark, Quote, labels};

/// Runs the entry.
pub(crate) fn run(bytes: &[u8]) {
    for label in labels(bytes) {
        assert!(label.label < 1 << 20 && label.traffic_class < 8);
    }
    for family in [IpFamily::V4, IpFamily::V6] {
        let Some(error) = IcmpError::parse(family, bytes) else { continue };
        assert!(error.original.len() + error.extension.len() <= bytes.len() - 8);
        let Some(quote) = Quote::parse(family, error.original) else { continue };
        assert!(quote.transport.len() < error.original.len());
        assert!(quote.dscp < 64 && quote.ecn < 4);
        assert!(quote.quoted_ports().is_none() || quote.quoted_echo().is_none());
        if let Some(mark) = ProbeMark::read(quote.udp_payload()) {
            assert_eq!(ProbeMark::read(&mark.octets()), Some(mark));
        }
    }
}
