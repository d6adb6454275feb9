//! The flags for probes beside a load, and how often these go where nobody says.

use std::str::FromStr;

use linerate_core::record::{Finish, PingTransport, ProbeKind, ProbePlan, ServerPlan};
use linerate_core::units::parse_dscp;

/// Probes per second where the load leaves room for them.
const PER_SECOND: f64 = 50.0;
/// Largest share of a load of known rate that probes may take.
const SHARE_MAX: f64 = 0.005;
/// Bits of a probe in an Ethernet frame: 44 bytes with the headers of UDP (8), IPv4 (20) and
/// Ethernet (18), preamble and gap (20).
const FRAME_BITS: f64 = 110.0 * 8.0;
/// Probes that a test of known length has room for in its record.
const COUNT_MAX: f64 = 60_000.0;
/// Probes before the load.
const IDLE_COUNT: u32 = 20;
/// Faster ones would be a load themselves.
const PER_SECOND_MAX: f64 = 1000.0;

/// Flags of tests that load a path.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct ProbeFlags {
    /// Probe the delay before and under load at this rate per second; off for none [default: 50, or
    /// 0.5 % of a load whose rate is known]
    #[arg(long, value_name = "RATE")]
    probes: Option<ProbeRate>,
    /// DSCP of the probes, 0 to 63 or a name; of several, as 0,46, each has probes of its own, and
    /// the first are those of the result [default: that of the load]
    #[arg(long, value_name = "N,...", value_delimiter = ',',
          value_parser = parse_dscp)]
    probe_dscp: Vec<u8>,
    /// Send probes with ECT(0) and with ECT(1) beside those without ECN, to see an L4S queue and
    /// the share that is marked each way
    #[arg(long)]
    probe_ecn: bool,
    /// Probe with new TCP connections too, ten per second, and report responsiveness as the IETF's
    /// draft computes it, without TLS
    #[arg(long)]
    rpm: bool,
}

/// Rate of the probes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum ProbeRate {
    Off,
    PerSecond(f64),
}

impl FromStr for ProbeRate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "off" {
            return Ok(Self::Off);
        }
        let rate = text.parse().ok().filter(|rate| (0.1..=PER_SECOND_MAX).contains(rate));
        let rate = rate.ok_or_else(|| "off, or probes per second from 0.1 to 1000".to_owned())?;
        Ok(Self::PerSecond(rate))
    }
}

impl ProbeFlags {
    /// The probes beside a load, whose rate in bit/s is known where something bounds it.
    pub(crate) fn probe_plan(
        &self,
        server: &ServerPlan,
        load_bps: Option<f64>,
        finish: Finish,
    ) -> Option<ProbePlan> {
        let told = server.known.as_ref().and_then(|known| known.capacity_bps);
        let told = told.map(|rate| rate.bits_per_sec() as f64);
        let load_bps = [load_bps, told].into_iter().flatten().reduce(f64::min);
        let per_second = match self.probes {
            Some(ProbeRate::Off) => return None,
            Some(ProbeRate::PerSecond(rate)) => rate,
            None => {
                let kinds = self.probe_dscp.len().max(1) + 2 * usize::from(self.probe_ecn);
                usual_rate(load_bps, finish) / kinds as f64
            }
        };
        let kind = |dscp: &u8| ProbeKind { dscp: Some(*dscp), ..ProbeKind::default() };
        let dscp = self.probe_dscp.first().copied();
        let handshakes = ProbeKind { transport: Some(PingTransport::Tcp), ..ProbeKind::default() };
        let mut beside: Vec<ProbeKind> = self.probe_dscp.iter().skip(1).map(kind).collect();
        if self.probe_ecn {
            // ECT(0) is 2 and ECT(1) is 1 (RFC 3168 §5).
            let transport = Some(PingTransport::Udp);
            beside.extend([2, 1].map(|ecn| ProbeKind { transport, dscp, ecn: Some(ecn) }));
        }
        // Another program would take a handshake for a client.
        beside.extend((self.rpm && server.via.is_none()).then_some(handshakes));
        Some(ProbePlan {
            interval_ns: (1e9 / per_second) as u64,
            idle_count: IDLE_COUNT,
            dscp,
            ecn: self.probe_ecn.then_some(0),
            beside,
            ..ProbePlan::default()
        })
    }
}

/// Probes per second of a load with this rate and end.
fn usual_rate(load_bps: Option<f64>, finish: Finish) -> f64 {
    let share = load_bps.map_or(PER_SECOND, |bps| SHARE_MAX * bps / FRAME_BITS);
    let room = match finish {
        Finish::TimeNs(ns) => COUNT_MAX / (ns as f64 / 1e9),
        Finish::Bytes(_) | Finish::Buffers(_) => PER_SECOND,
    };
    PER_SECOND.min(share).min(room).max(0.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_take_a_two_hundredth_of_a_known_load_and_fifty_a_second_at_most() {
        let ten_seconds = Finish::TimeNs(10_000_000_000);
        // 0.005 * 1,760,000 / 880 = 10.
        let cases = [(None, 50.0), (Some(100e6), 50.0), (Some(1.76e6), 10.0), (Some(1e3), 0.1)];
        for (load, expected) in cases {
            assert!((usual_rate(load, ten_seconds) - expected).abs() < 1e-9, "{load:?}");
        }
        // Two hours have room for 60,000 of them: 8.33 a second.
        let rate = usual_rate(None, Finish::TimeNs(7_200_000_000_000));
        assert!((rate - 60_000.0 / 7200.0).abs() < 1e-9, "{rate}");
    }

    #[test]
    fn a_rate_is_a_number_or_off() {
        assert_eq!("off".parse(), Ok(ProbeRate::Off));
        assert_eq!("12.5".parse(), Ok(ProbeRate::PerSecond(12.5)));
        for wrong in ["0", "1001", "-1", "on", "nan", ""] {
            assert!(wrong.parse::<ProbeRate>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_told_capacity_bounds_the_load() {
        let mut server = ServerPlan::default();
        let known = linerate_core::record::KnownPath {
            link: None,
            capacity_bps: "1760000".parse().ok(),
            source: "--capacity".to_owned(),
        };
        server.known = Some(known);
        let plan = ProbeFlags::default().probe_plan(&server, None, Finish::Bytes(1));
        assert_eq!(plan.map(|plan| plan.interval_ns), Some(100_000_000));
        let off = ProbeFlags { probes: Some(ProbeRate::Off), ..ProbeFlags::default() };
        assert_eq!(off.probe_plan(&server, None, Finish::Bytes(1)), None);
    }
}
