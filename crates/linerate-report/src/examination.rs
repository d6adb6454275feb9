//! The examination of a path as a page of text: what this host did to the numbers, round trips by
//! size, TCP by window and by streams, the ceiling of each direction and how far below it the best
//! result is, and what else has to be known before believing them.

use linerate_core::explain::explain;
use linerate_core::record::{
    Cause, Caveat, Ceiling, Change, Confidence, Direction, Intervention, MetricId, Plan, Record,
    SHARE_MAX, ShortRun, Stat, TcpDirections, TcpPlan,
};

use crate::document::{Block, Document, Fact, ReportSection, ReportTable};
use crate::{ceiling, delay, number, trains, verdict, words};

/// The full report of a survey: round trips, TCP by window and by streams, packet trains, the best
/// result of each direction against its ceiling.
pub(crate) fn document(whole: &Record) -> Document {
    let records = whole.parts.as_slice();
    let mut sections = Vec::new();
    let round_trips = round_trips(records);
    sections.extend(
        round_trips
            .map(|table| ReportSection::from_tables("Round trips by payload", [table], vec![])),
    );
    let windows = pairs_by(records, |plan| plan.test.window_bytes);
    let streams = pairs_by(records, own_window);
    for (title, pairs, show) in [
        ("TCP by window, one stream", windows, number::window as fn(u64) -> String),
        ("TCP by streams, the kernel's own window", streams, |count| count.to_string()),
    ] {
        if !pairs.is_empty() {
            let heads = pairs.iter().map(|row| show(row.parameter)).collect();
            sections.push(ReportSection::from_tables(
                title,
                [rates_table("Mbit/s", heads, &pairs, true)],
                vec![],
            ));
        }
    }
    sections.extend(trains::section(whole));
    sections.extend(conclusion(records));
    let host = whole.plan.host_names().next().unwrap_or_default();
    Document { title: format!("Survey of the path to {host}"), sections, ..Document::default() }
}

/// The warnings of all parts and the tests that were left out: first what this host did to the
/// numbers, then the rest.
pub(crate) fn cautions(whole: &Record) -> (Vec<String>, Vec<String>) {
    let (own, mut others) = warnings(&whole.parts);
    if !whole.left_out.is_empty() {
        let names: Vec<String> = whole.left_out.iter().map(streams_and_window).collect();
        others.push(format!("Left out for want of time: {}", words::listed(&names)));
    }
    (own, others)
}

/// Columns that a label takes.
const LABEL: usize = 8;

/// The brief report of a survey: a table of rates, limits, round trip, delays, queues, MTU and the
/// tests tried.
pub(crate) fn brief_blocks(whole: &Record) -> Vec<Block> {
    let records = whole.parts.as_slice();
    let (own, others) = cautions(whole);
    let notes = own.len() + others.len();
    let by_window = pairs_by(records, |plan| plan.test.window_bytes);
    let by_streams = pairs_by(records, own_window);
    let heads = by_window.iter().map(|pair| number::window(pair.parameter));
    let heads = heads.chain(by_streams.iter().map(|pair| format!("-P{}", pair.parameter)));
    let heads: Vec<String> = heads.collect();
    let pairs: Vec<Pair> = by_window.into_iter().chain(by_streams).collect();
    let table = rates_table("Mbit/s", heads, &pairs, false);
    let missing = [Direction::Up, Direction::Down].into_iter();
    let missing =
        missing.filter_map(|way| records.iter().find_map(|record| record.ceiling_of(way)));
    let mut missing: Vec<String> = missing
        .filter(|ceiling| ceiling.no_link.is_none() && ceiling.value.is_none())
        .map(|ceiling| ceiling::wanting(&ceiling.unknown))
        .collect();
    missing.dedup();
    let mut facts = limits(whole);
    facts.extend(round_trip(records));
    facts.extend(delay::both_ways(whole).map(|text| Fact::new("delay", LABEL, text)));
    facts.extend(delay::queues(whole).map(|text| Fact::new("queue", LABEL, text)));
    facts.extend(trains::limited_mtu(whole).map(|text| Fact::new("MTU", LABEL, text)));
    let tried: Vec<String> = whole.interventions.iter().map(tried_change_line).collect();
    let mut label = "tried";
    for text in tried {
        facts.push(Fact::new(label, LABEL, text));
        label = "";
    }
    facts.extend(missing.into_iter().map(|text| Fact::new("ceiling", LABEL, text)));
    let marked = pairs.iter().any(|pair| pair.up.disturbed || pair.down.disturbed);
    let marked = if marked { "* this host had a part in it; " } else { "" };
    let more = match notes {
        0 => "-v shows more".to_owned(),
        count => format!("{}: -v shows them", words::counted(count as u64, "note")),
    };
    facts.push(Fact::new("notes", LABEL, format!("{marked}{more}")));
    let table = (!pairs.is_empty()).then_some(Block::Table(table));
    table.into_iter().chain([Block::Facts(facts)]).collect()
}

