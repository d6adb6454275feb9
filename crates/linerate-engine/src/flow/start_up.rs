//! How long TCP's start takes: slow start doubles the window in each round trip (RFC 9438 §4.10,
//! RFC 5681 §3.1) from the initial window (RFC 6928 §2) to what the path takes. A rate over a span
//! with the start in it is less than the path carries.
//!
//! Left out: what the kernel ends slow start early for (HyStart), and how it recovers from the loss
//! that ended it.

use linerate_core::record::{Caveat, CaveatCode, Direction, Finish, FlowEnd, Record, TcpPlan};

/// Ten segments of an Ethernet path with timestamps (RFC 6928 §2): 10 × 1448 bytes.
const INITIAL_WINDOW_BYTES: u64 = 14_480;
/// The start weighs when it takes more of the measured time than this.
const START_UP_RATIO: f64 = 0.10;

/// Round trips from the `initial` window to `window_bytes` when it doubles in each.
pub(crate) fn rounds(window_bytes: u64, initial: u64) -> f64 {
    (window_bytes.max(1) as f64 / initial.max(1) as f64).log2().max(0.0)
}

/// Time from the first byte until a window is reached, in ns, with two round trips for the first
/// flight and what acknowledgements are delayed.
pub(crate) fn start_up_ns(rtt_ns: u64, window_bytes: u64) -> u64 {
    (rtt_ns as f64 * (rounds(window_bytes, INITIAL_WINDOW_BYTES).ceil() + 2.0)) as u64
}

/// The start of a test by time, where its measured span has much of it.
pub(super) fn caveat(record: &Record, plan: &TcpPlan) -> Option<Caveat> {
    let Finish::TimeNs(span_ns) = plan.test.finish else { return None };
    let of_flow = |flow: &linerate_core::record::Flow| {
        flow.sender.as_ref().and_then(slow_start_ns).map(|ns| (ns, flow.direction))
    };
    let (took_ns, way) = record.flows.iter().filter_map(of_flow).max_by_key(|(ns, _)| *ns)?;
    let inside_ns = took_ns.saturating_sub(plan.test.omit_ns);
    (inside_ns as f64 > span_ns as f64 * START_UP_RATIO).then(|| {
        let way = if way == Direction::Up { "up" } else { "down" };
        let (inside, span) = (inside_ns as f64 / 1e9, span_ns as f64 / 1e9);
        Caveat::new(
            CaveatCode::ShortRun,
            format!("the result {way} includes slow start, about {inside:.1} of its {span:.1} s"),
            format!("measure longer (-t), or omit it with -O {:.1}s", took_ns as f64 / 1e9),
        )
    })
}

/// The time that a sender's slow start took, in ns, from its first window and its last.
fn slow_start_ns(end: &FlowEnd) -> Option<u64> {
    let info = end.tcp_info?;
    let initial = u64::from(end.initial_window_segments?) * u64::from(info.snd_mss_bytes?);
    let rtt_ns = f64::from(info.min_rtt_us?) * 1000.0;
    Some((rtt_ns * rounds(info.cwnd_bytes()?, initial)) as u64)
}

#[cfg(test)]
mod tests {
    use linerate_core::record::{Flow, Plan, RecordId, TcpInfo, TcpTest, Tool};
    use linerate_core::time::WallTime;

    use super::*;

    #[test]
    fn a_window_is_reached_by_doubling() {
        // 14,480 bytes doubled eight times are 3.7 MB: at 40 ms, 8 + 2 round trips are 0.4 s.
        assert_eq!(start_up_ns(40_000_000, 14_480 << 8), 400_000_000);
        assert_eq!(start_up_ns(40_000_000, 1000), 80_000_000);
        assert!((rounds(64, 1) - 6.0).abs() < 1e-12);
    }

    fn caveat_for_test(
        rtt_us: u32,
        cwnd_segments: u32,
        span_s: u64,
        omit_s: u64,
    ) -> Option<Caveat> {
        let tool = Tool { name: "linerate".to_owned(), version: "test".to_owned() };
        let finish = Finish::TimeNs(span_s * 1_000_000_000);
        let plan = TcpPlan {
            test: TcpTest { finish, omit_ns: omit_s * 1_000_000_000, ..TcpTest::default() },
            ..TcpPlan::default()
        };
        let id = RecordId::from_parts(0, [0; 10]);
        let wall = WallTime::from_unix_nanos(0);
        let mut record = Record::from_plan(id, tool, Plan::Tcp(plan.clone()), wall);
        let info = TcpInfo {
            min_rtt_us: Some(rtt_us),
            snd_cwnd: Some(cwnd_segments),
            snd_mss_bytes: Some(1448),
            ..TcpInfo::default()
        };
        let sender = FlowEnd {
            tcp_info: Some(info),
            initial_window_segments: Some(10),
            ..FlowEnd::default()
        };
        record.flows = vec![Flow {
            flow: 0,
            direction: Direction::Up,
            client_addr: String::new(),
            server_addr: String::new(),
            sender: Some(sender),
            receiver: None,
            syn: None,
        }];
        caveat(&record, &plan)
    }

    #[test]
    fn a_result_with_much_of_slow_start_in_it_says_so() {
        // From 10 to 640 segments in six round trips of 40 ms: 0.24 of 1 s.
        let caveat = caveat_for_test(40_000, 640, 1, 0).expect("24 %");
        assert!(caveat.detail.ends_with("slow start, about 0.2 of its 1.0 s"), "{caveat}");
        assert_eq!(caveat_for_test(40_000, 640, 1, 1), None, "left out");
        assert_eq!(caveat_for_test(40_000, 640, 10, 0), None, "2.4 %");
        assert_eq!(caveat_for_test(100, 640, 1, 0), None, "no way to speak of");
        assert_eq!(caveat_for_test(300_000, 10, 1, 0), None, "the window did not grow");
        assert!(caveat_for_test(300_000, 5120, 10, 0).is_some(), "nine round trips of 0.3 s");
    }
}
