//! What carries packets on a link: Ethernet frames, cells, PPP.
//!
//! Left out: what the packets are wrapped in above that (`encapsulation`).

use std::fmt;
use std::str::FromStr;

use super::atm::Aal5;
use super::name::ParseNameError;

/// Link-layer protocol that carries packets on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Carrier {
    /// Ethernet frames; on Wi-Fi the frames of 802.11.
    Ethernet,
    /// AAL5 frames in ATM cells.
    Aal5(Aal5),
    /// PPP on SONET/SDH, with octet stuffing (RFC 2615).
    Pos {
        /// True when the stuffing of random content is counted; an estimate.
        stuffed: bool,
    },
    /// PPP in bit-stuffed HDLC (RFC 1662 §5), for DS1, E1, E3 and DS3.
    Hdlc {
        /// True when the stuffing of random content is counted; an estimate.
        stuffed: bool,
    },
    /// Ethernet frames in 64/65 code on VDSL2.
    Ptm {
        /// True when PPPoE takes eight bytes of the Ethernet payload.
        pppoe: bool,
    },
}

/// Every carrier with its name and title.
const NAMES: [(Carrier, &str, &str); 15] = [
    (Carrier::Ethernet, "ethernet", "Ethernet frames"),
    (Carrier::Aal5(Aal5::LlcSnap), "aal5-llcsnap", "IP in AAL5, LLC/SNAP"),
    (Carrier::Aal5(Aal5::VcMux), "aal5-vcmux", "IP in AAL5, VC multiplexing"),
    (Carrier::Aal5(Aal5::PppVcMux), "pppoa-vcmux", "PPP in AAL5, VC multiplexing"),
    (Carrier::Aal5(Aal5::PppLlc), "pppoa-llc", "PPP in AAL5, LLC"),
    (Carrier::Aal5(Aal5::BridgedVcMux), "bridged-vcmux", "Ethernet in AAL5, VC multiplexing"),
    (Carrier::Aal5(Aal5::BridgedLlcSnap), "bridged-llcsnap", "Ethernet in AAL5, LLC/SNAP"),
    (Carrier::Aal5(Aal5::PppoeVcMux), "pppoe-vcmux", "PPPoE in AAL5, VC multiplexing"),
    (Carrier::Aal5(Aal5::PppoeLlcSnap), "pppoe-llcsnap", "PPPoE in AAL5, LLC/SNAP"),
    (Carrier::Pos { stuffed: false }, "pos", "PPP on SONET/SDH, stuffing not counted"),
    (Carrier::Pos { stuffed: true }, "pos-stuffed", "PPP on SONET/SDH, random content stuffed"),
    (Carrier::Hdlc { stuffed: false }, "hdlc", "PPP in HDLC, stuffing not counted"),
    (Carrier::Hdlc { stuffed: true }, "hdlc-stuffed", "PPP in HDLC, random content stuffed"),
    (Carrier::Ptm { pppoe: false }, "ptm-bridged", "Ethernet on VDSL2"),
    (Carrier::Ptm { pppoe: true }, "ptm-pppoe", "PPPoE on VDSL2"),
];

impl Carrier {
    /// All link-layer protocols, in order.
    pub const ALL: [Self; NAMES.len()] = {
        let mut all = [Self::Ethernet; NAMES.len()];
        let mut index = 0;
        while index < NAMES.len() {
            all[index] = NAMES[index].0;
            index += 1;
        }
        all
    };

    /// The name that the program reads: `aal5-llcsnap`.
    pub fn name(self) -> &'static str {
        self.name_and_title().0
    }

    /// The carrier for people: `IP in AAL5, LLC/SNAP`.
    pub fn display_title(self) -> &'static str {
        self.name_and_title().1
    }

    fn name_and_title(self) -> (&'static str, &'static str) {
        let row = NAMES.iter().find(|row| row.0 == self).expect("every carrier is in the table");
        (row.1, row.2)
    }

    /// True when it carries Ethernet frames, so that VLAN tags and PPPoE fit in.
    pub const fn is_bridged(self) -> bool {
        match self {
            Self::Ethernet | Self::Ptm { .. } => true,
            Self::Aal5(mapping) => mapping.is_bridged(),
            Self::Pos { .. } | Self::Hdlc { .. } => false,
        }
    }

    /// True when PPPoE, which takes eight bytes of the Ethernet payload, is part of it.
    pub const fn is_pppoe(self) -> bool {
        match self {
            Self::Ptm { pppoe } => pppoe,
            Self::Aal5(mapping) => mapping.is_pppoe(),
            Self::Ethernet | Self::Pos { .. } | Self::Hdlc { .. } => false,
        }
    }
}

const ACCEPTED: &str = "ethernet, aal5-llcsnap, aal5-vcmux, pos, pos-stuffed, hdlc, hdlc-stuffed, \
    ptm-bridged, ptm-pppoe, pppoa-vcmux, pppoa-llc, pppoe-vcmux, pppoe-llcsnap, bridged-vcmux or \
    bridged-llcsnap";

impl FromStr for Carrier {
    type Err = ParseNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let name = match text.trim().to_ascii_lowercase() {
            name if name == "ipoa-llcsnap" => "aal5-llcsnap".to_owned(),
            name if name == "ipoa-vcmux" => "aal5-vcmux".to_owned(),
            name => name,
        };
        let row = NAMES.iter().find(|row| row.1 == name);
        row.map(|row| row.0).ok_or_else(|| ParseNameError::new(text, "a carrier", ACCEPTED))
    }
}

impl fmt::Display for Carrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_carrier_is_read_as_it_is_printed_and_is_offered() {
        for carrier in Carrier::ALL {
            assert_eq!(carrier.to_string().parse(), Ok(carrier));
            assert!(ACCEPTED.contains(carrier.name()), "{carrier}");
        }
        for mapping in Aal5::ALL {
            assert!(Carrier::ALL.contains(&Carrier::Aal5(mapping)), "{mapping:?}");
        }
    }

    #[test]
    fn routed_circuits_have_two_names() {
        assert_eq!("ipoa-vcmux".parse(), Ok(Carrier::Aal5(Aal5::VcMux)));
        assert_eq!("IPoA-LLCSNAP".parse(), Ok(Carrier::Aal5(Aal5::LlcSnap)));
    }

    #[test]
    fn what_is_no_carrier_is_refused_in_one_line() {
        let message = "pigeon".parse::<Carrier>().expect_err("none").to_string();
        assert!(message.starts_with("\"pigeon\" is not a carrier: there is none"), "{message}");
        assert!(!message.contains('\n'));
    }
}
