//! The caveats of all runs of a study, gathered: each kind once, with how often and where.

use std::collections::BTreeMap;

use linerate_core::record::{Caveat, CaveatCode};

use super::grid::Grid;
use crate::csv::variant_name;
use crate::document::ReportSection;
use crate::words;

/// One line per kind of caveat; none when no run has any.
pub(crate) fn section(grid: &Grid<'_>) -> Option<ReportSection> {
    let mut kinds: BTreeMap<(bool, CaveatCode), Vec<(&str, &Caveat)>> = BTreeMap::new();
    for record in &grid.well {
        let row = record.cell.as_ref().and_then(|cell| grid.find_topology(&cell.topology));
        let topology = row.map_or("", |row| row.topology.title.as_str());
        let mut seen = Vec::new();
        for caveat in &record.caveats {
            if seen.contains(&caveat.code) {
                continue;
            }
            seen.push(caveat.code);
            // The instrument's own limits sort first: they say most about the numbers.
            let key = (!words::is_own_limit(caveat.code), caveat.code);
            kinds.entry(key).or_default().push((topology, caveat));
        }
    }
    let notes: Vec<String> =
        kinds.iter().map(|((_, code), found)| caveat_line(grid, *code, found)).collect();
    (!notes.is_empty()).then(|| ReportSection::from_tables("Caveats".to_owned(), [], notes))
}

fn caveat_line(grid: &Grid<'_>, code: CaveatCode, found: &[(&str, &Caveat)]) -> String {
    let mut topologies: Vec<String> = Vec::new();
    for (topology, _) in found {
        let quoted = format!("'{topology}'");
        if !topologies.contains(&quoted) {
            topologies.push(quoted);
        }
    }
    let places = if topologies.len() == grid.topologies.len() {
        "all topologies".to_owned()
    } else {
        words::listed(&topologies)
    };
    let runs = if found.len() == grid.well.len() {
        "every run".to_owned()
    } else {
        format!("{} of {} runs", found.len(), grid.well.len())
    };
    // The first one stands for all of its kind.
    let first = found.first().map_or_else(String::new, |(_, caveat)| caveat.to_string());
    let same = found.iter().all(|(_, caveat)| caveat.to_string() == first);
    let lead = if same { "" } else { "for example, " };
    format!("{} ({runs}; {places}): {lead}{first}", variant_name(code))
}
