//! What days as files cost, and how fast they are read again: by `bench/mesh_archive`, for it says
//! something on a quiet machine alone. Beside it a small copy of it, whose sums are known.

use std::fs::File;
use std::io::Write;
use std::path::{Path as FilePath, PathBuf};
use std::time::Duration;

use linerate_core::record::RecordId;
use linerate_core::schedule::{RunState, RunWhy};
use linerate_sys::clock::monotonic;
use parquet::column::reader::{ColumnReaderImpl, get_typed_column_reader};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::Result;
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::file::serialized_reader::ReadOptionsBuilder;
use parquet::file::statistics::Statistics;

use super::{Day, DayRun, DayWriter, TaskPath, columns};

/// Says a figure.
macro_rules! told {
    ($($words:tt)*) => {
        writeln!(std::io::stdout(), $($words)*).expect("standard output is open")
    };
}

const AGENTS: usize = 50;
const PEERS: usize = 20;
/// Of a path, a day.
const RUNS: usize = 1_000;
const MONTH: usize = 30;
const QUERIES: usize = 200;

/// Numbers that look random and are the same each time (splitmix64, Vigna 2015).
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// A day's runs of a path: round trip times in whole nanoseconds, 10 % more than its least at most;
/// one in a hundred has none.
fn runs(draw: &mut Draw, from_s: i64, (least_ns, count): (u64, usize)) -> Vec<DayRun> {
    let step_s = 86_400 / i64::try_from(count).expect("a few");
    let run = |n| {
        let start_s = from_s + step_s * i64::try_from(n).expect("a few");
        let is_good = !draw.next().is_multiple_of(100);
        let mut random = [0; 10];
        let bytes = [draw.next().to_le_bytes(), draw.next().to_le_bytes()].concat();
        random.copy_from_slice(&bytes[..10]);
        let id = RecordId::from_parts(u64::try_from(start_s).expect("after 1970") * 1000, random);
        #[allow(clippy::cast_precision_loss, reason = "some milliseconds in nanoseconds")]
        let value = (least_ns + draw.next() % (least_ns / 10)) as f64;
        DayRun {
            start_s,
            why: RunWhy::Calendar,
            state: if is_good { RunState::Ok } else { RunState::Failed },
            reason: (!is_good).then(|| "no reply".to_owned()),
            figure: is_good.then(|| ("rtt_ns".to_owned(), value)),
            record: is_good.then(|| id.to_string()),
            doc: None,
        }
    };
    (0..count).map(run).collect()
}

/// What was written.
#[derive(Debug, Default)]
struct Made {
    files: Vec<PathBuf>,
    rows: usize,
    bytes: u64,
    took: Duration,
    /// Of all values of the first month's files.
    month: (usize, f64),
}

/// Writes days of agents with so many peers each and so many runs of each pair.
fn make(into: &FilePath, days: usize, (agents, peers, count): (usize, usize, usize)) -> Made {
    let (mut made, mut draw) = (Made::default(), Draw(1));
    for number in 0..days {
        let day =
            Day::containing(1_735_689_600 + 86_400 * i64::try_from(number).expect("some years"));
        let path = into.join(format!("m-{}.parquet", day.date()));
        let file = File::create(&path).expect("room");
        let mut writer = DayWriter::new(file, "m", &day).expect("room");
        for (agent, peer) in (0..agents).flat_map(|a| (0..peers).map(move |p| (a, p))) {
            let least_ns = 1_000_000 + 37_000 * (agent * peers + peer) as u64;
            let runs = runs(&mut draw, day.span_seconds().0, (least_ns, count));
            let (agent, peer) = (format!("agent{agent:03}"), format!("agent{:03}", peer + agents));
            let begin = monotonic();
            for run in &runs {
                writer
                    .push(TaskPath { agent: &agent, task: "delay", peer: &peer }, run)
                    .expect("room");
            }
            made.took += monotonic().duration_since(begin);
            if number < MONTH {
                let values = runs.iter().filter_map(|run| run.figure.as_ref());
                values.for_each(|(_, value)| made.month = (made.month.0 + 1, made.month.1 + value));
            }
        }
        let begin = monotonic();
        made.rows += usize::try_from(writer.close().expect("room").runs).expect("it is little");
        File::open(&path).and_then(|it| it.sync_all()).expect("room");
        made.took += monotonic().duration_since(begin);
        made.bytes += path.metadata().expect("it is there").len();
        made.files.push(path);
    }
    made
}

/// The rows of a column from one on, so many; those before are passed over page by page.
fn part<T: DataType>(
    group: &dyn RowGroupReader,
    at: usize,
    (from, count): (usize, usize),
    mut levels: Option<&mut Vec<i16>>,
) -> Result<Vec<T::T>> {
    let mut column: ColumnReaderImpl<T> = get_typed_column_reader(group.get_column_reader(at)?);
    assert_eq!(column.skip_records(from)?, from);
    let (mut values, mut left) = (Vec::new(), count);
    while left > 0 {
        left -= column.read_records(left, levels.as_deref_mut(), None, &mut values)?.0;
    }
    Ok(values)
}

/// Whether a name may be in a column of a row group, by its least and its greatest.
fn may_have(group: &RowGroupMetaData, at: usize, name: &str) -> bool {
    match group.column(at).statistics() {
        Some(Statistics::ByteArray(of)) => {
            let [least, greatest] = [of.min_opt(), of.max_opt()].map(|it| it.map(ByteArray::data));
            least.is_none_or(|it| it <= name.as_bytes())
                && greatest.is_none_or(|it| it >= name.as_bytes())
        }
        _ => true,
    }
}

