//! What tests reserve of a rule's rate, streams and bytes, and what a client is told is left.

use super::*;
use crate::admission::{Gate, ServerLimits};
use linerate_core::policy::TestKind;
use linerate_engine::flow::admission::Admission;
use std::net::SocketAddr;

fn guard(limits: &str) -> PolicyGuard {
    let guard = PolicyGuard::default();
    guard.set_policy(policy(limits));
    guard
}

fn policy(limits: &str) -> Policy {
    Policy::from_toml(&format!("{limits}[[rule]]\nname = \"all\"\n")).expect("a policy")
}

/// One of so many directions at 8 Mbit/s for 5 s: 5 MB each.
fn five_seconds(ways: u8) -> Demand {
    Demand {
        planned: Some(Duration::from_secs(5)),
        rate_bps: Some(8_000_000),
        ways,
        ..Demand::new(TestKind::Udp, 1)
    }
}

fn client(program: Program, host: u8) -> PolicyClient {
    PolicyClient::without_token(program, IpAddr::from([192, 0, 2, host]))
}

const TERMS: PolicyTerms =
    PolicyTerms { duration_max: Duration::from_secs(60), is_proven: true, joins: false };

#[test]
fn a_test_reserves_its_rate_times_its_time_for_each_direction() {
    let guard = guard("bytes_per_day = \"15 MB\"\n");
    let ask = |ways| guard.check_demand(&five_seconds(ways), &client(Program::Linerate, 1), TERMS);
    let both = ask(2).expect("10 of 15 MB");
    let Err(refusal) = ask(2) else { panic!("10 of 5 MB were let in") };
    let why = refusal.reason;
    assert!(why.contains("it may move 10.00 MB") && why.contains("5.000 MB are left"), "{why}");
    let one = ask(1).expect("5 of 5 MB");
    drop((both, one));
    let _all = ask(2).expect("what was unused came back");
}

#[test]
fn a_test_over_http_is_ended_where_the_budget_ends_and_others_are_refused() {
    let guard = guard("bytes_per_day = \"9 MB\"\n");
    let ask = |program| guard.check_demand(&five_seconds(2), &client(program, 1), TERMS);
    assert!(ask(Program::Linerate).is_err(), "10 of 9 MB");
    let _ended = ask(Program::Http).expect("it is ended at 9 MB");
}

#[cfg(feature = "web")]
#[test]
fn a_client_is_told_the_lesser_of_its_own_and_all_bytes() {
    let left = |all: &str, own: &str| {
        let text = format!(
            "bytes_per_day = \"{all}\"\n[[rule]]\nname = \"all\"\n\
             bytes_per_client_per_day = \"{own}\"\n"
        );
        let guard = PolicyGuard::default();
        guard.set_policy(Policy::from_toml(&text).expect("a policy"));
        guard.allowance(&client(Program::Http, 1)).bytes
    };
    assert_eq!(left("3 MB", "1 MB"), Some(1_000_000));
    assert_eq!(left("1 MB", "3 MB"), Some(1_000_000));
}

#[test]
fn requests_of_a_browser_s_test_reserve_its_rate_once() {
    let gate = Gate::new(ServerLimits { tests: 9, ..ServerLimits::default() });
    let rule = "[[rule]]\nname = \"all\"\nrate = \"8M\"\n";
    gate.set_policy(Policy::from_toml(rule).expect("a policy"));
    let peer = SocketAddr::from(([192, 0, 2, 1], 1));
    let ask = |program| gate.by_address_of(program, peer.ip()).admit_test(&five_seconds(1), peer);
    let _requests = [(); 4].map(|()| ask(Program::Http).expect("of one test"));
    let why = ask(Program::Iperf2).err().expect("8 and 8 of 8 Mbit/s").reason;
    assert!(why.contains("16 Mbit/s with this client's other tests"), "{why}");
}
