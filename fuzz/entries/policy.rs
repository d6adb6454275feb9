//! Any text as a server's policy: no panic, an error of one line, and a policy that answers every
//! client.

use std::net::IpAddr;

use linerate_core::policy::{Act, Policy, PolicyRequest, parse_digest};
use linerate_core::time::WallTime;

/// Runs the entry.
pub(crate) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Err(error) = parse_digest(text) {
        assert!(!error.contains('\n'));
    }
    let policy = match Policy::from_toml(text) {
        Ok(policy) => policy,
        Err(error) => return assert!(!error.contains('\n'), "{error}"),
    };
    for from in ["10.1.2.3", "fd00::1", "::ffff:192.0.2.1"] {
        let from: IpAddr = from.parse().expect("an address");
        for act in [Act::Results, Act::MeasureTo(from)] {
            let now = WallTime::from_unix_nanos(1_800_000_000_000_000_000);
            let ask = PolicyRequest { from, token: None, now, act };
            let decision = policy.decide(&ask);
            assert!(decision.rule.is_some() || decision.refused.is_some());
        }
    }
}
