//! The examination of a path: round trips by size, TCP by window and by streams, both ways. A
//! fixed list of plans, each measured by its own engine; the conclusions are the report's.

use std::time::Duration;

use linerate_core::record::{
    Family, Fault, Finish, PingMode, PingPlan, PingTransport, Plan, Record, TcpDirections, TcpPlan,
};

use crate::context::Context;
use crate::{datagram, rtt, throughput};

/// What to examine, and how thoroughly.
#[derive(Clone, Debug, PartialEq)]
pub struct Examination {
    /// Name or address of a host that runs `linerate serve`.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Only this address family.
    pub family: Option<Family>,
    /// Time of each TCP test.
    pub tcp_time: Duration,
    /// Congestion control of the senders; null is each host's default.
    pub congestion_control: Option<String>,
    /// Probes of each size.
    pub ping_count: u64,
}

/// Ping payloads: those of the PREN study of 2000, without the one that fragments at 1500.
pub const SIZES_BYTES: [u32; 5] = [56, 250, 500, 1024, 1460];

/// Windows: those of the PREN study of 2000, and larger ones up to today's defaults.
pub const WINDOWS_BYTES: [u64; 6] = [16 << 10, 32 << 10, 64 << 10, 128 << 10, 512 << 10, 2 << 20];

/// Streams with the kernel's own window.
pub const STREAMS: [u16; 3] = [1, 2, 4];

impl Examination {
    /// Every measurement, in order.
    pub fn plans(&self) -> Vec<Plan> {
        let mut plans = vec![Plan::Ping(self.ping(PingTransport::Icmp))];
        let directions = [TcpDirections::Up, TcpDirections::Down];
        for window in WINDOWS_BYTES {
            let plans_both = directions.map(|directions| {
                self.tcp(directions, TcpPlan { window_bytes: Some(window), ..TcpPlan::default() })
            });
            plans.extend(plans_both.map(Plan::Tcp));
        }
        for streams in STREAMS {
            let plans_both = directions
                .map(|directions| self.tcp(directions, TcpPlan { streams, ..TcpPlan::default() }));
            plans.extend(plans_both.map(Plan::Tcp));
        }
        plans
    }

    fn ping(&self, transport: PingTransport) -> PingPlan {
        PingPlan {
            host: self.host.clone(),
            transport,
            port: self.port,
            family: self.family,
            sizes_bytes: SIZES_BYTES.to_vec(),
            count: Some(self.ping_count),
            mode: PingMode::Flood,
            kernel_stamps: false,
            ..PingPlan::default()
        }
    }

    fn tcp(&self, directions: TcpDirections, base: TcpPlan) -> TcpPlan {
        let span_ns = u64::try_from(self.tcp_time.as_nanos()).unwrap_or(u64::MAX);
        TcpPlan {
            host: self.host.clone(),
            port: self.port,
            family: self.family,
            directions,
            finish: Finish::TimeNs(span_ns),
            interval_ns: (span_ns / 10).max(100_000_000),
            congestion_control: self.congestion_control.clone(),
            ..base
        }
    }

    /// Measures everything in order; `done` is told of each record with its number. Ends at the
    /// first failure that the rest would share, or when stopped.
    pub fn run(
        &self,
        context: &mut Context<'_>,
        done: &mut dyn FnMut(usize, &Record),
    ) -> Vec<Record> {
        let mut records = Vec::new();
        for plan in self.plans() {
            let mut record = match &plan {
                Plan::Ping(plan) => self.ping_either_way(plan, context),
                Plan::Tcp(plan) => throughput::run(plan, context),
                Plan::Udp(plan) => datagram::run(plan, context),
                Plan::Simulate(plan) => crate::simulate::run(plan, context),
                Plan::Bench(plan) => crate::bench::run(plan, &crate::bench::Here, context),
            };
            // What limits a path must be found on it, also where a laboratory could tell.
            throughput::see(&mut record, throughput::Sight::Ends);
            let hopeless = record.failure.as_ref().is_some_and(|failure| {
                !matches!(plan, Plan::Ping(_)) || failure.fault == Fault::Usage
            });
            done(records.len() + 1, &record);
            records.push(record);
            if hopeless || context.stop.asked() {
                break;
            }
        }
        records
    }

    /// ICMP where this user may and the peer answers, UDP echo otherwise.
    fn ping_either_way(&self, plan: &PingPlan, context: &mut Context<'_>) -> Record {
        let record = rtt::run(plan, context);
        let failed = record.failure.as_ref().is_some_and(|failure| failure.fault != Fault::Usage);
        if failed && !context.stop.asked() {
            let udp = rtt::run(&self.ping(PingTransport::Udp), context);
            if udp.failure.is_none() {
                return udp;
            }
        }
        record
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_examination_is_one_ping_and_both_directions_of_every_window_and_stream_count() {
        let examination = Examination {
            host: "192.0.2.1".to_owned(),
            port: 5210,
            family: None,
            tcp_time: Duration::from_secs(1),
            congestion_control: None,
            ping_count: 1000,
        };
        let plans = examination.plans();
        // 1 + 6 windows × 2 directions + 3 stream counts × 2 directions.
        assert_eq!(plans.len(), 19);
        let downs = plans.iter().filter(
            |plan| matches!(plan, Plan::Tcp(plan) if plan.directions == TcpDirections::Down),
        );
        assert_eq!(downs.count(), 9);
    }
}