/// The limit of each direction with the figure that shows it, the rate of the next limit, and the
/// remedy.
fn limits(whole: &Record) -> Vec<Fact> {
    let mut facts = Vec::new();
    // The headline has what is not known, and the tester as the limit, with its own counters.
    let verdicts =
        explain(whole).into_iter().filter(|verdict| verdict.cause != Some(Cause::Tester));
    for verdict in verdicts.filter(|verdict| verdict.confidence >= Some(Confidence::Medium)) {
        let way = verdict.direction.map_or("", words::up_or_down);
        let sign = verdict::outcome::first_sign(&verdict);
        let sign = sign.map_or_else(String::new, |sign| format!(": {sign}"));
        let next = verdict.next.as_ref().map_or_else(String::new, |next| {
            let bound = verdict::next_bound_name(next.bound);
            format!("; next limit {bound} at {}", number::rate_with_unit(next.bps))
        });
        let text = format!("{way} {}{sign}{next}", verdict::cause_with_proof(&verdict));
        facts.push(Fact::new("limit", LABEL, text.trim_start().to_owned()));
        let remedy = verdict.remedy.first().map(verdict::remedy::action_with_place);
        facts.extend(remedy.map(|text| Fact::new("remedy", LABEL, text)));
    }
    facts
}

/// One setting that was changed, with the goodput without and with it.
pub fn tried_change_line(made: &Intervention) -> String {
    let way = words::up_or_down(made.direction);
    let what = match &made.change {
        Change::Streams(count) => format!("{count} streams"),
        Change::CongestionControl(name) => name.clone(),
        Change::Pace(pace) => {
            format!("a pace of {}", number::rate_with_unit(pace.bits_per_sec() as f64))
        }
        Change::Segments(bytes) => format!("segments of {bytes} bytes"),
        Change::Buffers(bytes) => format!("buffers of {}", number::buffer(*bytes)),
        Change::OtherPort => "another port".to_owned(),
        Change::Family(linerate_core::record::IpFamily::V4) => "IPv4".to_owned(),
        Change::Family(linerate_core::record::IpFamily::V6) => "IPv6".to_owned(),
        Change::Writes(bytes) => format!("writes of {}", number::buffer(u64::from(*bytes))),
    };
    let mean = |runs: &[ShortRun]| {
        let sum: f64 = runs.iter().map(|run| run.goodput_bps).sum();
        (!runs.is_empty()).then(|| sum / runs.len() as f64)
    };
    match mean(&made.plain).zip(mean(&made.changed)) {
        Some((plain, changed)) => {
            let [plain, changed] = [plain, changed].map(number::measured_rate);
            let runs = made.plain.len() + made.changed.len();
            format!("{way} with {what}: {plain} -> {changed} ({runs} short runs in turn)")
        }
        None => format!("{way} with {what}: the run failed"),
    }
}

/// The typical round trip of the smallest and of the largest payload.
fn round_trip(records: &[Record]) -> Option<Fact> {
    let is_ping = |record: &&Record| matches!(record.plan, Plan::Ping(_));
    let record = records.iter().find(is_ping)?;
    let Plan::Ping(plan) = &record.plan else { return None };
    let ms = |ns| format!("{} ms", number::ms_of_clock(ns, 6));
    let ends = [plan.sizes_bytes.first()?, plan.sizes_bytes.last()?];
    let mean = |&size: &u32| {
        let mean = record.value_at(MetricId::Rtt, Stat::Mean, size)?;
        Some(format!("{} ({size} bytes)", ms(mean)))
    };
    let mut means: Vec<String> = ends.into_iter().filter_map(mean).collect();
    means.dedup();
    let p99 = record.value_at(MetricId::Rtt, Stat::P99, *ends[0]);
    let p99 = p99.map_or_else(String::new, |ns| format!("; 99 % {}", ms(ns)));
    let text = format!("mean {}{p99}", means.join(", "));
    (!means.is_empty()).then(|| Fact::new("RTT", LABEL, text))
}

