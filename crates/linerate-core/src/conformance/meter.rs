//! A contract at work: each packet's colour and what a packet outside lacked.
//!
//! With two GCRAs a cell conforms when it conforms to both, and only then counts in either
//! (ITU-T I.371, both in coordination).

use serde::{Deserialize, Serialize};

use super::Arrival;
use super::line::CellMapping;
use super::plan::{ConformPlan, Contract, PlanError};
use crate::theory::gcra::{CellRate, ContractError, Gcra, Scale, Sustained, VirtualScheduling};
use crate::theory::token_bucket::{Colour, MissingBytes, SrTcm, TokenBucket, TrTcm};

/// Time or tokens that a packet outside its contract lacked.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Lack {
    /// Nanoseconds by which its first cell outside was too early.
    EarlyNs(f64),
    /// Bytes of tokens that were missing.
    MissingBytes(u64),
    /// No tokens: the packet arrived with this colour.
    Precoloured,
}

/// Verdict of a contract on a packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConformanceVerdict {
    /// Red is outside; with cells, when any of them is.
    pub colour: Colour,
    /// Time or tokens that were lacking, unless it is green.
    pub lack: Option<Lack>,
    /// Cells of the packet and how many of them are outside.
    pub cells: Option<(u32, u32)>,
}

/// A contract with its state.
#[derive(Clone, Debug)]
pub struct Meter(MeterKind);

#[derive(Clone, Debug)]
enum MeterKind {
    Cells(CellMeter),
    Bucket(TokenBucket),
    Single { meter: SrTcm, aware: bool },
    Double { meter: TrTcm, aware: bool },
}

impl ConformPlan {
    /// Checks that the parts fit each other.
    pub fn check_contracts(&self) -> Result<(), PlanError> {
        for contract in &self.contracts {
            Meter::new(contract, self)?;
        }
        Ok(())
    }
}

impl Meter {
    /// A meter before the first packet. The mapping to cells and the line come from `plan`.
    pub fn new(contract: &Contract, plan: &ConformPlan) -> Result<Self, PlanError> {
        Ok(Self(match contract {
            Contract::Gcra { .. } => {
                let mapping = plan.cells.ok_or(PlanError::NoCells)?;
                MeterKind::Cells(CellMeter::new(contract, plan.line, mapping)?)
            }
            Contract::TokenBucket { rate, burst } => {
                MeterKind::Bucket(TokenBucket::new(*rate, *burst)?)
            }
            Contract::SrTcm { plan, aware } => {
                MeterKind::Single { meter: SrTcm::new(plan)?, aware: *aware }
            }
            Contract::TrTcm { plan, aware } => {
                MeterKind::Double { meter: TrTcm::new(plan)?, aware: *aware }
            }
        }))
    }

    /// Meters a packet; times count from the first packet and do not go back.
    pub fn arrive(&mut self, arrival: &Arrival) -> ConformanceVerdict {
        let Arrival { at_ns, bytes, ip_bytes, colour, .. } = *arrival;
        let was = |aware| if aware { colour } else { Colour::Green };
        let (colour, missing) = match &mut self.0 {
            MeterKind::Cells(meter) => return meter.arrive(at_ns, ip_bytes),
            MeterKind::Bucket(bucket) => match bucket.arrive(at_ns, bytes) {
                None => (Colour::Green, None),
                missing => (Colour::Red, missing),
            },
            MeterKind::Single { meter, aware } => {
                let marked = meter.arrive(at_ns, bytes, was(*aware));
                (marked.colour, marked.missing)
            }
            MeterKind::Double { meter, aware } => {
                let marked = meter.arrive(at_ns, bytes, was(*aware));
                (marked.colour, marked.missing)
            }
        };
        let lack = match missing {
            Some(MissingBytes(bytes)) => Lack::MissingBytes(bytes),
            None => Lack::Precoloured,
        };
        ConformanceVerdict { colour, lack: (colour != Colour::Green).then_some(lack), cells: None }
    }
}

