//! One pass over arrivals: every contract, the inverse, peaks and counts, in constant memory.
//!
//! Left out: clocks and packets' bytes. A time stamp that goes back counts as the latest one seen.

use super::envelope::{Envelope, Train, Vertex};
use super::follower::Follower;
use super::meter::{ConformanceVerdict, Lack, Meter};
use super::needed::{limit_ns, needed};
use super::peaks::Peaks;
use super::plan::{ConformPlan, Contract, PlanError};
use super::result::{
    BurstAtRate, Conformance, ContractResult, Count, Ended, Peak, Run, SCHEMA, Unused, Violation,
};
use super::{Arrival, bucket, stretches};
use crate::theory::atm::CELL_BYTES;
use crate::theory::gcra::CELL_BITS;
use crate::theory::token_bucket::Colour;

/// Windows of peak rates, ns: 1 ms to 10 s.
const WINDOWS_NS: [u64; 5] = [1_000_000, 10_000_000, 100_000_000, 1_000_000_000, 10_000_000_000];

/// Largest packet of a link whose MTU is not known, bytes: the jumbo frames that switches take.
const JUMBO_BYTES: u32 = 9216;

/// The state of a run.
#[derive(Clone, Debug)]
pub struct Analysis {
    plan: ConformPlan,
    meters: Vec<(Meter, MeterCounts)>,
    envelope: Envelope,
    peaks: [Peaks; WINDOWS_NS.len()],
    follower: Follower,
    total: Count,
    unused: Unused,
    first_at_ns: Option<u64>,
    last_ns: u64,
    packet_bytes_max: u32,
    /// Time from which the line of the cells is free, ns.
    free_ns: f64,
    /// Longer packets were joined by offload.
    mtu_bytes: u32,
}

impl Analysis {
    /// Meters for every contract of the plan.
    /// # Errors
    /// When a contract is impossible.
    pub fn new(plan: &ConformPlan) -> Result<Self, PlanError> {
        let meters = plan
            .contracts
            .iter()
            .map(|contract| Ok((Meter::new(contract, plan)?, MeterCounts::default())));
        let rates: Vec<f64> = plan.contracts.iter().flat_map(Contract::rates_bps).collect();
        Ok(Self {
            meters: meters.collect::<Result<_, PlanError>>()?,
            envelope: Envelope::new(&rates),
            peaks: WINDOWS_NS.map(Peaks::new),
            follower: Follower::default(),
            total: Count::default(),
            unused: Unused::default(),
            first_at_ns: None,
            last_ns: 0,
            packet_bytes_max: 0,
            free_ns: f64::NEG_INFINITY,
            mtu_bytes: plan.mtu_bytes.unwrap_or(JUMBO_BYTES),
            plan: plan.clone(),
        })
    }

    /// Packets that were not metered; the caller counts them.
    pub const fn unused(&mut self) -> &mut Unused {
        &mut self.unused
    }

    /// Packets metered so far.
    pub const fn packets(&self) -> u64 {
        self.total.packets
    }

    /// Time from the first metered packet to the latest, ns.
    pub const fn span_ns(&self) -> u64 {
        self.last_ns
    }

    /// True when a packet at `at_ns` is more than `span_ns` after the first one.
    pub fn is_beyond(&self, at_ns: u64, span_ns: u64) -> bool {
        self.first_at_ns.is_some_and(|first| at_ns.saturating_sub(first) > span_ns)
    }

    /// Meters a packet by every contract.
    pub fn push(&mut self, arrival: &Arrival) {
        let first = *self.first_at_ns.get_or_insert(arrival.at_ns);
        let since = arrival.at_ns.checked_sub(first).filter(|since| *since >= self.last_ns);
        let at_ns = since.unwrap_or_else(|| {
            self.unused.out_of_order += 1;
            self.last_ns
        });
        self.last_ns = at_ns;
        let arrival = Arrival { at_ns, ..*arrival };
        let cells = self.plan.cells.map(|mapping| mapping.cells_per_packet(arrival.ip_bytes));
        self.total.add(arrival.bytes, cells);
        self.packet_bytes_max = self.packet_bytes_max.max(arrival.bytes);
        self.unused.joined += u64::from(arrival.ip_bytes > self.mtu_bytes);
        for (meter, tally) in &mut self.meters {
            tally.add(&arrival, &meter.arrive(&arrival));
        }
        let mut bytes = arrival.bytes;
        match cells {
            Some(count) => {
                self.push_cells(at_ns, count);
                bytes = count.saturating_mul(CELL_BYTES);
            }
            None => self.envelope.arrive(at_ns as f64, f64::from(bytes)),
        }
        self.peaks.iter_mut().for_each(|peaks| peaks.arrive(at_ns, bytes));
        if self.follower.arrive(at_ns, bytes) {
            let stretches = stretches(&self.envelope.vertices());
            let found = bucket(&stretches, self.largest());
            self.follower.follow(found.as_ref());
        }
    }