/// The number of streams of a test that leaves the window to the kernel.
fn own_window(plan: &TcpPlan) -> Option<u64> {
    plan.test.window_bytes.is_none().then_some(plan.test.streams.into())
}

/// The caveats of the records, each kind once with the number of records that have it: first what
/// this host did to the numbers, then the rest.
fn warnings(records: &[Record]) -> (Vec<String>, Vec<String>) {
    let mut kinds: Vec<(&Caveat, usize)> = Vec::new();
    for caveat in records.iter().flat_map(|record| &record.caveats) {
        match kinds.iter_mut().find(|(first, _)| first.code == caveat.code) {
            Some((_, count)) => *count += 1,
            None => kinds.push((caveat, 1)),
        }
    }
    let (own, others): (Vec<_>, Vec<_>) =
        kinds.into_iter().partition(|(caveat, _)| words::is_own_limit(caveat.code));
    let line = |kind: (&Caveat, usize)| {
        let (caveat, count) = kind;
        let seen = if count == 1 { String::new() } else { format!("{count} times, such as: ") };
        format!("{seen}{caveat}")
    };
    (own.into_iter().map(line).collect(), others.into_iter().map(line).collect())
}

/// True if a caveat says that this host had a part in the record's figures.
fn is_disturbed(record: &Record) -> bool {
    !words::caveats(record).0.is_empty()
}

/// The result of one measurement in a line, printed while a survey runs.
pub fn result_line(record: &Record) -> String {
    if let Some(failure) = &record.failure {
        return failure.to_string();
    }
    match &record.plan {
        Plan::Ping(plan) => {
            let size = plan.sizes_bytes.first().copied().unwrap_or_default();
            let mean = record.value_at(MetricId::Rtt, Stat::Mean, size);
            let ms = |ns| number::ms_of_clock(ns, 6);
            format!("mean round trip of {size} bytes: {} ms", number::or_dash(mean, ms))
        }
        Plan::Udp(_) => {
            let goodput = record.summary_value(MetricId::Goodput, Stat::Value, None);
            format!("UDP: {}", number::or_dash(goodput, number::measured_rate))
        }
        Plan::Bench(plan) => crate::device::limit::result(record, plan),
        Plan::Trace(_) => crate::headline::Headline::from_record(record).result,
        Plan::Tcp(_) | Plan::Simulate(_) | Plan::Test(_) | Plan::Compare(_) => {
            let goodput = record.summary_value(MetricId::Goodput, Stat::Value, None);
            format!(
                "TCP, {}: {}",
                brief_setting(record),
                number::or_dash(goodput, number::measured_rate)
            )
        }
    }
}

fn round_trips(records: &[Record]) -> Option<ReportTable> {
    let is_ping = |record: &&Record| matches!(record.plan, Plan::Ping(_));
    let record = records.iter().find(is_ping).filter(|record| !record.summary.is_empty())?;
    let Plan::Ping(plan) = &record.plan else { return None };
    let head = plan.sizes_bytes.iter().map(ToString::to_string);
    let mut table = ReportTable::new(std::iter::once("payload bytes".to_owned()).chain(head));
    let mark = if is_disturbed(record) { "*" } else { "" };
    let mut row = |name: &str, metric, stat, show: fn(f64) -> String| {
        let value = |&size: &u32| number::or_dash(record.value_at(metric, stat, size), show);
        let cells = plan.sizes_bytes.iter().map(value);
        table.add_measured_row(std::iter::once(name.to_owned()).chain(cells));
    };
    row("probes answered", MetricId::Received, Stat::Value, |count| format!("{count:.0}"));
    row(&format!("min ms{mark}"), MetricId::Rtt, Stat::Min, number::time_in_ms);
    row(&format!("mean ms{mark}"), MetricId::Rtt, Stat::Mean, number::time_in_ms);
    row(&format!("p99 ms{mark}"), MetricId::Rtt, Stat::P99, number::time_in_ms);
    row("loss", MetricId::LossRatio, Stat::Value, number::percent);
    Some(table)
}

