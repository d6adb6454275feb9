//! Congestion control of one record: is the free output held up, are the senders held back?
//!
//! Source: RFC 2889 §5.5.

use linerate_core::record::{Congestion, LoadPoint, PortCounts};

use super::words;
use crate::document::{Cells, ReportSection, ReportTable};

/// Head-of-line blocking and backpressure with the loss of each output. Older records state only
/// the loss of the free output.
pub(super) fn blocking(free: &LoadPoint, congestion: Option<&Congestion>) -> ReportSection {
    let said = match free.loss_ratio {
        0.0 => "nothing was lost: no head-of-line blocking".to_owned(),
        loss => format!("{} was lost: head-of-line blocking", words::loss_ratio(loss)),
    };
    let beside = format!(
        "to the free output, at {} frames/s beside one that is overloaded",
        words::frames(free.offered_fps)
    );
    let Some(found) = congestion else {
        return ReportSection::from_tables("Blocking", vec![], vec![format!("{beside}: {said}")]);
    };
    let notes = vec![beside, head_of_line(found), back_pressure(found)];
    ReportSection::from_tables("Blocking", outputs_table(found), notes)
}

/// A row for each output: the free one and the overloaded one.
fn outputs_table(found: &Congestion) -> Option<ReportTable> {
    let rows = [
        ("free", found.free?, found.free_loss_ratio),
        ("overloaded", found.congested?, found.congested_loss_ratio),
    ];
    let columns: &[Cells<'_, (&str, PortCounts, f64)>] = &[
        ("output", &|(output, ..)| (*output).to_owned()),
        ("frames\nintended", &|(_, counts, _)| counts.intended.to_string()),
        ("sent", &|(_, counts, _)| counts.sent.to_string()),
        ("received", &|(_, counts, _)| counts.received.to_string()),
        ("loss", &|(.., loss)| words::loss_ratio(*loss)),
    ];
    Some(ReportTable::from_rows(rows, columns))
}

fn head_of_line(found: &Congestion) -> String {
    let loss = words::loss_ratio(found.free_loss_ratio);
    if found.has_head_of_line_blocking {
        format!(
            "head-of-line blocking: yes, {loss} lost towards the free output: frames for the \
             overloaded one stand before them"
        )
    } else {
        format!(
            "head-of-line blocking: no, {loss} lost towards the free output: an overloaded one does \
             not hold it up"
        )
    }
}

fn back_pressure(found: &Congestion) -> String {
    let loss = words::loss_ratio(found.congested_loss_ratio);
    if found.is_uncongested {
        "backpressure: not known, the output that was to be overloaded carried all that it was \
         offered"
            .to_owned()
    } else if found.has_back_pressure {
        let sent = found
            .congested
            .map(|counts| format!(", {} of {} frames", counts.sent, counts.intended));
        format!(
            "backpressure: yes, more was meant for the overloaded output than it carries and \
             nothing was lost{}: the device holds senders back (pause frames, collisions)",
            sent.unwrap_or_default()
        )
    } else {
        format!(
            "backpressure: no, {loss} lost towards the overloaded output: the device drops what \
             is too much and holds no sender back"
        )
    }
}
