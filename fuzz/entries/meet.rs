//! Any bytes as a message at the place where two hosts meet: no panic, a message that survives
//! being written again, and never more sent than came.

use std::net::SocketAddr;

use linerate_core::time::MonoTime;
use linerate_proto::meet::{MEET_BYTES, Meet, MeetAction, MeetBody, Meetings};

/// Runs the entry.
pub(crate) fn run(bytes: &[u8]) {
    if let Some(meet) = Meet::decode(bytes) {
        assert_eq!(Meet::decode(&meet.encode()), Some(meet));
    }
    let mut meetings = Meetings::default();
    let mut now = MonoTime::from_nanos(0);
    for (datagram, port) in bytes.chunks(MEET_BYTES).zip(1_u16..) {
        let source = SocketAddr::from(([192, 0, 2, 1], port % 3 + 1));
        now = MonoTime::from_nanos(now.as_nanos() + u64::from(datagram[0]) * 100_000_000);
        let first = meetings.handle(datagram, source, || source, now);
        if let MeetAction::Answer(answer) = first {
            assert_eq!(datagram.len(), MEET_BYTES);
            with_cookie(&mut meetings, datagram, &answer, source, now);
        }
    }
}

/// Asks again as one that is where it says, and lets a datagram be passed on.
fn with_cookie(
    meetings: &mut Meetings<SocketAddr>,
    datagram: &[u8],
    answer: &[u8],
    source: SocketAddr,
    now: MonoTime,
) {
    let told = Meet::decode(answer).expect("its own answer");
    let (Some(asked), MeetBody::Told { cookie, .. }) = (Meet::decode(datagram), told.say) else {
        panic!("an answer to no question")
    };
    let MeetBody::Ask { relay, .. } = asked.say else { panic!("an answer to {asked:?}") };
    let again = Meet { say: MeetBody::Ask { cookie, relay }, ..asked };
    let deed = meetings.handle(&again.encode(), source, || source, now);
    assert!(matches!(deed, MeetAction::Answer(_)));
    let deed = meetings.handle(b"a probe", source, || source, now);
    assert!(!matches!(deed, MeetAction::Answer(_)));
}
