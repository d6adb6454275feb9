//! Facts about the ends of a veth pair in namespaces that the test makes: carrier, promiscuous
//! mode, offloads, and the NAPI thread that comes and goes with them.
//!
//! Needs the privilege to make network namespaces; says so and passes when it is absent.
#![allow(clippy::print_stdout, reason = "skipped tests say so")]

use std::time::Duration;

use crate::support::{Cable, LEFT, PATIENCE, RIGHT, inside, link};
use linerate_sys::ethtool::{self, Offload};
use linerate_sys::interface_facts::InterfaceFacts;
use linerate_sys::netlink::{self, RouteSocket};
use linerate_sys::packet_capture::{CaptureOptions, PacketCapture};
use linerate_sys::{clock, napi, sched};

fn cable() -> Option<Cable> {
    let cable = Cable::new(1500);
    if cable.is_none() {
        println!("skipped: CAP_SYS_ADMIN and CAP_NET_ADMIN are needed for network namespaces");
    }
    cable
}

#[test]
fn a_cable_unplugged_and_plugged_in_again_is_seen_afterwards() {
    let Some(cable) = cable() else { return };
    let before = link(&cable.left, LEFT);
    assert_eq!((before.up, before.carrier), (true, Some(true)));
    let far_end = |up: bool| {
        inside(&cable.right, || {
            let mut socket = RouteSocket::open().expect("netlink");
            let changed = if up { socket.set_up(RIGHT) } else { socket.set_down(RIGHT) };
            changed.expect("the link is there");
        });
    };
    far_end(false);
    let between = link(&cable.left, LEFT);
    assert_eq!((between.up, between.carrier), (true, Some(false)));
    far_end(true);
    let after = link(&cable.left, LEFT);
    assert_eq!(after.carrier, Some(true));
    let changes = |count: Option<u32>| count.expect("Linux 3.15 or newer");
    assert_eq!(changes(after.carrier_changes), changes(before.carrier_changes) + 2);
    inside(&cable.left, || RouteSocket::open().expect("netlink").set_down(LEFT).expect("down"));
    let down = link(&cable.left, LEFT);
    assert_eq!((down.up, down.carrier), (false, None));
}

#[test]
fn facts_of_a_veth_end_are_what_was_set() {
    let Some(cable) = cable() else { return };
    inside(&cable.left, || {
        let facts = InterfaceFacts::from_ifindex(LEFT).expect("the link is there");
        assert_eq!((facts.link.name.as_str(), facts.link.mtu_bytes), ("left", 1500));
        assert_eq!(facts.driver.as_deref(), Some("veth"));
        // The driver says 10 Gbit/s, full duplex; nobody keeps that.
        assert_eq!((facts.speed_bps, facts.full_duplex), (None, Some(true)));
        assert_eq!(facts.pause, None, "a veth knows no flow control");
        assert!(!facts.link.promiscuous);
        // Made by the kernel: locally administered and not a group.
        assert_eq!(facts.link.mac.expect("an Ethernet link")[0] & 3, 2);
        ethtool::offloads_off("left").expect("may be off");
        let off = [Offload::TcpSegmentation, Offload::Segmentation, Offload::Receive];
        let facts = InterfaceFacts::from_ifindex(LEFT).expect("the link is there");
        assert!(off.iter().all(|it| !facts.offloads.contains(it)), "{:?}", facts.offloads);
        for on in [true, false] {
            ethtool::set_offload("left", Offload::SendChecksum, on).expect("a veth can");
            assert_eq!(ethtool::offload("left", Offload::SendChecksum).expect("told"), on);
        }
        assert!(ethtool::set_offload("left", Offload::LargeReceive, true).is_err());
        let mut options = CaptureOptions::of_interface("left");
        options.promiscuous = true;
        let capture = PacketCapture::open(&options).expect("a capture");
        assert!(link(&cable.left, LEFT).promiscuous);
        drop(capture);
        assert!(InterfaceFacts::from_ifindex(77).is_err());
    });
}

#[test]
fn a_napi_thread_is_made_found_moved_and_taken_away() {
    let Some(cable) = cable() else { return };
    inside(&cable.right, || {
        ethtool::set_offload("right", Offload::Receive, true).expect("a veth can");
        let Ok(found) = netlink::napi_contexts(RIGHT) else {
            println!("skipped: the kernel does not list NAPI contexts (Linux 6.8)");
            return;
        };
        assert_eq!(found.len(), 1, "one queue");
        if let Err(error) = napi::set_threaded("right", true) {
            println!("skipped: {error} (Linux 5.12)");
            return;
        }
        let threaded = netlink::napi_contexts(RIGHT).expect("told before")[0];
        assert_eq!((threaded.id, threaded.threaded), (found[0].id, Some(true)));
        let thread = threaded.thread.expect("a thread of its own");
        let name = std::fs::read_to_string(format!("/proc/{thread}/comm")).expect("it runs");
        assert_eq!(name.trim(), format!("napi/right-{}", threaded.id));
        let cpu = *sched::allowed_cpus().last().expect("one at least");
        sched::pin_thread(thread, cpu).expect("the kernel lets its thread be moved");
        assert_eq!(sched::cpus_of(thread), [cpu]);
        napi::set_threaded("right", false).expect("it went the other way");
        let end = clock::monotonic() + PATIENCE;
        while netlink::napi_contexts(RIGHT).expect("told before")[0].threaded != Some(false) {
            assert!(clock::monotonic() < end, "the thread stays");
            clock::sleep(Duration::from_millis(2));
        }
        // Without receive offload the context is gone.
        ethtool::set_offload("right", Offload::Receive, false).expect("a veth can");
        assert_eq!(netlink::napi_contexts(RIGHT).expect("told before"), []);
    });
}
