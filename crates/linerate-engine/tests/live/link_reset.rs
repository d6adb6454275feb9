//! A link of a device that goes down during a trial. In a module of its own, since it runs with
//! nothing beside it: how long an outage lasts is a time, and a tester that other work keeps from
//! sending cannot tell its own lost frames from those of the link.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use linerate_core::record::BenchTest;

use crate::bench_lab::{MS, SWITCH, found, lab, plan, ports};

#[test]
fn a_link_that_restarts_midway_is_an_outage_and_not_a_fault_of_the_tester() {
    let Some(lab) = lab(SWITCH) else { return };
    // The switch forwards again some time after its link is up: long enough for a busy machine.
    let mut plan = plan(ports(&lab, &["a", "b"]), &[BenchTest::Reset]);
    plan.times.trial_ns = 1500 * MS;
    let reset = found(&lab, &plan).reset.unwrap();
    assert_eq!(reset.what, "link eth0, down for 100 ms");
    // Nothing comes while the link is down, by either method.
    assert!(reset.by_stamps_ns[0] >= 100 * MS, "{reset:?}");
    assert!(reset.by_loss_ns[0] > 50 * MS, "{reset:?}");
}
