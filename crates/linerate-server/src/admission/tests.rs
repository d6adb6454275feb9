//! Who gets a place at once, who waits in line and for how long, and who is turned away.

use linerate_core::policy::TestKind;

use super::*;

fn demand(seconds: u64, streams: usize) -> Demand {
    let planned = Some(Duration::from_secs(seconds));
    Demand { planned, ..Demand::new(TestKind::Tcp, streams) }
}

fn admit(gate: &Gate, demand: &Demand) -> Result<Permit, Refuse> {
    gate.admit_test(demand, SocketAddr::from(([127, 0, 0, 1], 1)))
}

#[test]
fn the_second_test_is_told_when_the_first_will_be_over() {
    let gate = Gate::new(ServerLimits::default());
    let first = admit(&gate, &demand(10, 1));
    assert!(first.is_ok());
    let refuse = admit(&gate, &demand(10, 1)).err().expect("one at a time");
    assert_eq!(refuse.code, RefuseCode::Busy);
    let retry = refuse.retry_after_ms.expect("a running test has an end");
    assert!((9000..=10_000).contains(&retry), "{retry}");
    drop(first);
    assert_eq!(gate.running(), 0);
    assert!(admit(&gate, &demand(10, 1)).is_ok());
}

#[test]
fn those_that_wait_come_in_their_order_and_before_newcomers() {
    let gate = Gate::new(ServerLimits::default());
    let client = |port| SocketAddr::from(([127, 0, 0, 1], port));
    let ask = |port| gate.admit_in_turn(&demand(10, 1), client(port));
    let first = ask(1).ok();
    assert!(first.is_some() && ask(2).is_err() && ask(3).is_err() && ask(2).is_err());
    drop(first);
    let newcomer = admit(&gate, &demand(10, 1)).err().expect("two wait");
    assert_eq!(newcomer.reason, "0 of 1 tests are running, 2 wait");
    assert!(ask(3).is_err(), "2 came before");
    let second = ask(2).ok();
    assert!(second.is_some() && ask(3).is_err());
    drop(second);
    let third = ask(3).ok();
    assert!(third.is_some());
    drop(third);
    assert!(admit(&gate, &demand(10, 1)).is_ok(), "nobody waits");
}

#[test]
fn clients_of_one_address_keep_their_order_by_their_tickets() {
    let gate = Gate::new(ServerLimits::default());
    let ask = |ticket| {
        let client = PolicyClient::without_token(Program::Http, IpAddr::from([192, 0, 2, 1]));
        gate.admit_by_ticket(&demand(10, 4), ticket, &client)
    };
    let first = ask(None).ok();
    assert!(first.is_some());
    let place = |ticket| ask(ticket).err().and_then(|waiting| waiting.place);
    let (at, second) = place(None).expect("it waits");
    let (behind, third) = place(None).expect("it waits, too");
    assert_eq!((at, behind, gate.waiting()), (1, 2, 2));
    assert_eq!(place(Some(second)), Some((1, second)), "it keeps its place");
    drop(first);
    assert!(ask(Some(third)).is_err(), "the second came before");
    let running = ask(Some(second)).ok();
    assert!(running.is_some());
    assert_eq!(place(Some(third)), Some((1, third)));
    let never = ask(None).err().and_then(|it| it.refuse.retry_after_ms);
    assert!(never.is_some_and(|ms| ms <= 2000), "it is to ask before its ticket is forgotten");
}

#[test]
fn who_only_takes_tickets_keeps_nobody_out_and_one_address_does_not_fill_the_line() {
    let gate = Gate::new(ServerLimits::default());
    let ask = |host, ticket| {
        let client = PolicyClient::without_token(Program::Http, IpAddr::from([192, 0, 2, host]));
        gate.admit_by_ticket(&demand(10, 1), ticket, &client)
    };
    let wait = |host, ticket| ask(host, ticket).err().and_then(|waiting| waiting.place);
    let first = admit(&gate, &demand(10, 1)).ok();
    let flood = (0..1000).filter_map(|_| wait(1, None)).count();
    assert_eq!((flood, gate.waiting()), (32, 32));
    let (_, ticket) = wait(2, None).expect("another address has room");
    drop(first);
    let other = ask(2, Some(ticket)).ok();
    assert!(other.is_some(), "its turn, though 32 got theirs before");
    assert!(wait(2, None).is_some());
    drop(other);
    assert!(admit(&gate, &demand(10, 1)).is_ok(), "nor does one keep out who never waits");
    // Two hundred that do come again, as those of an office; others still find room.
    let held = admit(&gate, &demand(10, 1)).ok();
    let office: Vec<u64> = (0..400)
        .filter_map(|_| wait(3, None))
        .filter_map(|(_, ticket)| wait(3, Some(ticket)))
        .map(|(_, ticket)| ticket)
        .collect();
    assert_eq!(office.len(), 200);
    assert!(wait(4, None).is_some());
    drop(held);
    assert!(admit(&gate, &demand(10, 1)).is_err(), "those wait");
    assert!(ask(3, Some(office[1])).is_err() && ask(3, Some(office[0])).is_ok());
}

