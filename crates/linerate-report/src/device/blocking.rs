//! Congestion control of one record: is the free output held up, are the senders held back?
//!
//! Source: RFC 2889 §5.5.

use linerate_core::record::{Congestion, LoadPoint, PortCounts};

use super::words;
use crate::document::{Cells, Section, Table};

/// The answers, then what each means; records from before the answers have the free output alone.
pub(super) fn blocking(free: &LoadPoint, congestion: Option<&Congestion>) -> Section {
    let said = match free.loss_ratio {
        0.0 => "nothing was lost: no head-of-line blocking".to_owned(),
        loss => format!("{} was lost: head-of-line blocking", words::loss(loss)),
    };
    let beside = format!(
        "to the free output, at {} frames/s beside one that is overloaded",
        words::frames(free.offered_fps)
    );
    let Some(found) = congestion else {
        return Section::of("Blocking", vec![], vec![format!("{beside}: {said}")]);
    };
    let notes = vec![beside, head_of_line(found), back_pressure(found)];
    Section::of("Blocking", outputs(found), notes)
}

/// A row an output.
fn outputs(found: &Congestion) -> Option<Table> {
    let rows = [
        ("free", found.free?, found.free_loss_ratio),
        ("overloaded", found.congested?, found.congested_loss_ratio),
    ];
    let columns: &[Cells<'_, (&str, PortCounts, f64)>] = &[
        ("output", &|(output, ..)| (*output).to_owned()),
        ("frames\nintended", &|(_, it, _)| it.intended.to_string()),
        ("sent", &|(_, it, _)| it.sent.to_string()),
        ("received", &|(_, it, _)| it.received.to_string()),
        ("loss", &|(.., loss)| words::loss(*loss)),
    ];
    Some(Table::by(rows, columns))
}

fn head_of_line(found: &Congestion) -> String {
    let loss = words::loss(found.free_loss_ratio);
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
    let loss = words::loss(found.congested_loss_ratio);
    if found.is_uncongested {
        "backpressure: not known, the output that was to be overloaded carried all that it was \
         offered"
            .to_owned()
    } else if found.has_back_pressure {
        let sent = found.congested.map(|it| format!(", {} of {} frames", it.sent, it.intended));
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
