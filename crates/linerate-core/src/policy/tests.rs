//! Rules, budgets and files of policies against hand-made cases and closed forms.

use std::net::IpAddr;

use proptest::prelude::*;

use super::*;
use crate::time::WallTime;

const FILE: &str = r#"
bytes_per_day = "1 TB"

[[token]]
name = "noc"
sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
expires = "2027-01-01"

[[rule]]
name = "operators"
token = "noc"
measure_to = ["198.51.100.0/24"]
results = true

[[rule]]
name = "lab"
from = ["10.0.0.0/8", "fd00::/8"]
time = "1m"

[[rule]]
name = "guests"
tests = ["tcp"]
programs = ["linerate", "http"]
rate = "100M"
time = "15s"
streams = 8
bytes_per_client_per_day = "1 GB"
"#;

fn policy() -> Policy {
    Policy::from_toml(FILE).expect("a policy")
}

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

fn day(text: &str) -> WallTime {
    WallTime::from_user_text(text, WallTime::from_unix_nanos(0)).expect("a time")
}

/// SHA-256 of "abc" (FIPS 180-2, appendix B.1).
fn abc() -> TokenDigest {
    parse_digest("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad").expect("hex")
}

fn test(kind: TestKind, program: Program, rate_bps: Option<u64>, seconds: u64) -> Act {
    let time = Some(std::time::Duration::from_secs(seconds));
    Act::Test { kind, program, rate_bps, time, streams: 2 }
}

/// The rule that decides, and why not.
fn ask(from: &str, token: Option<TokenDigest>, now: &str, act: Act) -> (String, String) {
    let policy = policy();
    let decision = policy.decide(&PolicyRequest { from: ip(from), token, now: day(now), act });
    let rule = decision.rule.map_or_else(String::new, |rule| rule.name.clone());
    (rule, decision.refused.unwrap_or_default())
}

#[test]
fn the_first_rule_that_has_the_client_decides() {
    let free = test(TestKind::Tcp, Program::Linerate, None, 10);
    let now = "2026-12-31";
    let is = |got: (String, String), rule: &str, why: &str| {
        assert_eq!(
            (got.0.as_str(), got.1.contains(why), got.1.is_empty()),
            (rule, true, why.is_empty()),
            "{got:?}"
        );
    };
    is(ask("10.1.2.3", None, now, free), "lab", "");
    is(ask("::ffff:10.1.2.3", None, now, free), "lab", "");
    is(ask("192.0.2.7", None, now, free), "guests", "the limit is 100 Mbit/s: name a rate");
    let paced = |bps| test(TestKind::Tcp, Program::Http, Some(bps), 10);
    is(ask("192.0.2.7", None, now, paced(100_000_000)), "guests", "");
    is(ask("192.0.2.7", None, now, paced(100_000_001)), "guests", "the limit is 100 Mbit/s");
    let udp = test(TestKind::Udp, Program::Linerate, Some(1), 1);
    is(ask("192.0.2.7", None, now, udp), "guests", "no udp test; allowed: tcp");
    let iperf3 = test(TestKind::Tcp, Program::Iperf3, Some(1), 1);
    is(ask("192.0.2.7", None, now, iperf3), "guests", "allowed: linerate, http");
    let long = test(TestKind::Tcp, Program::Http, Some(1), 16);
    is(ask("192.0.2.7", None, now, long), "guests", "16 s of sending; the limit is 15 s");
    is(ask("192.0.2.7", None, now, test(TestKind::Tcp, Program::Http, Some(1), 15)), "guests", "");
    is(ask("192.0.2.7", Some(abc()), now, free), "operators", "");
    is(ask("192.0.2.7", Some([7; 32]), now, free), "guests", "name a rate");
    is(ask("192.0.2.7", Some(abc()), "2027-01-01", free), "guests", "name a rate");
    is(ask("192.0.2.7", None, now, Act::Results), "guests", "no list of results");
    is(ask("192.0.2.7", Some(abc()), now, Act::Results), "operators", "");
}

