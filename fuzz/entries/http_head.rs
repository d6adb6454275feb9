//! Any bytes as the head of a request of HTTP/1, whole and growing: no panic, a head that lies
//! within them and is the same however it comes, targets within bounds.

use linerate_proto::http::{
    HEAD_BYTES_MAX, Head, HeadError, LoadTarget, NDT7_PROTOCOL, Start, THROUGHPUT1_PROTOCOL,
    VISITOR_BYTES_MAX, VisitorRequest, VisitorTarget, start_of, switching,
};

/// Runs the entry.
pub(crate) fn run(bytes: &[u8]) {
    let parsed = Head::parse(bytes);
    match &parsed {
        Ok(Some(head)) => {
            assert!(head.head_bytes <= bytes.len().min(HEAD_BYTES_MAX));
            assert!(bytes[..head.head_bytes].ends_with(b"\n"));
            assert_eq!(Head::parse(&bytes[..head.head_bytes]), parsed);
            // As long as its end has not come, it is not one.
            assert!(!matches!(Head::parse(&bytes[..head.head_bytes - 1]), Ok(Some(_))));
            asked(head);
        }
        Ok(None) => assert!(bytes.len() < HEAD_BYTES_MAX),
        Err(error) => assert!(!error.to_string().contains('\n')),
    }
    if start_of(bytes) == Start::Http {
        assert!(!matches!(parsed, Err(HeadError::TooLong)) || bytes.len() >= HEAD_BYTES_MAX);
    }
}

fn asked(head: &Head) {
    let _ = LoadTarget::from_head(head);
    let _ = (head.may_ask(&[]), head.may_ask(&["any".to_owned()]));
    assert!(head.target_path().len() + head.query_string().len() <= head.target.len());
    for protocol in [NDT7_PROTOCOL, THROUGHPUT1_PROTOCOL] {
        if head.offers_websocket(protocol) {
            let key = head.websocket_key.as_deref().expect("a key");
            // What a client sent does not break the lines of the answer.
            let lines = switching(key, protocol).iter().filter(|byte| **byte == b'\n').count();
            assert_eq!(lines, 6);
        }
    }
    match VisitorTarget::from_head(head).map(|target| target.wish) {
        Ok(VisitorRequest::Down(bytes)) => assert!(bytes <= VISITOR_BYTES_MAX),
        Ok(VisitorRequest::Throughput1(_, asked)) => assert!(asked.duration_ms <= 25_000),
        _ => {}
    }
}