/// Goodput of both directions at one value of the varied parameter.
struct Pair {
    parameter: u64,
    up: Goodput,
    down: Goodput,
}

/// Goodput in one direction and its share of the ceiling.
#[derive(Clone, Copy, Debug, Default)]
struct Goodput {
    bps: Option<f64>,
    share: Option<f64>,
    /// True if this host had a part in the result.
    disturbed: bool,
}

/// The goodput of the TCP records by a parameter, in rising order; a record for which `parameter`
/// gives `None` is left out.
fn pairs_by(records: &[Record], parameter: impl Fn(&TcpPlan) -> Option<u64>) -> Vec<Pair> {
    let mut pairs: Vec<Pair> = Vec::new();
    for record in records {
        let Plan::Tcp(plan) = &record.plan else { continue };
        let Some(parameter) = parameter(plan) else { continue };
        let index = pairs.iter().position(|pair| pair.parameter == parameter);
        let index = index.unwrap_or_else(|| {
            pairs.push(Pair { parameter, up: Goodput::default(), down: Goodput::default() });
            pairs.len() - 1
        });
        let pair = &mut pairs[index];
        for (way, direction) in [(&mut pair.up, Direction::Up), (&mut pair.down, Direction::Down)] {
            if way.bps.is_none() {
                let share = record.ceiling_of(direction).and_then(|ceiling| ceiling.share);
                let disturbed = is_disturbed(record);
                *way = Goodput { bps: ceiling::measured(record, direction), share, disturbed };
            }
        }
    }
    pairs.sort_by_key(|pair| pair.parameter);
    pairs
}

fn rates_table(unit: &str, heads: Vec<String>, pairs: &[Pair], shares: bool) -> ReportTable {
    let mut table = ReportTable::new(std::iter::once(unit.to_owned()).chain(heads));
    for (name, pick) in
        [("up", (|pair| pair.up) as fn(&Pair) -> Goodput), ("down", |pair| pair.down)]
    {
        let mark = |pair| if pick(pair).disturbed && pick(pair).bps.is_some() { "*" } else { "" };
        let rate = |pair| number::or_dash(pick(pair).bps, number::rate_in_mbit) + mark(pair);
        let bps = pairs.iter().map(rate);
        table.add_measured_row(std::iter::once(name.to_owned()).chain(bps));
        if shares && pairs.iter().any(|pair| pick(pair).share.is_some()) {
            let share = pairs.iter().map(|pair| number::or_dash(pick(pair).share, number::percent));
            table.add_measured_row(std::iter::once("  of its ceiling".to_owned()).chain(share));
        }
    }
    table
}

/// The best result of each direction, its ceiling, and the difference of the two.
fn conclusion(records: &[Record]) -> Vec<ReportSection> {
    let ways = [("Up", Direction::Up), ("Down", Direction::Down)];
    let each: Vec<ReportSection> =
        ways.into_iter().filter_map(|(name, way)| best_result(records, name, way)).collect();
    if each.is_empty() {
        let text = "No TCP test gave a result.".to_owned();
        return vec![ReportSection::without_blank_line("", [Block::Text(text)])];
    }
    each
}

fn best_result(records: &[Record], name: &str, direction: Direction) -> Option<ReportSection> {
    let results = records.iter();
    let results =
        results.filter_map(|record| Some((record, ceiling::measured(record, direction)?)));
    let (record, bps) = results.max_by(|(_, one), (_, other)| one.total_cmp(other))?;
    let rate = number::rate_with_unit(bps);
    let mark = if is_disturbed(record) { "*" } else { "" };
    let title = format!("{name}: best {rate}{mark} of TCP payload ({})", setting(record));
    let known = record.ceiling_of(direction);
    let lines = known.map(|known| below_ceiling(known, bps)).unwrap_or_default();
    let blocks = (!lines.is_empty()).then_some(Block::Remarks(lines));
    Some(ReportSection::without_blank_line(title, blocks))
}

/// The ceiling of a direction, and how far the best result is below it.
fn below_ceiling(known: &Ceiling, bps: f64) -> Vec<String> {
    let mut link = ceiling::value_with_inputs(known);
    if let Some(value) = known.value {
        let gap = 1.0 - bps / value;
        link.push_str(&match gap {
            _ if bps > value * SHARE_MAX => format!(
                "; the best result is {} above it, so one of the two is wrong",
                number::percent(-gap)
            ),
            _ => format!("; the best result is {} below it", number::percent(gap.max(0.0))),
        });
        if !known.unknown.is_empty() {
            link.push_str(&format!("; not known: {}", known.unknown.join("; ")));
        }
    }
    std::iter::once(link).chain(ceiling::expected(known, Some(bps))).collect()
}

