//! What two hosts and their third say to each other, octet by octet, and how long it keeps them.

use super::*;

const A: &str = "192.0.2.1:40001";
const B: &str = "198.51.100.2:50002";

fn at(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

fn time(seconds: u64) -> MonoTime {
    MonoTime::from_nanos(1_000_000_000_000 + seconds * 1_000_000_000)
}

/// One asks as `source`, with the cookie that it was told at first.
fn ask(
    third: &mut Meetings<char>,
    (role, source): (MeetRole, &str),
    relay: bool,
    now: MonoTime,
) -> (Option<SocketAddr>, bool) {
    let key = MeetKey::from_word("blue cow");
    let mut cookie = 0;
    for _ in 0..2 {
        let asked = Meet { key, role, say: MeetBody::Ask { cookie, relay } }.encode();
        let name = if role == MeetRole::Measures { 'a' } else { 'b' };
        let MeetAction::Answer(answer) = third.handle(&asked, at(source), || name, now) else {
            panic!("no answer")
        };
        assert_eq!(answer.len(), asked.len(), "nobody is sent more than it sent");
        let Some(Meet { say: MeetBody::Told { cookie: told, other, relayed }, .. }) =
            Meet::decode(&answer)
        else {
            panic!("no answer of a third")
        };
        if cookie != 0 {
            return (other, relayed);
        }
        assert_eq!((other, relayed), (None, false), "nothing is told without a cookie");
        cookie = told;
    }
    unreachable!("the second time there is a cookie")
}

#[test]
fn every_message_is_read_as_it_was_written_and_its_octets_are_those_of_the_specification() {
    let key = MeetKey::from_word("blue cow");
    // `printf 'linerate meet blue cow' | sha256sum`
    assert_eq!(key.0[..4], [0xdc, 0xf1, 0xf1, 0x75]);
    let says = [
        MeetBody::Ask { cookie: 0, relay: false },
        MeetBody::Ask { cookie: u64::MAX, relay: true },
        MeetBody::Told { cookie: 7, other: None, relayed: false },
        MeetBody::Told { cookie: 7, other: Some(at(A)), relayed: true },
        MeetBody::Told { cookie: 7, other: Some(at("[2001:db8::9]:862")), relayed: false },
        MeetBody::Hello { heard: true },
    ];
    for say in says {
        for role in [MeetRole::Measures, MeetRole::Answers] {
            let message = Meet { key, role, say };
            assert_eq!(Meet::decode(&message.encode()), Some(message));
        }
    }
    let told = Meet { key, role: MeetRole::Answers, say: says[3] }.encode();
    assert_eq!(told[..12], *b"lr-meet\x01\x02\x01\x01\x00");
    // Port 40001 is 0x9c41.
    assert_eq!(told[36..44], [4, 0, 0x9c, 0x41, 192, 0, 2, 1]);
    for at in [0, 8, 9, 10, 36] {
        let mut wrong = told;
        wrong[at] = 0x77;
        assert_eq!(Meet::decode(&wrong), None, "octet {at}");
    }
    assert_eq!(Meet::decode(&told[..63]), None);
}

#[test]
fn each_is_told_where_the_other_is_once_both_have_shown_where_they_are() {
    let mut third = Meetings::default();
    let (a, b) = ((MeetRole::Measures, A), (MeetRole::Answers, B));
    assert_eq!(ask(&mut third, a, false, time(0)), (None, false));
    assert_eq!(ask(&mut third, b, false, time(1)), (Some(at(A)), false));
    assert_eq!(ask(&mut third, a, false, time(1)), (Some(at(B)), false));
    // A cookie is of one address: from another it is worth nothing.
    let key = MeetKey::from_word("blue cow");
    let first =
        Meet { key, role: MeetRole::Measures, say: MeetBody::Ask { cookie: 0, relay: false } };
    let MeetAction::Answer(answer) = third.handle(&first.encode(), at(A), || 'a', time(1)) else {
        panic!("no answer")
    };
    let Some(Meet { say: MeetBody::Told { cookie, .. }, .. }) = Meet::decode(&answer) else {
        panic!("no answer")
    };
    let stolen = Meet { say: MeetBody::Ask { cookie, relay: false }, ..first };
    let MeetAction::Answer(answer) =
        third.handle(&stolen.encode(), at("203.0.113.5:1"), || 'x', time(1))
    else {
        panic!("no answer")
    };
    let said = Meet::decode(&answer).map(|message| message.say);
    assert!(matches!(said, Some(MeetBody::Told { other: None, .. })), "{said:?}");
    assert_eq!(ask(&mut third, b, false, time(1)), (Some(at(A)), false), "nobody took its place");
    // Who has not asked for ten seconds is gone.
    assert_eq!(ask(&mut third, b, false, time(12)), (None, false));
}

#[test]
fn datagrams_are_passed_on_only_where_both_asked_for_it_and_not_without_an_end() {
    let mut third = Meetings::default();
    let (a, b) = ((MeetRole::Measures, A), (MeetRole::Answers, B));
    let probe = [9; 72];
    ask(&mut third, a, true, time(0));
    assert_eq!(ask(&mut third, b, false, time(0)), (Some(at(A)), false));
    assert_eq!(third.handle(&probe, at(A), || 'a', time(0)), MeetAction::NotOurs);
    assert_eq!(ask(&mut third, b, true, time(0)), (Some(at(A)), true));
    assert_eq!(third.handle(&probe, at(A), || 'a', time(1)), MeetAction::PassOn(&'b'));
    assert_eq!(third.handle(&probe, at(B), || 'b', time(1)), MeetAction::PassOn(&'a'));
    assert_eq!(third.handle(&probe, at("203.0.113.5:1"), || 'x', time(1)), MeetAction::NotOurs);
    let mut passed = 0;
    for _ in 0..2000 {
        passed +=
            u32::from(third.handle(&probe, at(A), || 'a', time(3)) == MeetAction::PassOn(&'b'));
    }
    assert_eq!(passed, PASSED_PER_SECOND);
    // Datagrams keep it, for ten minutes at the most.
    let end =
        (4..700).find(|s| third.handle(&probe, at(A), || 'a', time(*s)) == MeetAction::NotOurs);
    assert_eq!(end, Some(601));
    assert!(third.places.is_empty() && third.passed.is_empty());
}

#[test]
fn where_an_end_was_before_is_forgotten() {
    let mut third = Meetings::default();
    let from = |port: u64| format!("192.0.2.1:{}", 40_000 + port);
    let probe = [9; 72];
    for minute in 0..100 {
        // Each slot has a port of its own; every other one follows on the heels of the last.
        let now = time(minute / 2 * 60);
        ask(&mut third, (MeetRole::Measures, &from(minute)), true, now);
        assert!(ask(&mut third, (MeetRole::Answers, B), true, now).1);
        ask(&mut third, (MeetRole::Measures, &from(minute)), true, now);
        assert_eq!(third.handle(&probe, at(&from(minute)), || 'a', now), MeetAction::PassOn(&'b'));
        assert_eq!(third.passed.len(), 2, "minute {minute}");
        if minute > 0 {
            assert_eq!(
                third.handle(&probe, at(&from(minute - 1)), || 'a', now),
                MeetAction::NotOurs
            );
        }
    }
}

#[test]
fn only_so_many_meet_at_one_time_and_those_who_are_gone_make_room() {
    let mut third = Meetings::default();
    let mut come = |number: usize, now: MonoTime| {
        let key = MeetKey::from_word(&number.to_string());
        let mut cookie = 0;
        for _ in 0..2 {
            let asked =
                Meet { key, role: MeetRole::Answers, say: MeetBody::Ask { cookie, relay: false } };
            let MeetAction::Answer(answer) = third.handle(&asked.encode(), at(A), || 'a', now)
            else {
                return false;
            };
            let Some(Meet { say: MeetBody::Told { cookie: told, .. }, .. }) = Meet::decode(&answer)
            else {
                return false;
            };
            cookie = told;
        }
        true
    };
    assert!((0..PLACES_MAX).all(|number| come(number, time(0))));
    assert!(!come(PLACES_MAX, time(5)));
    assert!(come(PLACES_MAX, time(11)));
}
