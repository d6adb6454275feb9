//! From the text of a table to its rows. The heading says which kind of table it is; every fault
//! is told by file, line and column. Left out: tables whose columns stand in another order.

use std::fmt;
use std::str::FromStr;

use csv::StringRecord;

use super::printed::number;
use super::{
    Cards, Milestone, MilestoneSet, Printed, PublishedItem, PublishedPing, PublishedRouter,
    PublishedRows, PublishedTcp, Streams,
};
use crate::units::FrameLen;

/// A published table that cannot be read: which file, where in it, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}{column}: {reason}")]
pub struct PublishedError {
    /// Name of the file.
    pub file: String,
    /// Line, counted from 1.
    pub line: u64,
    /// The column; absent where the whole line does not fit.
    pub column: ErrorColumn,
    /// The fault, on one line.
    pub reason: String,
}

/// The column of a fault, as an error shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorColumn(pub Option<(usize, String)>);

impl fmt::Display for ErrorColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some((number, name)) => write!(f, ": column {number} ({name})"),
            None => Ok(()),
        }
    }
}

/// A table as it was read: its headings, its cells as printed, its rows with types.
pub(super) struct Parsed {
    pub(super) columns: Vec<String>,
    pub(super) cells: Vec<Vec<String>>,
    pub(super) rows: PublishedRows,
}

/// A kind of table: its headings and the reader of its rows.
type Kind = (&'static str, fn(&[Line<'_>]) -> Result<PublishedRows, PublishedError>);

const KINDS: &[Kind] = &[
    ("test,topology,class,l2_hops,l3_hops,payload_bytes,rtt_avg_ms,pings_per_s", |lines| {
        parse_lines(lines, ping_row).map(PublishedRows::Ping)
    }),
    ("test,topology,class,l2_hops,l3_hops,mtu_bytes,window_bytes,throughput_mbit_s", |lines| {
        parse_lines(lines, tcp_row).map(PublishedRows::Tcp)
    }),
    (
        "device,protocol,cards,streams,stream,filters,frame_bytes,theoretical_fps,\
         offered_max_fps,max_rate_fps,flood_rate_fps",
        |lines| parse_lines(lines, router).map(PublishedRows::Routers),
    ),
    ("item,value,unit,note", |lines| parse_lines(lines, item_row).map(PublishedRows::Items)),
    ("year,label,set,rate_mbit_s,mtu_bytes,payload_bytes,packets_per_s,network,source", |lines| {
        parse_lines(lines, milestone).map(PublishedRows::Milestones)
    }),
];

/// Reads a table; `file` is its name in errors.
pub(super) fn parse(file: &str, text: &str) -> Result<Parsed, PublishedError> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let head = reader.headers().map_err(|error| broken(file, &error))?.clone();
    let heading = head.iter().collect::<Vec<_>>().join(",");
    let Some((_, read)) = KINDS.iter().find(|(columns, _)| *columns == heading) else {
        return Err(PublishedError {
            file: file.to_owned(),
            line: 1,
            column: ErrorColumn::default(),
            reason: format!("no known table has the columns {heading}"),
        });
    };
    let mut records = Vec::new();
    for record in reader.records() {
        records.push(record.map_err(|error| broken(file, &error))?);
    }
    let lines: Vec<Line<'_>> =
        records.iter().map(|record| Line { file, head: &head, record }).collect();
    Ok(Parsed {
        columns: head.iter().map(str::to_owned).collect(),
        cells: records.iter().map(|record| record.iter().map(str::to_owned).collect()).collect(),
        rows: read(&lines)?,
    })
}

fn broken(file: &str, error: &csv::Error) -> PublishedError {
    let reason = match error.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("{len} fields instead of {expected_len}")
        }
        _ => error.to_string(),
    };
    PublishedError {
        file: file.to_owned(),
        line: error.position().map_or(1, csv::Position::line),
        column: ErrorColumn::default(),
        reason,
    }
}