/// One GCRA, with times in its own ticks.
#[derive(Clone, Copy, Debug)]
struct OnLine {
    scale: Scale,
    state: VirtualScheduling,
    /// Time from which the line is free, ticks.
    free: i128,
}

impl OnLine {
    fn new(scale: Scale, limit: i128) -> Self {
        let state = VirtualScheduling::new(Gcra { increment: scale.increment, limit });
        Self { scale, state, free: i128::MIN }
    }

    /// Time of the first of `count` cells of a packet at `at_ns`, behind the cells before it.
    fn first_cell_time(&mut self, at_ns: u64, count: u32) -> i128 {
        // The scale keeps 53 bits of nanoseconds; a capture beyond 104 days stands still there.
        let at_ns = at_ns.min((1 << 53) - 1);
        let start = (i128::from(at_ns) * self.scale.per_ns).max(self.free);
        self.free = start + i128::from(count) * self.scale.line_cell;
        start
    }
}

/// The one or two GCRAs of a contract in cells.
#[derive(Clone, Debug)]
struct CellMeter {
    mapping: CellMapping,
    peak: OnLine,
    sustained: Option<OnLine>,
}

impl CellMeter {
    fn new(
        contract: &Contract,
        line: CellRate,
        mapping: CellMapping,
    ) -> Result<Self, ContractError> {
        let Contract::Gcra { peak, tolerance, sustained } = contract else {
            return Err(ContractError::NoBurst);
        };
        let scale = Scale::new(*peak, line)?;
        let first = OnLine::new(scale, scale.ticks_of_span(*tolerance)?);
        let second = match *sustained {
            Some((sustainable, burst_cells)) => {
                let scale = Scale::new(sustainable, line)?;
                let burst = Sustained { peak: *peak, sustainable, burst_cells };
                let limit = scale.burst_tolerance(&burst)? + scale.ticks_of_span(*tolerance)?;
                Some(OnLine::new(scale, limit))
            }
            None => None,
        };
        Ok(Self { mapping, peak: first, sustained: second })
    }

    fn arrive(&mut self, at_ns: u64, ip_bytes: u32) -> ConformanceVerdict {
        let count = self.mapping.cells_per_packet(ip_bytes);
        let (outside, early_ns) = match &mut self.sustained {
            None => cells_outside(&mut self.peak, at_ns, count),
            Some(sustained) => cells_outside_both([&mut self.peak, sustained], at_ns, count),
        };
        ConformanceVerdict {
            colour: if outside == 0 { Colour::Green } else { Colour::Red },
            lack: early_ns.map(Lack::EarlyNs),
            cells: Some((count, outside)),
        }
    }
}

/// Number of cells outside, and time by which the first of them was too early.
fn cells_outside(meter: &mut OnLine, at_ns: u64, count: u32) -> (u32, Option<f64>) {
    let mut at = meter.first_cell_time(at_ns, count);
    let (mut outside, mut first) = (0, None);
    for _ in 0..count {
        let early = meter.state.ticks_early(at);
        if early <= 0 {
            meter.state.accept(at);
        } else {
            outside += 1;
            first.get_or_insert(early);
        }
        at += meter.scale.line_cell;
    }
    (outside, first.map(|early| meter.scale.ticks_to_nanos(early)))
}

