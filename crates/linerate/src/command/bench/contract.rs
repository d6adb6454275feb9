//! `--contract` of `linerate bench`: what was ordered of a policer or shaper (MEF 10, RFC 2698
//! names the same quantities).

use std::str::FromStr;

use linerate_core::record::BenchContract;
use linerate_core::units::{BitRate, Bytes};

use super::words::{settings, value};

/// `cir=10M,cbs=64K[,eir=5M,ebs=64K]`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Contract(pub(super) BenchContract);

impl FromStr for Contract {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (mut cir, mut cbs, mut eir, mut ebs) = (None, None, None, None);
        for (key, text) in settings(text, &["cir", "cbs", "eir", "ebs"])? {
            match key {
                "cir" => cir = Some(rate(key, text)?),
                "eir" => eir = Some(rate(key, text)?),
                "cbs" => cbs = Some(size(key, text)?),
                _ => ebs = Some(size(key, text)?),
            }
        }
        let cir = cir.ok_or("it lacks cir=RATE, the committed rate")?;
        let cbs_bytes = cbs.ok_or("it lacks cbs=SIZE, the committed burst")?;
        if eir.is_some() != ebs.is_some() {
            return Err("eir=RATE and ebs=SIZE go together".to_owned());
        }
        Ok(Self(BenchContract { cir, cbs_bytes, eir, ebs_bytes: ebs }))
    }
}

fn rate(key: &str, text: &str) -> Result<BitRate, String> {
    let rate: BitRate = value(key, text)?;
    if rate.bits_per_sec() == 0 { Err(format!("{key} is 0")) } else { Ok(rate) }
}

/// Bytes of frames that a bucket holds: the shortest frame has to fit.
fn size(key: &str, text: &str) -> Result<u64, String> {
    let bytes = value::<Bytes>(key, text)?.count();
    if bytes < 64 { Err(format!("{key} holds not even a frame of 64 bytes")) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_contract_is_two_or_four_parameters() {
        let Contract(contract) = "cir=10M,cbs=64k".parse().expect("two");
        assert_eq!(contract.cir, BitRate::from_bits_per_sec(10_000_000));
        assert_eq!((contract.cbs_bytes, contract.eir), (65_536, None));
        let Contract(contract) = "cir=10M,cbs=64k,eir=5M,ebs=32k".parse().expect("four");
        assert_eq!(contract.ebs_bytes, Some(32_768));
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
        ] {
            let error = wrong.parse::<Contract>().expect_err(wrong);
            assert!(error.contains(part) && !error.contains('\n'), "{wrong}: {error}");
        }
    }
}