fn parse_lines<T>(
    lines: &[Line<'_>],
    row: fn(&Line<'_>) -> Result<T, PublishedError>,
) -> Result<Vec<T>, PublishedError> {
    lines.iter().map(row).collect()
}

/// One line of a table.
struct Line<'a> {
    file: &'a str,
    head: &'a StringRecord,
    record: &'a StringRecord,
}

impl Line<'_> {
    /// The field of a column; every column of a kind is in its heading.
    fn column_text(&self, name: &str) -> &str {
        let column = self.head.iter().position(|head| head == name);
        column.and_then(|column| self.record.get(column)).unwrap_or_default()
    }

    fn column_error(&self, name: &str, reason: impl fmt::Display) -> PublishedError {
        let column = self.head.iter().position(|head| head == name);
        PublishedError {
            file: self.file.to_owned(),
            line: self.record.position().map_or(0, csv::Position::line),
            column: ErrorColumn(column.map(|at| (at + 1, name.to_owned()))),
            reason: reason.to_string(),
        }
    }

    /// A field that must not be empty.
    fn required_text(&self, name: &str) -> Result<String, PublishedError> {
        match self.column_text(name) {
            "" => Err(self.column_error(name, "is empty")),
            text => Ok(text.to_owned()),
        }
    }

    /// A field that may be empty.
    fn remark(&self, name: &str) -> Option<String> {
        Some(self.column_text(name)).filter(|text| !text.is_empty()).map(str::to_owned)
    }

    /// A whole number, or nothing.
    fn whole_or_none<T: FromStr>(&self, name: &str) -> Result<Option<T>, PublishedError> {
        let text = self.column_text(name);
        if text.is_empty() {
            return Ok(None);
        }
        let digits = text.bytes().all(|b| b.is_ascii_digit());
        let whole = text.parse().ok().filter(|_| digits);
        whole
            .map(Some)
            .ok_or_else(|| self.column_error(name, format!("'{text}' is not a whole number")))
    }

    fn required_integer<T: FromStr>(&self, name: &str) -> Result<T, PublishedError> {
        self.whole_or_none(name)?.ok_or_else(|| self.column_error(name, "is empty"))
    }

    /// A decimal, or nothing.
    fn decimal_or_none(&self, name: &str) -> Result<Option<f64>, PublishedError> {
        match self.column_text(name) {
            "" => Ok(None),
            text => number(text)
                .map(Some)
                .map_err(|_| self.column_error(name, format!("'{text}' is not a number"))),
        }
    }

    fn printed_or_none(&self, name: &str) -> Result<Option<Printed>, PublishedError> {
        match self.column_text(name) {
            "" => Ok(None),
            text => text
                .parse()
                .map(Some)
                .map_err(|error| self.column_error(name, format!("'{text}' {error}"))),
        }
    }

    fn printed(&self, name: &str) -> Result<Printed, PublishedError> {
        self.printed_or_none(name)?.ok_or_else(|| self.column_error(name, "is empty"))
    }

    /// One of a few words.
    fn keyword_value<T: Copy>(&self, name: &str, words: &[(&str, T)]) -> Result<T, PublishedError> {
        let text = self.column_text(name);
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
        found.ok_or_else(|| {
            let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            self.column_error(name, format!("'{text}' is none of {}", known.join(", ")))
        })
    }
}

fn ping_row(line: &Line<'_>) -> Result<PublishedPing, PublishedError> {
    Ok(PublishedPing {
        test: line.required_text("test")?,
        topology: line.required_text("topology")?,
        class: line.required_text("class")?,
        l2_hops: line.whole_or_none("l2_hops")?,
        l3_hops: line.whole_or_none("l3_hops")?,
        payload_bytes: line.required_integer("payload_bytes")?,
        rtt_avg_ms: line.decimal_or_none("rtt_avg_ms")?,
        pings_per_s: line.decimal_or_none("pings_per_s")?,
    })
}

fn tcp_row(line: &Line<'_>) -> Result<PublishedTcp, PublishedError> {
    Ok(PublishedTcp {
        test: line.required_text("test")?,
        topology: line.required_text("topology")?,
        class: line.required_text("class")?,
        l2_hops: line.whole_or_none("l2_hops")?,
        l3_hops: line.whole_or_none("l3_hops")?,
        mtu_bytes: line.required_integer("mtu_bytes")?,
        window_bytes: line.required_integer("window_bytes")?,
        throughput_mbit_s: line.decimal_or_none("throughput_mbit_s")?,
    })
}