/// The streams and the window that a plan sets.
fn streams_and_window(plan: &TcpPlan) -> String {
    let window = plan.test.window_bytes.map_or_else(
        || "the kernel's own window".to_owned(),
        |bytes| format!("a window of {}", number::window(bytes)),
    );
    format!("{} with {window}", words::counted(plan.test.streams.into(), "stream"))
}

/// The settings by which one TCP test of a survey differs from the others.
fn brief_setting(record: &Record) -> String {
    let Plan::Tcp(plan) = &record.plan else { return String::new() };
    let way = match plan.test.directions {
        TcpDirections::Up => "up",
        TcpDirections::Down => "down",
        TcpDirections::Both => "both ways",
    };
    let streams = words::counted(plan.test.streams.into(), "stream");
    let window = plan.test.window_bytes.map(|bytes| format!(", window {}", number::window(bytes)));
    format!("{way}, {streams}{}", window.unwrap_or_default())
}

fn setting(record: &Record) -> String {
    let Plan::Tcp(plan) = &record.plan else { return String::new() };
    let control = record.flows.first().and_then(|flow| flow.sender.as_ref());
    let control = control.and_then(|end| end.congestion_control.got.as_deref());
    let direction = record.flows.first().map_or("", |flow| match flow.direction {
        Direction::Up => ", up",
        Direction::Down => ", down",
    });
    let control = control.map_or_else(String::new, |name| format!(", {name}"));
    let start = match plan.test.omit_ns {
        0 => String::new(),
        ns => format!(", without the first {}", number::seconds(ns as f64)),
    };
    format!("{}{control}{direction}{start}", streams_and_window(plan))
}

#[cfg(test)]
mod tests {
    use linerate_core::record::{
        CaveatCode, Ceiling, CeilingInput, PingPlan, RecordId, ServerPlan, Summary, TcpTest,
        TestPlan, Tool,
    };
    use linerate_core::time::WallTime;

    use super::*;

    fn text_of(records: &[Record], left_out: &[TcpPlan]) -> String {
        let mut whole = record(Plan::Test(TestPlan {
            server: ServerPlan::default(),
            tcp_time_ns: None,
            congestion_control: None,
            ping_count: 1,
            within_ns: None,
            goal: None,
        }));
        (whole.parts, whole.left_out) = (records.to_vec(), left_out.to_vec());
        crate::record::document(&whole).text(None)
    }

    fn record(plan: Plan) -> Record {
        let tool = Tool { name: "linerate".to_owned(), version: "test".to_owned() };
        let id = RecordId::from_parts(0, [0; 10]);
        Record::from_plan(id, tool, plan, WallTime::from_unix_nanos(0))
    }

    fn tcp_record(window_bytes: Option<u64>, directions: TcpDirections, bps: f64) -> Record {
        let mut record = record(Plan::Tcp(TcpPlan {
            test: TcpTest { window_bytes, directions, ..TcpTest::default() },
            ..TcpPlan::default()
        }));
        let direction = match directions {
            TcpDirections::Down => Direction::Down,
            _ => Direction::Up,
        };
        let row = Summary::from_value(MetricId::Goodput, Stat::Value, bps).in_direction(direction);
        record.summary = vec![row];
        record
    }

    #[test]
    fn the_gap_is_one_minus_best_over_ceiling() {
        let mut best = tcp_record(None, TcpDirections::Up, 847.3e6);
        best.ceiling = Some(Ceiling {
            value: Some(941.48e6),
            inputs: vec![CeilingInput {
                name: "link_rate_bps".to_owned(),
                value: 1e9,
                source: "speed of eth0 at the local end".to_owned(),
            }],
            share: None,
            ..Ceiling::of_goodput(Direction::Up)
        });
        let text = text_of(&[tcp_record(Some(16_384), TcpDirections::Down, 100e6), best], &[]);
        // 1 − 847.3 / 941.48 = 0.10003.
        assert!(text.contains("10.0 % below it"), "{text}");
        let line = result_line(&tcp_record(Some(16_384), TcpDirections::Down, 100e6));
        assert_eq!(line, "TCP, down, 1 stream, window 16K: 100.0 Mbit/s");
        assert!(text.contains("1 Gbit/s, speed of eth0"), "{text}");
        assert!(text.contains("16K"), "{text}");
        assert!(text.contains("Up: best 847.3 Mbit/s") && text.contains("Down: best 100 Mbit/s"));
    }

