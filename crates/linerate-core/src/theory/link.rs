//! The links that ceilings are known of, by name.
//!
//! Left out: what runs on them (`carrier`, `encapsulation`) and how much they leave (`stack`).

use std::fmt;
use std::str::FromStr;

use super::atm;
use super::carrier::Carrier;
use super::framing::{self, frame_sizes, whole_frame_rate};
use super::name::ParseNameError;
use super::sonet::{Pdh, Sonet, WAN_PHY_LINE_BPS};
use crate::units::BitRate;

/// A link: its kind and rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinkTechnology {
    /// Ethernet at any rate.
    Ethernet(BitRate),
    /// 10GBASE-W: Ethernet frames in an OC-192 payload.
    WanPhy,
    /// Optical line of SONET/SDH.
    Sonet(Sonet),
    /// DS1, E1, E3 or DS3.
    Pdh(Pdh),
    /// A cable modem with its provisioned rate.
    Docsis(BitRate),
    /// A VDSL2 line with its synchronised rate, packets in 64/65 code.
    Vdsl2(BitRate),
    /// An ADSL line with its synchronised rate, cells.
    Adsl(BitRate),
    /// A shaper that counts IP packet and Ethernet header: Linux's tbf and htb without a `stab`.
    Shaped(BitRate),
    /// Wi-Fi with aggregated frames at a physical rate; an estimate.
    Wifi(BitRate),
    /// 802.11a or g without aggregation at one of its eight rates; an estimate.
    WifiLegacy(BitRate),
}

/// A link with its name and title.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedLink {
    /// Name that [`LinkTechnology`] reads and prints.
    pub name: &'static str,
    /// Title of the link, for people.
    pub title: &'static str,
    /// The link of this name.
    pub link: LinkTechnology,
}

const fn named_link(name: &'static str, title: &'static str, link: LinkTechnology) -> NamedLink {
    NamedLink { name, title, link }
}

const fn ethernet(mbps: u64) -> LinkTechnology {
    LinkTechnology::Ethernet(BitRate::from_bits_per_sec(mbps * 1_000_000))
}

