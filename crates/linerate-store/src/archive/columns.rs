//! The columns of a day's file (Parquet, github.com/apache/parquet-format), some 100,000 rows at a
//! time: into a file and out of it.
//!
//! Rows are sorted by agent, task, peer and begin, so that a row group's least and greatest names
//! tell whether a path is in it, and names are written as numbers of a dictionary.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::sync::Arc;

use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::column::reader::{ColumnReaderImpl, get_typed_column_reader};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{KeyValue, SortingColumn};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::RowGroupReader;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::{ColumnPath, TypePtr};

use super::{DayRun, TaskPath};

/// Rows of a row group: enough that names cost next to nothing, few enough that one is read in
/// milliseconds.
pub(super) const ROWS_MOST: usize = 100_000;
/// Bytes of text in one: documents are held until it is written.
const BYTES_MOST: usize = 64 << 20;
/// Records of ping: level 6 takes twice the time of level 1 for 3 % less, and other columns gain
/// nothing (zstd of pyarrow 26).
const LEVEL: i32 = 1;

/// The columns in their order; docs/manual/mesh.md tells them.
const SCHEMA: &str = "message run {
    required binary agent (STRING);
    required binary task (STRING);
    required binary peer (STRING);
    required int64 start (TIMESTAMP(MILLIS, true));
    required binary why (STRING);
    required binary state (STRING);
    optional binary reason (STRING);
    optional binary metric (STRING);
    optional double value;
    optional binary id (STRING);
    optional binary record (STRING);
}";
/// Columns without a dictionary: hardly a value comes twice.
const PLAIN: [&str; 4] = ["start", "value", "id", "record"];

/// Texts of a column, and where one is missing: a level of 0 (the format's definition levels).
#[derive(Debug, Default)]
pub(super) struct Texts {
    pub(super) values: Vec<ByteArray>,
    levels: Option<Vec<i16>>,
}

impl Texts {
    fn optional() -> Self {
        Self { levels: Some(Vec::new()), ..Self::default() }
    }

    /// The same as before is not copied.
    fn push(&mut self, text: &str) {
        let same = self.values.last().filter(|last| last.data() == text.as_bytes());
        self.values.push(same.cloned().unwrap_or_else(|| ByteArray::from(text)));
        self.levels.iter_mut().for_each(|levels| levels.push(1));
    }

    fn push_some(&mut self, text: Option<&str>) {
        match (text, &mut self.levels) {
            (Some(text), _) => self.push(text),
            (None, Some(levels)) => levels.push(0),
            (None, None) => unreachable!("a text of each row"),
        }
    }

    /// The column's texts row by row, none where one is missing.
    #[cfg(test)]
    pub(super) fn by_row(&self) -> Vec<Option<String>> {
        let text = |value: &ByteArray| String::from_utf8_lossy(value.data()).into_owned();
        let mut values = self.values.iter().map(text);
        match &self.levels {
            None => values.map(Some).collect(),
            Some(levels) => {
                levels.iter().map(|&level| if level == 1 { values.next() } else { None }).collect()
            }
        }
    }
}

impl Hash for Texts {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.values.iter().for_each(|value| value.data().hash(state));
        self.levels.hash(state);
    }
}

/// Rows that are on their way.
#[derive(Debug)]
pub(super) struct DayColumns {
    pub(super) agent: Texts,
    pub(super) task: Texts,
    pub(super) peer: Texts,
    pub(super) start_ms: Vec<i64>,
    pub(super) why: Texts,
    pub(super) state: Texts,
    pub(super) reason: Texts,
    pub(super) metric: Texts,
    pub(super) values: Vec<f64>,
    pub(super) valued: Vec<i16>,
    pub(super) id: Texts,
    pub(super) record: Texts,
    bytes: usize,
}

impl Default for DayColumns {
    fn default() -> Self {
        Self {
            agent: Texts::default(),
            task: Texts::default(),
            peer: Texts::default(),
            start_ms: Vec::new(),
            why: Texts::default(),
            state: Texts::default(),
            reason: Texts::optional(),
            metric: Texts::optional(),
            values: Vec::new(),
            valued: Vec::new(),
            id: Texts::optional(),
            record: Texts::optional(),
            bytes: 0,
        }
    }
}

impl DayColumns {
    pub(super) fn push(&mut self, path: TaskPath<'_>, run: &DayRun) {
        self.agent.push(path.agent);
        self.task.push(path.task);
        self.peer.push(path.peer);
        self.start_ms.push(run.start_s * 1000);
        self.why.push(run.why.name());
        self.state.push(run.state.name());
        self.reason.push_some(run.reason.as_deref());
        let (metric, value) = run.figure.as_ref().map(|(key, value)| (key, *value)).unzip();
        self.metric.push_some(metric.map(String::as_str));
        self.values.extend(value);
        self.valued.push(i16::from(value.is_some()));
        self.id.push_some(run.record.as_deref());
        self.record.push_some(run.doc.as_deref());
        self.bytes += run.doc.as_ref().map_or(0, String::len);
    }

