//! Words of states and reasons in columns: what no version of this program wrote is an error that
//! names those it knows.

use std::str::FromStr;

use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ValueRef};

type Unknown = Box<dyn std::error::Error + Send + Sync>;

/// A value that a column stores as its word.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoredWord<T>(pub(crate) T);

fn read<T: FromStr<Err = String>>(text: &str) -> Result<StoredWord<T>, Unknown> {
    let unknown = |known| format!("{text:?} is not known to this version: {known}").into();
    text.parse().map(StoredWord).map_err(unknown)
}

impl<T: FromStr<Err = String>> FromSql for StoredWord<T> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        read(value.as_str()?).map_err(FromSqlError::Other)
    }
}

#[cfg(feature = "scale")]
impl<'a, T: FromStr<Err = String>> tokio_postgres::types::FromSql<'a> for StoredWord<T> {
    fn from_sql(kind: &tokio_postgres::types::Type, bytes: &'a [u8]) -> Result<Self, Unknown> {
        read(<&str>::from_sql(kind, bytes)?)
    }

    fn accepts(kind: &tokio_postgres::types::Type) -> bool {
        <&str as tokio_postgres::types::FromSql<'_>>::accepts(kind)
    }
}
