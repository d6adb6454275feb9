//! What a server's log says of a test over TCP: each way with its streams, bytes, time and rate.

use linerate_core::record::{Direction, EndReport};
use linerate_core::units::BitRate;

/// `up: 2 streams, 1250000 bytes in 1.000 s, 10 Mbit/s; down: ...`, as this end counted: what it
/// received and what it sent in the measured span, which goes from the first stream's begin to the
/// last one's end.
pub(crate) fn line(reports: &[EndReport]) -> String {
    let ways = [(Direction::Up, "up"), (Direction::Down, "down")].into_iter();
    let each = ways.filter_map(|(direction, name)| {
        let of_way = |report: &&EndReport| report.direction == direction;
        let reports: Vec<&EndReport> = reports.iter().filter(of_way).collect();
        (!reports.is_empty()).then(|| format!("{name}: {}", way(&reports)))
    });
    each.collect::<Vec<_>>().join("; ")
}

fn way(reports: &[&EndReport]) -> String {
    let noun = if reports.len() == 1 { "stream" } else { "streams" };
    let bytes: u64 = reports.iter().map(|report| report.end.bytes_measured).sum();
    let ends = reports.iter().map(|report| &report.end).filter(|end| end.span_ns > 0);
    let first = ends.clone().map(|end| end.span_start_ns).min();
    let last = ends.map(|end| end.span_start_ns + end.span_ns).max();
    let Some(span_ns) = first.zip(last).map(|(first, last)| last - first).filter(|_| bytes > 0)
    else {
        return format!("{} {noun}, {bytes} bytes", reports.len());
    };
    let bps = u128::from(bytes) * 8_000_000_000 / u128::from(span_ns);
    let rate = BitRate::from_bits_per_sec(u64::try_from(bps).unwrap_or(u64::MAX));
    let seconds = span_ns as f64 / 1e9;
    format!("{} {noun}, {bytes} bytes in {seconds:.3} s, {rate}", reports.len())
}

#[cfg(test)]
mod tests {
    use linerate_core::record::FlowEnd;

    use super::*;

    fn report(direction: Direction, bytes: u64, (start_ms, ms): (u64, u64)) -> EndReport {
        let (span_start_ns, span_ns) = (start_ms * 1_000_000, ms * 1_000_000);
        let end =
            FlowEnd { bytes, bytes_measured: bytes, span_start_ns, span_ns, ..FlowEnd::default() };
        EndReport::of(direction, 0, end)
    }

    #[test]
    fn each_way_has_its_bytes_over_the_time_from_the_first_begin_to_the_last_end() {
        let up = [
            report(Direction::Up, 1_000_000, (0, 900)),
            report(Direction::Up, 250_000, (100, 900)),
        ];
        let down = report(Direction::Down, 0, (0, 0));
        let said = line(&[up[0].clone(), down, up[1].clone()]);
        // 1.25 MB in one second are 10 Mbit/s.
        let expected = "up: 2 streams, 1250000 bytes in 1.000 s, 10 Mbit/s; \
                        down: 1 stream, 0 bytes";
        assert_eq!(said, expected);
    }
}
