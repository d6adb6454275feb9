//! The ladder: every bound of a transfer beside every other, each computed on its own, in payload.
//!
//! The lowest rung binds. The rungs of the path alone (link, capacity, sustained rate, packet rate)
//! give its ceiling: what it could carry. All rungs give what to expect. A measured rate then
//! agrees with one rung, with two, or with none, and is said so. Left out: how the inputs are
//! measured, and words for people. The argument is that of M. Mathis et al. (CCR 27(3), 1997): a
//! rate below every known bound points at a bottleneck that nobody looked for.

mod climb;
mod document;
mod facts;
mod frame_rates;
mod need;
mod sweep;

use serde::{Deserialize, Serialize};

pub use climb::{LadderError, SEND_BUFFER_USABLE, ladder_from_facts};
pub use document::{
    CeilingRequest, LayerRow, Limits, MeasuredShare, PathCeiling, PathQuestion, SCHEMA, answer,
};
pub use facts::{AckPath, Amount, CeilingFacts, FullPacketLengths, Known, LinkFact, Response};
pub use frame_rates::{
    FRAME_RATES_SCHEMA, FrameRates, FrameRow, OpticalColumn, OpticalRow, frame_rates,
};
pub use need::{
    LossBudget, Needs, Propagation, RECEIVE_BUFFER_PER_WINDOW, TransferTime, path_needs,
    propagation, transfer_times,
};
pub use sweep::{Curve, Sweep, by_loss, by_rtt, by_window};

use crate::record::{CeilingInput, SHARE_MAX};

/// Reached at this share of a ceiling.
pub const AT_CEILING: f64 = 0.95;
/// A measured rate agrees with an expected one within this share of it.
pub const AGREES_WITHIN: f64 = 0.15;
/// Two rungs bind together when the upper is below this multiple of the lower.
pub const APART: f64 = 1.25;
/// Share of the expected rate below which nothing on the ladder explains the measured one.
pub const UNEXPLAINED_BELOW: f64 = 0.75;

/// Kind of a bound on the rate, in the order of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RungKind {
    /// The sender's own link, after its framing.
    LocalLink,
    /// The narrowest link of the path, as a rate of IP packets.
    PathCapacity,
    /// Rate that a policer or shaper on the path lets through for long.
    SustainedRate,
    /// Packets per second that a device forwards.
    PacketRate,
    /// The receiver's window, once each round trip.
    ReceiveWindow,
    /// The sender's buffer, which holds bytes that are not acknowledged.
    SendBuffer,
    /// Loss, and the congestion control's response to it.
    Loss,
    /// The sending host's CPUs.
    SenderHost,
    /// The receiving host's CPUs.
    ReceiverHost,
    /// The mean over a transfer that starts slowly.
    StartUp,
    /// Rate that the application offers or reads.
    Application,
    /// Acknowledgements that the way back carries.
    ReversePath,
}

impl RungKind {
    /// Every kind, in the order of the table.
    pub const ALL: [Self; 12] = [
        Self::LocalLink,
        Self::PathCapacity,
        Self::SustainedRate,
        Self::PacketRate,
        Self::ReceiveWindow,
        Self::SendBuffer,
        Self::Loss,
        Self::SenderHost,
        Self::ReceiverHost,
        Self::StartUp,
        Self::Application,
        Self::ReversePath,
    ];

    /// True for a bound of the path itself, whatever its ends do.
    pub const fn is_path(self) -> bool {
        matches!(
            self,
            Self::LocalLink | Self::PathCapacity | Self::SustainedRate | Self::PacketRate
        )
    }
}

/// One bound of the rate, with its source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CeilingRung {
    /// Kind of the bound.
    pub kind: RungKind,
    /// The most payload that passes, bit/s, all flows together.
    pub payload_bps: f64,
    /// The lower end where theory gives a range; null where it gives one value.
    pub low_bps: Option<f64>,
    /// The formula in plain text.
    pub formula: String,
    /// Values from which it was computed.
    pub inputs: Vec<CeilingInput>,
    /// True for a rule that real paths miss by more than a tenth.
    pub estimate: bool,
    /// Standard or paper of the formula.
    pub source: String,
}

/// All bounds that the facts allow, in the order of [`RungKind::ALL`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Ladder {
    /// The rungs, at most one of a kind.
    pub rungs: Vec<CeilingRung>,
}

/// The lowest bounds: one, or two that are close to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding {
    /// One rung, with the next at least [`APART`] above it.
    One(RungKind),
    /// Two within [`APART`] of each other: mending the first alone gives at most the second.
    Two(RungKind, RungKind),
}