impl LinkTechnology {
    /// Links with a name and a rate of their own: Ethernet, SONET/SDH and older lines, each kind
    /// slowest first.
    pub const NAMED: &'static [NamedLink] = &[
        named_link("10m", "10 Mbit/s Ethernet", ethernet(10)),
        named_link("100m", "100 Mbit/s Ethernet", ethernet(100)),
        named_link("1g", "1 Gbit/s Ethernet", ethernet(1_000)),
        named_link("2.5g", "2.5 Gbit/s Ethernet", ethernet(2_500)),
        named_link("5g", "5 Gbit/s Ethernet", ethernet(5_000)),
        named_link("10gbase-w", "10GBASE-W, Ethernet in OC-192", Self::WanPhy),
        named_link("10g", "10 Gbit/s Ethernet", ethernet(10_000)),
        named_link("25g", "25 Gbit/s Ethernet", ethernet(25_000)),
        named_link("40g", "40 Gbit/s Ethernet", ethernet(40_000)),
        named_link("50g", "50 Gbit/s Ethernet", ethernet(50_000)),
        named_link("100g", "100 Gbit/s Ethernet", ethernet(100_000)),
        named_link("200g", "200 Gbit/s Ethernet", ethernet(200_000)),
        named_link("400g", "400 Gbit/s Ethernet", ethernet(400_000)),
        named_link("800g", "800 Gbit/s Ethernet", ethernet(800_000)),
        named_link("oc1", "OC-1 (STM-0)", Self::Sonet(Sonet::Oc1)),
        named_link("oc3", "OC-3c (STM-1)", Self::Sonet(Sonet::Oc3)),
        named_link("oc12", "OC-12c (STM-4)", Self::Sonet(Sonet::Oc12)),
        named_link("oc48", "OC-48c (STM-16)", Self::Sonet(Sonet::Oc48)),
        named_link("oc192", "OC-192c (STM-64)", Self::Sonet(Sonet::Oc192)),
        named_link("oc768", "OC-768c (STM-256)", Self::Sonet(Sonet::Oc768)),
        named_link("ds1", "DS1 (T1)", Self::Pdh(Pdh::Ds1)),
        named_link("e1", "E1", Self::Pdh(Pdh::E1)),
        named_link("e3", "E3", Self::Pdh(Pdh::E3)),
        named_link("ds3", "DS3 (T3)", Self::Pdh(Pdh::Ds3)),
        named_link("ds3-plcp", "DS3 (T3), cells in PLCP", Self::Pdh(Pdh::Ds3Plcp)),
    ];

    /// Rate at which bits leave; the rate that was given for a link that is known by it.
    pub const fn bit_rate(self) -> BitRate {
        match self {
            Self::Ethernet(rate)
            | Self::Docsis(rate)
            | Self::Vdsl2(rate)
            | Self::Adsl(rate)
            | Self::Shaped(rate)
            | Self::Wifi(rate)
            | Self::WifiLegacy(rate) => rate,
            Self::WanPhy => BitRate::from_bits_per_sec(WAN_PHY_LINE_BPS),
            Self::Sonet(line) => BitRate::from_bits_per_sec(line.line_bps()),
            Self::Pdh(line) => BitRate::from_bits_per_sec(line.line_bps()),
        }
    }

    /// The link for people: `OC-12c (STM-4)`, `1 Gbit/s Ethernet`, `VDSL2 at 50 Mbit/s`.
    pub fn display_title(self) -> String {
        if let Some(known) = Self::NAMED.iter().find(|known| known.link == self) {
            return known.title.to_owned();
        }
        let kind = match self {
            Self::Ethernet(rate) => return format!("{rate} Ethernet"),
            Self::Docsis(_) => "cable modem",
            Self::Vdsl2(_) => "VDSL2",
            Self::Adsl(_) => "ADSL",
            Self::Shaped(_) => "shaper",
            Self::Wifi(_) => "Wi-Fi",
            Self::WifiLegacy(_) => "802.11a/g",
            Self::WanPhy | Self::Sonet(_) | Self::Pdh(_) => "line",
        };
        format!("{kind} at {}", self.bit_rate())
    }

    /// Link-layer protocol of the link unless another is asked for.
    pub const fn default_carrier(self) -> Carrier {
        match self {
            Self::Sonet(_) => Carrier::Pos { stuffed: false },
            Self::Pdh(_) => Carrier::Hdlc { stuffed: false },
            Self::Vdsl2(_) => Carrier::Ptm { pppoe: false },
            Self::Adsl(_) => Carrier::Aal5(atm::Aal5::PppoeLlcSnap),
            Self::Ethernet(_)
            | Self::WanPhy
            | Self::Docsis(_)
            | Self::Shaped(_)
            | Self::Wifi(_)
            | Self::WifiLegacy(_) => Carrier::Ethernet,
        }
    }

    /// MTU that is usual with a carrier: 9180 for IP in cells on a backbone (RFC 2225), 4470 for
    /// packets on SONET (routers' default, which lets FDDI's packets through), 1500 elsewhere.
    pub const fn default_mtu_bytes(self, carrier: Carrier) -> u32 {
        match (self, carrier) {
            (
                Self::Sonet(_) | Self::Pdh(_),
                Carrier::Aal5(atm::Aal5::LlcSnap | atm::Aal5::VcMux),
            ) => atm::IP_MTU_BYTES,
            (Self::Sonet(_), Carrier::Pos { .. }) => 4470,
            _ => 1500,
        }
    }

    /// True when the carrier runs on the link.
    pub const fn supports_carrier(self, carrier: Carrier) -> bool {
        match self {
            Self::Sonet(_) => matches!(carrier, Carrier::Pos { .. } | Carrier::Aal5(_)),
            Self::Pdh(_) => matches!(carrier, Carrier::Hdlc { .. } | Carrier::Aal5(_)),
            Self::Vdsl2(_) => matches!(carrier, Carrier::Ptm { .. }),
            Self::Adsl(_) => matches!(carrier, Carrier::Aal5(_)),
            Self::Ethernet(_)
            | Self::WanPhy
            | Self::Docsis(_)
            | Self::Shaped(_)
            | Self::Wifi(_)
            | Self::WifiLegacy(_) => matches!(carrier, Carrier::Ethernet),
        }
    }

    /// Whole frames per second that fill an Ethernet link, for each of
    /// [`framing::FRAME_SIZES_BYTES`]; `None` for another link.
    /// # Source
    /// RFC 5180 appendix A.
    pub fn frame_rates(self) -> Option<[u64; framing::FRAME_SIZES_BYTES.len()]> {
        let Self::Ethernet(rate) = self else { return None };
        Some(frame_sizes().map(|len| whole_frame_rate(rate, len)))
    }
}

