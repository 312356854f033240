//! A transaction on PostgreSQL.

use std::borrow::Cow;

use bytes::BytesMut;
use futures_util::future::try_join_all;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
use toolgate_gate::ports::ledger::{Generation, Revision};

use super::change::PreparedChange;
use crate::sql::{Row, SqlError, Value};
use crate::transaction::{Change, Query, Rows, Table, Transaction};

/// The lock under which replicas integrate events one at a time.
const INTEGRATION_LOCK: i64 = 0x7467_6c6f_6773;
/// The maximum number of statements in flight on one connection.
const PIPELINE: usize = 512;

/// One transaction of a pooled connection.
pub struct PostgresTransaction<'a> {
    transaction: deadpool_postgres::Transaction<'a>,
}

impl<'a> PostgresTransaction<'a> {
    pub(super) fn new(transaction: deadpool_postgres::Transaction<'a>) -> Self {
        Self { transaction }
    }

    pub(super) async fn commit(self) -> Result<(), tokio_postgres::Error> {
        self.transaction.commit().await
    }
}

impl Transaction for PostgresTransaction<'_> {
    const INSERT: &'static str = "INSERT INTO";
    const FOR_SHARE: &'static str = " FOR SHARE";
    const FOR_UPDATE: &'static str = " FOR UPDATE";
    const FOR_UPDATE_SKIPPING: &'static str = " FOR UPDATE SKIP LOCKED";
    const ORDERS_EVENTS: bool = false;

    async fn query(&mut self, sql: &str, parameters: &[Value<'_>]) -> Result<Vec<Row>, SqlError> {
        let statement = self.transaction.prepare_cached(sql).await.map_err(|error| sql_error(&error))?;
        let rows = self.transaction.query(&statement, &bound(parameters)).await.map_err(|error| sql_error(&error))?;
        rows.iter().map(read).collect()
    }

    async fn query_each(&mut self, queries: &[Query<'_>]) -> Result<Vec<Vec<Row>>, SqlError> {
        let mut prepared = Vec::with_capacity(queries.len());
        for (sql, parameters) in queries {
            let statement = self.transaction.prepare_cached(sql).await.map_err(|error| sql_error(&error))?;
            prepared.push((statement, bound(parameters)));
        }
        // Pipelined without waiting for results; the server executes them in this order.
        let in_flight = prepared.iter().map(|(statement, bound)| self.transaction.query(statement, bound));
        let results = try_join_all(in_flight).await.map_err(|error| sql_error(&error))?;
        results.iter().map(|rows| rows.iter().map(read).collect()).collect()
    }

    async fn execute(&mut self, sql: &str, parameters: &[Value<'_>]) -> Result<u64, SqlError> {
        let statement = self.transaction.prepare_cached(sql).await.map_err(|error| sql_error(&error))?;
        self.transaction.execute(&statement, &bound(parameters)).await.map_err(|error| sql_error(&error))
    }

    async fn execute_many(&mut self, sql: &str, parameters: &[Vec<Value<'_>>]) -> Result<Vec<u64>, SqlError> {
        Ok(self.change_each(&[Change::Each(sql, parameters)]).await?.pop().unwrap_or_default())
    }

    async fn execute_with(&mut self, table: Table<'_>, sql: &str) -> Result<u64, SqlError> {
        Ok(self.change_each(&[Change::With(table, sql)]).await?.into_iter().flatten().sum())
    }

    async fn insert(&mut self, rows: Rows<'_>) -> Result<(), SqlError> {
        self.change_each(&[Change::Insert(rows)]).await.map(drop)
    }

    async fn change_each(&mut self, changes: &[Change<'_>]) -> Result<Vec<Vec<u64>>, SqlError> {
        let mut statements = Vec::new();
        for (number, change) in changes.iter().enumerate() {
            let prepared = PreparedChange::new(&self.transaction, change).await.map_err(|error| sql_error(&error))?;
            for (statement, parameters) in prepared.into_iter().flat_map(PreparedChange::statements) {
                statements.push((number, statement, parameters));
            }
        }
        let mut changed = vec![Vec::new(); changes.len()];
        for chunk in statements.chunks(PIPELINE) {
            // Pipelined without waiting for results; the server executes them in this order.
            let bound: Vec<_> =
                chunk.iter().map(|(_, statement, parameters)| (statement, parameters.bound())).collect();
            let in_flight = bound.iter().map(|(statement, bound)| self.transaction.execute(*statement, bound));
            let counts = try_join_all(in_flight).await.map_err(|error| sql_error(&error))?;
            for ((number, _, _), count) in chunk.iter().zip(counts) {
                if let Some(counts) = changed.get_mut(*number) {
                    counts.push(count);
                }
            }
        }
        Ok(changed)
    }

    async fn lock_integration(&mut self) -> Result<(), SqlError> {
        self.execute("SELECT pg_advisory_xact_lock($1)", &[Value::Integer(INTEGRATION_LOCK)]).await.map(drop)
    }

    fn unchanged_since(&self, _generation: Generation) -> bool {
        // Other replicas change things too.
        false
    }

    async fn revision(&mut self) -> Result<Revision, SqlError> {
        // Whatever was acknowledged is in the flushed part of the log, and visible.
        let sql = "SELECT pg_wal_lsn_diff(pg_current_wal_flush_lsn(), '0/0')::bigint";
        let row = self.query_optional(sql, &[]).await?.ok_or_else(|| SqlError::Corrupt("no revision".to_owned()))?;
        row.count(0)
    }
}

/// Sorts an error of PostgreSQL.
pub(super) fn sql_error(error: &tokio_postgres::Error) -> SqlError {
    let text = error.as_db_error().map_or_else(|| error.to_string(), |error| error.to_string());
    match error.code() {
        Some(&(SqlState::UNIQUE_VIOLATION | SqlState::FOREIGN_KEY_VIOLATION)) => SqlError::Taken(text),
        Some(
            &(SqlState::T_R_SERIALIZATION_FAILURE | SqlState::T_R_DEADLOCK_DETECTED | SqlState::LOCK_NOT_AVAILABLE),
        ) => SqlError::Busy(text),
        // A pooled connection that has been closed: nothing was committed on it.
        None if error.is_closed() => SqlError::Busy(text),
        _ => SqlError::Unavailable(text),
    }
}

pub(super) fn bound<'a>(parameters: &'a [Value<'a>]) -> Vec<&'a (dyn ToSql + Sync)> {
    parameters.iter().map(|value| value as &(dyn ToSql + Sync)).collect()
}

fn read(row: &tokio_postgres::Row) -> Result<Row, SqlError> {
    let columns = (0..row.len()).map(|column| {
        row.try_get::<_, Option<Value<'static>>>(column)
            .map(|value| value.unwrap_or(Value::Null))
            .map_err(|error| sql_error(&error))
    });
    columns.collect::<Result<_, _>>().map(Row::new)
}

impl ToSql for Value<'_> {
    fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self {
            Self::Blob(bytes) => bytes.as_ref().to_sql(kind, out),
            Self::Id(id) => id.as_str().to_sql(kind, out),
            Self::Integer(integer) => match *kind {
                Type::INT4 => i32::try_from(*integer)?.to_sql(kind, out),
                _ => integer.to_sql(kind, out),
            },
            Self::Null => Ok(IsNull::Yes),
            Self::Text(text) => text.as_ref().to_sql(kind, out),
        }
    }

    fn accepts(kind: &Type) -> bool {
        matches!(*kind, Type::BYTEA | Type::INT4 | Type::INT8 | Type::TEXT)
    }

    to_sql_checked!();
}

impl<'a> FromSql<'a> for Value<'static> {
    fn from_sql(kind: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(match *kind {
            Type::BYTEA => Self::Blob(Cow::Owned(raw.to_vec())),
            Type::INT4 => Self::Integer(i64::from(i32::from_sql(kind, raw)?)),
            Type::INT8 => Self::Integer(i64::from_sql(kind, raw)?),
            _ => Self::Text(Cow::Owned(<&str>::from_sql(kind, raw)?.to_owned())),
        })
    }

    fn accepts(kind: &Type) -> bool {
        matches!(*kind, Type::BYTEA | Type::INT4 | Type::INT8 | Type::TEXT | Type::VARCHAR | Type::UNKNOWN)
    }
}
