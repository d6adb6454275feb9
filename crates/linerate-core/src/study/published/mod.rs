//! Figures that were published before, read from the tables in `studies/data`.
//!
//! One model for all: a table has a name, the study it is from, and rows of one of five kinds,
//! with every cell as it was printed beside its parsed value. Left out: where the files are, which
//! the engine knows, and how they are shown, which the report knows.

mod printed;
mod read;
mod rows;
mod theory;

pub use printed::{NotAFigure, Printed};
pub use read::{ErrorColumn, PublishedError};
pub use rows::{
    Cards, Milestone, MilestoneSet, PacketsPerSecond, PublishedItem, PublishedPing,
    PublishedRouter, PublishedTcp, Streams,
};
pub use theory::{Relation, Theory, TheoryComparison};

use serde::Serialize;

use super::PublishedAs;

/// Title and origin of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TableAbout {
    /// Its name: that of its file without the ending.
    pub id: &'static str,
    /// Title of its rows, for headings.
    pub title: &'static str,
    /// The study, by a short name: `pren`.
    pub study: &'static str,
    /// When it was published.
    pub year: u16,
    /// Author, title, where and when.
    pub source: &'static str,
}

/// One published table.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedTable {
    /// Title, study and source of the table.
    pub about: TableAbout,
    /// Its headings.
    pub columns: Vec<String>,
    /// Every cell as printed; empty where nothing was printed.
    pub cells: Vec<Vec<String>>,
    /// The rows with types.
    pub rows: PublishedRows,
}

/// Rows of one kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum PublishedRows {
    /// Round-trip times by topology and payload.
    Ping(Vec<PublishedPing>),
    /// Throughput by topology, MTU and window.
    Tcp(Vec<PublishedTcp>),
    /// Frame rates by router, protocol and frame length.
    Routers(Vec<PublishedRouter>),
    /// Single figures of a text.
    Items(Vec<PublishedItem>),
    /// TCP throughput by year.
    Milestones(Vec<Milestone>),
}

impl PublishedTable {
    /// Reads a table; its heading says of which kind it is.
    /// # Errors
    /// [`PublishedError`] with the file `ID.csv`, the line and the column that does not fit.
    pub fn from_csv(about: TableAbout, text: &str) -> Result<Self, PublishedError> {
        let parsed = read::parse(&format!("{}.csv", about.id), text);
        // A cell in quotes may have lines.
        let read::Parsed { columns, cells, rows } = parsed.map_err(|error| PublishedError {
            reason: crate::lab::one_line(&error.reason),
            ..error
        })?;
        Ok(Self { about, columns, cells, rows })
    }

    /// Figure of theory for a row, counted from 0.
    pub fn theory(&self, row: usize) -> Option<Theory> {
        theory::row_theory(self, row)
    }

    /// How a row's published figure compares with theory; `None` where either is absent and for a
    /// figure that is a range.
    pub fn compared(&self, row: usize) -> Option<TheoryComparison> {
        let (published, rounding) = theory::published(self, row)?;
        Some(self.theory(row)?.compare(published, rounding))
    }

    /// The milestones of the table; none where it has rows of another kind.
    pub fn milestones(&self) -> &[Milestone] {
        match &self.rows {
            PublishedRows::Milestones(rows) => rows,
            _ => &[],
        }
    }
}

/// The figures of one published study, for the report of a run of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PublishedFigures {
    /// Round-trip times by payload.
    pub ping: Vec<PublishedPing>,
    /// Throughput by window.
    pub tcp: Vec<PublishedTcp>,
    /// Single figures by name.
    pub items: Vec<PublishedItem>,
    /// Frame rates of routers.
    pub routers: Vec<PublishedRouter>,
}

impl PublishedFigures {
    /// The rows of these tables, milestones left out.
    pub fn from_tables(tables: impl IntoIterator<Item = PublishedTable>) -> Self {
        let mut figures = Self::default();
        for table in tables {
            match table.rows {
                PublishedRows::Ping(rows) => figures.ping.extend(rows),
                PublishedRows::Tcp(rows) => figures.tcp.extend(rows),
                PublishedRows::Items(rows) => figures.items.extend(rows),
                PublishedRows::Routers(rows) => figures.routers.extend(rows),
                PublishedRows::Milestones(_) => {}
            }
        }
        figures
    }

    /// The ping row that belongs beside a topology's payload size. The tables of 2000 do not vary
    /// the MTU of pings, so `mtu_bytes` does not select here.
    pub fn ping_row(&self, of: &PublishedAs, payload_bytes: u32) -> Option<&PublishedPing> {
        self.ping.iter().find(|row| row.test == of.test && row.payload_bytes == payload_bytes)
    }

    /// The TCP row that belongs beside a topology's window.
    pub fn tcp_row(&self, of: &PublishedAs, window_bytes: u64) -> Option<&PublishedTcp> {
        self.tcp
            .iter()
            .filter(|row| of.mtu_bytes.is_none_or(|mtu| mtu == row.mtu_bytes))
            .find(|row| row.test == of.test && row.window_bytes == window_bytes)
    }
}

#[cfg(test)]
mod tests;