const ACCEPTED: &str = "oc1 to oc768, stm1 to stm256, ds1, e1, e3, ds3, ds3-plcp, an Ethernet \
    rate such as 1g, 10gbase-w, or one of docsis vdsl2 adsl shaped wifi wifi-legacy with a rate: \
    vdsl2:50m";

impl FromStr for LinkTechnology {
    type Err = ParseNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let name = text.trim().to_ascii_lowercase();
        if let Some(known) = Self::NAMED.iter().find(|known| known.name == name) {
            return Ok(known.link);
        }
        if let Some(link) = other_name(&name) {
            return Ok(link);
        }
        let refused = || ParseNameError::new(text, "a link", ACCEPTED);
        let rate = |rate: &str| {
            rate.parse::<BitRate>().map_err(|error| refused().because(error.to_string()))
        };
        match text.trim().split_once(':') {
            Some((kind, of)) => {
                let of_rate = kind_of(&kind.to_ascii_lowercase()).ok_or_else(refused)?;
                Ok(of_rate(rate(of)?))
            }
            None if name.starts_with(|first: char| first.is_ascii_digit() || first == '.') => {
                Ok(Self::Ethernet(rate(text)?))
            }
            None => Err(refused()),
        }
    }
}

/// Other names of links that have one.
fn other_name(name: &str) -> Option<LinkTechnology> {
    Some(match name {
        "stm0" => LinkTechnology::Sonet(Sonet::Oc1),
        "stm1" => LinkTechnology::Sonet(Sonet::Oc3),
        "stm4" => LinkTechnology::Sonet(Sonet::Oc12),
        "stm16" => LinkTechnology::Sonet(Sonet::Oc48),
        "stm64" => LinkTechnology::Sonet(Sonet::Oc192),
        "stm256" => LinkTechnology::Sonet(Sonet::Oc768),
        "t1" => LinkTechnology::Pdh(Pdh::Ds1),
        "t3" => LinkTechnology::Pdh(Pdh::Ds3),
        _ => return None,
    })
}

/// Links that are known by a rate.
fn kind_of(name: &str) -> Option<fn(BitRate) -> LinkTechnology> {
    Some(match name {
        "ethernet" => LinkTechnology::Ethernet,
        "docsis" => LinkTechnology::Docsis,
        "vdsl2" => LinkTechnology::Vdsl2,
        "adsl" => LinkTechnology::Adsl,
        "shaped" => LinkTechnology::Shaped,
        "wifi" => LinkTechnology::Wifi,
        "wifi-legacy" => LinkTechnology::WifiLegacy,
        _ => return None,
    })
}

impl fmt::Display for LinkTechnology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(known) = Self::NAMED.iter().find(|known| known.link == *self) {
            return f.pad(known.name);
        }
        let rate = rate_text(self.bit_rate());
        f.pad(&match self {
            Self::Docsis(_) => format!("docsis:{rate}"),
            Self::Vdsl2(_) => format!("vdsl2:{rate}"),
            Self::Adsl(_) => format!("adsl:{rate}"),
            Self::Shaped(_) => format!("shaped:{rate}"),
            Self::Wifi(_) => format!("wifi:{rate}"),
            Self::WifiLegacy(_) => format!("wifi-legacy:{rate}"),
            Self::Ethernet(_) | Self::WanPhy | Self::Sonet(_) | Self::Pdh(_) => rate,
        })
    }
}

