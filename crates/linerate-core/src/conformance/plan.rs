//! What `linerate conform` is asked: contracts, the layer that counts, cells.
//!
//! Contracts are read as `key=value,key=value` in the words of their standards.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::filter::Filter;
use super::line::CellMapping;
use crate::theory::gcra::{CELL_BITS, CellRate, ContractError, Sustained, burst_tolerance_ns};
use crate::theory::token_bucket::{BucketError, SingleRate, SrTcm, TokenBucket, TrTcm, TwoRate};
use crate::units::{BitRate, Bytes, ParseUnitError, parse_span, print_span};

/// The layer whose bytes count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// The IP packet with its headers, as RFC 2697 and RFC 2698 count.
    #[default]
    Ip,
    /// The packet with its link header as captured, as Linux's tbf and htb count.
    Captured,
    /// The Ethernet frame with FCS, 64 bytes at least.
    Frame,
    /// The frame with preamble and gap.
    Wire,
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Ip => "IP packet",
            Self::Captured => "packet with its link header as captured",
            Self::Frame => "Ethernet frame with FCS",
            Self::Wire => "Ethernet frame with preamble and gap",
        })
    }
}

/// A traffic contract and its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contract {
    /// A peak cell rate with its tolerance, and perhaps a sustainable rate with a largest burst.
    Gcra {
        /// Peak cell rate (PCR).
        peak: CellRate,
        /// Cell delay variation tolerance (CDVT).
        tolerance: Duration,
        /// SCR and MBS in cells.
        sustained: Option<(CellRate, u64)>,
    },
    /// Token bucket of one rate and one burst.
    TokenBucket {
        /// Rate at which the bucket fills.
        rate: BitRate,
        /// Depth of the bucket.
        burst: Bytes,
    },
    /// Single-rate three-colour marker (RFC 2697).
    SrTcm {
        /// Rate and bursts: CIR, CBS, EBS.
        plan: SingleRate,
        /// True when packets keep at best the colour of their DSCP (colour-aware mode).
        aware: bool,
    },
    /// Two-rate three-colour marker (RFC 2698).
    TrTcm {
        /// CIR, CBS, PIR, PBS.
        plan: TwoRate,
        /// True when packets keep at best the colour of their DSCP (colour-aware mode).
        aware: bool,
    },
}

/// Reason why a text is no contract.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PlanError {
    /// Something that is not `key=value`.
    #[error("{0:?} is not KEY=VALUE; a contract is a list such as rate=10M,burst=64K")]
    NoPair(String),
    /// A key that is given twice.
    #[error("{0} is given twice")]
    Twice(String),
    /// A key that the contract does not have.
    #[error("{key} is not among the parameters {keys}")]
    UnknownKey {
        /// The key as it was given.
        key: String,
        /// The parameters that the contract knows.
        keys: &'static str,
    },
    /// A key that is absent.
    #[error("{key} is missing; the parameters are {keys}")]
    Missing {
        /// The key that is absent.
        key: &'static str,
        /// The parameters that the contract knows.
        keys: &'static str,
    },
    /// A value that cannot be read.
    #[error("{key}: {error}")]
    Unit {
        /// Key of the value that cannot be read.
        key: &'static str,
        /// The error in its value.
        error: ParseUnitError,
    },
    /// A number that cannot be read.
    #[error("{key}: {text:?} is not a number of cells")]
    Cells {
        /// Key of the value that cannot be read.
        key: &'static str,
        /// The value as it was given.
        text: String,
    },
    /// Cell rates that cannot be.
    #[error(transparent)]
    Contract(#[from] ContractError),
    /// Buckets that cannot be.
    #[error(transparent)]
    Bucket(#[from] BucketError),
    /// Cells without a rule how packets become cells.
    #[error(
        "a contract in cells needs --cells llcsnap or vcmux (AAL5), or packet (each packet is one)"
    )]
    NoCells,
}

/// The pairs of a contract's text.
struct Pairs<'a> {
    keys: &'static str,
    pairs: Vec<(&'a str, &'a str)>,
}