/// Comparison of a measured rate with the ladder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", tag = "says")]
pub enum Statement {
    /// More than the path can carry: an input is wrong.
    AboveCeiling {
        /// The rung of the path that was passed.
        rung: RungKind,
    },
    /// The path is full.
    AtCeiling {
        /// The rung of the path that was reached.
        rung: RungKind,
    },
    /// The rate is as expected from one rung.
    SingleFactor {
        /// The rung that binds.
        rung: RungKind,
    },
    /// The rate is as expected from two rungs that lie close together.
    TwoFactors {
        /// The lower of the two rungs.
        first: RungKind,
        /// The bound that is lowest once the first is removed.
        then: RungKind,
    },
    /// More than the lowest rung allows, less than the path: an input of the rung is too low.
    AboveExpected {
        /// The rung that was passed.
        rung: RungKind,
    },
    /// Less than expected, by no more than a quarter.
    BelowExpected {
        /// The lowest rung of the ladder.
        rung: RungKind,
    },
    /// No known bound explains the rate.
    Unexplained {
        /// Rungs that would have allowed at least a quarter more than was measured.
        ruled_out: Vec<RungKind>,
    },
}

impl Ladder {
    /// The rung of a kind.
    pub fn rung_of_kind(&self, kind: RungKind) -> Option<&CeilingRung> {
        self.rungs.iter().find(|rung| rung.kind == kind)
    }

    /// Rate that the path could carry: its lowest rung. `None` when nothing is known of the path.
    pub fn ceiling(&self) -> Option<&CeilingRung> {
        lowest(self.rungs.iter().filter(|rung| rung.kind.is_path()))
    }

    /// The expected rate: the least of all rungs, in payload bit/s.
    pub fn expected_bps(&self) -> Option<f64> {
        lowest(self.rungs.iter()).map(|rung| rung.payload_bps)
    }

    /// Rate of a transfer once it has started: the least of all rungs but the start-up.
    pub fn steady_bps(&self) -> Option<f64> {
        lowest(self.rungs.iter().filter(|rung| rung.kind != RungKind::StartUp))
            .map(|rung| rung.payload_bps)
    }

    /// The rungs that compete for being the limit, lowest first.
    ///
    /// The start-up is part of every transfer and lies below the path by its nature; it counts
    /// where it costs more than [`AT_CEILING`] leaves.
    pub fn by_height(&self) -> Vec<&CeilingRung> {
        let path_bps = self.ceiling().map(|rung| rung.payload_bps);
        let counts = |rung: &&CeilingRung| {
            rung.kind != RungKind::StartUp
                || path_bps.is_none_or(|bps| rung.payload_bps < AT_CEILING * bps)
        };
        let mut rungs: Vec<&CeilingRung> = self.rungs.iter().filter(counts).collect();
        rungs.sort_by(|a, b| a.payload_bps.total_cmp(&b.payload_bps));
        rungs
    }

    /// The lowest bounds; `None` on an empty ladder.
    pub fn binding(&self) -> Option<Binding> {
        match self.by_height().as_slice() {
            [] => None,
            [first, second, ..] if second.payload_bps < APART * first.payload_bps => {
                Some(Binding::Two(first.kind, second.kind))
            }
            [first, ..] => Some(Binding::One(first.kind)),
        }
    }

    /// The next rung, which the transfer would reach if the lowest one were gone. `None` when there
    /// is no other.
    pub fn without_lowest(&self) -> Option<&CeilingRung> {
        self.by_height().get(1).copied()
    }

    /// Kinds of which nothing is known.
    pub fn missing(&self) -> Vec<RungKind> {
        RungKind::ALL.into_iter().filter(|kind| self.rung_of_kind(*kind).is_none()).collect()
    }

    /// Comparison of a measured payload rate with the rungs; `None` on an empty ladder.
    pub fn statement(&self, measured_bps: f64) -> Option<Statement> {
        if let Some(path) = self.ceiling() {
            let share = measured_bps / path.payload_bps;
            let rung = path.kind;
            if share > SHARE_MAX {
                return Some(Statement::AboveCeiling { rung });
            }
            if share >= AT_CEILING {
                return Some(Statement::AtCeiling { rung });
            }
        }
        let heights = self.by_height();
        let rung = heights.first()?;
        let low_bps = rung.low_bps.unwrap_or(rung.payload_bps);
        if measured_bps > (1.0 + AGREES_WITHIN) * rung.payload_bps {
            return Some(Statement::AboveExpected { rung: rung.kind });
        }
        if measured_bps >= (1.0 - AGREES_WITHIN) * low_bps {
            return self.binding().map(|binding| match binding {
                Binding::One(rung) => Statement::SingleFactor { rung },
                Binding::Two(first, then) => Statement::TwoFactors { first, then },
            });
        }
        if measured_bps >= UNEXPLAINED_BELOW * low_bps {
            return Some(Statement::BelowExpected { rung: rung.kind });
        }
        let ruled_out = self
            .rungs
            .iter()
            .filter(|rung| rung.low_bps.unwrap_or(rung.payload_bps) >= APART * measured_bps)
            .map(|rung| rung.kind)
            .collect();
        Some(Statement::Unexplained { ruled_out })
    }
}

impl Binding {
    /// The lowest of the rungs that bind.
    pub const fn lowest_kind(self) -> RungKind {
        match self {
            Self::One(kind) | Self::Two(kind, _) => kind,
        }
    }