/// A rate as short as it can be without rounding: `2.5g`, `622.08m`, `1234567`.
fn rate_text(rate: BitRate) -> String {
    let bps = rate.bits_per_sec();
    let units = [(1_000_000_000, 'g'), (1_000_000, 'm'), (1_000, 'k')];
    for (unit, letter) in units {
        // At most three digits after the point; a smaller unit says the rest.
        if bps >= unit && bps.is_multiple_of(unit / 1000) {
            let thousandths = bps % unit / (unit / 1000);
            let digits = format!("{}.{thousandths:03}", bps / unit);
            return format!("{}{letter}", digits.trim_end_matches('0').trim_end_matches('.'));
        }
    }
    bps.to_string()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse_link(text: &str) -> LinkTechnology {
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn every_named_link_is_read_and_printed() {
        for known in LinkTechnology::NAMED {
            assert_eq!(parse_link(known.name), known.link);
            assert_eq!(known.link.to_string(), known.name);
            assert_eq!(known.link.display_title(), known.title);
        }
    }

    #[test]
    fn other_names_and_rates_are_read() {
        let cases = [
            ("STM4", "oc12", "OC-12c (STM-4)"),
            ("t3", "ds3", "DS3 (T3)"),
            ("1000M", "1g", "1 Gbit/s Ethernet"),
            ("2.5 Gbit/s", "2.5g", "2.5 Gbit/s Ethernet"),
            ("155.52m", "155.52m", "155.52 Mbit/s Ethernet"),
            ("ethernet:7k", "7k", "7 kbit/s Ethernet"),
            ("docsis:250M", "docsis:250m", "cable modem at 250 Mbit/s"),
            ("vdsl2:50m", "vdsl2:50m", "VDSL2 at 50 Mbit/s"),
            ("adsl:7616k", "adsl:7.616m", "ADSL at 7.62 Mbit/s"),
            ("Shaped:155.52M", "shaped:155.52m", "shaper at 155.52 Mbit/s"),
            ("wifi:866.7M", "wifi:866.7m", "Wi-Fi at 866.7 Mbit/s"),
            ("wifi-legacy:54M", "wifi-legacy:54m", "802.11a/g at 54 Mbit/s"),
            ("1234567", "1234.567k", "1.23 Mbit/s Ethernet"),
        ];
        for (text, name, title) in cases {
            assert_eq!(parse_link(text).to_string(), name);
            assert_eq!(parse_link(text).display_title(), title);
        }
    }

    #[test]
    fn what_is_no_link_is_refused_in_one_line() {
        let refused = |text: &str| text.parse::<LinkTechnology>().expect_err(text).to_string();
        assert_eq!(
            refused("oc7"),
            "\"oc7\" is not a link: there is none of that name; write oc1 to oc768, stm1 to \
             stm256, ds1, e1, e3, ds3, ds3-plcp, an Ethernet rate such as 1g, 10gbase-w, or one \
             of docsis vdsl2 adsl shaped wifi wifi-legacy with a rate: vdsl2:50m"
        );
        for text in ["", ":", "vdsl2", "vdsl2:", "vdsl2:fast", "10MB/s", "dsl:5m", "10gbase-r"] {
            let message = refused(text);
            assert!(!message.contains('\n') && message.len() < 600, "{message}");
        }
        assert!(refused(&"x".repeat(10_000)).len() < 600);
    }

    #[test]
    fn bradners_frame_rates_come_out_to_800_gigabit() {
        // RFC 5180 appendix A; 9018: 10^7 / (8 × 9038) = 138.3.
        let rates = |text| parse_link(text).frame_rates().expect("Ethernet");
        assert_eq!(rates("10m"), [14_880, 8_445, 4_528, 2_349, 1_197, 961, 812, 138]);
        assert_eq!(rates("800g")[0], 1_190_476_190);
        assert_eq!(rates("800g")[6], 65_019_505);
        assert_eq!(parse_link("oc12").frame_rates(), None);
    }

    #[test]
    fn every_link_takes_its_own_carrier() {
        for known in LinkTechnology::NAMED {
            assert!(known.link.supports_carrier(known.link.default_carrier()), "{}", known.name);
        }
    }

    proptest! {
        #[test]
        fn every_link_prints_as_it_is_read(bps: u64, kind in 0_usize..7) {
            use LinkTechnology::{Adsl, Docsis, Ethernet, Shaped, Vdsl2, Wifi, WifiLegacy};
            let kinds = [Ethernet, Docsis, Vdsl2, Adsl, Shaped, Wifi, WifiLegacy];
            let made = kinds[kind](BitRate::from_bits_per_sec(bps));
            prop_assert_eq!(made.to_string().parse(), Ok(made));
        }

        #[test]
        fn no_text_panics(text in ".{0,30}|(docsis|wifi|oc|stm)?:?[0-9.]{0,20}[gm]?") {
            let _ = text.parse::<LinkTechnology>();
        }
    }
}
