//! TCP throughput and packets per second by year: the two history charts of the OC-12 study, on
//! which a reader's own results stand beside the milestones.
//!
//! Packets per second are as printed, or derived from the rate and the size of a packet; without
//! either there is no point. Nothing is read off the study's pictures.

use linerate_core::study::{Milestone, MilestoneSet, PacketsPerSecond};
use serde_json::{Value, json};

use super::typed_table;
use crate::document::{Block, Document};
use crate::svg::{Axis, ScatterChart, ScatterGroup, ScatterPoint};
use crate::{csv, number};

/// The milestones in order of their year.
pub fn document(milestones: &[Milestone]) -> Document {
    let row = |number: usize, milestone: &Milestone| {
        let packets = milestone.packets();
        vec![
            number.to_string(),
            milestone.year.to_string(),
            milestone.label.clone(),
            milestone.rate_mbit_s.to_string(),
            number::or_dash(milestone.packet_payload_bytes(), |bytes| bytes.to_string()),
            number::or_dash(packets, packet_text),
            number::or_dash(packets, |packets| origin(&packets).to_owned()),
            milestone.network.clone(),
        ]
    };
    let names =
        ["no.", "year", "who", "Mbit/s", "payload, bytes", "packets/s", "which are", "over"];
    let note = "derived: rate / (8 x payload of a full packet); the payload is the MTU less 40 \
                bytes where only the MTU is known";
    let rows = (1..).zip(milestones).map(|(number, milestone)| row(number, milestone));
    Document::from_table(typed_table(names, rows.collect()))
        .with_section([Block::Remarks(vec![note.to_owned()])])
}

const fn origin(packets: &PacketsPerSecond) -> &'static str {
    if packets.derived { "derived" } else { "printed" }
}

fn packet_text(packets: PacketsPerSecond) -> String {
    if packets.low == packets.high {
        format!("{:.0}", packets.low)
    } else {
        format!("{:.0}-{:.0}", packets.low, packets.high)
    }
}

/// Names of the columns of [`csv()`].
const HEAD: &str = "year,label,set,rate_mbit_s,mtu_bytes,payload_bytes,packets_per_s_low,\
    packets_per_s_high,packets_are,network,source";

/// The milestones as CSV.
pub fn csv(milestones: &[Milestone]) -> String {
    let rows = milestones.iter().map(|milestone| {
        let packets = milestone.packets();
        vec![
            milestone.year.to_string(),
            milestone.label.clone(),
            csv::variant_name(milestone.set),
            milestone.rate_mbit_s.to_string(),
            csv::field_or_empty(milestone.mtu_bytes),
            csv::field_or_empty(milestone.packet_payload_bytes()),
            csv::field_or_empty(packets.map(|packets| packets.low)),
            csv::field_or_empty(packets.map(|packets| packets.high)),
            csv::field_or_empty(packets.as_ref().map(origin)),
            milestone.network.clone(),
            milestone.source.clone(),
        ]
    });
    csv::rows_with_head(HEAD, rows)
}

/// The milestones as a JSON array; `packets` is null without a packet size.
pub fn json(milestones: &[Milestone]) -> Value {
    let entry = |milestone: &Milestone| {
        let mut entry = json!(milestone);
        entry["packets"] = json!(milestone.packets());
        entry
    };
    milestones.iter().map(entry).collect()
}

/// Both charts: name of the file and its content.
pub fn svg_files(milestones: &[Milestone]) -> Vec<(String, String)> {
    let rates = milestones.iter().zip(1..).filter_map(|(milestone, number)| {
        let ends =
            (milestone.rate_mbit_s.lower_end()? * 1e6, milestone.rate_mbit_s.upper_end()? * 1e6);
        let label = format!("{} Mbit/s", milestone.rate_mbit_s);
        numbered_point(milestone, number, ends, false, &label)
    });
    let packets = milestones.iter().zip(1..).filter_map(|(milestone, number)| {
        let packets = milestone.packets()?;
        let label = format!("{} packets/s, {}", packet_text(packets), origin(&packets));
        numbered_point(milestone, number, (packets.low, packets.high), packets.derived, &label)
    });
    let rates = scatter_chart("TCP throughput by year", "TCP throughput, bit/s", rates.collect());
    let packets = scatter_chart("Packets per second by year", "packets/s", packets.collect());
    vec![
        ("throughput-by-year.svg".to_owned(), rates.svg().file_with_style()),
        ("packets-per-second-by-year.svg".to_owned(), packets.svg().file_with_style()),
    ]
}

