//! nuttcp's line of a result: rate, CPU of both ends, segments sent again, round trip.
//!
//! ```text
//!  1127.0625 MB /  10.02 sec =  943.5012 Mbps 1 %TX 2 %RX 0 retrans 0.25 msRTT
//! ```
//! Observed with nuttcp 6.1.2; megabytes are of 1,048,576 bytes.

use super::super::evidence::{Datagrams, Evidence, HostEvidence, Loss, RateEvidence, RoundTrips};
use super::never_seen;
use crate::record::Unmeasured;

/// Evidence of the last result in a text.
pub(super) fn read(text: &str) -> Option<Vec<Evidence>> {
    let rows: Vec<NuttcpRow> = text.lines().filter_map(NuttcpRow::from_line).collect();
    let last = rows.last()?;
    // The line of the result has the CPU of both ends, those of intervals do not.
    let intervals: Vec<f64> =
        rows.iter().filter(|row| row.cpu.is_none()).map(|row| row.bps).collect();
    let host =
        |percent: f64| HostEvidence { cpu: Some(percent / 100.0), ..HostEvidence::default() };
    let [sender, receiver] = last.cpu.map_or_else(Default::default, |cpu| cpu.map(host));
    let datagrams =
        last.datagrams.map(|(lost, sent)| Datagrams { sent, lost, ..Datagrams::default() });
    let mss = 1448.0;
    Some(vec![Evidence {
        flows: 1,
        rate: RateEvidence {
            mean_bps: Some(last.bps),
            intervals_bps: intervals,
            interval_s: Some(1.0),
            bytes: Some(last.bytes),
            span_s: Some(last.span_s),
            ..RateEvidence::default()
        },
        rtt: RoundTrips { base_s: last.rtt_s, ..RoundTrips::default() },
        loss: Loss {
            retransmits: last.again,
            ratio: last.again.map(|again| again / (last.bytes / mss).max(1.0)),
            ..Loss::default()
        },
        sender,
        receiver,
        datagrams,
        unseen: never_seen(&[Unmeasured::Windows, Unmeasured::RoundTripsUnderLoad]),
        ..Evidence::default()
    }])
}

struct NuttcpRow {
    bytes: f64,
    span_s: f64,
    bps: f64,
    /// Percent of a core of the sender and of the receiver.
    cpu: Option<[f64; 2]>,
    again: Option<f64>,
    rtt_s: Option<f64>,
    /// Datagrams lost, and datagrams sent.
    datagrams: Option<(f64, f64)>,
}

impl NuttcpRow {
    fn from_line(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let before = |name: &str| -> Option<f64> {
            let place = words.iter().position(|word| *word == name)?;
            words.get(place.checked_sub(1)?)?.parse().ok()
        };
        let mebibytes = before("MB").filter(|_| words.contains(&"="))?;
        let lost = words.iter().position(|word| *word == "drop/pkt").and_then(|place| {
            let [lost, _, sent] = words.get(place.checked_sub(3)?..place)? else { return None };
            Some((lost.parse().ok()?, sent.parse().ok()?))
        });
        Some(Self {
            bytes: mebibytes * 1_048_576.0,
            span_s: before("sec")?,
            bps: before("Mbps")? * 1e6,
            cpu: before("%TX").zip(before("%RX")).map(|(sender, receiver)| [sender, receiver]),
            again: before("retrans").or_else(|| before("host-retrans")),
            rtt_s: before("msRTT").map(|ms| ms / 1e3),
            datagrams: lost,
        })
    }
}
