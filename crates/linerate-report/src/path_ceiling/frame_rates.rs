//! The tables of frames, packets and cells a second: text in blocks of few columns, and CSV.

use linerate_core::theory::ladder::{FrameRates, FrameRow, OpticalRow};

use crate::csv::{field_or_empty, rows_with_head};
use crate::document::{Document, ReportSection, ReportTable};
use crate::number;

/// Both tables of frame rates.
pub fn document(rates: &FrameRates) -> Document {
    let title = "Whole frames per second that fill an Ethernet (RFC 5180 appendix A); frame sizes \
                 with FCS";
    let optics = "Lines of SONET/SDH: what is left of the rate, and cells per second";
    let carriers = carriers(&rates.optical).into_iter().enumerate().map(|(index, carrier)| {
        let title = format!("Packets per second in {carrier}; sizes of IP packets");
        ReportSection::from_tables(
            title,
            [optical(&rates.packet_bytes, &rates.optical, index)],
            vec![],
        )
    });
    // Blocks of few links, so that a line of the fastest ones fits 80 columns.
    let blocks = rates.ethernet.chunks(BLOCK);
    let ethernet = blocks
        .map(|block| ReportSection::from_tables("", [ethernet(&rates.frame_bytes, block)], vec![]));
    let optics = ReportSection::from_tables(optics, [optical_lines(&rates.optical)], vec![]);
    Document {
        title: title.to_owned(),
        sections: ethernet.chain([optics]).chain(carriers).collect(),
        ..Document::default()
    }
}

/// Links beside each other.
const BLOCK: usize = 5;

fn ethernet(sizes: &[u32], links: &[FrameRow]) -> ReportTable {
    let names = links.iter().map(|link| number::rate_with_unit(link.rate_bps as f64));
    let mut table = ReportTable::new(std::iter::once("bytes".to_owned()).chain(names));
    for (index, size) in sizes.iter().enumerate() {
        let cell = |link: &FrameRow| {
            let frames = link.frames_per_s.get(index).copied();
            number::or_dash(frames, grouped)
        };
        table.add_measured_row(std::iter::once(size.to_string()).chain(links.iter().map(cell)));
    }
    table
}

fn optical_lines(lines: &[OpticalRow]) -> ReportTable {
    let mbit = |bps: f64| format!("{:.3}", bps / 1e6);
    ReportTable::from_rows(
        lines,
        &[
            ("line", &|line| line.title.clone()),
            ("rate Mbit/s", &|line| mbit(line.rate_bps as f64)),
            ("payload Mbit/s", &|line| mbit(line.payload_bps)),
            ("cells/s", &|line| hundredths(line.cells_per_s)),
        ],
    )
}

/// The carriers, in the order of each line's columns.
fn carriers(lines: &[OpticalRow]) -> Vec<String> {
    lines.first().map_or_else(Vec::new, |line| {
        line.carriers.iter().map(|column| column.carrier.clone()).collect()
    })
}

fn optical(sizes: &[u32], lines: &[OpticalRow], carrier: usize) -> ReportTable {
    let head = sizes.iter().map(ToString::to_string);
    let mut table = ReportTable::new(std::iter::once("bytes".to_owned()).chain(head));
    for line in lines {
        let cells = line.carriers.get(carrier).map_or(&[][..], |column| &column.packets_per_s);
        table.add_measured_row(
            std::iter::once(line.title.clone()).chain(cells.iter().map(|rate| hundredths(*rate))),
        );
    }
    table
}

/// Digits in groups of three: `1,190,476,190`.
fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Grouped, with two decimals.
fn hundredths(value: f64) -> String {
    let cents = (value * 100.0).round() as u64;
    format!("{}.{:02}", grouped(cents / 100), cents % 100)
}

/// One value a line: link, carrier, size and the rate, with all digits.
pub fn csv(rates: &FrameRates) -> String {
    let head = "link,rate_bps,carrier,frame_bytes,ip_bytes,packets_per_sec";
    let ethernet = rates.ethernet.iter().flat_map(|link| {
        rates.frame_bytes.iter().zip(&link.frames_per_s).map(|(size, frames)| {
            rate_row(&link.link, link.rate_bps, "ethernet", [Some(*size), None], frames)
        })
    });
    let optical = rates.optical.iter().flat_map(|line| {
        line.carriers.iter().flat_map(|column| {
            rates.packet_bytes.iter().zip(&column.packets_per_s).map(|(size, packets)| {
                rate_row(&line.link, line.rate_bps, &column.carrier, [None, Some(*size)], packets)
            })
        })
    });
    rows_with_head(head, ethernet.chain(optical))
}

fn rate_row(
    link: &str,
    rate_bps: u64,
    carrier: &str,
    sizes: [Option<u32>; 2],
    packets_per_s: &dyn std::fmt::Display,
) -> Vec<String> {
    let [frame, ip] = sizes.map(field_or_empty);
    let (rate, packets) = (rate_bps.to_string(), packets_per_s.to_string());
    vec![link.to_owned(), rate, carrier.to_owned(), frame, ip, packets]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_stand_in_groups_of_three() {
        let cases = [(0, "0"), (812, "812"), (14_880, "14,880"), (1_190_476_190, "1,190,476,190")];
        for (count, text) in cases {
            assert_eq!(grouped(count), text);
        }
        assert_eq!(hundredths(353_207.547), "353,207.55");
        assert_eq!(hundredths(0.999), "1.00");
    }
}