/// Begins and values of a path in a day's file, and how many row groups were looked into.
type Found = (Vec<(i64, Option<f64>)>, usize);

fn found(file: &FilePath, path: TaskPath<'_>) -> Result<Found> {
    let options = ReadOptionsBuilder::new().with_page_index().build();
    let reader = SerializedFileReader::new_with_options(File::open(file)?, options)?;
    let (mut found, mut looked) = (Vec::new(), 0);
    for at in 0..reader.num_row_groups() {
        let group = reader.get_row_group(at)?;
        let names = [path.agent, path.task, path.peer];
        if !names.iter().enumerate().all(|(at, name)| may_have(group.metadata(), at, name)) {
            continue;
        }
        looked += 1;
        // Rows are sorted by these: each name narrows what is looked at for the next.
        let rows = usize::try_from(group.metadata().num_rows()).expect("some 100,000");
        let (mut from, mut count) = (0, rows);
        for (at, name) in names.iter().enumerate() {
            let column = part::<ByteArrayType>(&*group, at, (from, count), None)?;
            let before = column.partition_point(|it| it.data() < name.as_bytes());
            let until = column.partition_point(|it| it.data() <= name.as_bytes());
            (from, count) = (from + before, until - before);
        }
        let starts = part::<Int64Type>(&*group, 3, (from, count), None)?;
        let mut valued = Vec::new();
        let values = part::<DoubleType>(&*group, 8, (from, count), Some(&mut valued))?;
        let mut values = values.into_iter();
        let value = |is_there: i16| if is_there == 1 { values.next() } else { None };
        found.extend(starts.into_iter().zip(valued.into_iter().map(value)));
    }
    Ok((found, looked))
}

/// How many values files have, and their sum.
fn sum(files: &[PathBuf]) -> Result<(usize, f64)> {
    let mut all = (0, 0.0);
    for file in files {
        let reader = SerializedFileReader::new(File::open(file)?)?;
        for at in 0..reader.num_row_groups() {
            let group = reader.get_row_group(at)?;
            let values = columns::get::<DoubleType>(&*group, 8, Some(&mut Vec::new()))?;
            all = (all.0 + values.len(), all.1 + values.iter().sum::<f64>());
        }
    }
    Ok(all)
}

fn is_near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * b.abs()
}

#[test]
fn a_path_is_found_by_its_names_and_a_sum_is_that_of_what_was_written() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    // 3 agents × 2 peers × 20,000 runs: a row group of 100,000 rows and one of 20,000.
    let made = make(directory.path(), 1, (3, 2, 20_000));
    assert_eq!((made.rows, made.files.len()), (120_000, 1));
    let (count, of_all) = sum(&made.files).expect("readable");
    assert!(count == made.month.0 && is_near(of_all, made.month.1), "{count}, {of_all}");
    let of = |agent, peer| {
        let path = TaskPath { agent, task: "delay", peer };
        found(&made.files[0], path).expect("readable")
    };
    let mut draw = Draw(1);
    let mut of_path = |at: u64| runs(&mut draw, 1_735_689_600, (1_000_000 + 37_000 * at, 20_000));
    let again = (0..4).map(&mut of_path).last().expect("four");
    // The fourth path is agent001 to agent004; the last group has agent002 alone.
    let wanted: Vec<_> =
        again.iter().map(|it| (it.start_s * 1000, it.figure.as_ref().map(|it| it.1))).collect();
    assert_eq!(of("agent001", "agent004"), (wanted, 1));
    let (last, looked) = of("agent002", "agent004");
    assert_eq!((last.len(), looked), (20_000, 2));
    assert_eq!(of("agent009", "agent004"), (Vec::new(), 0));
}

#[test]
#[ignore = "bench/mesh_archive runs it"]
fn days_as_files() {
    let rows: usize = std::env::var("LINERATE_ROWS")
        .map_or(10_000_000, |rows| rows.parse().expect("LINERATE_ROWS is a number"));
    let directory = tempfile::tempdir().expect("a temporary directory");
    let days = rows.div_ceil(AGENTS * PEERS * RUNS).max(1);
    let made = make(directory.path(), days, (AGENTS, PEERS, RUNS));
    #[allow(clippy::cast_precision_loss, reason = "a mean and a rate")]
    let (each, rate) =
        (made.bytes as f64 / made.rows as f64, made.rows as f64 / made.took.as_secs_f64());
    told!("{} rows in {days} files: {each:.1} bytes a row, {rate:.0} rows/s written", made.rows);
    let mut times: Vec<Duration> = (0..QUERIES)
        .map(|n| {
            let (agent, peer) = (n * 37 % AGENTS, n * 11 % PEERS + AGENTS);
            let (agent, peer) = (format!("agent{agent:03}"), format!("agent{peer:03}"));
            let path = TaskPath { agent: &agent, task: "delay", peer: &peer };
            let begin = monotonic();
            let (rows, looked) = found(&made.files[n % days], path).expect("readable");
            let took = monotonic().duration_since(begin);
            assert!(rows.len() == RUNS && looked <= 2, "{} rows, {looked} groups", rows.len());
            took
        })
        .collect();
    times.sort();
    let (median, most) = (times[QUERIES / 2], times[QUERIES - 1]);
    told!("a path and a day of them: median {median:.1?}, at most {most:.1?} (warm)");
    let begin = monotonic();
    let month = &made.files[..days.min(MONTH)];
    let (count, of_all) = sum(month).expect("readable");
    let took = monotonic().duration_since(begin);
    assert!(count == made.month.0 && is_near(of_all, made.month.1), "{count}, {of_all}");
    told!("the sum of {count} values of {} days: {took:.1?}", month.len());
}