    fn push_cells(&mut self, at_ns: u64, count: u32) {
        let gap_ns = self.plan.line.cell_time_ns();
        let at_ns = (at_ns as f64).max(self.free_ns);
        self.free_ns = at_ns + gap_ns * f64::from(count);
        let bytes = f64::from(CELL_BYTES);
        self.envelope.arrive_train(&Train { at_ns, count, bytes, gap_ns });
    }

    /// Result over the packets so far.
    pub fn result(&mut self, ended: Ended, failure: Option<String>) -> Conformance {
        let vertices = self.envelope.vertices();
        let stretches = stretches(&vertices);
        let in_cells = self.plan.cells.is_some();
        let bytes = self.counted_bytes();
        let span_s = self.last_ns as f64 / 1e9;
        Conformance {
            schema: SCHEMA.to_owned(),
            source: self.plan.source.clone(),
            only: self.plan.filter.to_string(),
            layer: self.plan.layer,
            cells: self.plan.cells,
            line_cells_per_s: in_cells.then(|| self.plan.line.per_second()),
            total: self.total,
            unused: self.unused,
            first_at_ns: self.first_at_ns,
            span_ns: self.last_ns,
            mean_bps: (self.last_ns > 0).then(|| bytes as f64 * 8.0 / span_s),
            packet_bytes_max: self.packet_bytes_max,
            contracts: self.contracts(&vertices),
            inverse: self.inverse(&vertices),
            peaks: self.window_peaks(),
            bucket: bucket(&stretches, self.largest())
                .and_then(|found| self.follower.confirm(&found)),
            stretches,
            ended,
            failure,
        }
    }

    fn contracts(&self, vertices: &[Vertex]) -> Vec<ContractResult> {
        let each = self.plan.contracts.iter().zip(&self.meters);
        each.map(|(contract, (_, tally))| ContractResult {
            contract: contract.to_string(),
            green: tally.counts[Colour::Green as usize],
            yellow: contract.has_yellow().then_some(tally.counts[Colour::Yellow as usize]),
            red: tally.counts[Colour::Red as usize],
            cells_conforming: tally.cells.map(|(all, outside)| all - outside),
            cells_outside: tally.cells.map(|(_, outside)| outside),
            first: tally.first,
            worst: tally.worst,
            longest_run: tally.longest,
            needed: if self.total.packets > 0 { needed(contract, vertices) } else { Vec::new() },
        })
        .collect()
    }

    /// Rates at which a burst is worth a row: from the last below the mean, where the burst still
    /// grows with the length of the capture, to the first where the largest packet is enough.
    fn inverse(&self, vertices: &[Vertex]) -> Vec<BurstAtRate> {
        let (Some(least), true) = (vertices.last(), self.last_ns > 0) else { return Vec::new() };
        let least = least.burst_bytes;
        let mean_bps = 8e9 * self.counted_bytes() as f64 / self.last_ns as f64;
        let first = vertices.iter().rposition(|vertex| vertex.rate_bps < mean_bps).unwrap_or(0);
        let enough = vertices.iter().position(|vertex| vertex.burst_bytes <= least);
        let last = enough.unwrap_or(vertices.len() - 1).max(first);
        let row = |vertex: &Vertex| {
            let cells_per_s = self.plan.cells.map(|_| vertex.rate_bps / CELL_BITS as f64);
            BurstAtRate {
                rate_bps: vertex.rate_bps,
                burst_bytes: vertex.burst_bytes,
                span_ns: vertex.span_ns,
                cells_per_s,
                cdvt_ns: cells_per_s.map(|rate| limit_ns(vertex.burst_bytes, rate)),
            }
        };
        vertices[first..=last].iter().map(row).collect()
    }