    /// The rung that binds together with the lowest.
    pub const fn second(self) -> Option<RungKind> {
        match self {
            Self::One(_) => None,
            Self::Two(_, kind) => Some(kind),
        }
    }
}

fn lowest<'a>(rungs: impl Iterator<Item = &'a CeilingRung>) -> Option<&'a CeilingRung> {
    rungs.min_by(|a, b| a.payload_bps.total_cmp(&b.payload_bps))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rung_from_mbps(kind: RungKind, mbps: f64) -> CeilingRung {
        CeilingRung {
            kind,
            payload_bps: mbps * 1e6,
            low_bps: None,
            formula: String::new(),
            inputs: vec![],
            estimate: false,
            source: String::new(),
        }
    }

    fn ladder(rungs: &[(RungKind, f64)]) -> Ladder {
        Ladder { rungs: rungs.iter().map(|(kind, mbps)| rung_from_mbps(*kind, *mbps)).collect() }
    }

    use RungKind::{Application, LocalLink, Loss, ReceiveWindow, StartUp, SustainedRate};

    #[test]
    fn the_lowest_rung_binds_and_the_next_is_what_mending_it_gives() {
        let it = ladder(&[(LocalLink, 941.0), (ReceiveWindow, 250.0), (Loss, 400.0)]);
        assert_eq!(it.binding(), Some(Binding::One(ReceiveWindow)));
        assert_eq!(it.without_lowest().map(|rung| rung.kind), Some(Loss));
        assert_eq!(it.ceiling().map(|rung| rung.kind), Some(LocalLink));
        assert_eq!(it.expected_bps(), Some(250e6));
    }

    #[test]
    fn rungs_within_a_quarter_bind_together() {
        let it = ladder(&[(LocalLink, 941.0), (ReceiveWindow, 250.0), (Loss, 312.0)]);
        assert_eq!(it.binding(), Some(Binding::Two(ReceiveWindow, Loss)));
        let it = ladder(&[(ReceiveWindow, 250.0), (Loss, 312.5)]);
        assert_eq!(it.binding(), Some(Binding::One(ReceiveWindow)));
    }

    #[test]
    fn a_start_that_costs_less_than_a_twentieth_is_not_the_limit() {
        let it = ladder(&[(LocalLink, 100.0), (StartUp, 96.0)]);
        assert_eq!(it.binding(), Some(Binding::One(LocalLink)));
        assert_eq!((it.expected_bps(), it.steady_bps()), (Some(96e6), Some(100e6)));
        let it = ladder(&[(LocalLink, 100.0), (StartUp, 60.0)]);
        assert_eq!(it.binding(), Some(Binding::One(StartUp)));
    }

    #[test]
    fn an_empty_ladder_says_nothing() {
        let it = ladder(&[]);
        assert_eq!((it.binding(), it.statement(1e6)), (None, None));
        assert_eq!(it.missing().len(), 12);
    }

    #[test]
    fn each_statement_has_its_range() {
        // Path 100, lowest 40, next 80: 15 % of 40 is 6, three quarters of it 30.
        let apart = ladder(&[(LocalLink, 100.0), (ReceiveWindow, 40.0), (Application, 80.0)]);
        let close = ladder(&[(SustainedRate, 100.0), (ReceiveWindow, 40.0), (Loss, 45.0)]);
        let one = Statement::SingleFactor { rung: ReceiveWindow };
        let two = Statement::TwoFactors { first: ReceiveWindow, then: Loss };
        let cases = [
            (&apart, 106.0, Statement::AboveCeiling { rung: LocalLink }),
            (&apart, 95.0, Statement::AtCeiling { rung: LocalLink }),
            (&apart, 46.1, Statement::AboveExpected { rung: ReceiveWindow }),
            (&apart, 45.9, one.clone()),
            (&apart, 34.0, one),
            (&close, 40.0, two),
            (&apart, 33.9, Statement::BelowExpected { rung: ReceiveWindow }),
            (&apart, 30.0, Statement::BelowExpected { rung: ReceiveWindow }),
            (
                &apart,
                29.9,
                Statement::Unexplained { ruled_out: vec![LocalLink, ReceiveWindow, Application] },
            ),
            (
                &close,
                0.0,
                Statement::Unexplained { ruled_out: vec![SustainedRate, ReceiveWindow, Loss] },
            ),
        ];
        for (ladder, mbps, want) in cases {
            assert_eq!(ladder.statement(mbps * 1e6), Some(want), "{mbps}");
        }
    }

    #[test]
    fn a_range_agrees_from_its_lower_end_on() {
        let mut it = ladder(&[(LocalLink, 100.0), (Loss, 40.0)]);
        it.rungs[1].low_bps = Some(20e6);
        assert_eq!(it.statement(17e6), Some(Statement::SingleFactor { rung: Loss }));
        assert_eq!(it.statement(15e6), Some(Statement::BelowExpected { rung: Loss }));
    }
}