#[test]
fn streams_of_one_address_are_one_test_within_its_streams_and_others_wait() {
    let gate = Gate::new(ServerLimits { streams: 3, ..ServerLimits::default() });
    let ask = |host| {
        let client = SocketAddr::from(([192, 0, 2, host], 1));
        gate.by_address().admit_test(&demand(10, 1), client)
    };
    let first: Vec<Permit> = (0..3).map(|_| ask(1).expect("one test of three")).collect();
    assert_eq!(gate.running(), 1);
    let refuse = ask(1).err().expect("a fourth stream");
    assert_eq!(refuse.code, RefuseCode::Limit);
    assert_eq!(refuse.reason, "3 streams are open; that is the limit");
    assert_eq!(ask(2).err().map(|refuse| refuse.code), Some(RefuseCode::Busy));
    drop(first);
    assert_eq!(gate.running(), 0);
    assert!(ask(2).is_ok());
}

#[test]
fn a_place_without_a_proven_address_is_anybody_s_who_has_one() {
    let gate = Gate::new(ServerLimits::default());
    let client = |host| SocketAddr::from(([192, 0, 2, host], 1));
    let unproven = |host| gate.by_address().admit_unproven(&demand(10, 1), client(host));
    let (first, stop) = unproven(1).expect("nobody is there");
    let (second, _) = unproven(1).expect("another stream of the same address");
    assert_eq!(unproven(2).err().map(|refuse| refuse.code), Some(RefuseCode::Busy));
    assert!(!stop.is_requested() && gate.running() == 1);
    // The same address, proven by a handshake, as any other.
    for host in [1, 2] {
        let proven =
            gate.by_address().admit_test(&demand(10, 1), client(host)).expect("it gives way");
        assert!(stop.is_requested() && gate.running() == 1);
        assert!(unproven(3).is_err() && admit(&gate, &demand(10, 1)).is_err());
        drop(proven);
        assert_eq!(gate.running(), 0);
    }
    drop((first, second));
    let (_again, again_stop) = unproven(1).expect("nobody is there");
    assert!(!again_stop.is_requested(), "a test of its own");
    assert!(admit(&gate, &demand(10, 1)).is_ok() && again_stop.is_requested());
}

#[test]
fn limits_are_named() {
    let limits =
        ServerLimits { streams: 4, duration: Duration::from_secs(5), ..ServerLimits::default() };
    let gate = Gate::new(limits);
    let refuse = admit(&gate, &demand(1, 6)).err().expect("3 up and 3 down are 6");
    assert_eq!(refuse.reason, "6 streams; the limit is 4");
    assert!(admit(&gate, &demand(5, 4)).is_ok(), "as many and as long as may be");
    let refuse = admit(&gate, &demand(6, 1)).err().expect("longer than 5 s");
    assert_eq!(refuse.code, RefuseCode::Limit);
}

#[test]
fn a_policy_decides_for_every_protocol_before_a_place_is_given() {
    let gate = Gate::new(ServerLimits { tests: 9, ..ServerLimits::default() });
    let policy = "[[rule]]\nname = \"lan\"\nfrom = [\"10.0.0.0/8\"]\ntime = \"5s\"\n";
    gate.set_policy(Policy::from_toml(policy).expect("a policy"));
    let programs = [Program::Linerate, Program::Iperf3, Program::Nuttcp];
    let ask = |client: IpAddr, seconds| {
        let peer = SocketAddr::new(client, 1);
        let demand = demand(seconds, 1);
        let own = programs.map(|it| gate.for_client(it, client).admit_test(&demand, peer).is_ok());
        let http = PolicyClient::without_token(Program::Http, client);
        let others = [
            gate.by_address().admit_test(&demand, peer).is_ok(),
            gate.admit_by_ticket(&demand, None, &http).is_ok(),
        ];
        own.into_iter().chain(others).collect::<Vec<bool>>()
    };
    assert_eq!(ask(IpAddr::from([10, 0, 0, 1]), 5), [true; 5]);
    assert_eq!(ask(IpAddr::from([10, 0, 0, 1]), 6), [false; 5]);
    assert_eq!(ask(IpAddr::from([192, 0, 2, 1]), 5), [false; 5]);
    let near = gate.for_client(Program::Iperf3, IpAddr::from([10, 0, 0, 1]));
    assert_eq!(near.duration_max(), Duration::from_secs(5));
    assert_eq!(gate.by_address().duration_max(), Duration::from_secs(5));
}