    /// The most bytes that arrive at one moment: a packet, or a cell.
    fn largest(&self) -> f64 {
        let bytes = if self.plan.cells.is_some() { CELL_BYTES } else { self.packet_bytes_max };
        bytes.into()
    }

    fn counted_bytes(&self) -> u64 {
        self.total.cells.map_or(self.total.bytes, |cells| cells * u64::from(CELL_BYTES))
    }

    /// Windows that fit the span.
    fn window_peaks(&self) -> Vec<Peak> {
        let fit = self.peaks.iter().filter(|peaks| peaks.window_ns() <= self.last_ns);
        fit.map(|peaks| Peak {
            window_ns: peaks.window_ns(),
            bytes: peaks.most_bytes(),
            bps: peaks.most_bytes() as f64 * 8e9 / peaks.window_ns() as f64,
        })
        .collect()
    }
}

/// Verdicts of a meter so far.
#[derive(Clone, Copy, Debug, Default)]
struct MeterCounts {
    counts: [Count; 3],
    /// Numbers of all cells, and of those outside.
    cells: Option<(u64, u64)>,
    first: Option<Violation>,
    worst: Option<Violation>,
    /// Start of the present run of violations, and its length so far.
    run: Option<(u64, Run)>,
    longest: Option<Run>,
}

impl MeterCounts {
    #[inline]
    fn add(&mut self, arrival: &Arrival, verdict: &ConformanceVerdict) {
        let count = &mut self.counts[verdict.colour as usize];
        count.add(arrival.bytes, verdict.cells.map(|(all, _)| all));
        if let Some((all, outside)) = verdict.cells {
            let cells = self.cells.get_or_insert((0, 0));
            cells.0 += u64::from(all);
            cells.1 += u64::from(outside);
        }
        match verdict.colour {
            Colour::Red => self.violate(arrival, verdict),
            Colour::Green | Colour::Yellow => self.run = None,
        }
    }

    fn violate(&mut self, arrival: &Arrival, verdict: &ConformanceVerdict) {
        let Arrival { number, at_ns, bytes, .. } = *arrival;
        let lack = verdict.lack.unwrap_or(Lack::Precoloured);
        let violation = Violation { packet: number, at_ns, bytes, lack, colour: verdict.colour };
        self.first.get_or_insert(violation);
        if self.worst.is_none_or(|worst| lack_amount(lack) > lack_amount(worst.lack)) {
            self.worst = Some(violation);
        }
        let fresh = Run { first_packet: number, packets: 0, bytes: 0, span_ns: 0 };
        let (start_ns, run) = self.run.get_or_insert((at_ns, fresh));
        run.packets += 1;
        run.bytes += u64::from(bytes);
        run.span_ns = at_ns - *start_ns;
        if self.longest.is_none_or(|longest| run.packets > longest.packets) {
            self.longest = Some(*run);
        }
    }
}