    #[test]
    fn each_direction_has_its_share_and_says_what_is_not_known() {
        let mut up = tcp_record(Some(65_536), TcpDirections::Up, 50e6);
        up.ceiling = Some(Ceiling {
            value: Some(100e6),
            share: Some(0.5),
            ..Ceiling::of_goodput(Direction::Up)
        });
        let mut down = tcp_record(Some(65_536), TcpDirections::Down, 40e6);
        down.ceiling = Some(Ceiling {
            unknown: vec!["the link's rate: wg0 does not report one".to_owned()],
            ..Ceiling::of_goodput(Direction::Down)
        });
        let records = [up, down];
        let text = text_of(&records, &[]);
        assert_eq!(text.matches("of its ceiling").count(), 1, "{text}");
        assert!(text.contains("50.0 %") && text.contains("for want of the link's rate"), "{text}");
        // 150 of 100 Mbit/s.
        let above = below_ceiling(records[0].ceiling.as_ref().expect("given above"), 150e6);
        assert!(above[0].ends_with("50.0 % above it, so one of the two is wrong"), "{above:?}");
    }

    #[test]
    fn what_was_not_measured_is_a_dash() {
        let text = text_of(&[tcp_record(Some(65_536), TcpDirections::Up, 5e6)], &[]);
        let down = text.lines().find(|line| line.trim_start().starts_with("down"));
        assert!(down.is_some_and(|line| line.contains(number::NONE)), "{text}");
    }

    #[test]
    fn round_trips_stand_by_size() {
        let mut ping =
            record(Plan::Ping(PingPlan { sizes_bytes: vec![56], ..PingPlan::default() }));
        ping.summary = vec![Summary::from_value(MetricId::Rtt, Stat::Min, 6412.0).at_payload(56)];
        let text = text_of(&[ping], &[]);
        assert!(text.contains("0.00641") && !text.contains('*'), "{text}");
        assert!(text.contains("No TCP test gave a result."), "{text}");
    }
    #[test]
    fn what_the_records_warn_of_is_told_what_this_host_did_before_the_numbers() {
        let wait = |share: u32| {
            let detail = format!("a sender thread waited {share} % of the time for a core");
            Caveat::new(CaveatCode::RunQueueWait, detail, "stop other work")
        };
        let mut up = tcp_record(None, TcpDirections::Up, 50e6);
        up.caveats = vec![wait(23), Caveat::new(CaveatCode::ShortRun, "slow start", "longer")];
        let mut down = tcp_record(None, TcpDirections::Down, 60e6);
        down.caveats = vec![wait(31)];
        let calm = tcp_record(Some(65_536), TcpDirections::Up, 40e6);
        let left_out =
            [TcpPlan { test: TcpTest { streams: 2, ..TcpTest::default() }, ..TcpPlan::default() }];
        let text = text_of(&[up, down, calm], &left_out);
        let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("no {part} in {text}"));
        assert!(at("2 times, such as: a sender thread waited 23 %") < at("TCP by"), "{text}");
        assert!(at("Up: best 50 Mbit/s*") < at("slow start; longer"), "{text}");
        assert!(
            text.contains("50.00*") && text.contains("60.00*") && !text.contains("40.00*"),
            "{text}"
        );
        assert!(text.contains("Left out for want of time: 2 streams with the kernel's"), "{text}");
    }

    #[test]
    fn rates_stand_by_the_size_of_the_window_in_whatever_order_they_came() {
        let of = |window| tcp_record(Some(window), TcpDirections::Up, window as f64);
        let text = text_of(&[of(65_536), of(2 << 20), of(16_384)], &[]);
        let heads = text.lines().find(|line| line.contains("Mbit/s  ")).expect("a table");
        let at = |part: &str| heads.find(part).expect("each window");
        assert!(at("16K") < at("64K") && at("64K") < at("2M"), "{heads}");
    }
}
