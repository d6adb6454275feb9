//! From what a client wants to plans, as the commands of the same names have them.

use linerate_core::record::{
    Direction, Finish, PingPlan, Plan, ProbePlan, ServerPlan, TcpDirections, TcpPlan, TcpTest,
    TestPlan, TracePlan, UdpPlan, UdpTest,
};
use linerate_core::units::BitRate;

use super::kind::{Kind, WINDOWS_BYTES};
use super::target::Target;

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
    pub(super) kind: Kind,
    /// Seconds of each test of a sweep, or of the one test.
    pub(super) seconds: u64,
    /// `Up` is from this server to the target.
    pub(super) direction: Direction,
    pub(super) streams: u16,
    /// All streams together.
    pub(super) rate_bps: Option<u64>,
}

impl Wanted {
    /// Windows of a sweep; none of another test.
    pub(super) const fn windows(&self) -> &'static [u64] {
        if matches!(self.kind, Kind::Sweep) { &WINDOWS_BYTES } else { &[] }
    }

    /// Plans of the measurements, in the order in which they run.
    pub(super) fn plans(&self, target: &Target) -> Vec<Plan> {
        let server = ServerPlan::new(None, target.address.to_string(), target.port);
        match self.kind {
            Kind::Ping => vec![Plan::Ping(PingPlan {
                host: target.address.to_string(),
                count: Some(self.seconds * SECOND_NS / PROBES_EVERY_NS),
                interval_ns: PROBES_EVERY_NS,
                keep_samples: true,
                ..PingPlan::default()
            })],
            Kind::Trace => vec![Plan::Trace(TracePlan {
                host: target.address.to_string(),
                count: u32::try_from(self.seconds * SECOND_NS / ROUNDS_EVERY_NS).unwrap_or(1),
                interval_ns: ROUNDS_EVERY_NS,
                ..TracePlan::default()
            })],
            Kind::Udp => vec![Plan::Udp(UdpPlan {
                server: with_probes(server),
                test: UdpTest {
                    directions: self.directions(),
                    streams: self.streams,
                    finish: Finish::TimeNs(self.seconds * SECOND_NS),
                    interval_ns: INTERVAL_NS,
                    pace: self.pace(),
                    ..UdpTest::default()
                },
                cpu: None,
            })],
            Kind::Test => vec![Plan::Test(TestPlan {
                server: with_probes(server),
                tcp_time_ns: None,
                congestion_control: None,
                ping_count: SURVEY_PROBES,
                within_ns: Some(self.seconds * SECOND_NS),
                goal: None,
            })],
            Kind::Tcp => vec![self.tcp(with_probes(server), None)],
            Kind::Sweep => {
                let one = |window: &u64| self.tcp(server.clone(), Some(*window));
                WINDOWS_BYTES.iter().map(one).collect()
            }
        }
    }

    fn tcp(&self, server: ServerPlan, window_bytes: Option<u64>) -> Plan {
        let test = TcpTest {
            directions: self.directions(),
            streams: self.streams,
            finish: Finish::TimeNs(self.seconds * SECOND_NS),
            interval_ns: INTERVAL_NS,
            window_bytes,
            pace: self.pace(),
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
    fn pace(&self) -> Option<BitRate> {
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
        let rate_bps = Kind::Tcp.rate(None, Some(100));
        let (kind, seconds, direction, streams) = (Kind::Tcp, 1, Direction::Up, 4);
        let wanted = Wanted { kind, seconds, direction, streams, rate_bps };
        assert_eq!(wanted.pace(), Some(BitRate::from_bits_per_sec(25)));
        assert_eq!(Kind::Udp.rate(None, None), Some(1_000_000));
        assert_eq!(Kind::Udp.rate(None, Some(5)), Some(5));
        // More than is allowed is for the policy to refuse, not to be cut in silence.
        assert_eq!(Kind::Udp.rate(Some(9), Some(5)), Some(9));
        assert_eq!(Kind::Test.rate(Some(9), Some(5)), None);
    }
}
