//! Bars of what each path loses of localhost's throughput.

use super::super::compare::{TopologyComparison, is_localhost};
use super::super::grid::Grid;
use super::super::spoilt::{limited_caption, ratio_marked};
use crate::document::ReportFigure;
use crate::number;
use crate::svg::{BarChart, BarRow, described_rows};

/// The bars; none without a localhost.
pub(super) fn loss_bars(grid: &Grid<'_>, compared: &TopologyComparison) -> Option<ReportFigure> {
    let reference = compared.roles.localhost.filter(|_| compared.roles.compare(grid.plan))?;
    let has_past = compared.past.iter().any(|point| point.bps.is_some());
    let setting = compared.setting_in_words();
    let rows: Vec<BarRow> = grid
        .topologies
        .iter()
        .enumerate()
        .filter(|(_, row)| !is_localhost(row.topology))
        .map(|(index, row)| {
            let mut losses = vec![compared.loss_of_localhost(&compared.now, index)];
            if has_past {
                losses.push(compared.loss_of_localhost(&compared.past, index));
            }
            let is_base_spoilt = compared.is_spoilt(Some(reference));
            let texts = loss_texts(&losses, compared.is_spoilt(Some(index)), is_base_spoilt);
            if is_base_spoilt {
                // A bar would be read.
                losses[0] = None;
            }
            BarRow {
                label: row.topology.title.clone(),
                texts,
                values: losses.iter().map(|loss| loss.map(|ratio| ratio * 100.0)).collect(),
            }
        })
        .collect();
    rows.iter().any(|row| row.values.iter().any(Option::is_some)).then(|| {
        let mut names = vec!["now".to_owned()];
        names.extend(has_past.then(|| grid.past.clone()));
        let chart = BarChart {
            stacked: false,
            title: format!("Loss of localhost's TCP throughput at {setting}"),
            description: described_rows(&rows),
            axis: "% of localhost's throughput that is lost".to_owned(),
            names,
            rows,
        };
        let caption = format!(
            "Best run of each topology against the best of {}, at {setting}. Longer bars lost \
             more; a bar to the left of 0 was faster.{}",
            grid.topologies[reference].topology.title,
            limited_caption(chart.rows.iter().flat_map(|row| &row.texts))
        );
        let panels = vec![("loss-of-localhost.svg".to_owned(), chart.svg())];
        ReportFigure::new("What a path costs", caption, panels)
    })
}

/// The measured loss, marked where this host limited its run and none where it limited that of the
/// base; then the published one as it was printed.
fn loss_texts(losses: &[Option<f64>], is_spoilt: bool, is_base_spoilt: bool) -> Vec<String> {
    let measured = |loss| ratio_marked(number::loss_percent(loss), is_spoilt, is_base_spoilt);
    let (now, past) = (losses.iter().take(1), losses.iter().skip(1));
    let now = now.map(|loss| number::or_dash(*loss, measured));
    now.chain(past.map(|loss| number::or_dash(*loss, number::published_loss))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measured_losses_of_a_limited_host_are_marked_and_published_ones_never() {
        let losses = [Some(0.5), Some(0.5)];
        assert_eq!(loss_texts(&losses, true, false), ["50.0 %*", "50 %"]);
        assert_eq!(loss_texts(&losses, false, false), ["50.0 %", "50 %"]);
        assert_eq!(loss_texts(&losses, false, true), ["not fit to report", "50 %"]);
    }
}