/// A point with its number in [`document`], so that both charts and the table speak of the same.
fn numbered_point(
    milestone: &Milestone,
    number: usize,
    y: (f64, f64),
    open: bool,
    what: &str,
) -> Option<ScatterPoint> {
    Some(ScatterPoint {
        number,
        group: match milestone.set {
            MilestoneSet::Paper => 0,
            MilestoneSet::Later => 1,
            MilestoneSet::Own => 2,
        },
        x: (milestone.year.lower_end()?, milestone.year.upper_end()?),
        y,
        open,
        label: format!("{} {}: {what}", milestone.year, milestone.label),
    })
}

fn scatter_chart(title: &str, label: &str, points: Vec<ScatterPoint>) -> ScatterChart {
    let years = || points.iter().flat_map(|point| [point.x.0, point.x.1]);
    let domain = years().reduce(f64::min).zip(years().reduce(f64::max));
    let domain = domain.map(|(first, last)| (first - 1.0, last + 1.0));
    let x = Axis { domain, ..Axis::linear("year", |year| format!("{year}")) };
    let group = |label: &str, style| ScatterGroup { label: label.to_owned(), style };
    ScatterChart {
        title: title.to_owned(),
        description: format!("{label}, by year; a box is a range, an open marker is derived"),
        x,
        y: Axis::logarithmic(label, number::short_count),
        groups: vec![group("OC-12 study of 1999", 0), group("later", 2), group("own", 1)],
        points,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn milestone(year: &str, rate: &str, payload_bytes: Option<u32>) -> Milestone {
        Milestone {
            year: year.parse().expect("a year"),
            label: "a & b".to_owned(),
            set: MilestoneSet::Paper,
            rate_mbit_s: rate.parse().expect("a rate"),
            mtu_bytes: None,
            payload_bytes,
            packets_per_s: None,
            network: "OC-3".to_owned(),
            source: "x".to_owned(),
        }
    }

    fn sample_milestones() -> Vec<Milestone> {
        vec![
            milestone("1990-1993", "30-40", None),
            milestone("1993", "130", Some(1250)),
            milestone("1999", "400-513", Some(9140)),
        ]
    }

    #[test]
    fn a_milestone_without_a_packet_size_is_on_the_first_chart_alone() {
        let charts = svg_files(&sample_milestones());
        assert_eq!(charts[0].0, "throughput-by-year.svg");
        assert!(charts[0].1.contains("1990-1993 a &amp; b: 30-40 Mbit/s"), "{}", charts[0].1);
        // 130e6 / (8 x 1250) = 13,000.
        assert!(charts[1].1.contains("1993 a &amp; b: 13000 packets/s, derived"));
        assert!(!charts[1].1.contains("1990-1993"), "{}", charts[1].1);
    }

    #[test]
    fn derived_packets_are_marked_in_every_form() {
        let table = document(&sample_milestones()).text(None);
        let rows: Vec<&str> = table.lines().skip(1).collect();
        assert!(rows[0].contains(&format!("  {0}  {0} ", number::NONE)), "{table}");
        assert!(rows[1].contains(" 13000  derived "), "{table}");
        assert!(rows[2].contains(" 5470-7016  derived "), "{table}");
        let text = csv(&sample_milestones());
        assert!(text.contains(",13000,13000,derived,OC-3,x"), "{text}");
        let value = json(&sample_milestones());
        assert_eq!(value[1]["packets"]["derived"], true);
        assert_eq!(value[0]["packets"], Value::Null);
    }

    #[test]
    fn no_milestone_gives_charts_that_say_so() {
        assert!(svg_files(&[]).iter().all(|(_, svg)| svg.contains("nothing was measured")));
    }
}
