//! Any text as a trace of Mahimahi: no panic, an error of one line, and a link that follows the
//! trace and begins it again.

use linerate_core::path::{Ecn, Element, Limit, Outlet, Packet, TailDrop, Trace, TraceLink};
use linerate_core::time::MonoTime;

/// Runs the entry.
pub(crate) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let trace = match Trace::from_text(text) {
        Ok(trace) => trace,
        Err(error) => return assert!(!error.to_string().contains('\n')),
    };
    assert!(trace.mean_bps().is_finite() && trace.length_ms() > 0);
    let mut link = TraceLink::new(trace, TailDrop::new(Limit::Packets(9)), MonoTime::from_nanos(0));
    let mut out = Outlet::default();
    let packet = Packet {
        number: 0,
        ip_bytes: 1500,
        flow: 0,
        hosts: [0; 2],
        ecn: Ecn::NotCapable,
        dont_fragment: true,
        corrupted: false,
        tag: 0,
    };
    let mut now = MonoTime::from_nanos(0);
    for _ in 0..3 {
        link.receive(now, packet, &mut out);
        let Some(next) = link.next() else { break };
        assert!(next >= now);
        now = next;
        link.release(now, &mut out);
    }
}