#[test]
fn the_server_measures_only_to_whom_a_rule_names() {
    let to =
        |token, target: &str| ask("10.0.0.1", token, "2026-12-31", Act::MeasureTo(ip(target))).1;
    assert_eq!(to(Some(abc()), "198.51.100.9"), "");
    for target in ["127.0.0.1", "10.0.0.9", "224.0.0.1", "::1", "::ffff:127.0.0.1", "8.8.8.8"] {
        assert!(to(Some(abc()), target).contains("no measurement to"), "{target}");
        assert!(to(None, target).contains("measures to nobody"), "{target}");
    }
}

#[test]
fn a_client_that_no_rule_has_is_refused() {
    let text = "[[rule]]\nname = \"lab\"\nfrom = [\"10.0.0.0/8\"]\n";
    let policy = Policy::from_toml(text).expect("a policy");
    let now = day("2026-12-31");
    let act = Act::Results;
    let decision = policy.decide(&PolicyRequest { from: ip("192.0.2.1"), token: None, now, act });
    assert!(decision.rule.is_none() && decision.refused.is_some());
}

#[test]
fn a_bad_policy_names_line_key_and_what_is_allowed() {
    for (text, expected) in [
        ("", "line 1: 0 [[rule]]s; a policy has 1 to 1000"),
        ("[[rule]]\nname = \"a\"\n[keep]\n", "line 3: keep: it has time, count or bytes"),
        ("[[rule]]\nname = \"a\"\n[keep]\ntime = \"5m\"", "line 3: time: results are kept for 1h"),
        ("[[rule]]\nname = \"a\"\n[keep]\ndays = 3", "line 4: days: unknown field"),
        ("[[rule]]\nname = \"a\"\nrate = \"fast\"", "line 3: rate: "),
        ("[[rule]]\nname = \"a\"\nfrom = [\"10.0.0.0/33\"]", "line 3: from: \"10.0.0.0/33\" is no"),
        ("[[rule]]\nname = \"a\"\ntests = [\"icmp\"]", "line 3: tests: unknown variant `icmp`"),
        ("[[rule]]\nname = \"a\"\ntoken = \"x\"", "line 3: token \"x\": there is no [[token]]"),
        ("[[rule]]\nname = \"a\"\nnane = 1", "line 3: nane: unknown field `nane`, expected one of"),
        ("[[rule]]\nname = \"a\"\n[[rule]]\nname = \"a\"", "line 4: name \"a\": names differ"),
        ("[[token]]\nname = \"a\"\nsha256 = \"12\"", "line 3: sha256 is 64 hexadecimal"),
        ("[[token]]\nname = \"a\"\nexpires = \"soon\"", "line 3: expires: \"soon\" is no time"),
    ] {
        let got = Policy::from_toml(text).expect_err("a bad policy");
        assert!(got.starts_with(expected), "{text}: {got}");
        assert_eq!(got.lines().count(), 1, "{got}");
    }
}

#[test]
fn addresses_of_the_internet_are_told_from_all_others() {
    for private in
        ["127.0.0.1", "10.1.2.3", "169.254.1.1", "100.64.0.1", "::1", "fe80::1", "fd00::1"]
    {
        assert!(is_private(ip(private)) && !is_public(ip(private)), "{private}");
    }
    for neither in [
        "192.0.2.1",
        "198.18.0.1",
        "203.0.113.9",
        "2001:db8::1",
        "3fff::1",
        "224.0.0.1",
        "ff02::1",
        "0.0.0.0",
        "::",
        "255.255.255.255",
        "192.0.0.8",
    ] {
        assert!(!is_public(ip(neither)), "{neither}");
    }
    for public in
        ["8.8.8.8", "172.32.0.1", "100.128.0.1", "2a00::1", "2001:4860::1", "::ffff:8.8.8.8"]
    {
        assert!(is_public(ip(public)), "{public}");
    }
}

