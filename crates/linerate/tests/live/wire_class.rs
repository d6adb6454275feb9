//! Traffic class and flow label as they are on the wire: counted by nft, in a network namespace of
//! its own.

use crate::support;
use std::process::Command;

/// Runs a script of sh with `$P` as the program, root in a namespace of its own with loopback up;
/// its output, or none with the reason printed.
#[allow(clippy::print_stdout, reason = "a skipped test says so")]
fn in_own_namespace(script: &str) -> Option<String> {
    support::turn::take();
    let usable = "nft add table inet t && ip link set lo up";
    let run = |script: &str| {
        let mut unshare = Command::new("unshare");
        unshare.args(["-rn", "sh", "-ec", script]).env("P", env!("CARGO_BIN_EXE_linerate"));
        unshare.output()
    };
    match run(usable) {
        Ok(output) if output.status.success() => {}
        Ok(output) => {
            println!("skipped: {}", support::stderr(&output).trim_end());
            return None;
        }
        Err(reason) => {
            println!("skipped: unshare: {reason}");
            return None;
        }
    }
    let output = run(&format!("{usable}\n{script}")).expect("it ran before");
    assert!(output.status.success(), "{script}: {}", support::stderr(&output));
    Some(support::stdout(&output))
}

/// Packets of the counters `each` and `right`.
fn counted(text: &str) -> [u64; 2] {
    ["each", "right"].map(|name| {
        let (_, rest) = text.split_once(&format!("counter {name} {{")).expect("a counter");
        let (_, packets) = rest.split_once("packets ").expect("its packets");
        packets.split_whitespace().next().and_then(|it| it.parse().ok()).expect("a number")
    })
}

/// Counts packets that match `all`, and of them those with `right`, before the script.
fn counters(all: &str, right: &str) -> String {
    format!(
        "nft add counter inet t each; nft add counter inet t right
         nft add chain inet t c '{{ type filter hook output priority 0; }}'
         nft add rule inet t c {all} counter name each
         nft add rule inet t c {all} {right} counter name right"
    )
}

#[test]
fn the_server_sends_every_data_packet_of_reverse_in_the_class_asked_for() {
    // Traffic class 46 << 2 = 0xb8: octet 1 of IPv4, bits 4 to 11 of IPv6. ECN bits are TCP's.
    let cases = [
        ("127.0.0.1", "meta nfproto ipv4", "ip dscp 46"),
        ("::1", "meta nfproto ipv6", "ip6 dscp 46"),
    ];
    for (host, family, class) in cases {
        // Messages of the control connection come from that port, too, and are shorter.
        // Datagrams of a test come from a port of its own.
        // Without a pace TCP fills whole super-packets; with one they may be as short as a message.
        let sent =
            [("tcp", "tcp sport 5210 meta length gt 30000"), ("udp -b 200M", "meta l4proto udp")];
        for (command, sent) in sent {
            let all = format!("{family} {sent} meta length gt 500");
            let script = format!(
                "{}
                 $P serve --foreign none --stamp-port none 2>/dev/null & server=$!
                 for i in 1 2 3 4 5 6 7 8 9 10; do
                   $P {command} -R {host} --dscp 46 -t 300ms --no-save -q >/dev/null && break
                   sleep 0.2
                 done
                 kill $server; nft list counters",
                counters(&all, class)
            );
            let Some(text) = in_own_namespace(&script) else { return };
            let [all, right] = counted(&text);
            assert!(all > 10 && all == right, "{command} {host}: {all} packets, {right} in class");
        }
    }
}

#[test]
fn probes_of_ipv6_have_their_whole_traffic_class_and_label() {
    // Bits 4 to 11 of the header are the class: DSCP 46 and ECT(1) make 0xb9.
    let right = "@nh,4,8 0xb9 ip6 flowlabel 0x12345";
    let flags = "--dscp 46 --ecn ect1 --flow-label 0x12345 -c 5 -i 10ms --no-save -q";
    let echo = "icmpv6 type echo-request";
    let script =
        format!("{}\n$P ping ::1 {flags} >/dev/null; nft list counters", counters(echo, right));
    let Some(text) = in_own_namespace(&script) else { return };
    // Five probes and two that warm up.
    assert_eq!(counted(&text), [7, 7], "{text}");
    let stamp = "udp dport 8620";
    let script = format!(
        "{}
         $P serve --foreign none --stamp-port 8620 2>/dev/null & server=$!
         for i in 1 2 3 4 5 6 7 8 9 10; do
           nft reset counters >/dev/null
           $P stamp ::1 -p 8620 {flags} >/dev/null && break
           sleep 0.2
         done
         kill $server; nft list counters",
        counters(stamp, right)
    );
    let Some(text) = in_own_namespace(&script) else { return };
    let [all, right] = counted(&text);
    assert!(all >= 7 && all == right, "{all} packets, {right} with class and label");
}