fn router(line: &Line<'_>) -> Result<PublishedRouter, PublishedError> {
    let frame_bytes = line.required_integer("frame_bytes")?;
    FrameLen::from_bytes(frame_bytes).map_err(|error| line.column_error("frame_bytes", error))?;
    Ok(PublishedRouter {
        device: line.required_text("device")?,
        protocol: line.required_text("protocol")?,
        cards: line
            .keyword_value("cards", &[("within", Cards::Within), ("between", Cards::Between)])?,
        streams: line
            .keyword_value("streams", &[("single", Streams::Single), ("dual", Streams::Dual)])?,
        stream: line.required_integer("stream")?,
        filters: line.required_integer("filters")?,
        frame_bytes,
        theoretical_fps: line.whole_or_none("theoretical_fps")?,
        offered_max_fps: line.whole_or_none("offered_max_fps")?,
        max_rate_fps: line.whole_or_none("max_rate_fps")?,
        flood_rate_fps: line.whole_or_none("flood_rate_fps")?,
    })
}

fn item_row(line: &Line<'_>) -> Result<PublishedItem, PublishedError> {
    Ok(PublishedItem {
        item: line.required_text("item")?,
        value: line.printed_or_none("value")?,
        unit: line.required_text("unit")?,
        note: line.remark("note"),
    })
}

fn milestone(line: &Line<'_>) -> Result<Milestone, PublishedError> {
    let sets = [("paper", MilestoneSet::Paper), ("later", MilestoneSet::Later)];
    Ok(Milestone {
        year: line.printed("year")?,
        label: line.required_text("label")?,
        set: line.keyword_value("set", &sets)?,
        rate_mbit_s: line.printed("rate_mbit_s")?,
        mtu_bytes: line.whole_or_none("mtu_bytes")?,
        payload_bytes: line.whole_or_none("payload_bytes")?,
        packets_per_s: line.decimal_or_none("packets_per_s")?,
        network: line.required_text("network")?,
        source: line.required_text("source")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PING: &str = "test,topology,class,l2_hops,l3_hops,payload_bytes,rtt_avg_ms,pings_per_s\n";
    const ROUTER: &str = "device,protocol,cards,streams,stream,filters,frame_bytes,\
                          theoretical_fps,offered_max_fps,max_rate_fps,flood_rate_fps\n";

    #[track_caller]
    fn refused(text: &str, expected: &str) {
        let error = parse("a.csv", text).err().expect("a fault");
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn a_fault_is_told_by_file_line_and_column() {
        refused(
            &format!("{PING}c.1,localhost,calibration,0,0,56,fast,9\n"),
            "a.csv:2: column 7 (rtt_avg_ms): 'fast' is not a number",
        );
        refused(
            &format!("{PING}c.1,x,y,0,0,56,0.1,9\nc.1,x,y,0,0,,0.1,9\n"),
            "a.csv:3: column 6 (payload_bytes): is empty",
        );
        refused(
            &format!("{PING}c.1,x,y,0,-1,56,0.1,9\n"),
            "a.csv:2: column 5 (l3_hops): '-1' is not a whole number",
        );
        refused(&format!("{PING}c.1,x\n"), "a.csv:2: 2 fields instead of 8");
        refused(
            &format!("{ROUTER}a,ip,beside,single,1,0,64,1,1,1,1\n"),
            "a.csv:2: column 3 (cards): 'beside' is none of within, between",
        );
        refused(
            &format!("{ROUTER}a,ip,within,single,1,0,63,1,1,1,1\n"),
            "a.csv:2: column 7 (frame_bytes): a frame of 63 bytes is shorter than 64, to which \
             Ethernet pads (FCS included)",
        );
        refused(
            "item,value,unit,note\na,about 5,ms,\n",
            "a.csv:2: column 2 (value): 'about 5' is neither a number, a range like 70-80, nor a \
             bound like <0.01",
        );
    }

    #[test]
    fn a_table_of_no_known_kind_is_refused_at_its_heading() {
        refused("a,b\n1,2\n", "a.csv:1: no known table has the columns a,b");
        refused("", "a.csv:1: no known table has the columns ");
    }

    #[test]
    fn an_empty_field_is_absent() {
        let parsed = parse("a.csv", "item,value,unit,note\nrtt,,ms,\n").expect("a sound table");
        let PublishedRows::Items(items) = parsed.rows else { panic!("items") };
        assert_eq!((items[0].value.as_ref(), items[0].note.as_ref()), (None, None));
    }

    #[test]
    fn lines_may_end_as_on_other_systems() {
        let text = "item,value,unit,note\r\nrtt,21,ms,\"a, b\"\r\n";
        let parsed = parse("a.csv", text).expect("a sound table");
        assert_eq!(parsed.cells, [["rtt", "21", "ms", "a, b"]]);
    }
}