#[test]
fn what_is_kept_is_read_and_told_and_is_everything_where_nothing_says() {
    assert_eq!(policy().keep, None);
    let text = format!("[keep]\ntime = \"2d\"\ncount = 1000\nbytes = \"2 GB\"\n{}", {
        "[[rule]]\nname = \"all\"\n"
    });
    let keep = Policy::from_toml(&text).expect("a policy").keep.expect("it is there");
    assert_eq!(keep.time.map(crate::schedule::Span::seconds), Some(172_800));
    assert_eq!((keep.count, keep.bytes.map(|it| it.count())), (Some(1000), Some(2_000_000_000)));
    assert_eq!(keep.to_string(), "for 2 d, 1000 at most, 2.000 GB of records at most");
}

#[test]
fn bytes_of_a_day_are_counted_by_network_and_renew_at_midnight() {
    let policy = policy();
    let guests = &policy.rules[2];
    let mut ledger = Ledger::default();
    let (noon, later) = (day("2026-06-01T12:30"), day("2026-06-02T00:00"));
    ledger.charge(noon, ip("192.0.2.1"), 999_999_999);
    assert_eq!(ledger.exhausted_budget(&policy, guests, noon, ip("192.0.2.9")), None);
    ledger.charge(noon, ip("192.0.2.77"), 1);
    let spent =
        ledger.exhausted_budget(&policy, guests, noon, ip("192.0.2.9")).expect("10^9 bytes");
    assert!(spent.say.contains("192.0.2.0/24"), "{}", spent.say);
    // 11 h 30 min until midnight.
    assert!(spent.say.ends_with("renews at 00:00 UTC, in 11 h 30 min"), "{}", spent.say);
    assert_eq!(spent.renews_ms, (11 * 60 + 30) * 60_000);
    assert_eq!(ledger.exhausted_budget(&policy, guests, noon, ip("192.0.3.1")), None);
    assert_eq!(ledger.exhausted_budget(&policy, guests, later, ip("192.0.2.9")), None);
    ledger.charge(noon, ip("2001:db8::1"), 1_000_000_000_000);
    assert!(ledger.exhausted_budget(&policy, guests, noon, ip("192.0.3.1")).is_some(), "of all");
}

proptest! {
    #[test]
    fn no_text_makes_reading_a_policy_panic(text in "(\\PC|\n|=|\\[|\\]|\"){0,200}") {
        if let Err(said) = Policy::from_toml(&text) {
            prop_assert_eq!(said.lines().count(), 1);
        }
    }

    #[test]
    fn a_network_holds_exactly_the_addresses_that_share_its_first_bits(
        a in any::<u32>(), b in any::<u32>(), length in 0u32..=32,
    ) {
        let text = format!("{}/{length}", std::net::Ipv4Addr::from(a));
        let prefix: Prefix = text.parse().expect("a network");
        let shared = (a ^ b).leading_zeros() >= length;
        prop_assert_eq!(prefix.contains_address(std::net::Ipv4Addr::from(b).into()), shared);
    }

    #[test]
    fn what_a_rule_refuses_stays_refused_when_more_is_asked(
        bps in 1u64..1_000_000_000, more in 0u64..1_000_000_000,
        seconds in 1u64..100, longer in 0u64..100,
    ) {
        let of = |bps, seconds| {
            let act = test(TestKind::Tcp, Program::Http, Some(bps), seconds);
            !ask("192.0.2.7", None, "2026-12-31", act).1.is_empty()
        };
        prop_assert!(!of(bps, seconds) || of(bps + more, seconds + longer));
    }
}

