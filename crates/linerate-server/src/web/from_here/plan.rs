//! From what a client wants to plans, as the commands of the same names have them.

use linerate_core::record::{
    Direction, Finish, PingPlan, Plan, ProbePlan, ServerPlan, TcpDirections, TcpPlan, TcpTest,
    TestPlan, TracePlan, UdpPlan, UdpTest,
};
use linerate_core::units::BitRate;

use super::kind::{MeasureKind, WINDOWS_BYTES};
use super::target::MeasureTarget;

/// Between two probes of a ping: ten a second are shown.
const PROBES_EVERY_NS: u64 = 100_000_000;
/// Between two lines of a test that sends: five a second, each way.
const INTERVAL_NS: u64 = 200_000_000;
/// Rounds of a trace are that far from each other.
const ROUNDS_EVERY_NS: u64 = 500_000_000;
/// Probes beside a load: 50 a second, and before it.
const PROBES: (u64, u32) = (20_000_000, 20);
/// Most probes of each size in a survey.
const SURVEY_PROBES: u64 = 1000;
const SECOND_NS: u64 = 1_000_000_000;

/// A measurement from this server as it was asked for, lowered to the limits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub(super) kind: MeasureKind,
    /// Seconds of each test of a sweep, or of the one test.
    pub(super) seconds: u64,
    /// `Up` is from this server to the target.
    pub(super) direction: Direction,
    pub(super) streams: u16,
    /// Rate of all streams together, bit/s; none for as fast as possible.
    pub(super) rate_bps: Option<u64>,
}

impl Wanted {
    /// Windows of a sweep; none of another test.
    pub(super) const fn windows(&self) -> &'static [u64] {
        if matches!(self.kind, MeasureKind::Sweep) { &WINDOWS_BYTES } else { &[] }
    }

    /// Plans of the measurements, in the order in which they run.
    pub(super) fn measurement_plans(&self, target: &MeasureTarget) -> Vec<Plan> {
        let server = ServerPlan::new(None, target.address.to_string(), target.port);
        match self.kind {
            MeasureKind::Ping => vec![Plan::Ping(PingPlan {
                host: target.address.to_string(),
                count: Some(self.seconds * SECOND_NS / PROBES_EVERY_NS),
                interval_ns: PROBES_EVERY_NS,
                keep_samples: true,
                ..PingPlan::default()
            })],
            MeasureKind::Trace => vec![Plan::Trace(TracePlan {
                host: target.address.to_string(),
                count: u32::try_from(self.seconds * SECOND_NS / ROUNDS_EVERY_NS).unwrap_or(1),
                interval_ns: ROUNDS_EVERY_NS,
                ..TracePlan::default()
            })],
            MeasureKind::Udp => vec![Plan::Udp(UdpPlan {
                server: with_probes(server),
                test: UdpTest {
                    directions: self.directions(),
                    streams: self.streams,
                    finish: Finish::TimeNs(self.seconds * SECOND_NS),
                    interval_ns: INTERVAL_NS,
                    pace: self.stream_rate(),
                    ..UdpTest::default()
                },
                cpu: None,
            })],
            MeasureKind::Test => vec![Plan::Test(TestPlan {
                server: with_probes(server),
                tcp_time_ns: None,
                congestion_control: None,
                ping_count: SURVEY_PROBES,
                within_ns: Some(self.seconds * SECOND_NS),
                goal: None,
            })],
            MeasureKind::Tcp => vec![self.tcp_plan(with_probes(server), None)],
            MeasureKind::Sweep => {
                let one = |window: &u64| self.tcp_plan(server.clone(), Some(*window));
                WINDOWS_BYTES.iter().map(one).collect()
            }
        }
    }

    fn tcp_plan(&self, server: ServerPlan, window_bytes: Option<u64>) -> Plan {
        let test = TcpTest {
            directions: self.directions(),
            streams: self.streams,
            finish: Finish::TimeNs(self.seconds * SECOND_NS),
            interval_ns: INTERVAL_NS,
            window_bytes,
            pace: self.stream_rate(),
            ..TcpTest::default()
        };
        Plan::Tcp(TcpPlan { server, test, fast: false })
    }

    const fn directions(&self) -> TcpDirections {
        match self.direction {
            Direction::Up => TcpDirections::Up,
            Direction::Down => TcpDirections::Down,
        }
    }

    /// Rate of each stream.
    fn stream_rate(&self) -> Option<BitRate> {
        let each = |all: u64| BitRate::from_bits_per_sec((all / u64::from(self.streams)).max(1));
        self.rate_bps.map(each)
    }
}

fn with_probes(server: ServerPlan) -> ServerPlan {
    let (interval_ns, idle_count) = PROBES;
    let probes = ProbePlan { interval_ns, idle_count, ..ProbePlan::default() };
    ServerPlan { probes: Some(probes), ..server }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_s_rate_is_kept_by_all_streams_together() {
        let rate_bps = MeasureKind::Tcp.effective_rate(None, Some(100));
        let (kind, seconds, direction, streams) = (MeasureKind::Tcp, 1, Direction::Up, 4);
        let wanted = Wanted { kind, seconds, direction, streams, rate_bps };
        assert_eq!(wanted.stream_rate(), Some(BitRate::from_bits_per_sec(25)));
        assert_eq!(MeasureKind::Udp.effective_rate(None, None), Some(1_000_000));
        assert_eq!(MeasureKind::Udp.effective_rate(None, Some(5)), Some(5));
        // More than is allowed is for the policy to refuse, not to be cut in silence.
        assert_eq!(MeasureKind::Udp.effective_rate(Some(9), Some(5)), Some(9));
        assert_eq!(MeasureKind::Test.effective_rate(Some(9), Some(5)), None);
    }
}
