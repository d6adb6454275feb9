//! Any text as a template of psConfig: no panic, an error of one line, and a plan that the reader
//! of plans takes.

use std::net::IpAddr;

use linerate_core::mesh::{MeshPlan, from_psconfig};
use linerate_core::record::IpFamily;

/// Runs the entry.
pub(crate) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let lookup = |host: &str, family: Option<IpFamily>| -> Option<IpAddr> {
        match (host.len() % 3, family) {
            (0, _) => None,
            (_, Some(IpFamily::V6)) => "2001:db8::2".parse().ok(),
            _ => "192.0.2.2".parse().ok(),
        }
    };
    match from_psconfig(text, "m", &lookup) {
        Ok(imported) => {
            assert!(imported.notes.iter().all(|note| !note.contains('\n')));
            let plan = MeshPlan::from_toml(&imported.plan);
            assert!(plan.is_ok(), "{plan:?}\n{}", imported.plan);
        }
        Err(error) => assert!(!error.contains('\n'), "{error}"),
    }
}