/// Cells outside under two rules at once, as [`cells_outside`] counts them under one.
fn cells_outside_both(meters: [&mut OnLine; 2], at_ns: u64, count: u32) -> (u32, Option<f64>) {
    let [a, b] = meters;
    let (mut at_a, mut at_b) = (a.first_cell_time(at_ns, count), b.first_cell_time(at_ns, count));
    let (mut outside, mut first) = (0, None);
    for _ in 0..count {
        let (early_a, early_b) = (a.state.ticks_early(at_a), b.state.ticks_early(at_b));
        if early_a <= 0 && early_b <= 0 {
            a.state.accept(at_a);
            b.state.accept(at_b);
        } else {
            outside += 1;
            first.get_or_insert((early_a, early_b));
        }
        at_a += a.scale.line_cell;
        at_b += b.scale.line_cell;
    }
    let nanos = |(on_a, on_b)| a.scale.ticks_to_nanos(on_a).max(b.scale.ticks_to_nanos(on_b));
    (outside, first.map(nanos))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::filter::Filter;
    use crate::conformance::line::cell_line;
    use crate::conformance::plan::Layer;

    fn conform_plan(cells: Option<CellMapping>) -> ConformPlan {
        ConformPlan {
            source: String::new(),
            contracts: Vec::new(),
            layer: Layer::Ip,
            cells,
            line: cell_line("oc3").expect("a line"),
            filter: Filter::default(),
            mtu_bytes: None,
        }
    }

    fn arrival(at_ns: u64, bytes: u32) -> Arrival {
        Arrival { number: 1, at_ns, bytes, ip_bytes: bytes, colour: Colour::Green }
    }

    #[test]
    fn cells_of_a_packet_come_back_to_back() {
        // 1500 bytes are 32 cells. At half the line's rate each second cell is early when nothing
        // is tolerated: T after the last one where 2 T are asked, so early by T = 2831.2 ns.
        let contract = Contract::parse_gcra("pcr=74.88 Mbit/s,cdvt=0s").expect("a contract");
        let mut meter =
            Meter::new(&contract, &conform_plan(Some(CellMapping::Llcsnap))).expect("a meter");
        let verdict = meter.arrive(&arrival(0, 1500));
        assert_eq!((verdict.colour, verdict.cells), (Colour::Red, Some((32, 16))));
        let Some(Lack::EarlyNs(early)) = verdict.lack else { panic!("{verdict:?}") };
        assert!((early - 2831.2).abs() < 0.01, "{early}");
    }

    #[test]
    fn packets_at_once_wait_for_the_line() {
        // Full rate and no tolerance: two packets at the same time still conform.
        let contract = Contract::parse_gcra("pcr=149.76 Mbit/s,cdvt=0s").expect("a contract");
        let mut meter =
            Meter::new(&contract, &conform_plan(Some(CellMapping::Llcsnap))).expect("a meter");
        assert!((0..3).all(|_| meter.arrive(&arrival(5, 9180)).colour == Colour::Green));
    }

    #[test]
    fn a_burst_of_just_the_largest_size_conforms() {
        // 32 packets as cells at PCR; the 33rd is 3 ms early: 32 * 4 ms - 93 ms - 32 ms.
        let contract = Contract::parse_gcra("pcr=1000,cdvt=0s,scr=250,mbs=32").expect("a contract");
        let mut meter =
            Meter::new(&contract, &conform_plan(Some(CellMapping::Packet))).expect("a meter");
        let at = |n: u64| arrival(n * 1_000_000, 100);
        assert!((0..32).all(|n| meter.arrive(&at(n)).colour == Colour::Green));
        let verdict = meter.arrive(&at(32));
        assert_eq!((verdict.colour, verdict.lack), (Colour::Red, Some(Lack::EarlyNs(3e6))));
    }

    #[test]
    fn colours_on_arrival_count_for_aware_meters_alone() {
        let yellow = Arrival { colour: Colour::Yellow, ..arrival(0, 1000) };
        let colour = |text: &str| {
            let contract = Contract::parse_srtcm(text).expect("a contract");
            Meter::new(&contract, &conform_plan(None)).expect("a meter").arrive(&yellow)
        };
        assert_eq!(colour("cir=8k,cbs=1500,ebs=1500").colour, Colour::Green);
        let aware = colour("cir=8k,cbs=1500,ebs=1500,aware");
        assert_eq!((aware.colour, aware.lack), (Colour::Yellow, Some(Lack::Precoloured)));
    }

    #[test]
    fn contracts_in_cells_ask_for_a_mapping() {
        let contract = Contract::parse_gcra("pcr=1000").expect("a contract");
        assert_eq!(Meter::new(&contract, &conform_plan(None)).map(drop), Err(PlanError::NoCells));
    }
}