impl<'a> Pairs<'a> {
    fn read(text: &'a str, keys: &'static str) -> Result<Self, PlanError> {
        let mut pairs: Vec<(&str, &str)> = Vec::new();
        for part in text.split(',') {
            let (key, value) = match part.trim().split_once('=') {
                Some((key, value)) => (key.trim(), value.trim()),
                None if part.trim() == "aware" => ("aware", ""),
                None => return Err(PlanError::NoPair(part.chars().take(40).collect())),
            };
            if !keys.split(' ').any(|known| known == key) {
                return Err(PlanError::UnknownKey { key: key.to_owned(), keys });
            }
            if pairs.iter().any(|(known, _)| *known == key) {
                return Err(PlanError::Twice(key.to_owned()));
            }
            pairs.push((key, value));
        }
        Ok(Self { keys, pairs })
    }

    fn find(&self, key: &str) -> Option<&'a str> {
        self.pairs.iter().find(|(known, _)| *known == key).map(|(_, value)| *value)
    }

    fn get(&self, key: &'static str) -> Result<&'a str, PlanError> {
        self.find(key).ok_or(PlanError::Missing { key, keys: self.keys })
    }

    fn parse_rate(&self, key: &'static str) -> Result<BitRate, PlanError> {
        self.get(key)?.parse().map_err(|error| PlanError::Unit { key, error })
    }

    fn parse_bytes(&self, key: &'static str) -> Result<Bytes, PlanError> {
        self.get(key)?.parse().map_err(|error| PlanError::Unit { key, error })
    }
}

impl Contract {
    /// Reads `pcr=RATE,cdvt=TIME[,scr=RATE,mbs=CELLS]`.
    /// # Errors
    /// One line on what is wrong.
    pub fn parse_gcra(text: &str) -> Result<Self, PlanError> {
        let pairs = Pairs::read(text, "pcr cdvt scr mbs")?;
        let peak: CellRate = pairs.get("pcr")?.parse()?;
        let tolerance = match pairs.find("cdvt") {
            Some(text) => {
                parse_span(text).map_err(|error| PlanError::Unit { key: "cdvt", error })?
            }
            None => Duration::ZERO,
        };
        let sustained = match (pairs.find("scr"), pairs.find("mbs")) {
            (None, None) => None,
            _ => {
                let mbs = pairs.get("mbs")?;
                let refuse = |_| PlanError::Cells { key: "mbs", text: mbs.to_owned() };
                Some((pairs.get("scr")?.parse()?, mbs.parse().map_err(refuse)?))
            }
        };
        if let Some((sustainable, burst_cells)) = sustained {
            burst_tolerance_ns(&Sustained { peak, sustainable, burst_cells })?;
        }
        Ok(Self::Gcra { peak, tolerance, sustained })
    }

    /// Reads `rate=RATE,burst=SIZE`.
    /// # Errors
    /// One line on what is wrong.
    pub fn token_bucket(text: &str) -> Result<Self, PlanError> {
        let pairs = Pairs::read(text, "rate burst")?;
        let (rate, burst) = (pairs.parse_rate("rate")?, pairs.parse_bytes("burst")?);
        TokenBucket::new(rate, burst)?;
        Ok(Self::TokenBucket { rate, burst })
    }

    /// Reads `cir=RATE,cbs=SIZE,ebs=SIZE[,aware]`.
    /// # Errors
    /// One line on what is wrong.
    pub fn parse_srtcm(text: &str) -> Result<Self, PlanError> {
        let pairs = Pairs::read(text, "cir cbs ebs aware")?;
        let plan = SingleRate {
            committed: pairs.parse_rate("cir")?,
            committed_burst: pairs.parse_bytes("cbs")?,
            excess_burst: pairs.parse_bytes("ebs")?,
        };
        SrTcm::new(&plan)?;
        Ok(Self::SrTcm { plan, aware: pairs.find("aware").is_some() })
    }

    /// Reads `cir=RATE,cbs=SIZE,pir=RATE,pbs=SIZE[,aware]`.
    /// # Errors
    /// One line on what is wrong.
    pub fn parse_trtcm(text: &str) -> Result<Self, PlanError> {
        let pairs = Pairs::read(text, "cir cbs pir pbs aware")?;
        let plan = TwoRate {
            committed: pairs.parse_rate("cir")?,
            committed_burst: pairs.parse_bytes("cbs")?,
            peak: pairs.parse_rate("pir")?,
            peak_burst: pairs.parse_bytes("pbs")?,
        };
        TrTcm::new(&plan)?;
        Ok(Self::TrTcm { plan, aware: pairs.find("aware").is_some() })
    }

    /// True when it has a colour between conforming and not.
    pub const fn has_yellow(&self) -> bool {
        matches!(self, Self::SrTcm { .. } | Self::TrTcm { .. })
    }

