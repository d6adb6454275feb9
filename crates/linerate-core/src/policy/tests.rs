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
    WallTime::named(text, WallTime::from_unix_nanos(0)).expect("a time")
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
    let decision = policy.decide(&Ask { from: ip(from), token, now: day(now), act });
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
    let decision = policy.decide(&Ask { from: ip("192.0.2.1"), token: None, now, act });
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
    assert_eq!(ledger.spent(&policy, guests, noon, ip("192.0.2.9")), None);
    ledger.charge(noon, ip("192.0.2.77"), 1);
    let spent = ledger.spent(&policy, guests, noon, ip("192.0.2.9")).expect("10^9 bytes");
    assert!(spent.say.contains("192.0.2.0/24"), "{}", spent.say);
    // 11 h 30 min until midnight.
    assert!(spent.say.ends_with("renews at 00:00 UTC, in 11 h 30 min"), "{}", spent.say);
    assert_eq!(spent.renews_ms, (11 * 60 + 30) * 60_000);
    assert_eq!(ledger.spent(&policy, guests, noon, ip("192.0.3.1")), None);
    assert_eq!(ledger.spent(&policy, guests, later, ip("192.0.2.9")), None);
    ledger.charge(noon, ip("2001:db8::1"), 1_000_000_000_000);
    assert!(ledger.spent(&policy, guests, noon, ip("192.0.3.1")).is_some(), "of all");
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
        prop_assert_eq!(prefix.holds(std::net::Ipv4Addr::from(b).into()), shared);
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
        network.parse::<Prefix>().expect("a network").means(ip(address))
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
    assert_eq!(ledger.today(now, ip("192.0.2.2")), (10, 10));
}