fn lack_amount(lack: Lack) -> f64 {
    match lack {
        Lack::EarlyNs(ns) => ns,
        Lack::MissingBytes(bytes) => bytes as f64,
        Lack::Precoloured => -1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::{CellMapping, Filter, Layer, cell_line};

    fn run(
        contracts: Vec<Contract>,
        cells: Option<CellMapping>,
        packets: &[(u64, u32)],
    ) -> Conformance {
        let plan = ConformPlan {
            source: "test".to_owned(),
            contracts,
            layer: Layer::Ip,
            cells,
            line: cell_line("oc3").expect("a line"),
            filter: Filter::default(),
            mtu_bytes: None,
        };
        let mut analysis = Analysis::new(&plan).expect("a plan");
        for (index, (at_ns, bytes)) in packets.iter().enumerate() {
            let (number, colour) = (index as u64 + 1, Colour::Green);
            let (at_ns, bytes) = (*at_ns, *bytes);
            analysis.push(&Arrival { number, at_ns, bytes, ip_bytes: bytes, colour });
        }
        analysis.result(Ended::Complete, None)
    }

    const MS: u64 = 1_000_000;
    /// Six packets of 1500 bytes; two of them do not fit 3000 bytes at 8 kbit/s.
    const SIX: [(u64, u32); 6] =
        [(0, 1500), (0, 1500), (0, 1500), (1000 * MS, 1500), (1500 * MS, 1500), (3000 * MS, 1500)];

    #[test]
    fn a_run_says_which_packets_are_outside_and_what_was_missing() {
        let contract = Contract::token_bucket("rate=8k,burst=3000").expect("a contract");
        let found = run(vec![contract], None, &SIX);
        let result = &found.contracts[0];
        assert_eq!((result.green.packets, result.red.packets), (4, 2));
        assert_eq!((result.green.bytes, result.red.bytes), (6000, 3000));
        let first = result.first.expect("a violation");
        assert_eq!((first.packet, first.at_ns), (3, 0));
        assert_eq!(first.lack, Lack::MissingBytes(1500));
        let longest = result.longest_run.expect("a run");
        assert_eq!((longest.first_packet, longest.packets), (3, 2));
        assert_eq!(longest.span_ns, 1000 * MS);
        // A queue at 1000 bytes a second: 4500, 3500 + 1500, 4500 + 1500, 4500 + 1500.
        let needed = &result.needed[0];
        assert_eq!((needed.value, needed.granted), (6000.0, 3000.0));
        let enough = Contract::token_bucket("rate=8k,burst=6000").expect("a contract");
        assert!(run(vec![enough], None, &SIX).all_conform());
        assert!(!found.all_conform());
    }

    #[test]
    fn what_cells_would_need_makes_all_of_them_conform() {
        let packets: Vec<(u64, u32)> =
            (0..400).map(|n| (n * 700_000 + (n * n * 7919) % 500_000, 1500)).collect();
        let cells = Some(CellMapping::Llcsnap);
        let contract =
            Contract::parse_gcra("pcr=100000,cdvt=0s,scr=60000,mbs=1").expect("a contract");
        let result = run(vec![contract], cells, &packets).contracts.remove(0);
        assert!(result.cells_outside > Some(0), "{result:?}");
        let [cdvt, mbs] = &result.needed[..] else { panic!("{result:?}") };
        let text =
            |cdvt: f64, mbs: f64| format!("pcr=100000,cdvt={}ns,scr=60000,mbs={mbs}", cdvt.ceil());
        let enough = Contract::parse_gcra(&text(cdvt.value + 1.0, mbs.value)).expect("a contract");
        assert!(run(vec![enough], cells, &packets).all_conform());
        let less = Contract::parse_gcra(&text(cdvt.value - 10.0, 1e6)).expect("a contract");
        assert!(!run(vec![less], cells, &packets).all_conform());
    }

    #[test]
    fn a_time_that_goes_back_is_counted_and_stands_still() {
        let found = run(Vec::new(), None, &[(5 * MS, 100), (4 * MS, 100), (6 * MS, 100), (0, 100)]);
        assert_eq!((found.unused.out_of_order, found.span_ns), (2, MS));
        // 400 bytes in 1 ms.
        assert_eq!(found.mean_bps, Some(3.2e6));
    }

    #[test]
    fn a_run_without_packets_or_with_one_has_no_rate() {
        let contract = || Contract::token_bucket("rate=8k,burst=3000").expect("a contract");
        let none = run(vec![contract()], None, &[]);
        assert!(none.all_conform() && none.mean_bps.is_none() && none.inverse.is_empty());
        let one = run(vec![contract()], None, &[(7, 1500)]);
        assert_eq!((one.first_at_ns, one.mean_bps), (Some(7), None));
        assert!(one.inverse.is_empty() && one.bucket.is_none());
    }

    #[test]
    fn the_inverse_goes_from_the_mean_rate_to_where_a_packet_is_enough() {
        // 1000 bytes each ms for 1 s: 8 Mbit/s, and 1000 bytes of burst above it.
        let packets: Vec<(u64, u32)> = (0..=1000).map(|n| (n * MS, 1000)).collect();
        let found = run(Vec::new(), None, &packets);
        let rows = &found.inverse;
        assert!(rows[0].rate_bps < 8.008e6 && rows[0].burst_bytes > 1000.0);
        assert!(rows.len() == 2 && rows[1].burst_bytes == 1000.0, "{rows:?}");
        // Any 10 windows of 0.1 ms hold one packet, 10 ms hold ten.
        assert_eq!((found.peaks[0].bytes, found.peaks[1].bytes), (1000, 10_000));
        let bucket = found.bucket.expect("a steady stream is a bucket of one packet");
        assert!((bucket.rate_bps - 8e6).abs() < 1.0 && (bucket.burst_bytes - 1000.0).abs() < 1e-6);
    }
}
