//! A reader's own result as a milestone: a stored record, or a label with a rate.

use std::str::FromStr;

use linerate_core::record::{Direction, Failure, Fault, MetricId, Plan, Record, Stat};
use linerate_core::study::{Milestone, MilestoneSet, Printed};
use linerate_core::units::BitRate;

use crate::columns::short_id;

/// A result that `--add` names.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Addition {
    /// A record by the start of its identifier, `last`, or `@-1`.
    Record(String),
    /// A result from elsewhere.
    Given(LabelledResult),
}

/// A result from elsewhere.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LabelledResult {
    label: String,
    rate: BitRate,
    mtu_bytes: Option<u32>,
    payload_bytes: Option<u32>,
    year: Option<u16>,
}

impl FromStr for Addition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some((label, rest)) = text.split_once('=') else {
            return Ok(Self::Record(text.to_owned()));
        };
        if label.trim().is_empty() {
            return Err("the label before = is empty".to_owned());
        }
        let mut parts = rest.split(',');
        let rate = parts.next().unwrap_or_default();
        let rate: BitRate = rate.parse().map_err(|error| format!("{error}"))?;
        if rate.bits_per_sec() == 0 {
            return Err("a rate of 0 has no place on the chart".to_owned());
        }
        let mut given = LabelledResult {
            label: label.to_owned(),
            rate,
            mtu_bytes: None,
            payload_bytes: None,
            year: None,
        };
        for part in parts {
            given.set_part(part)?;
        }
        Ok(Self::Given(given))
    }
}

impl LabelledResult {
    /// Takes one of `mtu=BYTES`, `payload=BYTES`, `year=YEAR`.
    fn set_part(&mut self, part: &str) -> Result<(), String> {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        let bytes = |least: u32| match value.parse() {
            Ok(bytes) if (least..=65_535).contains(&bytes) => Ok(Some(bytes)),
            _ => Err(format!("{key}: '{value}' is not in {least} to 65535 bytes")),
        };
        match key {
            // 40 bytes of headers leave at least one of payload.
            "mtu" => self.mtu_bytes = bytes(41)?,
            "payload" => self.payload_bytes = bytes(1)?,
            "year" => match value.parse() {
                Ok(year) if (1960..=9999).contains(&year) => self.year = Some(year),
                _ => return Err(format!("year: '{value}' is not in 1960 to 9999")),
            },
            _ => return Err(format!("'{part}' is none of mtu=BYTES, payload=BYTES, year=YEAR")),
        }
        Ok(())
    }

    /// The milestone; `now` is this year, for a result without one.
    pub(super) fn milestone(&self, now: &str) -> Result<Milestone, Failure> {
        let year = self.year.map_or_else(|| now.to_owned(), |year| year.to_string());
        Ok(Milestone {
            year: printed(&year)?,
            label: self.label.clone(),
            set: MilestoneSet::Own,
            rate_mbit_s: printed(&mbit_text(self.rate.bits_per_sec() as f64))?,
            mtu_bytes: self.mtu_bytes,
            payload_bytes: self.payload_bytes,
            packets_per_s: None,
            network: "-".to_owned(),
            source: "--add".to_owned(),
        })
    }
}

/// The year of a time as RFC 3339 writes it.
pub(super) fn year_of(rfc3339: &str) -> &str {
    rfc3339.split('-').next().unwrap_or(rfc3339)
}

/// Goodput of a TCP record: of the faster direction where there are two.
pub(super) fn goodput(record: &Record) -> Option<(f64, Direction)> {
    let of = |direction| {
        let bps = record.summary_value(MetricId::Goodput, Stat::Value, Some(direction))?;
        (bps > 0.0).then_some((bps, direction))
    };
    let both = [Direction::Up, Direction::Down].into_iter().filter_map(of);
    both.max_by(|a, b| a.0.total_cmp(&b.0))
}

/// A stored record as a milestone.
pub(super) fn of_record(record: &Record) -> Result<Milestone, Failure> {
    let id = record.id.to_string();
    let odd = |reason: &str| {
        Failure::new(Fault::Usage, "add record", short_id(&id), reason)
            .advise("name a TCP result that ended well; linerate history --kind tcp lists them")
    };
    let Plan::Tcp(plan) = &record.plan else { return Err(odd("it is no TCP result")) };
    let (bps, direction) = goodput(record).ok_or_else(|| odd("it has no goodput"))?;
    let flow = record.flows.iter().find(|flow| flow.direction == direction);
    Ok(Milestone {
        year: printed(year_of(&record.started_at.to_string()))?,
        label: record.name.clone().unwrap_or_else(|| short_id(&id).to_owned()),
        set: MilestoneSet::Own,
        rate_mbit_s: printed(&mbit_text(bps))?,
        mtu_bytes: None,
        // What a full segment carries, options taken off.
        payload_bytes: flow.and_then(|flow| flow.sender.as_ref()?.mss_bytes.got),
        packets_per_s: None,
        network: match &record.cell {
            Some(cell) => format!("{} of study {}", cell.topology, cell.study),
            None => format!("to {}", plan.server.host),
        },
        source: format!("record {id}"),
    })
}

/// Mbit/s with as many digits as a goodput is worth.
fn mbit_text(bps: f64) -> String {
    let text = format!("{:.3}", bps / 1e6);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn printed(text: &str) -> Result<Printed, Failure> {
    text.parse().map_err(|error| Failure::new(Fault::Usage, "place on the chart", text, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_milestone(text: &str) -> Milestone {
        match text.parse() {
            Ok(Addition::Given(given)) => given.milestone("2026").expect(text),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn a_label_with_a_rate_becomes_a_milestone() {
        let milestone = parse_milestone("my lab=9.41G,mtu=1500,year=2024");
        assert_eq!(milestone.label, "my lab");
        assert_eq!(
            (milestone.year.source_text(), milestone.rate_mbit_s.source_text()),
            ("2024", "9410")
        );
        // 9410e6 / (8 x 1460) packets/s.
        let packets = milestone.packets().expect("a known size");
        assert!((packets.low - 805_650.68).abs() < 0.01, "{packets:?}");
        let milestone = parse_milestone("x=941.5M");
        assert_eq!(
            (milestone.year.source_text(), milestone.rate_mbit_s.source_text()),
            ("2026", "941.5")
        );
        assert_eq!(milestone.packets(), None);
        assert_eq!(parse_milestone("x=1G,payload=8948").packet_payload_bytes(), Some(8948));
    }

    #[test]
    fn anything_without_an_equals_sign_is_a_record() {
        assert_eq!("0190".parse(), Ok(Addition::Record("0190".to_owned())));
        assert_eq!("last".parse(), Ok(Addition::Record("last".to_owned())));
    }

    #[test]
    fn what_has_no_place_on_the_chart_is_refused() {
        let odd = [
            "=1G",
            "a=",
            "a=fast",
            "a=0",
            "a=1G,mtu=40",
            "a=1G,payload=0",
            "a=1G,mtu=65536",
            "a=1G,year=95",
            "a=1G,mss=5",
            "a=1G,",
        ];
        for text in odd {
            assert!(text.parse::<Addition>().is_err(), "{text}");
        }
    }
}
