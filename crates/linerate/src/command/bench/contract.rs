//! `--contract` of `linerate bench`: what was ordered of a policer or shaper (MEF 10, RFC 2698
//! names the same quantities), or of one for cells (ATM Forum Traffic Management 4.0).

use std::str::FromStr;

use linerate_core::record::{BenchContract, CellContract};
use linerate_core::units::{BitRate, Bytes, FrameLen, PacketRate, parse_span};

use super::words::{parse_count, parse_value, settings};
use crate::command::flags::span_nanos;

/// Traffic contract that was ordered, in bits or in cells.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ContractArg {
    /// Bit rates and bursts: `cir=10M,cbs=64K[,eir=5M,ebs=64K]`.
    Bits(BenchContract),
    /// `pcr=1000[,cdvt=4ms],scr=250,mbs=32[,cell=64]`, with the length of frames that are cells.
    Cells(CellContract, Option<FrameLen>),
}

const KEYS_OF_BITS: [&str; 4] = ["cir", "cbs", "eir", "ebs"];
const KEYS_OF_CELLS: [&str; 5] = ["pcr", "cdvt", "scr", "mbs", "cell"];

impl FromStr for ContractArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let key = |part: &str| part.split('=').next().unwrap_or("").to_owned();
        let keys: Vec<String> = text.split(',').map(key).collect();
        let has = |known: &[&str]| keys.iter().any(|key| known.contains(&key.as_str()));
        match (has(&KEYS_OF_BITS), has(&KEYS_OF_CELLS)) {
            (true, true) => Err("it is of bits (cir=, cbs=) or of cells (pcr=, scr=, mbs=)".into()),
            (false, true) => of_cells(text),
            _ => of_bits(text),
        }
    }
}

fn of_bits(text: &str) -> Result<ContractArg, String> {
    let (mut cir, mut cbs, mut eir, mut ebs) = (None, None, None, None);
    for (key, text) in settings(text, &KEYS_OF_BITS)? {
        match key {
            "cir" => cir = Some(parse_bit_rate(key, text)?),
            "eir" => eir = Some(parse_bit_rate(key, text)?),
            "cbs" => cbs = Some(parse_bucket_bytes(key, text)?),
            _ => ebs = Some(parse_bucket_bytes(key, text)?),
        }
    }
    let cir = cir.ok_or("it lacks cir=RATE, the committed rate")?;
    let cbs_bytes = cbs.ok_or("it lacks cbs=SIZE, the committed burst")?;
    if eir.is_some() != ebs.is_some() {
        return Err("eir=RATE and ebs=SIZE go together".to_owned());
    }
    Ok(ContractArg::Bits(BenchContract { cir, cbs_bytes, eir, ebs_bytes: ebs }))
}

fn of_cells(text: &str) -> Result<ContractArg, String> {
    let (mut pcr, mut cdvt, mut scr, mut mbs, mut cell) = (None, None, None, None, None);
    for (key, text) in settings(text, &KEYS_OF_CELLS)? {
        match key {
            "pcr" => pcr = Some(parse_value::<PacketRate>(key, text)?.per_sec()),
            "scr" => scr = Some(parse_value::<PacketRate>(key, text)?.per_sec()),
            "mbs" => mbs = Some(parse_count(key, text)?),
            "cell" => cell = Some(parse_value::<FrameLen>(key, text)?),
            _ => cdvt = Some(parse_span(text).map_err(|error| format!("cdvt: {error}"))?),
        }
    }
    let contract = CellContract {
        pcr_per_sec: pcr.ok_or("it lacks pcr=CELLS/S, the peak rate")?,
        cdvt_ns: cdvt.map(span_nanos),
        scr_per_sec: scr.ok_or("it lacks scr=CELLS/S, the sustained rate")?,
        mbs_cells: mbs.ok_or("it lacks mbs=CELLS, the burst at the peak rate")?,
    };
    contract.check_parameters().map_err(|(key, reason)| format!("{key}: {reason}"))?;
    Ok(ContractArg::Cells(contract, cell))
}

fn parse_bit_rate(key: &str, text: &str) -> Result<BitRate, String> {
    let rate: BitRate = parse_value(key, text)?;
    if rate.bits_per_sec() == 0 { Err(format!("{key} is 0")) } else { Ok(rate) }
}

/// Bytes of frames that a bucket holds: the shortest frame has to fit.
fn parse_bucket_bytes(key: &str, text: &str) -> Result<u64, String> {
    let bytes = parse_value::<Bytes>(key, text)?.count();
    if bytes < 64 { Err(format!("{key} holds not even a frame of 64 bytes")) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_contract_is_two_or_four_parameters() {
        let bits = |text: &str| match text.parse().expect(text) {
            ContractArg::Bits(contract) => contract,
            other @ ContractArg::Cells(..) => panic!("{other:?}"),
        };
        let contract = bits("cir=10M,cbs=64k");
        assert_eq!(contract.cir, BitRate::from_bits_per_sec(10_000_000));
        assert_eq!((contract.cbs_bytes, contract.eir), (65_536, None));
        let contract = bits("cir=10M,cbs=64k,eir=5M,ebs=32k");
        assert_eq!(contract.ebs_bytes, Some(32_768));
    }

    #[test]
    fn a_contract_of_cells_is_two_rates_and_a_burst() {
        let ordered = CellContract {
            pcr_per_sec: 353_208.0,
            cdvt_ns: Some(4_000),
            scr_per_sec: 1000.0,
            mbs_cells: 32,
        };
        let whole = "pcr=353208,cdvt=4us,scr=1k,mbs=32,cell=64".parse();
        assert_eq!(whole, Ok(ContractArg::Cells(ordered.clone(), FrameLen::from_bytes(64).ok())));
        let plain = CellContract { cdvt_ns: None, ..ordered };
        assert_eq!("pcr=353208,scr=1k,mbs=32".parse(), Ok(ContractArg::Cells(plain, None)));
    }

    #[test]
    fn what_is_no_contract_is_refused_in_one_line() {
        for (wrong, part) in [
            ("cbs=64k", "lacks cir=RATE"),
            ("cir=10M", "lacks cbs=SIZE"),
            ("cir=10M,cbs=64k,eir=1M", "go together"),
            ("cir=10M,cbs=64k,ebs=1500", "go together"),
            ("cir=0,cbs=64k", "cir is 0"),
            ("cir=10M,cbs=10", "not even a frame"),
            ("cir=fast,cbs=64k", "cir: "),
            ("pir=10M", "is none of cir="),
            ("pcr=1k,cbs=64k", "of bits (cir=, cbs=) or of cells"),
            ("scr=1k,mbs=32", "lacks pcr="),
            ("pcr=1k,mbs=32", "lacks scr="),
            ("pcr=1k,scr=250", "lacks mbs="),
            ("pcr=1k,scr=2k,mbs=32", "scr: the sustained rate is not below the peak rate"),
            ("pcr=1k,scr=0,mbs=32", "scr: 0 cells/s"),
            ("pcr=1k,scr=250,mbs=0", "mbs: '0' is no whole number above 0"),
            ("pcr=1k,scr=250,mbs=32,cell=53", "cell: "),
        ] {
            let error = wrong.parse::<ContractArg>().expect_err(wrong);
            assert!(error.contains(part) && !error.contains('\n'), "{wrong}: {error}");
        }
    }
}
