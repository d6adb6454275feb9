//! Single frames in and out of an interface, between two namespaces.
//!
//! Needs the privilege to make network namespaces; says so and passes when it is absent.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests")]

use std::time::Duration;

use linerate_sys::clock::monotonic;
use linerate_sys::netlink::RouteSocket;
use linerate_sys::raw_port::RawPort;

use crate::support::{Cable, LEFT, PATIENCE, RIGHT, inside, link};

fn cable() -> Option<Cable> {
    let cable = Cable::new(1500);
    if cable.is_none() {
        println!("skipped: CAP_SYS_ADMIN and CAP_NET_ADMIN are needed for network namespaces");
    }
    cable
}

/// A frame of 60 bytes of a protocol that nobody answers (EtherType 0x88B5, for experiments).
fn frame(last: u8) -> Vec<u8> {
    let mut frame = vec![0xff; 6];
    frame.extend([2, 0, 0, 0, 0, 9, 0x88, 0xb5]);
    frame.resize(59, 0);
    frame.push(last);
    frame
}

fn both(cable: &Cable) -> [RawPort; 2] {
    [
        inside(&cable.left, || RawPort::open("left").unwrap()),
        inside(&cable.right, || RawPort::open("right").unwrap()),
    ]
}

/// The next test frame; the kernel may say something by itself in between.
fn next(port: &RawPort) -> Vec<u8> {
    let began = monotonic();
    while monotonic().duration_since(began) < PATIENCE {
        match port.receive(Duration::from_millis(100)).unwrap() {
            Some(frame) if frame[12..14] == [0x88, 0xb5] => return frame,
            _ => {}
        }
    }
    panic!("no frame came");
}

#[test]
fn frames_come_as_they_were_sent_and_in_order() {
    let Some(cable) = cable() else { return };
    let [left, right] = both(&cable);
    assert_eq!((left.index(), right.index()), (LEFT, RIGHT));
    assert_ne!(left.hardware_address(), right.hardware_address());
    for last in 0..3 {
        left.send_frame(&frame(last)).unwrap();
    }
    for last in 0..3 {
        assert_eq!(next(&right), frame(last));
    }
}

#[test]
fn own_frames_are_passed_over() {
    let Some(cable) = cable() else { return };
    let [left, right] = both(&cable);
    left.send_frame(&frame(1)).unwrap();
    right.send_frame(&frame(2)).unwrap();
    assert_eq!(next(&left), frame(2));
}

#[test]
fn a_link_that_was_down_carries_frames_again() {
    let Some(cable) = cable() else { return };
    let [left, right] = both(&cable);
    let set = |up: bool| {
        inside(&cable.left, || {
            let mut links = RouteSocket::open().unwrap();
            if up { links.set_up(LEFT) } else { links.set_down(LEFT) }.unwrap();
        });
    };
    set(false);
    let error = left.send_frame(&frame(1)).unwrap_err();
    assert!(error.to_string().contains("left"), "{error}");
    set(true);
    let began = monotonic();
    while !link(&cable.right, RIGHT).running && monotonic().duration_since(began) < PATIENCE {
        linerate_sys::clock::sleep(Duration::from_millis(2));
    }
    left.send_frame(&frame(2)).unwrap();
    assert_eq!(next(&right), frame(2));
}

#[test]
fn an_interface_that_is_none_is_refused_in_one_line() {
    let Some(cable) = cable() else { return };
    inside(&cable.left, || {
        let error = RawPort::open("no0").unwrap_err().to_string();
        assert!(error.contains("no0") && !error.contains('\n'), "{error}");
        // Loopback has no hardware address of six bytes of its own kind.
        let error = RawPort::open("lo").unwrap_err().to_string();
        assert!(error.contains("not an Ethernet interface"), "{error}");
    });
}