#[test]
fn a_network_of_public_addresses_does_not_mean_the_special_ones_in_it() {
    let means = |network: &str, address: &str| {
        network.parse::<Prefix>().expect("a network").applies_to(ip(address))
    };
    for (network, address) in [
        ("0.0.0.0/0", "8.8.8.8"),
        ("::/0", "2606:4700::1"),
        ("10.0.0.0/8", "10.1.2.3"),
        ("127.0.0.1", "127.0.0.1"),
        ("198.51.100.0/24", "198.51.100.7"),
        ("224.0.0.0/4", "239.1.2.3"),
        ("fc00::/7", "fd00::1"),
        ("::1", "::1"),
    ] {
        assert!(means(network, address), "{network} {address}");
    }
    for (network, address) in [
        ("0.0.0.0/0", "10.1.2.3"),
        ("0.0.0.0/0", "127.0.0.1"),
        ("0.0.0.0/0", "169.254.169.254"),
        ("0.0.0.0/0", "255.255.255.255"),
        ("0.0.0.0/1", "10.1.2.3"),
        // 8.0.0.0 to 15.255.255.255 are public but for 10.0.0.0/8.
        ("8.0.0.0/5", "10.1.2.3"),
        ("128.0.0.0/1", "239.1.2.3"),
        ("::/0", "::1"),
        ("::/0", "fe80::1"),
        ("::/0", "ff02::1"),
        ("10.0.0.0/8", "11.0.0.1"),
        ("0.0.0.0/0", "::ffff:127.0.0.1"),
    ] {
        assert!(!means(network, address), "{network} {address}");
    }
}

#[test]
fn bytes_that_are_in_the_count_of_all_are_counted_to_a_client_once() {
    let mut ledger = Ledger::default();
    let now = day("2026-11-24");
    ledger.charge(now, ip("198.51.100.7"), 10);
    ledger.attribute(now, ip("192.0.2.1"), 10);
    assert_eq!(ledger.bytes_today(now, ip("192.0.2.2")), (10, 10));
}

#[test]
fn a_client_hears_all_limits_at_once() {
    let time = Some(std::time::Duration::from_secs(20));
    let (kind, program) = (TestKind::Tcp, Program::Linerate);
    let act = Act::Test { kind, program, rate_bps: None, time, streams: 9 };
    let (_, why) = ask("192.0.2.7", None, "2026-12-31", act);
    for limit in ["9 streams; the limit is 8", "20 s of sending; the limit is 15 s", "100 Mbit/s"] {
        assert!(why.contains(limit), "{why}");
    }
}

/// A rule as a review met it: 12 tests at once had 48 streams, 480 Mbit/s and 170 MB.
fn tight() -> Policy {
    let rule = "[[rule]]\nname = \"guests\"\nstreams = 4\nrate = \"50M\"\n\
                bytes_per_client_per_day = \"20 MB\"\n";
    Policy::from_toml(rule).expect("a policy")
}

fn reserve(ledger: &mut Ledger, client: &str, want: Want) -> Result<Reserved, String> {
    let policy = tight();
    let now = day("2026-12-31T12:00");
    let reserved = ledger.reserve(&policy, &policy.rules[0], now, ip(client), want);
    reserved.map_err(|exceeded| exceeded.join("; "))
}

#[test]
fn a_rule_holds_for_all_tests_of_a_client_together() {
    let mut ledger = Ledger::default();
    let want = |streams, mbps: u64, megabytes: u64| Want {
        streams,
        rate_bps: Some(mbps * 1_000_000),
        bytes: Some(megabytes * 1_000_000),
    };
    // Streams: 2 + 2 are 4, one more is refused.
    let first = reserve(&mut ledger, "192.0.2.1", want(2, 10, 1)).expect("2 of 4");
    let second = reserve(&mut ledger, "::ffff:192.0.2.1", want(2, 10, 1)).expect("4 of 4");
    let why = reserve(&mut ledger, "192.0.2.1", want(1, 1, 1)).expect_err("5 of 4");
    assert_eq!(why, "5 streams with this client's other tests; the limit is 4");
    assert!(reserve(&mut ledger, "192.0.2.2", want(4, 50, 1)).is_ok(), "another client");
    ledger.release(second);
    // Rate: 10 + 40 are 50.
    let third = reserve(&mut ledger, "192.0.2.1", want(2, 40, 1)).expect("50 of 50 Mbit/s");
    ledger.release(third);
    let why = reserve(&mut ledger, "192.0.2.1", want(1, 41, 1)).expect_err("51 of 50 Mbit/s");
    assert_eq!(why, "51 Mbit/s with this client's other tests; the limit is 50 Mbit/s");
    ledger.release(first);
    assert!(reserve(&mut ledger, "192.0.2.1", want(4, 50, 1)).is_ok(), "all was given back");
}

