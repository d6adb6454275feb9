//! Filter rules of a router: loaded by the program `nft` in batches, then counted.
//!
//! Each rule drops UDP from an address of the documentation networks (RFC 5737) to one port, which
//! no laboratory sends, so every forwarded packet is held against all rules and passes. The chain
//! accepts by default. Rules are not made into sets unless the plan asks for one: the study's
//! routers walked lists.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::ops::Range;
use std::process::{Command, Output, Stdio};

use linerate_core::lab::FilterShape;
use linerate_core::record::{Failure, Fault};
use linerate_sys::child;
use linerate_sys::netns::Netns;

use super::system;
use crate::netns::run_inside;

/// Where distributions put it, beyond the PATH of plain users.
const PROGRAMS: [&str; 3] = ["nft", "/usr/sbin/nft", "/sbin/nft"];
/// Hosts of a /24.
const HOSTS: u32 = 254;
/// Rules of one transaction, about 100 KB of netlink messages. nft sends a transaction whole,
/// and without privilege outside its user namespace it keeps the default send buffer, 208 KiB on
/// most hosts (net.core.wmem_default). nftables 1.0.6 failed so with 1000 rules (EMSGSIZE).
const RULES_AT_ONCE: u32 = 250;

/// Loads `count` rules into a namespace and checks that they are there.
pub(super) fn load_rules(
    netns: &Netns,
    router: &str,
    count: u32,
    shape: FilterShape,
) -> Result<(), Failure> {
    let listing = run_inside(netns, router, || {
        for first in (0..count).step_by(RULES_AT_ONCE as usize) {
            let rules = first..count.min(first + RULES_AT_ONCE);
            run_nft(router, &["-f", "-"], &rule_batch(shape, rules))?;
        }
        run_nft(router, &["list", "table", "inet", "linerate"], "")
    })??;
    let loaded = match shape {
        FilterShape::Rules => {
            listing.lines().filter(|line| line.trim_end().ends_with(" drop")).count()
        }
        // Elements are `address . port`; nothing else in the table has that dot between blanks but
        // the types and the rule, which have no digit before it.
        FilterShape::Set => listing
            .match_indices(" . ")
            .filter(|(at, _)| listing[..*at].ends_with(|before: char| before.is_ascii_digit()))
            .count(),
    };
    if loaded == count as usize {
        return Ok(());
    }
    let reason = format!("the kernel holds {loaded} of {count} rules");
    Err(system("load filters of", router, reason))
}

/// Some of the rules as one transaction, added to those that are there.
fn rule_batch(shape: FilterShape, rules: Range<u32>) -> String {
    match shape {
        FilterShape::Rules => list_batch(rules),
        FilterShape::Set => set_batch(rules),
    }
}

fn list_batch(rules: Range<u32>) -> String {
    let mut text = String::from("table inet linerate {\n chain forward {\n");
    text.push_str("  type filter hook forward priority filter; policy accept;\n");
    for index in rules {
        let (address, port) = denied(index);
        let _ = writeln!(text, "  ip saddr {address} udp dport {port} drop");
    }
    text.push_str(" }\n}\n");
    text
}

/// The one rule comes with the first elements.
fn set_batch(rules: Range<u32>) -> String {
    let mut text = String::from("table inet linerate {\n set denied {\n");
    text.push_str("  type ipv4_addr . inet_service;\n  elements = {");
    let rule = rules.start == 0;
    for index in rules {
        let (address, port) = denied(index);
        let _ = write!(text, " {address} . {port},");
    }
    text.push_str(" }\n }\n");
    if rule {
        text.push_str(" chain forward {\n");
        text.push_str("  type filter hook forward priority filter; policy accept;\n");
        text.push_str("  ip saddr . udp dport @denied drop\n }\n");
    }
    text.push_str("}\n");
    text
}

/// The address and the port that a rule drops.
fn denied(index: u32) -> (String, u32) {
    let network = if index.is_multiple_of(2) { "198.51.100" } else { "203.0.113" };
    let host = index / 2 % HOSTS + 1;
    let port = index / (2 * HOSTS) + 1;
    (format!("{network}.{host}"), port)
}

/// Runs nft in the calling thread's namespace and returns what it printed.
fn run_nft(router: &str, arguments: &[&str], input: &str) -> Result<String, Failure> {
    let failed = |reason: &dyn std::fmt::Display| system("load filters of", router, reason);
    for program in PROGRAMS {
        match run(program, arguments, input) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(&format!("run {program}: {error}"))),
            Ok(output) if output.status.success() => {
                return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
            }
            Ok(output) => {
                let text = String::from_utf8_lossy(&output.stderr);
                let reason = text.lines().next().unwrap_or("no message").to_owned();
                return Err(failed(&format!("nft says: {reason}"))
                    .advise("the kernel may lack nf_tables (CONFIG_NF_TABLES_INET)"));
            }
        }
    }
    Err(Failure::new(Fault::System, "load filters of", router, "the program nft is not installed")
        .advise("apt install nftables"))
}

fn run(program: &str, arguments: &[&str], input: &str) -> io::Result<Output> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut nft = child::die_with_parent(&mut command).spawn()?;
    let written = nft.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(input.as_bytes()));
    let output = nft.wait_with_output()?;
    // A program that ended early says why on its standard error, which tells more than EPIPE.
    if output.status.success() { written.map(|()| output) } else { Ok(output) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ten_thousand_rules_differ_and_stay_in_the_documentation_networks() {
        let text = rule_batch(FilterShape::Rules, 0..10_000);
        let rules: BTreeSet<&str> = text.lines().filter(|line| line.ends_with(" drop")).collect();
        assert_eq!(rules.len(), 10_000);
        let inside = |rule: &&str| rule.contains(" 198.51.100.") || rule.contains(" 203.0.113.");
        assert!(rules.iter().all(inside));
        assert!(text.contains("ip saddr 198.51.100.254 udp dport 1 drop"));
        assert!(!text.contains(".255 ") && !text.contains(".0 "));
    }

    #[test]
    fn a_set_holds_the_same_addresses_and_ports_and_has_one_rule() {
        let text = rule_batch(FilterShape::Set, 0..250) + &rule_batch(FilterShape::Set, 250..1000);
        assert_eq!(text.matches(" drop\n").count(), 1);
        let list = rule_batch(FilterShape::Rules, 0..1000);
        for rule in list.lines().filter_map(|line| line.trim().strip_prefix("ip saddr ")) {
            let element = rule.replace(" udp dport ", " . ").replace(" drop", ",");
            assert!(text.contains(&element), "{element}");
        }
    }
}