    pub(super) fn row_count(&self) -> usize {
        self.start_ms.len()
    }

    pub(super) fn is_full(&self) -> bool {
        self.row_count() >= ROWS_MOST || self.bytes >= BYTES_MOST
    }

    /// A hash of all values and of the rows in which one is missing.
    pub(super) fn digest(&self) -> u64 {
        let mut state = DefaultHasher::new();
        for texts in [&self.agent, &self.task, &self.peer, &self.why, &self.state] {
            texts.hash(&mut state);
        }
        for texts in [&self.reason, &self.metric, &self.id, &self.record] {
            texts.hash(&mut state);
        }
        self.start_ms.hash(&mut state);
        self.values.iter().for_each(|value| value.to_bits().hash(&mut state));
        self.valued.hash(&mut state);
        state.finish()
    }

    /// Writes them as a row group.
    pub(super) fn write<W: Write + Send>(&self, file: &mut SerializedFileWriter<W>) -> Result<()> {
        let mut group = file.next_row_group()?;
        for texts in [&self.agent, &self.task, &self.peer] {
            put_texts(&mut group, texts)?;
        }
        write_column::<Int64Type, W>(&mut group, &self.start_ms, None)?;
        for texts in [&self.why, &self.state, &self.reason, &self.metric] {
            put_texts(&mut group, texts)?;
        }
        write_column::<DoubleType, W>(&mut group, &self.values, Some(&self.valued))?;
        for texts in [&self.id, &self.record] {
            put_texts(&mut group, texts)?;
        }
        group.close().map(drop)
    }

    /// Reads a row group.
    pub(super) fn read(group: &dyn RowGroupReader) -> Result<Self> {
        let mut valued = Vec::new();
        let values = get::<DoubleType>(group, 8, Some(&mut valued))?;
        Ok(Self {
            agent: get_texts(group, 0, false)?,
            task: get_texts(group, 1, false)?,
            peer: get_texts(group, 2, false)?,
            start_ms: get::<Int64Type>(group, 3, None)?,
            why: get_texts(group, 4, false)?,
            state: get_texts(group, 5, false)?,
            reason: get_texts(group, 6, true)?,
            metric: get_texts(group, 7, true)?,
            values,
            valued,
            id: get_texts(group, 9, true)?,
            record: get_texts(group, 10, true)?,
            bytes: 0,
        })
    }
}

fn put_texts<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    texts: &Texts,
) -> Result<()> {
    write_column::<ByteArrayType, W>(group, &texts.values, texts.levels.as_deref())
}

fn write_column<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: &[T::T],
    levels: Option<&[i16]>,
) -> Result<()> {
    let column = group.next_column()?;
    let mut column = column.ok_or_else(|| ParquetError::General("one column less".to_owned()))?;
    column.typed::<T>().write_batch(values, levels, None)?;
    column.close()
}

fn get_texts(group: &dyn RowGroupReader, at: usize, optional: bool) -> Result<Texts> {
    let mut levels = optional.then(Vec::new);
    let values = get::<ByteArrayType>(group, at, levels.as_mut())?;
    Ok(Texts { values, levels })
}

/// A column of a row group, whole.
pub(super) fn get<T: DataType>(
    group: &dyn RowGroupReader,
    at: usize,
    mut levels: Option<&mut Vec<i16>>,
) -> Result<Vec<T::T>> {
    let mut column: ColumnReaderImpl<T> = get_typed_column_reader(group.get_column_reader(at)?);
    let mut values = Vec::new();
    while column.read_records(ROWS_MOST, levels.as_deref_mut(), None, &mut values)?.0 > 0 {}
    Ok(values)
}

pub(super) fn schema() -> Result<TypePtr> {
    parse_message_type(SCHEMA).map(Arc::new)
}

/// Options of the writer: zstd, dictionaries for names, delta encoding for begin times.
pub(super) fn properties(about: [(&str, &str); 2]) -> Result<Arc<WriterProperties>> {
    let about = about.map(|(key, value)| KeyValue::new(key.to_owned(), value.to_owned()));
    let column = |name: &str| ColumnPath::from(name);
    let sorted = |column_idx| SortingColumn { column_idx, descending: false, nulls_first: false };
    let mut properties = WriterProperties::builder()
        .set_created_by(format!("linerate version {}", env!("CARGO_PKG_VERSION")))
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(LEVEL)?))
        .set_key_value_metadata(Some(about.to_vec()))
        .set_sorting_columns(Some((0..4).map(sorted).collect()))
        .set_column_encoding(column("start"), Encoding::DELTA_BINARY_PACKED)
        .set_column_statistics_enabled(column("record"), EnabledStatistics::None);
    for name in PLAIN {
        properties = properties.set_column_dictionary_enabled(column(name), false);
    }
    Ok(Arc::new(properties.build()))
}