    /// The rates of its buckets, bit/s; for cells of the whole cell.
    pub fn rates_bps(&self) -> Vec<f64> {
        let cells = |rate: CellRate| rate.per_second() * CELL_BITS as f64;
        let bits = |rate: BitRate| rate.bits_per_sec() as f64;
        match self {
            Self::Gcra { peak, sustained, .. } => {
                let sustained = sustained.map(|(rate, _)| cells(rate));
                std::iter::once(cells(*peak)).chain(sustained).collect()
            }
            Self::TokenBucket { rate, .. } => vec![bits(*rate)],
            Self::SrTcm { plan, .. } => vec![bits(plan.committed)],
            Self::TrTcm { plan, .. } => vec![bits(plan.committed), bits(plan.peak)],
        }
    }
}

impl fmt::Display for Contract {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let aware = |aware| if aware { ", colour-aware" } else { "" };
        match self {
            Self::Gcra { peak, tolerance, sustained } => {
                write!(f, "GCRA: PCR {peak}, CDVT {}", print_span(*tolerance))?;
                match sustained {
                    Some((rate, burst)) => write!(f, ", SCR {rate}, MBS {burst} cells"),
                    None => Ok(()),
                }
            }
            Self::TokenBucket { rate, burst } => {
                write!(f, "token bucket: {rate}, burst {}", burst.as_plain_bytes())
            }
            Self::SrTcm { plan, aware: is_aware } => write!(
                f,
                "srTCM: CIR {}, CBS {}, EBS {}{}",
                plan.committed,
                plan.committed_burst.as_plain_bytes(),
                plan.excess_burst.as_plain_bytes(),
                aware(*is_aware)
            ),
            Self::TrTcm { plan, aware: is_aware } => write!(
                f,
                "trTCM: CIR {}, CBS {}, PIR {}, PBS {}{}",
                plan.committed,
                plan.committed_burst.as_plain_bytes(),
                plan.peak,
                plan.peak_burst.as_plain_bytes(),
                aware(*is_aware)
            ),
        }
    }
}

/// Contracts, layer and filter of a run.
#[derive(Clone, Debug)]
pub struct ConformPlan {
    /// Source of the packets, for the heading.
    pub source: String,
    /// The contracts; without one only the inverse is computed.
    pub contracts: Vec<Contract>,
    /// The layer that counts where cells do not.
    pub layer: Layer,
    /// Mapping of packets to cells; `None` when bytes count.
    pub cells: Option<CellMapping>,
    /// Cells per second of the line on which they arrive.
    pub line: CellRate,
    /// Filter of the packets that count.
    pub filter: Filter,
    /// Largest IP packet of the link, where it is known; longer ones were joined by offload.
    pub mtu_bytes: Option<u32>,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_contract_prints_in_the_words_of_its_standard() {
        let contract = Contract::parse_gcra("pcr=353207.55,cdvt=50us,scr=1000,mbs=32");
        let text = "GCRA: PCR 353207.55 cells/s, CDVT 50us, SCR 1000 cells/s, MBS 32 cells";
        assert_eq!(contract.map(|contract| contract.to_string()).as_deref(), Ok(text));
        let contract = Contract::parse_srtcm("cir=8k, cbs=3000, ebs=1500, aware");
        let text = "srTCM: CIR 8 kbit/s, CBS 3000 bytes, EBS 1500 bytes, colour-aware";
        assert_eq!(contract.map(|contract| contract.to_string()).as_deref(), Ok(text));
    }

    #[test]
    fn keys_are_checked() {
        let refused = |text: &str| Contract::token_bucket(text).expect_err(text).to_string();
        assert_eq!(refused("rate=1M,rate=2M,burst=1"), "rate is given twice");
        assert_eq!(refused("rate=1M,depth=1"), "depth is not among the parameters rate burst");
        assert_eq!(refused("rate=1M"), "burst is missing; the parameters are rate burst");
        assert!(refused("10M").contains("is not KEY=VALUE"));
        assert!(refused("rate=ten,burst=1").starts_with("rate: "));
    }

    proptest! {
        #[test]
        fn no_text_panics(
            text in ".{0,40}|((pcr|cdvt|scr|mbs|rate|burst|cir|cbs)=[0-9.a-zA-Z/]{0,8},?){0,4}",
        ) {
            let _ = Contract::parse_gcra(&text);
            let _ = Contract::token_bucket(&text);
            let _ = Contract::parse_srtcm(&text);
            let _ = Contract::parse_trtcm(&text);
        }
    }
}
