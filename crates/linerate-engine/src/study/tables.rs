//! The published tables that ship with the program, from `studies/data`.

use linerate_core::study::{PublishedError, PublishedTable, TableAbout};

/// A table that ships with the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShippedTable {
    /// Title, study and source of the table.
    pub about: TableAbout,
    csv: &'static str,
}

/// Every table that ships with the program, by year.
pub const TABLES: &[ShippedTable] = &[
    ShippedTable {
        about: TableAbout {
            id: "bradner-1990-routers",
            title: "frame rates of nine routers, by protocol and frame length",
            study: "bradner",
            year: 1990,
            source: "Scott Bradner, router tests volume 3, comp.protocols.tcp-ip, 19 October 1990",
        },
        csv: include_str!("../../../../studies/data/bradner-1990-routers.csv"),
    },
    ShippedTable {
        about: TableAbout {
            id: "nap-1995",
            title: "TCP through the network access points, and over DS3",
            study: "nap",
            year: 1995,
            source: "Curtis Villamizar on notes of a NANOG meeting, NANOG mailing list, 1995",
        },
        csv: include_str!("../../../../studies/data/nap-1995.csv"),
    },
    ShippedTable {
        about: TableAbout {
            id: "oc12-1999",
            title: "a wide-area OC-12: what each layer leaves, what TCP got, slow start",
            study: "oc12",
            year: 1999,
            source: "Performance tests of an OC-12 link between LBNL and ANL, 1999",
        },
        csv: include_str!("../../../../studies/data/oc12-1999.csv"),
    },
    ShippedTable {
        about: TableAbout {
            id: "pren-2000-ping",
            title: "round-trip times by payload, localhost to metropolitan paths",
            study: "pren",
            year: 2000,
            source: "PREN network measurement study, Portland, 2000",
        },
        csv: include_str!("../../../../studies/data/pren-2000-ping.csv"),
    },
    ShippedTable {
        about: TableAbout {
            id: "pren-2000-ttcp",
            title: "TCP throughput by window, localhost to metropolitan paths",
            study: "pren",
            year: 2000,
            source: "PREN network measurement study, Portland, 2000",
        },
        csv: include_str!("../../../../studies/data/pren-2000-ttcp.csv"),
    },
    ShippedTable {
        about: TableAbout {
            id: "gigasunet-2004",
            title: "one TCP connection over 1000 km of gigabit Ethernet",
            study: "gigasunet",
            year: 2004,
            source: "SUNET, End-to-end performance in GigaSunet, 2004",
        },
        csv: include_str!("../../../../studies/data/gigasunet-2004.csv"),
    },
    ShippedTable {
        about: TableAbout {
            id: HISTORY,
            title: "milestones of TCP throughput by year",
            study: "oc12",
            year: 1999,
            source: "the OC-12 study of 1999, section 6, with what was reported until 2006",
        },
        csv: include_str!("../../../../studies/data/tcp-history.csv"),
    },
];

/// Name of the table of milestones.
pub const HISTORY: &str = "tcp-history";

/// The shipped table of this name.
pub fn shipped_table(id: &str) -> Option<&'static ShippedTable> {
    TABLES.iter().find(|table| table.about.id == id)
}

impl ShippedTable {
    /// Reads the table's rows.
    /// # Errors
    /// [`PublishedError`] when the shipped table is spoilt, which a test rules out.
    pub fn read(&self) -> Result<PublishedTable, PublishedError> {
        PublishedTable::from_csv(self.about, self.csv)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_table_is_read_and_has_a_name_of_its_own() {
        for shipped in TABLES {
            let read = shipped.read().unwrap_or_else(|error| panic!("{error}"));
            assert!(!read.cells.is_empty(), "{}", shipped.about.id);
            assert_eq!(shipped_table(shipped.about.id), Some(shipped));
        }
        assert!(
            shipped_table(HISTORY).expect("it ships").read().expect("sound").milestones().len()
                > 10
        );
    }

    #[test]
    fn all_five_studies_have_a_table() {
        for study in ["bradner", "nap", "oc12", "pren", "gigasunet"] {
            assert!(TABLES.iter().any(|table| table.about.study == study), "{study}");
        }
    }
}