#[test]
fn bytes_that_a_test_may_move_are_reserved_and_what_is_unused_comes_back() {
    let mut ledger = Ledger::default();
    // 50 Mbit/s for 3 s are 18.75 MB.
    let want = |bytes| Want { streams: 1, rate_bps: Some(1), bytes: Some(bytes) };
    let first = reserve(&mut ledger, "192.0.2.1", want(18_750_000)).expect("of 20 MB");
    // The budget is of the network, whoever in it asks.
    let why = reserve(&mut ledger, "192.0.2.9", want(1_250_001)).expect_err("1.25 MB are left");
    assert!(why.contains("192.0.2.0/24 1.250 MB are left"), "{why}");
    let second = reserve(&mut ledger, "192.0.2.9", want(1_250_000)).expect("to the last byte");
    ledger.release(first);
    ledger.charge(day("2026-12-31T12:00"), ip("192.0.2.1"), 750_000);
    // 20 - 0.75 - 1.25 MB.
    assert!(reserve(&mut ledger, "192.0.2.1", want(18_000_001)).is_err());
    let third = reserve(&mut ledger, "192.0.2.1", want(18_000_000)).expect("18 MB are left");
    ledger.release(second);
    ledger.release(third);
    assert_eq!((ledger.in_use.len(), ledger.reserved.len(), ledger.reserved_all), (0, 0, 0));
}

#[test]
fn an_ipv6_client_is_its_64_bits_in_streams_rate_and_bytes() {
    let want = |streams, rate, bytes| Want { streams, rate_bps: Some(rate), bytes: Some(bytes) };
    let cases = [
        (want(4, 1, 1), want(1, 1, 1)),
        (want(1, 50_000_000, 1), want(1, 1, 1)),
        (want(1, 1, 20_000_000), want(1, 1, 1)),
    ];
    for (all, more) in cases {
        let mut ledger = Ledger::default();
        let _held = reserve(&mut ledger, "2001:db8:0:1::1", all).expect("nobody is there");
        // Any of 2^64 addresses is the same client, that of the next network is not.
        assert!(reserve(&mut ledger, "2001:db8:0:1:ffff::2", more).is_err(), "{all:?}");
        assert!(reserve(&mut ledger, "2001:db8:0:2::1", more).is_ok(), "{all:?}");
    }
    let mut ledger = Ledger::default();
    ledger.charge(day("2026-12-31T12:00"), ip("2001:db8:0:1::1"), 20_000_000);
    let why = reserve(&mut ledger, "2001:db8:0:1:2:3:4:5", want(1, 1, 1)).expect_err("moved");
    assert!(why.contains("of 2001:db8:0:1::/64 are used up"), "{why}");
}

#[test]
fn networks_beyond_the_table_s_bound_share_one_count() {
    let mut ledger = Ledger::default();
    let now = day("2026-12-31T12:00");
    for network in 0..70_000_u32 {
        ledger.charge(now, std::net::Ipv4Addr::from(0x0A00_0000 + (network << 8)).into(), 1);
    }
    // 65,536 have a count of their own (10.0.0.0 to 10.255.255.0), 4,464 one together.
    assert_eq!(ledger.bytes_today(now, ip("10.0.0.1")), (70_000, 1));
    assert_eq!(ledger.bytes_today(now, ip("11.0.0.1")), (70_000, 70_000 - 65_536));
    assert_eq!(ledger.bytes_today(now, ip("192.0.2.1")), (70_000, 70_000 - 65_536));
}
